"""The mirror at its broker: what comes in waits for the next turn, what the turn says goes out.

    broker ──► inbound (bounded) ──► turn, in the store's own thread ──► acknowledgements, replays
          ──► recalls  (bounded) ──► a slice of entries at a time ──► down/entry

A turn takes all that waits. While its commit is under way more comes in, of all tables, and goes into the next one: the
more there is to do, the more one commit does. What finds no room is dropped and counted; the table still has it, and is
asked for it again.

Nothing is acknowledged on the first connection before the broker had time to hand over what this mirror retained there
earlier: a store that was restored from a backup knows less than what was said.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from controller.delivery.bus import Bus, Disconnected, Message
from controller.mirror.faults import Alarm
from controller.mirror.mirror import Mirror

INBOUND_BOUND_BYTES = 16 << 20
"""Bytes that wait for a turn: payloads, and what each message costs besides."""

MESSAGE_BYTES = 512
"""What a message costs beside its payload: an empty one is not free."""

TURN_BOUND = 8_192
"""Messages of one turn."""

GATHER_S = 0.02
"""How long a turn lets more come in: a commit costs the same for one entry and for hundreds."""

TICK_S = 0.25
"""A turn is taken so often at the least: gaps are asked for by the clock."""

RETAINED_WITHIN_S = 1.0
"""How long the first connection waits for what the broker retained."""

RESTATE_AFTER_S = 5.0
"""When an acknowledgement was refused, all are published again after this."""

RECALLS_BOUND = 64
"""Recalls that wait, one of each table; one more is dropped, and the table asks again."""

RECALL_SLICE = 100
"""Entries that are given back at a time."""

RECALL_PAUSE_S = 0.02
"""Between two slices: at most 5,000 entries a second, so that the living tables go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """How the service does. ``dropped`` messages found no room; ``turns`` says that it lives."""

    connected: bool
    waiting: int
    heard: int
    dropped: int
    turns: int
    strangers: int


class MirrorService:
    """Runs a ``Mirror`` on a ``Bus``. ``on_alarm`` is told what a person should know, ``on_turn`` after each turn."""

    def __init__(
        self,
        mirror: Mirror,
        bus: Bus,
        *,
        on_alarm: Callable[[Alarm], None],
        on_turn: Callable[[], None] = lambda: None,
    ) -> None:
        self._mirror = mirror
        self._bus = bus
        self._on_alarm = on_alarm
        self._on_turn = on_turn
        self._inbound: deque[Message] = deque()
        self._inbound_bytes = 0
        self._recalls: dict[str, Message] = {}
        self._stirred = asyncio.Event()
        self._recalled = asyncio.Event()
        self._greeting = False
        self._greeted = False
        self._timer: asyncio.TimerHandle | None = None
        self._heard = 0
        self._dropped = 0
        self._turns = 0
        bus.attach(self, mirror.filters)

    def status(self) -> ServiceStatus:
        """A snapshot."""
        return ServiceStatus(
            connected=self._bus.connected,
            waiting=len(self._inbound),
            heard=self._heard,
            dropped=self._dropped,
            turns=self._turns,
            strangers=self._mirror.strangers,
        )

    # ── What the bus says ─────────────────────────────────────────────────────────────────────────────────────────────

    def on_message(self, message: Message) -> None:
        """See ``Listener``."""
        self._heard += 1
        if message.topic.endswith("/up/recall"):
            if message.topic in self._recalls or len(self._recalls) < RECALLS_BOUND:
                self._recalls[message.topic] = message
                self._recalled.set()
            else:
                self._dropped += 1
        elif self._inbound_bytes + _cost(message) <= INBOUND_BOUND_BYTES:
            self._inbound.append(message)
            self._inbound_bytes += _cost(message)
            self._stirred.set()
        else:
            self._dropped += 1

    def on_connected(self) -> None:
        """See ``Listener``: the broker may have forgotten what was acknowledged."""
        self._greet_after(0.0 if self._greeted else RETAINED_WITHIN_S)

    def on_disconnected(self) -> None:
        """See ``Listener``."""
        self._recalls.clear()

    # ── Turns ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Take turns until cancelled. Raises MirrorFault when the store failed: nothing can be said any more."""
        with ThreadPoolExecutor(1, "mirror-store") as pool:
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._take_turns(pool))
                    tasks.create_task(self._give_back(pool))
            finally:
                if self._timer is not None:
                    self._timer.cancel()

    async def _take_turns(self, pool: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._stirring()
            batch = self._batch()
            greets = self._greeting and self._bus.connected
            said, alarms = await loop.run_in_executor(pool, self._turn, batch, greets)
            if greets:
                self._greeting, self._greeted = False, True
            for alarm in alarms:
                self._on_alarm(alarm)
            self._say(said)
            self._turns += 1
            self._on_turn()

    def _turn(self, batch: Sequence[Message], greets: bool) -> tuple[list[Message], list[Alarm]]:
        """One turn, in the store's thread."""
        said = self._mirror.work(batch)
        if greets:
            said += self._mirror.acknowledgements()
        return said, self._mirror.alarms()

    async def _stirring(self) -> None:
        """Wait for something to come, and for a little more; or for the tick."""
        if not self._inbound:
            self._stirred.clear()
            try:
                async with asyncio.timeout(TICK_S):
                    await self._stirred.wait()
            except TimeoutError:
                return
        if len(self._inbound) < TURN_BOUND:
            await asyncio.sleep(GATHER_S)

    def _batch(self) -> list[Message]:
        batch = [self._inbound.popleft() for _ in range(min(TURN_BOUND, len(self._inbound)))]
        self._inbound_bytes -= sum(map(_cost, batch))
        return batch

    def _say(self, said: Sequence[Message]) -> None:
        if not self._bus.connected:
            return  # acknowledgements are said again on the next connection, replays are asked for again
        for message in said:
            if message.retain and not self._greeted:
                continue
            self._bus.publish(message).add_done_callback(partial(self._answered, message))

    def _answered(self, message: Message, future: asyncio.Future[None]) -> None:
        error = future.exception()
        if error is not None and not isinstance(error, Disconnected) and message.retain:
            self._greet_after(RESTATE_AFTER_S)

    def _greet_after(self, seconds: float) -> None:
        """Publish all acknowledgements with the turn that comes after so many seconds."""

        def due() -> None:
            self._timer = None
            self._greeting = True
            self._stirred.set()

        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, due)

    # ── Recalls ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _give_back(self, pool: ThreadPoolExecutor) -> None:
        """Answer recalls, one after the other and a slice at a time."""
        loop = asyncio.get_running_loop()
        while True:
            await self._recalled.wait()
            self._recalled.clear()
            while self._recalls:
                message = self._recalls.pop(next(iter(self._recalls)))
                entries = await loop.run_in_executor(pool, self._mirror.recall, message)
                for at in range(0, len(entries), RECALL_SLICE):
                    if not self._bus.connected:
                        break
                    await asyncio.wait([self._bus.publish(entry) for entry in entries[at : at + RECALL_SLICE]])
                    await asyncio.sleep(RECALL_PAUSE_S)


def _cost(message: Message) -> int:
    """The bytes that a message takes while it waits."""
    return MESSAGE_BYTES + len(message.payload)
