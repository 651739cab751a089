"""A new epoch: when the table's key or its journal is lost, another journal begins, under another key, by two persons.

    old journal, or the mirror's note, or nothing ──► statement ──► director signs ──► technician signs ──► accepted
                                                     new key signs                                      first entry

The log is never continued with a key that may be in other hands, nor on a file that is not whole. The old journal is
kept, closed. The new one says in its first entry which it follows and from where, why, and who answers for it; a daemon
does not start a second or later epoch without that entry, so none ever begins in silence.

The statement is a signed note for people to read (its words are French), whose first line no origin can be. The
perpetual totals of the old epoch are named where its journal could be verified; those of the new epoch begin at zero.
"""

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from controller import codec
from controller.certify.checkpoint import Checkpoint
from controller.certify.faults import CertifyFault, KeyFault, NoteFault
from controller.certify.note import Signer, Verifier, decode_base64, format_note, open_note, parse_note, sign_note
from controller.delivery.enrolment import EnrolledPerson
from games.custody import Custody, EpochBegun, EpochProclaimed, decide
from games.money import Cents
from games.signals import Role
from games.statement import Totals

EPOCH_HEADER = "table-controller/epoch/v1"

ROLES = (Role.DIRECTOR, Role.TECHNICIAN)
"""Who signs: one of each, two persons."""

REASON_BOUND = 200
"""Characters of the reason."""

KNOWN_BY = {"cosignature": "contresigné", "signature": "signé", "nothing": "inconnu"}
"""By whose word the last checkpoint of the old epoch is known, and the word in the statement."""

TOTAL_WORDS = {
    "seances": "seances",
    "rounds": "coups",
    "credited_cents": "credite-cents",
    "staked_cents": "mise-cents",
    "returned_cents": "rendu-cents",
    "won_cents": "gagne-cents",
    "paid_out_cents": "paye-cents",
    "orphaned_cents": "orphelins-cents",
}
"""The perpetual totals, and the word for each in the statement."""

_REASON = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{3,200}")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,18}")


class EpochFault(CertifyFault):
    """A statement, its signatures or a first entry with which no epoch may begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldEpoch:
    """What is known of the epoch that ends. ``checkpoint`` is None and ``known_by`` "nothing" when nothing is."""

    origin: str
    checkpoint: Checkpoint | None
    known_by: str
    totals: Totals | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What is stated and signed. ``vkey`` is the new key, whose name is the new origin."""

    vkey: str
    old: OldEpoch
    reason: str

    @property
    def text(self) -> str:
        """The text that is signed."""
        old = self.old
        last = f"dernier {KNOWN_BY[old.known_by]}"
        if old.checkpoint is not None:
            last += f" {old.checkpoint.size} {b64encode(old.checkpoint.root).decode()}"
        totals = ["totaux inconnus"]
        if old.totals is not None:
            totals = [f"{word} {getattr(old.totals, name)}" for name, word in TOTAL_WORDS.items()]
        lines = [
            EPOCH_HEADER,
            f"nouvelle {Verifier.parse(self.vkey).name}",
            f"cle {self.vkey}",
            f"ancienne {old.origin}",
            last,
            *totals,
            f"motif {self.reason}",
        ]
        return "".join(f"{line}\n" for line in lines)


# ── Made and signed ───────────────────────────────────────────────────────────────────────────────────────────────────


def draft(signer: Signer, old: OldEpoch, reason: str) -> str:
    """The statement, signed by the new key alone. Raises EpochFault (E-EPOCH-STATEMENT): unfit reason or origin."""
    if not _REASON.fullmatch(reason) or reason != reason.strip():
        raise EpochFault("E-EPOCH-STATEMENT", f"the reason is one line of 3 to {REASON_BOUND} characters")
    if not _follows(signer.name, old.origin):
        raise EpochFault("E-EPOCH-STATEMENT", f"{signer.name} is not the epoch after {old.origin}")
    return sign_note(Statement(vkey=signer.verifier.vkey, old=old, reason=reason).text, signer)


def _follows(new: str, old: str) -> bool:
    table, _, epoch = new.rpartition("/")
    before, _, old_epoch = old.rpartition("/")
    return table == before and epoch.isdecimal() and old_epoch.isdecimal() and int(epoch) == int(old_epoch) + 1


def countersign(note: str, signer: Signer) -> str:
    """The statement with one signature more. Raises EpochFault: E-EPOCH-STATEMENT, E-EPOCH-SIGNED-TWICE."""
    stated = read(note)
    parsed = parse_note(note)
    if any(signature.name == signer.name for signature in parsed.signatures):
        raise EpochFault("E-EPOCH-SIGNED-TWICE", f"{signer.name} signed this statement already")
    return format_note(stated.text, [*parsed.signatures, signer.sign(stated.text)])


# ── Read and judged ───────────────────────────────────────────────────────────────────────────────────────────────────


def read(note: str) -> Statement:
    """A statement that the key named in it signed. Raises EpochFault (E-EPOCH-STATEMENT)."""
    try:
        stated = _parse(parse_note(note).text)
        opened = open_note(note, [Verifier.parse(stated.vkey)])
    except (NoteFault, KeyFault) as fault:
        raise EpochFault(
            "E-EPOCH-STATEMENT", f"the statement is not a note that the new key signed: {fault}"
        ) from fault
    if opened.text != stated.text or not _follows(Verifier.parse(stated.vkey).name, stated.old.origin):
        raise EpochFault("E-EPOCH-STATEMENT", "the statement is not written as this program writes it")
    return stated


