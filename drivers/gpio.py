"""Buttons, key switches and lamps on the Pi's header, by gpiozero: the real ``EdgeInput`` and ``Output``.

gpiozero reserves the pins, sets pulls and drives the lamps. Its events, held times and bounce times are not used: they
hide the time of the edge and cannot be tested. We watch the pin itself and judge in ``debounce.py``.

A pin may tell of its edges from any thread: the edge crosses into the event loop here, and nowhere else.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from gpiozero import LED, InputDevice
from gpiozero.exc import GPIOPinInUse, PinInvalidPin

from drivers.ports import DeviceFault, Edge


class PinFactory(Protocol):
    """A gpiozero pin factory: ``gpio_factory.open_header()``, or gpiozero's own mock in the tests."""

    def pin(self, name: int) -> Any:
        """The pin of this BCM number."""
        ...

    def reserve_pins(self, holder: Any, *names: int) -> None:
        """Keep pins for one device."""
        ...

    def release_pins(self, holder: Any, *names: int) -> None:
        """Give pins back."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InputLine:
    """How one button or key is wired. ``pull_up`` is None when the cabinet has its own resistor.

    A contact to ground with a pull-up is active low. A normally closed contact (doors) is the same wiring, active high.
    """

    bcm: int
    pull_up: bool | None = True
    active_low: bool = True


class GpioInputs:
    """The panel's input lines. Raises DeviceFault E-GPIO-TWICE, E-GPIO-PIN, E-GPIO-BUSY or E-GPIO-DENIED."""

    def __init__(self, lines: Mapping[str, InputLine], factory: PinFactory) -> None:
        _refuse_twice((name, line.bcm) for name, line in lines.items())
        self._taps: dict[str, _Tap] = {}
        try:
            for name, line in lines.items():
                self._taps[name] = _Tap(name, line, factory)
        except DeviceFault:
            self.close()
            raise

    def level(self, line: str) -> bool:
        """See ``EdgeInput``. Raises DeviceFault E-GPIO-GONE."""
        return self._taps[line].level()

    def on_edge(self, callback: Callable[[Edge], None] | None) -> None:
        """See ``EdgeInput``. Call it from the event loop."""
        for tap in self._taps.values():
            tap.tell(callback)

    def close(self) -> None:
        """Let the lines go."""
        for tap in self._taps.values():
            tap.close()
        self._taps.clear()


class _Tap:
    """One watched input pin. gpiozero keeps only a weak reference to a watcher: this object is what holds it."""

    def __init__(self, name: str, line: InputLine, factory: PinFactory) -> None:
        self._name = name
        self._line = line
        self._loop: asyncio.AbstractEventLoop | None = None
        self._callback: Callable[[Edge], None] | None = None
        # With a pull gpiozero insists on deriving the active level from it; ours is ``active_low``, applied to the pin.
        active_state = not line.active_low if line.pull_up is None else None
        device = partial(InputDevice, line.bcm, pull_up=line.pull_up, active_state=active_state, pin_factory=factory)
        self._device = _taken(name, line.bcm, device)

    def level(self) -> bool:
        return self._is_active(self._device.pin.state)

    def tell(self, callback: Callable[[Edge], None] | None) -> None:
        self._callback = callback
        if callback is not None:
            self._loop = asyncio.get_running_loop()
        self._device.pin.when_changed = None if callback is None else self._changed

    def close(self) -> None:
        if self._callback is not None:
            self.tell(None)
        self._device.close()

    def _changed(self, ticks: float, state: int) -> None:
        """In whatever thread the factory calls from. gpiozero's ticks are seconds of the monotonic clock."""
        if self._loop is not None:
            edge = Edge(line=self._name, active=self._is_active(state), at_us=round(ticks * 1_000_000))
            self._loop.call_soon_threadsafe(self._deliver, edge)

    def _deliver(self, edge: Edge) -> None:
        if self._callback is not None:
            self._callback(edge)

    def _is_active(self, state: int) -> bool:
        return bool(state) != self._line.active_low


class GpioOutputs:
    """The panel's lamps, lit when their pin is high, all off at first. Raises DeviceFault as ``GpioInputs`` does."""

    def __init__(self, lines: Mapping[str, int], factory: PinFactory) -> None:
        _refuse_twice(lines.items())
        self._lamps: dict[str, LED] = {}
        try:
            for name, bcm in lines.items():
                self._lamps[name] = _taken(name, bcm, partial(LED, bcm, pin_factory=factory))
        except DeviceFault:
            self.close()
            raise

    def set(self, line: str, on: bool) -> None:
        """See ``Output``. Raises DeviceFault E-GPIO-GONE."""
        self._lamps[line].value = on

    def close(self) -> None:
        """Let the lines go; the pin factory switches a lamp off before it does."""
        for lamp in self._lamps.values():
            lamp.close()
        self._lamps.clear()


def _refuse_twice(lines: Iterable[tuple[str, int]]) -> None:
    named = list(lines)
    counts = Counter(bcm for _, bcm in named)
    for bcm, count in counts.items():
        if count > 1:
            names = ", ".join(name for name, other in named if other == bcm)
            raise DeviceFault("E-GPIO-TWICE", f"GPIO{bcm}", f"{names} use the same pin: give each line its own")


def _taken(name: str, bcm: int, take: Callable[[], Any]) -> Any:
    """A gpiozero device, its refusals told as faults of the named line."""
    try:
        return take()
    except DeviceFault as fault:
        raise DeviceFault(fault.code, f"{name} on {fault.device}", fault.detail) from fault
    except GPIOPinInUse as error:
        raise DeviceFault("E-GPIO-TWICE", f"{name} on GPIO{bcm}", "this pin is used twice") from error
    except PinInvalidPin as error:
        raise DeviceFault("E-GPIO-PIN", f"{name} on GPIO{bcm}", "the header has no such pin") from error
