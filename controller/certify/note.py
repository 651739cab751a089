"""Signed notes (c2sp.org/signed-note) and cosignatures (c2sp.org/tlog-cosignature): how everything here is signed.

    casino.example/table/t07/1          ┐
    413                                 │ the text, which ends with a line end
    CsUYapGG…xq2I=                      ┘
                                          the last empty line of the note
    — casino.example/table/t07/1 Az3g…  ┐ one line per signature: the key's name, and base64 of
    — caisse.example/mirror jWbP…       ┘ the key's 4-byte identifier with the signature

Two kinds of key: 0x01 signs the text with Ed25519; 0x04 signs the text with a time, and by that says "this is the
largest consistent tree I have seen". A signature by a key that is not known says nothing. One by a known key must be
right, or the whole note is refused.
"""

import re
from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from controller.certify.faults import KeyFault, NoteFault

NOTE_BOUND = 65_536
"""Characters of the longest note that is read."""

SIGNATURES_BOUND = 64
"""Signature lines of a note that is read (the format asks for at least 16)."""

TIME_BOUND_S = 2**63 - 1
"""The latest time that a cosignature may state, in seconds since 1970 (c2sp.org/tlog-cosignature)."""

_PRIVATE = "PRIVATE+KEY+"
_KEY_ID = re.compile(r"[0-9a-f]{8}")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\ud800-\udfff]")
_TIME_BYTES = 8


class KeyType(IntEnum):
    """The signature types in use, by their assigned byte."""

    ED25519 = 0x01
    COSIGNATURE = 0x04


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line. ``value`` is what the key made: 64 bytes, or 8 bytes of time and 64 for a cosignature."""

    name: str
    key_id: bytes
    value: bytes

    @property
    def line(self) -> str:
        """The line as it stands in a note, without its line end."""
        return f"— {self.name} {b64encode(self.key_id + self.value).decode()}"

    @property
    def time_s(self) -> int:
        """Of a cosignature: the seconds since 1970 that it states."""
        return int.from_bytes(self.value[:_TIME_BYTES])


@dataclass(frozen=True, slots=True)
class Note:
    """A note taken apart. Nothing in it may be believed before ``open_note`` has checked it."""

    text: str
    signatures: tuple[Signature, ...]


def decode_base64(text: str, what: str) -> bytes:
    """Standard base64 with its padding, in its only spelling. Raises NoteFault (E-NOTE-MALFORMED)."""
    try:
        data = a2b_base64(text.encode("ascii"), strict_mode=True)
    except (Base64Error, UnicodeEncodeError) as error:
        raise NoteFault("E-NOTE-MALFORMED", f"{what} is not base64: {text[:100]!r}") from error
    if b64encode(data).decode() != text:
        raise NoteFault("E-NOTE-MALFORMED", f"{what} is base64 with stray bits: {text[:100]!r}")
    return data


def name_is_valid(name: str) -> bool:
    """Whether ``name`` may name a key: not empty, no space of any kind, no control character, no plus sign."""
    return bool(name) and "+" not in name and not any(c.isspace() for c in name) and not _CONTROL.search(name)


def _key_id(name: str, key_type: KeyType, public: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + bytes([key_type]) + public).digest()[:4]


def _cosigned(text: str, time_s: int) -> bytes:
    return f"cosignature/v1\ntime {time_s}\n{text}".encode()


class Verifier:
    """A public key with its name. Its text form (``vkey``) is ``name+identifier+base64(type ‖ key)``."""

    __slots__ = ("_key", "key_id", "key_type", "name", "public")

    def __init__(self, name: str, key_type: KeyType, public: bytes) -> None:
        self.name = name
        self.key_type = key_type
        self.public = public
        self.key_id = _key_id(name, key_type, public)
        self._key = Ed25519PublicKey.from_public_bytes(public)

    @classmethod
    def parse(cls, vkey: str) -> Self:
        """Read a ``vkey``. Raises KeyFault (E-KEY-MALFORMED)."""
        name, key_type, public = _parse_key(vkey, "verifier key")
        verifier = cls(name, key_type, public)
        if verifier.vkey != vkey:
            raise KeyFault("E-KEY-MALFORMED", f"the identifier in the verifier key of {name} is not that of its key")
        return verifier

    @property
    def vkey(self) -> str:
        """The text form."""
        return f"{self.name}+{self.key_id.hex()}+{b64encode(bytes([self.key_type]) + self.public).decode()}"

    def made(self, signature: Signature) -> bool:
        """Whether ``signature`` claims to be by this key."""
        return signature.key_id == self.key_id and signature.name == self.name

    def verifies(self, text: str, signature: Signature) -> bool:
        """Whether ``signature`` is this key's over ``text``."""
        signed, value = text.encode(), signature.value
        if self.key_type is KeyType.COSIGNATURE:
            if signature.time_s > TIME_BOUND_S:
                return False
            signed, value = _cosigned(text, signature.time_s), value[_TIME_BYTES:]
        try:
            self._key.verify(value, signed)
        except InvalidSignature:
            return False
        return True


