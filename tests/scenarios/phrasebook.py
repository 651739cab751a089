"""The sentences of the stories in this folder, and what each does to a table or asks of it.

A sentence is written with its blanks in braces: ``post {post} stakes {cents} on {bet}``. *Deeds* are what people,
players and devices do; *sights* are what can be seen afterwards, and stand under ``then``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from games.money import euros
from games.posts import OrphanRecorded, PlayerPaidOut
from games.refusals import Refusal
from games.roulette.coup import Phase
from games.roulette.facts import NumberAnnounced, NumberValidated, RoundVoided
from games.seance import SeanceClosed
from games.signals import Person, Role
from tests.games.table import PEOPLE, Outcome, Table


def _cents(text: str) -> int:
    """``1 250,50 €`` in cents."""
    whole, _, part = text.removesuffix("€").replace(" ", "").partition(",")
    return int(whole) * 100 + int(part or 0)


def _person(role: str) -> Person:
    return PEOPLE[Role(role)]


BLANKS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "post": (r"\d+", int),
    "number": (r"\d+", int),
    "cents": (r"\d[\d ]*(?:,\d\d)? €", _cents),
    "who": ("croupier|director|cashier|technician", _person),
    "pocket": (r"00|\d\d?", str),
    "bet": (r"[a-z0-9-]+", str),
    "player": ("[A-Z][a-z]+", str),
    "key": ("croupier|director", str),
    "button": ("[a-z-]+", str),
    "phase": ("|".join(Phase), Phase),
    "code": ("E(?:-[A-Z]+)+", Refusal),
    "text": (".+", str),
}


@dataclass(frozen=True, slots=True)
class Phrase:
    """One sentence with its blanks."""

    words: str
    pattern: re.Pattern[str]
    act: Callable[..., Any]

    def said(self, table: Table, sentence: str) -> tuple[Any] | None:
        """What came of the sentence, or None when this is another sentence."""
        match = self.pattern.fullmatch(sentence)
        if match is None:
            return None
        return (self.act(table, *(BLANKS[blank][1](text) for blank, text in match.groupdict().items())),)


def _phrase(words: str, act: Callable[..., Any]) -> Phrase:
    parts = re.split(r"\{(\w+)\}", words)
    written = [re.escape(part) if at % 2 == 0 else f"(?P<{part}>{BLANKS[part][0]})" for at, part in enumerate(parts)]
    return Phrase(words, re.compile("".join(written)), act)


def _plays_rounds(table: Table, number: int) -> Outcome:
    for _ in range(number):
        outcome = table.plays_round("17")
    return outcome


def _sits(table: Table, player: str, post: int, cents: int) -> Outcome:
    return table.sits(post, player.lower(), cents)


def _wrong_way(table: Table) -> Outcome:
    expected = table.state.coup.expected
    assert expected is not None, "no direction is wrong before the first valid spin"
    return table.ball_runs(direction=expected.opposite)


DEEDS = tuple(
    _phrase(words, act)
    for words, act in (
        # the house
        ("the wheel is verified", lambda table: table.wheel_is_verified()),
        ("the {who} puts the posts in service", lambda table, who: table.puts_posts_in_service(who)),
        ("the {who} opens the séance", lambda table, who: table.opens_seance(who)),
        ("the séance is open", lambda table: table.opens().last),
        ("the {who} announces the three last balls", lambda table, who: table.announces_last(who)),
        ("the {who} closes the séance", lambda table, who: table.closes_seance(who)),
        ("the {who} credits post {post} with {cents}", lambda table, who, post, cents: table.credits(post, cents, who)),
        ("the {who} suspends post {post}", lambda table, who, post: table.suspends(post, who)),
        ("the {who} releases consignment {number}", lambda table, who, number: table.releases(number, who)),
        ("the {key}'s key is turned on", lambda table, key: table.turns_key(key)),
        ("the {key}'s key is turned off", lambda table, key: table.turns_key(key, on=False)),
        ("the button {button} is pressed", lambda table, button: table.presses(button)),
        # the players
        ("{player} sits at post {post} with {cents}", _sits),
        ("{player} sits at post {post}", lambda table, player, post: table.sits(post, player.lower())),
        ("post {post} stakes {cents} on {bet}", lambda table, post, cents, bet: table.stakes(post, {bet: cents})),
        ("post {post} announces {bet} at {cents}", lambda table, post, bet, cents: table.announces(post, bet, cents)),
        ("post {post} takes its stakes back", lambda table, post: table.takes_back(post)),
        ("post {post} presses paiement", lambda table, post: table.cashes_out(post)),
        ("the player of post {post} steps away", lambda table, post: table.steps_away(post)),
        ("the player of post {post} comes back", lambda table, post: table.comes_back(post)),
        ("the limit of absence of post {post} runs out", lambda table, post: table.time_ends(f"absence:{post}")),
        # the round
        ("the {who} says faites vos jeux", lambda table, who: table.says_faites_vos_jeux(who)),
        ("the pause between two rounds ends", lambda table: table.time_ends("next_round")),
        ("the time for stakes ends and the launcher starts", lambda table: table.time_ends("launch")),
        ("the ball runs", lambda table: table.ball_runs()),
        ("the ball runs, and the rotor turns as it did before", _wrong_way),
        ("the ball slows", lambda table: table.ball_slows()),
        ("the {who} says rien ne va plus", lambda table, who: table.says_rien_ne_va_plus(who)),
        ("the ball falls in {pocket}", lambda table, pocket: table.ball_in(pocket)),
        ("the wheel reports that it had ended in {pocket}", lambda table, pocket: table.ball_was_in(pocket)),
        ("the {who} confirms {pocket}", lambda table, who, pocket: table.confirms(pocket, who)),
        ("the slowing is not seen in time", lambda table: table.time_ends("no_more_bets_limit")),
        ("the number is not seen in time", lambda table: table.time_ends("number_limit")),
        ("a round is played on {pocket}", lambda table, pocket: table.plays_round(pocket)),
        ("{number} rounds are played without a stake", _plays_rounds),
        # incidents
        ("the {who} declares an incident", lambda table, who: table.declares_incident(who)),
        ("the {who} enters {pocket}", lambda table, who, pocket: table.enters(pocket, who)),
        ("the {who} enters that the round is void", lambda table, who: table.voids(who)),
        ("the {who} attests to be present", lambda table, who: table.attests(who)),
        ("the {who} restarts the game", lambda table, who: table.restarts(who)),
        ("the wheel falls silent", lambda table: table.wheel_falls_silent()),
        ("the wheel is heard again", lambda table: table.wheel_is_heard()),
        ("the power fails and comes back", lambda table: table.loses_power()),
    )
)


# ── What can be seen ──────────────────────────────────────────────────────────────────────────────────────────────────


def _is(seen: Any, wanted: Any) -> None:
    assert seen == wanted, f"it is {seen!r}, not {wanted!r}"


def _has(seen: int, wanted: int) -> None:
    assert seen == wanted, f"it is {euros(seen)}, not {euros(wanted)}"


def _number(table: Table, pocket: str) -> None:
    found = [fact for fact in table.last.facts if isinstance(fact, NumberAnnounced | NumberValidated)]
    _is([fact.pocket for fact in found], [pocket])


def _by(table: Table, people: list[Role | None]) -> None:
    validated = table.last.the(NumberValidated)
    _is([validated.croupier and validated.croupier.role, validated.director.role], people)


def _rotor(table: Table, bound: bool) -> None:
    _is(table.state.coup.expected is not None, bound)


def _books(table: Table) -> None:
    closed = table.last.the(SeanceClosed)
    kept = closed.staked_cents - closed.returned_cents - closed.won_cents
    _has(closed.credited_cents, kept + closed.paid_out_cents + closed.orphaned_cents)
    _is(table.state.posts.players(), ())


SIGHTS = tuple(
    _phrase(words, act)
    for words, act in (
        ("it is refused with {code}", lambda table, code: _is(table.last.refusal, code)),
        ("bets are open", lambda table: _is(table.phase, Phase.BETTING)),
        ("the phase is {phase}", lambda table, phase: _is(table.phase, phase)),
        ("the board says {text}", lambda table, text: _is(table.game.board(table.state)["text"], text)),
        ("post {post} has {cents}", lambda table, post, cents: _has(table.credit(post), cents)),
        ("post {post} has {cents} in play", lambda table, post, cents: _has(table.staked(post), cents)),
        ("post {post} is free", lambda table, post: _is(table.player(post), None)),
        ("the number is {pocket}", _number),
        ("croupier and director stand for it", lambda table: _by(table, [Role.CROUPIER, Role.DIRECTOR])),
        ("the director alone stands for it", lambda table: _by(table, [None, Role.DIRECTOR])),
        ("the round is void", lambda table: table.last.the(RoundVoided)),
        ("the rotor must turn the other way", lambda table: _rotor(table, True)),
        ("the rotor may turn either way", lambda table: _rotor(table, False)),
        ("the desk owes {cents} to post {post}", lambda table, cents, post: _owed(table, cents, post)),
        ("{cents} are consigned", lambda table, cents: _has(_aside(table), cents)),
        ("{cents} go to the orphans", lambda table, cents: _has(table.last.the(OrphanRecorded).cents, cents)),
        ("{number} of the last balls remain", lambda table, number: _is(table.state.seance.last_left, number)),
        ("the séance is closed and its books balance", _books),
    )
)


def _owed(table: Table, cents: int, post: int) -> None:
    _has(sum(fact.cents for fact in table.last.every(PlayerPaidOut) if fact.post == post), cents)


def _aside(table: Table) -> int:
    return sum(consignment.cents for consignment in table.state.posts.consigned.values())


def say(book: tuple[Phrase, ...], table: Table, sentence: str) -> Any:
    """Do, or look at, what the sentence says. Raises ValueError for a sentence that the book does not have."""
    for phrase in book:
        if (said := phrase.said(table, sentence)) is not None:
            return said[0]
    near = get_close_matches(sentence, [phrase.words for phrase in book], n=3, cutoff=0)
    raise ValueError(f"no such sentence: {sentence!r}; near it: {'; '.join(near)}")
