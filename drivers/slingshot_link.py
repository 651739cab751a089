"""Whether the wheel is heard, and whether what is heard is now.

    DOWN ── three status lines in a row at natural pace ──► UP ── silence, or the port vanished ──► DOWN

A wheel was once silent for 134 s and then said more than 200 lines within 34 ms: they were the past. So after a silence
lines are *late* until they come at the pace at which a wheel speaks, and a late line opens and closes nothing.
Only whole, valid status lines count as being heard: noise is silence.
"""

from games.rules import Input
from games.signals import LinkLost, LinkRestored

DEVICE = "wheel"
"""The name of this link in LinkLost and LinkRestored."""

PACED_LINES = 3
"""Lines one after another, at natural intervals, that bring the link back."""


class LinkWatch:
    """The link's state machine. ``period_us`` is the wheel's natural interval between status lines."""

    def __init__(self, period_us: int, silence_us: int) -> None:
        self.pace_us = period_us // 4
        self.bursts = 0
        self._silence_us = silence_us
        self._up = False
        self._told = False
        self._watched_from_us: int | None = None
        self._last_us: int | None = None
        self._paced = 0
        self._hasty = False

    @property
    def is_up(self) -> bool:
        """Whether lines may be believed."""
        return self._up

    @property
    def last_us(self) -> int | None:
        """When the last valid status line came."""
        return self._last_us

    def heard(self, at_us: int) -> list[Input]:
        """A valid status line came."""
        signals = self.tick(at_us)
        last_us, self._last_us = self._last_us, at_us
        if self._up:
            return signals
        interval_us = at_us - last_us if last_us is not None else self._silence_us
        hasty = interval_us < self.pace_us
        self.bursts += hasty and not self._hasty
        self._hasty = hasty
        natural = self.pace_us <= interval_us < self._silence_us
        # The first line after a loss begins the count whatever lies between it and the last one before.
        self._paced = self._paced + 1 if natural and self._paced else 1
        if self._paced < PACED_LINES:
            return signals
        self._up, self._told = True, False
        return [*signals, LinkRestored(at_us=at_us, device=DEVICE)]

    def tick(self, at_us: int) -> list[Input]:
        """Time went by."""
        if self._told:
            return []
        if self._watched_from_us is None:
            self._watched_from_us = at_us
        since_us = self._last_us if self._up and self._last_us is not None else self._watched_from_us
        return self.lose(at_us) if at_us - since_us >= self._silence_us else []

    def lose(self, at_us: int) -> list[Input]:
        """The link is down from here. It is told once."""
        self._up = False
        self._paced = 0
        if self._told:
            return []
        self._told = True
        heard_us = at_us if self._last_us is None else self._last_us
        return [LinkLost(at_us=at_us, device=DEVICE, silent_ms=(at_us - heard_us) // 1_000)]
