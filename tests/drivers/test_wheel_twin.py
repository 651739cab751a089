"""The simulated wheel: its bytes against the maker's grammar written once more, its time against the recordings."""

import asyncio
import itertools
import random
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.clock import ManualClock, SystemClock
from drivers.ports import DeviceFault
from drivers.serial_line import SerialLine
from drivers.slingshot import WheelSettings
from drivers.slingshot_wheel import SlingshotWheel
from drivers.twin.serial import BUFFER_BOUND, TwinCable
from drivers.twin.wheel import COMMAND_BOUND, HELD_BOUND, Quiet, TwinSettings, WheelTwin
from drivers.twin.wheel_faults import FAULT, Fault, FaultKind, FaultPlan, FaultPlanError, read_plan
from drivers.twin.wheel_memory import FACTORY
from games.rules import Input
from games.signals import LinkLost, LinkRestored, PocketDetected
from tests.drivers.slingshot_stage import names

SECOND = 1_000_000
LINE = re.compile(
    rb"\*X;(?P<state>[1-7]);(?P<spin>\d\d\d);(?P<number>( \d|[1-3]\d|00|  ))"
    rb";(?P<flags>[0-9A-F]);(?P<rotor>\d\d\d);(?P<way>[01])"
)
PATIENCE_S = 30


class Bench:
    """A twin on a bench: commands go in, and every line is kept with its instant."""

    def __init__(self, settings: TwinSettings | None = None, seed: int = 1, **more: Any) -> None:
        self.twin = WheelTwin(settings or TwinSettings(), random.Random(seed), **more)
        self.now_us = 0
        self.lines: list[tuple[int, bytes]] = []
        self.raw = b""

    def wait(self, seconds: float) -> None:
        until_us = self.now_us + round(seconds * SECOND)
        while self.now_us < until_us:
            self.now_us = min(until_us, self.twin.next_due_us())
            data = self.twin.advance(self.now_us)
            self.raw += data
            self.lines += [(self.now_us, line) for line in data.split(b"\r\n") if line]

    def ask(self, command: bytes) -> list[bytes]:
        """The replies to a command, without status lines."""
        before = len(self.lines)
        self.twin.feed(command + b"\r\n", self.now_us)
        self.wait(0.2 / self.twin.settings.speed)
        return [line for _, line in self.lines[before:] if not line.startswith(b"*X;")]

    def on(self) -> "Bench":
        self.wait(4 / self.twin.settings.speed)
        self.ask(b"*P 1")
        self.wait(1 / self.twin.settings.speed)
        return self

    def game(self, seconds: float = 75) -> list[re.Match[bytes]]:
        """Start a game; its status lines."""
        before = len(self.lines)
        self.ask(b"*K")
        self.wait(seconds / self.twin.settings.speed)
        return self.status(before)

    def status(self, since: int = 0) -> list[re.Match[bytes]]:
        found = (LINE.fullmatch(line) for _, line in self.lines[since:])
        return [match for match in found if match]


def states(lines: list[re.Match[bytes]]) -> list[int]:
    """The states that were passed through."""
    return [state for state, _ in itertools.groupby(int(line["state"]) for line in lines)]


# ── The protocol ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_wheel_is_silent_for_three_seconds_after_power_on_and_then_speaks_twice_a_second() -> None:
    bench = Bench()
    bench.wait(6)
    assert [at_us for at_us, _ in bench.lines] == [3 * SECOND + nth * 500_000 for nth in range(7)]
    assert {line for _, line in bench.lines} == {b"*X;6;001;  ;0;000;0"} | {line for _, line in bench.lines[:1]}


def test_every_byte_of_an_evening_is_a_line_of_the_protocol() -> None:
    bench = Bench(TwinSettings(pockets=38)).on()
    for _ in range(20):
        bench.game()
    assert bench.raw.count(b"\r") == bench.raw.count(b"\n") == bench.raw.count(b"\r\n")
    known = re.compile(LINE.pattern + rb"| \d|[1-3]\d|00|\*P OK|\*K OK")
    assert [line for _, line in bench.lines if not known.fullmatch(line)] == []


