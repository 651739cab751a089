"""The cable between a simulated wheel and its driver, in memory: a serial port that can be pulled out and put back.

The wheel is woken exactly when it has something to say, by the event loop's own timers; on a loop whose time jumps, an
hour of play passes in a second. ``clock`` must show the loop's time.
"""

import asyncio
from collections.abc import Callable

from drivers.clock import Clock
from drivers.ports import DeviceFault
from drivers.twin.wheel import WheelTwin

DEVICE = "twin"

BUFFER_BOUND = 4_096
"""Bytes that wait to be read; what comes after is lost and counted, as in the kernel's buffer."""


class TwinCable:
    """``open`` is what a driver opens its port with. One end at a time, like an exclusive serial port."""

    def __init__(self, twin: WheelTwin, clock: Clock) -> None:
        self.twin = twin
        self.clock = clock
        self.lost_bytes = 0
        self._pulled = False
        self._end: TwinLine | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> "TwinLine":
        """Open the port. Raises DeviceFault: E-SERIAL-ABSENT while unplugged, E-SERIAL-BUSY when it is open."""
        self._advance()
        if self._pulled or not self.twin.plugged:
            raise DeviceFault("E-SERIAL-ABSENT", DEVICE, "the simulated adapter is unplugged")
        if self._end is not None:
            raise DeviceFault("E-SERIAL-BUSY", DEVICE, "the simulated port is open already")
        self._end = TwinLine(self)
        return self._end

    def unplug(self) -> None:
        """Pull the adapter out; the wheel plays on."""
        self._pulled = True
        self._lose_end()

    def replug(self) -> None:
        """Put the adapter back."""
        self._pulled = False

    def spin(self) -> bool:
        """The croupier launches the ball (a croupier's wheel); False while the last spin is not over."""
        launched = self.twin.spin(self.clock.mono_us())
        self._advance()
        return launched

    def close(self) -> None:
        """Let the wheel stand still: no timer stays behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def give(self, data: bytes) -> None:
        """Bytes from the driver to the wheel."""
        self.twin.feed(data, self.clock.mono_us())
        self._advance()

    def release(self, end: "TwinLine") -> None:
        """The driver closed its end."""
        if self._end is end:
            self._end = None

    def _advance(self) -> None:
        """Let the wheel catch up with the clock, and be woken when it has more to say."""
        self.close()
        was_plugged = self.twin.plugged
        data = self.twin.advance(self.clock.mono_us())
        if self._end is not None and not self._pulled:
            self.lost_bytes += self._end.arrive(data)
        if was_plugged and not self.twin.plugged:
            self._lose_end()
        elif data and self._end is not None:
            self._end.wake()
        wait_us = self.twin.next_due_us() - self.clock.mono_us()
        self._timer = asyncio.get_running_loop().call_later(max(1, wait_us) / 1_000_000, self._advance)

    def _lose_end(self) -> None:
        if self._end is not None:
            self._end.lose()


class TwinLine:
    """The driver's end of the cable: a ByteLine."""

    def __init__(self, cable: TwinCable) -> None:
        self._cable = cable
        self._arrived = bytearray()
        self._callback: Callable[[], None] | None = None
        self._lost = False

    def read(self) -> bytes:
        """All bytes that have arrived, perhaps none."""
        self._check()
        data = bytes(self._arrived)
        self._arrived.clear()
        return data

    def write(self, data: bytes) -> None:
        """Send to the wheel."""
        self._check()
        self._cable.give(data)

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        """Call back from the event loop whenever bytes, or the line's end, may be read; None ends it."""
        self._callback = callback
        self.wake()

    def close(self) -> None:
        """Let the port go."""
        self._lost, self._callback = True, None
        self._cable.release(self)

    def arrive(self, data: bytes) -> int:
        """Bytes from the wheel; gives how many did not fit."""
        room = BUFFER_BOUND - len(self._arrived)
        self._arrived += data[:room]
        return max(0, len(data) - room)

    def lose(self) -> None:
        """The adapter was pulled out: this end stays dead, even when the adapter comes back."""
        self._lost = True
        self.wake()

    def wake(self) -> None:
        """Tell the reader, from the event loop."""
        if self._callback is not None:
            asyncio.get_running_loop().call_soon(self._call)

    def _call(self) -> None:
        if self._callback is not None:
            self._callback()

    def _check(self) -> None:
        if self._lost:
            raise DeviceFault("E-SERIAL-LOST", DEVICE, "the simulated adapter was unplugged")
