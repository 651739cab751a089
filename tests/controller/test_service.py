"""The heartbeat: the watchdog is fed by a loop that is on time and a daemon that is alive, and by nothing else."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.rehearsal.virtual_time import VirtualTimeLoop
from controller.service import (
    BEAT_US,
    BOARD_BEATS,
    CLOCK_READING_US,
    CLOCK_STEP_MS,
    LATE_US,
    BoardHealth,
    ClockWatch,
    Heartbeat,
    Notifier,
    TimeQuality,
    read_board,
    time_quality,
    watchdog_us,
)
from drivers.clock import ManualClock
from games.rules import Input
from games.signals import ClockStepped

SECOND_US = 1_000_000


class Systemd:
    """The supervisor's end of the notification socket."""

    def __init__(self, address: str) -> None:
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.line.bind("\0" + address[1:] if address.startswith("@") else address)
        self.line.setblocking(False)
        self.address = address

    def heard(self) -> list[str]:
        """All datagrams since the last look."""
        found = []
        while True:
            try:
                found.append(self.line.recv(4_096).decode())
            except BlockingIOError:
                return found


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    supervisor = Systemd(str(tmp_path / "notify"))
    yield supervisor
    supervisor.line.close()


# ── Messages to systemd ───────────────────────────────────────────────────────────────────────────────────────────────


def test_messages_to_systemd_are_datagrams_of_fields(systemd: Systemd) -> None:
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": systemd.address})
    notifier.ready("table t07, séance closed")
    notifier.status("two\nlines  become one")
    notifier.alive()
    notifier.stopping()
    assert systemd.heard() == [
        "READY=1\nSTATUS=table t07, séance closed",
        "STATUS=two lines become one",
        "WATCHDOG=1",
        "STOPPING=1",
    ]
    assert notifier.unsent == 0


def test_messages_to_an_abstract_socket_arrive(tmp_path: Path) -> None:
    supervisor = Systemd(f"@{tmp_path}/notify")
    Notifier(supervisor.address).alive()
    assert supervisor.heard() == ["WATCHDOG=1"]
    supervisor.line.close()


def test_notifier_without_a_supervisor_tells_nobody() -> None:
    notifier = Notifier.from_environment({})
    notifier.ready("by hand")
    assert notifier.unsent == 0


def test_message_that_cannot_be_sent_is_counted_and_stops_nothing(tmp_path: Path) -> None:
    notifier = Notifier(str(tmp_path / "nobody"))
    notifier.alive()
    notifier.stopping()
    assert notifier.unsent == 2


def test_message_to_a_supervisor_that_does_not_read_is_counted_and_does_not_block(systemd: Systemd) -> None:
    notifier = Notifier(systemd.address)
    for _ in range(10_000):
        notifier.alive()
        if notifier.unsent:
            break
    assert notifier.unsent == 1


