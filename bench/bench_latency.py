"""Certified latency: from an observation in the inbox to the return of its commit, beside a raw append and sync.

The raw append writes as many bytes to another file on the same disk as SQLite writes for such a commit, in turn with
the observations, so that both meet the same disk.

    python -m bench latency
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.figures import Figure
from bench.stage import BUILD, OpenTable, open_table
from games.signals import ClockStepped

OBSERVATIONS = 2_000
WARMING = 200
"""Observations that only tell how many bytes a commit writes."""

BOUND = 1.5


class RawFile:
    """Appends and syncs."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)

    def append(self, data: bytes) -> float:
        """The milliseconds that one write and one fdatasync take."""
        began_s = time.perf_counter()
        os.write(self._descriptor, data)
        os.fdatasync(self._descriptor)
        return (time.perf_counter() - began_s) * 1_000

    def close(self) -> None:
        """Let the file go."""
        os.close(self._descriptor)


def latency() -> Iterator[Figure]:
    """The median and the 99th percentile."""
    certified, raw, size = asyncio.run(_measure())
    for name, of in (("median", statistics.median), ("p99", p99)):
        beside = f"{of(raw):.3f} ms, append + fdatasync of {size:,} bytes"
        yield Figure(
            name=f"certified latency, {name}",
            measured=f"{of(certified):.3f} ms",
            beside=beside,
            ratio=of(certified) / of(raw),
            bound=BOUND,
        )


def p99(values: list[float]) -> float:
    """The 99th percentile."""
    return statistics.quantiles(values, n=100)[98]


async def _measure() -> tuple[list[float], list[float], int]:
    """Milliseconds of each observation, of each raw append, and the bytes of the latter."""
    async with open_table() as table:
        size = int(statistics.median([await _bytes_of_one(table) for _ in range(WARMING)]))
        data, certified, raw = bytes(size), [], []
        with tempfile.TemporaryDirectory(dir=BUILD) as folder, closing(RawFile(Path(folder) / "raw")) as file:
            for _ in range(OBSERVATIONS):
                certified.append(await _observe(table))
                raw.append(file.append(data))
        return certified, raw, size


async def _observe(table: OpenTable) -> float:
    """Milliseconds from the inbox to the commit. A step of the clock goes the way of every observation."""
    certified: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    began_s = time.perf_counter()
    table.inbox.put(
        ClockStepped(at_us=0, by_ms=1_000, quality="free"),
        lambda _: certified.set_result((time.perf_counter() - began_s) * 1_000),
    )
    return await certified


async def _bytes_of_one(table: OpenTable) -> int:
    before = _written_bytes()
    await _observe(table)
    return _written_bytes() - before


def _written_bytes() -> int:
    """What this process has written so far, by Linux's account."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines())
    return int(counters["wchar"])
