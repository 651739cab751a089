"""One sample of each kind of fact and input, made from its type alone, and the file that keeps how it is written.

    python -m tests.controller.golden_samples     write the files that are missing; none is ever written over

A file that disagrees with the code means that a published kind changed. Published kinds never change: what must be
said otherwise is said by a new kind, and the old one stays readable.
"""

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NewType

from controller import codec
from controller.certify.leaf import canonical
from games.rules import Fact, Input

GOLDEN = Path(__file__).with_name("golden")


def sample(hint: Any, name: str, at: int) -> Any:
    """A value of a type: text says the name of its field, numbers count the fields, nothing is left empty."""
    if isinstance(hint, NewType):
        return sample(hint.__supertype__, name, at)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return sample(next(argument for argument in arguments if argument is not type(None)), name, at)
    if origin is tuple:
        return (sample(arguments[0], name, at), sample(arguments[0], f"{name}, again", at + 1))
    if is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return hint(
            **{field.name: sample(hints[field.name], field.name, at) for at, field in enumerate(fields(hint), 1)}
        )
    if issubclass(hint, Enum):
        return next(iter(hint))
    return {bool: True, int: 100 + at, str: f"{name} — é"}[hint]


def plain_input(signal: Input) -> dict[str, Any]:
    """An input as an entry holds it: its fields and its kind."""
    return {codec.INPUT_KIND: type(signal).__name__, **codec.to_plain(signal)}


def texts() -> Iterator[tuple[str, str]]:
    """The name of each golden file and what the code would write into it."""
    for kind, fact in codec.FACTS.items():
        yield kind, canonical(codec.to_plain(sample(fact, "", 0)))
    for name, signal in codec.INPUTS.items():
        yield f"input.{name}", canonical(plain_input(sample(signal, "", 0)))


def kept() -> Mapping[str, str]:
    """What each golden file holds, by its name."""
    return {path.stem: path.read_text(encoding="utf-8").rstrip("\n") for path in GOLDEN.glob("*.json")}


def read(name: str, plain: Mapping[str, Any]) -> Fact | Input:
    """The fact or the input that a golden file holds."""
    return codec.decode_input(plain) if name.startswith("input.") else codec.decode_fact(name, plain)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for stem, text in texts():
        if stem not in kept():
            (GOLDEN / f"{stem}.json").write_text(f"{text}\n", encoding="utf-8")