def test_game_goes_through_the_states_of_the_guide_and_shows_the_number_before() -> None:
    bench = Bench(pockets=["27", "0"]).on()
    first, second = bench.game(), bench.game()
    assert (states(first), states(second)) == ([2, 3, 4, 5, 1], [2, 3, 4, 5, 1])
    assert {(int(line["state"]) < 5, line["number"]) for line in first if line["state"] != b"1"} == {
        (True, b"  "),
        (False, b"27"),
    }
    assert {line["number"] for line in second if line["state"] in b"234"} == {b"27"}
    assert {line["number"] for line in second if line["state"] == b"5"} == {b" 0"}


def test_spin_number_rises_when_state_2_is_entered_after_a_number() -> None:
    bench = Bench().on()
    games = [bench.game() for _ in range(3)]
    assert [{line["spin"] for line in game} for game in games] == [{b"001"}, {b"002"}, {b"003"}]


def test_spin_number_after_256_is_1() -> None:
    bench = Bench().on()
    bench.twin._spin, bench.twin._has_played = 256, True
    assert {line["spin"] for line in bench.game()} == {b"001"}


def test_bare_number_comes_once_before_the_first_line_of_state_5() -> None:
    bench = Bench(pockets=["7"]).on()
    bench.game()
    sent = [line for _, line in bench.lines]
    assert sent.count(b" 7") == 1
    after = sent[sent.index(b" 7") + 1]
    assert after.startswith(b"*X;5;001; 7")


def test_direction_turns_over_in_state_2_and_alternates_from_game_to_game() -> None:
    bench = Bench().on()
    games = [bench.game() for _ in range(4)]
    ways = []
    for game in games:
        assert len({line["way"] for line in game if line["state"] == b"2"}) == 2
        (way,) = {line["way"] for line in game if line["state"] in b"345"}
        ways.append(way)
    assert ways in ([b"0", b"1", b"0", b"1"], [b"1", b"0", b"1", b"0"])
    assert [truth.clockwise for truth in bench.twin.truths] == [way == b"0" for way in ways]


def test_times_of_eighty_games_have_the_medians_of_the_recorded_wheel() -> None:
    bench = Bench(seed=3).on()
    seconds: dict[int, list[float]] = {state: [] for state in (2, 3, 4, 5)}
    for _ in range(80):
        for state, lines in itertools.groupby(bench.game(), key=lambda line: int(line["state"])):
            if state in seconds:
                seconds[state].append(len(list(lines)) / 2)
    medians = {state: statistics.median(values) for state, values in seconds.items()}
    assert medians[2] == pytest.approx(9, abs=1)
    assert medians[3] == pytest.approx(4, abs=0.5)
    assert medians[4] == pytest.approx(26.5, abs=1.5)
    assert medians[5] == pytest.approx(5.5, abs=0.5)
    assert min(seconds[4]) >= 7
    assert len(set(seconds[4])) > 10


def test_rotor_in_flight_stays_in_its_range_and_its_change() -> None:
    bench = Bench(seed=3).on()
    speeds = [int(line["rotor"]) for _ in range(50) for line in bench.game() if line["state"] in b"34"]
    assert min(speeds) >= 125
    assert max(speeds) <= 190
    assert len(set(speeds)) > 20


@pytest.mark.parametrize("pockets", [37, 38])
def test_numbers_of_many_games_are_all_on_the_wheel_and_even(pockets: int) -> None:
    bench = Bench(TwinSettings(pockets=pockets, speed=50), seed=9).on()
    for _ in range(40 * pockets):
        bench.twin._begin_spin(bench.now_us)
        bench.twin._land(bench.now_us)
    wins = bench.twin.memory.wins
    assert len(wins) == pockets
    assert ("00" in wins) is (pockets == 38)
    chi_square = sum((count - 40) ** 2 / 40 for count in wins.values())
    assert chi_square < 70  # 99.9 % for 36 and 37 degrees of freedom


def test_wheel_ten_times_faster_plays_the_same_game_in_a_tenth_of_the_time() -> None:
    slow, fast = Bench(seed=4).on(), Bench(TwinSettings(speed=10), seed=4).on()
    played = [[(line["state"], line["spin"]) for line in bench.game()] for bench in (slow, fast)]
    assert [states(bench.status()) for bench in (slow, fast)] == [[6, 1, 2, 3, 4, 5, 1]] * 2
    assert abs(len(played[0]) - len(played[1])) <= 2
    assert fast.now_us * 10 == pytest.approx(slow.now_us, rel=0.01)
    assert TwinSettings(speed=10).status_period_ms == 50


