"""One entry of the journal: a CloudEvents 1.0 object in RFC 8785 canonical form, at most ``LEAF_BOUND`` bytes.

    {"boot":"9f1c…","data":{…},"id":"412","mono":"123456789","prev":"xbjN…Tro=","seance":"2026-11-30-1",
     "source":"casino.example/table/t07/1","specversion":"1.0","time":"2026-11-30T21:15:03.123Z","tq":"ntp",
     "type":"fr.roulette.stake.placed.v1"}

One value has one spelling. The canonical form here is the part of RFC 8785 that needs no floating point: integers
within ±(2^53 - 1), strings, booleans, arrays, and objects with ASCII names in order. The same bytes are stored, hashed,
sent and archived; nothing ever spells them a second time, except to check them.

``id`` is the entry's index, ``source`` the journal's origin, ``prev`` the leaf hash of the entry before, so that
whoever receives entries one by one sees a hole or a fork at once. ``mono``, milliseconds since boot, is text because
CloudEvents integers have 32 bits.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any

from controller.certify.faults import LeafFault

LEAF_BOUND = 8_192
"""Bytes of the longest leaf. A decision that needs more must be several facts."""

DEPTH_BOUND = 16
"""How deep arrays and objects may be nested in the data of a leaf."""

INTEGER_BOUND = 2**53 - 1
"""The largest integer that every reader of JSON understands alike (RFC 7493)."""

FIRST_PREVIOUS = bytes(32)
"""What stands for the hash of the entry before the first one."""

QUALITIES = ("ntp", "rtc", "free")
"""How good the wall clock is: disciplined by a time server, kept by a battery, or neither."""

_KIND = re.compile(r"[a-z0-9_]{1,40}(?:\.[a-z0-9_]{1,40}){1,9}")
_SEANCE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SOURCE = re.compile(r"[A-Za-z0-9.-]{1,253}(?:/[A-Za-z0-9._-]{1,64}){1,8}")
_BOOT = re.compile(r"[0-9a-f]{16}")

# To find a number of 16 digits: every digit becomes a zero (ten times as fast as a pattern).
_DIGITS_TO_ZERO = bytes(ord("0") if chr(byte).isdecimal() else byte for byte in range(128)) + bytes(128)
_LONG_NUMBER = b"0" * 16

LEAF_PATTERN = re.compile(
    rb'\{"boot":"([0-9a-f]{16})","data":(\{.*\}),"id":"(0|[1-9][0-9]{0,18})","mono":"(0|[1-9][0-9]{0,18})",'
    rb'"prev":"([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)",(?:"seance":"([A-Za-z0-9._-]{1,64})",)?'
    rb'"source":"([A-Za-z0-9./_-]{3,})","specversion":"1\.0",'
    rb'"time":"([0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{3}Z)",'
    rb'"tq":"(ntp|rtc|free)","type":"([a-z0-9_.]{3,})"\}',
    re.DOTALL,
)
"""The envelope. With canonical data in its second group, bytes that match in full are a canonical leaf and no other."""

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")).encode


def _refuse_float(number: str) -> None:
    raise LeafFault("E-LEAF-VALUE", f"the data holds {number[:40]}; a leaf has no place for floating point")


_decode = json.JSONDecoder(parse_float=_refuse_float, parse_constant=_refuse_float).raw_decode


@dataclass(frozen=True, slots=True)
class Record:
    """What the journal is asked to certify: the kind of a fact, its data in canonical form, and the séance it is of."""

    kind: str
    data: str
    seance: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What all leaves of one commit share. ``mono_ms`` counts from boot; ``wall_ms`` from 1970-01-01 UTC."""

    source: str
    boot: str
    mono_ms: int
    wall_ms: int
    quality: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A leaf, read. ``data`` is canonical JSON text, ``time`` is UTC to the millisecond."""

    index: int
    source: str
    boot: str
    mono_ms: int
    previous: bytes
    seance: str | None
    time: str
    quality: str
    kind: str
    data: str


def canonical(value: object) -> str:
    """The one spelling of ``value``: RFC 8785 without floats.

    Raises LeafFault (E-LEAF-VALUE) for floats, None, integers beyond ``INTEGER_BOUND``, names that are not ASCII text,
    text that is not Unicode, anything nested deeper than ``DEPTH_BOUND``, and all other types.
    """
    _check_value(value, "value", DEPTH_BOUND)
    text = _encode(value)
    if not text.isascii():
        _check_unicode(text)
    return text


def _check_value(value: object, where: str, depth: int) -> None:
    if isinstance(value, bool | str):
        return
    if isinstance(value, int):
        if not -INTEGER_BOUND <= value <= INTEGER_BOUND:
            raise LeafFault("E-LEAF-VALUE", f"{where} is {value}; integers must stay within ±{INTEGER_BOUND}")
    elif depth == 0:
        raise LeafFault("E-LEAF-VALUE", f"{where} is nested deeper than {DEPTH_BOUND} levels")
    elif isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str) or not name.isascii():
                raise LeafFault("E-LEAF-VALUE", f"{where} has the name {name!r}; names must be ASCII text")
            _check_value(member, f"{where}.{name}", depth - 1)
    elif isinstance(value, list | tuple):
        for at, member in enumerate(value):
            _check_value(member, f"{where}[{at}]", depth - 1)
    else:
        permitted = "integers, text, booleans, arrays and objects"
        raise LeafFault("E-LEAF-VALUE", f"{where} is a {type(value).__name__}; only {permitted} have a place in a leaf")


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise LeafFault("E-LEAF-VALUE", f"the text has half a surrogate pair at position {error.start}") from error


def check_data(texts: Sequence[str]) -> None:
    """Check that each text is a JSON object in canonical form. Raises LeafFault (E-LEAF-DATA, E-LEAF-VALUE).

    All are spelled again in one go, which is faster than one by one. It is as strict: each text was read as one object,
    and no object's text is the beginning of another's.
    """
    values = [_object_of(text) for text in texts]
    joined = f"[{','.join(texts)}]"
    suspects = _is_suspect(joined)  # of all at once, then of each: a table's entries are rarely any
    for text, value in zip(texts, values, strict=True):
        if (text.count("{") + text.count("[") > DEPTH_BOUND and _is_deep(value)) or (suspects and _is_suspect(text)):
            canonical(value)
    if _encode(values) != joined:
        culprit = next(text for text, value in zip(texts, values, strict=True) if _encode(value) != text)
        raise LeafFault("E-LEAF-DATA", f"this data is not in canonical form: {culprit[:200]}")


def _object_of(text: str) -> object:
    try:
        value, end = _decode(text)
    except (ValueError, RecursionError) as error:
        raise LeafFault("E-LEAF-DATA", f"the data is not JSON: {error}") from error
    if not isinstance(value, dict) or end != len(text):
        raise LeafFault("E-LEAF-DATA", f"the data of a leaf must be one JSON object: {text[:200]}")
    return value


def _is_suspect(text: str) -> bool:
    """Whether there may be something in it that is spelled well and still has no place in a leaf."""
    return not text.isascii() or "null" in text or _LONG_NUMBER in text.encode().translate(_DIGITS_TO_ZERO)


def _is_deep(value: object) -> bool:
    """Whether ``value`` is nested too deeply."""
    level: list[Any] = [value]
    for _ in range(DEPTH_BOUND):
        level = [
            member
            for outer in level
            for member in (outer.values() if type(outer) is dict else outer)
            if type(member) is dict or type(member) is list
        ]
    return bool(level)


@lru_cache(maxsize=1024)
def _check_labels(kind: str, seance: str | None) -> None:
    if not _KIND.fullmatch(kind):
        raise LeafFault("E-LEAF-FORM", f"the kind {kind!r} must be dotted lower-case words")
    if seance is not None and not _SEANCE.fullmatch(seance):
        raise LeafFault("E-LEAF-FORM", f"the séance {seance!r} must be 1 to 64 letters, digits, dots or hyphens")


@lru_cache(maxsize=16)
def _check_stamp(source: str, boot: str, quality: str) -> None:
    if not _SOURCE.fullmatch(source):
        raise LeafFault("E-LEAF-FORM", f"the source {source!r} must be a domain and a path")
    if not _BOOT.fullmatch(boot):
        raise LeafFault("E-LEAF-FORM", f"the boot identifier {boot!r} must be 16 hexadecimal digits")
    if quality not in QUALITIES:
        raise LeafFault("E-LEAF-FORM", f"the clock quality {quality!r} must be one of {', '.join(QUALITIES)}")


def time_text(wall_ms: int) -> str:
    """RFC 3339 in UTC with milliseconds: ``2026-11-30T21:15:03.123Z``. Raises LeafFault beyond years 1 to 9999."""
    seconds, ms = divmod(wall_ms, 1_000)
    return f"{_second_text(seconds)}.{ms:03d}Z"


@lru_cache(maxsize=2)
def _second_text(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise LeafFault("E-LEAF-FORM", f"the wall clock shows {seconds} s, in no year of four digits") from error


def leaf_hash(leaf: bytes) -> bytes:
    """RFC 6962 section 2.1: SHA-256 of a zero byte and the leaf."""
    return sha256(b"\0" + leaf).digest()


def build_leaves(
    index: int, previous: bytes, records: Sequence[Record], stamp: Stamp
) -> tuple[list[bytes], list[bytes]]:
    """The leaves of one commit and their hashes; the first has ``index`` and follows the entry with hash ``previous``.

    Raises LeafFault, naming what cannot be certified; then none of them may be.
    """
    _check_stamp(stamp.source, stamp.boot, stamp.quality)
    if stamp.mono_ms < 0:
        raise LeafFault("E-LEAF-FORM", f"the monotonic clock shows {stamp.mono_ms} ms; it cannot be negative")
    check_data([record.data for record in records])
    head = f'{{"boot":"{stamp.boot}","data":'
    source = f'"source":"{stamp.source}","specversion":"1.0","time":"{time_text(stamp.wall_ms)}","tq":"{stamp.quality}"'
    leaves: list[bytes] = []
    hashes: list[bytes] = []
    for record in records:
        _check_labels(record.kind, record.seance)
        seance = "" if record.seance is None else f'"seance":"{record.seance}",'
        leaf = (
            f'{head}{record.data},"id":"{index}","mono":"{stamp.mono_ms}","prev":"{b64encode(previous).decode()}",'
            f'{seance}{source},"type":"{record.kind}"}}'
        ).encode()
        if len(leaf) > LEAF_BOUND:
            raise LeafFault("E-LEAF-LONG", f"a {record.kind} takes {len(leaf)} bytes; at most {LEAF_BOUND} may be")
        previous = leaf_hash(leaf)
        leaves.append(leaf)
        hashes.append(previous)
        index += 1
    return leaves, hashes


def build_leaf(index: int, previous: bytes, record: Record, stamp: Stamp) -> bytes:
    """One leaf; see ``build_leaves``."""
    leaves, _ = build_leaves(index, previous, [record], stamp)
    return leaves[0]


def parse_leaf(leaf: bytes) -> Leaf:
    """Read a leaf strictly: only the canonical bytes are accepted. Raises LeafFault (E-LEAF-…)."""
    match = LEAF_PATTERN.fullmatch(leaf) if len(leaf) <= LEAF_BOUND else None
    if match is None:
        raise LeafFault("E-LEAF-FORM", f"these {len(leaf)} bytes do not have the form of a leaf: {leaf[:80]!r}")
    try:
        boot, data, index, mono, previous, seance, source, time, quality, kind = (
            None if group is None else group.decode() for group in match.groups()
        )
        datetime.fromisoformat(str(time))
    except ValueError as error:
        raise LeafFault("E-LEAF-FORM", f"a leaf holds something that is neither text nor a time: {error}") from error
    check_data([str(data)])
    _check_labels(str(kind), seance)
    return Leaf(
        index=int(str(index)),
        source=str(source),
        boot=str(boot),
        mono_ms=int(str(mono)),
        previous=b64decode(str(previous)),
        seance=seance,
        time=str(time),
        quality=str(quality),
        kind=str(kind),
        data=str(data),
    )
