"""A stretch of network between a client and the broker, whose weather the test makes.

    client ──► Crossing (a port of its own) ──► broker

It carries bytes while it is CLEAR. CUT closes every connection and lets none through; STILL keeps connections open and
carries nothing, as a switch does that has gone mad; SLOW lets each piece wait. What STILL and SLOW kept back goes on
its way in order when the weather clears, so that no byte is lost or altered: that is TCP's promise.
"""

import asyncio
from contextlib import suppress
from enum import StrEnum
from typing import Self

PIECE_BYTES = 4_096
SLOW_S = 0.05
"""How long each piece waits in SLOW weather: some 80 kB a second."""


class Weather(StrEnum):
    """How the network is."""

    CLEAR = "clear"
    CUT = "cut"
    STILL = "still"
    SLOW = "slow"


class Crossing:
    """Accepts connections on ``port`` of loopback and carries them to the broker."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._weather = Weather.CLEAR
        self._changed = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.become(Weather.CUT)

    def become(self, weather: Weather) -> None:
        """Change the weather, now."""
        self._weather = weather
        if weather is Weather.CUT:
            for writer in self._writers:
                writer.transport.abort()
        self._changed.set()
        self._changed = asyncio.Event()

    async def _carry(self, near: asyncio.StreamReader, near_end: asyncio.StreamWriter) -> None:
        if self._weather is Weather.CUT:
            near_end.transport.abort()
            return
        try:
            far, far_end = await asyncio.open_connection("127.0.0.1", self._broker_port)
        except OSError:  # the broker is away
            near_end.transport.abort()
            return
        ends = {near_end, far_end}
        self._writers |= ends
        ways = [asyncio.create_task(self._one_way(near, far_end)), asyncio.create_task(self._one_way(far, near_end))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.transport.abort()
        await asyncio.wait(ways)
        self._writers -= ends

    async def _one_way(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await source.read(PIECE_BYTES):
                await self._weather_permitting()
                if self._weather is Weather.CUT:
                    return
                sink.write(piece)
                await sink.drain()

    async def _weather_permitting(self) -> None:
        while self._weather is Weather.STILL:
            await self._changed.wait()
        if self._weather is Weather.SLOW:
            with suppress(TimeoutError):
                async with asyncio.timeout(SLOW_S):
                    await self._changed.wait()