class Signer:
    """A private key with its name. Its text form (``skey``) is ``PRIVATE+KEY+name+identifier+base64(type ‖ seed)``."""

    __slots__ = ("_key", "key_type", "name", "verifier")

    def __init__(self, name: str, seed: bytes, key_type: KeyType = KeyType.ED25519) -> None:
        self.name = name
        self.key_type = key_type
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = Verifier(name, key_type, self._key.public_key().public_bytes_raw())

    @classmethod
    def generate(cls, name: str, key_type: KeyType = KeyType.ED25519) -> Self:
        """A new key from the kernel's generator. Raises KeyFault (E-KEY-NAME) for a name that no key may have."""
        if not name_is_valid(name):
            raise KeyFault("E-KEY-NAME", f"{name!r} cannot name a key: no spaces, no control characters, no +")
        return cls(name, Ed25519PrivateKey.generate().private_bytes_raw(), key_type)

    @classmethod
    def parse(cls, skey: str) -> Self:
        """Read an ``skey``. Raises KeyFault (E-KEY-MALFORMED), whose message never shows the key."""
        if not skey.startswith(_PRIVATE):
            raise KeyFault("E-KEY-MALFORMED", f"a private key begins with {_PRIVATE}")
        name, key_type, seed = _parse_key(skey.removeprefix(_PRIVATE), "private key")
        signer = cls(name, seed, key_type)
        if signer.skey != skey:
            raise KeyFault("E-KEY-MALFORMED", f"the identifier in the private key of {name} is not that of its key")
        return signer

    @property
    def skey(self) -> str:
        """The text form: the secret itself."""
        material = bytes([self.key_type]) + self._key.private_bytes_raw()
        return f"{_PRIVATE}{self.name}+{self.verifier.key_id.hex()}+{b64encode(material).decode()}"

    def sign(self, text: str, time_s: int = 0) -> Signature:
        """Sign a note's text. ``time_s``, seconds since 1970, is stated by a cosignature and unused otherwise."""
        if self.key_type is KeyType.COSIGNATURE:
            value = time_s.to_bytes(_TIME_BYTES) + self._key.sign(_cosigned(text, time_s))
        else:
            value = self._key.sign(text.encode())
        return Signature(self.name, self.verifier.key_id, value)


