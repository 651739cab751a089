"""The decoder on lines written by hand: one spin is told once, and nothing doubtful ever becomes a pocket."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.slingshot import REPLY_BOUND, SlingshotDecoder, WheelParameters, WheelSettings
from games.rules import Input
from games.signals import (
    BallLaunched,
    BallSlowed,
    Direction,
    LinkLost,
    LinkRestored,
    PocketDetected,
    PocketMissed,
    WheelFaultCleared,
    WheelFaultKind,
    WheelFaultSeen,
)
from tests.drivers.slingshot_stage import PERIOD_US, START_US, Stage, names, status

SPIN = [
    *[status(2, rotor=0)] * 4,
    *[status(2, way=1)] * 4,
    *[status(3, way=1)] * 8,
    *[status(4, way=1)] * 20,
]
"""A spin up to the last line before the ball rests. Number " 9" is that of the spin before."""


def pockets(told: list[Input]) -> list[str]:
    return [signal.pocket for signal in told if isinstance(signal, PocketDetected)]


def hints(told: list[Input]) -> list[tuple[int, str]]:
    return [(signal.spin, signal.pocket) for signal in told if isinstance(signal, PocketMissed)]


def faults(told: list[Input]) -> list[WheelFaultKind]:
    return [signal.fault for signal in told if isinstance(signal, WheelFaultSeen)]


# ── A spin as it should be ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_whole_spin_of_many_lines_is_told_once_each() -> None:
    stage = Stage()
    stage.lines(*SPIN, b"27\r\n", *[status(5, number="27", way=1)] * 11, *[status(1, number="27", way=1)] * 5)
    launched, slowed, pocket = stage.told
    assert launched == BallLaunched(
        at_us=launched.at_us, spin=7, direction=Direction.COUNTERCLOCKWISE, rotor_mrpm=16_000
    )
    assert slowed == BallSlowed(at_us=slowed.at_us, spin=7, direction=Direction.COUNTERCLOCKWISE, rotor_mrpm=16_000)
    assert pocket == PocketDetected(at_us=pocket.at_us, spin=7, pocket="27")


@pytest.mark.law("67-15")
def test_ball_that_slows_is_told_on_the_first_line_that_shows_it() -> None:
    stage = Stage()
    stage.lines(*SPIN[:16])
    assert names(stage.lines(status(4))) == ["BallSlowed"]


def test_direction_that_turns_over_in_state_2_is_taken_from_state_3() -> None:
    stage = Stage()
    stage.lines(status(2, way=0), status(2, way=1), status(2, way=0), status(3, way=1), status(3, way=1))
    assert [s.direction for s in stage.told if isinstance(s, BallLaunched)] == [Direction.COUNTERCLOCKWISE]


def test_number_of_the_spin_before_in_states_1_to_4_is_never_a_result() -> None:
    stage = Stage()
    stage.lines(*SPIN, *[status(4)] * 100)
    assert stage.kinds() == ["BallLaunched", "BallSlowed"]


def test_bare_number_and_one_state_5_line_that_agree_are_a_result() -> None:
    stage = Stage()
    stage.lines(*SPIN)
    assert stage.lines(b" 7\r\n") == []
    assert pockets(stage.lines(status(5, number=" 7"))) == ["7"]


def test_bare_number_after_the_first_state_5_line_is_as_good() -> None:
    stage = Stage()
    stage.lines(*SPIN)
    assert stage.lines(status(5, number=" 0")) == []
    assert pockets(stage.lines(b" 0\r\n")) == ["0"]


def test_two_state_5_lines_that_agree_are_a_result_without_the_bare_number() -> None:
    stage = Stage()
    stage.lines(*SPIN)
    assert stage.lines(status(5, number="36")) == []
    assert pockets(stage.lines(status(5, number="36"))) == ["36"]


def test_bare_number_alone_is_never_a_result() -> None:
    stage = Stage()
    stage.lines(*SPIN, b"27\r\n", b"27\r\n", *[status(4)] * 5)
    assert stage.kinds() == ["BallLaunched", "BallSlowed"]


def test_state_5_line_that_came_twice_at_once_is_one_reading() -> None:
    stage = Stage()
    stage.lines(*SPIN)
    assert stage.lines(status(5, number="27") * 3) == []
    assert pockets(stage.lines(status(5, number="27"))) == ["27"]


def test_bare_number_outside_a_flight_belongs_to_nothing() -> None:
    stage = Stage()
    stage.lines(b"27\r\n", status(2), b"27\r\n")
    stage.lines(*SPIN[1:], status(5, number="12"), status(5, number="12"))
    assert (pockets(stage.told), faults(stage.told)) == (["12"], [])
    assert stage.decoder.counters.strays == 2


def test_same_number_twice_running_is_a_result_twice() -> None:
    stage = Stage()
    for spin in (7, 8):
        stage.lines(*[status(2, spin, "19")] * 3, *[status(3, spin, "19")] * 3, *[status(4, spin, "19")] * 9)
        stage.lines(b"19\r\n", *[status(5, spin, "19")] * 3)
    assert pockets(stage.told) == ["19", "19"]


@pytest.mark.parametrize("through_state_1", [True, False])
def test_spin_after_number_256_is_number_1_and_nothing_is_wrong(through_state_1: bool) -> None:
    stage = Stage(live=False)
    stage.lines(*[status(2, 256)] * 4, status(3, 256), status(4, 256), *[status(5, 256, "27")] * 3)
    if through_state_1:
        stage.lines(status(1, 256, "27"), status(1, 256, "27"))
    stage.lines(status(2, 1, "27"), status(3, 1, "27"), status(4, 1, "27"), *[status(5, 1, "31")] * 3)
    assert [(s.spin, s.pocket) for s in stage.told if isinstance(s, PocketDetected)] == [(256, "27"), (1, "31")]
    assert stage.kinds() == ["LinkRestored", *["BallLaunched", "BallSlowed", "PocketDetected"] * 2]


# ── Contradictions ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
@pytest.mark.parametrize(
    "readings",
    [
        [b"27\r\n", status(5, number="26"), status(5, number="27"), status(5, number="27")],
        [status(5, number="27"), status(5, number="26"), status(5, number="26"), status(5, number="26")],
        [b"27\r\n", b"26\r\n", status(5, number="27"), status(5, number="27")],
        [b"26\r\n", b"27\r\n", status(5, number="27"), status(5, number="27")],
        [status(5, number="27"), b"26\r\n", status(5, number="27"), status(5, number="27")],
        [status(5, number="27"), *[status(4)] * 2, *[status(5, number="12")] * 3],
    ],
)
def test_readings_that_disagree_are_a_fault_and_never_a_pocket(readings: list[bytes]) -> None:
    stage = Stage()
    stage.lines(*SPIN, *readings, *[status(5, number="27")] * 5)
    assert (pockets(stage.told), faults(stage.told)) == ([], [WheelFaultKind.NUMBER_CONTRADICTED])


@pytest.mark.parametrize("number", ["00", "37", "38", "39", "  "])
def test_number_that_is_not_on_a_wheel_of_37_is_a_fault_and_never_a_pocket(number: str) -> None:
    stage = Stage()
    stage.lines(*SPIN, *[status(5, number=number)] * 5)
    assert (pockets(stage.told), faults(stage.told)) == ([], [WheelFaultKind.NUMBER_CONTRADICTED])


@pytest.mark.parametrize(("number", "pocket"), [("00", "00"), (" 0", "0"), ("36", "36"), ("37", None), ("38", None)])
def test_wheel_of_38_has_double_zero_and_no_other_number_more(number: str, pocket: str | None) -> None:
    stage = Stage(WheelSettings(pockets=38))
    stage.lines(*SPIN, *[status(5, number=number)] * 5)
    assert pockets(stage.told) == ([pocket] if pocket else [])


def test_number_that_changes_after_the_result_is_a_fault() -> None:
    stage = Stage()
    stage.lines(*SPIN, *[status(5, number="27")] * 3, status(5, number="28"))
    assert stage.kinds()[-2:] == ["PocketDetected", "WheelFaultSeen"]


def test_contradiction_is_over_when_the_wheel_goes_on() -> None:
    stage = Stage()
    stage.lines(*SPIN, b"27\r\n", *[status(5, number="26")] * 4)
    assert stage.lines(status(1, number="26")) == [
        WheelFaultCleared(at_us=stage.at_us, fault=WheelFaultKind.NUMBER_CONTRADICTED, lasted_ms=2_000)
    ]
    flight = [status(2, 8, "26"), status(3, 8, "26"), status(4, 8, "26")]
    stage.lines(*flight, b"11\r\n", *[status(5, 8, "12")] * 2, status(1, 8, "12"))
    assert [type(signal) for signal in stage.told[-4:]] == [BallLaunched, BallSlowed, WheelFaultSeen, WheelFaultCleared]
    flight = [status(2, 9, "12"), status(3, 9, "12"), status(4, 9, "12")]
    stage.lines(*flight, *[status(5, 9, "30")] * 2)
    assert pockets(stage.told) == ["30"]


def test_second_result_under_one_spin_number_is_a_fault_and_never_a_pocket() -> None:
    stage = Stage()
    stage.lines(*SPIN, *[status(5, number="27")] * 3, *[status(1, number="27")] * 2)
    stage.lines(*SPIN, *[status(5, number="31")] * 3)
    assert (pockets(stage.told), faults(stage.told)) == (["27"], [WheelFaultKind.NUMBER_CONTRADICTED])


def test_spin_that_was_reset_and_launched_again_under_its_number_has_its_result() -> None:
    stage = Stage()
    stage.lines(*SPIN[:12], *[status(1)] * 3)
    stage.lines(*SPIN, *[status(5, number="31")] * 3)
    assert stage.kinds() == ["BallLaunched", "BallLaunched", "BallSlowed", "PocketDetected"]


def test_result_whose_ball_was_never_seen_in_flight_is_only_a_hint() -> None:
    stage = Stage()
    stage.lines(*[status(2)] * 4, *[status(5, number="27")] * 4)
    assert (pockets(stage.told), hints(stage.told)) == ([], [(7, "27")])


def test_spin_without_no_more_bets_has_a_result_but_no_slowing() -> None:
    stage = Stage()
    stage.lines(*[status(2)] * 4, *[status(3)] * 60, *[status(5, number="27")] * 4)
    assert stage.kinds() == ["BallLaunched", "PocketDetected"]
    assert stage.decoder.counters.implausible == 0
    instants = [signal.at_us for signal in stage.told]
    assert instants == sorted(instants)


# ── Damaged lines ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_state_4_line_made_a_state_5_line_by_one_bit_is_no_reading() -> None:
    stage = Stage()
    stage.lines(*SPIN, status(5, number=" 9"), *[status(4)] * 10)
    stage.lines(*[status(5, number="27")] * 3)
    assert stage.kinds() == ["BallLaunched", "BallSlowed", "PocketDetected"]
    assert stage.decoder.counters.implausible == 1


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("damaged", [status(3, 200), status(6, 7), status(1, 7), status(5, 8, "27"), status(2, 135)])
def test_impossible_line_in_a_flight_is_counted_and_disregarded(damaged: bytes, copies: int) -> None:
    stage = Stage()
    stage.lines(*SPIN[:20], damaged * copies, *SPIN[20:], b"31\r\n", *[status(5, number="31")] * 2)
    assert stage.kinds() == ["BallLaunched", "BallSlowed", "PocketDetected"]
    assert stage.decoder.counters.implausible == 1


@pytest.mark.parametrize("damaged", [status(3, 8), status(4, 8), status(3, 7), status(5, 8, "27")])
def test_impossible_line_between_two_games_launches_and_closes_nothing(damaged: bytes) -> None:
    stage = Stage()
    assert stage.lines(status(1), damaged, *[status(1)] * 5) == []


def test_impossible_line_before_a_gap_does_not_bear_out_one_after_it() -> None:
    stage = Stage()
    stage.lines(*SPIN, status(1))
    stage.silence(5)
    stage.lines(*[status(4)] * 3, status(1), *[status(4)] * 3, *[status(5, number="27")] * 2)
    assert stage.kinds() == ["BallLaunched", "BallSlowed", "LinkLost", "LinkRestored", "PocketDetected"]


def test_fragment_after_a_silence_never_reads_as_double_zero() -> None:
    stage = Stage(WheelSettings(pockets=38))
    stage.lines(*SPIN)
    stage.silence(10)
    stage.lines(b"00;0\r\n", b"00\r\n", *[status(4)] * 5, *[status(5, number="31")] * 2)
    assert pockets(stage.told) == ["31"]
    assert stage.decoder.counters.rejected == 1


def test_three_frames_run_together_still_tell_what_the_last_one_says() -> None:
    stage = Stage()
    stage.lines(*[status(2, 146)] * 4, *[status(3, 146)] * 4)
    told = stage.lines(b"*X;4;14*X;*X;4;146; 9;0;158;0\r\n")
    assert names(told) == ["BallSlowed"]
    counters = stage.decoder.counters
    assert (counters.glued, counters.rejected) == (1, 0)


def test_garbage_is_counted_by_line_and_tells_nothing() -> None:
    stage = Stage()
    noise = (b"*X;2;094;33;0;163\r\n", b"\xff\xfe\r\n", b"00;0\r\n", b"\r\n", b"x" * 5_000 + b"\r\n")
    assert stage.lines(*noise, every_us=1_000) == []
    assert stage.decoder.counters.rejected == 4


# ── Silence, gaps and bursts ──────────────────────────────────────────────────────────────────────────────────────────


def test_wheel_heard_three_times_at_its_pace_is_connected() -> None:
    stage = Stage(live=False)
    assert stage.lines(status(6), status(6)) == []
    assert stage.lines(status(6)) == [LinkRestored(at_us=stage.at_us, device="wheel")]
    assert stage.decoder.link_is_up


def test_wheel_never_heard_is_lost_once_after_the_silence() -> None:
    stage = Stage(live=False)
    told = stage.silence(60)
    assert told == [LinkLost(at_us=told[0].at_us, device="wheel", silent_ms=0)]
    assert told[0].at_us <= START_US + 2_500_000 + PERIOD_US


def test_silence_of_two_and_a_half_seconds_is_told_once_with_its_length() -> None:
    stage = Stage()
    heard_us = stage.at_us
    assert stage.silence(2.25) == []
    assert stage.silence(120) == [LinkLost(at_us=heard_us + 2_500_000, device="wheel", silent_ms=2_500)]


def test_silence_that_no_tick_noticed_is_noticed_by_the_line_that_ends_it() -> None:
    stage = Stage()
    stage.at_us += 134_000_000
    told = stage.decoder.feed(status(1) * 200, stage.at_us)
    assert told == [LinkLost(at_us=stage.at_us, device="wheel", silent_ms=134_000)]


def test_noise_without_a_line_is_silence() -> None:
    stage = Stage()
    assert names(stage.lines(*[b"\xaa\r\n"] * 10)) == ["LinkLost"]


@pytest.mark.law("67-15")
def test_burst_after_a_silence_opens_and_closes_nothing_and_has_no_result() -> None:
    stage = Stage()
    stage.lines(*SPIN[:8])
    stage.silence(134)
    stage.told.clear()
    late = [*SPIN[8:], b"27\r\n", *[status(5, number="27")] * 11, *[status(1, number="27")] * 150]
    assert stage.lines(*late, every_us=170) == []
    assert not stage.decoder.link_is_up
    counters = stage.decoder.counters
    assert (counters.late, counters.bursts) == (len(late) + 2, 1)  # and the two lines that opened the stage
    stage.lines(*[status(1, number="27")] * 4)
    assert (stage.kinds(), pockets(stage.told), hints(stage.told)) == (
        ["LinkRestored", "PocketMissed"],
        [],
        [(7, "27")],
    )


@pytest.mark.law("67-15")
@pytest.mark.parametrize("back", [status(2, 8, "27"), status(3, 8, "27"), status(4, 8, "27"), status(1, 7, "27")])
def test_number_that_fell_while_nobody_listened_is_a_hint_and_never_a_result(back: bytes) -> None:
    stage = Stage()
    stage.lines(*SPIN)
    stage.silence(56)
    stage.lines(*[back] * 4)
    assert (pockets(stage.told), hints(stage.told)) == ([], [(7, "27")])


@pytest.mark.parametrize("back", [status(1, 8, "27"), status(5, 8, "27"), status(6, 7, "27"), status(2, 9, "27")])
def test_number_that_may_be_that_of_another_spin_is_no_hint_for_the_one_that_was_in_flight(back: bytes) -> None:
    stage = Stage()
    stage.lines(*SPIN)
    stage.silence(56)
    stage.lines(*[back] * 4)
    assert 7 not in {spin for spin, _ in hints(stage.told)}


def test_gap_in_which_two_numbers_may_have_fallen_has_no_hint() -> None:
    stage = Stage()
    stage.lines(*SPIN)
    stage.silence(120)
    stage.lines(*[status(1, 8, "27")] * 4)
    assert hints(stage.told) == []


def test_number_that_two_lines_do_not_agree_on_is_no_hint() -> None:
    stage = Stage()
    stage.lines(*SPIN)
    stage.silence(56)
    stage.lines(status(2, 8, "27"), status(2, 8, "26"), status(2, 8, "27"), status(2, 8, "27"))
    assert hints(stage.told) == []


@pytest.mark.parametrize(("state", "told"), [(3, "BallLaunched"), (4, "BallSlowed")])
@pytest.mark.parametrize("spin", [7, 8])
def test_state_of_a_new_attempt_found_after_a_gap_is_told_once(spin: int, state: int, told: str) -> None:
    stage = Stage()
    stage.lines(*SPIN, *[status(5, number="27")] * 3, *[status(1, number="27")] * 2)
    stage.silence(20)
    before = len(stage.told)
    stage.lines(*[status(state, spin, "27")] * 6)
    assert names(stage.told[before:]) == ["LinkRestored", told]


def test_ball_launched_again_during_a_gap_is_told_again() -> None:
    stage = Stage()
    stage.lines(*SPIN)
    stage.silence(20)
    before = len(stage.told)
    stage.lines(*[status(3)] * 4, *[status(4)] * 4)
    assert names(stage.told[before:]) == ["LinkRestored", "BallLaunched", "BallSlowed"]


def test_number_that_fell_unseen_at_spin_256_is_told_at_spin_1() -> None:
    stage = Stage(live=False)
    stage.lines(*[status(2, 256)] * 4, status(3, 256), status(4, 256))
    stage.silence(60)
    stage.lines(*[status(2, 1, "27")] * 4)
    assert hints(stage.told) == [(256, "27")]


def test_ball_that_rests_when_the_wheel_is_heard_again_is_a_hint() -> None:
    stage = Stage()
    stage.lines(*SPIN)
    stage.silence(5)
    stage.lines(*[status(5, number="27")] * 8, *[status(1, number="27")] * 3)
    assert (pockets(stage.told), hints(stage.told)) == ([], [(7, "27")])


def test_ball_that_rests_when_the_daemon_starts_is_a_hint() -> None:
    stage = Stage(live=False)
    stage.lines(*[status(5, number="27")] * 8)
    assert stage.kinds() == ["LinkRestored", "PocketMissed"]


def test_number_that_did_not_change_over_a_gap_is_no_hint() -> None:
    stage = Stage()
    stage.lines(*SPIN)
    stage.silence(56)
    stage.lines(*[status(2, 8, " 9")] * 4)
    assert hints(stage.told) == []


def test_gap_between_two_spins_has_no_hint_for_a_result_that_was_told() -> None:
    stage = Stage()
    stage.lines(*SPIN, *[status(5, number="27")] * 4)
    stage.silence(20)
    stage.lines(*[status(2, 8, "27")] * 4)
    assert (pockets(stage.told), hints(stage.told)) == (["27"], [])


def test_gap_in_flight_that_ends_in_flight_leaves_the_result_to_come() -> None:
    stage = Stage()
    stage.lines(*SPIN[:20])
    stage.silence(5)
    stage.lines(*[status(4)] * 5, b"27\r\n", *[status(5, number="27")] * 2)
    assert stage.kinds() == ["BallLaunched", "BallSlowed", "LinkLost", "LinkRestored", "PocketDetected"]


@pytest.mark.parametrize(("spin", "what"), [(12, "played unseen"), (3, "switched off and on")])
def test_spin_number_that_jumped_over_a_gap_has_no_hint_but_a_fault(spin: int, what: str) -> None:
    stage = Stage()
    stage.lines(*SPIN)
    stage.silence(600)
    stage.lines(*[status(2, spin, "27")] * 5)
    assert (pockets(stage.told), hints(stage.told)) == ([], [])
    seen = [signal for signal in stage.told if isinstance(signal, WheelFaultSeen)]
    assert [signal.fault for signal in seen] == [WheelFaultKind.STOPPED]
    assert what in seen[0].detail
    assert "007" in seen[0].detail
    cleared = [signal for signal in stage.told if isinstance(signal, WheelFaultCleared)]
    assert [signal.lasted_ms // 1_000 for signal in cleared] == [601]


def test_wheel_that_forgot_its_number_was_switched_off_even_when_its_spin_number_fits() -> None:
    stage = Stage(live=False)
    stage.lines(*[status(1, 1, "27")] * 4)
    stage.silence(20)
    stage.lines(*[status(1, 1, "  ")] * 4)
    assert faults(stage.told) == [WheelFaultKind.STOPPED]


def test_first_spin_after_a_power_cut_has_its_result_though_its_number_had_one_before() -> None:
    stage = Stage(live=False)
    game = [status(2, 1, "  "), status(3, 1, "  "), status(4, 1, "  "), *[status(5, 1, "27")] * 3]
    stage.lines(*[status(1, 1, "  ")] * 3, *game)
    stage.silence(20)
    stage.lines(*[status(1, 1, "  ")] * 3, *game)
    assert pockets(stage.told) == ["27", "27"]


def test_spin_number_that_jumps_without_a_gap_is_believed_when_repeated() -> None:
    stage = Stage()
    stage.lines(*SPIN, status(2, 8, "27"))
    assert hints(stage.told) == []
    stage.lines(status(2, 8, "27"))
    assert (pockets(stage.told), hints(stage.told)) == ([], [(7, "27")])


def test_line_just_after_a_replug_does_not_count_the_pace_from_before_it() -> None:
    stage = Stage()
    stage.told += stage.decoder.unplugged(stage.at_us)
    assert stage.lines(status(1), status(1)) == []
    assert names(stage.lines(status(1))) == ["LinkRestored"]


def test_port_that_vanished_is_a_lost_link_at_once_and_half_a_line_is_forgotten() -> None:
    stage = Stage()
    stage.decoder.feed(b"*X;4;007;", stage.at_us)
    assert stage.decoder.unplugged(stage.at_us) == [LinkLost(at_us=stage.at_us, device="wheel", silent_ms=0)]
    assert stage.decoder.unplugged(stage.at_us) == []
    stage.lines(b" 9;0;158;0\r\n")
    assert stage.decoder.counters.rejected == 1


def test_wheel_that_runs_twenty_times_faster_is_decoded_with_the_silence_of_its_own_setting() -> None:
    stage = Stage(WheelSettings(status_period_ms=25), live=False)
    stage.lines(*[status(1)] * 3, *SPIN, b"27\r\n", *[status(5, number="27")] * 11, every_us=25_000)
    assert stage.kinds() == ["LinkRestored", "BallLaunched", "BallSlowed", "PocketDetected"]
    assert stage.silence(2.4) == []
    assert names(stage.silence(0.2)) == ["LinkLost"]


# ── Replies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_replies_between_status_lines_are_handed_over_apart_and_once() -> None:
    stage = Stage()
    stage.lines(status(1) + b"*P OK\r\n" + status(1), b"*T OK\r\nT OK\r\n")
    assert [(reply.letter, reply.text) for reply in stage.decoder.take_replies()] == [
        ("P", "OK"),
        ("T", "OK"),
        ("T", "OK"),
    ]
    assert stage.decoder.take_replies() == []


def test_replies_that_nobody_takes_are_bounded_and_counted() -> None:
    stage = Stage()
    stage.lines(*[b"*F %d\r\n" % nth for nth in range(REPLY_BOUND + 3)], every_us=1)
    replies = stage.decoder.take_replies()
    assert [reply.text for reply in replies] == [str(nth) for nth in range(3, REPLY_BOUND + 3)]
    assert stage.decoder.counters.replies_dropped == 3


# ── Settings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "wrong",
    [
        {"pockets": 36},
        {"pockets": 39},
        {"silence_ms": 900},
        {"status_period_ms": 0},
        {"rotor_min_mrpm": 20_000},
        {"direction_control": True},
        {"direction_control": True, "commands": False, "parameters": WheelParameters(options=16)},
    ],
)
def test_settings_that_contradict_each_other_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|needs"):
        WheelSettings(**wrong)


# ── Properties ────────────────────────────────────────────────────────────────────────────────────────────────────────

lines_of_the_wheel = st.builds(
    status,
    state=st.integers(1, 7),
    spin=st.sampled_from([6, 7, 8]),
    number=st.sampled_from([" 9", "27", "00", "  ", "38"]),
    flags=st.sampled_from([0, 0, 1, 2, 4, 8]),
    rotor=st.sampled_from([0, 160, 980]),
    way=st.integers(0, 1),
)
garbage = st.binary(max_size=40) | st.sampled_from([b"00;0\r\n", b"*X;4;14", b"\r\n", b"\r", b"27\r\n", b" 7\r\n"])
chunks = st.lists(st.tuples(lines_of_the_wheel | garbage, st.integers(0, 1_000_000)), max_size=60)


@given(chunks=chunks, cuts=st.lists(st.integers(1, 30), min_size=1))
def test_observations_of_any_stream_do_not_depend_on_how_it_was_cut(
    chunks: list[tuple[bytes, int]], cuts: list[int]
) -> None:
    whole, cut = SlingshotDecoder(WheelSettings()), SlingshotDecoder(WheelSettings())
    at_us, sizes = START_US, itertools.cycle(cuts)
    for data, after_us in chunks:
        at_us += after_us
        told_of_pieces: list[Input] = []
        rest = data
        while rest:
            size = next(sizes)
            piece, rest = rest[:size], rest[size:]
            told_of_pieces += cut.feed(piece, at_us)
        assert told_of_pieces == whole.feed(data, at_us)
    assert cut.counters == whole.counters


@given(noise=st.lists(garbage, max_size=60))
def test_garbage_in_a_flight_never_becomes_a_pocket(noise: list[bytes]) -> None:
    stage = Stage()
    stage.lines(*SPIN, *noise)
    assert pockets(stage.told) == []


@given(chunks=chunks)
def test_any_stream_has_at_most_one_pocket_a_spin_number_and_only_pockets_of_the_wheel(
    chunks: list[tuple[bytes, int]],
) -> None:
    stage = Stage(live=False)
    for data, after_us in chunks:
        stage.lines(data, every_us=after_us)
    results = [(signal.spin, signal.pocket) for signal in stage.told if isinstance(signal, PocketDetected)]
    assert all(before[0] != after[0] for before, after in itertools.pairwise(results))
    assert {pocket for _, pocket in results} <= {"9", "27"}
    links = [signal for signal in stage.told if isinstance(signal, LinkLost | LinkRestored)]
    assert all(type(before) is not type(after) for before, after in itertools.pairwise(links))


whole_spin = [*SPIN, b"27\r\n", *[status(5, number="27", way=1)] * 11, *[status(1, number="27", way=1)] * 4]


@given(
    at=st.integers(0, len(whole_spin) - 1),
    change=st.sampled_from(["lost", "doubled", "cut", "glued", "bit", "byte"]),
    where=st.integers(0, 40),
    what=st.integers(0, 255),
)
def test_damage_to_any_one_line_of_a_spin_never_gives_another_pocket(
    at: int, change: str, where: int, what: int
) -> None:
    line = bytearray(whole_spin[at])
    place = where % len(line)
    match change:
        case "lost":
            line.clear()
        case "doubled":
            line *= 2
        case "cut":
            del line[place:]
        case "glued":
            del line[-2:]
        case "bit":
            line[place] ^= 1 << what % 8
        case "byte":
            line[place] = what
    stage = Stage()
    stage.lines(*whole_spin[:at], bytes(line), *whole_spin[at + 1 :])
    assert set(pockets(stage.told)) <= {"27"}
    assert stage.kinds().count("BallSlowed") == 1