def test_wheel_in_its_factory_mode_starts_by_itself() -> None:
    bench = Bench(TwinSettings(mode=1_157))
    bench.wait(150)
    assert states(bench.status())[:6] == [1, 2, 3, 4, 5, 1]
    assert len(bench.twin.truths) >= 2


def test_wheel_without_mode_bit_1024_goes_from_5_to_2() -> None:
    bench = Bench(TwinSettings(mode=1_157 - 1_024))
    bench.wait(150)
    assert states(bench.status())[:6] == [1, 2, 3, 4, 5, 2]


def test_wheel_with_mode_bit_16_sends_no_bare_number_and_without_128_no_status() -> None:
    quiet = Bench(TwinSettings(mode=1_159 + 16)).on()
    quiet.game()
    assert [line for _, line in quiet.lines if len(line) == 2] == []
    asked = Bench(TwinSettings(mode=1_159 - 128))
    asked.wait(10)
    assert asked.lines == []
    assert asked.twin.feed(b"*X\r\n", asked.now_us) is None
    asked.wait(1)
    assert [line[:4] for _, line in asked.lines] == [b"*X;6"]


@pytest.mark.parametrize(
    ("command", "replies"),
    [
        (b"*S", [b"*S V2.52"]),
        (b"*O", [b"*O 6 1 60 1159"]),
        (b"*o 1158", [b"*o 1158"]),
        (b"*o", [b"*o NO"]),
        (b"*T Z", [b"*T z 37"]),
        (b"*T S", [b"*T s 14.0 17.5"]),
        (b"*T s 14.0 17.50000", [b"*T OK"]),
        (b"*T s 14.0", [b"*T NO"]),
        (b"*T n 3000", [b"T OK"]),
        (b"*T z 38", [b"*Z OK"]),
        (b"*T m 2", [b"*T m 2"]),
        (b"*T m two", [b"*T NO"]),
        (b"*T Q", [b"*T NO"]),
        (b"*T", [b"*T NO"]),
        (b"*P 0", [b"*P NO"]),
        (b"*P 1", [b"*P OK"]),
        (b"*K", [b"*K CAM"]),
        (b"*u 1", [b"*u NO"]),
        (b"*R", [b"*R NO"]),
        (b"*q 1", [b"*q OK"]),
        (b"*M", [b"*M 0"]),
        (b"*w", [b"*w 35.20 50"]),
        (b"*)", [b"*) NO"]),
        (b"*  ", [b"*  NO"]),
        (b"*j", [b"*j NO"]),
        (b"hello", []),
        (b"*", []),
        (b"\r\n\n\r", []),
        (b"*S\r*S\n*S", [b"*S V2.52"] * 3),
    ],
)
def test_command_to_an_idle_wheel_is_answered_as_the_guide_or_the_recordings_say(
    command: bytes, replies: list[bytes]
) -> None:
    bench = Bench()
    bench.wait(5)
    assert bench.ask(command) == replies


@pytest.mark.parametrize(
    ("command", "replies"),
    [
        (b"*o 1158", [b"*o BUSY"]),
        (b"*F", [b"*F BUSY"]),
        (b"*W", [b"*W BUSY"]),
        (b"*M", [b"*M BUSY"]),
        (b"*w", [b"*w BUSY"]),
        (b"*u 1", [b"*u BUSY"]),
        (b"*u 3", [b"*u NO"]),
        (b"*K", [b"*K BUSY"]),
        (b"*R", [b"*R OK"]),
        (b"*P 1", [b"*P NO"]),
        (b"*P 0", [b"*P OK"]),
    ],
)
def test_command_to_a_wheel_that_plays_is_answered_as_the_guide_or_the_recordings_say(
    command: bytes, replies: list[bytes]
) -> None:
    bench = Bench().on()
    bench.game(seconds=11)
    assert bench.ask(command) == replies


def test_wheel_with_direction_control_starts_the_way_it_is_told() -> None:
    bench = Bench(TwinSettings(stored={"g": "16"})).on()
    for command, clockwise in ((b"*u 3", False), (b"*u 3", False), (b"*u 1", True)):
        assert bench.ask(command) == [b"*u OK"]
        bench.wait(75)
        assert bench.twin.truths[-1].clockwise is clockwise


