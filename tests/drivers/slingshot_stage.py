"""What the wheel's tests stand on: a loop whose time jumps, lines written by hand, a decoder fed at a pace."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from drivers.slingshot import SlingshotDecoder, WheelSettings
from games.rules import Input

PERIOD_US = 500_000
START_US = 1_000_000_000


def status(state: int, spin: int = 7, number: str = " 9", flags: int = 0, rotor: int = 160, way: int = 0) -> bytes:
    """A status line as the maker prints it."""
    return b"*X;%d;%03d;%2b;%X;%03d;%d\r\n" % (state, spin, number.encode(), flags, rotor, way)


class Stage:
    """A decoder on a live link, and everything that it has told. Time goes on by itself, one period a line."""

    def __init__(self, settings: WheelSettings | None = None, *, live: bool = True, state: int = 1) -> None:
        self.settings = settings or WheelSettings()
        self.decoder = SlingshotDecoder(self.settings)
        self.at_us = START_US
        self.told: list[Input] = []
        if live:
            self.lines(*[status(state)] * 3)
            self.told.clear()

    def lines(self, *lines: bytes, every_us: int = PERIOD_US) -> list[Input]:
        """Lines at an even pace; gives what they told."""
        before = len(self.told)
        for line in lines:
            self.at_us += every_us
            self.told += self.decoder.tick(self.at_us)
            self.told += self.decoder.feed(line, self.at_us)
        return self.told[before:]

    def silence(self, seconds: float) -> list[Input]:
        """Time without a byte; gives what it told."""
        before = len(self.told)
        until_us = self.at_us + round(seconds * 1_000_000)
        while self.at_us < until_us:
            self.at_us = min(until_us, self.at_us + PERIOD_US // 2)
            self.told += self.decoder.tick(self.at_us)
        return self.told[before:]

    def kinds(self) -> list[str]:
        """The names of what was told."""
        return names(self.told)


def names(signals: Iterable[Input]) -> list[str]:
    """The names of signals, in order."""
    return [type(signal).__name__ for signal in signals]


class _JumpingSelector(selectors.SelectSelector):
    now_us = START_US

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "nothing will ever happen again"
            self.now_us += -int(-timeout * 1_000_000 // 1)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that does not wait: when nothing is ready, the time until the next timer has passed."""

    def __init__(self) -> None:
        self.jumping = _JumpingSelector()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now_us / 1_000_000


class LoopClock:
    """The clock of the running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def mono_us(self) -> int:
        return round(self._loop.time() * 1_000_000)

    def wall_ms(self) -> int:
        return self.mono_us() // 1_000


def in_virtual_time(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Play a story on a loop whose time jumps."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(story())
