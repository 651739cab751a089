"""Timers: one for each name, each with the round for which it was set, and none after the stop."""

import asyncio
from collections.abc import Awaitable, Callable

from controller.inbox import Inbox
from controller.rehearsal.virtual_time import LoopClock, VirtualTimeLoop
from controller.timers import Timers
from games.rules import SetTimer, TimerFired


def with_timers(story: Callable[[Timers, Inbox], Awaitable[None]]) -> None:
    """Run a story in virtual time."""

    async def tell() -> None:
        inbox = Inbox()
        await story(Timers(inbox, LoopClock(asyncio.get_running_loop())), inbox)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(tell())


async def passes(milliseconds: int) -> None:
    """Let virtual time pass."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(milliseconds / 1_000, passed.set)
    await passed.wait()


def fired(inbox: Inbox) -> list[TimerFired]:
    found = []
    while letter := inbox.take():
        assert isinstance(letter.signal, TimerFired)
        found.append(letter.signal)
    return found


def launch(of_round: int, after_ms: int) -> SetTimer:
    return SetTimer(name="launch", round=of_round, after_ms=after_ms)


def test_timer_that_comes_due_is_an_input_with_its_name_its_round_and_the_instant() -> None:
    async def story(timers: Timers, inbox: Inbox) -> None:
        began_us = LoopClock(asyncio.get_running_loop()).mono_us()
        timers.set(launch(4, 1_500))
        await passes(1_499)
        assert fired(inbox) == []
        await passes(1)
        assert fired(inbox) == [TimerFired(at_us=began_us + 1_500_000, name="launch", round=4)]
        await passes(60_000)
        assert fired(inbox) == [], "it fires once"

    with_timers(story)


def test_timer_of_the_same_name_takes_the_place_of_the_one_that_runs() -> None:
    async def story(timers: Timers, inbox: Inbox) -> None:
        timers.set(launch(4, 1_000))
        timers.set(launch(5, 3_000))
        await passes(2_999)
        assert fired(inbox) == []
        await passes(1)
        assert [timer.round for timer in fired(inbox)] == [5]

    with_timers(story)


def test_timers_of_other_names_run_beside_each_other_in_order_of_their_instants() -> None:
    async def story(timers: Timers, inbox: Inbox) -> None:
        for name, after_ms in (("absence:2", 300), ("launch", 100), ("absence:1", 200)):
            timers.set(SetTimer(name=name, round=1, after_ms=after_ms))
        await passes(300)
        assert [timer.name for timer in fired(inbox)] == ["launch", "absence:1", "absence:2"]

    with_timers(story)


def test_timer_may_be_set_again_after_it_fired() -> None:
    async def story(timers: Timers, inbox: Inbox) -> None:
        for number in (1, 2):
            timers.set(launch(number, 100))
            await passes(100)
            assert [timer.round for timer in fired(inbox)] == [number]

    with_timers(story)


def test_timers_that_were_stopped_never_fire() -> None:
    async def story(timers: Timers, inbox: Inbox) -> None:
        timers.set(launch(4, 1_000))
        timers.set(SetTimer(name="absence:1", round=1, after_ms=2_000))
        timers.stop()
        await passes(10_000)
        assert fired(inbox) == []

    with_timers(story)
