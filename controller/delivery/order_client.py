"""A person's side of an order: ask a running table for a challenge, send what was signed, hear the answer.

    ask for a challenge ──► challenge ──► write(challenge): a note, signed ──► answer, certified or refused

Answers to others pass by on the same topic. An answer that does not come is not a refusal: the order may have been
carried out, so nothing is ever sent twice from here.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from controller.delivery.bus import Bus, Message
from controller.delivery.topics import Topics
from controller.schemas import Challenge


class OrderUnansweredError(Exception):
    """The table did not answer. ``code`` is explained by ``tablectl explain``; ``sent``: the order may have acted."""

    code = "E-ORDER-UNANSWERED"

    def __init__(self, topic: str, *, sent: bool) -> None:
        super().__init__(f"{self.code} {topic}")
        self.topic = topic
        self.sent = sent


class OrderClient:
    """One order over ``bus``, which must not run yet. ``name`` tells this client's challenge from others'."""

    def __init__(self, bus: Bus, topics: Topics, name: str) -> None:
        self._bus = bus
        self._topics = topics
        self._name = name
        self._connected = asyncio.Event()
        self._heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        bus.attach(self, [topics.reply])

    def on_message(self, message: Message) -> None:
        """An answer, perhaps to somebody else. What is none is nobody's."""
        try:
            told = json.loads(message.payload)
        except ValueError:
            return
        if isinstance(told, dict):
            self._heard.put_nowait(told)

    def on_connected(self) -> None:
        """Now there is somebody to ask."""
        self._connected.set()

    def on_disconnected(self) -> None:
        """Wait: what was asked may still be answered on the next connection."""

    async def order(self, write: Callable[[Challenge], str], within_s: float) -> dict[str, Any]:
        """Give an order; ``write`` makes the signed note. Raises OrderUnansweredError."""
        running = asyncio.get_running_loop().create_task(self._bus.run())
        sent = False
        try:
            async with asyncio.timeout(within_s):
                await self._connected.wait()
                challenge = await self._challenge()
                note = write(challenge)
                sent = True
                self._bus.publish(Message(self._topics.command, note.encode(), expiry_s=challenge.expires_s))
                return await self._answer("nonce", challenge.nonce)
        except TimeoutError:
            raise OrderUnansweredError(self._topics.command, sent=sent) from None
        finally:
            running.cancel()
            await asyncio.wait({running})

    async def _challenge(self) -> Challenge:
        asked = json.dumps({"ask": "challenge", "id": self._name}).encode()
        self._bus.publish(Message(self._topics.command, asked))
        return Challenge.model_validate(await self._answer("id", self._name))

    async def _answer(self, field: str, value: str) -> dict[str, Any]:
        while True:
            told = await self._heard.get()
            if told.get(field) == value and (field == "id" or "ok" in told):
                return told
