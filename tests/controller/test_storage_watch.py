"""Free space for the journal: each change of level is told once, and a level does not come and go at its threshold."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.rehearsal.virtual_time import LoopClock, VirtualTimeLoop
from controller.storage_watch import CHECK_S, LEVELS, RECOVERY, StorageWatch
from drivers.clock import ManualClock
from games.signals import StorageRunsLow

TOTAL_BYTES = 1_000_000
HARDER = {"ok": 0, "warn": 1, "no_new_round": 2, "close": 3}


class Disk:
    """A disk of a size that a test can see through."""

    def __init__(self, percent: float = 100) -> None:
        self.free_bytes = int(TOTAL_BYTES * percent / 100)

    def measure(self, _: Path) -> tuple[int, int]:
        return self.free_bytes, TOTAL_BYTES


@pytest.fixture
def levels() -> Callable[[Sequence[float]], list[str]]:
    """What is told while the free space goes through some per cents."""

    def told(percents: Sequence[float]) -> list[str]:
        found: list[StorageRunsLow] = []
        disk = Disk()
        watch = StorageWatch(Path(), ManualClock(), found.append, disk.measure)
        for percent in percents:
            disk.free_bytes = int(TOTAL_BYTES * percent / 100)
            watch.check()
        return [signal.level for signal in found]

    return told


@pytest.mark.parametrize(
    ("percent", "level"),
    [
        (100, "ok"),
        (20, "ok"),
        (19, "warn"),
        (10, "warn"),
        (9, "no_new_round"),
        (5, "no_new_round"),
        (4, "close"),
        (0, "close"),
    ],
)
def test_storage_at_the_start_tells_its_level_whatever_it_is(
    levels: Callable[[Sequence[float]], list[str]], percent: float, level: str
) -> None:
    assert levels([percent]) == [level], "a level that was certified before a restart may be over by now"


def test_storage_that_fills_tells_each_level_once(levels: Callable[[Sequence[float]], list[str]]) -> None:
    assert levels([50, 40, 19, 15, 11, 9, 6, 4, 2, 0]) == ["ok", "warn", "no_new_round", "close"]


def test_storage_that_is_cleared_tells_the_way_back(levels: Callable[[Sequence[float]], list[str]]) -> None:
    assert levels([4, 6, 7, 11, 12, 21, 22]) == ["close", "no_new_round", "warn", "ok"]


def test_storage_at_a_threshold_does_not_come_and_go(levels: Callable[[Sequence[float]], list[str]]) -> None:
    for threshold, level in LEVELS:
        flicker = [threshold - 1, threshold, threshold + RECOVERY - 1] * 5
        assert levels(flicker) == [level]


@given(st.lists(st.integers(0, 100), max_size=40))
def test_storage_whatever_happens_tells_changes_only_and_never_a_level_too_mild(percents: list[int]) -> None:
    found: list[StorageRunsLow] = []
    disk = Disk()
    watch = StorageWatch(Path(), ManualClock(), found.append, disk.measure)
    for percent in percents:
        disk.free_bytes = TOTAL_BYTES * percent // 100
        watch.check()
        due = next((level for threshold, level in LEVELS if percent < threshold), "ok")
        assert HARDER[found[-1].level] >= HARDER[due]
        assert found[-1].free_bytes >= 0
    told = [signal.level for signal in found]
    assert all(one != other for one, other in pairwise(told))


def test_storage_real_disk_is_measured_where_the_journal_is(tmp_path: Path) -> None:
    found: list[StorageRunsLow] = []
    StorageWatch(tmp_path, ManualClock(), found.append).check()
    assert found[0].free_bytes > 0


def test_storage_watch_looks_again_and_again_until_cancelled() -> None:
    async def story() -> list[StorageRunsLow]:
        loop, found, disk = asyncio.get_running_loop(), list[StorageRunsLow](), Disk()
        watch = StorageWatch(Path(), LoopClock(loop), found.append, disk.measure)
        task = loop.create_task(watch.run())
        loop.call_later(CHECK_S / 2, lambda: setattr(disk, "free_bytes", TOTAL_BYTES // 25))
        ended = asyncio.Event()
        loop.call_later(3 * CHECK_S, ended.set)
        await ended.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        return found

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        found = runner.run(story())
    assert [signal.level for signal in found] == ["ok", "close"]
    assert found[1].at_us - found[0].at_us == CHECK_S * 1_000_000
