"""One connection to an MQTT 5 broker: the only file that imports aiomqtt, and paho through it.

    open ──► connect ──► subscribe, each answer checked ──► serve ──► lost, or closed by us

A link is used once. paho keeps what was not acknowledged and would send it again, unasked, if the same client object
connected twice; with a new object per connection the sender alone decides what is sent again.

aiomqtt makes the connection and runs paho's socket in the event loop. Below it, three things are taken from paho
itself: acknowledgements, because aiomqtt returns from ``publish`` without error when the broker refused the message;
messages, because its iterator makes a task for each; and the end of the connection, because it notices none before the
broker's first answer. paho would decode each acknowledgement into two objects that cost more than the rest of the
message (a third of all time under load, ``bench/bench_broker.py``); its three bytes are read here instead.

All that depends on how those two libraries work inside is in this file.
"""

import asyncio
import contextlib
import functools
import logging
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import aiomqtt
from paho.mqtt.client import MQTTMessage
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from controller.delivery.broker_settings import BrokerSettings
from controller.delivery.bus import IN_FLIGHT_WINDOW, BusFault, Disconnected, Message, Refused, fail

PAYLOAD_BOUND = 65_536
"""Bytes of payload that are handed on. A larger message is dropped and told: nothing of ours comes near it."""

PACKET_BOUND = 4 * PAYLOAD_BOUND
"""Largest packet that the broker may send us at all (we announce it): what one packet may cost in memory."""

ANSWER_WITHIN_S = 5.0
"""Patience for each step of connecting, and for the goodbye."""

ACKNOWLEDGE_WITHIN_S = 30.0
"""Patience for one acknowledgement while the broker still answers pings; then the connection is given up."""

FAILURE = 0x80
"""Reason codes from here on say no (MQTT 5, section 2.4)."""

SESSION_TAKEN_OVER = 0x8E
"""Another client connected with our name (MQTT 5, section 3.14.2.1)."""

STREAM_ENDED = 0x80
"""What paho says when the stream ended and no broker said why; other codes it gives by itself tell what it found."""

_PROTOCOL_PACKET_BOUND = 268_435_455
_TOPIC_BOUND = 1_024
_PACKET_OVERHEAD = 256  # headers and the fixed properties, generously
_NO_DELAY = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)

_QUIET = logging.getLogger(f"{__name__}.paho")
_QUIET.setLevel(logging.CRITICAL)  # paho logs a traceback for each lost connection; what matters of it is a BusFault

_new_properties: Callable[[int], Any] = Properties  # paho does not type it


class LinkLostError(Exception):
    """A connection could not be made, or it ended. ``taken``: as if another client had connected with our name."""

    def __init__(self, code: str, detail: str, *, taken: bool = False) -> None:
        super().__init__(f"{code} {detail}")
        self.fault = BusFault(code, detail)
        self.taken = taken


class LinkOwner(Protocol):
    """Who is told what happens on a link. Called inside paho's callbacks: must not raise."""

    def room(self) -> None:
        """A publication was acknowledged: the window has room."""
        ...

    def refused(self, topic: str, reason: str) -> None:
        """The broker refused a publication."""
        ...

    def oversize(self, topic: str, size_bytes: int) -> None:
        """A message was too large to be handed on."""
        ...


