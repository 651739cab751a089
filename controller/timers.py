"""Timers: one for each name, each remembering the round for which it was set.

A timer that fires is one more input. It is never cancelled for being stale: the game sees by its round that nobody
waits for it any more.
"""

import asyncio

from controller.inbox import Inbox
from drivers.clock import Clock
from games.rules import SetTimer, TimerFired


class Timers:
    """The timers that are running, on the event loop's clock."""

    def __init__(self, inbox: Inbox, clock: Clock) -> None:
        self._inbox = inbox
        self._clock = clock
        self._running: dict[str, asyncio.TimerHandle] = {}

    def set(self, timer: SetTimer) -> None:
        """Start a timer, in place of one of the same name."""
        if previous := self._running.pop(timer.name, None):
            previous.cancel()
        loop = asyncio.get_running_loop()
        self._running[timer.name] = loop.call_later(timer.after_ms / 1_000, self._fire, timer.name, timer.round)

    def _fire(self, name: str, round_number: int) -> None:
        self._running.pop(name, None)
        self._inbox.put(TimerFired(at_us=self._clock.mono_us(), name=name, round=round_number))

    def stop(self) -> None:
        """Stop them all."""
        for handle in self._running.values():
            handle.cancel()
        self._running.clear()
