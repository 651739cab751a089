"""Standing conditions: each is told once, at the time that the maker's rules give it, and its end with its length."""

import pytest

from drivers.slingshot import WheelSettings
from games.signals import BallLaunched, WheelFaultCleared, WheelFaultKind, WheelFaultSeen
from tests.drivers.slingshot_stage import PERIOD_US, Stage, status

BALL_MISSING, BALL_WITH_ROTOR, DEVICE_FAULT, LAUNCH_FAILED = 1, 2, 4, 8


def conditions(stage: Stage) -> list[tuple[str, WheelFaultKind]]:
    return [
        ("seen" if isinstance(signal, WheelFaultSeen) else "cleared", signal.fault)
        for signal in stage.told
        if isinstance(signal, WheelFaultSeen | WheelFaultCleared)
    ]


def periods_until_seen(stage: Stage, line: bytes, most: int = 60) -> int | None:
    """How many lines it takes until a fault is told, the first one not counted; None when it never is."""
    for nth in range(most):
        if any(isinstance(signal, WheelFaultSeen) for signal in stage.lines(line)):
            return nth
    return None


def test_launch_that_fails_for_minutes_is_one_alarm_with_its_duration() -> None:
    stage = Stage()
    stage.lines(status(2), *[status(2, flags=LAUNCH_FAILED)] * 455, *[status(3)] * 4)
    kind = WheelFaultKind.LAUNCH_FAILED
    assert conditions(stage) == [("seen", kind), ("cleared", kind)]
    assert [s.lasted_ms for s in stage.told if isinstance(s, WheelFaultCleared)] == [227_000]


def test_failed_launch_that_lingers_for_three_seconds_in_the_rim_is_ignored_by_the_makers_rule() -> None:
    stage = Stage()
    stage.lines(*[status(2)] * 2, *[status(3, flags=LAUNCH_FAILED)] * 6, *[status(3)] * 4)
    assert conditions(stage) == []


def test_failed_launch_after_three_seconds_in_the_rim_is_an_alarm() -> None:
    stage = Stage()
    stage.lines(*[status(2)] * 2)
    assert periods_until_seen(stage, status(3, flags=LAUNCH_FAILED)) == 7


def test_missing_ball_after_no_more_bets_is_ignored_for_ten_lines() -> None:
    stage = Stage(state=4)
    assert periods_until_seen(stage, status(4, flags=BALL_MISSING)) == 10
    assert conditions(stage) == [("seen", WheelFaultKind.BALL_MISSING)]


def test_missing_ball_that_is_found_within_five_seconds_is_nothing() -> None:
    stage = Stage(state=4)
    stage.lines(*[status(4, flags=BALL_MISSING)] * 9, status(4), *[status(4, flags=BALL_MISSING)] * 9, status(4))
    assert conditions(stage) == []


@pytest.mark.parametrize("state", [1, 2, 5, 6])
def test_ball_at_rest_is_not_missing(state: int) -> None:
    stage = Stage(state=state)
    assert periods_until_seen(stage, status(state, flags=BALL_MISSING, rotor=0)) is None


@pytest.mark.law("67-15")
@pytest.mark.parametrize("state", [2, 3, 4])
def test_ball_that_turns_with_the_rotor_is_an_alarm_on_the_second_line(state: int) -> None:
    stage = Stage(state=state)
    assert periods_until_seen(stage, status(state, flags=BALL_WITH_ROTOR)) == 1
    assert conditions(stage) == [("seen", WheelFaultKind.BALL_WITH_ROTOR)]


@pytest.mark.parametrize("state", [1, 4, 6])
def test_device_fault_is_an_alarm_in_any_state(state: int) -> None:
    stage = Stage(state=state)
    assert periods_until_seen(stage, status(state, flags=DEVICE_FAULT)) == 1
    assert conditions(stage) == [("seen", WheelFaultKind.SENSOR_FAULT)]


