"""Facts about the journal itself: healed, begun anew, signed by another key, verified, kept for longer.

A journal is evidence, so what is done to it is evidence too. Each of these inputs comes from the shell, which checked
whatever needs a key or a disk; here it is decided what it means for the table, and what decided it is in the fact.

    epoch begun ──► … entries … ──► healed: entries lost by the disk came back from the mirror
                                ──► key rotated: old and new key signed the change
                                ──► verified: once a day, all of it
                                ──► retention set: it goes up, never down
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from games.rules import NOTHING, Decision, Fact, Input
from games.signals import Person
from games.statement import Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesRestored(Input):
    """The disk had gone back to ``from_size`` entries; those up to ``to_size`` came back and fit our own signature.

    ``cosigner`` is the name of the mirror's key, whose acknowledgement said how many there were.
    """

    from_size: int
    to_size: int
    cosigner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalHealed(Fact):
    """Entries that the disk had lost are in the journal again."""

    KIND: ClassVar[str] = "fr.table.journal.healed.v1"
    from_size: int
    to_size: int
    cosigner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochProclaimed(Input):
    """A director and a technician begin a new journal, because the key or the journal of the old one is lost.

    ``old_size`` and ``old_root`` (hexadecimal) are the last checkpoint of the old epoch that is known, by whose word
    ``known_by`` says: "cosignature" or "signature" (of the old key alone); 0 and empty when none is, by "nothing".
    ``note`` is the statement with the new key's and the persons' signatures; ``vkeys`` are the persons' keys, in their
    order. ``totals``: the old perpetual totals, where the old journal could be verified.
    """

    old_origin: str
    old_size: int
    old_root: str
    known_by: str
    reason: str
    note: str
    persons: tuple[Person, ...]
    vkeys: tuple[str, ...]
    totals: Totals | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochBegun(Fact):
    """The first entry of a new epoch: what it follows, why, and who answers for it (see ``EpochProclaimed``)."""

    KIND: ClassVar[str] = "fr.table.epoch.begun.v1"
    old_origin: str
    old_size: int
    old_root: str
    known_by: str
    reason: str
    note: str
    persons: tuple[Person, ...]
    vkeys: tuple[str, ...]
    totals: Totals | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReplaced(Input):
    """The table has another key; ``statement`` is a note that both keys signed."""

    old_vkey: str
    new_vkey: str
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRotated(Fact):
    """The table's key is being changed: for a while both sign."""

    KIND: ClassVar[str] = "fr.table.key.rotated.v1"
    old_vkey: str
    new_vkey: str
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationEnded(Input):
    """A full verification ended on ``day`` (UTC, "2026-11-30"). ``code`` is what is wrong, empty when all agrees.

    ``size`` and ``root`` (hexadecimal) are those of the last checkpoint that was verified, ``checkpoints`` how many
    were; 0 and empty when something is wrong.
    """

    day: str
    size: int
    root: str
    checkpoints: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalVerified(Fact):
    """Every entry, hash and signature was checked. With a ``code`` no round begins any more in this epoch."""

    KIND: ClassVar[str] = "fr.table.journal.verified.v1"
    day: str
    size: int
    root: str
    checkpoints: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionAsked(Input):
    """The configuration asks that entries be kept for ``years``."""

    years: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSet(Fact):
    """Entries are kept for ``years`` from now on. It goes up, never down."""

    KIND: ClassVar[str] = "fr.table.retention.set.v1"
    years: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Custody:
    """What the table knows of its own journal. ``verified_day`` is the day of the last full verification."""

    retention_years: int = 0
    verified_day: str = ""
    vkey: str = ""
    """The key that came into use last, empty while the epoch's first one is in use."""
    healed_size: int = 0
    """Up to where the journal was healed last: a healing is told once, even if the power failed right after it."""


CustodyInput = EntriesRestored | EpochProclaimed | KeyReplaced | VerificationEnded | RetentionAsked
"""What is decided here."""


def decide(custody: Custody, signal: CustodyInput) -> Decision:
    """What is certified of the journal itself."""
    match signal:
        case EntriesRestored(to_size=stop) if stop <= custody.healed_size:
            return NOTHING
        case EntriesRestored(from_size=start, to_size=stop, cosigner=cosigner):
            return Decision(facts=(JournalHealed(from_size=start, to_size=stop, cosigner=cosigner),))
        case EpochProclaimed():
            return Decision(facts=(_begun(signal),))
        case KeyReplaced(old_vkey=old, new_vkey=new, statement=statement):
            return Decision(facts=(KeyRotated(old_vkey=old, new_vkey=new, statement=statement),))
        case VerificationEnded():
            return Decision(facts=(_verified(signal),))
        case RetentionAsked(years=years):
            return Decision(facts=(RetentionSet(years=years),)) if years > custody.retention_years else NOTHING


def _begun(signal: EpochProclaimed) -> EpochBegun:
    return EpochBegun(
        old_origin=signal.old_origin,
        old_size=signal.old_size,
        old_root=signal.old_root,
        known_by=signal.known_by,
        reason=signal.reason,
        note=signal.note,
        persons=signal.persons,
        vkeys=signal.vkeys,
        totals=signal.totals,
    )


def _verified(signal: VerificationEnded) -> JournalVerified:
    return JournalVerified(
        day=signal.day,
        size=signal.size,
        root=signal.root,
        checkpoints=signal.checkpoints,
        code=signal.code,
        detail=signal.detail,
    )


def evolve(custody: Custody, fact: Fact) -> Custody:
    """Fold a fact."""
    match fact:
        case JournalHealed(to_size=size):
            return replace(custody, healed_size=size)
        case KeyRotated(new_vkey=vkey):
            return replace(custody, vkey=vkey)
        case JournalVerified(day=day):
            return replace(custody, verified_day=day)
        case RetentionSet(years=years):
            return replace(custody, retention_years=years)
        case _:
            return custody
