"""What the table needs of a message broker, whichever it is, and a broker in memory for the simulation.

    publish(message) ──► future: done = the broker acknowledged with success
                                 Refused       the broker answered no
                                 Disconnected  nobody knows: it may have been delivered, it may be delivered later
                                 Backpressure  nothing was taken

An acknowledgement is flow control, not delivery: a broker may acknowledge and forget. Delivery is what the mirror
cosigns (certification notes, 7.3). Everything here runs in the event loop's thread; nothing blocks.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

IN_FLIGHT_WINDOW = 400
"""Messages sent and not yet acknowledged; less where the broker announces a lower receive maximum."""

QUEUE_BOUND = 4_096
"""Messages that wait behind a full window. One more fails with Backpressure."""

ROUTE_CACHE_BOUND = 2_048
"""Topics whose listeners are remembered. A table has about a hundred; beyond the bound they are looked up again."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``expiry_s``: the broker may drop it after so many seconds; None keeps it."""

    topic: str
    payload: bytes
    retain: bool = False
    expiry_s: int | None = None
    correlation: bytes | None = None
    response_topic: str | None = None
    content_type: str | None = None


class NotPublishedError(Exception):
    """Why a message has no successful acknowledgement. ``code`` is explained by ``tablectl explain``."""

    code = "E-MQTT-NOT-PUBLISHED"


class Refused(NotPublishedError):
    """The broker, or a limit it announced, said no. The same message will be refused again until something changes."""

    code = "E-MQTT-PUBLISH-REFUSED"


class Disconnected(NotPublishedError):
    """There is no connection, or it was lost before the acknowledgement. The message may have been delivered."""

    code = "E-MQTT-DISCONNECTED"


class Backpressure(NotPublishedError):
    """The queue behind the window is full; nothing was taken. The sender keeps the message or says that it is lost."""

    code = "E-MQTT-BACKPRESSURE"


@dataclass(frozen=True, slots=True)
class BusFault:
    """Something about the delivery that a person should know."""

    code: str
    detail: str


class Listener(Protocol):
    """Who hears what comes in. The three are called in the event loop and must not block."""

    def on_message(self, message: Message) -> None:
        """A message matched one of the listener's filters."""
        ...

    def on_connected(self) -> None:
        """The broker accepted the connection and every subscription."""
        ...

    def on_disconnected(self) -> None:
        """The connection is gone; the futures of what was in flight have failed."""
        ...


class Bus(Protocol):
    """One client's view of a broker."""

    @property
    def connected(self) -> bool:
        """Whether a message published now would be sent now."""
        ...

    @property
    def session(self) -> int:
        """Number of the present or last connection of this run, from 1; 0 before the first."""
        ...

    @property
    def window(self) -> int:
        """Messages that may be unacknowledged at one time on the present connection."""
        ...

    def attach(self, listener: Listener, filters: Sequence[str]) -> None:
        """Let ``listener`` hear what matches ``filters``. Only before ``run``: subscriptions belong to a connection."""
        ...

    def publish(self, message: Message) -> asyncio.Future[None]:
        """Send ``message`` with quality of service 1. Never blocks, never raises: the future says what became of it.

        A future whose failure nobody looks at makes no noise.
        """
        ...

    async def run(self) -> None:
        """Connect, stay connected, and connect again, until cancelled."""
        ...


def fail(future: asyncio.Future[None], error: NotPublishedError) -> asyncio.Future[None]:
    """Fail ``future`` if it still waits, without the loop's complaint when nobody asks for the exception."""
    if not future.done():
        future.set_exception(error)
        future.exception()
    return future


def matches(pattern: str, topic: str) -> bool:
    """Whether ``topic`` matches the filter ``pattern`` (MQTT 5, section 4.7)."""
    if topic.startswith("$") != pattern.startswith("$"):
        return False
    levels = topic.split("/")
    wanted = pattern.split("/")
    for at, level in enumerate(wanted):
        if level == "#":
            return True
        if at >= len(levels) or level not in ("+", levels[at]):
            return False
    return len(wanted) == len(levels)


