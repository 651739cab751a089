"""What is done to the journal is a fact too: decided from what the shell checked, and folded alike at each replay."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.custody import (
    Custody,
    EntriesRestored,
    EpochBegun,
    EpochProclaimed,
    JournalHealed,
    JournalVerified,
    KeyReplaced,
    KeyRotated,
    RetentionAsked,
    RetentionSet,
    VerificationEnded,
)
from games.refusals import Refusal
from games.roulette.coup import Phase
from games.roulette.rules import Conduct
from games.rules import Fact, Input
from games.signals import Person, Role
from games.statement import Totals
from tests.games.table import playing

DIRECTOR, TECHNICIAN = Person(badge="D1", role=Role.DIRECTOR), Person(badge="T1", role=Role.TECHNICIAN)

EPOCH: dict[str, Any] = {
    "old_origin": "casino.example/table/t07/1",
    "old_size": 412,
    "old_root": "ab" * 32,
    "known_by": "cosignature",
    "reason": "La carte est illisible.",
    "note": "table-controller/epoch/v1\n",
    "persons": (DIRECTOR, TECHNICIAN),
    "vkeys": ("d", "t"),
    "totals": Totals(seances=3),
}
VERIFIED: dict[str, Any] = {
    "day": "2026-11-30",
    "size": 7,
    "root": "cd" * 32,
    "checkpoints": 2,
    "code": "",
    "detail": "",
}


FACTS = [
    (EntriesRestored, JournalHealed, {"from_size": 5, "to_size": 9, "cosigner": "mirror"}),
    (EpochProclaimed, EpochBegun, EPOCH),
    (KeyReplaced, KeyRotated, {"old_vkey": "a", "new_vkey": "b", "statement": "s"}),
    (VerificationEnded, JournalVerified, VERIFIED),
    (RetentionAsked, RetentionSet, {"years": 6}),
]

both = pytest.mark.parametrize("conduct", list(Conduct))


@both
@pytest.mark.parametrize(("kind", "fact", "told"), FACTS, ids=[kind.__name__ for kind, _, _ in FACTS])
def test_fact_about_the_journal_carries_everything_that_decided_it(
    conduct: Conduct, kind: type[Input], fact: type[Fact], told: dict[str, Any]
) -> None:
    table = playing(conduct)
    assert table.hears(kind, **told).facts == (fact(**told),)
    assert {field.name for field in fields(fact)} == {field.name for field in fields(kind)} - {"at_us"}


def test_facts_about_the_journal_disturb_no_round() -> None:
    table = playing().reaches(Phase.NO_MORE_BETS)
    before = table.state.coup
    for kind, _, told in FACTS:
        table.hears(kind, **told)
    assert table.state.coup == before
    assert table.ends_round("17").kinds[-1] == "RoundClosed"


def test_healing_is_told_once_for_what_it_brought_back_and_again_for_more() -> None:
    table = playing()
    healing = {"from_size": 5, "to_size": 9, "cosigner": "mirror"}
    assert table.hears(EntriesRestored, **healing).kinds == ["JournalHealed"]
    assert table.hears(EntriesRestored, **healing).kinds == []
    assert table.hears(EntriesRestored, **healing | {"to_size": 10}).kinds == ["JournalHealed"]
    assert table.state.custody.healed_size == 10


@both
def test_journal_that_a_verification_found_wrong_lets_the_round_end_and_no_new_one_begin(conduct: Conduct) -> None:
    table = playing(conduct).reaches(Phase.NO_MORE_BETS)
    table.hears(VerificationEnded, **VERIFIED | {"code": "E-JOURNAL-ALTERED", "detail": "entry 7"})
    assert table.state.health.doubt == "E-JOURNAL-ALTERED"
    assert table.ends_round("17").kinds[-1] == "RoundClosed"
    assert table.says_faites_vos_jeux().refusal is Refusal.JOURNAL_DOUBTED
    table.hears(VerificationEnded, **VERIFIED)
    table.loses_power()
    table.wheel_is_verified()
    assert table.says_faites_vos_jeux().refusal is Refusal.JOURNAL_DOUBTED


def test_journal_that_a_verification_confirmed_is_played_on_and_the_day_is_kept() -> None:
    table = playing()
    table.hears(VerificationEnded, **VERIFIED)
    assert table.state.health.doubt == ""
    assert table.state.custody.verified_day == "2026-11-30"
    assert table.says_faites_vos_jeux().kinds == ["BettingOpened"]


@given(st.lists(st.integers(1, 30)))
def test_retention_goes_up_and_never_down(asked: list[int]) -> None:
    table = playing()
    highest = 0
    for years in asked:
        facts = table.hears(RetentionAsked, years=years).facts
        assert facts == ((RetentionSet(years=years),) if years > highest else ())
        highest = max(highest, years)
        assert table.state.custody.retention_years == highest


def test_custody_is_folded_from_the_facts_alone() -> None:
    table = playing()
    for kind, _, told in FACTS:
        table.hears(kind, **told)
    assert table.folded_again() == table.state
    assert table.state.custody == Custody(retention_years=6, verified_day="2026-11-30", vkey="b", healed_size=9)
