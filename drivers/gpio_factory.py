"""The pins of the Pi's header by libgpiod: a pin factory for gpiozero, without threads, polling or silent loss.

    kernel: edge, its time, its number ──► one request per pin ──descriptor──► event loop ──► the pin's watcher

gpiozero asks its factory for pins and sets their function, pull and watcher; this module answers with the kernel's own
line requests. Three properties are the reason for it:

- an edge has the time at which the kernel saw it (CLOCK_MONOTONIC, as ``Clock.mono_us``), not that of a callback;
- edges are numbered, so a queue that overflowed shows (``lost_edges``);
- each edge is given to its watcher in a loop callback of its own: one that fails is reported by the event loop, and
  input goes on. (With gpiozero's usual factory one exception in any callback ends all input, without a word.)

The chip is found by its label. Its number has changed between models and even between kernels of one model.
"""

import asyncio
import errno
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import gpiod
from gpiod.line import Bias, Clock, Direction, Edge, Value

from drivers.ports import DeviceFault

HEADER_LABELS = ("pinctrl-rp1", "pinctrl-bcm2711", "pinctrl-bcm2835")
"""The chips that carry the 40-pin header: Pi 5, Pi 4 and CM4, Pi 3 and older."""

HEADER_PINS = range(28)
"""BCM numbers on the header. The lines above drive the board itself (memory card, radio) and are never touched."""

EDGE_QUEUE = 1_024
"""Edges the kernel keeps for one pin. When it is full the oldest is dropped, and ``lost_edges`` tells."""

EDGES_A_TURN = 16
"""Edges taken from one pin in one turn of the event loop: a line in a storm must not keep the others waiting."""

CONSUMER = "tabled"
"""What ``gpioinfo`` shows as the holder of our lines."""

BIASES = {"up": Bias.PULL_UP, "down": Bias.PULL_DOWN, "floating": Bias.DISABLED}

Watcher = Callable[[float, int], object]
"""What gpiozero gives a pin: called with the edge's time in seconds and the electrical level after it."""


def open_header(devices: Path = Path("/dev")) -> "HeaderPinFactory":
    """Open the chip of the header. Raises DeviceFault E-GPIO-ABSENT or E-GPIO-DENIED."""
    denied: list[str] = []
    for path in sorted(devices.glob("gpiochip*")):
        if not gpiod.is_gpiochip_device(str(path)):
            continue
        try:
            chip = gpiod.Chip(str(path))
        except PermissionError:
            denied.append(str(path))
            continue
        if chip.get_info().label in HEADER_LABELS:
            return HeaderPinFactory(chip, str(path))
        chip.close()
    if denied:
        raise DeviceFault(
            "E-GPIO-DENIED", denied[0], "no permission to open it: the daemon's user must be in the group gpio"
        )
    raise DeviceFault(
        "E-GPIO-ABSENT",
        str(devices),
        f"no GPIO chip with the label {' or '.join(HEADER_LABELS)}: this machine has no header for buttons and lamps",
    )


@dataclass(frozen=True, slots=True)
class PinName:
    """What gpiozero wants to know of a pin: its name."""

    name: str


