"""The ports: the only shapes through which bytes and edges enter and leave.

A real port touches the kernel (``gpio.py``, ``serial_line.py``); its twin (``twin/``) replaces it, so that every
decoder and all above runs unchanged in simulation. Ports never block: they are pumped from the event loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class DeviceFault(Exception):
    """A port cannot do its work: absent, busy, unplugged. ``code`` is explained by ``tablectl explain``."""

    def __init__(self, code: str, device: str, detail: str) -> None:
        super().__init__(f"{code} {device}: {detail}")
        self.code = code
        self.device = device
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One change of one input line. ``active`` is the logical level after it (a pull-up button is active when low)."""

    line: str
    active: bool
    at_us: int


class ByteLine(Protocol):
    """A serial line."""

    def read(self) -> bytes:
        """All bytes that have arrived, perhaps none. Raises DeviceFault when the line is gone."""
        ...

    def write(self, data: bytes) -> None:
        """Send. Raises DeviceFault when the line is gone."""
        ...

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        """Call back from the event loop whenever bytes may be waiting; None ends it."""
        ...

    def close(self) -> None:
        """Let the device go. A closed line may not be used again; open a new one."""
        ...


class EdgeInput(Protocol):
    """A group of input lines (buttons, keys)."""

    def level(self, line: str) -> bool:
        """The logical level of a line now."""
        ...

    def on_edge(self, callback: Callable[[Edge], None] | None) -> None:
        """Call back from the event loop for each edge, in order of time; None ends it."""
        ...

    def close(self) -> None:
        """Let the lines go."""
        ...


class Output(Protocol):
    """A group of output lines (lamps)."""

    def set(self, line: str, on: bool) -> None:
        """Drive a line. Raises DeviceFault when the chip is gone."""
        ...

    def close(self) -> None:
        """Switch all off and let the lines go."""
        ...
