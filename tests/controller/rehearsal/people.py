"""People at their ends of the broker: they send what the protocols say, and keep what they hear.

They are the same at a table under virtual time and at one of real processes; what differs is ``Around``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from controller.certify.note import Signer
from controller.delivery.bus import Bus, Message
from controller.delivery.orders import write_order
from controller.delivery.topics import Topics
from controller.schemas import Challenge


class Around(Protocol):
    """What surrounds them: a broker, and a way to wait."""

    topics: Topics

    def client(self, name: str) -> Bus:
        """A client on the broker, which runs as soon as it is listened to."""
        ...

    def stir(self) -> None:
        """Something happened: whoever waits looks again."""
        ...

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what must come true."""
        ...


class Ear:
    """Keeps what is heard on some topics."""

    def __init__(self, around: Around, name: str, filters: Sequence[str]) -> None:
        self.heard: list[Message] = []
        self.connections = 0
        self._stirred = around.stir
        self.bus = around.client(name)
        self.bus.attach(self, filters)

    def on_message(self, message: Message) -> None:
        self.heard.append(message)
        self._stirred()

    def on_connected(self) -> None:
        self.connections += 1
        self._stirred()

    def on_disconnected(self) -> None:
        self._stirred()

    def documents(self, topic: str) -> list[dict[str, Any]]:
        """What was heard on a topic, read as JSON."""
        return [json.loads(message.payload) for message in self.heard if message.topic == topic]


class Post:
    """A post's end: asks, and keeps answers apart from news (what the house did at the post)."""

    def __init__(self, around: Around, number: int) -> None:
        self.number = number
        self._around = around
        self._topics = around.topics
        self._ear = Ear(around, f"post-{number}", [self._topics.post_out(number)])
        self._asked = 0

    @property
    def bus(self) -> Bus:
        return self._ear.bus

    @property
    def heard(self) -> list[dict[str, Any]]:
        return self._ear.documents(self._topics.post_out(self.number))

    @property
    def news(self) -> list[dict[str, Any]]:
        return [told for told in self.heard if "id" not in told and "kind" in told]

    def answers(self, request: str) -> list[dict[str, Any]]:
        """Every answer to a request, in order."""
        return [told for told in self.heard if told.get("id") == request]

    def send(self, payload: bytes) -> None:
        self.bus.publish(Message(self._topics.post_in(self.number), payload))

    def say(self, do: str, **fields: Any) -> str:
        """Send a request and do not wait; returns its identifier."""
        self._asked += 1
        request = fields.pop("id", f"{self.number}-{self._asked}")
        self.send(json.dumps({"id": request, "do": do, **fields}).encode())
        return str(request)

    async def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Send a request and wait for the next answer to it."""
        await self._around.until(lambda: self.bus.connected)
        request = fields.get("id", f"{self.number}-{self._asked + 1}")
        before = len(self.answers(request))
        self.say(do, **fields)
        await self._around.until(lambda: len(self.answers(request)) > before)
        return self.answers(request)[-1]

    async def stake(self, of_round: int, **cents: int) -> dict[str, Any]:
        """Stake in a round; an underscore in a name stands for a dash."""
        stakes = [{"bet": bet.replace("_", "-"), "cents": amount} for bet, amount in cents.items()]
        return await self.ask("stake", round=of_round, stakes=stakes)


class Office:
    """Whoever gives signed orders, and hears everything that the table publishes."""

    def __init__(self, around: Around, staff: Mapping[str, Signer]) -> None:
        self.staff = staff
        self._around = around
        self._topics = around.topics
        self._asked = 0
        self.ear = Ear(around, "centre", [f"{self._topics.root}/up/#"])

    def command(self, payload: bytes) -> None:
        """Send a command as it is."""
        self.ear.bus.publish(Message(self._topics.command, payload))

    async def challenge(self) -> Challenge:
        """Ask the table for something to sign."""
        await self._around.until(lambda: self.ear.bus.connected)
        self._asked += 1
        name = f"c{self._asked}"
        self.command(json.dumps({"ask": "challenge", "id": name}).encode())
        return Challenge.model_validate(await self._reply("id", name))

    async def order(self, role: str, verb: str, **arguments: object) -> dict[str, Any]:
        """Let a person sign an order, and wait for what the table answers."""
        challenge = await self.challenge()
        self.command(write_order(self.staff[role], challenge, verb, arguments).encode())
        return await self._reply("nonce", challenge.nonce, "ok")

    async def _reply(self, field: str, value: str, beside: str = "") -> dict[str, Any]:
        found: list[dict[str, Any]] = []

        def answered() -> bool:
            replies = self.ear.documents(self._topics.reply)
            found[:] = [reply for reply in replies if reply.get(field) == value and (not beside or beside in reply)]
            return bool(found)

        await self._around.until(answered)
        return found[-1]
