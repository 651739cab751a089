"""A watch that cannot fail protects nobody: each forged fact here would cost somebody money, and is caught."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from games.money import Cents
from games.posts import PlayerPaidOut, PlayerSat, PostRecredited, PostSettled, StakesPlaced
from games.roulette.coup import Phase
from games.roulette.facts import (
    BettingOpened,
    GameRestarted,
    NoMoreBetsCalled,
    NumberAnnounced,
    NumberValidated,
    RoundClosed,
    RoundVoided,
    SpinStarted,
)
from games.rules import Fact
from games.seance import LastRoundsAnnounced
from games.signals import Direction, Stake
from tests.games.table import CROUPIER, DIRECTOR, EURO, Table, playing

STAKE = (Stake(bet="rouge", cents=Cents(2 * EURO)),)


def placed(credit: int, cents: int = 2 * EURO) -> StakesPlaced:
    return StakesPlaced(
        post=1, request="r", round=1, origin="bets", stakes=STAKE, cents=Cents(cents), credit=Cents(credit)
    )


def settled(won: int, *, returned: int = 2 * EURO, credit: int = 1_002 * EURO) -> PostSettled:
    return PostSettled(
        post=1, round=1, staked=Cents(2 * EURO), returned=Cents(returned), won=Cents(won), credit=Cents(credit)
    )


def recredited(cents: int) -> PostRecredited:
    return PostRecredited(post=1, round=1, cents=Cents(cents), credit=Cents(998 * EURO + cents))


def closed(number: int = 1) -> RoundClosed:
    return RoundClosed(round=number, pocket="3", posts=0, staked=Cents(0), returned=Cents(0), won=Cents(0))


NUMBER = NumberAnnounced(round=1, pocket="3", by=CROUPIER)
VOID = RoundVoided(round=1, reason="x", cents=Cents(0), croupier=CROUPIER, director=DIRECTOR)

FORGERIES: list[tuple[Phase, tuple[Fact, ...], str]] = [
    (Phase.NO_MORE_BETS, (placed(996 * EURO),), "a stake after no more bets"),
    (Phase.BETTING, (placed(998 * EURO),), "credit of post 1"),
    (Phase.BETTING, (placed(997 * EURO, 3 * EURO),), "do not add up"),
    (Phase.NO_MORE_BETS, (NUMBER, settled(3 * EURO, credit=1_003 * EURO)), "a wrong pay-out"),
    (Phase.NO_MORE_BETS, (NUMBER, settled(0, returned=0, credit=998 * EURO)), "a wrong pay-out"),
    (Phase.NO_MORE_BETS, (NUMBER, settled(2 * EURO), settled(2 * EURO)), "stakes that are not in play"),
    (Phase.NO_MORE_BETS, (settled(2 * EURO),), "a settlement without a number"),
    (Phase.NO_MORE_BETS, (NUMBER, NUMBER), "a second number"),
    (Phase.BETTING, (NUMBER,), "a number before no more bets"),
    (Phase.NO_MORE_BETS, (replace(NUMBER, by=None),), "a croupier announces the number"),
    (Phase.NO_MORE_BETS, (replace(NUMBER, pocket="00"),), "a pocket that the wheel does not have"),
    (Phase.NO_MORE_BETS, (NUMBER, closed()), "stakes are left in play"),
    (Phase.NO_MORE_BETS, (recredited(EURO),), "a stake came back changed"),
    (Phase.NO_MORE_BETS, (VOID,), "stakes are left in play"),
    (Phase.NO_MORE_BETS, (NoMoreBetsCalled(round=1, source="wheel", by=None),), "no more bets is called once"),
    (Phase.BETTING, (BettingOpened(round=2, direction=None),), "two rounds are open"),
    (Phase.IDLE, (BettingOpened(round=2, direction=None),), "a round was left out"),
    (Phase.IDLE, (BettingOpened(round=1, direction=Direction.CLOCKWISE),), "the direction asked for"),
    (Phase.IDLE, (closed(),), "closed without its number"),
    (Phase.IDLE, (PlayerSat(post=3, request="r", sitting=3, player="anna"),), "one person at two posts"),
    (Phase.IDLE, (PlayerPaidOut(post=2, request="r", sitting=2, payout=3, cents=Cents(0)),), "its own number"),
    (Phase.IDLE, (PlayerPaidOut(post=2, request="r", sitting=2, payout=1, cents=Cents(0)),), "credit of post 2"),
    (Phase.BETTING, (GameRestarted(by=DIRECTOR),), "betting to idle"),
    (Phase.MANUAL, (NumberValidated(round=1, pocket="3", croupier=None, director=DIRECTOR),), "one person alone"),
    (
        Phase.MANUAL,
        (SpinStarted(round=1, spin=2, direction=Direction.CLOCKWISE, rotor_mrpm=0),),
        "a second spin after no more bets",
    ),
    (Phase.IDLE, (LastRoundsAnnounced(by=DIRECTOR, after_round=0),) * 2, "are announced once"),
]


def with_a_stake(phase: Phase) -> Table:
    """2 € on red at post 1, in any phase in which a round is open."""
    table = playing()
    if phase is not Phase.IDLE:
        table.reaches(Phase.BETTING)
        table.stakes(1, {"rouge": 2 * EURO})
    if phase in (Phase.NO_MORE_BETS, Phase.MANUAL):
        table.closes_bets()
    if phase is Phase.MANUAL:
        table.declares_incident()
    return table


def fold(table: Table, facts: tuple[Fact, ...]) -> Callable[[], None]:
    def folding() -> None:
        for fact in facts:
            before, table.state = table.state, table.game.evolve(table.state, fact)
            table.watch.fact(before, fact, table.state)

    return folding


@pytest.mark.parametrize(("phase", "facts", "sentence"), FORGERIES, ids=[sentence for _, _, sentence in FORGERIES])
def test_watch_of_a_forged_fact_says_which_sentence_it_breaks(
    phase: Phase, facts: tuple[Fact, ...], sentence: str
) -> None:
    folding = fold(with_a_stake(phase), facts)
    with pytest.raises(AssertionError, match=re.escape(sentence)):
        folding()