class HeaderPinFactory:
    """gpiozero's pin factory on one chip, for its InputDevice and LED: what ``gpio.py`` uses, and no more.

    ``pin`` takes BCM numbers only: "GPIO17" and 17, not the position on the connector.
    """

    def __init__(self, chip: gpiod.Chip, path: str) -> None:
        self._chip = chip
        self._path = path
        self._pins: dict[int, HeaderPin] = {}
        self._holders: dict[int, weakref.ref[object]] = {}
        self._watched: dict[HeaderPin, int] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def pin(self, name: int | str) -> "HeaderPin":
        """The pin, always the same object for the same pin. Raises DeviceFault E-GPIO-PIN when the header has none."""
        bcm = self._bcm(name)
        if bcm not in self._pins:
            self._pins[bcm] = HeaderPin(self, bcm)
        return self._pins[bcm]

    def reserve_pins(self, holder: object, *names: int | str) -> None:
        """Keep pins for one device. Raises DeviceFault E-GPIO-TWICE when another device of this process has one."""
        for bcm in map(self._bcm, names):
            other = self._holders.get(bcm, lambda: None)()
            if other is not None and other is not holder:
                raise DeviceFault("E-GPIO-TWICE", f"GPIO{bcm}", "this pin is used twice: give each line its own pin")
            self._holders[bcm] = weakref.ref(holder)

    def release_pins(self, holder: object, *names: int | str) -> None:
        """Give pins back."""
        for bcm in map(self._bcm, names):
            if self._holders.get(bcm, lambda: None)() is holder:
                del self._holders[bcm]

    def lost_edges(self) -> Mapping[str, int]:
        """Edges that the kernel saw and its queue could not keep, by pin, since each pin was first watched."""
        return {pin.info.name: pin.lost_edges for pin in self._pins.values()}

    def close(self) -> None:
        """Free every line and the chip."""
        for pin in self._pins.values():
            pin.close()
        self._pins.clear()
        self._chip.close()

    def request(self, bcm: int, settings: gpiod.LineSettings) -> gpiod.LineRequest:
        """Take a line from the kernel. Raises DeviceFault E-GPIO-BUSY, E-GPIO-DENIED or E-GPIO-GONE."""
        try:
            return self._chip.request_lines({bcm: settings}, consumer=CONSUMER, event_buffer_size=EDGE_QUEUE)
        except OSError as error:
            if error.errno == errno.EBUSY:
                holder = self._chip.get_line_info(bcm).consumer or "the kernel"
                raise DeviceFault("E-GPIO-BUSY", f"GPIO{bcm}", f"the line is held by {holder!r}") from error
            if error.errno in (errno.EPERM, errno.EACCES):
                raise DeviceFault("E-GPIO-DENIED", f"GPIO{bcm}", f"{self._path} may not be written") from error
            raise self.gone(bcm, error) from error

    def gone(self, bcm: int, error: OSError) -> DeviceFault:
        """The fault for a line that no longer answers."""
        return DeviceFault("E-GPIO-GONE", f"GPIO{bcm}", f"{self._path} does not answer: {error.strerror}")

    def watch(self, pin: "HeaderPin", descriptor: int) -> None:
        """Have the running event loop read this pin's edges."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._dispatch)
        self._watched[pin] = descriptor

    def unwatch(self, pin: "HeaderPin") -> None:
        """Read no more edges of this pin."""
        descriptor = self._watched.pop(pin, None)
        if descriptor is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(descriptor)

    def _dispatch(self) -> None:
        """Each pin has its own queue: read from all of them, then go by the kernel's time."""
        waiting = [(event, pin) for pin in tuple(self._watched) for event in pin.drain()]
        waiting.sort(key=lambda pair: pair[0].timestamp_ns)
        loop = asyncio.get_running_loop()
        for event, pin in waiting:
            loop.call_soon(pin.report, event)

    @staticmethod
    def _bcm(name: int | str) -> int:
        digits = str(name).removeprefix("GPIO")
        bcm = int(digits) if digits.isdecimal() else -1
        if bcm not in HEADER_PINS:
            raise DeviceFault(
                "E-GPIO-PIN", str(name), f"the header has BCM numbers {HEADER_PINS.start} to {HEADER_PINS.stop - 1}"
            )
        return bcm


