"""The statement of a séance: awaited from the closing until the right persons certified it, and the totals carried."""

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.money import Cents
from games.refusals import Refusal
from games.roulette.rules import Conduct
from games.seance import SeanceClosed
from games.signals import Person, Role
from games.statement import AWAITED_BOUND, CertifyStatement, SeanceCertified, Statements, Totals, TotalsCarried, decide
from tests.games.table import CASHIER, CROUPIER, DIRECTOR, EURO, Outcome, Table

NOTE = "table-controller/seance/v1\n…\n\n— casino.example/table/t07/1 AAAA\n— casino.example/personne/D-01 BBBB\n"
ANOTHER = Person(badge="D-02", role=Role.DIRECTOR)


def evening(table: Table, name: str, rounds: int = 0, stake: int = 0, cents: int = 0) -> SeanceClosed:
    """One séance: ``rounds`` of a stake on rouge, which loses every second time."""
    table.wheel_is_verified()
    table.puts_posts_in_service()
    assert table.opens_seance(seance=name).refusal is None
    if cents:
        table.sits(1, "anna", cents)
    for number in range(rounds):
        table.plays_round("1" if number % 2 else "2", {1: {"rouge": stake}} if stake and cents else {})
    table.announces_last()
    for _ in range(3):
        table.plays_round("17")
    return table.closes_seance().the(SeanceClosed)


def awaited(table: Table) -> list[str]:
    return list(table.state.statements.awaited)


def certifies(table: Table, seance: str, *persons: Person, by: Person = DIRECTOR) -> Outcome:
    return table.hears(CertifyStatement, by=by, seance=seance, note=NOTE, persons=persons)


@pytest.mark.law("67-15")
def test_seance_awaits_its_certification_from_the_closing_until_a_director_signed() -> None:
    table = Table()
    evening(table, "2026-11-30-1")
    assert awaited(table) == ["2026-11-30-1"]
    certified = certifies(table, "2026-11-30-1", DIRECTOR)
    assert certified.facts == (SeanceCertified(seance="2026-11-30-1", note=NOTE, persons=(DIRECTOR,)),)
    assert awaited(table) == []
    assert certifies(table, "2026-11-30-1", DIRECTOR).refusal is Refusal.STATEMENT_NOT_AWAITED


def test_second_seance_opens_and_closes_before_the_first_is_certified_and_neither_is_forgotten() -> None:
    table = Table()
    for name in ("2026-11-30-1", "2026-11-30-2"):
        evening(table, name)
    assert awaited(table) == ["2026-11-30-1", "2026-11-30-2"]
    assert certifies(table, "2026-11-30-2", DIRECTOR).refusal is None
    assert awaited(table) == ["2026-11-30-1"]
    table.loses_power()
    assert awaited(table) == ["2026-11-30-1"]


def test_seance_that_is_open_or_unknown_is_not_certified() -> None:
    table = Table()
    table.wheel_is_verified()
    table.puts_posts_in_service()
    table.opens_seance(seance="2026-11-30-1")
    for name in ("2026-11-30-1", "2026-11-29-1"):
        assert certifies(table, name, DIRECTOR).refusal is Refusal.STATEMENT_NOT_AWAITED


@pytest.mark.parametrize(
    "signers",
    [(), (CROUPIER,), (CASHIER,), (DIRECTOR, CASHIER), (DIRECTOR, ANOTHER), (DIRECTOR, DIRECTOR)],
    ids=["nobody", "croupier", "cashier", "one too many", "two directors", "twice the same"],
)
def test_statement_of_a_roulette_is_certified_by_one_director_and_nobody_else(signers: tuple[Person, ...]) -> None:
    table = Table()
    evening(table, "2026-11-30-1")
    assert certifies(table, "2026-11-30-1", *signers).refusal is Refusal.STATEMENT_ROLES
    assert awaited(table) == ["2026-11-30-1"]


BOTH = (Role.DIRECTOR, Role.CASHIER)
MANAGING_CASHIER = Person(badge=DIRECTOR.badge, role=Role.CASHIER)


@pytest.mark.law("67-18")
@pytest.mark.parametrize(
    ("signers", "good"),
    [
        ((DIRECTOR, CASHIER), True),
        ((CASHIER, DIRECTOR), True),
        ((DIRECTOR,), False),
        ((CASHIER,), False),
        ((DIRECTOR, ANOTHER), False),
        ((DIRECTOR, MANAGING_CASHIER), False),
        ((DIRECTOR, CASHIER, ANOTHER), False),
    ],
)
def test_statement_that_the_cashier_must_sign_too_needs_two_persons_of_the_two_roles(
    signers: tuple[Person, ...], good: bool
) -> None:
    awaiting = Statements(awaited=("2026-11-30-1",))
    order = CertifyStatement(at_us=1, by=DIRECTOR, seance="2026-11-30-1", note=NOTE, persons=signers)
    certified = [isinstance(fact, SeanceCertified) for fact in decide(awaiting, order, BOTH).facts]
    assert certified == [good]


def test_opening_is_refused_while_as_many_seances_as_the_bound_await_their_certification() -> None:
    table = Table(Conduct.LAUNCHER)
    for number in range(AWAITED_BOUND):
        table.wheel_is_verified()
        table.opens_seance(seance=f"2026-11-30-{number}")
        table.closes_seance()
    table.wheel_is_verified()
    assert table.opens_seance(seance="one-more").refusal is Refusal.STATEMENTS_FULL
    certifies(table, "2026-11-30-50", DIRECTOR)
    assert table.opens_seance(seance="one-more").refusal is None


def test_totals_are_certified_with_the_closing_and_include_its_seance() -> None:
    table = Table()
    closed = evening(table, "2026-11-30-1", rounds=2, stake=10 * EURO, cents=100 * EURO)
    carried = table.last.the(TotalsCarried)
    assert (carried.seance, carried.totals.seances, carried.totals.rounds) == ("2026-11-30-1", 1, 5)
    assert carried.totals.staked_cents == closed.staked_cents == 20 * EURO
    assert table.last.kinds[-2:] == ["TotalsCarried", "SeanceClosed"], "inside the séance, which ends with its closing"


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 50), st.sampled_from([0, 200 * EURO]), st.booleans()),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=40)
def test_perpetual_totals_are_the_sum_over_all_seances_and_the_meters_of_the_posts(
    evenings: list[tuple[int, int, int, bool]],
) -> None:
    table = Table()
    closings = []
    for number, (rounds, stake, cents, power_cut) in enumerate(evenings, 1):
        closings.append(evening(table, f"2026-11-30-{number}", rounds, stake * EURO, cents))
        if power_cut:
            table.loses_power()
    carried = table.state.statements.carried
    assert carried.seances == len(evenings)
    for name in [field.name for field in fields(Totals) if field.name != "seances"]:
        assert getattr(carried, name) == sum(getattr(closed, name) for closed in closings), name
    meters = table.state.posts.total()
    assert (carried.credited_cents, carried.staked_cents, carried.returned_cents, carried.won_cents) == (
        meters.credited,
        meters.staked,
        meters.returned,
        meters.won,
    )
    assert carried.paid_out_cents + carried.orphaned_cents == Cents(meters.paid_out + meters.consigned)
