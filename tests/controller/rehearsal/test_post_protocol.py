"""docs/post-protocol.md, played line by line against a table: a post hears what the page says, and nothing else."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from controller import codec
from controller.delivery.posts import (
    DEAF_US,
    MESSAGES_AT_ONCE,
    MESSAGES_PER_S,
    REFUSALS_PER_ROUND,
    REQUESTS_PER_ROUND,
    REQUESTS_REMEMBERED,
)
from controller.delivery.wire import POST_MESSAGE_BOUND
from controller.schemas import RANDOM_POCKETS_BOUND, STAKES_BOUND, VERBS
from controller.snapshots import POST_PROTOCOL
from games.posts import PlayerPaidOut, PlayerSteppedAway
from games.refusals import Refusal
from games.roulette.coup import Phase
from games.roulette.layout import Wheel, layout
from games.seance import SeancePhase
from tests.controller.rehearsal.house import ROOT, House, play
from tests.controller.rehearsal.people import Post

PAGE = (ROOT / "docs" / "post-protocol.md").read_text(encoding="utf-8")
NOT_TAKEN = {
    "E-POST-JSON",
    "E-POST-FIELD",
    "E-POST-KEY-TWICE",
    "E-POST-OVERSIZED",
    "E-POST-REQUEST-UNKNOWN",
    "E-POST-FLOOD",
    "E-INBOX-FULL",
    "E-POST-NO-EFFECT",
}
ANYTHING = "…"
"""In the place of a value that the page cannot know."""


def section(heading: str) -> str:
    """The page's text under a heading."""
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def lines() -> Iterator[str]:
    """The lines of the visit, in order."""
    for block in re.findall(r"^```text\n(.*?)^```", section("A visit, message by message"), re.MULTILINE | re.DOTALL):
        yield from block.splitlines()


def agrees(told: Any, said: Any) -> bool:
    """Whether what was heard is what the page says, but for the number of the entry."""
    if said == ANYTHING:
        return True
    if isinstance(said, dict) and isinstance(told, dict):
        return set(said) == set(told) and all(name == "index" or agrees(told[name], said[name]) for name in said)
    return bool(told == said)


async def house_acts(house: House, what: str) -> None:
    """What stands in brackets on the page."""
    if loaded := re.fullmatch(r"the cashier loads the post with (\d+) cents", what):
        await house.order("cashier", "post.credit", post=1, cents=int(loaded[1]))
    elif what == "faites vos jeux":
        await house.begin_round()
    elif what == "rien ne va plus":
        await house.reach("no_more_bets")
    elif what.startswith("the ball falls on "):
        await house.reach("idle")
        assert house.every("roulette.round.closed")[-1]["pocket"] == what.rpartition(" ")[2]
    elif what == "the director voids the round":
        await house.order("director", "incident.declare", reason="essai")
        await house.settle_incident()
    else:
        pytest.fail(f"the page lets the house do {what!r}, and this test does not know how")


def test_post_protocol_page_is_what_a_post_sends_and_hears_line_by_line() -> None:
    async def story(house: House) -> None:
        await house.open()
        post, read, entries = house.post(1), 0, dict[int, int]()
        await house.until(lambda: post.bus.connected)
        for line in lines():
            if line.startswith("→ "):
                post.send(line.removeprefix("→ ").encode())
            elif line.startswith("← "):
                await heard_at_least(house, post, read + 1)
                said = json.loads(line.removeprefix("← "))
                told = post.heard[read]
                assert agrees(told, said), f"the table said {told}"
                if "index" in said:
                    assert entries.setdefault(said["index"], told["index"]) == told["index"], "the same entry again"
                read += 1
            else:
                await house_acts(house, line.strip("()"))
        await house.let_pass(1)
        assert post.heard[read:] == [], "the page leaves something out"
        assert read >= 20
        assert list(entries.values()) == sorted(entries.values())

    play(story, pockets=["17"])


async def heard_at_least(house: House, post: Post, count: int) -> None:
    await house.until(lambda: len(post.heard) >= count)


def test_post_protocol_page_names_every_request_with_its_fields() -> None:
    schema = json.loads((ROOT / "docs" / "schemas" / "post-request.json").read_text(encoding="utf-8"))
    fields = {
        one["properties"]["do"]["const"]: set(one["properties"]) - {"id", "do"}
        for one in schema["$defs"].values()
        if "do" in one["properties"]
    }
    assert set(fields) == set(VERBS)
    rows = re.findall(r"^\| (`[^|]*)\|([^|]*)\|", section("A request and its answer"), re.MULTILINE)
    told = {
        verb: set(re.findall(r"`([a-z]+)`", cells))
        for names, cells in rows
        for verb in re.findall(r"`([a-z-]+)`", names)
    }
    assert {verb: told[verb] for verb in fields} == fields


def test_post_protocol_page_gives_the_bounds_of_the_program() -> None:
    for bound in (POST_MESSAGE_BOUND, REQUESTS_PER_ROUND, REQUESTS_REMEMBERED):
        assert f"{bound:,}" in PAGE
    assert f"{MESSAGES_PER_S} messages a second, and {MESSAGES_AT_ONCE} in one burst" in PAGE
    assert (DEAF_US, "for one second nothing more" in PAGE) == (1_000_000, True)
    assert f"{REFUSALS_PER_ROUND} of them refused" in PAGE
    assert f"1 to {STAKES_BOUND} of" in PAGE
    assert f"1 to {RANDOM_POCKETS_BOUND}" in PAGE
    assert f"`{POST_PROTOCOL}`" in PAGE.splitlines()[0]


def test_post_protocol_page_explains_every_code_that_a_post_may_be_told() -> None:
    may_be_told = {str(one) for one in Refusal if list(Refusal).index(one) < list(Refusal).index(Refusal.ROLE)}
    assert set(re.findall(r"`(E-[A-Z-]+)`", section("Codes"))) == may_be_told | NOT_TAKEN


def test_post_protocol_page_names_every_field_of_the_board_and_every_phase() -> None:
    async def story(house: House) -> dict[str, Any]:
        await house.open()
        return house.board

    board = play(story)
    rows = re.findall(r"^\| (`[^|]*) \|", section("The board"), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(board)
    assert all(f"`{phase}`" in section("The board") for phase in [*Phase, *SeancePhase])


def test_post_protocol_page_names_bets_that_the_layout_has() -> None:
    text = section("The board").rpartition("Bets are named")[2]
    named = set(re.findall(r"`([a-z0-9-]+)`", text)) - {"tablectl rules"}
    assert len(named) > 10
    assert sorted(named - set(layout(Wheel(37)))) == []


def test_post_protocol_page_names_every_kind_of_news() -> None:
    at_a_post = {kind: set(fact.__dataclass_fields__) for kind, fact in codec.FACTS.items()}
    never_asked = {kind for kind, fields in at_a_post.items() if "post" in fields and "request" not in fields}
    by_the_house_too = {PlayerPaidOut.KIND, PlayerSteppedAway.KIND}
    named = re.findall(r"^\| `(fr\.[a-z_.0-9]+)` \|", section("News"), re.MULTILINE)
    assert set(named) == never_asked | by_the_house_too
