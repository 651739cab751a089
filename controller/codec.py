"""Facts, inputs and states as canonical JSON values, and back, without loss.

One rule for every type: a dataclass is an object of its fields, an enum its value, a tuple a list, a set a sorted list,
a mapping an object with string keys; a field that is None is left out. Decoding is strict: a field that is unknown,
missing or of another type is an error, because these bytes are evidence.

The data of an entry is the fact's fields, and where it came from: ``input`` holds the whole input that was decided (the
first fact of a decision), ``input_at`` the entry that holds it (the others). So a whole journal can be decided again.
"""

import hashlib
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NewType, Union

import games.custody
import games.health
import games.opening
import games.persons
import games.roulette.facts
import games.signals
import games.statement  # noqa: F401 - imported for the classes that they define
from controller.certify.leaf import INTEGER_BOUND
from games.rules import Fact, Input

INPUT = "input"
INPUT_AT = "input_at"
INPUT_KIND = "kind"

Convert = Callable[[Any], Any]


class CodecError(ValueError):
    """Stored bytes do not say what this version of the program understands."""


def _leaves(base: type) -> list[type]:
    below: list[type] = base.__subclasses__()
    return [base, *(leaf for cls in below for leaf in _leaves(cls))] if below else [base]


FACTS: Mapping[str, type[Fact]] = {cls.KIND: cls for cls in _leaves(Fact) if hasattr(cls, "KIND")}
"""Every kind of fact, by its type on the wire."""

INPUTS: Mapping[str, type[Input]] = {cls.__name__: cls for cls in _leaves(Input)}
"""Every kind of input, by its name."""

