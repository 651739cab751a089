"""Who may sign: two different directors enrol and revoke, a revoked key is dead for ever, and two directors remain."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.persons import PERSONS_BOUND, Enrolment, EnrolPerson, PersonEnrolled, PersonRevoked, Persons, RevokePerson
from games.refusals import Refusal
from games.signals import OpenSeance, Person, Role
from tests.games.table import CASHIER, CROUPIER, DIRECTOR, TECHNICIAN, Outcome, Table

SECOND = Person(badge="D-02", role=Role.DIRECTOR)
FOUNDING = ("D-01", "D-02")


def enrols(table: Table, badge: str, vkey: str = "", role: Role = Role.CROUPIER, **changed: Any) -> Outcome:
    said: dict[str, Any] = {
        "by": DIRECTOR,
        "second": SECOND,
        "badge": badge,
        "role": role,
        "vkey": vkey or f"key of {badge}",
    }
    return table.hears(EnrolPerson, **said | changed)


def revokes(table: Table, badge: str, vkey: str = "", role: Role = Role.CROUPIER, **changed: Any) -> Outcome:
    said: dict[str, Any] = {
        "by": DIRECTOR,
        "second": SECOND,
        "badge": badge,
        "role": role,
        "vkey": vkey or f"key of {badge}",
    }
    return table.hears(RevokePerson, **{**said, "reason": "départ", "directors": FOUNDING, **changed})


def test_person_is_enrolled_by_two_directors_and_the_fact_names_both() -> None:
    table = Table()
    assert enrols(table, "C-21").facts == (
        PersonEnrolled(badge="C-21", role=Role.CROUPIER, vkey="key of C-21", by=DIRECTOR, second=SECOND),
    )
    assert table.state.persons.by_badge["C-21"] == Enrolment(role=Role.CROUPIER, vkey="key of C-21", revoked=False)
    table.loses_power()
    assert not table.state.persons.revoked(Person(badge="C-21", role=Role.CROUPIER))


@pytest.mark.parametrize(
    ("by", "second", "reason"),
    [
        (DIRECTOR, DIRECTOR, Refusal.SECOND_DIRECTOR),
        (DIRECTOR, CROUPIER, Refusal.ROLE),
        (CASHIER, DIRECTOR, Refusal.ROLE),
        (TECHNICIAN, CASHIER, Refusal.ROLE),
    ],
)
@pytest.mark.parametrize("asks", [enrols, revokes])
def test_anyone_but_two_different_directors_changes_nobody(
    asks: Any, by: Person, second: Person, reason: Refusal
) -> None:
    table = Table()
    assert asks(table, "C-21", by=by, second=second).refusal is reason
    assert table.state.persons == Persons()


def test_revoked_key_is_never_enrolled_again_and_a_new_key_of_the_person_is() -> None:
    table = Table()
    enrols(table, "C-21", "old key")
    assert enrols(table, "C-21", "new key").refusal is Refusal.PERSON_ENROLLED
    revokes(table, "C-21", "old key")
    table.loses_power()
    assert enrols(table, "C-21", "old key").refusal is Refusal.KEY_REVOKED
    assert enrols(table, "C-21", "new key").refusal is None
    revokes(table, "C-21", "new key")
    for key in ("old key", "new key"):
        assert enrols(table, "C-21", key).refusal is Refusal.KEY_REVOKED


def test_person_of_the_founding_list_is_revoked_by_a_fact() -> None:
    table = Table()
    fact = revokes(table, "C-07", "founding key").the(PersonRevoked)
    assert (fact.by, fact.second, fact.reason) == (DIRECTOR, SECOND, "départ")
    assert table.state.persons.revoked(CROUPIER)
    assert revokes(table, "C-07", "founding key").refusal is Refusal.PERSON_UNKNOWN


def test_order_that_was_taken_before_the_revocation_of_its_signer_is_refused_after_it() -> None:
    table = Table()
    table.wheel_is_verified()
    table.puts_posts_in_service()
    third = Person(badge="D-03", role=Role.DIRECTOR)
    enrols(table, "D-03", role=Role.DIRECTOR)
    revokes(table, "D-03", role=Role.DIRECTOR)
    late = table.hears(OpenSeance, by=third, seance="2026-11-30-1", rules_sha256="a" * 64)
    assert late.refusal is Refusal.SIGNER_REVOKED
    assert not table.state.seance.open
    assert enrols(table, "C-22", second=third).refusal is Refusal.SECOND_DIRECTOR
    assert table.opens_seance(DIRECTOR).refusal is None


def test_two_directors_always_remain() -> None:
    table = Table()
    assert revokes(table, "D-02", role=Role.DIRECTOR).refusal is Refusal.LAST_DIRECTORS
    enrols(table, "D-03", role=Role.DIRECTOR)
    third = Person(badge="D-03", role=Role.DIRECTOR)
    assert revokes(table, "D-02", role=Role.DIRECTOR, second=third).refusal is None
    assert revokes(table, "D-03", role=Role.DIRECTOR, second=third).refusal is Refusal.LAST_DIRECTORS


def test_badge_beyond_the_bound_is_refused_and_those_that_are_known_are_not() -> None:
    table = Table()
    enrolled = {f"C-{at}": Enrolment(role=Role.CROUPIER, vkey=f"{at}", revoked=at > 0) for at in range(PERSONS_BOUND)}
    table.state = type(table.state)(posts=table.state.posts, persons=Persons(by_badge=enrolled))
    assert enrols(table, "X-1").refusal is Refusal.PERSONS_FULL
    assert enrols(table, "C-1", "another key").refusal is None


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from(["D-01", "D-02", "D-03", "D-04"]), st.integers(0, 3)), max_size=25
    )
)
@settings(max_examples=150)
def test_whatever_is_asked_two_directors_remain_and_no_revoked_key_comes_back(
    asked: list[tuple[bool, str, int]],
) -> None:
    table, dead = Table(), set[str]()
    current = {"D-01": "D-01 founding", "D-02": "D-02 founding"}
    for enrol, badge, key in asked:
        signers = sorted(current)[:2]
        by, second = (Person(badge=signer, role=Role.DIRECTOR) for signer in signers)
        if enrol:
            outcome = enrols(table, badge, f"{badge} {key}", Role.DIRECTOR, by=by, second=second)
            if badge not in current and not outcome.refusal:
                current[badge] = f"{badge} {key}"
                assert current[badge] not in dead
        elif badge in current:
            outcome = revokes(table, badge, current[badge], Role.DIRECTOR, by=by, second=second)
            if not outcome.refusal:
                dead.add(current.pop(badge))
        assert len(current) >= 2
        assert {one for one in current if one in table.state.persons.directors(FOUNDING)} == set(current)
