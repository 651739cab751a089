"""The driver with a twin at the other end of the cable, in virtual time: whole evenings, and every way to lose it."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from drivers.ports import DeviceFault
from drivers.slingshot import WheelParameters, WheelSettings
from drivers.slingshot_commands import COMMAND_TIMEOUT_MS, Outcome
from drivers.slingshot_wheel import SlingshotWheel
from drivers.twin.serial import TwinCable
from drivers.twin.wheel import TwinSettings, WheelTwin
from drivers.twin.wheel_faults import FaultPlan, read_plan
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
    WheelVerified,
)
from tests.drivers.slingshot_stage import LoopClock, in_virtual_time, names


class Table:
    """A driver, the cable to its twin, and what it told. ``until`` waits for a signal of a kind."""

    def __init__(self, cable: TwinCable, settings: WheelSettings) -> None:
        self.cable = cable
        self.told: list[Input] = []
        self._news = asyncio.Event()
        self.wheel = SlingshotWheel(cable.open, cable.clock, self._hear, settings)

    def _hear(self, signal: Input) -> None:
        self.told.append(signal)
        self._news.set()

    async def until(self, kind: type[Input], limit_s: float = 300) -> Any:
        """The next signal of this kind from now on."""
        read = len(self.told)
        async with asyncio.timeout(limit_s):
            while True:
                for signal in self.told[read:]:
                    if isinstance(signal, kind):
                        return signal
                read = len(self.told)
                self._news.clear()
                await self._news.wait()

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        passed = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, passed.set)
        await passed.wait()

    async def play(self) -> PocketDetected:
        """One game from start to number."""
        result = await self.wheel.start()
        assert result.outcome is Outcome.DONE, result
        pocket = await self.until(PocketDetected)
        assert isinstance(pocket, PocketDetected)
        return pocket


@asynccontextmanager
async def table(
    *,
    twin: TwinSettings | None = None,
    settings: WheelSettings | None = None,
    faults: str = "",
    on: bool = True,
    **more: Any,
) -> AsyncIterator[Table]:
    """A table whose driver runs, on a wheel that is switched on and heard."""
    clock = LoopClock()
    plan = read_plan(faults) if faults else FaultPlan()
    wheel = WheelTwin(twin or TwinSettings(), random.Random(5), faults=plan, now_us=clock.mono_us(), **more)
    stage = Table(TwinCable(wheel, clock), settings or WheelSettings())
    running = asyncio.create_task(stage.wheel.run())
    try:
        if on:
            await stage.until(LinkRestored)
            await stage.wheel.power_on()
            stage.told.clear()
        yield stage
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        stage.cable.close()


def story(tale: Callable[[], Any]) -> Callable[[], None]:
    """Play a tale in virtual time."""

    def played() -> None:
        in_virtual_time(tale)

    played.__name__ = tale.__name__
    return played


# ── Playing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
@story
async def test_evening_of_fifty_games_is_told_as_it_happened() -> None:
    async with table() as stage:
        for _ in range(50):
            await stage.play()
            await stage.wait(10)
        assert names(stage.told) == ["BallLaunched", "BallSlowed", "PocketDetected"] * 50
        truths = list(stage.cable.twin.truths)
        assert [s.pocket for s in stage.told if isinstance(s, PocketDetected)] == [truth.pocket for truth in truths]
        assert [s.spin for s in stage.told if isinstance(s, PocketDetected)] == [truth.spin for truth in truths]
        ways = [s.direction for s in stage.told if isinstance(s, BallLaunched)]
        assert ways == [Direction.CLOCKWISE if truth.clockwise else Direction.COUNTERCLOCKWISE for truth in truths]
        assert all(before is after.opposite for before, after in itertools.pairwise(ways))


@story
async def test_wheel_with_direction_control_turns_the_way_that_is_asked_for() -> None:
    parameters = WheelParameters(options=16)
    settings = WheelSettings(direction_control=True, parameters=parameters)
    async with table(twin=TwinSettings(stored={"g": "16"}), settings=settings) as stage:
        for way in (Direction.CLOCKWISE, Direction.CLOCKWISE, Direction.COUNTERCLOCKWISE):
            assert (await stage.wheel.start(way)).outcome is Outcome.DONE
            assert (await stage.until(BallLaunched)).direction is way
            await stage.until(PocketDetected)
            await stage.wait(10)


@story
async def test_misfire_is_one_alarm_and_the_spin_that_follows_turns_as_the_one_before() -> None:
    async with table(faults="misfire@2") as stage:
        for _ in range(2):
            await stage.play()
            await stage.wait(10)
        first, second = (s.direction for s in stage.told if isinstance(s, BallLaunched))
        assert first is second
        alarms = [s.fault for s in stage.told if isinstance(s, WheelFaultSeen | WheelFaultCleared)]
        assert alarms == [WheelFaultKind.LAUNCH_FAILED] * 2


@story
async def test_void_spin_is_reset_and_launched_again_under_its_number() -> None:
    async with table() as stage:
        await stage.wheel.start()
        launched = await stage.until(BallLaunched)
        assert (await stage.wheel.reset()).outcome is Outcome.DONE
        await stage.wheel.start()
        again = await stage.until(BallLaunched)
        assert (again.spin, again.direction) == (launched.spin, launched.direction.opposite)
        assert (await stage.until(PocketDetected)).pocket == stage.cable.twin.truths[-1].pocket


@story
async def test_croupiers_wheel_is_listened_to_and_never_spoken_to() -> None:
    settings = WheelSettings(commands=False, rotor_min_mrpm=15_000, rotor_max_mrpm=35_000)
    async with table(twin=TwinSettings(croupier=True), settings=settings, on=False) as stage:
        await stage.until(LinkRestored)
        assert (await stage.wheel.verify()).differences == ()
        orders = (stage.wheel.start, stage.wheel.stop, stage.wheel.power_on, stage.wheel.reset)
        assert {(await order()).outcome for order in orders} == {Outcome.LISTEN_ONLY}
        assert (await stage.wheel.self_test()).result.code == "E-WHEEL-LISTEN-ONLY"
        assert stage.cable.spin()
        assert not stage.cable.spin()
        assert (await stage.until(PocketDetected)).pocket == stage.cable.twin.truths[-1].pocket
        before = ["LinkLost", "LinkRestored", "WheelVerified"]  # it starts up for 3 s
        assert names(stage.told) == [*before, "BallLaunched", "BallSlowed", "PocketDetected"]


@story
async def test_croupiers_wheel_that_is_not_heard_is_a_difference() -> None:
    async with table(settings=WheelSettings(commands=False), on=False) as stage:
        assert (await stage.wheel.verify()).differences == ("link: is silent, must be a status line every 500 ms",)


# ── Losing the wheel ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
@pytest.mark.parametrize("state", [2, 3, 4, 5])
@pytest.mark.parametrize("seconds", [0.2, 4, 90])
def test_adapter_unplugged_and_replugged_in_any_phase_never_yields_a_wrong_result(state: int, seconds: float) -> None:
    async def tale() -> None:
        async with table() as stage:
            await stage.play()
            await stage.wait(10)
            before = len(stage.told)
            await stage.wheel.start()
            while stage.cable.twin.state != state:
                await stage.wait(0.1)
            await stage.wait(0.7)
            stage.cable.unplug()
            lost_us = stage.cable.clock.mono_us()
            lost = await stage.until(LinkLost, limit_s=0.001)
            assert lost.at_us == lost_us
            assert not stage.wheel.health().port_is_open
            assert stage.wheel.health().fault.startswith("E-SERIAL-")
            await stage.wait(seconds)
            stage.cable.replug()
            await stage.until(LinkRestored, limit_s=10)
            await stage.wait(120)
            told = stage.told[before:]
            truth = stage.cable.twin.truths[-1]
            detected = [(s.spin, s.pocket) for s in told if isinstance(s, PocketDetected)]
            missed = [(s.spin, s.pocket) for s in told if isinstance(s, PocketMissed)]
            assert len(detected) + len(missed) == 1
            assert detected + missed == [(truth.spin, truth.pocket)]
            assert [type(s) for s in told].count(BallSlowed) <= 1
            assert [type(s) for s in told].count(LinkLost) == 1
            stage.told.clear()
            assert (await stage.play()).pocket == stage.cable.twin.truths[-1].pocket
            assert names(stage.told) == ["BallLaunched", "BallSlowed", "PocketDetected"]

    in_virtual_time(tale)


@story
async def test_adapter_unplugged_between_two_games_costs_nothing_but_the_link() -> None:
    async with table() as stage:
        await stage.play()
        await stage.wait(10)
        stage.told.clear()
        stage.cable.unplug()
        await stage.wait(30)
        stage.cable.replug()
        await stage.wait(10)
        assert names(stage.told) == ["LinkLost", "LinkRestored"]
        await stage.play()


@story
async def test_adapter_absent_at_the_start_is_told_once_and_opened_when_it_comes() -> None:
    async with table(on=False) as stage:
        stage.cable.unplug()
        await stage.wait(60)
        assert names(stage.told) == ["LinkLost"]
        assert "E-SERIAL-ABSENT" in stage.wheel.health().fault
        stage.cable.replug()
        await stage.until(LinkRestored, limit_s=5)
        assert stage.wheel.health().fault == ""


@story
async def test_port_held_by_another_program_is_opened_when_it_is_free() -> None:
    clock = LoopClock()
    cable = TwinCable(WheelTwin(TwinSettings(), random.Random(5), now_us=clock.mono_us()), clock)
    other = cable.open()
    stage = Table(cable, WheelSettings())
    running = asyncio.create_task(stage.wheel.run())
    await stage.wait(10)
    assert "E-SERIAL-BUSY" in stage.wheel.health().fault
    other.close()
    await stage.until(LinkRestored, limit_s=5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    cable.open().close()
    cable.close()


@pytest.mark.parametrize(
    "faults", ["silence@1:134:4", "burst@1:134:4", "burst@1:20:3", "silence@1:9:5", "unplug@1:9:3"]
)
def test_silence_or_burst_in_a_game_never_yields_a_wrong_result(faults: str) -> None:
    async def tale() -> None:
        async with table(faults=faults) as stage:
            await stage.wheel.start()
            await stage.until(LinkRestored, limit_s=300)
            await stage.wait(60)
            truth = stage.cable.twin.truths[-1]
            ends = [(s.spin, s.pocket) for s in stage.told if isinstance(s, PocketDetected | PocketMissed)]
            assert ends == [(truth.spin, truth.pocket)]
            assert names(stage.told).count("LinkLost") == 1

    in_virtual_time(tale)


@story
async def test_wheel_that_lost_its_power_in_a_game_has_no_result_and_starts_again_when_told() -> None:
    async with table(faults="power-cycle@2:5:4") as stage:
        await stage.play()
        await stage.wait(10)
        stage.told.clear()
        await stage.wheel.start()
        await stage.until(WheelFaultSeen)
        await stage.wait(60)
        assert names(stage.told)[:3] == ["BallLaunched", "LinkLost", "LinkRestored"]
        faults = {s.fault for s in stage.told if isinstance(s, WheelFaultSeen)}
        assert faults == {WheelFaultKind.STOPPED}
        assert not [s for s in stage.told if isinstance(s, PocketDetected | PocketMissed)]
        await stage.wheel.power_on()
        await stage.wait(5)
        assert (await stage.play()).spin == 1


@pytest.mark.parametrize("kind", ["glued", "truncated", "fragments", "doubled", "bit-noise"])
def test_bad_cable_over_forty_games_never_yields_a_wrong_pocket(kind: str) -> None:
    async def tale() -> None:
        async with table(faults=f"{kind}%100") as stage:
            for _ in range(40):
                await stage.wheel.start()
                await stage.wait(75)
            truths = {(truth.spin, truth.pocket) for truth in stage.cable.twin.truths}
            told = [(s.spin, s.pocket) for s in stage.told if isinstance(s, PocketDetected)]
            assert len(truths) == 40
            assert set(told) <= truths
            assert len(told) == len(set(told))
            assert len(told) >= 15

    in_virtual_time(tale)


# ── Commands ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@story
async def test_wheel_that_holds_what_is_registered_is_verified_without_a_difference() -> None:
    async with table() as stage:
        verified = await stage.wheel.verify()
        assert verified == WheelVerified(at_us=verified.at_us, firmware="V2.52", pockets=37, mode=1_159, differences=())
        assert stage.told == [verified]
        assert stage.wheel.health().firmware == "V2.52"


@pytest.mark.parametrize(
    ("twin", "differences"),
    [
        (TwinSettings(stored={"m": "20000.0"}), ("rotor speed change: is 20000.0 rpm, must be 1.5 rpm",)),
        (TwinSettings(stored={"s": "14.0 17.50000"}), ()),
        (TwinSettings(stored={"s": "16 18"}), ("rotor speed range: is 16.0 to 18.0 rpm, must be 14.0 to 17.5 rpm",)),
        (TwinSettings(stored={"n": "3100"}), ("no-more-bets threshold: is 3100, must be 2920",)),
        (TwinSettings(stored={"g": "8"}), ("options: is 8, must be 0",)),
        (TwinSettings(firmware="V2.50"), ("firmware: is V2.50, must be V2.52",)),
        (TwinSettings(mode=1_159 + 256), ()),
        (TwinSettings(mode=1_158), ("mode: is 1158, must be 1159 or 1415",)),
        (TwinSettings(pockets=38), ("pockets: is 38, must be 37",)),
        (
            TwinSettings(stored={"h": "61", "k": "1800", "i": "9"}),
            (
                "games an hour: is 61, must be 60",
                "keep in rim: is 1800, must be 1900",
                "blind sensor time: is 9, must be 10",
            ),
        ),
    ],
)
def test_wheel_that_drifted_from_what_is_registered_is_told_line_by_line(
    twin: TwinSettings, differences: tuple[str, ...]
) -> None:
    async def tale() -> None:
        async with table(twin=twin) as stage:
            assert (await stage.wheel.verify()).differences == differences

    in_virtual_time(tale)


@story
async def test_wheel_in_its_factory_mode_starts_by_itself_and_is_not_verified() -> None:
    async with table(twin=TwinSettings(mode=1_157), on=False) as stage:
        await stage.until(BallLaunched)
        verified = await stage.wheel.verify()
        assert (verified.mode, verified.differences) == (1_157, ("mode: is 1157, must be 1159 or 1415",))


@story
async def test_verification_without_a_cable_is_a_difference_at_once() -> None:
    async with table() as stage:
        stage.cable.unplug()
        began_us = stage.cable.clock.mono_us()
        verified = await stage.wheel.verify()
        assert stage.cable.clock.mono_us() - began_us < 1_000_000
        (difference,) = verified.differences
        assert difference.startswith("firmware: is not told, E-SERIAL-LOST")
        assert (verified.firmware, verified.pockets, verified.mode) == ("", 0, 0)


@story
async def test_verification_of_a_wheel_that_does_not_answer_ends_with_a_difference() -> None:
    settings = TwinSettings(croupier=True)
    async with table(twin=settings, on=False) as stage:
        await stage.until(LinkRestored)
        began_us = stage.cable.clock.mono_us()
        verified = await stage.wheel.verify()
        assert verified.differences == ("firmware: is not told, no answer in 3000 ms, must be V2.52",)
        assert stage.cable.clock.mono_us() - began_us < 7_000_000


@story
async def test_unplugging_while_parameters_are_read_ends_the_verification() -> None:
    async with table() as stage:
        task = asyncio.create_task(stage.wheel.verify())
        await stage.wait(0.5)
        stage.cable.unplug()
        async with asyncio.timeout(2):
            verified = await task
        assert any("E-SERIAL-LOST" in difference for difference in verified.differences)


@story
async def test_answers_damaged_once_are_asked_again_and_are_no_difference() -> None:
    async with table() as stage:
        send, damaged = stage.cable.twin.memory.answer, list[str]()

        def answer(letter: str, words: list[str], state: int) -> str | None:
            text = send(letter, words, state) or ""
            if text not in damaged:
                damaged.append(text)
                return text[:-1] + "x"
            return text

        stage.cable.twin.memory.answer = answer
        assert (await stage.wheel.verify()).differences == ()
        assert len(damaged) == 10


@story
async def test_power_orders_that_are_so_already_are_done() -> None:
    async with table() as stage:
        assert (await stage.wheel.power_on()).outcome is Outcome.DONE
        results = [await stage.wheel.stop() for _ in range(2)]
        assert [(result.outcome, result.text) for result in results] == [(Outcome.DONE, "OK"), (Outcome.DONE, "NO")]
        await stage.wait(10)
        assert stage.told == []


@story
async def test_start_of_a_wheel_that_is_off_or_plays_is_refused_with_a_code() -> None:
    async with table() as stage:
        await stage.wheel.start()
        assert (await stage.wheel.start()).code == "E-WHEEL-BUSY"
        await stage.until(PocketDetected)
        await stage.wheel.stop()
        refused = await stage.wheel.start()
        assert (refused.code, refused.text) == ("E-WHEEL-REFUSED", "CAM")


@story
async def test_word_that_the_guide_does_not_know_ends_the_command_with_that_word() -> None:
    async with table() as stage:
        stage.cable.twin._code_or_start = lambda _: "*K WELL"
        result = await stage.wheel.start()
        assert (result.code, result.text) == ("E-WHEEL-ANSWER-UNKNOWN", "WELL")
        assert stage.wheel.health().last_command == result


@story
async def test_command_without_an_answer_ends_after_its_time() -> None:
    async with table(twin=TwinSettings(croupier=True), on=False) as stage:
        await stage.until(LinkRestored)
        began_us = stage.cable.clock.mono_us()
        result = await stage.wheel.start()
        assert (result.outcome, result.code) == (Outcome.SILENT, "E-WHEEL-NO-ANSWER")
        assert (stage.cable.clock.mono_us() - began_us) // 1_000 == COMMAND_TIMEOUT_MS


@story
async def test_command_to_a_port_that_is_not_open_ends_at_once() -> None:
    async with table() as stage:
        stage.cable.unplug()
        await stage.wait(1)
        result = await stage.wheel.start()
        assert (result.outcome, result.code) == (Outcome.ABSENT, "E-WHEEL-ABSENT")
        assert "E-SERIAL-ABSENT" in result.text


@story
async def test_port_that_vanishes_while_a_command_is_sent_ends_the_command() -> None:
    async with table() as stage:

        def write(_: bytes) -> None:
            raise DeviceFault("E-SERIAL-STALLED", "twin", "took 0 of 4 bytes")

        stage.wheel._line.write = write
        result = await stage.wheel.start()
        assert (result.outcome, "E-SERIAL-STALLED" in result.text) == (Outcome.ABSENT, True)
        assert names(stage.told) == ["LinkLost"]
        await stage.until(LinkRestored)


@story
async def test_commands_given_at_once_take_turns_and_are_all_answered() -> None:
    async with table() as stage:
        results = await asyncio.gather(
            stage.wheel.verify(), stage.wheel.power_on(), stage.wheel.reset(), stage.wheel.start()
        )
        assert results[0].differences == ()
        assert [result.outcome for result in results[1:]] == [Outcome.DONE] * 3
        assert stage.wheel.health().unasked_replies == 0


@story
async def test_late_answer_of_a_question_given_up_does_not_answer_the_next_one() -> None:
    async with table() as stage:
        twin = stage.cable.twin
        twin._write("*T n 1", stage.cable.clock.mono_us() + 90_000)
        assert (await stage.wheel.verify()).differences == ()
        assert stage.wheel.health().unasked_replies == 1


# ── The wheel's own test ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("codes", "reported", "seconds"),
    [((0,), (0,), 3), ((11, 21), (11, 21), 15), ((11, 0), (11, 0), 5)],
)
def test_self_test_reports_all_codes_and_ends(codes: tuple[int, ...], reported: tuple[int, ...], seconds: int) -> None:
    async def tale() -> None:
        async with table(twin=TwinSettings(self_test=codes)) as stage:
            await stage.wheel.stop()
            began_us = stage.cable.clock.mono_us()
            report = await stage.wheel.self_test()
            assert (report.result.outcome, report.codes) == (Outcome.DONE, reported)
            assert stage.cable.clock.mono_us() - began_us <= seconds * 1_000_000
            seen = [s.detail for s in stage.told if isinstance(s, WheelFaultSeen)]
            assert len(seen) == len([code for code in codes if code])

    in_virtual_time(tale)


@story
async def test_self_test_of_a_wheel_that_plays_is_busy() -> None:
    async with table() as stage:
        report = await stage.wheel.self_test()
        assert (report.result.code, report.codes) == ("E-WHEEL-BUSY", ())


@story
async def test_self_test_that_never_ends_is_given_up_after_five_minutes() -> None:
    async with table(twin=TwinSettings(self_test=())) as stage:
        await stage.wheel.stop()
        began_us = stage.cable.clock.mono_us()
        running = asyncio.create_task(stage.wheel.self_test())
        await stage.wait(5)
        assert (await stage.wheel.power_on()).outcome is Outcome.BUSY
        report = await running
        assert report.result.outcome is Outcome.SILENT
        assert 300_000_000 <= stage.cable.clock.mono_us() - began_us <= 311_000_000
        assert (await stage.wheel.power_on()).outcome is Outcome.DONE


@story
async def test_fault_that_the_wheel_reports_in_play_is_told_unasked() -> None:
    twin = TwinSettings(mode=1_159 + 256)
    async with table(twin=twin, faults="sensor-fault@1") as stage:
        await stage.wheel.start()
        await stage.wait(120)
        faults = [s.fault for s in stage.told if isinstance(s, WheelFaultSeen)]
        assert faults == [WheelFaultKind.SENSOR_FAULT, WheelFaultKind.SELF_TEST, WheelFaultKind.STOPPED]


# ── Health ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@story
async def test_health_of_a_wheel_that_plays_shows_its_link_and_counts() -> None:
    async with table() as stage:
        await stage.play()
        health = stage.wheel.health()
        assert (health.port_is_open, health.link_is_up, health.opened, health.fault) == (True, True, 1, "")
        assert health.last_line_age_ms is not None
        assert health.last_line_age_ms < 500
        assert health.counters.status > 80
        assert replace(health.counters, status=0, numbers=0, replies=0, late=0) == type(health.counters)()


@story
async def test_driver_that_is_cancelled_closes_its_port() -> None:
    async with table() as stage:
        cable = stage.cable
    cable.open().close()
    cable.close()


@story
async def test_driver_of_an_idle_wheel_wakes_no_more_than_six_times_a_second() -> None:
    async with table() as stage:
        loop, wakes = asyncio.get_running_loop(), 0
        select = loop.jumping.select

        def counted(timeout: float | None = None) -> Any:
            nonlocal wakes
            wakes += bool(timeout)
            return select(timeout)

        loop.jumping.select = counted
        await stage.wait(60)
        assert wakes <= 60 * 6 + 1
