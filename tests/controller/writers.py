"""A writer that does what disks do: it takes its time, it fails, and sometimes it fails after having stored."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from controller.certify.faults import JournalFault
from controller.certify.journal import Appended, Journal
from controller.certify.leaf import Record
from controller.certify.writer import InlineWriter

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit that was asked for."""

    records: tuple[Record, ...]
    snapshot: bytes | None
    keep_checkpoint: bool


class DiskWriter(InlineWriter):
    """A real journal behind a disk that obeys the test."""

    def __init__(self, journal: Journal, on_commit: Callable[[], None] = lambda: None) -> None:
        super().__init__(journal)
        self.asked: list[Commit] = []
        self.done = 0
        self._on_commit = on_commit
        self._gate = asyncio.Event()
        self._gate.set()
        self._fails: bool | None = None  # whether the failing commit is stored

    def hold(self) -> None:
        """Let no commit return, nor store anything, until ``release``."""
        self._gate.clear()

    def release(self) -> None:
        """Go on."""
        self._gate.set()

    def fail_next(self, *, stored: bool) -> None:
        """The next commit raises, and is on the disk all the same, or is not."""
        self._fails = stored

    async def commit(
        self, records: Sequence[Record], *, snapshot: bytes | None = None, keep_checkpoint: bool = False
    ) -> Appended:
        """See ``Certifier``."""
        self.asked.append(Commit(tuple(records), snapshot, keep_checkpoint))
        await self._gate.wait()
        if self._fails is False:
            raise JournalFault("E-JOURNAL-WRITE", "the disk is full and nothing was stored")
        appended = await super().commit(records, snapshot=snapshot, keep_checkpoint=keep_checkpoint)
        if self._fails:
            raise JournalFault("E-JOURNAL-WRITE", "the disk did not answer, and had stored all")
        self.done += 1
        self._on_commit()
        return appended
