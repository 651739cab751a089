"""The writer's thread and the inline writer: one interface, one order, every failure told to the one who asked."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from controller.certify.faults import JournalFault, LeafFault
from controller.certify.journal import Journal
from controller.certify.leaf import Record
from controller.certify.writer import Certifier, InlineWriter, Writer
from tests.controller.certify.workshop import open_journal, stakes

Opening = Callable[[Journal], Certifier]
BOTH = pytest.mark.parametrize("opening", [Writer, InlineWriter])


@BOTH
async def test_commit_certifies_and_call_uses_the_same_journal(path: Path, opening: Opening) -> None:
    with closing(opening(open_journal(path))) as writer:
        appended = await writer.commit(stakes(3), snapshot=b"state", keep_checkpoint=True)
        assert (appended.first_index, appended.size) == (0, 3)
        assert await writer.call(Journal.latest_snapshot) == (3, b"state")
        await writer.call(lambda journal: journal.set_cursor("mirror", 2))
        assert await writer.call(lambda journal: journal.cursor("mirror")) == 2
        assert (await writer.commit(stakes(1))).first_index == 3


@BOTH
async def test_record_that_cannot_be_certified_is_told_and_the_writer_goes_on(path: Path, opening: Opening) -> None:
    with closing(opening(open_journal(path))) as writer:
        with pytest.raises(LeafFault):
            await writer.commit([Record("fr.a.v1", "not json", None)])
        assert (await writer.commit(stakes(1))).size == 1


@BOTH
async def test_failed_commit_is_told_and_so_is_every_one_after_it(
    path: Path, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(path)
    with closing(opening(journal)) as writer:
        await writer.commit(stakes(1))
        journal._connection.execute("PRAGMA query_only = ON")
        for _ in range(2):
            with pytest.raises(JournalFault) as caught:
                await writer.commit(stakes(1))
            assert caught.value.code == "E-JOURNAL-WRITE"
    with closing(open_journal(path)) as reopened:
        assert reopened.size == 1


@BOTH
async def test_writer_that_was_closed_leaves_the_journal_to_the_next(path: Path, opening: Opening) -> None:
    opening(open_journal(path)).close()
    open_journal(path).close()


async def test_work_is_done_in_the_order_asked_by_one_thread_that_is_not_the_loops(path: Path) -> None:
    done: list[tuple[int, int]] = []

    def note(number: int) -> Callable[[Journal], None]:
        return lambda journal: done.append((number, threading.get_ident()))

    with closing(Writer(open_journal(path))) as writer:
        await asyncio.gather(*(writer.call(note(number)) for number in range(50)))
    threads = {thread for _, thread in done}
    assert [number for number, _ in done] == list(range(50))
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


async def test_loop_goes_on_while_the_disk_works(path: Path) -> None:
    with closing(Writer(open_journal(path))) as writer:
        release = threading.Event()
        waiting = asyncio.ensure_future(writer.call(lambda journal: release.wait()))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not waiting.done()
        release.set()
        assert await waiting


async def test_second_commit_while_one_is_under_way_is_a_bug_that_is_told(path: Path) -> None:
    with closing(Writer(open_journal(path))) as writer:
        release = threading.Event()
        held = asyncio.ensure_future(writer.call(lambda journal: release.wait()))
        first = asyncio.ensure_future(writer.commit(stakes(1)))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another one was under way"):
            await writer.commit(stakes(1))
        release.set()
        assert (await first).size == 1
        assert await held
        assert (await writer.commit(stakes(1))).size == 2


async def test_commit_whose_caller_was_cancelled_is_done_all_the_same(path: Path) -> None:
    with closing(Writer(open_journal(path))) as writer:
        release = threading.Event()
        held = asyncio.ensure_future(writer.call(lambda journal: release.wait()))
        cancelled = asyncio.ensure_future(writer.commit(stakes(2)))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        release.set()
        await held
        assert await writer.call(lambda journal: journal.size) == 2
        assert (await writer.commit(stakes(1))).first_index == 2


async def test_bug_in_the_work_reaches_the_one_who_asked_and_nobody_else(path: Path) -> None:
    with closing(Writer(open_journal(path))) as writer:

        def explode(journal: Journal) -> None:
            raise ZeroDivisionError(journal.size)

        results = await asyncio.gather(
            writer.call(explode), writer.call(lambda journal: journal.size), return_exceptions=True
        )
        assert isinstance(results[0], ZeroDivisionError)
        assert results[1] == 0


async def test_work_asked_before_the_closing_is_finished_first(path: Path) -> None:
    writer = Writer(open_journal(path))
    asked = asyncio.ensure_future(writer.commit(stakes(5)))
    await asyncio.sleep(0)
    writer.close()
    assert (await asked).size == 5
    with closing(open_journal(path)) as journal:
        assert journal.size == 5
