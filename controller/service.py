"""The daemon as its supervisor and its technician see it: ready, alive, on time, warm, and sure of the hour.

One heartbeat runs in the event loop, and everything here hangs on it. The rule of the watchdog: it is fed only by a
beat that came on time, and only while the parts of the daemon that work outside the loop (the journal's writer) are
alive too. A watchdog that a thread of its own feeds proves nothing. When it isn't fed, systemd ends the daemon and
starts it again, and the journal resumes where the last commit left it.

    beat ──► late? ──► parts alive? ──► WATCHDOG=1
      └────► wall clock against monotonic clock ──► ClockStepped
      └────► now and then: temperature, supply voltage

The messages to systemd are datagrams on the socket named by NOTIFY_SOCKET (sd_notify(3)). A datagram that can't be sent
is no reason to stop a table: it is counted, and the next beat sends the next one.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from drivers.clock import Clock
from games.rules import Input
from games.signals import ClockStepped

BEAT_US = 1_000_000
"""The heart beats once a second, or thrice within the watchdog's time when that is shorter."""

LATE_US = 500_000
"""A beat that comes later than this found the event loop blocked: it does not feed the watchdog."""

CLOCK_STEP_MS = 500
"""The wall clock moved by more than this against the monotonic clock between two beats: that is a step, not a drift."""

CLOCK_READING_US = 100_000
"""Reading both clocks took longer than this: the program was interrupted between them and nothing can be concluded."""

BOARD_BEATS = 10
"""Temperature and supply are read at every tenth beat: the reading asks the board's firmware and takes a moment."""

RTC_PLAUSIBLE_SECONDS = 1_767_225_600
"""2026-01-01. A clock chip that tells an earlier time has lost its battery."""


# ── Messages to systemd ───────────────────────────────────────────────────────────────────────────────────────────────


class Notifier:
    """Tells systemd how the daemon does. Without an address (a run by hand, or a test) it tells nobody."""

    def __init__(self, address: str) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.unsent = 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Notifier":
        """The notifier for the supervisor that started this process, if any."""
        return cls(environment.get("NOTIFY_SOCKET", ""))

    def ready(self, status: str) -> None:
        """Start-up is over and the table may be used."""
        self._send("READY=1", _status(status))

    def status(self, text: str) -> None:
        """One line for ``systemctl status``."""
        self._send(_status(text))

    def alive(self) -> None:
        """Feed the watchdog."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """An orderly stop began."""
        self._send("STOPPING=1")

    def _send(self, *fields: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
                line.setblocking(False)
                line.sendto("\n".join(fields).encode(), self._address)
        except OSError:
            self.unsent += 1


def _status(text: str) -> str:
    return "STATUS=" + " ".join(text.split())


def watchdog_us(environment: Mapping[str, str], process: int) -> int | None:
    """How soon systemd wants a sign of life, None when it wants none from this process (sd_watchdog_enabled(3))."""
    if environment.get("WATCHDOG_PID", str(process)) != str(process):
        return None
    wanted = environment.get("WATCHDOG_USEC", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) > 0 else None


# ── The wall clock ────────────────────────────────────────────────────────────────────────────────────────────────────


class TimeQuality(StrEnum):
    """How far the wall clock can be trusted."""

    NTP = "ntp"  # set by a time server since this boot
    RTC = "rtc"  # set at boot by a clock chip with a battery
    FREE = "free"  # the last saved hour went on: it may be wrong by any amount


def time_quality(run: Path = Path("/run"), sysfs: Path = Path("/sys")) -> TimeQuality:
    """What this machine's wall clock rests on: systemd-timesyncd's mark, else a clock chip that set it at boot."""
    if (run / "systemd/timesync/synchronized").exists():
        return TimeQuality.NTP
    for chip in sorted((sysfs / "class/rtc").glob("rtc*")):
        if _number(chip / "hctosys") == 1 and (_number(chip / "since_epoch") or 0) >= RTC_PLAUSIBLE_SECONDS:
            return TimeQuality.RTC
    return TimeQuality.FREE


class ClockWatch:
    """Finds steps of the wall clock: its distance from the monotonic clock does not change by itself."""

    def __init__(self, clock: Clock, quality: Callable[[], TimeQuality]) -> None:
        self._clock = clock
        self._quality = quality
        self._offset_ms = self._read_offset_ms()

    def check(self) -> ClockStepped | None:
        """The step since the last check, if there was one."""
        offset_ms = self._read_offset_ms()
        if offset_ms is None:
            return None
        last_ms, self._offset_ms = self._offset_ms, offset_ms
        if last_ms is None or abs(offset_ms - last_ms) <= CLOCK_STEP_MS:
            return None
        return ClockStepped(at_us=self._clock.mono_us(), by_ms=offset_ms - last_ms, quality=self._quality())

    def _read_offset_ms(self) -> int | None:
        before_us = self._clock.mono_us()
        wall_ms = self._clock.wall_ms()
        took_us = self._clock.mono_us() - before_us
        return None if took_us > CLOCK_READING_US else wall_ms - before_us // 1_000


def step_while_down(last_time: str, clock: Clock, quality: TimeQuality) -> ClockStepped | None:
    """The step by which the wall clock is behind ``last_time``, the UTC time in the last entry from before a start.

    How long the table was down is not known, so that only a clock that went back can be told from one that went on.
    """
    last_ms = round(datetime.fromisoformat(last_time).timestamp() * 1_000)
    by_ms = clock.wall_ms() - last_ms
    if by_ms >= -CLOCK_STEP_MS:
        return None
    return ClockStepped(at_us=clock.mono_us(), by_ms=by_ms, quality=quality)


# ── The board ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardHealth:
    """What the board says of itself, each None where it does not say. The temperature is in thousandths of a degree."""

    temperature_mc: int | None
    undervoltage: bool | None


def read_board(sysfs: Path = Path("/sys")) -> BoardHealth | None:
    """The Pi's temperature and whether its supply is too low now; None on a machine that tells neither."""
    temperature_mc = _number_of(sysfs / "class/thermal", "thermal_zone*", "type", "cpu-thermal", "temp")
    alarm = _number_of(sysfs / "class/hwmon", "hwmon*", "name", "rpi_volt", "in0_lcrit_alarm")
    if temperature_mc is None and alarm is None:
        return None
    return BoardHealth(temperature_mc=temperature_mc, undervoltage=None if alarm is None else alarm != 0)


