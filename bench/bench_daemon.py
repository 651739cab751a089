"""The whole daemon, ``tabled`` as a casino runs it: messages of a hundred posts, start, memory, and rest.

posts_load (100 posts) ──► mosquitto ──► tabled ──► journal on this disk ──► answers, entries ──► mosquitto

python -m bench messages ready memory idle
"""

import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bench.cabinet import Cabinet, Tabled, cabinet
from bench.figures import Figure, rate
from bench.past import fill, play_evening
from bench.posts_load import Answered, Load, generate
from bench.stage import BUILD
from controller.certify.keys import load_key

POSTS = 100
MESSAGES = 8_000
LOADS = 3
"""Loads of so many messages, one after the other, in one round: some 250 of each post, where a player makes dozens."""

MEMORY_BOUND_MB = 80
IDLE_BOUND = 0.01
IDLE_S = 30.0
SETTLING_S = 5.0
"""Time for the last work of the start to be over."""

SHORT, LONG = 1_000, 1_000_000
STARTS = 9
READY_BOUND = 1.2


@cache
def _loaded() -> tuple[list[Answered], float, float]:
    """The load, several times in a row; then the peak memory of the daemon, and what is private of it, in MB."""
    with cabinet(POSTS) as table, table.broker(), table.wheel(), table.tabled() as tabled:
        asyncio.run(table.open(credited=POSTS))
        answered = [_put_load(table, f"run{number}") for number in range(LOADS)]
        return answered, tabled.peak_mb(), tabled.private_mb()


def _put_load(table: Cabinet, run: str) -> Answered:
    ours, theirs = multiprocessing.Pipe()
    port, root = table.stage.config.mqtt.port, table.topics.root
    load = Load(port=port, root=root, posts=POSTS, round=1, run=run, messages=MESSAGES)
    generator = multiprocessing.get_context("spawn").Process(target=generate, args=(load, theirs))
    generator.start()
    answered: Answered = ours.recv()
    generator.join()
    assert not answered.refused, answered.refused
    return answered


def messages() -> Iterator[Figure]:
    """Messages of a hundred posts that are answered each second, each after its commit."""
    answered, _, _ = _loaded()
    middle = sorted(answered, key=lambda one: one.per_second)[len(answered) // 2]
    at = {part: middle.latencies_ms[int(len(middle.latencies_ms) * part)] for part in (0.5, 0.99)}
    how = f"{middle.stakes_per_second:,.0f} stakes/s; answer after {at[0.5]:.0f} ms, p99 {at[0.99]:.0f} ms"
    yield rate("100 posts over mosquitto", middle.per_second, 2_000, "messages", how)


def memory() -> Iterator[Figure]:
    """Peak resident memory of ``tabled`` (VmHWM) after that load."""
    _, peak_mb, private_mb = _loaded()
    yield Figure(
        name="peak resident memory under load",
        measured=f"{peak_mb:.1f} MB",
        beside=f"goal of {MEMORY_BOUND_MB} MB ({private_mb:.1f} MB of it private)",
        ratio=peak_mb / MEMORY_BOUND_MB,
        bound=1,
    )


def idle() -> Iterator[Figure]:
    """Processor time of ``tabled`` while a séance is open and nobody stakes: the wheel speaks, the broker pings."""
    with cabinet(POSTS) as table, table.broker(), table.wheel(), table.tabled() as tabled:
        asyncio.run(table.open(credited=POSTS))
        time.sleep(SETTLING_S)
        share = _busy(tabled)
    yield Figure(
        name="idle processor",
        measured=f"{share:.2%} of a core",
        beside=f"goal of {IDLE_BOUND:.0%} (séance open, {IDLE_S:g} s)",
        ratio=share / IDLE_BOUND,
        bound=1,
    )


def _busy(tabled: Tabled) -> float:
    before_s, began_s = tabled.processor_s(), time.perf_counter()
    time.sleep(IDLE_S)
    return (tabled.processor_s() - before_s) / (time.perf_counter() - began_s)


def ready() -> Iterator[Figure]:
    """From the execution of ``tabled`` to READY=1, with a long past and with a short one, in turn."""
    with tempfile.TemporaryDirectory(dir=BUILD) as folder, cabinet(6) as short, cabinet(6) as long:
        evening = play_evening(Path(folder))
        sizes = [
            fill(table.stage.config.journal.file, load_key(Path(table.stage.config.journal.key)), evening, facts)
            for table, facts in ((short, SHORT), (long, LONG))
        ]
        with short.broker(), long.broker():
            starts = [(_ready_ms(short), _ready_ms(long)) for _ in range(STARTS)]
    short_ms, long_ms = (statistics.median(times) for times in zip(*starts, strict=True))
    yield Figure(
        name=f"ready with {sizes[1]:,} facts",
        measured=f"{long_ms:,.0f} ms",
        beside=f"{short_ms:,.0f} ms with {sizes[0]:,} facts",
        ratio=long_ms / short_ms,
        bound=READY_BOUND,
    )


def _ready_ms(table: Cabinet) -> float:
    with table.tabled() as tabled:
        return tabled.ready_s * 1_000
