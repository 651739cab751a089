"""The wheel's commands, one at a time and in order, each from a request that follows certified facts."""

import asyncio
from collections.abc import Awaitable, Callable

from drivers.slingshot_wheel import SlingshotWheel
from games.roulette.facts import ResetWheel, StartWheel
from games.rules import Request
from games.seance import PowerWheel, VerifyWheel

COMMAND_BOUND = 64
"""Commands that may wait. The game asks for a handful a minute: more is a fault, and ends the daemon."""


class WheelDesk:
    """Gives the wheel what the game asks for. A wheel that does not obey is found by the game's own time limits."""

    def __init__(self, wheel: SlingshotWheel) -> None:
        self._wheel = wheel
        self._waiting: asyncio.Queue[Callable[[], Awaitable[object]]] = asyncio.Queue(COMMAND_BOUND)
        self._verified: asyncio.Event | None = None

    def perform(self, request: Request) -> None:
        """Queue a request that concerns the wheel; others are ignored. Raises QueueFull at the bound."""
        match request:
            case StartWheel(direction=direction):
                self._waiting.put_nowait(lambda: self._wheel.start(direction))
            case ResetWheel():
                self._waiting.put_nowait(self._wheel.reset)
            case VerifyWheel():
                self._waiting.put_nowait(self._wheel.verify)
            case PowerWheel(on=True):
                self._waiting.put_nowait(self._wheel.power_on)
            case PowerWheel(on=False):
                self._waiting.put_nowait(self._wheel.stop)
            case _:
                return

    async def verified(self) -> None:
        """Read the wheel's parameters again; return when that is done, well or not. All who ask meanwhile share it."""
        if self._verified is None:
            self._verified = asyncio.Event()
            self._waiting.put_nowait(self._verify)
        await self._verified.wait()

    async def _verify(self) -> None:
        await self._wheel.verify()
        if self._verified is not None:
            self._verified.set()
        self._verified = None

    async def run(self) -> None:
        """Command until cancelled."""
        while True:
            command = await self._waiting.get()
            await command()