@pytest.mark.parametrize("flags", [1, 2, 4, 8, 15])
def test_flag_on_one_line_only_is_taken_for_a_damaged_line(flags: int) -> None:
    stage = Stage(state=4)
    for _ in range(5):
        stage.lines(status(4, flags=flags), status(4))
    assert conditions(stage) == []


def test_condition_is_over_after_two_periods_without_it() -> None:
    stage = Stage()
    stage.lines(*[status(1, flags=DEVICE_FAULT)] * 3, status(1), status(1, flags=DEVICE_FAULT), status(1))
    assert conditions(stage) == [("seen", WheelFaultKind.SENSOR_FAULT)]
    assert stage.lines(status(1)) == [
        WheelFaultCleared(at_us=stage.at_us, fault=WheelFaultKind.SENSOR_FAULT, lasted_ms=2_000)
    ]


@pytest.mark.law("67-15")
def test_runaway_rotor_after_no_more_bets_is_an_alarm_within_a_second() -> None:
    stage = Stage(state=4)
    stage.lines(status(4, rotor=165))
    first_us = stage.at_us + PERIOD_US
    seen = [s for s in stage.lines(*[status(4, rotor=rotor) for rotor in (310, 620, 940)]) if s.at_us]
    assert [(s.fault, s.at_us - first_us <= 1_000_000) for s in seen if isinstance(s, WheelFaultSeen)] == [
        (WheelFaultKind.ROTOR_SPEED, True)
    ]
    assert "62.0 rpm" in seen[0].detail
    assert "12.0 rpm to 20.0 rpm" in seen[0].detail


@pytest.mark.parametrize("rotor", [110, 210])
@pytest.mark.parametrize("state", [3, 4])
def test_rotor_out_of_its_range_in_flight_is_an_alarm_after_two_seconds(state: int, rotor: int) -> None:
    stage = Stage(state=state)
    assert periods_until_seen(stage, status(state, rotor=rotor)) == 4
    assert conditions(stage) == [("seen", WheelFaultKind.ROTOR_SPEED)]


@pytest.mark.parametrize("rotor", [120, 160, 200])
def test_rotor_at_the_limits_of_its_range_is_right(rotor: int) -> None:
    stage = Stage(state=4)
    assert periods_until_seen(stage, status(4, rotor=rotor)) is None


@pytest.mark.parametrize("state", [1, 2, 5])
def test_rotor_that_brakes_and_turns_over_out_of_flight_is_right(state: int) -> None:
    stage = Stage(state=state)
    assert periods_until_seen(stage, status(state, rotor=0)) is None


def test_rotor_far_too_fast_is_an_alarm_in_any_state() -> None:
    stage = Stage()
    assert periods_until_seen(stage, status(1, rotor=301)) == 1


def test_rotor_that_fails_in_flight_is_a_speed_alarm_then_a_device_alarm_then_a_stop() -> None:
    stage = Stage(state=3)
    climb = [status(4, rotor=rotor) for rotor in (160, 120, 80, 200, 400, 600, 800, 940)]
    stage.lines(*climb, *[status(4, rotor=0, flags=DEVICE_FAULT)] * 150, *[status(6, rotor=0, flags=DEVICE_FAULT)] * 4)
    assert [kind for what, kind in conditions(stage) if what == "seen"] == [
        WheelFaultKind.ROTOR_SPEED,
        WheelFaultKind.SENSOR_FAULT,
        WheelFaultKind.STOPPED,
    ]


@pytest.mark.parametrize("state", [1, 2, 3, 4, 5])
def test_wheel_that_switches_itself_off_is_stopped_until_it_runs_again(state: int) -> None:
    stage = Stage(state=state)
    stage.lines(*[status(6)] * 4)
    assert conditions(stage) == [("seen", WheelFaultKind.STOPPED)]
    stage.lines(*[status(1)] * 4)
    assert conditions(stage)[1:] == [("cleared", WheelFaultKind.STOPPED)]


