"""The client of a real MQTT 5 broker: stays connected, and says of each publication what became of it.

    ┌─► connect (``link.py``) ─► connected ─► lost ─► wait, longer each time ─┐
    └─────────────────────────────────────────────────────────────────────────┘

Invariants:

- A publication ends with the broker's own answer, or with Disconnected; nothing is ever sent again from here.
- MQTT 5, clean start, quality of service 1. The broker is asked to remember nothing for us: the journal is the outbox.
- Nothing is unbounded: the window, the queue behind it, the size of a message in and out, the time to answer.
- A person is told each condition once, not at each attempt.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controller.delivery.broker_settings import BrokerSettings, CredentialsError
from controller.delivery.bus import (
    IN_FLIGHT_WINDOW,
    QUEUE_BOUND,
    Backpressure,
    BusFault,
    Disconnected,
    Listener,
    Message,
    Refused,
    Routes,
    fail,
)
from controller.delivery.link import PAYLOAD_BOUND, Link, LinkLostError

STEADY_AFTER_S = 10.0
"""A connection that held so long was a good one: the next wait is the first delay again."""

STOLEN_AFTER = 5
"""Connections that were accepted and then taken from us, one after the other within STOLEN_WITHIN_S: no accident."""

STOLEN_WITHIN_S = 120.0
"""See STOLEN_AFTER."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """What a person may want to know about the connection, at one instant."""

    connected: bool
    session: int
    in_flight: int
    queued: int
    refused: int
    oversize: int
    takeovers: int
    fault: BusFault | None


class BrokerBus:
    """``Bus`` over a real broker. ``will``, if any, makes the will of the connection with the given session number.

    ``random`` gives numbers in [0, 1): it spreads the reconnections of a hundred tables after an outage of the broker.
    ``on_fault`` is told each condition once, not at each attempt.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        will: Callable[[int], Message] | None = None,
        random: Callable[[], float],
        on_fault: Callable[[BusFault], None],
    ) -> None:
        self._settings = settings
        self._will = will
        self._random = random
        self._on_fault = on_fault
        self._routes = Routes()
        self._link: Link | None = None
        self._queue: deque[tuple[Message, asyncio.Future[None]]] = deque()
        self._session = 0
        self._refused = 0
        self._oversize = 0
        self._takeovers: deque[float] = deque(maxlen=STOLEN_AFTER)
        self._fault: BusFault | None = None
        self._told: dict[str, str] = {}

    @property
    def connected(self) -> bool:
        """See ``Bus``."""
        return self._link is not None

    @property
    def session(self) -> int:
        """See ``Bus``. Each attempt takes a number: one whose answer was lost may have left a will behind."""
        return self._session

    @property
    def window(self) -> int:
        """See ``Bus``."""
        return self._link.window if self._link else IN_FLIGHT_WINDOW

    def status(self) -> BrokerStatus:
        """A snapshot."""
        return BrokerStatus(
            connected=self.connected,
            session=self._session,
            in_flight=len(self._link.in_flight) if self._link else 0,
            queued=len(self._queue),
            refused=self._refused,
            oversize=self._oversize,
            takeovers=len(self._takeovers),
            fault=self._fault,
        )

    def attach(self, listener: Listener, filters: Sequence[str]) -> None:
        """See ``Bus``."""
        self._routes.add(listener, filters)

    def publish(self, message: Message) -> asyncio.Future[None]:
        """See ``Bus``."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        link = self._link
        if link is None:
            return fail(future, Disconnected("not connected to the broker"))
        wrong = link.unsendable(message)
        if wrong:
            self.refused(message.topic, wrong)
            return fail(future, Refused(wrong))
        if link.has_room:  # then nothing waits: ``room`` empties the queue first
            link.send(message, future)
        elif len(self._queue) < QUEUE_BOUND:
            self._queue.append((message, future))
        else:
            return fail(future, Backpressure(f"{QUEUE_BOUND} messages wait behind {link.window} in flight"))
        return future

    async def run(self) -> None:
        """See ``Bus``. Ends by cancellation, or by the exception of a listener, which is a bug."""
        loop = asyncio.get_running_loop()
        delay_s = self._settings.retry_first_s
        while True:
            began_s = loop.time()
            await self._hold_one_connection()
            if loop.time() - began_s >= STEADY_AFTER_S:
                delay_s = self._settings.retry_first_s
            await asyncio.sleep(delay_s * (0.5 + 0.5 * self._random()))
            delay_s = min(2 * delay_s, self._settings.retry_last_s)

    async def _hold_one_connection(self) -> None:
        """Connect, serve until the connection is lost, and leave nothing of it behind."""
        self._session += 1
        try:
            link = Link(self._settings, self._will and self._will(self._session), self)
        except CredentialsError as error:
            self._tell(error.code, str(error))
            return
        try:
            await link.open(self._routes.filters)
            self._connected_by(link)
            await link.serve(self._routes.deliver)
        except LinkLostError as lost:
            self._note_loss(lost)
        finally:
            self._let_go()
            await link.close()

    def _connected_by(self, link: Link) -> None:
        self._link = link
        self._fault = None
        self._told.clear()
        for listener in self._routes.listeners:
            listener.on_connected()

    def _let_go(self) -> None:
        """Fail everything that waited on the connection and tell the listeners, once."""
        link, self._link = self._link, None
        if link is None:
            return
        waiting = [future for _, future in (*link.in_flight.values(), *self._queue)]
        link.in_flight.clear()
        self._queue.clear()
        for future in waiting:
            fail(future, Disconnected("the connection was lost before the broker acknowledged"))
        for listener in self._routes.listeners:
            listener.on_disconnected()

    def _note_loss(self, lost: LinkLostError) -> None:
        """Tell why the connection ended, and watch for another client that uses our name.

        Two such clients throw each other out again and again. Some brokers say "session taken over", others close
        without a word; but each lets us in again at once, which a broker that is down does not.
        """
        if lost.taken:
            now_s = asyncio.get_running_loop().time()
            self._takeovers.append(now_s)
            if len(self._takeovers) == STOLEN_AFTER and now_s - self._takeovers[0] <= STOLEN_WITHIN_S:
                name = self._settings.client_id
                self._tell("E-MQTT-ID-STOLEN", f"{name!r} was thrown out {STOLEN_AFTER} times in a row", about=name)
                return
        else:
            self._takeovers.clear()
        self._tell(lost.fault.code, lost.fault.detail)

    # ── What the link reports, from inside paho's callbacks ───────────────────────────────────────────────────────────

    def room(self) -> None:
        """See ``LinkOwner``: send what waits, as far as the window allows."""
        link = self._link
        while link is not None and self._queue and link.has_room:
            message, future = self._queue.popleft()
            link.send(message, future)

    def refused(self, topic: str, reason: str) -> None:
        """The broker, or a limit that it announced, refused a publication."""
        self._refused += 1
        self._tell("E-MQTT-PUBLISH-REFUSED", f"{topic}: {reason}")

    def oversize(self, topic: str, size_bytes: int) -> None:
        """A message was too large to be handed on."""
        self._oversize += 1
        self._tell("E-MQTT-OVERSIZE", f"{topic}: {size_bytes} bytes, at most {PAYLOAD_BOUND} are accepted", about=topic)

    def _tell(self, code: str, detail: str, about: str | None = None) -> None:
        """Tell a condition, unless it is what was last told under this code (about this subject) in this state."""
        self._fault = BusFault(code, detail)
        subject = detail if about is None else about
        if self._told.get(code) != subject:
            self._told[code] = subject
            self._on_fault(self._fault)
