"""Entries of a journal as a person reads them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from controller.certify.leaf import Leaf, parse_leaf
from controller.cli.language import here
from controller.cli.output import dim
from controller.cli.story import story
from controller.codec import CodecError, decode_fact
from games.rules import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One certified entry. ``fact`` is None when this program does not know its kind."""

    index: int
    time: str
    seance: str | None
    kind: str
    data: Mapping[str, Any]
    fact: Fact | None

    @property
    def told(self) -> str:
        """What happened, in one line."""
        return self.kind if self.fact is None else story(self.fact)

    @property
    def line(self) -> str:
        """The certified index, the time (UTC) and what happened."""
        return f"{click.style(f'{self.index:>7}', fg='cyan')} {dim(self.time[11:19])} {self.told}"


def entry_of(leaf: bytes) -> Entry:
    """Read a leaf. Raises LeafFault when these bytes are none."""
    return _entry(parse_leaf(leaf))


def _entry(leaf: Leaf) -> Entry:
    data = json.loads(leaf.data)
    return Entry(
        index=leaf.index, time=leaf.time, seance=leaf.seance, kind=leaf.kind, data=data, fact=known(leaf.kind, data)
    )


def published(event: Mapping[str, Any]) -> Entry:
    """The entry of an event as it is published."""
    return Entry(
        index=int(event["id"]),
        time=event["time"],
        seance=event.get("seance"),
        kind=event["type"],
        data=event["data"],
        fact=known(event["type"], event["data"]),
    )


def known(kind: str, data: Mapping[str, Any]) -> Fact | None:
    """The fact that the data stands for, None when a newer program wrote it."""
    try:
        return decode_fact(kind, data)
    except CodecError:
        return None


def no_such_entry(index: int, size: int) -> str:
    """Why an entry cannot be shown."""
    last = here(f"la dernière est {size - 1}", f"the last one is {size - 1}")
    return here(f"pas d'écriture {index} ; {last}", f"there is no entry {index}; {last}")
