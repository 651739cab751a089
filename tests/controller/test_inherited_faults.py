"""A fault that was certified before the start is over when the wheel is heard for long without it, and not before."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from controller.inherited_faults import SHOWN_WITHIN_PERIODS, InheritedFaults
from controller.rehearsal.virtual_time import LoopClock, VirtualTimeLoop
from drivers.slingshot_faults import BALL_MISSING_PERIODS
from games.rules import Input
from games.signals import LinkRestored, WheelFaultCleared, WheelFaultKind, WheelFaultSeen

PERIOD_MS = 500
LONG_S = SHOWN_WITHIN_PERIODS * PERIOD_MS / 1_000
MISFIRE, BLIND, TEST = WheelFaultKind.LAUNCH_FAILED, WheelFaultKind.SENSOR_FAULT, WheelFaultKind.SELF_TEST


class Wheel:
    """A wheel's link, and what is told about it."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.heard = True
        self.told: list[Input] = []
        clock = LoopClock(asyncio.get_running_loop())
        self.faults = InheritedFaults(faults, clock, self.told.append, lambda: self.heard, PERIOD_MS)

    def is_back(self) -> None:
        self.heard = True
        self.faults.observe(LinkRestored(at_us=1, device="wheel"))

    @property
    def over(self) -> list[str]:
        """The faults that were told to be over."""
        assert all(isinstance(signal, WheelFaultCleared) for signal in self.told)
        return [signal.fault for signal in self.told if isinstance(signal, WheelFaultCleared)]


def at_the_wheel(story: Callable[[Wheel], Awaitable[None]], *faults: str) -> None:
    """Run a story in virtual time, with faults that stand in the journal."""

    async def tell() -> None:
        await story(Wheel(faults))

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(tell())


async def passes(seconds: float) -> None:
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, passed.set)
    await passed.wait()


def test_inherited_fault_is_over_when_the_wheel_was_heard_for_long_without_it() -> None:
    async def story(wheel: Wheel) -> None:
        wheel.is_back()
        await passes(LONG_S - 0.1)
        assert wheel.over == []
        await passes(0.2)
        assert wheel.over == [MISFIRE, BLIND]
        wheel.is_back()
        await passes(2 * LONG_S)
        assert wheel.over == [MISFIRE, BLIND], "each is told once"

    at_the_wheel(story, MISFIRE, BLIND)


def test_inherited_fault_that_is_seen_again_is_left_to_the_driver() -> None:
    async def story(wheel: Wheel) -> None:
        wheel.is_back()
        wheel.faults.observe(WheelFaultSeen(at_us=1, fault=BLIND, detail="flags 4"))
        await passes(2 * LONG_S)
        assert wheel.over == [MISFIRE]

    at_the_wheel(story, MISFIRE, BLIND)


def test_inherited_fault_of_a_wheel_that_is_not_heard_stands() -> None:
    async def story(wheel: Wheel) -> None:
        await passes(10 * LONG_S)
        assert wheel.over == [], "it was never heard"
        wheel.is_back()
        wheel.heard = False
        await passes(2 * LONG_S)
        assert wheel.over == [], "it was heard too shortly"
        wheel.faults.observe(LinkRestored(at_us=1, device="panel"))
        await passes(2 * LONG_S)
        assert wheel.over == [], "another device says nothing about the wheel"
        wheel.is_back()
        await passes(2 * LONG_S)
        assert wheel.over == [MISFIRE]

    at_the_wheel(story, MISFIRE)


def test_inherited_fault_of_the_wheels_own_test_ends_with_a_test_that_finds_nothing() -> None:
    async def story(wheel: Wheel) -> None:
        wheel.is_back()
        await passes(2 * LONG_S)
        assert wheel.over == []
        wheel.faults.self_test_passed()
        wheel.faults.self_test_passed()
        assert wheel.over == [TEST]

    at_the_wheel(story, TEST)


def test_inherited_faults_wait_longer_than_the_driver_does_before_it_tells_of_any() -> None:
    assert SHOWN_WITHIN_PERIODS > BALL_MISSING_PERIODS