class Routes:
    """Which listener hears which topic: looked up once per topic, then remembered."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, Listener]] = []
        self._remembered: dict[str, tuple[Listener, ...]] = {}
        self.listeners: list[Listener] = []

    @property
    def filters(self) -> list[str]:
        """The distinct filters, in the order in which they came."""
        return list(dict.fromkeys(pattern for pattern, _ in self._entries))

    def add(self, listener: Listener, filters: Sequence[str]) -> None:
        """See ``Bus.attach``."""
        self.listeners.append(listener)
        self._entries.extend((pattern, listener) for pattern in filters)
        self._remembered.clear()

    def listening(self, topic: str) -> tuple[Listener, ...]:
        """Each listener that has a filter for ``topic``, once."""
        listeners = self._remembered.get(topic)
        if listeners is None:
            found = (listener for pattern, listener in self._entries if matches(pattern, topic))
            listeners = tuple({id(listener): listener for listener in found}.values())
            if len(self._remembered) < ROUTE_CACHE_BOUND:
                self._remembered[topic] = listeners
        return listeners

    def deliver(self, message: Message) -> None:
        """Hand ``message`` to each listener that has a matching filter, once."""
        for listener in self.listening(message.topic):
            listener.on_message(message)


# ── A broker in memory ────────────────────────────────────────────────────────────────────────────────────────────────


class MemoryExchange:
    """A broker inside the process, for the simulation under virtual time: same order and promises, faults on demand.

    Everything goes through ``call_soon``, so a run depends on nothing but its inputs.
    """

    def __init__(self) -> None:
        self._retained: dict[str, tuple[Message, float]] = {}  # with the instant at which it expires
        self._buses: dict[str, MemoryBus] = {}
        self._cut: set[str] = set()
        self._lost: set[tuple[MemoryBus, int]] = set()
        self._denied: list[str] = []
        self._stalled: deque[Callable[[], None]] | None = None

    @property
    def retained(self) -> dict[str, Message]:
        """The retained messages, by topic."""
        return {topic: message for topic, (message, _) in self._retained.items()}

    def bus(self, name: str, will: Callable[[int], Message] | None = None) -> "MemoryBus":
        """A client called ``name``; ``will`` makes what the exchange publishes when the connection breaks."""
        if name in self._buses:
            self._buses[name].drop(broken=True)  # the newer client takes the name over
        made = MemoryBus(self, name, will)
        self._buses[name] = made
        return made

    def partition(self, name: str, *, losing: bool = False) -> None:
        """Cut a client off: what is in flight fails, its will is published, and it stays away until ``heal``.

        ``losing`` decides the half that a sender can never know: whether what was in flight is lost, or arrives.
        """
        self._cut.add(name)
        if losing:
            self._lost.add((self._buses[name], self._buses[name].session))
        self._buses[name].drop(broken=True)

    def heal(self, name: str) -> None:
        """Let the client come back."""
        self._cut.discard(name)
        self._buses[name].retry()

    def deny(self, pattern: str) -> None:
        """Refuse publications that match ``pattern``, as an access list does."""
        self._denied.append(pattern)

    def permit(self, pattern: str) -> None:
        """Take a ``deny`` back."""
        self._denied.remove(pattern)

    def stall(self) -> None:
        """Stop answering and delivering, without breaking a connection: a broker that hangs."""
        self._stalled = deque() if self._stalled is None else self._stalled

    def go_on(self) -> None:
        """End ``stall``: everything that waited happens now, in order."""
        waiting, self._stalled = self._stalled, None
        for step in waiting or ():
            self._later(step)
        for bus in self._buses.values():
            bus.retry()

    def reachable(self, name: str) -> bool:
        """Whether the client may connect now."""
        return name not in self._cut and self._stalled is None

    def admit(self, name: str, filters: Sequence[str]) -> None:
        """A client connected and subscribed: it gets what is retained."""
        for message, until_s in self._retained.values():
            if any(matches(pattern, message.topic) for pattern in filters):
                self._hand(self._buses[name], message, until_s)

    def accept(self, sender: "MemoryBus", message: Message, acknowledge: asyncio.Future[None]) -> None:
        """A publication arrived from ``sender``."""
        session, until_s = sender.session, _until_s(message)

        def arrive() -> None:
            if (sender, session) in self._lost:
                return
            if any(matches(pattern, message.topic) for pattern in self._denied):
                fail(acknowledge, Refused(f"{message.topic}: Not authorized"))
                return
            self.spread(message, until_s)
            sender.acknowledged(session, acknowledge)

        self._later(arrive)

    def spread(self, message: Message, until_s: float) -> None:
        """Keep ``message`` if it is retained, and give it to every connected client that listens."""
        if message.retain and message.payload:
            self._retained[message.topic] = (message, until_s)
        elif message.retain:
            self._retained.pop(message.topic, None)
        for bus in list(self._buses.values()):
            if bus.connected and bus.routes.listening(message.topic):
                self._hand(bus, replace(message, retain=False), until_s)

    def _hand(self, bus: "MemoryBus", message: Message, until_s: float) -> None:
        session = bus.session

        def deliver() -> None:
            if bus.connected and bus.session == session and asyncio.get_running_loop().time() <= until_s:
                bus.routes.deliver(message)

        self._later(deliver)

    def _later(self, step: Callable[[], None]) -> None:
        if self._stalled is not None:
            self._stalled.append(step)
        else:
            asyncio.get_running_loop().call_soon(self._step, step)

    def _step(self, step: Callable[[], None]) -> None:
        if self._stalled is not None:
            self._stalled.append(step)
        else:
            step()


def _until_s(message: Message) -> float:
    """The instant of the loop's clock after which the message is not delivered any more."""
    return inf if message.expiry_s is None else asyncio.get_running_loop().time() + message.expiry_s


