"""The two clocks: one that orders and measures (monotonic), one that is shown to people (wall)."""

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """What the rest of the program may ask about time."""

    def mono_us(self) -> int:
        """Microseconds of CLOCK_MONOTONIC: the kernel stamps GPIO edges with the same clock."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC. Evidence only: nothing is ordered or timed by it."""
        ...


class SystemClock:
    """The machine's clocks."""

    def mono_us(self) -> int:
        """See ``Clock``."""
        return time.monotonic_ns() // 1_000

    def wall_ms(self) -> int:
        """See ``Clock``."""
        return time.time_ns() // 1_000_000


@dataclass(slots=True)
class ManualClock:
    """A clock that stands still until it is told to move: tests and simulation."""

    now_us: int = 0
    wall_offset_ms: int = 1_796_000_000_000

    def mono_us(self) -> int:
        """See ``Clock``."""
        return self.now_us

    def wall_ms(self) -> int:
        """See ``Clock``."""
        return self.wall_offset_ms + self.now_us // 1_000

    def advance_us(self, by_us: int) -> None:
        """Let ``by_us`` microseconds pass."""
        self.now_us += by_us
