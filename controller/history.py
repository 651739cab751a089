"""The past of a table, read from its journal: to take up the state at a start, and to decide everything again.

*Restoring* folds facts: the latest snapshot, if this program can read it, then the entries since. *Replaying* trusts
nothing: it decides every input again, from the first entry, and must arrive at the same facts, byte for byte.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Protocol, TypeVar

from pydantic_core import from_json

from controller import codec
from controller.certify.leaf import LEAF_PATTERN
from games.rules import Fact, Game
from games.seance import TableStopped

State = TypeVar("State")

REMEMBERED_TAIL = 2_048
"""Entries read at a start, at the least, so that posts get the same answer to a repeated request."""


class PastReader(Protocol):
    """A journal, as far as its past is read here."""

    @property
    def size(self) -> int:
        """Number of entries."""
        ...

    def leaves(self, start: int, stop: int) -> Iterable[bytes]:
        """The entries from ``start`` up to, not including, ``stop``."""
        ...

    def latest_snapshot(self) -> tuple[int, bytes] | None:
        """The latest snapshot and the size at which it was taken."""
        ...


class ReplayError(Exception):
    """Deciding an input again gave other facts than the journal has. ``index`` is the first entry that differs."""

    def __init__(self, index: int, detail: str) -> None:
        super().__init__(f"E-REPLAY-DIFFERS entry {index}: {detail}")
        self.index = index


class RestoreError(Exception):
    """A fact of the journal does not fit this program or this configuration."""

    code = "E-JOURNAL-UNFIT"

    def __init__(self, index: int, detail: str) -> None:
        super().__init__(f"{self.code} entry {index}: {detail}")
        self.detail = f"entry {index}: {detail}"


def restore(game: Game[State], journal: PastReader, state_type: Any) -> State:
    """The certified state: what the facts since the latest readable snapshot make of it. Raises RestoreError."""
    start, state = _snapshot(game, journal, state_type)
    for index, leaf in enumerate(journal.leaves(start, journal.size), start):
        try:
            kind, data = _read(leaf)
            state = game.evolve(state, codec.decode_fact(kind, data))
        except (codec.CodecError, KeyError, AssertionError) as error:
            raise RestoreError(index, f"{type(error).__name__}: {error}") from error
    return state


def tail(journal: PastReader) -> Iterator[tuple[int, bytes]]:
    """The last entries with their index, so that a post that repeats a request gets the same answer.

    They reach back beyond the open round, however long it is: a snapshot is never taken inside one.
    """
    taken = journal.latest_snapshot()
    start = max(0, min(journal.size - REMEMBERED_TAIL, taken[0] if taken else 0))
    return enumerate(journal.leaves(start, journal.size), start)


def ended_unclean(journal: PastReader) -> bool:
    """Whether the last run did not end by an orderly stop."""
    last = list(journal.leaves(journal.size - 1, journal.size)) if journal.size else []
    return any(_read(leaf)[0] != TableStopped.KIND for leaf in last)


def next_seance(last: str, wall_ms: int, zone: tzinfo) -> str:
    """The name of a séance that opens now: the day in the casino's ``zone`` and its number that day, ``2026-11-30-1``.

    The day is that of the calendar: one that opens at half past midnight has the name of the new day.
    """
    day, last_day = datetime.fromtimestamp(wall_ms / 1_000, zone).strftime("%Y-%m-%d"), last[: len("2026-11-30")]
    if last_day >= day:  # the clock may have been set back: a name is never given twice
        return f"{last_day}-{int(last.rpartition('-')[2]) + 1}"
    return f"{day}-1"


def _snapshot(game: Game[State], journal: PastReader, state_type: Any) -> tuple[int, State]:
    taken = journal.latest_snapshot()
    if taken is not None:
        size, body = taken
        document = json.loads(body)
        if document["shape"] == codec.shape(state_type):
            state: State = codec.from_plain(state_type, document["state"])
            return size, state
    return 0, game.initial()


def _read(leaf: bytes) -> tuple[str, dict[str, Any]]:
    document = json.loads(leaf)
    return document["type"], document["data"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """How far a replay has come."""

    entries: int
    decisions: int


def replay(
    game: Game[State], leaves: Iterable[bytes], progress: Callable[[Replayed], None] | None = None
) -> tuple[State, Replayed]:
    """Decide every input of a journal again. Raises ReplayError at the first entry that differs.

    Returns the final state and what was replayed.
    """
    state, decisions, index = game.initial(), 0, 0
    for group in _decisions(leaves):
        facts, state = _decide_again(game, state, group, index)
        index += len(facts)
        decisions += 1
        if progress and decisions % 1_000 == 0:
            progress(Replayed(index, decisions))
    return state, Replayed(index, decisions)


@dataclass(slots=True)
class _Group:
    """The entries of one decision."""

    signal: dict[str, Any]
    recorded: list[tuple[str, str]]


def _decisions(leaves: Iterable[bytes]) -> Iterator[_Group]:
    group: _Group | None = None
    for index, leaf in enumerate(leaves):
        kind, text, data = _read_exactly(leaf, index)
        if codec.INPUT in data:
            if group:
                yield group
            group = _Group(data[codec.INPUT], [])
        elif group is None:
            raise ReplayError(index, "belongs to no input")
        group.recorded.append((kind, text))
    if group:
        yield group


def _read_exactly(leaf: bytes, index: int) -> tuple[str, str, dict[str, Any]]:
    """The kind and data of an entry, the data both as text and as read.

    Whether the text is in canonical form is not asked here: it must equal what the rules give, which is.
    """
    envelope = LEAF_PATTERN.fullmatch(leaf)
    if envelope is None:
        raise ReplayError(index, "it does not have the form of an entry")
    try:
        return envelope[10].decode(), envelope[2].decode(), from_json(envelope[2])
    except ValueError as error:
        raise ReplayError(index, f"its data is not JSON: {error}") from None


def _decide_again(game: Game[State], state: State, group: _Group, index: int) -> tuple[tuple[Fact, ...], State]:
    try:
        signal = codec.decode_input(group.signal)
    except codec.CodecError as error:
        raise ReplayError(index, f"its input cannot be read: {error}") from None
    facts = game.decide(state, signal).facts
    again = codec.encode_decision(signal, facts, index)
    if again != group.recorded:
        first = next(
            (at for at, (now, then) in enumerate(zip(again, group.recorded, strict=False)) if now != then),
            min(len(again), len(group.recorded)),
        )
        then = group.recorded[first] if first < len(group.recorded) else "nothing"
        now = again[first] if first < len(again) else "nothing"
        raise ReplayError(index + first, f"the journal has {then}, the rules give {now}")
    for fact in facts:
        state = game.evolve(state, fact)
    return facts, state
