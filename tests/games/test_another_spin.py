"""A slowing of another spin than the one that was seen launched says nothing about that one."""

import pytest

from games.money import Cents
from games.refusals import Refusal
from games.roulette.coup import Phase, RouletteState
from games.roulette.facts import IncidentDeclared, NoMoreBetsCalled
from games.roulette.game import Roulette
from games.roulette.layout import Wheel
from games.roulette.rules import Conduct, RouletteRules
from games.rules import Decision, Input, TimerFired
from games.seance import OrderRefused
from games.signals import BallLaunched, BallSlowed, Direction, EnterNumber, OpenSeance, Person, Role, Sit

DIRECTOR = Person(badge="d1", role=Role.DIRECTOR)


class Spun:
    """A launcher's table whose ball was seen launched in spin 4."""

    def __init__(self) -> None:
        rules = RouletteRules(
            wheel=Wheel.SINGLE_ZERO, conduct=Conduct.LAUNCHER, posts=2, minimum=Cents(100), verify_wheel=False
        )
        self.game = Roulette(rules)
        self.state: RouletteState = self.game.initial()
        self.give(OpenSeance(at_us=0, by=DIRECTOR, seance="2026-11-30-1", rules_sha256="0"))
        self.give(Sit(at_us=0, post=1, request="a", player="p"))
        self.give(TimerFired(at_us=0, name="next_round", round=1))
        self.give(TimerFired(at_us=0, name="launch", round=1))
        self.give(BallLaunched(at_us=0, spin=4, direction=Direction.CLOCKWISE, rotor_mrpm=15_000))

    def give(self, signal: Input) -> Decision:
        decision = self.game.decide(self.state, signal)
        for fact in decision.facts:
            self.state = self.game.evolve(self.state, fact)
        return decision


@pytest.mark.law("67-15")
def test_slowing_of_another_spin_closes_the_bets_and_lets_no_number_count() -> None:
    table = Spun()
    decision = table.give(BallSlowed(at_us=1, spin=5, direction=Direction.CLOCKWISE, rotor_mrpm=15_000))
    called, declared = decision.facts
    assert isinstance(called, NoMoreBetsCalled)
    assert isinstance(declared, IncidentDeclared)
    assert (declared.cause, declared.number_allowed) == ("slowing_of_another_spin", False)
    assert table.state.coup.phase is Phase.MANUAL
    (refused,) = table.give(EnterNumber(at_us=2, by=DIRECTOR, pocket="7")).facts
    assert isinstance(refused, OrderRefused)
    assert refused.reason is Refusal.NUMBER_NOT_ALLOWED


def test_slowing_of_the_spin_that_was_launched_closes_the_bets() -> None:
    table = Spun()
    decision = table.give(BallSlowed(at_us=1, spin=4, direction=Direction.CLOCKWISE, rotor_mrpm=15_000))
    assert [type(fact) for fact in decision.facts] == [NoMoreBetsCalled]
    assert table.state.coup.phase is Phase.NO_MORE_BETS