def test_wheel_found_idle_or_told_to_be_idle_is_no_fault() -> None:
    stage = Stage(state=6)
    stage.lines(*[status(6)] * 10, *[status(1)] * 10)
    stage.decoder.ask_stop(True)
    stage.lines(*[status(1)] * 3, *[status(6)] * 10)
    assert conditions(stage) == []
    stage.decoder.ask_stop(False)
    stage.lines(*[status(6)] * 3)
    assert conditions(stage) == [("seen", WheelFaultKind.STOPPED)]


def test_ball_that_is_not_in_the_track_is_an_alarm() -> None:
    stage = Stage(state=4)
    assert periods_until_seen(stage, status(7)) == 1
    assert conditions(stage) == [("seen", WheelFaultKind.BALL_NOT_IN_TRACK)]


def test_code_of_the_wheels_own_test_is_told_once_and_cleared_by_code_0() -> None:
    stage = Stage()
    stage.lines(b"*F 11\r\n", b"*F 11\r\n", b"*F 99\r\n", every_us=1_000)
    assert [s.detail for s in stage.told if isinstance(s, WheelFaultSeen)] == [
        "code 11: sensor 1 stuck on",
        "code 99: unknown",
    ]
    stage.lines(b"*F BUSY\r\n", b"*F 0\r\n", b"*F 0\r\n", every_us=500_000)
    assert conditions(stage)[2:] == [("cleared", WheelFaultKind.SELF_TEST)]
    assert [s.lasted_ms for s in stage.told if isinstance(s, WheelFaultCleared)] == [1_002]


@pytest.mark.parametrize(
    ("code", "means"),
    [
        (1, "hardware"),
        (2, "no ball"),
        (3, "no ball position"),
        (4, "ball direction"),
        (5, "motor"),
        (6, "encoder, or not calibrated"),
        (7, "cannot play clockwise"),
        (8, "cannot play anti-clockwise"),
        *((10 + sensor, f"sensor {sensor} stuck on") for sensor in (1, 2, 3)),
        *((20 + sensor, f"sensor {sensor} blind") for sensor in (1, 2, 3)),
        (100, "timed out"),
    ],
)
def test_code_of_the_wheels_own_test_is_told_in_the_words_of_the_guide(code: int, means: str) -> None:
    stage = Stage()
    (seen,) = stage.lines(b"*F %d\r\n" % code)
    assert isinstance(seen, WheelFaultSeen)
    assert seen.detail == f"code {code}: {means}"


def test_graces_of_a_wheel_that_runs_twenty_times_faster_are_twenty_times_shorter() -> None:
    stage = Stage(WheelSettings(status_period_ms=25), live=False)
    stage.lines(*[status(4)] * 3, every_us=25_000)
    stage.told.clear()
    began_us = stage.at_us + 25_000
    stage.lines(*[status(4, flags=BALL_MISSING)] * 12, every_us=25_000)
    assert [s.at_us - began_us for s in stage.told if isinstance(s, WheelFaultSeen)] == [250_000]


def test_lines_that_jitter_by_a_tenth_of_a_period_do_not_delay_an_alarm() -> None:
    stage = Stage(state=4)
    stage.lines(status(4, flags=DEVICE_FAULT), every_us=520_000)
    assert len(stage.lines(status(4, flags=DEVICE_FAULT), every_us=460_000)) == 1


def test_faults_of_late_lines_are_not_judged() -> None:
    stage = Stage()
    stage.silence(60)
    stage.lines(*[status(4, flags=DEVICE_FAULT, rotor=940)] * 100, every_us=200)
    assert conditions(stage) == []


def test_flags_do_not_hinder_the_launch_from_being_told() -> None:
    stage = Stage()
    stage.lines(*[status(2, flags=LAUNCH_FAILED)] * 8, *[status(3, flags=LAUNCH_FAILED)] * 3)
    assert [type(signal) for signal in stage.told if isinstance(signal, BallLaunched)] == [BallLaunched]