def test_parameter_that_was_not_saved_is_back_after_a_power_cut() -> None:
    bench = Bench(TwinSettings(stored={"m": "20000.0"}))
    bench.wait(5)
    bench.ask(b"*T m 2")
    bench.twin.power_cycle(bench.now_us)
    bench.wait(5)
    assert bench.ask(b"*T M") == [b"*T m 20000.0"]
    bench.ask(b"*T m 2")
    bench.ask(b"*T f")
    bench.twin.power_cycle(bench.now_us)
    bench.wait(5)
    assert bench.ask(b"*T M") == [b"*T m 2"]


def test_wheel_that_starts_up_and_a_croupiers_wheel_take_no_commands() -> None:
    starting = Bench()
    assert starting.ask(b"*S") == []
    croupiers = Bench(TwinSettings(croupier=True))
    croupiers.wait(5)
    assert croupiers.ask(b"*S") == []


def test_command_without_an_end_is_bounded() -> None:
    bench = Bench()
    bench.wait(5)
    for _ in range(100):
        bench.twin.feed(b"*S" + b" " * 100, bench.now_us)
    assert len(bench.twin._typed) <= COMMAND_BOUND
    bench.ask(b"")
    assert bench.ask(b"*S") == [b"*S V2.52"]


def test_croupiers_wheel_spins_when_he_spins_it_and_slows_down() -> None:
    bench = Bench(TwinSettings(croupier=True))
    bench.wait(60)
    assert states(bench.status()) == [1]
    before = len(bench.lines)
    assert bench.twin.spin(bench.now_us)
    assert not bench.twin.spin(bench.now_us)
    bench.wait(75)
    lines = bench.status(before)
    assert states(lines) == [2, 3, 4, 5, 1]
    speeds = [int(line["rotor"]) for line in lines if line["state"] in b"345"]
    assert speeds == sorted(speeds, reverse=True)
    assert speeds[0] > speeds[-1] + 20


@given(steps=st.lists(st.integers(1, 20_000_000), min_size=1, max_size=30))
def test_bytes_do_not_depend_on_how_often_the_twin_is_asked(steps: list[int]) -> None:
    plan = FaultPlan(chances={FaultKind.BIT_NOISE: 0.5, FaultKind.SILENCE: 0.3, FaultKind.GLUED: 0.5})
    often, seldom = (WheelTwin(TwinSettings(mode=1_157), random.Random(1), faults=plan) for _ in range(2))
    now_us, sent = 0, b""
    for step in steps:
        now_us += step
        sent += often.advance(now_us)
    assert seldom.advance(now_us) == sent


def test_same_seed_plays_the_same_bytes_and_another_seed_others() -> None:
    def evening(seed: int) -> bytes:
        bench = Bench(TwinSettings(mode=1_157), seed=seed, faults=FaultPlan(chances={FaultKind.MISFIRE: 0.5}))
        bench.wait(600)
        return bench.raw

    assert evening(1) == evening(1)
    assert evening(1) != evening(2)


# ── Faults ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def faulty_game(kind: str, seconds: float = 100, **settings: Any) -> tuple[Bench, list[re.Match[bytes]]]:
    bench = Bench(TwinSettings(**settings), faults=read_plan(f"{kind}@1"), pockets=["27"]).on()
    return bench, bench.game(seconds)


def flags_by_state(lines: list[re.Match[bytes]]) -> set[tuple[int, int]]:
    return {(int(line["state"]), int(line["flags"], 16)) for line in lines if line["flags"] != b"0"}


def test_misfire_shows_flag_8_and_turns_the_rotor_over_once_more() -> None:
    bench, lines = faulty_game("misfire")
    assert flags_by_state(lines) == {(2, 8), (3, 8)}
    assert sum(line["state"] == b"3" and line["flags"] == b"8" for line in lines) <= 6
    turns = [way for way, _ in itertools.groupby(line["way"] for line in lines if line["state"] == b"2")]
    assert len(turns) == 3
    assert {line["spin"] for line in lines} == {b"001"}
    assert bench.twin.memory.misfires == 1


def test_removed_ball_shows_flag_1_until_the_wheel_stops() -> None:
    bench, lines = faulty_game("ball-removed", 140)
    assert (flags_by_state(lines), states(lines)) == ({(4, 1)}, [2, 3, 4, 6])
    assert sum(line["flags"] == b"1" for line in lines) == pytest.approx(150, abs=2)
    assert bench.twin.truths[-1].pocket is None


