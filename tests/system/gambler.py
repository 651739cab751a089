"""A post that stakes as fast as it is answered, and repeats what was not answered under the same name."""

import asyncio
from contextlib import suppress
from typing import Any

from tests.controller.rehearsal.people import Post
from tests.system.rig import Rig

REPEAT_AFTER_S = 0.5


class Gambler:
    """``asked`` are all requests, ``answered`` the first answer to each."""

    def __init__(self, rig: Rig, post: Post) -> None:
        self.rig, self.post = rig, post
        self.answered: dict[str, dict[str, Any]] = {}
        self.asked: set[str] = set()
        self._stakes = 0

    async def plays(self) -> None:
        """Until cancelled."""
        while True:
            await self.rig.until(lambda: self.rig.board["phase"] == "betting" and self.post.bus.connected)
            self._stakes += 1
            request = f"{self.post.number}-stake-{self._stakes}"
            self.asked.add(request)
            await self.insists(request, self.rig.board["round"])

    async def insists(self, request: str, of_round: int) -> None:
        """Send a stake again and again until it is answered."""
        stakes = [{"bet": "rouge", "cents": 100}]
        while request not in self.answered:
            self.post.say("stake", id=request, round=of_round, stakes=stakes)
            with suppress(TimeoutError):
                async with asyncio.timeout(REPEAT_AFTER_S):
                    await self.rig.until(lambda: bool(self.post.answers(request)))
                self.answered[request] = self.post.answers(request)[0]
