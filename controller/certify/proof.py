"""Proofs that travel (c2sp.org/tlog-proof): one entry is in a log, checked with nothing but the entry and a policy.

    c2sp.org/tlog-proof@v1
    extra YWJj                     what an application adds, if anything: nobody signed it, so nothing here believes it
    index 42
    gSKyXoYZ…cPlQ=                 the inclusion proof of RFC 6962, section 2.1.1: from the leaf's sibling upwards
    B95lDa8R…XmA=
                                   the first empty line
    casino.example/table/t07/1     the log's checkpoint, word for word, with the cosignatures there are
    137
    CsUYapGG…q2I=

    — casino.example/table/t07/1 Az3g…
    — centre.example/mirror jWbP…

The proof shows what the log's key signed, and the witnesses saw: that these bytes are entry 42. It does not show that
the log still grows from that checkpoint; for this there are consistency proofs.
"""

import re
from base64 import b64encode
from dataclasses import dataclass
from typing import Self

from controller.certify.checkpoint import Checkpoint, parse_checkpoint
from controller.certify.faults import NoteFault
from controller.certify.leaf import leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import decode_base64, parse_note
from controller.certify.policy import Policy
from controller.certify.reader import Reader
from controller.certify.tree import verify_inclusion

HEADER = "c2sp.org/tlog-proof@v1"

PROOF_BOUND = 131_072
"""Bytes of the longest proof that is read (characters, of a text): twice the bound of the note that ends it."""

HASHES_BOUND = 63
"""Hashes of a proof, at the most: a checkpoint's size is below 2^63."""

_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})")
_EXTRA = "extra "
_HASH_BYTES = 32


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof taken apart; only ``check`` says whether it is right.

    ``hashes`` have 32 bytes each, the leaf's sibling first. ``note`` is the checkpoint with its signature lines.
    ``extra`` is whatever somebody put there.
    """

    index: int
    hashes: tuple[bytes, ...]
    note: str
    extra: bytes = b""

    @classmethod
    def parse(cls, proof: str | bytes) -> Self:
        """Read a proof in its only spelling. Raises NoteFault (E-PROOF-MALFORMED)."""
        head, _, note = _text(proof).partition("\n\n")
        lines = head.split("\n")
        if lines.pop(0) != HEADER:
            raise NoteFault("E-PROOF-MALFORMED", f"the first line of a proof is {HEADER}, not {head[:40]!r}")
        try:
            extra = _extra(lines)
            index = _index(lines)
            hashes = tuple(_hash(line) for line in lines)
            parse_checkpoint(parse_note(note).text)
        except NoteFault as fault:
            raise NoteFault("E-PROOF-MALFORMED", fault.detail) from fault
        if len(hashes) > HASHES_BOUND:
            raise NoteFault("E-PROOF-MALFORMED", f"a proof has {HASHES_BOUND} hashes at the most, not {len(hashes)}")
        return cls(index, hashes, note, extra)

    @property
    def text(self) -> str:
        """The proof as a file."""
        extra = [_EXTRA + b64encode(self.extra).decode()] if self.extra else []
        hashes = [b64encode(node).decode() for node in self.hashes]
        return "\n".join([HEADER, *extra, f"index {self.index}", *hashes, "", self.note])


@dataclass(frozen=True, slots=True)
class Proven:
    """What a right proof shows: the entry is number ``index`` under ``checkpoint``, which ``by`` cosigned."""

    index: int
    checkpoint: Checkpoint
    by: frozenset[str]


def prove(reader: Reader, index: int, note: str) -> Proof:
    """The proof that entry ``index`` is under the checkpoint ``note``, from what the journal keeps of its tree.

    Raises NoteFault: E-PROOF-WRONG when the checkpoint does not reach the entry, E-CHECKPOINT-MALFORMED,
    E-NOTE-MALFORMED. Raises JournalFault. Whether the proof is right is for ``check`` to say: a journal may have been
    altered.
    """
    size = parse_checkpoint(parse_note(note).text).size
    if index >= size:
        raise NoteFault("E-PROOF-WRONG", f"a checkpoint of {size} entries does not reach entry {index}")
    return Proof(index, tuple(reader.inclusion_proof(index, size)), note)


def newest_cosigned(reader: Reader, keys: LogKeys, index: int) -> str | None:
    """The note of the newest checkpoint that reaches entry ``index`` and that somebody beside ``keys`` signed.

    None without one. Raises NoteFault and JournalFault.
    """
    kept = reader.notes(max(index + 1, reader.cosigned_size() or 0))
    cosigned = (note for note in reversed(kept) if not all(map(keys.made, parse_note(note).signatures)))
    return next(cosigned, None)


def check(proof: str | bytes, leaf: bytes, policy: Policy) -> Proven:
    """What ``proof`` shows of the entry ``leaf``, its exact bytes, to whoever believes ``policy``.

    Raises NoteFault: E-PROOF-MALFORMED; E-NOTE-SIGNATURE and E-NOTE-UNSIGNED for the checkpoint; E-POLICY-QUORUM when
    too few witnesses cosigned it; E-PROOF-WRONG when the entry is not the one that the proof is of. Raises KeyFault
    (E-POLICY-LOG) for a log that the policy does not name.
    """
    parsed = Proof.parse(proof)
    witnessed = policy.witnessed(parsed.note)
    checkpoint = witnessed.checkpoint
    if not policy.satisfied_by(witnessed.by):
        by = ", ".join(sorted(witnessed.by)) or "nobody"
        raise NoteFault("E-POLICY-QUORUM", f"the checkpoint is cosigned by {by}, which is not {policy.quorum}")
    if not verify_inclusion(leaf_hash(leaf), parsed.index, checkpoint.size, parsed.hashes, checkpoint.root):
        claim = f"entry {parsed.index} of the {checkpoint.size} of {checkpoint.origin}"
        raise NoteFault("E-PROOF-WRONG", f"the proof does not show these {len(leaf)} bytes to be {claim}")
    return Proven(parsed.index, checkpoint, witnessed.by)


def _text(proof: str | bytes) -> str:
    """The proof as text, within its bound."""
    if len(proof) > PROOF_BOUND:
        raise NoteFault("E-PROOF-MALFORMED", f"the proof is longer than {PROOF_BOUND} bytes")
    try:
        return proof if isinstance(proof, str) else proof.decode()
    except UnicodeDecodeError as error:
        raise NoteFault("E-PROOF-MALFORMED", "the proof is not UTF-8") from error


def _extra(lines: list[str]) -> bytes:
    """Take the extra line off, if there is one: without extra data there is no such line."""
    if not lines or not lines[0].startswith(_EXTRA):
        return b""
    extra = decode_base64(lines.pop(0).removeprefix(_EXTRA), "the extra data of a proof")
    if not extra:
        raise NoteFault("E-PROOF-MALFORMED", "the extra line of a proof is empty")
    return extra


def _index(lines: list[str]) -> int:
    """Take the index line off."""
    line = lines.pop(0) if lines else ""
    found = _INDEX.fullmatch(line)
    if found is None:
        raise NoteFault("E-PROOF-MALFORMED", f"an index line reads 'index' and a decimal number, not {line[:40]!r}")
    return int(found[1])


def _hash(line: str) -> bytes:
    node = decode_base64(line, "a hash of the proof")
    if len(node) != _HASH_BYTES:
        raise NoteFault("E-PROOF-MALFORMED", f"a hash of a proof has {_HASH_BYTES} bytes, not {len(node)}")
    return node