def test_runaway_rotor_brakes_climbs_above_90_rpm_and_dies() -> None:
    _, lines = faulty_game("runaway-rotor", 140)
    speeds = [int(line["rotor"]) for line in lines if line["state"] == b"4"]
    top = speeds.index(max(speeds))
    assert 850 <= max(speeds) <= 980
    assert min(speeds[:top]) < 110
    assert set(speeds[top + 1 :]) == {0}
    assert states(lines) == [2, 3, 4, 6]
    assert (4, 4) in flags_by_state(lines)


def test_wrong_parameter_makes_the_rotor_run_away_as_it_did() -> None:
    bench = Bench(TwinSettings(stored={"m": "20000.0"}), seed=2).on()
    assert max(int(line["rotor"]) for _ in range(4) for line in bench.game() if line["state"] == b"4") == 999


@pytest.mark.parametrize(
    ("kind", "passed", "flags"),
    [
        ("ball-with-rotor", [2, 3, 4, 5, 1], {(3, 2), (4, 2)}),
        ("sensor-fault", [2, 3, 4, 6], {(4, 4), (6, 4)}),
        ("no-more-bets-skipped", [2, 3, 5, 1], set()),
        ("no-result", [2, 3, 4], set()),
        ("not-in-track", [2, 3, 4, 7], set()),
        ("no-number-line", [2, 3, 4, 5, 1], set()),
        ("contradicted", [2, 3, 4, 5, 1], set()),
    ],
)
def test_fault_of_a_spin_shows_in_its_states_and_flags(
    kind: str, passed: list[int], flags: set[tuple[int, int]]
) -> None:
    _, lines = faulty_game(kind, 130)
    assert (states(lines), flags_by_state(lines)) == (passed, flags)


@pytest.mark.parametrize(("kind", "told"), [("no-number-line", []), ("contradicted", ["other"]), ("misfire", ["27"])])
def test_bare_number_is_missing_wrong_or_right_as_the_plan_says(kind: str, told: list[str]) -> None:
    bench, _ = faulty_game(kind)
    numbers = [line.decode() for _, line in bench.lines if len(line) == 2]
    assert ["27" if number == "27" else "other" for number in numbers] == told


def test_component_fault_with_mode_bit_256_is_reported_before_the_wheel_stops() -> None:
    bench, _ = faulty_game("sensor-fault", 140, mode=1_159 + 256)
    assert b"*F 21" in [line for _, line in bench.lines]


def test_same_direction_turns_as_the_spin_before() -> None:
    bench = Bench(faults=read_plan("same-direction@2")).on()
    for _ in range(3):
        bench.game()
    first, second, third = (truth.clockwise for truth in bench.twin.truths)
    assert first is second is not third


def test_silence_loses_and_burst_keeps_what_was_said() -> None:
    silent, _ = faulty_game("silence")
    burst, _ = faulty_game("burst")
    gaps = [
        max(after - before for (before, _), (after, _) in itertools.pairwise(bench.lines)) / SECOND
        for bench in (silent, burst)
    ]
    assert all(8 <= gap <= 9 for gap in gaps)
    assert len(burst.lines) - len(silent.lines) == 16
    assert max(len(list(lines)) for _, lines in itertools.groupby(burst.lines, key=lambda line: line[0])) >= 16


def test_burst_holds_back_no_more_than_its_bound() -> None:
    bench = Bench(mode_of_the_wheel()).on()
    bench.twin._quiet = Quiet(FaultKind.BURST, bench.now_us + 4_000 * SECOND)
    bench.wait(3_999)
    assert len(bench.twin._quiet.held) <= HELD_BOUND
    assert len(bench.twin._quiet.held) > HELD_BOUND - 100


def mode_of_the_wheel() -> TwinSettings:
    return TwinSettings(speed=2)


@pytest.mark.parametrize("kind", ["glued", "truncated", "fragments", "doubled", "bit-noise"])
def test_bad_cable_damages_about_a_third_of_the_lines_of_its_spin_only(kind: str) -> None:
    bench, lines = faulty_game(kind)
    other = Bench(pockets=["27"]).on()
    clean = other.game(100)
    assert bench.raw != other.raw
    if kind == "doubled":
        assert len(lines) > 1.08 * len(clean)
    elif kind != "glued":
        assert 0.4 < len(lines) / len(clean) < 0.95
    before = len(bench.raw)
    bench.game()
    assert not [
        line for line in bench.raw[before:].split(b"\r\n") if line.startswith(b"*X") and not LINE.fullmatch(line)
    ]


