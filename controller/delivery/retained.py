"""One retained topic: whoever comes later must find the latest payload there.

    changed ──► dirty ──► publish ──► acknowledged ──► dirty again? once more : rest

The latest payload wins: at most one publication is in flight, and what changes meanwhile is sent once, after it. Each
new connection publishes again, because the broker may have forgotten, or may hold our will.
"""

import asyncio
from collections.abc import Callable

from controller.delivery.bus import Bus, Disconnected, Message

RETRY_AFTER_S = 5.0
"""Wait before a refused publication is tried again."""


class Retained:
    """Keeps ``topic`` at what ``payload`` gives (None: nothing yet); at most one publication in ``pause_s``."""

    def __init__(
        self,
        bus: Bus,
        topic: str,
        payload: Callable[[], bytes | None],
        *,
        content_type: str,
        pause_s: float = 0.0,
        done: Callable[[], None],
    ) -> None:
        self._bus = bus
        self._topic = topic
        self._payload = payload
        self._content_type = content_type
        self._pause_s = pause_s
        self._done = done
        self._dirty = False
        self._in_flight: asyncio.Future[None] | None = None
        self._resting: asyncio.TimerHandle | None = None

    @property
    def settled(self) -> bool:
        """Whether the broker acknowledged the latest payload."""
        return not self._dirty and self._in_flight is None

    def changed(self) -> None:
        """There is another payload."""
        self._dirty = True
        self._push()

    def hurry(self) -> None:
        """Publish what there is now, without regard to the pause."""
        self._dirty = True
        self.wake()

    def wake(self) -> None:
        """End the pause."""
        self.rest()
        self._push()

    def rest(self) -> None:
        """Forget the timer of the pause: the connection is gone, or the program ends."""
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    def _push(self) -> None:
        if not self._dirty or self._in_flight or self._resting or not self._bus.connected:
            return
        self._dirty = False
        payload = self._payload()
        if payload is None:
            return
        message = Message(self._topic, payload, retain=True, content_type=self._content_type)
        self._in_flight = self._bus.publish(message)
        self._in_flight.add_done_callback(self._answered)
        if self._pause_s:
            self._wait(self._pause_s)

    def _answered(self, future: asyncio.Future[None]) -> None:
        self._in_flight = None
        error = future.exception()
        if error is not None:
            self._dirty = True
            if not isinstance(error, Disconnected):
                self._wait(RETRY_AFTER_S)
        self._push()
        self._done()

    def _wait(self, seconds: float) -> None:
        self.rest()
        self._resting = asyncio.get_running_loop().call_later(seconds, self.wake)
