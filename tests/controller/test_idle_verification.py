"""The daily verification: when the table is idle, once a day, by a process of its own that play ends at once."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from controller import idle_verification
from controller.certify.log_keys import LogKeys
from controller.idle_verification import IdleVerification
from drivers.clock import ManualClock
from games.custody import VerificationEnded
from games.rules import Input
from tests.controller.certify.workshop import OTHER_SIGNER, SIGNER, build, forgery

PATIENCE_S = 20.0
DAY_MS = 86_400_000


class Table:
    """A table that is idle or not, and certifies what it is told."""

    def __init__(self, file: Path, keys: LogKeys, *program: str) -> None:
        self.clock = ManualClock()
        self.is_idle = True
        self.certified: list[VerificationEnded] = []
        self.looked = 0
        self._stirred = asyncio.Event()
        extra = {"program": program} if program else {}
        self.part = IdleVerification(
            file,
            keys,
            clock=self.clock,
            idle=self._idle,
            verified_day=lambda: self.certified[-1].day if self.certified else "",
            emit=self._emit,
            **extra,
        )

    def _idle(self) -> bool:
        self.looked += 1
        self._stirred.set()
        return self.is_idle

    def _emit(self, signal: Input) -> None:
        assert isinstance(signal, VerificationEnded)
        self.certified.append(signal)
        self._stirred.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._stirred.clear()
                await self._stirred.wait()

    async def lives(self, story: Callable[["Table"], Awaitable[None]]) -> None:
        task = asyncio.create_task(self.part.run())
        try:
            await story(self)
        finally:
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled(), task.exception()


@pytest.fixture(autouse=True)
def without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The looks follow each other at once."""
    monkeypatch.setattr(idle_verification, "LOOK_EVERY_S", 0.005)
    monkeypatch.setattr(idle_verification, "AGAIN_AFTER_S", 0.02)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return build(tmp_path / "journal.db", [100, 200])


KEYS = LogKeys.of(SIGNER.verifier)


def lose(file: Path, at: int, count: int) -> None:
    """The disk gives zeros for these bytes from now on."""
    content = bytearray(file.read_bytes())
    content[at : at + count] = bytes(count)
    file.write_bytes(content)


async def test_journal_that_agrees_is_certified_as_verified_once_a_day(journal: Path) -> None:
    table = Table(journal, KEYS)

    async def story(table: Table) -> None:
        await table.until(lambda: len(table.certified) == 1)
        looked = table.looked
        await table.until(lambda: table.looked > looked + 20)
        assert len(table.certified) == 1
        table.clock.wall_offset_ms += DAY_MS
        await table.until(lambda: len(table.certified) == 2)

    await table.lives(story)
    first, second = table.certified
    assert (first.size, first.code, first.detail) == (300, "", "")
    assert len(bytes.fromhex(first.root)) == 32
    assert first.day < second.day


async def test_journal_that_was_altered_is_certified_with_what_is_wrong(journal: Path) -> None:
    with forgery(journal) as connection:
        ((leaf,),) = connection.execute("SELECT leaf FROM log WHERE idx = 41").fetchall()
        connection.execute("UPDATE log SET leaf = ? WHERE idx = 41", (leaf.replace(b"plein-17", b"plein-18"),))
    table = Table(journal, KEYS)
    await table.lives(lambda table: table.until(lambda: bool(table.certified)))
    (found,) = table.certified
    assert found.code == "E-JOURNAL-ALTERED"
    assert "41" in found.detail
    assert (found.size, found.root) == (0, "")


async def test_journal_of_another_key_is_certified_as_such(journal: Path) -> None:
    table = Table(journal, LogKeys.of(OTHER_SIGNER.verifier))
    await table.lives(lambda table: table.until(lambda: bool(table.certified)))
    assert table.certified[0].code == "E-JOURNAL-KEY"


async def test_journal_whose_page_the_disk_lost_is_certified_as_damaged(journal: Path) -> None:
    lose(journal, 3 * 4_096, 4_096)
    table = Table(journal, KEYS)
    await table.lives(lambda table: table.until(lambda: bool(table.certified)))
    assert table.certified[0].code in {"E-JOURNAL-DAMAGED", "E-JOURNAL-ALTERED"}


async def test_file_that_is_no_journal_any_more_is_certified_as_foreign(journal: Path) -> None:
    lose(journal, 0, 4_096)
    table = Table(journal, KEYS)
    await table.lives(lambda table: table.until(lambda: bool(table.certified)))
    assert table.certified[0].code == "E-JOURNAL-FOREIGN"


async def test_table_that_plays_is_left_alone(journal: Path) -> None:
    table = Table(journal, KEYS, "/nonexistent/verifier")
    table.is_idle = False
    await table.lives(lambda table: table.until(lambda: table.looked > 20))
    assert table.certified == []


async def test_play_that_begins_ends_the_verification(journal: Path, tmp_path: Path) -> None:
    """The process would never end by itself; that it is gone is seen by the end of its pipe."""
    began = tmp_path / "began"
    endless = f"import pathlib, signal; pathlib.Path({str(began)!r}).touch(); signal.pause()"
    table = Table(journal, KEYS, sys.executable, "-c", endless)

    async def story(table: Table) -> None:
        await table.until(began.exists)
        table.is_idle = False
        looked = table.looked
        await table.until(lambda: table.looked > looked + 5)  # it looks again only when the process is gone

    await table.lives(story)
    assert table.certified == []


@pytest.mark.parametrize("status", [5, 70], ids=["unreadable", "crashed"])
async def test_verification_that_could_not_be_done_certifies_nothing_and_is_tried_again(
    journal: Path, tmp_path: Path, status: int
) -> None:
    tries = tmp_path / "tries"
    program = f"import sys; open({str(tries)!r}, 'a').write('x'); sys.exit({status})"
    table = Table(journal, KEYS, sys.executable, "-c", program)
    await table.lives(lambda table: table.until(lambda: tries.exists() and len(tries.read_text()) >= 2))
    assert table.certified == []


async def test_journal_that_is_not_there_contradicts_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path / "none.db", KEYS)
    await table.lives(lambda table: table.until(lambda: table.looked >= 3))
    assert table.certified == []