def test_power_cycle_begins_again_with_spin_1_and_no_number() -> None:
    bench = Bench(faults=read_plan("power-cycle@3:5:4")).on()
    for _ in range(3):
        bench.game()
    last = bench.status()[-1]
    assert (last["state"], last["spin"], last["number"]) == (b"6", b"001", b"  ")
    assert [truth.pocket is None for truth in bench.twin.truths] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("", FaultPlan()),
        ("misfire@3", FaultPlan(by_spin={3: (Fault(FaultKind.MISFIRE),)})),
        (
            "silence@5:30:2, glued@5",
            FaultPlan(by_spin={5: (Fault(FaultKind.SILENCE, 30, 2), Fault(FaultKind.GLUED))}),
        ),
        ("bit-noise%25", FaultPlan(chances={FaultKind.BIT_NOISE: 0.25})),
    ],
)
def test_plan_that_a_person_wrote_is_read(text: str, plan: FaultPlan) -> None:
    assert read_plan(text) == plan


@pytest.mark.parametrize(
    "text", ["thunder@1", "misfire", "misfire@", "misfire@0", "misfire@1:2:9", "misfire%x", "misfire%101", "@3"]
)
def test_plan_with_a_wrong_word_is_refused_with_the_right_ones(text: str) -> None:
    with pytest.raises(ValueError, match="KIND@SPIN") as caught:
        read_plan(text)
    assert repr(text) in str(caught.value)
    assert "bit-noise" in str(caught.value)


def test_plan_with_several_wrong_words_names_them_all_and_no_right_one() -> None:
    with pytest.raises(FaultPlanError) as caught:
        read_plan("thunder@1, misfire@2, bit-noise%200")
    assert caught.value.words == ["thunder@1", "bit-noise%200"]
    assert str(caught.value).startswith("'thunder@1', 'bit-noise%200': ")


@given(text=st.from_regex(FAULT, fullmatch=True) | st.text(max_size=20))
def test_any_text_is_a_plan_or_a_value_error(text: str) -> None:
    try:
        plan = read_plan(text)
    except ValueError:
        return
    assert isinstance(plan, FaultPlan)


def test_chances_of_a_plan_strike_about_as_often_as_they_say() -> None:
    plan, rng = read_plan("misfire%20"), random.Random(1)
    struck = sum(bool(plan.of_spin(spin, rng)) for spin in range(1_000))
    assert 150 < struck < 250


def test_factory_parameters_name_every_item_that_is_asked_at_an_opening() -> None:
    assert set(FACTORY) == set("nsmhzkig")


# ── The cable in memory ───────────────────────────────────────────────────────────────────────────────────────────────


def cable_of(clock: ManualClock) -> TwinCable:
    return TwinCable(WheelTwin(TwinSettings(), random.Random(1)), clock)


async def test_cable_that_is_unplugged_or_open_cannot_be_opened() -> None:
    cable = cable_of(ManualClock())
    end = cable.open()
    with pytest.raises(DeviceFault, match="E-SERIAL-BUSY"):
        cable.open()
    cable.unplug()
    with pytest.raises(DeviceFault, match="E-SERIAL-LOST"):
        end.read()
    with pytest.raises(DeviceFault, match="E-SERIAL-LOST"):
        end.write(b"*X\r\n")
    end.close()
    with pytest.raises(DeviceFault, match="E-SERIAL-ABSENT"):
        cable.open()
    cable.replug()
    cable.open().close()
    cable.close()


async def test_end_that_was_unplugged_and_not_closed_stays_lost_after_the_replug() -> None:
    cable = cable_of(ManualClock())
    end = cable.open()
    cable.unplug()
    cable.replug()
    with pytest.raises(DeviceFault, match="E-SERIAL-LOST"):
        end.read()
    cable.close()


async def test_bytes_that_nobody_reads_are_bounded_and_counted() -> None:
    clock = ManualClock()
    cable = cable_of(clock)
    end = cable.open()
    for _ in range(40):
        clock.advance_us(10 * SECOND)
        end.write(b"\r\n")
    assert len(end.read()) == BUFFER_BOUND
    assert cable.lost_bytes > 0
    cable.close()