class OwnSocketOnly:
    """The event loop as aiomqtt sees it: it watches the client's present socket and no other.

    aiomqtt asks the loop to watch a number, and the loop does so a moment later. By then the broker may have gone, the
    socket be closed, and the number be nobody's, which would end the daemon, or somebody else's, which would be worse.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, present: Callable[[], Any]) -> None:
        self._loop = loop
        self._present = present

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def add_reader(self, number: int, callback: Callable[[], None]) -> None:
        """See ``AbstractEventLoop``."""
        if self._is_present(number):
            self._loop.add_reader(number, callback)

    def add_writer(self, number: int, callback: Callable[[], None]) -> None:
        """See ``AbstractEventLoop``."""
        if self._is_present(number):
            self._loop.add_writer(number, callback)

    def _is_present(self, number: int) -> bool:
        present = self._present()
        return present is not None and number >= 0 and present.fileno() == number


class Link:
    """One connection, used once."""

    def __init__(self, settings: BrokerSettings, will: Message | None, owner: LinkOwner) -> None:
        self.in_flight: dict[int, tuple[str, asyncio.Future[None]]] = {}
        self.window = IN_FLIGHT_WINDOW
        self._owner = owner
        self._settings = settings
        self._accepted = False
        self._packet_bound = _PROTOCOL_PACKET_BOUND
        self._inbound: deque[Message] = deque()
        self._stirred = asyncio.Event()
        self._closed = asyncio.Event()
        self._lost: asyncio.Future[LinkLostError] = asyncio.get_running_loop().create_future()
        self._client = _client(settings, will)
        self._paho = self._client._client
        vars(self._client)["_loop"] = OwnSocketOnly(self._client._loop, self._paho.socket)
        self._paho.on_connect = self._on_connect
        self._paho.on_disconnect = self._on_disconnect
        self._paho.on_socket_close = self._on_socket_close
        self._paho.on_message = self._on_message
        vars(self._paho)["_handle_pubackcomp"] = self._on_puback
        self._entering: asyncio.Task[Any] | None = None
        self._subscribing: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None

    # ── Open, serve, close ────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self, filters: Sequence[str]) -> None:
        """Connect and subscribe. Raises LinkLostError."""
        loop = asyncio.get_running_loop()
        self._entering = loop.create_task(self._client.__aenter__())
        try:
            await self._unless_lost(self._entering)
            self._client._disconnected.add_done_callback(self._on_aiomqtt_failed)
            if filters:
                self._subscribing = loop.create_task(self._subscribe(filters))
                await self._unless_lost(self._subscribing)
        except aiomqtt.MqttError as error:
            raise self._explained(error) from error
        self._watch_oldest(None)

    async def serve(self, deliver: Callable[[Message], None]) -> None:
        """Hand on what comes in, in order, until the connection is lost. Raises LinkLostError.

        Messages are handed on here and not inside paho's callback, where aiomqtt would take an exception of ours for a
        broken connection and hide the bug.
        """
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            while self._inbound:
                deliver(self._inbound.popleft())
            if self._lost.done():
                raise self._lost.result()

    async def close(self) -> None:
        """Say goodbye if the broker still listens, and leave no socket, task or unread exception behind."""
        if self._watch is not None:
            self._watch.cancel()
        if self._entering is not None:
            await self._end_entering(self._entering)
        if self._subscribing is not None:
            await _end(self._subscribing)
        if self._paho.socket() is not None:
            await self._end_stream()
        if self._client._disconnected.done():
            self._client._disconnected.exception()

    async def _end_entering(self, entering: asyncio.Task[Any]) -> None:
        """Stop connecting. The thread that does it cannot be stopped, only awaited; the wait for an answer can."""
        if not entering.done():
            sock = self._paho.socket()
            if isinstance(sock, socket.socket):
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not TLS's own: the stream's end must be read
            await asyncio.wait({entering, self._lost}, return_when=asyncio.FIRST_COMPLETED)
        await _end(entering)

    async def _end_stream(self) -> None:
        if not self._lost.done():
            self._paho.disconnect()
            with contextlib.suppress(TimeoutError):  # a broker that reads nothing gets no goodbye
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    await self._closed.wait()
        self._paho._sock_close()

    async def _unless_lost(self, task: asyncio.Task[Any]) -> None:
        """Wait for one step of opening; aiomqtt would wait for an answer that a lost connection cannot bring."""
        await asyncio.wait({task, self._lost}, return_when=asyncio.FIRST_COMPLETED)
        if self._lost.done():
            raise self._lost.result()
        await task

    async def _subscribe(self, filters: Sequence[str]) -> None:
        options = SubscribeOptions(qos=1)
        answers = await self._client.subscribe([(pattern, options) for pattern in filters])
        refused = [
            f"{pattern}: {answer}"
            for pattern, answer in zip(filters, answers, strict=True)
            if isinstance(answer, ReasonCode) and answer.value >= FAILURE
        ]
        if refused:
            raise LinkLostError("E-MQTT-SUBSCRIBE-REFUSED", "; ".join(refused))

    # ── Publications ──────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def has_room(self) -> bool:
        """Whether the window allows one more."""
        return len(self.in_flight) < self.window

    def unsendable(self, message: Message) -> str:
        """Why ``message`` cannot be sent on this connection, or an empty text."""
        topic = message.topic
        if not topic or "+" in topic or "#" in topic or "\0" in topic or len(topic) > _TOPIC_BOUND:
            return "not a topic that can be published to"
        size = len(message.payload) + len(topic) + len(message.correlation or b"") + _PACKET_OVERHEAD
        if size > self._packet_bound:
            return f"about {size} bytes, the broker takes packets of at most {self._packet_bound}"
        return ""

    def send(self, message: Message, future: asyncio.Future[None]) -> None:
        """Give ``message`` to paho, whose own queue stays empty because the window is ours."""
        info = self._paho.publish(message.topic, message.payload, 1, message.retain, _properties(message))
        if info.rc:
            fail(future, Disconnected("the connection is being lost"))
        else:
            self.in_flight[info.mid] = (message.topic, future)

    def _watch_oldest(self, seen: asyncio.Future[None] | None) -> None:
        """Give the connection up when the oldest publication has waited from one look to the next."""
        _, oldest = next(iter(self.in_flight.values()), ("", None))
        if oldest is not None and oldest is seen:
            self._lose("E-MQTT-UNANSWERED", f"a publication was not acknowledged within {ACKNOWLEDGE_WITHIN_S:g} s")
            return
        self._watch = asyncio.get_running_loop().call_later(ACKNOWLEDGE_WITHIN_S, self._watch_oldest, oldest)

    # ── paho's callbacks, all in the event loop's thread ──────────────────────────────────────────────────────────────

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: ReasonCode, properties: Any) -> None:
        announced = vars(properties)
        self.window = min(IN_FLIGHT_WINDOW, announced.get("ReceiveMaximum", IN_FLIGHT_WINDOW))
        self._packet_bound = announced.get("MaximumPacketSize", _PROTOCOL_PACKET_BOUND)
        self._accepted = reason.value < FAILURE
        if not self._accepted:
            self._lose("E-MQTT-REFUSED", f"{self._where}: {reason}")
        self._client._on_connect(client, userdata, flags, reason, properties)

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason: ReasonCode, properties: Any) -> None:
        if self._accepted:
            told = flags.is_disconnect_packet_from_server or reason.value != STREAM_ENDED
            why = str(reason) if told else "closed without a word"
            self._lose("E-MQTT-LOST", f"{self._where}: {why}", taken=not told or reason.value == SESSION_TAKEN_OVER)
        elif self._settings.uses_tls:
            self._lose("E-MQTT-TLS", f"{self._where}: closed before it answered, as when it refuses a certificate")
        else:
            self._lose("E-MQTT-UNREACHABLE", f"{self._where}: closed before it answered")
        self._client._on_disconnect(client, userdata, flags, reason, properties)

    def _on_socket_close(self, client: Any, userdata: Any, sock: Any) -> None:
        self._client._on_socket_close(client, userdata, sock)
        self._closed.set()

    def _on_message(self, _client: Any, _userdata: Any, raw: MQTTMessage) -> None:
        try:
            topic = raw.topic
        except UnicodeDecodeError:  # MQTT 5, section 1.5.4: the receiver must close
            self._lose("E-MQTT-LOST", f"{self._where}: sent a topic that is not UTF-8")
            return
        if len(raw.payload) > PAYLOAD_BOUND:
            self._owner.oversize(topic, len(raw.payload))
            return
        found = vars(raw.properties)
        correlation, response = found.get("CorrelationData"), found.get("ResponseTopic")
        self._inbound.append(
            Message(topic, bytes(raw.payload), raw.retain, None, correlation, response, found.get("ContentType"))
        )
        self._stirred.set()

    def _on_puback(self, _command: str) -> MQTTErrorCode:
        """The broker answered a publication (MQTT 5, section 3.4): packet identifier, then a reason code if not 0."""
        packet = self._paho._in_packet["packet"]
        if len(packet) < 2:
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        mid = packet[0] << 8 | packet[1]
        reason = packet[2] if len(packet) > 2 else 0
        self._paho._out_messages.pop(mid, None)
        found = self.in_flight.pop(mid, None)
        if found is not None:  # else the bus has let go of this connection
            topic, future = found
            if reason >= FAILURE:
                answer = _reason_name(reason)
                self._owner.refused(topic, answer)
                fail(future, Refused(f"{topic}: {answer}"))
            elif not future.done():
                future.set_result(None)
            self._owner.room()
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _on_aiomqtt_failed(self, failed: asyncio.Future[None]) -> None:
        error = failed.exception()
        self._lose("E-MQTT-LOST", f"{self._where}: {error!r}")

    def _lose(self, code: str, detail: str, *, taken: bool = False) -> None:
        """The first reason why the connection ends is the one that is told."""
        if not self._lost.done():
            self._lost.set_result(LinkLostError(code, detail, taken=taken))
            self._stirred.set()

    @property
    def _where(self) -> str:
        return f"{self._settings.host}:{self._settings.port}"

    def _explained(self, error: aiomqtt.MqttError) -> LinkLostError:
        code = "E-MQTT-TLS" if "SSL" in str(error) else "E-MQTT-UNREACHABLE"
        return LinkLostError(code, f"{self._where}: {error}")


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel ``task`` if it still runs, and have its exception read."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()


def _reason_name(reason: int) -> str:
    try:
        return str(ReasonCode(PacketTypes.PUBACK, identifier=reason))
    except (KeyError, ValueError):  # not a code of the standard
        return f"reason code {reason:#04x}"


def _client(settings: BrokerSettings, will: Message | None) -> aiomqtt.Client:
    """A client for one connection. Raises CredentialsError."""
    announced = _new_properties(PacketTypes.CONNECT)
    announced.MaximumPacketSize = PACKET_BOUND
    return aiomqtt.Client(
        settings.host,
        settings.port,
        identifier=settings.client_id,
        username=settings.username,
        password=settings.password(),
        tls_context=settings.tls_context(),
        protocol=aiomqtt.ProtocolVersion.V5,
        clean_start=True,
        keepalive=settings.keepalive_s,
        timeout=ANSWER_WITHIN_S,
        will=None if will is None else aiomqtt.Will(will.topic, will.payload, 1, will.retain),
        properties=announced,
        max_inflight_messages=0,  # paho's own window off: ours is in front of it
        socket_options=_NO_DELAY,
        logger=_QUIET,
    )


def _encoded(message: Message) -> Properties:
    """The properties of a publication, encoded once: paho would do it, slowly, each time they are sent."""
    properties = _new_properties(PacketTypes.PUBLISH)
    if message.expiry_s is not None:
        properties.MessageExpiryInterval = message.expiry_s
    if message.content_type is not None:
        properties.ContentType = message.content_type
    if message.response_topic is not None:
        properties.ResponseTopic = message.response_topic
    if message.correlation is not None:
        properties.CorrelationData = message.correlation
    encoded: bytes = properties.pack()
    object.__setattr__(properties, "pack", lambda: encoded)
    made: Properties = properties
    return made


@functools.lru_cache(maxsize=64)
def _usual(expiry_s: int | None, content_type: str | None) -> Properties:
    return _encoded(Message("", b"", expiry_s=expiry_s, content_type=content_type))


def _properties(message: Message) -> Properties | None:
    if message.correlation is not None or message.response_topic is not None:
        return _encoded(message)
    if message.expiry_s is None and message.content_type is None:
        return None
    return _usual(message.expiry_s, message.content_type)
