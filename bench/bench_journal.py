"""The journal: what "certified" costs beside a bare append, and whether a long journal starts and verifies quickly.

    python -m bench.bench_journal [--entries 1000000] [--commits 2000]

The bare append is one ``write`` and one ``fdatasync`` to another file on the same disk, in turn with the commits, once
with as many bytes as SQLite wrote for the commit and once with as many as the entry has.
"""

import argparse
import asyncio
import os
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from controller.certify.journal import Journal
from controller.certify.leaf import Record, canonical
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer
from controller.certify.verify import verify
from controller.certify.writer import Writer
from drivers.clock import SystemClock

SIGNER = Signer.generate("bench.example/table/t00/1")
BUILD = Path("build/bench")
"""On the same disk as the checkout: a bench on a memory file system says nothing about certifying."""

LATENCY_GOAL = 1.5
START_GOAL = 1.2
VERIFY_GOAL = 200_000
BATCH = 10_000
STARTS = 25

FRAME_BYTES = 4_096 + 24
"""A page in SQLite's write-ahead log, with its header."""

LAST_FRAME_AT = 16
"""Where SQLite's index of that log says how many frames are valid."""


def records(count: int, first: int) -> list[Record]:
    """Stakes, as a table certifies them."""
    return [
        Record(
            "fr.roulette.stakes.placed.v1",
            canonical({"at": number, "bets": [["plein-17", 500]], "credit": 12_500 + number, "post": number % 12}),
            "2026-11-30-1",
        )
        for number in range(first, first + count)
    ]


def opened(path: Path) -> Journal:
    """The journal ``path``, open."""
    return Journal.open(path, SIGNER, SystemClock(), "0" * 16, lambda: "free", allow_volatile=True)


def start(path: Path) -> None:
    """One start, and the end of it."""
    opened(path).close()


def verdict(met: bool) -> str:
    """Whether a goal is met."""
    return "met" if met else "NOT MET"


def took(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def p99(times: list[float]) -> float:
    """The 99th percentile."""
    return statistics.quantiles(times, n=100)[98]


class BareFile:
    """Appends and syncs."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append(self, data: bytes) -> None:
        """One write, one sync."""
        os.write(self._descriptor, data)
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Let the file go."""
        os.close(self._descriptor)


async def latencies(folder: Path, commits: int) -> tuple[list[float], list[float], list[float], list[int]]:
    """Seconds of a commit, of a bare append of SQLite's bytes, of one of the entry's bytes; and SQLite's bytes."""
    path = folder / "latency.sqlite"
    Journal.create(path, SIGNER, allow_volatile=True)
    journal = opened(path)
    journal.append(records(1, 0))
    # Closed only after the journal: closing it drops the process's locks on it.
    index = os.open(f"{path}-shm", os.O_RDONLY)
    certified, bare, bare_entry, sizes = [], [], [], []
    with (
        closing(BareFile(folder / "bare")) as file,
        closing(BareFile(folder / "entry")) as entry_file,
        closing(Writer(journal)) as writer,
    ):
        frames = 0
        for number in range(commits):
            (record,) = records(1, number)
            began_s = time.perf_counter()
            await writer.commit([record])
            certified.append(time.perf_counter() - began_s)
            before, (frames,) = frames, struct.unpack("=I", os.pread(index, 4, LAST_FRAME_AT))
            sizes.append(FRAME_BYTES * (frames - before if frames > before else frames))
            content, entry = bytes(sizes[-1]), bytes(len(journal.leaf(journal.size - 1)))
            bare.append(took(partial(file.append, content)))
            bare_entry.append(took(partial(entry_file.append, entry)))
    os.close(index)
    return certified, bare, bare_entry, sizes


def print_latency(folder: Path, commits: int) -> None:
    """Certified latency beside the bare append."""
    certified, bare, bare_entry, sizes = asyncio.run(latencies(folder, commits))
    for name, of in (("median", statistics.median), ("p99", p99)):
        ratio, entry_ratio = of(certified) / of(bare), of(certified) / of(bare_entry)
        print(
            f"certified, {name:>6}: {ratio:.2f} x a bare append of the same bytes "
            f"({of(certified) * 1e3:.3f} / {of(bare) * 1e3:.3f} ms; goal {LATENCY_GOAL}, "
            f"{verdict(ratio <= LATENCY_GOAL)}); {entry_ratio:.2f} x one of the entry's bytes"
        )
    print(f"    {commits} commits of one record; SQLite writes {statistics.median(sizes):,.0f} bytes in the median")


def filled(path: Path, entries: int) -> float:
    """A closed journal of ``entries`` in large commits; the seconds that the commits took."""
    Journal.create(path, SIGNER, allow_volatile=True)
    seconds = 0.0
    with closing(opened(path)) as journal:
        while journal.size < entries:
            batch = records(min(BATCH, entries - journal.size), journal.size)
            seconds += took(partial(journal.append, batch))
    return seconds


def print_length(folder: Path, entries: int) -> None:
    """Appending in batches, starting, and verifying, with a long journal."""
    short, long = folder / "short.sqlite", folder / "long.sqlite"
    filled(short, 1_000)
    seconds = filled(long, entries)
    print(f"append in commits of {BATCH:,}: {entries / seconds:,.0f} entries/s")
    starts: dict[Path, list[float]] = {short: [], long: []}
    for _ in range(STARTS):
        for path, times in starts.items():
            times.append(took(partial(start, path)))
    long_s, short_s = statistics.median(starts[long]), statistics.median(starts[short])
    print(
        f"start with {entries:,} entries: {long_s / short_s:.2f} x the start with 1,000 "
        f"({long_s * 1e3:.1f} / {short_s * 1e3:.1f} ms; goal {START_GOAL}, {verdict(long_s <= START_GOAL * short_s)})"
    )
    for processes in (1, len(os.sched_getaffinity(0))):
        began_s = time.perf_counter()
        result = verify(long, LogKeys.of(SIGNER.verifier), processes=processes)
        rate = entries / (time.perf_counter() - began_s)
        assert result.ok, result
        goal = f"goal {VERIFY_GOAL:,}, {verdict(rate >= VERIFY_GOAL)}" if processes > 1 else "alone"
        print(f"verify with {processes} processes: {rate:,.0f} entries/s ({goal})")


def main(entries: int = 1_000_000, commits: int = 2_000) -> None:
    """Print the figures."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        print_latency(Path(folder), commits)
        print_length(Path(folder), entries)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the journal.")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=2_000)
    main(**vars(parser.parse_args()))