class MemoryBus:
    """One client of a ``MemoryExchange``; the same behaviour as the client of a real broker."""

    window = IN_FLIGHT_WINDOW

    def __init__(self, exchange: MemoryExchange, name: str, will: Callable[[int], Message] | None) -> None:
        self.name = name
        self.routes = Routes()
        self._exchange = exchange
        self._will = will
        self._connected = False
        self._session = 0
        self._in_flight: dict[asyncio.Future[None], None] = {}
        self._may_connect = asyncio.Event()

    @property
    def connected(self) -> bool:
        """See ``Bus``."""
        return self._connected

    @property
    def session(self) -> int:
        """See ``Bus``."""
        return self._session

    def attach(self, listener: Listener, filters: Sequence[str]) -> None:
        """See ``Bus``."""
        self.routes.add(listener, filters)

    def publish(self, message: Message) -> asyncio.Future[None]:
        """See ``Bus``."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self._connected:
            return fail(future, Disconnected("not connected"))
        if len(self._in_flight) >= IN_FLIGHT_WINDOW + QUEUE_BOUND:
            return fail(future, Backpressure(f"{QUEUE_BOUND} messages wait behind {IN_FLIGHT_WINDOW} in flight"))
        self._in_flight[future] = None
        future.add_done_callback(self._forget)
        self._exchange.accept(self, message, future)
        return future

    async def run(self) -> None:
        """See ``Bus``."""
        try:
            while True:
                self._may_connect.clear()
                if not self._connected and self._exchange.reachable(self.name):
                    self._connect()
                await self._may_connect.wait()
        finally:
            self.drop(broken=False)

    def retry(self) -> None:
        """The exchange can be reached again."""
        self._may_connect.set()

    def acknowledged(self, session: int, future: asyncio.Future[None]) -> None:
        """The exchange took a message of connection ``session``."""
        if self._connected and self._session == session and not future.done():
            future.set_result(None)

    def drop(self, *, broken: bool) -> None:
        """The connection ends; ``broken`` when nobody said goodbye, so that the will is published."""
        if not self._connected:
            return
        self._connected = False
        for future in list(self._in_flight):
            fail(future, Disconnected("connection lost before the acknowledgement"))
        self._in_flight.clear()
        if broken and self._will is not None:
            will = self._will(self._session)
            self._exchange.spread(will, _until_s(will))
        for listener in self.routes.listeners:
            listener.on_disconnected()

    def _connect(self) -> None:
        self._session += 1
        self._connected = True
        self._exchange.admit(self.name, self.routes.filters)
        for listener in self.routes.listeners:
            listener.on_connected()

    def _forget(self, future: asyncio.Future[None]) -> None:
        self._in_flight.pop(future, None)
