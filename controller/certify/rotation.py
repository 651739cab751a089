"""Changing the table's key, with an overlap: how trust passes from one key to the next.

    old key      ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓ signs until previous_key is taken out of the configuration
    statement                      │ KeyRotated: both keys signed "the first is followed by the second"
    new key                        ┗━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━►

During the overlap every checkpoint and snapshot bears both signatures, so whoever knows either key can follow. The
statement is itself an entry. Whoever was given the new key only believes through it what the old one had signed: the
new key's owner says so under a signature, in public, and every such checkpoint must still have the root of the entries.

The statement is a signed note whose first line no origin can be, so that it never passes for a checkpoint:

    table-controller/key-rotation/v1
    <origin>
    <verifier key of the old key>
    <verifier key of the new key>
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from controller.certify.faults import KeyFault, NoteFault
from controller.certify.leaf import LEAF_PATTERN
from controller.certify.log_keys import KEYS_BOUND, LogKeys
from controller.certify.note import KeyType, Signer, Verifier, open_note, parse_note, sign_note

ROTATION_HEADER = "table-controller/key-rotation/v1"

ROTATED_KIND = "fr.table.key.rotated.v1"
"""The fact whose ``statement`` is such a note (``games.custody.KeyRotated``)."""

ROTATED_END = f'"type":"{ROTATED_KIND}"}}'.encode()
"""How an entry that certifies a change of key ends."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """The key ``old`` of a log is followed by the key ``new``."""

    old: Verifier
    new: Verifier

    @property
    def text(self) -> str:
        """The text that both keys sign."""
        return f"{ROTATION_HEADER}\n{self.new.name}\n{self.old.vkey}\n{self.new.vkey}\n"


def sign_rotation(old: Signer, new: Signer) -> str:
    """The statement, signed by both. Raises KeyFault (E-KEY-ROTATION) for keys that cannot follow each other."""
    rotation = _checked(Rotation(old.verifier, new.verifier))
    return sign_note(rotation.text, old, new)


def open_rotation(note: str) -> Rotation:
    """Read a statement that both of its keys signed. Raises KeyFault (E-KEY-ROTATION).

    That they did proves nothing yet: whoever has any key may say that it follows another one of his. It passes trust on
    only from a key that was trusted before (see ``trusting``).
    """
    try:
        lines = parse_note(note).text.split("\n")
        if len(lines) != 5 or lines[0] != ROTATION_HEADER:
            raise KeyFault("E-KEY-ROTATION", "a change of key has four lines: its heading, origin, old key, new key")
        rotation = _checked(Rotation(Verifier.parse(lines[2]), Verifier.parse(lines[3])))
        opened = open_note(note, [rotation.old, rotation.new])
    except NoteFault as fault:
        raise KeyFault("E-KEY-ROTATION", f"the change of key is not a note that its keys signed: {fault}") from fault
    if opened.text != rotation.text:
        raise KeyFault("E-KEY-ROTATION", f"the change of key is of {lines[1]}, its keys are of {rotation.new.name}")
    for key in (rotation.old, rotation.new):
        if not any(key.made(signature) for signature in opened.signatures):
            raise KeyFault("E-KEY-ROTATION", f"the key {key.key_id.hex()} did not sign the change of key")
    return rotation


def _checked(rotation: Rotation) -> Rotation:
    old, new = rotation.old, rotation.new
    if old.name != new.name:
        raise KeyFault("E-KEY-ROTATION", f"a key of {new.name} cannot follow one of {old.name}")
    if old.public == new.public or {old.key_type, new.key_type} != {KeyType.ED25519}:
        raise KeyFault("E-KEY-ROTATION", f"two different keys of type 1 of {new.name} are needed")
    return rotation


def pending_rotation(previous: Signer | None, signer: Signer, known_vkey: str) -> str | None:
    """The statement that a starting table has yet to certify, if any.

    ``known_vkey`` is the key that came into use last according to the journal, empty while it is the first one
    (``games.custody.Custody.vkey``). Raises KeyFault (E-KEY-ROTATION).
    """
    if previous is None or known_vkey == signer.verifier.vkey:
        return None
    return sign_rotation(previous, signer)


def certified_statement(leaf: bytes) -> str:
    """The statement in an entry that ends with ``ROTATED_END``, empty when there is none in it.

    The form of the entry must have been checked.
    """
    envelope = LEAF_PATTERN.fullmatch(leaf)
    return "" if envelope is None else str(json.loads(envelope[2]).get("statement", ""))


def trusting(keys: LogKeys, statements: Sequence[str]) -> LogKeys:
    """``keys``, and before them the keys that they followed according to statements in an authentic log.

    Trust goes back only: a key's owner says which one was before his. Whoever has an old key has to be told the new
    one, because by then the old one may be in other hands.
    """
    rotations = [rotation for rotation in map(_opened, statements) if rotation is not None]
    for rotation in reversed(rotations):
        known = {verifier.vkey for verifier in keys.verifiers}
        new = rotation.new.vkey in known and rotation.old.vkey not in known
        if new and rotation.old.name == keys.origin and len(keys.verifiers) < KEYS_BOUND:
            keys = LogKeys.of(rotation.old, *keys.verifiers)
    return keys


def _opened(statement: str) -> Rotation | None:
    try:
        return open_rotation(statement)
    except KeyFault:
        return None  # it passes no trust on, and what is signed by its keys alone is then signed by no known key
