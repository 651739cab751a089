"""The séance: opened and closed by a director, ended by exactly three announced rounds.

    CLOSED ──croupier: posts in service──► CLOSED ──director: opening──► OPEN
    OPEN ──"les trois dernières"──► LAST ──three valid rounds──► ENDED ──director: closing──► CLOSED
    OPEN ──three empty rounds, or nobody left──► director may close at once (art. 31)

With an automatic launcher the director alone puts the posts in service and announces the last three. A void round is
played again: it does not count among the three.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from games.refusals import Refusal
from games.rules import Decision, Fact, Request
from games.signals import Order, Person, Role

LAST_ROUNDS = 3
"""Rounds played after the announcement (the law, electronic roulette, 1°)."""

EMPTY_ROUNDS_TO_CLOSE = 3
"""Rounds in a row without a stake after which play may stop (article 31)."""


class SeancePhase(StrEnum):
    """Where the séance stands."""

    CLOSED = "closed"
    OPEN = "open"
    LAST = "last"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStarted(Fact):
    """The daemon started. ``unclean`` when the run before ended without an orderly stop."""

    KIND: ClassVar[str] = "fr.table.started.v1"
    boot: str
    unclean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStopped(Fact):
    """The daemon stopped in good order: a journal that ends otherwise was cut short."""

    KIND: ClassVar[str] = "fr.table.stopped.v1"
    boot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySwitched(Fact):
    """A key switch of the panel was turned: its holder is, or is no longer, at the table."""

    KIND: ClassVar[str] = "fr.table.key.switched.v1"
    key: str
    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PostsPutInService(Fact):
    """The posts were put in service, before the opening is validated."""

    KIND: ClassVar[str] = "fr.table.posts.put_in_service.v1"
    by: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class SeanceOpened(Fact):
    """A director validated the opening. ``rules_sha256`` is the digest of the house rules in force."""

    KIND: ClassVar[str] = "fr.table.seance.opened.v1"
    seance: str
    by: Person
    rules_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRoundsAnnounced(Fact):
    """The three last rounds were announced: those after ``after_round``."""

    KIND: ClassVar[str] = "fr.table.last_rounds.announced.v1"
    by: Person
    after_round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeanceClosed(Fact):
    """A director validated the closing. The amounts are those of this séance, in cents."""

    KIND: ClassVar[str] = "fr.table.seance.closed.v1"
    seance: str
    by: Person
    rounds: int
    credited_cents: int
    staked_cents: int
    returned_cents: int
    won_cents: int
    paid_out_cents: int
    orphaned_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRefused(Fact):
    """An order was not carried out, and why."""

    KIND: ClassVar[str] = "fr.table.order.refused.v1"
    order: str
    by: Person
    reason: Refusal
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyWheel(Request):
    """Read the wheel's parameters and compare them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerWheel(Request):
    """Switch the wheel on for a séance, or off."""

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Seance:
    """The séance's state. ``rounds`` counts the valid rounds of this séance, ``empty`` those in a row without stake.

    ``name`` is empty while none is open; ``last_name`` is that of the present or the last one. ``rules_sha256`` is the
    digest of the house rules under which it was opened, and must be played.
    """

    name: str = ""
    last_name: str = ""
    phase: SeancePhase = SeancePhase.CLOSED
    rules_sha256: str = ""
    in_service: bool = False
    keys_on: frozenset[str] = frozenset()
    rounds: int = 0
    empty: int = 0
    last_after: int = 0
    last_left: int = 0

    @property
    def open(self) -> bool:
        """Whether players may be at the posts."""
        return self.phase is not SeancePhase.CLOSED

    @property
    def may_play(self) -> bool:
        """Whether another round may begin."""
        return self.phase in (SeancePhase.OPEN, SeancePhase.LAST)


def refuse(order: Order, *reasons: Refusal) -> Decision:
    """The decision that refuses an order, for its first reason; all of them are listed."""
    refused = OrderRefused(order=type(order).__name__, by=order.by, reason=reasons[0], reasons=tuple(map(str, reasons)))
    return Decision(facts=(refused,))


def conducting(*, croupier: bool) -> tuple[Role, ...]:
    """Who conducts the game: the croupier (or a director in his place); with a launcher the director alone."""
    return (Role.CROUPIER, Role.DIRECTOR) if croupier else (Role.DIRECTOR,)


def lacks_role(order: Order, *roles: Role) -> bool:
    """Whether the order's signer has none of these roles."""
    return order.by.role not in roles


def round_closed(seance: Seance, round_number: int, *, staked: bool) -> Seance:
    """Count one valid round."""
    seance = replace(seance, rounds=seance.rounds + 1, empty=0 if staked else seance.empty + 1)
    if seance.phase is SeancePhase.LAST and round_number > seance.last_after:
        left = seance.last_left - 1
        return replace(seance, last_left=left, phase=SeancePhase.LAST if left else SeancePhase.ENDED)
    return seance


def round_voided(seance: Seance, *, staked: bool) -> Seance:
    """A void round is played again and does not count; but one with stakes was not empty (article 31)."""
    return replace(seance, empty=0) if staked else seance


def evolve(seance: Seance, fact: Fact) -> Seance:
    """Fold a fact of the séance. Rounds are counted by each game, with ``round_closed`` and ``round_voided``."""
    match fact:
        case KeySwitched(key=key, on=on):
            return replace(seance, keys_on=seance.keys_on | {key} if on else seance.keys_on - {key})
        case TableStarted():
            # Nobody is at the table until a key tells so again: the panel says at start how each stands.
            return replace(seance, keys_on=frozenset())
        case PostsPutInService():
            return replace(seance, in_service=True)
        case SeanceOpened(seance=name, rules_sha256=rules_sha256):
            return Seance(
                name=name,
                last_name=name,
                phase=SeancePhase.OPEN,
                rules_sha256=rules_sha256,
                in_service=True,
                keys_on=seance.keys_on,
            )
        case LastRoundsAnnounced(after_round=after_round):
            return replace(seance, phase=SeancePhase.LAST, last_after=after_round, last_left=LAST_ROUNDS)
        case SeanceClosed():
            return Seance(last_name=seance.last_name, keys_on=seance.keys_on)
        case _:
            return seance
