"""Whole evenings on a wheel that fails in every way: the books balance, every incident is settled, the past agrees."""

import random
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from controller.certify.log_keys import LogKeys
from controller.certify.reader import Reader
from controller.certify.verify import verify
from controller.config import load
from controller.rehearsal.simulate import CONFIG, JOURNAL, VKEY, Simulated, simulate
from drivers.twin.wheel_faults import FaultKind, FaultPlan
from games.roulette.facts import RoundClosed, SpinStarted
from games.roulette.game import Roulette
from games.seance import LastRoundsAnnounced, SeanceClosed
from tests.controller.rehearsal.audit import audited, facts_of, unresolved_incidents
from tests.controller.rehearsal.house import MEMORY, example

COUPS = 60
KINDS = len(FaultKind)


def plan(seed: int) -> FaultPlan:
    """Every kind of fault, each with a chance of its own: together about every second spin."""
    chance = random.Random(seed)
    return FaultPlan(chances={kind: chance.uniform(0.01, 0.05) for kind in FaultKind})


@dataclass(frozen=True)
class Evening:
    """What was played, the entries of its verified journal, and the game that decided them."""

    played: Simulated
    leaves: list[bytes]
    game: Roulette


@cache
def evening(conduct: str, seed: int, *, fails: bool, coups: int = COUPS) -> Evening:
    """One evening; the same one is played once for all tests."""
    with TemporaryDirectory(dir=MEMORY) as name:
        folder, out = Path(name), Path(name) / "out"
        faults = plan(seed) if fails else None
        played = simulate(example(folder, conduct), out, coups=coups, seed=seed, faults=faults)
        verdict = verify(out / JOURNAL, LogKeys.parse((out / VKEY).read_text(encoding="ascii")), processes=1)
        assert verdict.ok, verdict
        assert (verdict.size, verdict.root) == (played.size, played.root)
        with Reader(out / JOURNAL) as reader:
            return Evening(played, list(reader.leaves(0, reader.size)), Roulette(load(out / CONFIG).rules))


@pytest.mark.parametrize(("conduct", "seed"), [("launcher", 1), ("launcher", 2), ("croupier", 3), ("croupier", 4)])
@pytest.mark.law("67-15")
def test_evening_on_a_wheel_that_fails_in_every_way_conserves_money_and_settles_every_incident(
    conduct: str, seed: int
) -> None:
    one = evening(conduct, seed, fails=True)
    state, kinds = audited(one.game, one.leaves)
    assert one.played.seen.rounds == kinds["roulette.round.closed"] == COUPS
    assert kinds["roulette.incident.declared"] > 5
    assert unresolved_incidents(one.leaves) == []
    assert kinds["roulette.round.voided"] == one.played.seen.voids
    assert not state.seance.open
    assert state.posts.players() == ()
    total = state.posts.total()
    assert total.credited == total.staked - total.returned - total.won + total.paid_out + total.consigned
    assert kinds["table.stopped"] == 1


@pytest.mark.parametrize("kind", list(FaultKind))
@pytest.mark.parametrize("conduct", ["launcher", "croupier"])
def test_evening_with_one_fault_in_half_of_its_spins_is_settled_and_balances(
    memory: Path, conduct: str, kind: FaultKind
) -> None:
    faults = FaultPlan(chances={kind: 0.5})
    played = simulate(example(memory, conduct), memory / "out", coups=5, seed=5, faults=faults)
    with Reader(memory / "out" / JOURNAL) as reader:
        leaves = list(reader.leaves(0, reader.size))
    _, kinds = audited(Roulette(load(memory / "out" / CONFIG).rules), leaves)
    assert kinds["roulette.round.closed"] == played.seen.rounds == 5
    assert unresolved_incidents(leaves) == []


@pytest.mark.parametrize("conduct", ["launcher", "croupier"])
def test_evening_without_faults_has_no_incident_at_all(conduct: str) -> None:
    one = evening(conduct, 6, fails=False, coups=20)
    _, kinds = audited(one.game, one.leaves)
    assert one.played.seen.incidents == {}
    assert kinds["roulette.round.voided"] == 0
    assert one.played.seen.closed


@pytest.mark.parametrize("conduct", ["launcher", "croupier"])
def test_evening_of_the_same_seed_has_the_same_root_and_of_another_seed_another(memory: Path, conduct: str) -> None:
    config = example(memory, conduct)
    roots = [
        simulate(config, memory / name, coups=5, seed=seed, faults=plan(9)).root
        for name, seed in (("first", 7), ("again", 7), ("other", 8))
    ]
    assert roots[0] == roots[1]
    assert roots[0] != roots[2]


def test_evening_under_other_rules_of_the_house_has_another_root(memory: Path) -> None:
    roots = set()
    for cents in (100, 200):
        config = example(memory, "launcher", roulette={"minimum_cents": cents})
        roots.add(simulate(config, memory / str(cents), coups=4, seed=7).root)
    assert len(roots) == 2


@pytest.mark.law("67-15")
def test_evening_ends_with_exactly_three_valid_rounds_after_they_were_announced() -> None:
    facts = facts_of(evening("launcher", 2, fails=True).leaves)
    ends = [type(fact) for fact in facts if isinstance(fact, LastRoundsAnnounced | RoundClosed | SeanceClosed)]
    at = ends.index(LastRoundsAnnounced)
    assert ends[at + 1 :] == [RoundClosed, RoundClosed, RoundClosed, SeanceClosed]


@pytest.mark.parametrize(("conduct", "seed"), [("launcher", 1), ("croupier", 3)])
@pytest.mark.law("67-15")
def test_evening_turns_the_rotor_over_between_valid_spins_whatever_fails(conduct: str, seed: int) -> None:
    facts = facts_of(evening(conduct, seed, fails=True).leaves)
    turned = {fact.round: fact.direction for fact in facts if isinstance(fact, SpinStarted)}
    valid = [turned[fact.round] for fact in facts if isinstance(fact, RoundClosed) and fact.round in turned]
    assert len(valid) > COUPS // 2
    assert all(one is not other for one, other in pairwise(valid))


def test_plans_of_the_evenings_together_hold_every_kind_of_fault() -> None:
    chances = Counter(kind for seed in (1, 2, 3, 4) for kind in plan(seed).chances)
    assert set(chances) == set(FaultKind)
    assert KINDS == 20
