"""A certified entry survives any crash: every state of the disk that the real writer could leave behind is tried.

The writer runs once under strace. Then the disk is built again as it was after each of its calls, in three variants
(``proof.disk``), and on each the journal is opened as a start would, and verified in full. Wanted is that everything
promised before that call is there, and nothing is damaged. Two controls show that losses would be found: a disk that
says that it synced and did not, and a writer with ``synchronous=NORMAL``.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from controller.certify.faults import CertifyFault
from controller.certify.journal import Journal
from controller.certify.log_keys import LogKeys
from controller.certify.reader import Reader
from controller.certify.verify import verify
from drivers.clock import ManualClock
from proof.disk import CALLS, Content, Disk, read_trace
from proof.recorded_writer import CERTIFIED, COSIGNED, CREATED, FILE, TABLE
from proof.results import Result, none_of

COMMITS = 800
"""Commits of the full proof: some 5,000 calls."""

CONTROL_COMMITS = 120
AT_LEAST = 15_000
SHARES = 32
"""Parts in which the states are tried, so that progress shows."""

KEYS = LogKeys.of(TABLE.verifier)
VARIANTS = ("killed", "synced", "torn")


@dataclass(frozen=True, slots=True)
class Recording:
    """A run of the writer: its folder, its trace, and the root at each size that it reached."""

    folder: Path
    trace: Path
    roots: dict[int, bytes]


def record(work: Path, commits: int, *words: str) -> Recording:
    """Let the writer write into a folder under ``work``, under strace."""
    folder, trace = work / "disk", work / "trace"
    folder.mkdir()
    writer = [sys.executable, "-m", "proof.recorded_writer", str(folder), str(commits), *words]
    strace = ["strace", "-f", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", str(trace)]
    subprocess.run([*strace, *writer], check=True, stdout=subprocess.DEVNULL)
    with Reader(folder / FILE) as reader:
        roots = {size: reader.root(size) for size in range(1, reader.size + 1)}
    return Recording(folder, trace, roots)


@dataclass(slots=True)
class Promised:
    """What the writer had said so far."""

    created: bool = False
    certified: int = 0
    cosigned: int = 0

    def hear(self, said: bytes) -> None:
        word, _, size = said.decode().strip().partition(" ")
        match word:
            case _ if word == CREATED:
                self.created = True
            case _ if word == CERTIFIED:
                self.certified = int(size)
            case _ if word == COSIGNED:
                self.cosigned = int(size)


def states(recording: Recording, *, lies: bool = False) -> Iterator[tuple[int, Disk, Promised]]:
    """After each call that changed anything: its number, the disk, and what was promised before it."""
    disk, promised = Disk(recording.folder, lies=lies), Promised()
    number = 0
    for call in read_trace(recording.trace):
        if call.name == "write" and call.words[0] == "1":
            promised.hear(call.strings[0])
            continue
        if disk.take(call):
            number += 1
            yield number, disk, promised


def try_share(recording: Recording, share: int, shares: int, variants: Sequence[str], lies: bool) -> Counter[str]:
    """Try every ``shares``-th state, from ``share`` on: how many were tried, lost something, or were damaged."""
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir=_memory()) as work:
        for number, disk, promised in states(recording, lies=lies):
            if number % shares != share:
                continue
            for variant in variants:
                chance = random.Random(f"{number} {variant}")
                content = disk.torn(chance) if variant == "torn" else getattr(disk, variant)()
                counted["tried"] += 1
                counted[_judge(Path(work), content, promised, recording.roots)] += 1
    return counted


def _memory() -> str | None:
    """A folder in memory where there is one: thousands of states would wear out a disk."""
    shared = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    return str(shared) if os.access(shared, os.W_OK) else None


def _judge(work: Path, content: Content, promised: Promised, roots: dict[int, bytes]) -> str:
    """Start on this disk, and say what became of what was promised."""
    folder = work / "disk"
    folder.mkdir()
    try:
        for name, data in content.items():
            (folder / name).write_bytes(data)
        return _judge_start(folder / FILE, promised, roots)
    finally:
        shutil.rmtree(folder)


def _judge_start(path: Path, promised: Promised, roots: dict[int, bytes]) -> str:
    if not path.exists():
        if promised.created:
            return "lost"
        Journal.create(path, TABLE, allow_volatile=True)
    try:
        with closing(Journal.open(path, TABLE, ManualClock(), "f" * 16, lambda: "ntp", allow_volatile=True)) as journal:
            size, root, cosigned = journal.size, journal.root, _cosigned(journal)
    except CertifyFault:
        return "damaged"
    if size < promised.certified or cosigned < promised.cosigned:
        return "lost"
    sound = verify(path, KEYS, processes=1).ok and (size == 0 or roots.get(size) == root)
    return "sound" if sound else "damaged"


def _cosigned(journal: Journal) -> int:
    (reached,) = journal._connection.execute("SELECT max(size) FROM cosignature").fetchone()
    return int(reached or 0)


def enumerate_states(recording: Recording, *, variants: Sequence[str] = VARIANTS, lies: bool = False) -> Counter[str]:
    """Try all states of a recording, on every processor."""
    counted: Counter[str] = Counter()
    one = partial(try_share, recording, shares=SHARES, variants=variants, lies=lies)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=get_context("spawn")) as pool:
        for share in pool.map(one, range(SHARES)):
            counted.update(share)
            print(f"    {counted['tried']:>7,} states, {counted['sound']:,} sound", end="\r", flush=True)
    print()
    return counted


def prove() -> Iterator[Result]:
    """The full enumeration, and both controls."""
    with tempfile.TemporaryDirectory() as work:
        found = enumerate_states(record(Path(work), COMMITS))
    tried, kept = found["tried"], "states of the disk after a crash"
    yield none_of("promised entries or cosignatures lost", found["lost"], tried, kept, at_least=AT_LEAST)
    yield none_of("journals damaged, or not those that were signed", found["damaged"], tried, kept, at_least=AT_LEAST)
    with tempfile.TemporaryDirectory() as work:
        recording = record(Path(work), CONTROL_COMMITS)
        yield _control("a disk that lies about syncing", enumerate_states(recording, variants=["synced"], lies=True))
    with tempfile.TemporaryDirectory() as work:
        careless = record(Path(work), CONTROL_COMMITS, "--careless")
        yield _control("synchronous=NORMAL", enumerate_states(careless, variants=["synced"]))


def _control(what: str, found: Counter[str]) -> Result:
    lost = found["lost"] + found["damaged"]
    return Result(
        claim=f"control: losses found with {what}",
        found=lost,
        tried=found["tried"],
        what="states of the disk",
        goal="some",
        met=lost > 0,
    )
