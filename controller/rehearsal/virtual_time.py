"""An event loop whose clock jumps: when nothing is ready, time goes at once to the next timer.

All the asyncio code of the program runs on it unchanged, an hour of play in seconds, and always in the same order.
Nothing outside may be waited for (threads, sockets, files): a loop that has neither timers nor ready work would wait
for ever, and says so instead.
"""

import asyncio
import selectors
from typing import Any

from drivers.clock import Clock

START_S = 1_000.0
"""The virtual clock's first reading."""

WALL_AT_START_MS = 1_796_068_800_000
"""2026-11-30 20:00 UTC: every rehearsal begins on this evening."""


class DeadlockError(RuntimeError):
    """Nothing can ever happen again on this loop."""


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now_s = START_S

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise DeadlockError("no timer is set and nothing is ready: the rehearsal can never go on")
        ready = super().select(0)
        if not ready and timeout > 0:
            self.now_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """See the module."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """The virtual clock, in seconds."""
        return self._jumping.now_s


class LoopClock(Clock):
    """Both clocks of a rehearsal, moved by the loop's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def mono_us(self) -> int:
        """See ``Clock``."""
        return round(self._loop.time() * 1_000_000)

    def wall_ms(self) -> int:
        """See ``Clock``."""
        return WALL_AT_START_MS + round((self._loop.time() - START_S) * 1_000)
