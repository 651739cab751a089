"""A séance's entries in a journal, and its statement made from them in small steps.

The journal is searched from its end, because a séance that is asked for is nearly always the last one. Each step reads
at most ``STEP_ENTRIES`` entries: a table that plays does other work between two steps.
"""

import json
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from controller.codec import decode_fact
from controller.registers.faults import RegisterFault
from controller.registers.seance import Seance
from controller.registers.statement import Statement, make_statement
from games.seance import SeanceClosed, SeanceOpened
from games.statement import SeanceCertified

STEP_ENTRIES = 64
"""Entries read in one step."""

_OPENED = f'"type":"{SeanceOpened.KIND}"}}'.encode()
_CERTIFIED = f'"type":"{SeanceCertified.KIND}"}}'.encode()
_CLOSED = f'"type":"{SeanceClosed.KIND}"}}'.encode()

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Certified:
    """The entry that certified a séance."""

    index: int
    fact: SeanceCertified


class Entries(Protocol):
    """A journal, as far as registers read it. All methods raise JournalFault."""

    @property
    def size(self) -> int:
        """How many entries are certified."""
        ...

    def leaves(self, start: int, stop: int) -> Iterable[bytes]:
        """The entries ``start`` to ``stop - 1``."""
        ...

    def root(self, size: int) -> bytes:
        """The root over the first ``size`` entries."""
        ...


def find_seance(entries: Entries, name: str = "") -> Generator[None, None, range]:
    """The entries of séance ``name``, or of the last one that was closed. Raises RegisterFault (E-SEANCE-UNKNOWN)."""
    label = f'"seance":"{name}",'.encode() if name else b'"seance":"'
    stop, closing = entries.size, None
    while stop > 0:
        start = max(0, stop - STEP_ENTRIES)
        for index, leaf in reversed(list(enumerate(entries.leaves(start, stop), start))):
            if closing is None and leaf.endswith(_CLOSED) and label in leaf:
                closing = index
            elif closing is not None and leaf.endswith(_OPENED):
                return range(index, closing + 1)
        stop = start
        yield
    sought = f"séance {name}" if name else "séance"
    raise RegisterFault("E-SEANCE-UNKNOWN", f"this journal has no closed {sought}")


def state_from(entries: Entries, name: str = "") -> Generator[None, None, Statement]:
    """The statement of a séance of a journal; of the last one that was closed when ``name`` is empty.

    Raises RegisterFault (E-SEANCE-UNKNOWN), CodecError and JournalFault.
    """
    found = yield from find_seance(entries, name)
    yield
    seance = Seance()
    for start in range(found.start, found.stop, STEP_ENTRIES):
        for leaf in entries.leaves(start, min(start + STEP_ENTRIES, found.stop)):
            seance.take(leaf)
        yield
    return make_statement(seance, entries.root(found.stop))


def find_certification(entries: Entries, name: str, closing: int) -> Generator[None, None, Certified | None]:
    """What certified séance ``name``, which entry ``closing`` closed; None while nobody has. Raises JournalFault."""
    stop = entries.size
    while stop > closing:
        start = max(closing, stop - STEP_ENTRIES)
        for index, leaf in enumerate(entries.leaves(start, stop), start):
            if leaf.endswith(_CERTIFIED):
                fact = decode_fact(SeanceCertified.KIND, json.loads(leaf)["data"])
                if isinstance(fact, SeanceCertified) and fact.seance == name:
                    return Certified(index, fact)
        stop = start
        yield
    return None


def at_once(steps: Generator[None, None, Result]) -> Result:
    """All steps, one after the other: what they come to."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: Result = ended.value
            return result
