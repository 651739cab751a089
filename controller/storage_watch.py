"""Free space for the journal: warn at 20 %, begin no new round at 10 %, ask for the closing at 5 % (notes, 7.6)."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from drivers.clock import Clock
from games.rules import Input
from games.signals import StorageRunsLow

LEVELS = ((5, "close"), (10, "no_new_round"), (20, "warn"))
"""Thresholds in per cent of the file system, the hardest first."""

RECOVERY = 2
"""Per cent above a threshold at which its level ends, so that it does not come and go."""

CHECK_S = 30.0


def _measure(folder: Path) -> tuple[int, int]:
    usage = shutil.disk_usage(folder)
    return usage.free, usage.total


class StorageWatch:
    """Tells each change of level once."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        emit: Callable[[Input], None],
        measure: Callable[[Path], tuple[int, int]] = _measure,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._emit = emit
        self._measure = measure
        self._level = ""  # none is known: a level that was certified before a restart may be over

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            self.check()
            await asyncio.sleep(CHECK_S)

    def check(self) -> None:
        """Measure once."""
        free, total = self._measure(self._folder)
        level = self._level_of(100 * free // total)
        if level != self._level:
            self._level = level
            self._emit(StorageRunsLow(at_us=self._clock.mono_us(), level=level, free_bytes=free))

    def _level_of(self, percent: int) -> str:
        for threshold, level in LEVELS:
            if percent < threshold + (RECOVERY if level == self._level else 0):
                return level
        return "ok"
