"""Commands to the wheel: one at a time, in the order of the certified requests; what is not for it is left out."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from controller.rehearsal.virtual_time import LoopClock, VirtualTimeLoop
from controller.wheel_desk import WheelDesk
from drivers.ports import ByteLine
from drivers.slingshot import WheelSettings
from drivers.slingshot_wheel import SlingshotWheel
from games.roulette.facts import ResetWheel, StartWheel
from games.rules import Input, Request, SetTimer
from games.seance import PowerWheel, VerifyWheel
from games.signals import Direction, WheelVerified


class ObedientLine:
    """A serial line to a wheel that says OK to everything, when it is let."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.answers = True
        self._waiting = b""
        self._callback: Callable[[], None] | None = None

    def read(self) -> bytes:
        data, self._waiting = self._waiting, b""
        return data

    def write(self, data: bytes) -> None:
        self.written.append(data.strip())
        if self.answers:
            self._waiting += b"*" + data.strip()[1:2] + b" OK\r\n"
            if self._callback is not None:
                asyncio.get_running_loop().call_soon(self._callback)

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        self._callback = callback

    def close(self) -> None:
        self._callback = None


Story = Callable[[WheelDesk, ObedientLine, list[Input]], Awaitable[None]]


def at_the_desk(story: Story, **settings: bool) -> None:
    """Run a story in virtual time, with the desk and the wheel's driver running."""

    async def tell() -> None:
        loop, line, told = asyncio.get_running_loop(), ObedientLine(), list[Input]()

        def open_line() -> ByteLine:
            return line

        wheel = SlingshotWheel(open_line, LoopClock(loop), told.append, WheelSettings(**settings))
        desk = WheelDesk(wheel)
        tasks = [loop.create_task(wheel.run()), loop.create_task(desk.run())]
        await asyncio.sleep(0)
        await story(desk, line, told)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(tell())


async def passes(seconds: float) -> None:
    """Let virtual time pass."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, passed.set)
    await passed.wait()


@pytest.mark.parametrize(
    ("request_of_the_game", "command"),
    [
        (StartWheel(direction=None), b"*K"),
        (StartWheel(direction=Direction.CLOCKWISE), b"*K"),
        (ResetWheel(), b"*R"),
        (PowerWheel(on=True), b"*P 1"),
        (PowerWheel(on=False), b"*P 0"),
    ],
)
def test_wheel_desk_request_of_the_game_becomes_the_command_of_the_protocol(
    request_of_the_game: Request, command: bytes
) -> None:
    async def story(desk: WheelDesk, line: ObedientLine, _: list[Input]) -> None:
        desk.perform(request_of_the_game)
        await passes(1)
        assert line.written == [command]

    at_the_desk(story)


def test_wheel_desk_request_that_is_not_for_the_wheel_sends_nothing() -> None:
    async def story(desk: WheelDesk, line: ObedientLine, _: list[Input]) -> None:
        desk.perform(SetTimer(name="launch", round=1, after_ms=100))
        await passes(1)
        assert line.written == []

    at_the_desk(story)


def test_wheel_desk_requests_are_done_one_after_the_other_in_their_order() -> None:
    async def story(desk: WheelDesk, line: ObedientLine, _: list[Input]) -> None:
        line.answers = False
        desk.perform(ResetWheel())
        desk.perform(PowerWheel(on=True))
        desk.perform(StartWheel(direction=None))
        await passes(1)
        assert line.written == [b"*R"], "the next one waits for the answer, or for its end"
        line.answers = True
        await passes(10)
        assert line.written == [b"*R", b"*P 1", b"*K"]

    at_the_desk(story)


def test_wheel_desk_wheel_that_never_answers_holds_up_nothing_for_ever() -> None:
    async def story(desk: WheelDesk, line: ObedientLine, _: list[Input]) -> None:
        line.answers = False
        desk.perform(ResetWheel())
        desk.perform(PowerWheel(on=True))
        desk.perform(PowerWheel(on=False))
        await passes(30)
        assert line.written == [b"*R", b"*P 1", b"*P 0"]

    at_the_desk(story)


def test_wheel_desk_verification_is_over_when_it_was_told_well_or_not() -> None:
    async def story(desk: WheelDesk, line: ObedientLine, told: list[Input]) -> None:
        line.answers = False
        await desk.verified()
        verified = [signal for signal in told if isinstance(signal, WheelVerified)]
        assert len(verified) == 1
        assert "firmware: is not told" in verified[0].differences[0]

    at_the_desk(story)


def test_wheel_desk_verification_waits_for_its_turn() -> None:
    async def story(desk: WheelDesk, line: ObedientLine, _: list[Input]) -> None:
        line.answers = False
        desk.perform(PowerWheel(on=True))
        desk.perform(VerifyWheel())
        await desk.verified()
        assert line.written[0] == b"*P 1"
        assert line.written == [b"*P 1", *[b"*S"] * 2], "one verification serves both, and asks who the wheel is twice"

    at_the_desk(story)


def test_wheel_desk_any_number_of_openings_at_once_share_one_verification() -> None:
    async def story(desk: WheelDesk, line: ObedientLine, told: list[Input]) -> None:
        line.answers = False
        await asyncio.gather(*[desk.verified() for _ in range(640)])
        assert len([signal for signal in told if isinstance(signal, WheelVerified)]) == 1
        await desk.verified()
        assert len([signal for signal in told if isinstance(signal, WheelVerified)]) == 2, "a later one is read anew"

    at_the_desk(story)


def test_wheel_desk_a_command_that_waits_is_not_queued_twice() -> None:
    async def story(desk: WheelDesk, line: ObedientLine, _: list[Input]) -> None:
        line.answers = False
        for _ in range(1_000):
            desk.perform(ResetWheel())
            desk.perform(PowerWheel(on=True))
        assert len(desk.waiting) == 2

    at_the_desk(story)
