"""The writer: commits in a thread of its own, because a sync to a card may take tens of milliseconds.

    table task  ──── commit(records) ────►  queue  ────►  writer thread: journal.append
        ▲                                                       │
        └──────────── call_soon_threadsafe ◄────────────────────┘

The event loop goes on meanwhile: kernel timestamps, keep-alives and the watchdog do not wait for the disk. Work is done
one piece after the other, in the order asked, by the one thread that uses the journal.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from controller.certify.journal import Appended, Journal
from controller.certify.leaf import Record

T = TypeVar("T")


class Certifier(Protocol):
    """What the table needs: certify facts, and have other work on the journal done in between."""

    async def commit(
        self, records: Sequence[Record], *, snapshot: bytes | None = None, keep_checkpoint: bool = False
    ) -> Appended:
        """See ``Journal.append``. One at a time: what is decided next follows from what is certified."""
        ...

    async def call(self, work: Callable[[Journal], T]) -> T:
        """Let ``work`` use the journal (cursors, cosignatures, reading) when it is its turn."""
        ...

    def close(self) -> None:
        """Finish what was asked and close the journal."""
        ...


class _Errand(Generic[T]):
    """One piece of work and who waits for it. As a context it hands any failure of its body to the one who waits."""

    __slots__ = ("_future", "_loop", "work")

    def __init__(self, work: Callable[[Journal], T]) -> None:
        self.work = work
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()

    async def result(self) -> T:
        return await self._future

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if error is not None:
            self._loop.call_soon_threadsafe(self._settle, partial(self._future.set_exception, error))
        return True

    def run(self, journal: Journal) -> None:
        """Do the work in the writer's thread."""
        with self:
            result = self.work(journal)
            self._loop.call_soon_threadsafe(self._settle, partial(self._future.set_result, result))

    def _settle(self, how: Callable[[], None]) -> None:
        if not self._future.done():  # whoever waited may have been cancelled; the work is done all the same
            how()


class Writer:
    """The journal in a thread of its own."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._errands: SimpleQueue[_Errand[Any] | None] = SimpleQueue()
        self._committing = False
        self._thread = threading.Thread(target=self._run, name="journal-writer", daemon=True)
        self._thread.start()

    async def commit(
        self, records: Sequence[Record], *, snapshot: bytes | None = None, keep_checkpoint: bool = False
    ) -> Appended:
        """See ``Certifier``. Raises LeafFault, and JournalFault, after which nothing can be certified any more."""
        if self._committing:
            raise RuntimeError("a commit was asked for while another one was under way")
        self._committing = True
        try:
            return await self.call(partial(_append, records, snapshot, keep_checkpoint))
        finally:
            self._committing = False

    async def call(self, work: Callable[[Journal], T]) -> T:
        """See ``Certifier``. What ``work`` raises is raised here."""
        errand = _Errand(work)
        self._errands.put(errand)
        return await errand.result()

    def close(self) -> None:
        """Finish what was asked, end the thread and close the journal."""
        self._errands.put(None)
        self._thread.join()
        self._journal.close()

    def _run(self) -> None:
        while (errand := self._errands.get()) is not None:
            errand.run(self._journal)


class InlineWriter:
    """The journal in the caller's thread: for simulation, where time stands still while the disk works."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def commit(
        self, records: Sequence[Record], *, snapshot: bytes | None = None, keep_checkpoint: bool = False
    ) -> Appended:
        """See ``Certifier``."""
        return _append(records, snapshot, keep_checkpoint, self._journal)

    async def call(self, work: Callable[[Journal], T]) -> T:
        """See ``Certifier``."""
        return work(self._journal)

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()


def _append(records: Sequence[Record], snapshot: bytes | None, keep_checkpoint: bool, journal: Journal) -> Appended:
    return journal.append(records, snapshot=snapshot, keep_checkpoint=keep_checkpoint)