class HeaderPin:
    """One pin, in the shape that gpiozero's devices use. The kernel's line is held from ``function`` to ``close``."""

    def __init__(self, factory: HeaderPinFactory, bcm: int) -> None:
        self._factory = factory
        self._bcm = bcm
        self._request: gpiod.LineRequest | None = None
        self._settings = gpiod.LineSettings()
        self._pull = "floating"
        self._watcher: Watcher | None = None
        self._last_number = 0
        self.lost_edges = 0

    @property
    def info(self) -> PinName:
        """The pin's name."""
        return PinName(f"GPIO{self._bcm}")

    @property
    def function(self) -> str:
        """ "input" or "output"; setting it takes the line. An output starts low, an input without a pull."""
        return "output" if self._settings.direction is Direction.OUTPUT else "input"

    @function.setter
    def function(self, function: str) -> None:
        if function == "output":
            self.output_with_state(0)
        else:
            self._pull = "floating"
            self._apply_input()

    def output_with_state(self, state: int) -> None:
        """Drive the line, from the first instant at this level."""
        self.when_changed = None
        value = Value.ACTIVE if state else Value.INACTIVE
        self._apply(gpiod.LineSettings(direction=Direction.OUTPUT, output_value=value))

    @property
    def pull(self) -> str:
        """ "up", "down" or "floating"."""
        return self._pull

    @pull.setter
    def pull(self, pull: str) -> None:
        self._pull = pull
        self._apply_input()

    @property
    def state(self) -> int:
        """The electrical level. Raises DeviceFault E-GPIO-GONE."""
        try:
            return 1 if self._held().get_value(self._bcm) is Value.ACTIVE else 0
        except OSError as error:
            raise self._factory.gone(self._bcm, error) from error

    @state.setter
    def state(self, state: int) -> None:
        try:
            self._held().set_value(self._bcm, Value.ACTIVE if state else Value.INACTIVE)
        except OSError as error:
            raise self._factory.gone(self._bcm, error) from error

    @property
    def when_changed(self) -> Watcher | None:
        """Who is told of each edge. Set it from the event loop; edges are detected only while it is set."""
        return self._watcher

    @when_changed.setter
    def when_changed(self, watcher: Watcher | None) -> None:
        if (watcher is None) == (self._watcher is None):
            self._watcher = watcher
            return
        self._watcher = watcher
        if watcher is None:
            self._factory.unwatch(self)
            with suppress(DeviceFault):  # nobody hears the edges any more, whether the chip still detects them or not
                self._apply_input()
        else:
            self._apply_input()
            self._factory.watch(self, self._held().fd)

    def drain(self) -> list[gpiod.EdgeEvent]:
        """The oldest edges that wait. A line that fails is watched no more: reading its level then tells the fault."""
        try:
            request = self._held()
            return request.read_edge_events(EDGES_A_TURN) if request.wait_edge_events(0) else []
        except OSError:
            self._factory.unwatch(self)
            return []

    def report(self, event: gpiod.EdgeEvent) -> None:
        """Tell the watcher of an edge, and keep account of the numbers that are missing before it."""
        self.lost_edges += event.line_seqno - self._last_number - 1
        self._last_number = event.line_seqno
        if self._watcher is not None:
            self._watcher(event.timestamp_ns / 1e9, int(event.event_type is gpiod.EdgeEvent.Type.RISING_EDGE))

    def close(self) -> None:
        """Free the line, an output after it was switched off: the kernel would leave it as it was."""
        self._watcher = None
        self._factory.unwatch(self)
        if self._request is None:
            return
        if self.function == "output":
            with suppress(OSError):  # a chip that does not answer any more is let go all the same
                self._request.set_value(self._bcm, Value.INACTIVE)
        self._request.release()
        self._request = None

    def _held(self) -> gpiod.LineRequest:
        if self._request is None:
            raise DeviceFault("E-GPIO-GONE", self.info.name, "the line was closed")
        return self._request

    def _apply_input(self) -> None:
        edges = Edge.NONE if self._watcher is None else Edge.BOTH
        self._apply(
            gpiod.LineSettings(
                direction=Direction.INPUT,
                bias=BIASES[self._pull],
                edge_detection=edges,
                event_clock=Clock.MONOTONIC,
            )
        )

    def _apply(self, settings: gpiod.LineSettings) -> None:
        """Change the line's settings without letting it go in between."""
        if self._request is None:
            self._request = self._factory.request(self._bcm, settings)
            self._last_number = 0
        else:
            try:
                self._request.reconfigure_lines({self._bcm: settings})
            except OSError as error:
                raise self._factory.gone(self._bcm, error) from error
        self._settings = settings
