"""Nothing is lost and nothing has a second effect, whatever dies or tears between a table and the mirror.

A real table, a real mosquitto and a real mirror, as processes; stakes flow all the time. In each run two to five
faults come in random order: the broker is killed, restarted, refuses; the network of either side is cut, stands still,
is slow; the table or the mirror is killed. Then the weather clears, everything is delivered, and the two databases are
compared byte for byte, as is each answer that a post got with the entry that decided it.
"""

import asyncio
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from proof.results import Result, none_of
from tests.system.storm import Compared, storm

RUNS = 200
STORMS = 10
"""Each begins with an empty journal and has its own seed."""


def _program(name: str) -> str:
    paths = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    found = shutil.which(name, path=paths)
    if found is None:
        raise SystemExit(f"{name} is not installed, and this proof needs it")
    return found


async def _storms() -> list[Compared]:
    found: list[Compared] = []
    for seed in range(1, STORMS + 1):
        with tempfile.TemporaryDirectory() as work:
            async for one in storm(Path(work), _program, RUNS // STORMS, seed):
                found.append(one)
                faults, entries = ", ".join(one.faults), sum(each.entries for each in found)
                verdict = "sound" if one.sound else "NOT SOUND"
                print(f"    run {len(found):>3} of {RUNS}: {entries:>7,} entries, {verdict}; {faults}", flush=True)
    return found


def prove() -> Iterator[Result]:
    """All storms."""
    found = asyncio.run(_storms())
    entries = sum(one.entries for one in found)
    runs = f"entries in {len(found)} runs"
    yield none_of(
        "entries or answers lost between table and mirror", sum(one.lost for one in found), entries, runs, at_least=RUNS
    )
    yield none_of(
        "entries that differ at the mirror", sum(one.different for one in found), entries, runs, at_least=RUNS
    )
    yield none_of("stakes decided twice", sum(one.twice for one in found), entries, runs, at_least=RUNS)
    faults = Counter(fault for one in found for fault in one.faults)
    rarest = min(faults.values())
    yield Result(
        claim=f"runs, with {sum(faults.values())} faults of {len(faults)} kinds, the rarest of them {rarest} times",
        found=len(found),
        tried=RUNS,
        what="runs",
        goal=f"at least {RUNS} runs",
        met=len(found) >= RUNS,
    )
