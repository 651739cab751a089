"""A simulated wheel on a real pseudo-terminal: any program that opens a serial port can talk to it.

    python -m drivers.twin.wheel --link PATH [--speed N] [--seed S] [--pockets 37|38] [--faults LIST] [--croupier]

PATH is a symbolic link to the terminal. When the plan pulls the adapter out the link vanishes, and comes back with
another terminal behind it. For a croupier's wheel a line "spin" on standard input launches the ball. It ends on
SIGTERM, SIGINT, or when standard input ends (one that can't be waited for, such as a file, never does).
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import sys
import tty
from collections.abc import Sequence
from pathlib import Path

from drivers.clock import Clock, SystemClock
from drivers.twin.wheel import TwinSettings, WheelTwin
from drivers.twin.wheel_faults import FaultPlan, read_plan

READ_BOUND = 4_096
ORDER_BOUND = 256
"""Bytes of a line on standard input that is not ended yet; older ones are dropped."""


class WheelTerminal:
    """A twin behind a pseudo-terminal. ``link`` is made, moved and removed with it."""

    def __init__(self, twin: WheelTwin, clock: Clock, link: Path) -> None:
        self._twin = twin
        self._clock = clock
        self._link = link
        self._ends: tuple[int, int] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Plug in and let the wheel run, on the running loop."""
        self._advance()

    def spin(self) -> bool:
        """The croupier launches the ball; False while the last spin is not over."""
        launched = self._twin.spin(self._clock.mono_us())
        self._advance()
        return launched

    def close(self) -> None:
        """Unplug and stand still."""
        if self._timer is not None:
            self._timer.cancel()
        self._unplug()

    def _plug(self) -> int:
        """Open a terminal and point the link to it. Our own hold of the listener's end keeps it alive between two
        listeners, and raw, so that nothing is echoed before the first one comes."""
        if self._ends is None:
            master, slave = self._ends = os.openpty()
            tty.setraw(slave)
            os.set_blocking(master, False)
            fresh = self._link.with_name(f"{self._link.name}.{os.getpid()}")
            fresh.symlink_to(os.ttyname(slave))
            fresh.replace(self._link)
            asyncio.get_running_loop().add_reader(master, self._read)
        return self._ends[0]

    def _unplug(self) -> None:
        if self._ends is not None:
            asyncio.get_running_loop().remove_reader(self._ends[0])
            self._link.unlink(missing_ok=True)
            for end in self._ends:
                os.close(end)
            self._ends = None

    def _read(self) -> None:
        if self._ends is not None:
            with contextlib.suppress(BlockingIOError):
                self._twin.feed(os.read(self._ends[0], READ_BOUND), self._clock.mono_us())
            self._advance()

    def _advance(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        data = self._twin.advance(self._clock.mono_us())
        if self._twin.plugged:
            master = self._plug()
            with contextlib.suppress(BlockingIOError):  # nobody reads: what does not fit is lost, as on a real line
                os.write(master, data)
        else:
            self._unplug()
        wait_us = max(1, self._twin.next_due_us() - self._clock.mono_us())
        self._timer = asyncio.get_running_loop().call_later(wait_us / 1_000_000, self._advance)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m drivers.twin.wheel", description="A simulated SlingShot 2 wheel.")
    parser.add_argument("--link", type=Path, required=True, help="symbolic link to make to the pseudo-terminal")
    parser.add_argument("--speed", type=float, default=1.0, help="how many times faster than a real wheel")
    parser.add_argument("--seed", type=int, default=1, help="the same seed plays the same numbers")
    parser.add_argument("--pockets", type=int, choices=(37, 38), default=37)
    parser.add_argument("--mode", type=int, default=1_159, help="*o: 1159 waits for a start, 1157 starts by itself")
    parser.add_argument("--faults", type=_plan, default="", help="for example misfire@3,silence@5:8:4,bit-noise%%2")
    parser.add_argument("--croupier", action="store_true", help='no commands; a line "spin" on standard input launches')
    arguments = parser.parse_args(words)
    if arguments.speed <= 0:
        parser.error("--speed must be above 0")
    if not arguments.link.parent.is_dir():
        parser.error(f"--link: there is no folder {arguments.link.parent}")
    return arguments


def _plan(text: str) -> FaultPlan:
    try:
        return read_plan(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main(words: Sequence[str] | None = None) -> int:
    """Run until told to end."""
    asyncio.run(_run(_arguments(words)))
    return 0


async def _run(arguments: argparse.Namespace) -> None:
    settings = TwinSettings(
        pockets=arguments.pockets, speed=arguments.speed, mode=arguments.mode, croupier=arguments.croupier
    )
    clock = SystemClock()
    twin = WheelTwin(settings, random.Random(arguments.seed), faults=arguments.faults, now_us=clock.mono_us())
    terminal = WheelTerminal(twin, clock, arguments.link)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    orders = _Orders(terminal, ended)
    descriptor = sys.stdin.fileno()
    with contextlib.suppress(PermissionError):  # a file can't be waited for
        loop.add_reader(descriptor, orders.read, descriptor)
    try:
        terminal.start()
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        terminal.close()


class _Orders:
    """The croupier's words on standard input."""

    def __init__(self, terminal: WheelTerminal, ended: asyncio.Event) -> None:
        self._terminal = terminal
        self._ended = ended
        self._typed = b""

    def read(self, descriptor: int) -> None:
        data = os.read(descriptor, READ_BOUND)
        if not data:
            self._ended.set()
            asyncio.get_running_loop().remove_reader(descriptor)
        *lines, rest = (self._typed + data).split(b"\n")
        self._typed = rest[-ORDER_BOUND:]
        for line in lines:
            if line.strip() == b"spin":
                self._terminal.spin()