@pytest.mark.parametrize(
    ("environment", "wanted_us"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "15000000"}, 15 * SECOND_US),
        ({"WATCHDOG_USEC": "15000000", "WATCHDOG_PID": "42"}, 15 * SECOND_US),
        ({"WATCHDOG_USEC": "15000000", "WATCHDOG_PID": "41"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_watchdog_time_is_taken_from_the_environment_of_this_process(
    environment: dict[str, str], wanted_us: int | None
) -> None:
    assert watchdog_us(environment, process=42) == wanted_us


# ── The heartbeat ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Daemon:
    """What the heartbeat is connected to."""

    systemd: Systemd
    clock: ManualClock = field(default_factory=ManualClock)
    ailing: str = ""
    emitted: list[Input] = field(default_factory=list)
    board_readings: int = 0

    def heartbeat(self, watchdog: int | None = 15 * SECOND_US) -> Heartbeat:
        return Heartbeat(
            clock=self.clock,
            notifier=Notifier(self.systemd.address),
            watchdog_us=watchdog,
            ailing=lambda: self.ailing,
            emit=self.emitted.append,
            quality=lambda: TimeQuality.NTP,
            board=self.board,
        )

    def board(self) -> BoardHealth:
        self.board_readings += 1
        return BoardHealth(temperature_mc=40_000 + self.board_readings, undervoltage=False)


@pytest.fixture
def daemon(systemd: Systemd) -> Daemon:
    return Daemon(systemd)


def test_beat_on_time_of_a_daemon_that_is_alive_feeds_the_watchdog(daemon: Daemon) -> None:
    daemon.heartbeat().beat(late_us=LATE_US)
    assert daemon.systemd.heard() == ["WATCHDOG=1"]


def test_beat_that_is_late_does_not_feed_the_watchdog_and_says_why(daemon: Daemon) -> None:
    heartbeat = daemon.heartbeat()
    heartbeat.beat(late_us=LATE_US + 1_000)
    (told,) = daemon.systemd.heard()
    assert told == "STATUS=E-SERVICE-AILING: no sign of life given: the event loop was blocked for 501 ms"
    assert heartbeat.health().withheld == "the event loop was blocked for 501 ms"


def test_watchdog_of_an_ailing_daemon_is_not_fed_until_it_is_alive_again(daemon: Daemon) -> None:
    heartbeat = daemon.heartbeat()
    daemon.ailing = "the journal's writer stopped"
    for _ in range(3):
        heartbeat.beat(late_us=0)
    assert daemon.systemd.heard() == ["STATUS=E-SERVICE-AILING: no sign of life given: the journal's writer stopped"]
    daemon.ailing = ""
    heartbeat.beat(late_us=0)
    heartbeat.beat(late_us=0)
    assert daemon.systemd.heard() == ["WATCHDOG=1", "STATUS=alive again", "WATCHDOG=1"]


@given(st.lists(st.tuples(st.integers(0, 2 * LATE_US), st.booleans()), max_size=30))
def test_watchdog_is_fed_by_exactly_the_beats_on_time_of_a_daemon_alive(beats: list[tuple[int, bool]]) -> None:
    supervisor = Systemd(f"@table-controller-test-{os.getpid()}")
    daemon = Daemon(supervisor)
    heartbeat = daemon.heartbeat()
    for late_us, alive in beats:
        daemon.ailing = "" if alive else "writer"
        heartbeat.beat(late_us)
        fed = "WATCHDOG=1" in supervisor.heard()
        assert fed is (alive and late_us <= LATE_US)
    supervisor.line.close()


def test_lag_of_the_loop_is_measured(daemon: Daemon) -> None:
    heartbeat = daemon.heartbeat()
    for late_us in (100, LATE_US + 5, 7):
        heartbeat.beat(late_us)
    lag = heartbeat.health().lag
    assert (lag.last_us, lag.worst_us, lag.beats, lag.late_beats) == (7, LATE_US + 5, 3, 1)


def test_daemon_that_no_watchdog_waits_for_beats_in_silence(daemon: Daemon) -> None:
    heartbeat = daemon.heartbeat(watchdog=None)
    daemon.ailing = "the journal's writer stopped"
    heartbeat.beat(late_us=0)
    assert daemon.systemd.heard() == []
    assert heartbeat.health().withheld == "the journal's writer stopped"


def test_board_is_read_now_and_then_and_not_at_every_beat(daemon: Daemon) -> None:
    heartbeat = daemon.heartbeat()
    for _ in range(3 * BOARD_BEATS):
        heartbeat.beat(late_us=0)
    assert heartbeat.health().board == BoardHealth(temperature_mc=40_004, undervoltage=False)


def test_health_tells_of_notifications_that_could_not_be_sent(daemon: Daemon, tmp_path: Path) -> None:
    daemon.systemd.line.close()
    heartbeat = daemon.heartbeat()
    heartbeat.beat(late_us=0)
    assert heartbeat.health().unsent_notifications == 1


class SlippingClock:
    """The clock of a loop in virtual time; ``slip_us`` is time that passed while the loop was blocked."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.slip_us = 0

    def mono_us(self) -> int:
        return round(self.loop.time() * 1_000_000) + self.slip_us

    def wall_ms(self) -> int:
        return self.mono_us() // 1_000

    def slip(self, by_us: int) -> None:
        self.slip_us += by_us


def beats_in(
    systemd: Systemd, seconds: int, watchdog: int, meanwhile: Callable[[SlippingClock], object] = lambda clock: None
) -> tuple[list[str], Heartbeat]:
    """Run the heartbeat for some seconds of virtual time."""
    loop = VirtualTimeLoop()
    clock = SlippingClock(loop)
    heartbeat = Heartbeat(
        clock=clock,
        notifier=Notifier(systemd.address),
        watchdog_us=watchdog,
        ailing=lambda: "",
        emit=lambda signal: None,
        quality=lambda: TimeQuality.FREE,
        board=lambda: None,
    )
    task = loop.create_task(heartbeat.run())
    meanwhile(clock)
    heard: list[str] = []
    for second in range(seconds):
        loop.call_later(second + 0.5, lambda: heard.extend(systemd.heard()))
    loop.call_later(seconds + 0.25, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()
    return [*heard, *systemd.heard()], heartbeat


def test_heart_beats_once_a_second_in_the_event_loop(systemd: Systemd) -> None:
    heard, heartbeat = beats_in(systemd, seconds=60, watchdog=15 * SECOND_US)
    assert heard == ["WATCHDOG=1"] * 60
    assert heartbeat.health().lag.worst_us < 1_000


def test_heart_beats_thrice_within_a_short_watchdog_time(systemd: Systemd) -> None:
    heard, _ = beats_in(systemd, seconds=60, watchdog=3 * BEAT_US // 2)
    assert heard == ["WATCHDOG=1"] * 120


def test_loop_that_was_blocked_misses_one_feeding_and_goes_on(systemd: Systemd) -> None:
    def block(clock: SlippingClock) -> None:
        clock.loop.call_later(3.5, clock.slip, 2 * SECOND_US)

    heard, heartbeat = beats_in(systemd, seconds=10, watchdog=15 * SECOND_US, meanwhile=block)
    assert heard.count("WATCHDOG=1") == 9
    assert heard[3].startswith("STATUS=E-SERVICE-AILING: no sign of life given: the event loop was blocked for 2")
    assert heartbeat.health().lag.late_beats == 1


# ── The wall clock ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("by_ms", [CLOCK_STEP_MS + 1, -CLOCK_STEP_MS - 1, 86_400_000, -86_400_000])
def test_step_of_the_wall_clock_is_told_once(daemon: Daemon, by_ms: int) -> None:
    heartbeat = daemon.heartbeat()
    heartbeat.beat(late_us=0)
    daemon.clock.wall_offset_ms += by_ms
    daemon.clock.advance_us(BEAT_US)
    heartbeat.beat(late_us=0)
    heartbeat.beat(late_us=0)
    assert daemon.emitted == [ClockStepped(at_us=BEAT_US, by_ms=by_ms, quality="ntp")]


def test_drift_of_the_wall_clock_is_no_step_however_far_it_goes(daemon: Daemon) -> None:
    heartbeat = daemon.heartbeat()
    for _ in range(100):
        daemon.clock.wall_offset_ms += CLOCK_STEP_MS
        daemon.clock.advance_us(BEAT_US)
        heartbeat.beat(late_us=0)
    assert daemon.emitted == []


class InterruptedClock(ManualClock):
    """A clock whose reader is suspended between the monotonic and the wall clock."""

    suspend_us = 0

    def wall_ms(self) -> int:
        self.advance_us(self.suspend_us)
        return super().wall_ms()


def test_reader_suspended_between_the_two_clocks_sees_no_step() -> None:
    clock = InterruptedClock()
    watch = ClockWatch(clock, lambda: TimeQuality.FREE)
    clock.suspend_us = CLOCK_READING_US + SECOND_US
    assert watch.check() is None
    clock.suspend_us = 0
    assert watch.check() is None
    clock.wall_offset_ms += 1_000
    assert watch.check() == ClockStepped(at_us=clock.mono_us(), by_ms=1_000, quality="free")


def machine(folder: Path, **files: str) -> Path:
    """A folder with these small files, in which double underscores stand for slashes."""
    for name, text in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")
    return folder


PLAUSIBLE, BATTERY_GONE = "1796000000\n", "12\n"


@pytest.mark.parametrize(
    ("files", "quality"),
    [
        ({}, TimeQuality.FREE),
        ({"run__systemd__timesync__synchronized": ""}, TimeQuality.NTP),
        ({"class__rtc__rtc0__hctosys": "1\n", "class__rtc__rtc0__since_epoch": PLAUSIBLE}, TimeQuality.RTC),
        ({"class__rtc__rtc0__hctosys": "1\n", "class__rtc__rtc0__since_epoch": BATTERY_GONE}, TimeQuality.FREE),
        ({"class__rtc__rtc0__hctosys": "0\n", "class__rtc__rtc0__since_epoch": PLAUSIBLE}, TimeQuality.FREE),
        ({"class__rtc__rtc0__hctosys": "1\n"}, TimeQuality.FREE),
        (
            {
                "run__systemd__timesync__synchronized": "",
                "class__rtc__rtc0__hctosys": "1\n",
                "class__rtc__rtc0__since_epoch": PLAUSIBLE,
            },
            TimeQuality.NTP,
        ),
    ],
)
def test_quality_of_the_wall_clock_is_what_it_rests_on(
    tmp_path: Path, files: dict[str, str], quality: TimeQuality
) -> None:
    folder = machine(tmp_path, **files)
    assert time_quality(run=folder / "run", sysfs=folder) is quality


# ── The board ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PI = {
    "class__thermal__thermal_zone0__type": "cpu-thermal\n",
    "class__thermal__thermal_zone0__temp": "51120\n",
    "class__hwmon__hwmon0__name": "cpu_thermal\n",
    "class__hwmon__hwmon2__name": "rpi_volt\n",
    "class__hwmon__hwmon2__in0_lcrit_alarm": "0\n",
}


@pytest.mark.parametrize(
    ("changes", "health"),
    [
        ({}, BoardHealth(temperature_mc=51_120, undervoltage=False)),
        ({"class__hwmon__hwmon2__in0_lcrit_alarm": "1\n"}, BoardHealth(temperature_mc=51_120, undervoltage=True)),
        ({"class__hwmon__hwmon2__name": "other\n"}, BoardHealth(temperature_mc=51_120, undervoltage=None)),
        ({"class__thermal__thermal_zone0__temp": "-1200\n"}, BoardHealth(temperature_mc=-1_200, undervoltage=False)),
        ({"class__thermal__thermal_zone0__temp": "hot\n"}, BoardHealth(temperature_mc=None, undervoltage=False)),
    ],
)
def test_board_tells_its_temperature_and_whether_its_supply_is_low(
    tmp_path: Path, changes: dict[str, str], health: BoardHealth
) -> None:
    assert read_board(machine(tmp_path, **{**PI, **changes})) == health


def test_machine_that_tells_neither_temperature_nor_supply_has_no_board_health(tmp_path: Path) -> None:
    assert read_board(machine(tmp_path, class__thermal__thermal_zone0__type="x86_pkg_temp\n")) is None


def test_board_whose_driver_does_not_answer_is_as_one_that_does_not_tell(tmp_path: Path) -> None:
    folder = machine(tmp_path, **{**PI, "class__thermal__thermal_zone0__type": "cpu-thermal\n"})
    (folder / "class/thermal/thermal_zone0/temp").unlink()
    (folder / "class/thermal/thermal_zone0/temp").mkdir()
    assert read_board(folder) == BoardHealth(temperature_mc=None, undervoltage=False)