def _parse_key(key: str, what: str) -> tuple[str, KeyType, bytes]:
    """Name, type and key bytes of either text form. The messages show nothing of the key bytes."""
    parts = key.split("+", 2)
    if len(parts) != 3 or not name_is_valid(parts[0]) or not _KEY_ID.fullmatch(parts[1]):
        raise KeyFault("E-KEY-MALFORMED", f"a {what} reads name+identifier+base64, identifier in 8 hexadecimal digits")
    name, _, encoded = parts
    try:
        material = a2b_base64(encoded.encode("ascii"), strict_mode=True)
    except (Base64Error, UnicodeEncodeError):
        raise KeyFault("E-KEY-MALFORMED", f"the {what} of {name} is not base64") from None
    if len(material) != 33 or material[0] not in set(KeyType):
        kinds = "an Ed25519 key of type 1 (signature) or 4 (cosignature)"
        raise KeyFault("E-KEY-MALFORMED", f"the {what} of {name} is not {kinds}")
    return name, KeyType(material[0]), material[1:]


def format_note(text: str, signatures: Sequence[Signature]) -> str:
    """The note: the text, an empty line, the signature lines."""
    return f"{text}\n" + "".join(f"{signature.line}\n" for signature in signatures)


def sign_note(text: str, *signers: Signer) -> str:
    """``text`` signed by ``signers`` (type 0x01). Raises NoteFault (E-NOTE-MALFORMED) for text no note can hold."""
    if not text.endswith("\n") or _CONTROL.search(text):
        raise NoteFault("E-NOTE-MALFORMED", "a note's text ends with a line end and has no other control character")
    return format_note(text, [signer.sign(text) for signer in signers])


def parse_note(note: str) -> Note:
    """Take a note apart without believing it. Raises NoteFault (E-NOTE-MALFORMED)."""
    if len(note) > NOTE_BOUND:
        raise NoteFault("E-NOTE-MALFORMED", f"the note is longer than {NOTE_BOUND} characters")
    if _CONTROL.search(note) or not note.endswith("\n"):
        raise NoteFault("E-NOTE-MALFORMED", "a note ends with a line end and has no other control character")
    text, separator, lines = note[:-1].rpartition("\n\n")
    if not separator:
        raise NoteFault("E-NOTE-MALFORMED", "the note has no empty line between its text and its signatures")
    signatures = lines.split("\n")
    if len(signatures) > SIGNATURES_BOUND:
        raise NoteFault("E-NOTE-MALFORMED", f"the note has more than {SIGNATURES_BOUND} signatures")
    return Note(f"{text}\n", tuple(map(parse_signature, signatures)))


def parse_signature(line: str) -> Signature:
    """Read one signature line, without its line end. Raises NoteFault (E-NOTE-MALFORMED)."""
    dash, _, rest = line.partition(" ")
    name, _, encoded = rest.partition(" ")
    if dash != "—" or not name_is_valid(name):
        raise NoteFault("E-NOTE-MALFORMED", f"a signature reads '— name base64', not {line[:100]!r}")
    data = decode_base64(encoded, f"the signature of {name}")
    if len(data) < 5:
        raise NoteFault("E-NOTE-MALFORMED", f"the signature of {name} is too short")
    return Signature(name, data[:4], data[4:])


def open_note(note: str, verifiers: Sequence[Verifier]) -> Note:
    """Take a note apart and keep only the signatures of ``verifiers``, all of which are right, and at least one.

    Raises NoteFault: E-NOTE-MALFORMED; E-NOTE-SIGNATURE when a known key's signature is wrong; E-NOTE-UNSIGNED when no
    known key signed.
    """
    parsed = parse_note(note)
    known = [(v, signature) for signature in parsed.signatures for v in verifiers if v.made(signature)]
    for verifier, signature in known:
        if not verifier.verifies(parsed.text, signature):
            raise NoteFault("E-NOTE-SIGNATURE", f"the signature of {verifier.name} does not fit the text above it")
    if not known:
        signers = ", ".join(f"{s.name} ({s.key_id.hex()})" for s in parsed.signatures)
        wanted = ", ".join(f"{v.name} ({v.key_id.hex()})" for v in verifiers)
        raise NoteFault("E-NOTE-UNSIGNED", f"the note is signed by {signers}, and not by {wanted}")
    return Note(parsed.text, tuple(signature for _, signature in known))
