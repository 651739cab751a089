"""Free space for the journal: warn at 20 %, begin no new round at 10 %, ask for the closing at 5 % (notes, 7.6).

The room of the reserve, once given back, does not count as free: it is for the closing alone. And while the séance is
closed, the watch asks for the restart at which a full live file is turned (see ``certify.turning``).
"""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from controller.storage_reserve import Reserve
from drivers.clock import Clock
from games.rules import Input
from games.signals import StorageRunsLow

LEVELS = ((5, "close"), (10, "no_new_round"), (20, "warn"))
"""Thresholds in per cent of the file system, the hardest first."""

RECOVERY = 2
"""Per cent above a threshold at which its level ends, so that it does not come and go."""

CHECK_S = 30.0
TURN_CHECKS = 20
"""Checks after which it is asked whether the journal is due to be turned: every ten minutes."""


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
        *,
        reserve: Reserve | None = None,
        turn: Callable[[], None] | None = None,
    ) -> None:
        """``turn`` is called now and then; it restarts the daemon when the journal is to be turned."""
        self._folder = folder
        self._clock = clock
        self._emit = emit
        self._measure = measure
        self._reserve = reserve or Reserve(folder, 0)
        self._turn = turn or (lambda: None)
        self._checks = 0
        self._level = ""  # none is known: a level that was certified before a restart may be over

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            self.check()
            await asyncio.sleep(CHECK_S)

    def check(self) -> None:
        """Measure once."""
        self._checks += 1
        if self._checks % TURN_CHECKS == 0:
            self._turn()
        free, total = self._measure(self._folder)
        free = max(0, free - self._reserve.missing_bytes)
        level = self._level_of(100 * free // total)
        if level == "close":
            self._reserve.give_back()
        elif level in ("ok", "warn"):
            self._reserve.hold()
        if level != self._level:
            self._level = level
            self._emit(StorageRunsLow(at_us=self._clock.mono_us(), level=level, free_bytes=free))

    def _level_of(self, percent: int) -> str:
        for threshold, level in LEVELS:
            if percent < threshold + (RECOVERY if level == self._level else 0):
                return level
        return "ok"
