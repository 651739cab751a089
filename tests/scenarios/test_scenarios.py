"""The stories in this folder, played: each is a TOML file that a casino technician can read, check and write.

    title   what happens, in one line
    law     the words of the law that it shows
    [table] conduct ("croupier" or "launcher"), wheel (37 or 38), and any other house rule by its name
    [[scene]] given, when, then: lists of sentences (``phrasebook`` has them all)

What is given must go well. Of what is done under ``when`` all must go well but the last deed, which is refused exactly
when ``then`` says so.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from games.money import Cents
from games.roulette.layout import Wheel
from games.roulette.rules import Conduct
from tests.games.table import EURO, Outcome, Table
from tests.scenarios.phrasebook import DEEDS, SIGHTS, say

STORIES = sorted(Path(__file__).parent.glob("*.toml"))
SCENE = {"given", "when", "then"}


def set_up(house: dict[str, Any]) -> Table:
    """The table of a story, with a minimum of one euro unless it says otherwise."""
    rules = {"minimum": Cents(EURO), **house}
    return Table(Conduct(rules.pop("conduct")), Wheel(rules.pop("wheel")), **rules)


def do(table: Table, sentence: str, *, refused: bool) -> None:
    """One deed, which goes well or is refused as foretold."""
    outcome: Outcome = say(DEEDS, table, sentence)
    assert (outcome.refusal is not None) is refused, f"{sentence!r} led to {outcome.refusal or 'no refusal'}"


def play(table: Table, scene: dict[str, list[str]]) -> None:
    """One scene of a story."""
    assert set(scene) <= SCENE and scene.get("then"), f"a scene has given, when and then: {scene}"
    refused = any(sight.startswith("it is refused") for sight in scene["then"])
    for deed in scene.get("given", []):
        do(table, deed, refused=False)
    *earlier, last = scene.get("when", [""])
    for deed in earlier:
        do(table, deed, refused=False)
    if last:
        do(table, last, refused=refused)
    for sight in scene["then"]:
        say(SIGHTS, table, sight)


@pytest.mark.law("67-15")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_story_of_the_table_ends_as_it_is_told(story: Path) -> None:
    told = tomllib.loads(story.read_text(encoding="utf-8"))
    assert set(told) == {"title", "law", "table", "scene"}
    table = set_up(told["table"])
    for scene in told["scene"]:
        play(table, scene)


def test_sentences_of_the_phrasebook_are_all_told_in_some_story() -> None:
    told = [
        sentence
        for story in STORIES
        for scene in tomllib.loads(story.read_text(encoding="utf-8"))["scene"]
        for sentences in scene.values()
        for sentence in sentences
    ]
    silent = [phrase.words for phrase in (*DEEDS, *SIGHTS) if not any(map(phrase.pattern.fullmatch, told))]
    assert silent == []


@pytest.mark.parametrize(
    ("scene", "complaint"),
    [
        ({"when": ["the director closes the séance"], "then": ["bets are open"]}, "E-SEANCE-CLOSED"),
        ({"when": ["the wheel is verified"], "then": ["it is refused with E-HALTED"]}, "no refusal"),
        ({"given": ["the séance is open"], "then": ["bets are open"]}, "it is <Phase.IDLE: 'idle'>"),
        ({"given": ["the séance is opened"], "then": ["bets are open"]}, "no such sentence"),
        ({"given": ["the séance is open"]}, "a scene has given, when and then"),
    ],
)
def test_story_that_is_not_true_fails_and_says_why(scene: dict[str, list[str]], complaint: str) -> None:
    with pytest.raises((AssertionError, ValueError), match=complaint):
        play(set_up({"conduct": "croupier", "wheel": 37}), scene)