# ── The pseudo-terminal ───────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def terminal(link: Path, *options: str, stdin: int = subprocess.PIPE) -> Iterator[subprocess.Popen[bytes]]:
    """The twin's own program, ended at the end."""
    words = [sys.executable, "-m", "drivers.twin.wheel", "--link", str(link), *options]
    process = subprocess.Popen(words, stdin=stdin, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


class Listener:
    """A real driver on a real port; ``until`` waits for what it tells."""

    def __init__(self, link: Path, settings: WheelSettings) -> None:
        self.told: list[Input] = []
        self._news = asyncio.Event()
        self.wheel = SlingshotWheel(lambda: SerialLine(str(link)), SystemClock(), self._hear, settings)

    def _hear(self, told: Input) -> None:
        self.told.append(told)
        self._news.set()

    async def until(self, enough: Callable[[list[str]], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not enough(names(self.told)):
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def listener(link: Path, settings: WheelSettings) -> AsyncIterator[Listener]:
    listening = Listener(link, settings)
    running = asyncio.create_task(listening.wheel.run())
    try:
        yield listening
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def ended(process: subprocess.Popen[bytes]) -> int:
    return await asyncio.to_thread(process.wait, PATIENCE_S)


async def test_program_on_a_terminal_plays_with_the_real_driver_and_ends_on_sigterm(tmp_path: Path) -> None:
    link = tmp_path / "wheel.tty"
    with terminal(link, "--speed", "40", "--seed", "5") as process:
        async with listener(link, WheelSettings(status_period_ms=12)) as table:
            await table.until(lambda told: "LinkRestored" in told)
            assert (await table.wheel.verify()).differences == ()
            assert (await table.wheel.power_on()).code == ""
            assert (await table.wheel.start()).code == ""
            await table.until(lambda told: "PocketDetected" in told)
            assert link.is_symlink()
            process.send_signal(signal.SIGTERM)
            assert await ended(process) == 0
            assert not link.is_symlink()
            await table.until(lambda told: told[-1] == "LinkLost")


async def test_program_whose_adapter_is_pulled_out_comes_back_under_the_same_link(tmp_path: Path) -> None:
    link = tmp_path / "wheel.tty"
    pulls = ",".join(f"unplug@{spin}:1:3" for spin in range(2, 200, 6))  # whenever the listener comes, one is ahead
    words = ("--speed", "40", "--mode", "1157", "--faults", pulls)
    with terminal(link, *words):
        async with listener(link, WheelSettings(status_period_ms=12)) as table:
            await table.until(lambda told: told.count("LinkRestored") >= 2)
            assert table.wheel.health().opened == 2
            links = [type(told) for told in table.told if isinstance(told, LinkLost | LinkRestored)]
            assert links[-3:] == [LinkRestored, LinkLost, LinkRestored]
            await table.until(lambda told: "PocketDetected" in told)


async def test_program_for_a_croupiers_wheel_spins_on_a_word_and_ends_with_its_input(tmp_path: Path) -> None:
    link = tmp_path / "wheel.tty"
    settings = WheelSettings(status_period_ms=12, commands=False, rotor_min_mrpm=15_000, rotor_max_mrpm=35_000)
    with terminal(link, "--speed", "40", "--croupier") as process:
        async with listener(link, settings) as table:
            await table.until(lambda told: "LinkRestored" in told)
            assert process.stdin is not None
            process.stdin.write(b"jump\nspin\n")
            process.stdin.flush()
            await table.until(lambda told: "PocketDetected" in told)
            process.stdin.close()
            assert await ended(process) == 0
            assert len([told for told in table.told if isinstance(told, PocketDetected)]) == 1
            process.stdin = None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--speed", "0"), b"--speed must be above 0"),
        (("--faults", "thunder@1"), b"KIND@SPIN"),
        (("--pockets", "36"), b"invalid choice"),
        (("--link", "no-such-folder/wheel.tty"), b"there is no folder"),
    ],
)
async def test_program_with_wrong_words_says_which_and_ends(
    tmp_path: Path, words: tuple[str, ...], complaint: bytes
) -> None:
    with terminal(tmp_path / "wheel.tty", *words) as process:
        assert await ended(process) == 2
        assert process.stderr is not None
        assert complaint in process.stderr.read()


async def test_program_with_a_standard_input_that_never_ends_runs_until_it_is_told(tmp_path: Path) -> None:
    link = tmp_path / "wheel.tty"
    with terminal(link, "--speed", "40", stdin=subprocess.DEVNULL) as process:
        async with listener(link, WheelSettings(status_period_ms=12)) as table:
            await table.until(lambda told: "LinkRestored" in told)
        process.send_signal(signal.SIGINT)
        assert await ended(process) == 0