def _parse(text: str) -> Statement:
    header, *lines = text.removesuffix("\n").split("\n")
    words = dict(line.partition(" ")[::2] for line in lines)
    totals = _totals(words)
    try:
        last, origin, vkey, reason = words["dernier"], words["ancienne"], words["cle"], words["motif"]
    except KeyError as missing:
        raise NoteFault("E-NOTE-MALFORMED", f"the statement has no line {missing}") from None
    if header != EPOCH_HEADER:
        raise NoteFault("E-NOTE-MALFORMED", f"the statement begins with {header[:60]!r}, not with {EPOCH_HEADER}")
    known_by, checkpoint = _last(last, origin)
    old = OldEpoch(origin=origin, checkpoint=checkpoint, known_by=known_by, totals=totals)
    return Statement(vkey=vkey, old=old, reason=reason)


def _last(line: str, origin: str) -> tuple[str, Checkpoint | None]:
    word, _, rest = line.partition(" ")
    known_by = next((name for name, spoken in KNOWN_BY.items() if spoken == word), None)
    size, _, root = rest.partition(" ")
    if known_by is None or (known_by == "nothing") != (rest == "") or (rest and not _WHOLE.fullmatch(size)):
        raise NoteFault("E-NOTE-MALFORMED", f"the last checkpoint reads {line[:100]!r}")
    return known_by, Checkpoint(origin, int(size), decode_base64(root, "the old root")) if rest else None


def _totals(words: Mapping[str, str]) -> Totals | None:
    if "totaux" in words:
        return None
    figures: dict[str, int] = {}
    for name, word in TOTAL_WORDS.items():
        if not _WHOLE.fullmatch(words.get(word, "")):
            raise NoteFault("E-NOTE-MALFORMED", f"the statement has no figure {word}")
        figures[name] = int(words[word])
    amounts = {field.name: Cents(figures[field.name]) for field in fields(Totals) if field.name.endswith("_cents")}
    return Totals(seances=figures["seances"], rounds=figures["rounds"], **amounts)


def proclaim(note: str, persons: Mapping[str, EnrolledPerson], at_us: int) -> EpochProclaimed:
    """What the first entry is decided from, when a director and a technician of ``persons`` (by badge) signed.

    Raises EpochFault: E-EPOCH-STATEMENT, E-EPOCH-SIGNATURES.
    """
    stated = read(note)
    signed = _signed_by(note, [person for person in persons.values() if not person.revoked])
    old, checkpoint = stated.old, stated.old.checkpoint
    return EpochProclaimed(
        at_us=at_us,
        old_origin=old.origin,
        old_size=checkpoint.size if checkpoint else 0,
        old_root=checkpoint.root.hex() if checkpoint else "",
        known_by=old.known_by,
        reason=stated.reason,
        note=note,
        persons=tuple(person.person for person in signed),
        vkeys=tuple(person.vkey for person in signed),
        totals=old.totals,
    )


def _signed_by(note: str, persons: Sequence[EnrolledPerson]) -> tuple[EnrolledPerson, ...]:
    """One person for each of ``ROLES``, in that order, all of whose signatures are good."""
    table = Verifier.parse(read(note).vkey)
    site = table.name.split("/table/")[0]
    known = [person for person in persons if person.verifier.name == f"{site}/personne/{person.badge}"]
    try:
        opened = open_note(note, [table, *(person.verifier for person in known)])
    except NoteFault as fault:
        raise EpochFault("E-EPOCH-SIGNATURES", f"a signature is wrong: {fault.detail}") from fault
    signed = [person for person in known if any(person.verifier.made(one) for one in opened.signatures)]
    keys = {person.verifier.public for person in signed}
    if sorted(person.role for person in signed) != sorted(ROLES) or len(keys) < len(ROLES):
        found = ", ".join(f"{person.role} {person.badge}" for person in signed) or "nobody"
        detail = f"a director and a technician who are enrolled and not revoked must sign; signed by {found}"
        raise EpochFault("E-EPOCH-SIGNATURES", detail)
    return tuple(sorted(signed, key=lambda person: ROLES.index(person.role)))


# ── The daemon's question ─────────────────────────────────────────────────────────────────────────────────────────────


def refuse_unproclaimed(origin: str, leaf: bytes | None) -> None:
    """Raise EpochFault (E-EPOCH-UNPROCLAIMED) unless a second or later epoch begins with a good ``EpochBegun``.

    ``leaf`` is the first entry of the journal. Whether the persons were enrolled is asked when the statement is
    accepted; persons come and go, but what they signed stays: here each signature is checked by the key in the entry.
    """
    if origin.rpartition("/")[2] == "1":
        return
    try:
        fact = _first_fact(leaf)
        if fact is None:
            raise EpochFault("E-EPOCH-STATEMENT", "it does not say which epoch it follows")
        persons = {
            person.badge: EnrolledPerson(person.badge, person.role, vkey)
            for person, vkey in zip(fact.persons, fact.vkeys, strict=True)
        }
        again = proclaim(fact.note, persons, 0)
        stated = read(fact.note)
    except (EpochFault, KeyFault, ValueError) as fault:
        raise EpochFault("E-EPOCH-UNPROCLAIMED", f"the first entry of {origin} is not good: {fault}") from fault
    if Verifier.parse(stated.vkey).name != origin or _fact_of(again) != fact:
        raise EpochFault("E-EPOCH-UNPROCLAIMED", f"the first entry of {origin} is not what its statement says")


def _first_fact(leaf: bytes | None) -> EpochBegun | None:
    if leaf is None:
        return None
    document = json.loads(leaf)
    if document["type"] != EpochBegun.KIND:
        return None
    fact = codec.decode_fact(document["type"], document["data"])
    assert isinstance(fact, EpochBegun)
    return fact


def _fact_of(signal: EpochProclaimed) -> EpochBegun:
    (fact,) = decide(Custody(), signal).facts
    assert isinstance(fact, EpochBegun)
    return fact
