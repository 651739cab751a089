"""The statement of a séance: closed, put to the persons who must certify it, certified; and the totals it carries on.

    séance closed ──► totals carried, statement awaited ──lines of every required role──► certified

The totals are perpetual: each closing adds its séance to them and certifies the sum, so they survive a restart and are
the sum over all séances of the epoch. A séance that nobody has certified is never forgotten: it waits in the state,
while the next ones are opened, played and closed.

Whether the signatures are good is for the shell to say, which knows the keys; here it is decided who must sign.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

from games.money import Cents
from games.refusals import Refusal
from games.rules import Decision, Fact
from games.seance import SeanceClosed, refuse
from games.signals import Order, Person, Role

AWAITED_BOUND = 100
"""Séances that may wait for their certification: with so many, no further one is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What all séances of the epoch come to, in cents and in numbers; it never goes back."""

    seances: int = 0
    rounds: int = 0
    credited_cents: Cents = Cents(0)
    staked_cents: Cents = Cents(0)
    returned_cents: Cents = Cents(0)
    won_cents: Cents = Cents(0)
    paid_out_cents: Cents = Cents(0)
    orphaned_cents: Cents = Cents(0)

    def after(self, closed: SeanceClosed) -> "Totals":
        """The totals with one more séance."""
        return Totals(
            seances=self.seances + 1,
            rounds=self.rounds + closed.rounds,
            credited_cents=Cents(self.credited_cents + closed.credited_cents),
            staked_cents=Cents(self.staked_cents + closed.staked_cents),
            returned_cents=Cents(self.returned_cents + closed.returned_cents),
            won_cents=Cents(self.won_cents + closed.won_cents),
            paid_out_cents=Cents(self.paid_out_cents + closed.paid_out_cents),
            orphaned_cents=Cents(self.orphaned_cents + closed.orphaned_cents),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsCarried(Fact):
    """The perpetual totals, the séance that is being closed included."""

    KIND: ClassVar[str] = "fr.table.totals.carried.v1"
    seance: str
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class SeanceCertified(Fact):
    """Every person whom the law asks signed the statement. ``note`` holds it with the table's and their signatures."""

    KIND: ClassVar[str] = "fr.seance.certified.v1"
    seance: str
    note: str
    persons: tuple[Person, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyStatement(Order):
    """Certify a séance's statement: ``persons`` are those whose signatures in ``note`` were found good."""

    seance: str
    note: str
    persons: tuple[Person, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The totals carried, and the closed séances that nobody has certified, oldest first."""

    carried: Totals = Totals()
    awaited: tuple[str, ...] = ()

    @property
    def full(self) -> bool:
        """Whether so many séances wait that no further one may be opened."""
        return len(self.awaited) >= AWAITED_BOUND


def decide(statements: Statements, order: CertifyStatement, roles: tuple[Role, ...]) -> Decision:
    """Certify a statement that waits, when one person of each of ``roles`` signed, and nobody twice."""
    if order.seance not in statements.awaited:
        return refuse(order, Refusal.STATEMENT_NOT_AWAITED)
    badges = {person.badge for person in order.persons}
    if len(badges) < len(order.persons) or Counter(person.role for person in order.persons) != Counter(roles):
        return refuse(order, Refusal.STATEMENT_ROLES)
    return Decision(facts=(SeanceCertified(seance=order.seance, note=order.note, persons=order.persons),))


def evolve(statements: Statements, fact: Fact) -> Statements:
    """Fold a fact."""
    match fact:
        case TotalsCarried(totals=totals):
            return replace(statements, carried=totals)
        case SeanceClosed(seance=name):
            return replace(statements, awaited=(*statements.awaited, name))
        case SeanceCertified(seance=name):
            return replace(statements, awaited=tuple(other for other in statements.awaited if other != name))
        case _:
            return statements