def _number_of(folder: Path, pattern: str, label: str, wanted: str, file: str) -> int | None:
    """The number in ``file`` of the device whose ``label`` reads ``wanted``."""
    for device in sorted(folder.glob(pattern)):
        if _text(device / label) == wanted:
            return _number(device / file)
    return None


def _number(file: Path) -> int | None:
    text = _text(file)
    return int(text) if text.removeprefix("-").isdecimal() else None


def _text(file: Path) -> str:
    """The content of a small kernel file, empty when there is none or its driver does not answer."""
    with suppress(OSError):
        return file.read_text(encoding="ascii", errors="replace").strip()
    return ""


# ── The heartbeat ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLag:
    """How late the event loop ran the heartbeat: the last time, the worst time, and how often too late."""

    last_us: int = 0
    worst_us: int = 0
    beats: int = 0
    late_beats: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceHealth:
    """What ``tablectl status`` shows of the process. ``withheld`` says why the watchdog isn't fed, empty when it is."""

    lag: LoopLag
    withheld: str
    time_quality: TimeQuality
    board: BoardHealth | None
    unsent_notifications: int


class Heartbeat:
    """Beats in the event loop. ``ailing`` names the part of the daemon that is not alive, or is empty when all are;
    ``emit`` takes ClockStepped. ``watchdog_us`` is None when nobody waits for a sign of life.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        notifier: Notifier,
        watchdog_us: int | None,
        ailing: Callable[[], str],
        emit: Callable[[Input], None],
        quality: Callable[[], TimeQuality] = time_quality,
        board: Callable[[], BoardHealth | None] = read_board,
    ) -> None:
        self._clock = clock
        self._notifier = notifier
        self._watched = watchdog_us is not None
        self._beat_us = BEAT_US if watchdog_us is None else min(BEAT_US, watchdog_us // 3)
        self._ailing = ailing
        self._emit = emit
        self._quality = quality
        self._read_board = board
        self._clock_watch = ClockWatch(clock, quality)
        self._board = board()
        self._lag = LoopLag()
        self._withheld = ""

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            due_us = self._clock.mono_us() + self._beat_us
            await asyncio.sleep(self._beat_us / 1_000_000)
            self.beat(late_us=self._clock.mono_us() - due_us)

    def beat(self, late_us: int) -> None:
        """One beat, which came ``late_us`` after it was due."""
        lag = self._lag
        late = late_us > LATE_US
        self._lag = LoopLag(
            last_us=late_us,
            worst_us=max(lag.worst_us, late_us),
            beats=lag.beats + 1,
            late_beats=lag.late_beats + late,
        )
        self._feed(f"the event loop was blocked for {late_us // 1_000} ms" if late else self._ailing())
        step = self._clock_watch.check()
        if step is not None:
            self._emit(step)
        if self._lag.beats % BOARD_BEATS == 0:
            self._board = self._read_board()

    def health(self) -> ServiceHealth:
        """How the process does now."""
        return ServiceHealth(
            lag=self._lag,
            withheld=self._withheld,
            time_quality=self._quality(),
            board=self._board,
            unsent_notifications=self._notifier.unsent,
        )

    def _feed(self, withheld: str) -> None:
        """Feed the watchdog unless there is a reason not to; a new reason is told to systemd as the status."""
        if not self._watched:
            self._withheld = withheld
            return
        if withheld and withheld != self._withheld:
            self._notifier.status(f"E-SERVICE-AILING: no sign of life given: {withheld}")
        elif not withheld:
            self._notifier.alive()
            if self._withheld:
                self._notifier.status("alive again")
        self._withheld = withheld