# ── Encoding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def to_plain(value: Any) -> Any:
    """A value as plain JSON data (dict, list, str, int, bool)."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | int):
        return value
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, frozenset):
        return sorted(to_plain(item) for item in value)
    if isinstance(value, Mapping):
        return {str(to_plain(key)): to_plain(item) for key, item in value.items()}
    names = _FIELDS.get(type(value)) or _learn_fields(type(value))
    return {name: to_plain(item) for name in names if (item := getattr(value, name)) is not None}


_FIELDS: dict[type, tuple[str, ...]] = {}


def _learn_fields(cls: Any) -> tuple[str, ...]:
    _FIELDS[cls] = tuple(field.name for field in fields(cls))
    return _FIELDS[cls]


def encode_decision(signal: Input, facts: tuple[Fact, ...], first_index: int) -> list[tuple[str, str]]:
    """The (kind, canonical data) of each fact of one decision, whose first entry will be ``first_index``."""
    entries = []
    origin = (INPUT, _write_input(signal)) if facts else (INPUT, "")
    for fact in facts:
        entries.append((fact.KIND, _writer(type(fact))(fact, origin)))
        origin = (INPUT_AT, str(first_index))
    return entries


def _write_input(signal: Input) -> str:
    name = type(signal).__name__
    return _writer(type(signal))(signal, (INPUT_KIND, f'"{name}"'))


# Facts are written straight as canonical text: this is the hot path of a burst of stakes. That it gives the same bytes
# as ``canonical(to_plain(…))`` is a property of the tests.

Write = Callable[[Any], str]
WriteObject = Callable[[Any, tuple[str, str] | None], str]

_text = json.encoder.encode_basestring
_WRITERS: dict[type, WriteObject] = {}


def _writer(cls: Any) -> WriteObject:
    """The function that writes an object of one class, with one more member where it sorts; built once."""
    return _WRITERS.get(cls) or _WRITERS.setdefault(cls, _make_writer(cls))


def _make_writer(cls: Any) -> WriteObject:
    hints = typing.get_type_hints(cls)
    members = sorted((field.name, f'"{field.name}":', _write_as(hints[field.name])) for field in fields(cls))

    def write(value: Any, more: tuple[str, str] | None = None) -> str:
        parts = [
            prefix + write_member(item)
            for name, prefix, write_member in members
            if (item := getattr(value, name)) is not None
        ]
        if more is not None:
            name, text = more
            parts.append(f'"{name}":{text}')
            parts.sort()
        return "{" + ",".join(parts) + "}"

    return write


def _write_as(hint: Any) -> Write:
    if isinstance(hint, NewType):
        return _write_as(hint.__supertype__)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _write_as(inner)
    if origin is tuple:
        item = _write_as(arguments[0])
        return lambda value: "[" + ",".join([item(element) for element in value]) + "]"
    if is_dataclass(hint):
        write_object = _make_writer(hint)
        return lambda value: write_object(value, None)
    return {bool: _write_bool, int: _write_int}.get(hint, _text)


def _write_bool(value: bool) -> str:
    return "true" if value else "false"


def _write_int(value: int) -> str:
    if not -INTEGER_BOUND <= value <= INTEGER_BOUND:
        raise CodecError(f"{value} is beyond the integers that every reader of JSON understands")
    return str(int(value))


# ── Decoding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_fact(kind: str, data: Mapping[str, Any]) -> Fact:
    """The fact of an entry. Raises CodecError for an unknown kind or data that does not fit it."""
    cls: Any = FACTS.get(kind)
    if cls is None:
        raise CodecError(f"unknown kind of fact {kind!r}: written by a newer version?")
    own = {name: value for name, value in data.items() if name not in (INPUT, INPUT_AT)}
    fact: Fact = _decoder(cls)(own)
    return fact


def decode_input(data: Mapping[str, Any]) -> Input:
    """The input of an entry. Raises CodecError."""
    kind = data.get(INPUT_KIND) if isinstance(data, dict) else None
    cls: Any = INPUTS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise CodecError(f"unknown kind of input {kind!r}")
    signal: Input = _decoder(cls)({name: value for name, value in data.items() if name != INPUT_KIND})
    return signal


def from_plain(cls: Any, value: Any) -> Any:
    """A value of type ``cls`` from plain JSON data. Raises CodecError."""
    return _decoder(cls)(value)


@cache
def _decoder(hint: Any) -> Convert:
    """The function that decodes one type, built once."""
    if isinstance(hint, NewType):
        return _decoder(hint.__supertype__)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _decoder(inner)
    if origin is tuple:
        return _sequence(tuple, _decoder(arguments[0]))
    if origin is frozenset:
        return _sequence(frozenset, _decoder(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(arguments[0], _decoder(arguments[1]))
    if is_dataclass(hint):
        return _dataclass(typing.cast(type, hint))
    if issubclass(hint, Enum):
        return _enum(hint)
    return _exactly(hint)


def _exactly(cls: type) -> Convert:
    def decode(value: Any) -> Any:
        if type(value) is not cls:
            raise CodecError(f"{value!r} is not {cls.__name__}")
        return value

    return decode


def _enum(cls: type[Enum]) -> Convert:
    by_value = {member.value: member for member in cls}

    def decode(value: Any) -> Any:
        if not isinstance(value, str | int) or value not in by_value:
            raise CodecError(f"{value!r} is not one of {cls.__name__}")
        return by_value[value]

    return decode


def _sequence(make: Callable[[Any], Any], item: Convert) -> Convert:
    def decode(value: Any) -> Any:
        if not isinstance(value, list):
            raise CodecError(f"{value!r} is not a list")
        return make([item(element) for element in value])

    return decode


def _mapping(key: Any, item: Convert) -> Convert:
    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            raise CodecError(f"{value!r} is not an object")
        return {_number(name) if key is int else name: item(element) for name, element in value.items()}

    return decode


def _number(name: str) -> int:
    if not (name.isascii() and name.isdecimal()) or str(int(name)) != name:
        raise CodecError(f"{name!r} is not a number")
    return int(name)


def _dataclass(cls: type) -> Convert:
    hints = typing.get_type_hints(cls)
    known = {field.name: _decoder(hints[field.name]) for field in fields(cls)}
    required = {
        field.name
        for field in fields(cls)
        if field.default is MISSING
        and field.default_factory is MISSING
        and type(None) not in typing.get_args(hints[field.name])
    }
    absent = {name: None for name in known if type(None) in typing.get_args(hints[name])}

    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            raise CodecError(f"{value!r} is not an object of {cls.__name__}")
        try:
            given = {name: known[name](item) for name, item in value.items()}
        except KeyError as unknown:
            raise CodecError(f"{cls.__name__} has no field {unknown}") from None
        if len(given) == len(known):
            return cls(**given)
        if missing := required - given.keys():
            raise CodecError(f"{cls.__name__} lacks {sorted(missing)}")
        return cls(**(absent | given))

    return decode


@cache
def shape(cls: Any) -> str:
    """A digest of a type's fields and of all types below: a snapshot of another shape is not read, but folded anew."""
    return hashlib.sha256("\n".join(sorted(_shape_lines(cls, set()))).encode()).hexdigest()[:16]


def _shape_lines(hint: Any, seen: set[Any]) -> list[str]:
    if is_dataclass(hint):
        if hint in seen:
            return []
        seen.add(hint)
        hints = typing.get_type_hints(hint)
        name = getattr(hint, "__name__", "")
        lines = [f"{name}.{field.name}: {hints[field.name]}" for field in fields(hint)]
        return lines + [line for field in fields(hint) for line in _shape_lines(hints[field.name], seen)]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [f"{hint.__name__}: {[member.value for member in hint]}"]
    return [line for argument in typing.get_args(hint) for line in _shape_lines(argument, seen)]
