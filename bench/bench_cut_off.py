"""Whether a burst of stakes delays "rien ne va plus": from the instant a sensor stamps to the return of its commit.

    sensor (a process of its own) ──stamp──► pipe ──► inbox, staff lane ──► commit of the observation
    posts ──as many as are taken──► inbox, post lane

The sensor speaks at random instants, whatever the table is doing at that moment. Rest and burst alternate in one run,
so that both meet the same machine.

    python -m bench cut-off
"""

import asyncio
import multiprocessing
import os
import random
import statistics
import struct
import time
from collections.abc import Iterator
from functools import partial

from bench.bench_latency import p99
from bench.figures import Figure
from bench.stage import OpenTable, open_table, stakes
from controller.inbox import Outcome
from games.signals import ClockStepped

TURNS = 5
TURN_S = 1.5
PAUSE_MS = (3.0, 9.0)
"""Between two observations."""

WAITING = 500
"""Requests that wait in the inbox throughout a burst, of ten stakes each."""

STAMP = struct.Struct("=d")
BOUND = 2.0


def cut_off() -> Iterator[Figure]:
    """The median during a burst beside the median at rest."""
    rest_ms, burst_ms, per_second = asyncio.run(_measure())
    rest, burst = statistics.median(rest_ms), statistics.median(burst_ms)
    yield Figure(
        name="no more bets during a burst",
        measured=f"{burst:.2f} ms (p99 {p99(burst_ms):.1f})",
        beside=f"{rest:.2f} ms at rest (p99 {p99(rest_ms):.1f}); {per_second:,.0f} stakes/s",
        ratio=burst / rest,
        bound=BOUND,
    )


async def _measure() -> tuple[list[float], list[float], float]:
    """Milliseconds at rest and in bursts, and the stakes that were certified each second of a burst."""
    async with open_table() as table:
        with _Sensor(table) as sensor:
            rest_ms, burst_ms, certified = [], [], 0
            for _ in range(TURNS):
                await asyncio.sleep(TURN_S)
                rest_ms += sensor.taken_ms()
                certified += await _burst(table)
                burst_ms += sensor.taken_ms()
        return rest_ms, burst_ms, certified / (TURNS * TURN_S)


async def _burst(table: OpenTable) -> int:
    """Keep the post lane filled for one turn; returns the stakes that were certified meanwhile."""
    until_s, size, number = time.perf_counter() + TURN_S, table.table.size, 0
    while time.perf_counter() < until_s:
        while len(table.inbox) < WAITING:
            table.inbox.put(stakes(number, 10))
            number += 1
        await asyncio.sleep(0.002)
    certified = table.table.size - size
    await table.ask(stakes(number, 10))  # the last of those that wait
    return 10 * certified


class _Sensor:
    """Another process that stamps instants; each goes through the table as a step of the clock would."""

    def __init__(self, table: OpenTable) -> None:
        self._table = table
        self._taken_ms: list[float] = []
        self._ear, self._mouth = os.pipe()
        self._process = multiprocessing.get_context("fork").Process(target=_stamp, args=(self._mouth,), daemon=True)

    def __enter__(self) -> "_Sensor":
        self._process.start()
        os.close(self._mouth)
        asyncio.get_running_loop().add_reader(self._ear, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._ear)
        os.close(self._ear)
        self._process.terminate()
        self._process.join()

    def taken_ms(self) -> list[float]:
        """How long each observation took since the last look."""
        taken, self._taken_ms = self._taken_ms, []
        return taken

    def _hear(self) -> None:
        for (stamped_s,) in STAMP.iter_unpack(os.read(self._ear, 64 * STAMP.size)):
            self._table.inbox.put(
                ClockStepped(at_us=0, by_ms=1_000, quality="free"), partial(self._certified, stamped_s)
            )

    def _certified(self, since_s: float, _: Outcome) -> None:
        self._taken_ms.append((time.perf_counter() - since_s) * 1_000)


def _stamp(mouth: int) -> None:
    while True:
        time.sleep(random.uniform(*PAUSE_MS) / 1_000)
        os.write(mouth, STAMP.pack(time.perf_counter()))
