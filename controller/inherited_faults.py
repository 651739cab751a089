"""Faults of the wheel that an earlier run certified: over when the wheel, heard again, no longer shows them.

    start ──► faults that stand in the journal ──link up──► heard for long ──► those not seen are over
                                                                     └──────► those seen are the driver's

A fault survives a power cut until the wheel itself shows that it is gone (notes, I-02). The driver tells the end of
what it saw begin; of what began before this program did it knows nothing, so without this a table whose power was cut
during a misfire would never play again. What the wheel's own test found is over when that test finds nothing.
"""

import asyncio
from collections.abc import Callable, Iterable

from drivers.clock import Clock
from games.rules import Input
from games.signals import LinkRestored, WheelFaultCleared, WheelFaultKind, WheelFaultSeen

SHOWN_WITHIN_PERIODS = 20
"""Status lines within which a fault that stands is seen again: the driver waits for 10 at the most before it tells."""


class InheritedFaults:
    """The faults that stood at the start. ``is_heard`` says whether the wheel's link is up."""

    def __init__(
        self,
        faults: Iterable[str],
        clock: Clock,
        emit: Callable[[Input], None],
        is_heard: Callable[[], bool],
        period_ms: int,
    ) -> None:
        self._faults = {WheelFaultKind(fault) for fault in faults}
        self._clock = clock
        self._emit = emit
        self._is_heard = is_heard
        self._wait_s = SHOWN_WITHIN_PERIODS * period_ms / 1_000

    def observe(self, signal: Input) -> None:
        """An observation of this run."""
        match signal:
            case WheelFaultSeen(fault=fault):
                self._faults.discard(fault)
            case LinkRestored(device="wheel") if self._faults:
                asyncio.get_running_loop().call_later(self._wait_s, self._judge)
            case _:
                return

    def self_test_passed(self) -> None:
        """The wheel's own test found nothing."""
        self._end(self._faults & {WheelFaultKind.SELF_TEST})

    def _judge(self) -> None:
        if self._is_heard():  # else its return begins the wait anew
            self._end(self._faults - {WheelFaultKind.SELF_TEST})

    def _end(self, faults: set[WheelFaultKind]) -> None:
        self._faults -= faults
        for fault in sorted(faults):
            self._emit(WheelFaultCleared(at_us=self._clock.mono_us(), fault=fault, lasted_ms=0))
