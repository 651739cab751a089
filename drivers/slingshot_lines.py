"""The lines of a SlingShot 2: bytes in, whole lines out, and a line is what it says or it is nothing.

The wheel ends every line with CR LF and begins every packet with ``*``; only the bare number has no star (developer
guide V2.10). There is no checksum, so the grammar is the whole defence against a damaged byte, and it is strict:

    *X;S;NNN;WW;F;RRR;D     status: state, spin, number, flags, rotor rpm × 10, direction
    "27", " 7", "00"        the bare number: exactly two characters, never stripped before it matched
    *L text                 a reply to command L, spelt unevenly (``*T OK``, ``T OK``, ``*Z OK``, ``*T m 1.5``)

Lost terminators glue frames together (``*X;4;14*X;*X;4;146; 9;0;158;0`` was recorded), so a line is read from its last
star on. A rest without a star must match as a whole: ``00;0``, the tail of a status line, is not double zero.
"""

import re
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from games.signals import Direction

LINE_BOUND = 160
"""Bytes of the longest line that is believed. A status line has 22, the longest known reply about 60."""

BUFFER_BOUND = 512
"""Bytes kept while a line end is awaited. Older ones are dropped: they could only be part of a line over its bound."""

STATUS = re.compile(rb"\*X;([1-7]);(\d{3});( \d|[1-3]\d|00|  );([0-9A-F]);(\d{3});([01])")
NUMBER = re.compile(rb" \d|[1-3]\d|00")
REPLY = re.compile(rb"\*([ -~])(?: ([ -~]+))?")
STARLESS_REPLY = re.compile(rb"([A-Za-z]) (OK|NO|BUSY)")
SENSOR_STREAM = re.compile(rb"\*(b)([sn] \d{1,3})")  # raw hits and pocket, after *I 4
BONUS = re.compile(rb"\*(Y);([1-6];\d{3}(?:;\d\d)?)")  # licensed; the table draws its own bonus number instead

SPINS = 256
"""Spins are numbered from 1 to 256 after power-on, then from 1 again."""


class WheelState(IntEnum):
    """Field S of the status line."""

    BEFORE_GAME = 1
    PLACE_BETS = 2  # the ball is launched in this state too
    BALL_IN_RIM = 3
    NO_MORE_BETS = 4
    WINNING_NUMBER = 5
    IDLE = 6
    NOT_IN_TRACK = 7  # firmware 2.52, only with option bit 32


class WheelFlag(IntFlag):
    """Field F of the status line, a sum."""

    BALL_MISSING = 1
    BALL_WITH_ROTOR = 2
    DEVICE_FAULT = 4  # sensor, motor or encoder
    LAUNCH_FAILED = 8


@dataclass(frozen=True, slots=True)
class StatusLine:
    """One status line. ``number`` is as sent, two characters: in states 1 to 4 it is the number of the spin before."""

    state: WheelState
    spin: int
    number: str
    flags: WheelFlag
    rotor_mrpm: int
    direction: Direction


@dataclass(frozen=True, slots=True)
class NumberLine:
    """The bare number line, two characters as sent."""

    number: str


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a command, or something the wheel said unasked (``*F code``, ``*Y;k;nnn``)."""

    letter: str
    text: str
    at_us: int


class LineFramer:
    """Cuts the stream at CR LF. The lines do not depend on how the stream was cut into reads."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are now whole, without their ends."""
        *lines, pending = (self._pending + data).split(b"\r\n")
        self._pending = pending[-BUFFER_BOUND:]
        return lines

    def reset(self) -> None:
        """Forget a half line: the stream was interrupted here."""
        self._pending = b""


def from_last_star(line: bytes) -> bytes:
    """What is left of a line when everything before its last star is taken for the rest of damaged ones."""
    return line[max(0, line.rfind(b"*")) :]


def parse_line(line: bytes, at_us: int) -> StatusLine | NumberLine | Reply | None:
    """Read one line (from its last star on), or None when it is no line of this protocol."""
    if len(line) > LINE_BOUND:
        return None
    if line.startswith(b"*X;"):
        return _status(line)
    if NUMBER.fullmatch(line):
        return NumberLine(line.decode("ascii"))
    for shape in (REPLY, STARLESS_REPLY, SENSOR_STREAM, BONUS):
        if match := shape.fullmatch(line):
            letter, text = match.groups(b"")
            return Reply(letter.decode("ascii"), text.decode("ascii"), at_us)
    return None


def _status(line: bytes) -> StatusLine | None:
    match = STATUS.fullmatch(line)
    if match is None or int(match[2]) > SPINS:
        return None
    state, spin, number, flags, rotor, direction = match.groups()
    return StatusLine(
        state=WheelState(int(state)),
        spin=int(spin),
        number=number.decode("ascii"),
        flags=WheelFlag(int(flags, 16)),
        rotor_mrpm=int(rotor) * 100,
        direction=Direction.COUNTERCLOCKWISE if direction == b"1" else Direction.CLOCKWISE,
    )


def next_spin(spin: int) -> int:
    """The number of the spin after ``spin``: 256 is followed by 1."""
    return spin % SPINS + 1


def previous_spin(spin: int) -> int:
    """The number of the spin before ``spin``: 1 follows 256."""
    return (spin - 2) % SPINS + 1
