"""Who may sign: persons enrolled and revoked by two different directors.

The list in force is the founding list of the configuration, and on it the facts: whoever was enrolled here, without
those who were revoked. A revoked key is revoked for ever; the person may be enrolled again with a new one. Two
directors always remain, because it takes two to enrol a third.

The founding list is not part of the state, since a journal must be decided again without it. So an order to revoke
says which directors there are, and the facts since then are taken off.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from games.refusals import Refusal
from games.rules import Decision, Fact
from games.seance import refuse
from games.signals import Order, Person, Role

DIRECTORS_LEFT = 2
"""Directors that a revocation must leave: it takes two to enrol another."""

PERSONS_BOUND = 1_000
"""Badges that facts ever enrolled or revoked: an epoch lasts years, but not for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonEnrolled(Fact):
    """Two directors let a person sign, in this role and with this key."""

    KIND: ClassVar[str] = "fr.table.person.enrolled.v1"
    badge: str
    role: Role
    vkey: str
    by: Person
    second: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRevoked(Fact):
    """Two directors ended a person's right to sign: no order by this key is taken any more."""

    KIND: ClassVar[str] = "fr.table.person.revoked.v1"
    badge: str
    role: Role
    vkey: str
    reason: str
    by: Person
    second: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolPerson(Order):
    """Enrol a person; ``second`` is the other director who signed."""

    second: Person
    badge: str
    role: Role
    vkey: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokePerson(Order):
    """Revoke a person, whose role and key are those in force; ``second`` is the other director who signed.

    ``directors`` are badges of those in force when the order was taken, as many as show whether enough remain.
    """

    second: Person
    badge: str
    role: Role
    vkey: str
    reason: str
    directors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """What the facts say of one badge: its last role and key, and whether it may sign."""

    role: Role
    vkey: str
    revoked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Persons:
    """What facts changed of the founding list, by badge, and every key that was ever revoked."""

    by_badge: Mapping[str, Enrolment] = field(default_factory=dict)
    revoked_keys: frozenset[str] = frozenset()

    def revoked(self, person: Person) -> bool:
        """Whether this person was revoked after his order was taken, and before it is decided."""
        enrolment = self.by_badge.get(person.badge)
        return enrolment is not None and enrolment.revoked

    def directors(self, of_founding: tuple[str, ...]) -> frozenset[str]:
        """The badges of the directors who may sign; ``of_founding`` holds those whom no fact enrolled."""
        enrolled = {badge for badge, one in self.by_badge.items() if one.role is Role.DIRECTOR and not one.revoked}
        return frozenset(enrolled) | {badge for badge in of_founding if badge not in self.by_badge}


def decide(persons: Persons, order: EnrolPerson | RevokePerson) -> Decision:
    """Enrol or revoke, if two different directors ask for it."""
    if order.by.role is not Role.DIRECTOR or order.second.role is not Role.DIRECTOR:
        return refuse(order, Refusal.ROLE)
    if order.by.badge == order.second.badge or persons.revoked(order.second):
        return refuse(order, Refusal.SECOND_DIRECTOR)
    match order:
        case EnrolPerson():
            return _enrol(persons, order)
        case RevokePerson():
            return _revoke(persons, order)


def _enrol(persons: Persons, order: EnrolPerson) -> Decision:
    known = persons.by_badge.get(order.badge)
    if order.vkey in persons.revoked_keys:
        return refuse(order, Refusal.KEY_REVOKED)
    if known is not None and not known.revoked:
        return refuse(order, Refusal.PERSON_ENROLLED)
    if known is None and len(persons.by_badge) >= PERSONS_BOUND:
        return refuse(order, Refusal.PERSONS_FULL)
    enrolled = PersonEnrolled(badge=order.badge, role=order.role, vkey=order.vkey, by=order.by, second=order.second)
    return Decision(facts=(enrolled,))


def _revoke(persons: Persons, order: RevokePerson) -> Decision:
    known = persons.by_badge.get(order.badge)
    if known is not None and known.revoked:
        return refuse(order, Refusal.PERSON_UNKNOWN)
    if order.role is Role.DIRECTOR and len(persons.directors(order.directors) - {order.badge}) < DIRECTORS_LEFT:
        return refuse(order, Refusal.LAST_DIRECTORS)
    revoked = PersonRevoked(
        badge=order.badge, role=order.role, vkey=order.vkey, reason=order.reason, by=order.by, second=order.second
    )
    return Decision(facts=(revoked,))


def evolve(persons: Persons, fact: Fact) -> Persons:
    """Fold a fact."""
    match fact:
        case PersonEnrolled(badge=badge, role=role, vkey=vkey):
            enrolled = Enrolment(role=role, vkey=vkey, revoked=False)
            return replace(persons, by_badge={**persons.by_badge, badge: enrolled})
        case PersonRevoked(badge=badge, role=role, vkey=vkey):
            revoked = Enrolment(role=role, vkey=vkey, revoked=True)
            keys = persons.revoked_keys | {vkey}
            return replace(persons, by_badge={**persons.by_badge, badge: revoked}, revoked_keys=keys)
        case _:
            return persons
