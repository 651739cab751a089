"""The wheel's commands, one at a time and in order, each from a request that follows certified facts."""

import asyncio
from collections.abc import Awaitable, Callable

from drivers.slingshot_wheel import SlingshotWheel
from games.roulette.facts import ResetWheel, StartWheel
from games.rules import Request
from games.seance import PowerWheel, VerifyWheel

Command = Callable[[], Awaitable[object]]


class WheelDesk:
    """Gives the wheel what the game asks for. A wheel that does not obey is found by the game's own time limits.

    A request that already waits is not queued twice, so the queue never holds more than the few requests there are,
    however often a link comes and goes or a button is pressed.
    """

    def __init__(self, wheel: SlingshotWheel) -> None:
        self._wheel = wheel
        self._waiting: dict[Request, Command] = {}
        self._something = asyncio.Event()
        self._verified: asyncio.Event | None = None

    @property
    def waiting(self) -> tuple[Request, ...]:
        """The requests that wait, in order."""
        return tuple(self._waiting)

    def perform(self, request: Request) -> None:
        """Queue a request that concerns the wheel; others are ignored."""
        match request:
            case StartWheel(direction=direction):
                self._queue(request, lambda: self._wheel.start(direction))
            case ResetWheel():
                self._queue(request, self._wheel.reset)
            case VerifyWheel():
                self._queue(request, self._verify)
            case PowerWheel(on=True):
                self._queue(request, self._wheel.power_on)
            case PowerWheel(on=False):
                self._queue(request, self._wheel.stop)
            case _:
                return

    def _queue(self, request: Request, command: Command) -> None:
        """Last in the queue, even if it already waits further in front: the latest wish counts."""
        self._waiting.pop(request, None)
        self._waiting[request] = command
        self._something.set()

    async def verified(self) -> None:
        """Read the wheel's parameters again; return when that is done, well or not. All who ask meanwhile share it."""
        if self._verified is None:
            self._verified = asyncio.Event()
            self._queue(VerifyWheel(), self._verify)
        await self._verified.wait()

    async def _verify(self) -> None:
        await self._wheel.verify()
        if self._verified is not None:
            self._verified.set()
        self._verified = None

    async def run(self) -> None:
        """Command until cancelled."""
        while True:
            await self._something.wait()
            while self._waiting:
                request = next(iter(self._waiting))
                command = self._waiting.pop(request)
                await command()
            self._something.clear()
