"""The client against a broker that follows a script: each answer that MQTT 5 allows, and some that it does not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from controller.delivery import broker as broker_module
from controller.delivery import link as link_module
from controller.delivery.bus import Backpressure, Disconnected, Message, Refused

Make = Callable[..., Any]

# ── A broker that says what it is told to ─────────────────────────────────────────────────────────────────────────────


def packet(kind: int, body: bytes) -> bytes:
    """An MQTT packet with a body of less than 16,384 bytes."""
    length = bytes([len(body)]) if len(body) < 128 else bytes([len(body) & 0x7F | 0x80, len(body) >> 7])
    return bytes([kind]) + length + body


class ScriptedBroker:
    """Speaks MQTT 5 byte by byte, as badly as a test wants.

    ``connack`` is the body after the flags, or None for silence; ``suback`` a reason code for all filters; ``puback``
    gives the body of each acknowledgement after the packet identifier, or None to hold it back; ``greeting`` is sent
    after the SUBACK.
    """

    def __init__(self) -> None:
        self.port = 0
        self.connack: bytes | None = b"\x00\x00"
        self.suback: int | None = 0x01
        self.subscribed = asyncio.Event()
        self.puback: Callable[[bytes, bytes], bytes | None] = lambda topic, payload: b""
        self.greeting = b""
        self.hang_up_on_connect = self.hang_up_on_subscribe = False
        self.published: list[tuple[bytes, bytes]] = []
        self.connects: list[bytes] = []
        self.unanswered = self.most_unanswered = 0
        self.held: list[bytes] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    def release(self, count: int) -> None:
        """Acknowledge ``count`` of the publications that were held back."""
        for _ in range(count):
            self.unanswered -= 1
            self._writers[-1].write(packet(0x40, self.held.pop(0)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                kind = (await reader.readexactly(1))[0]
                length = shift = 0
                while True:
                    digit = (await reader.readexactly(1))[0]
                    length |= (digit & 0x7F) << shift
                    shift += 7
                    if not digit & 0x80:
                        break
                self._answer(kind, await reader.readexactly(length), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, kind: int, body: bytes, writer: asyncio.StreamWriter) -> None:
        if kind >> 4 == 1:
            self.connects.append(body)
            if self.connack is not None:
                writer.write(packet(0x20, b"\x00" + self.connack))
            if self.hang_up_on_connect:
                writer.close()
        elif kind >> 4 == 8:
            count = filters_of(body)
            self.subscribed.set()
            if self.suback is not None:
                writer.write(packet(0x90, body[:2] + b"\x00" + bytes([self.suback]) * count) + self.greeting)
            if self.hang_up_on_subscribe:
                writer.close()
        elif kind >> 4 == 3:
            self._take(body, writer)
        elif kind >> 4 == 12:
            writer.write(b"\xd0\x00")
        elif kind >> 4 == 14:
            writer.close()

    def _take(self, body: bytes, writer: asyncio.StreamWriter) -> None:
        end = 2 + int.from_bytes(body[:2])
        topic, mid = body[2:end], body[end : end + 2]
        payload = body[end + 3 + body[end + 2] :]
        self.published.append((topic, payload))
        self.unanswered += 1
        self.most_unanswered = max(self.most_unanswered, self.unanswered)
        answer = self.puback(topic, payload)
        if answer is None:
            self.held.append(mid)
        else:
            self.unanswered -= 1
            writer.write(packet(0x40, mid + answer))


def filters_of(subscribe: bytes) -> int:
    """How many filters a SUBSCRIBE packet without properties has."""
    at, count = 3, 0
    while at < len(subscribe):
        at += 2 + int.from_bytes(subscribe[at : at + 2]) + 1
        count += 1
    return count


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedBroker]:
    made = ScriptedBroker()
    await made.start()
    yield made
    await made.stop()


def publication(topic: bytes, payload: bytes) -> bytes:
    """A PUBLISH packet as a broker sends it, with quality of service 1."""
    return packet(0x32, len(topic).to_bytes(2) + topic + b"\x00\x07" + b"\x00" + payload)


# ── Connecting ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("connack", "said"),
    [
        (b"\x87\x00", "Not authorized"),
        (b"\x86\x00", "Bad user name or password"),
        (b"\x01", "Unsupported protocol version"),  # a broker of MQTT 3.1.1
        (b"\x84\x00", "Unsupported protocol version"),
        (b"\x9f\x00", "Connection rate exceeded"),
    ],
)
async def test_broker_connection_that_is_refused_is_told_with_the_brokers_reason(
    scripted: ScriptedBroker, station: Make, connack: bytes, said: str
) -> None:
    scripted.connack = connack
    table = station(scripted.port)
    await table.ear.until(lambda: table.ear.attempts >= 3)
    assert table.ear.codes == ["E-MQTT-REFUSED"]
    assert said in table.ear.faults[0].detail
    assert table.ear.connections == 0


async def test_broker_connects_with_version_5_clean_start_and_an_announced_packet_bound(
    scripted: ScriptedBroker, station: Make
) -> None:
    await station(scripted.port, keepalive_s=17).connected()
    connect = scripted.connects[0]
    assert connect[:7] == b"\x00\x04MQTT\x05"
    assert connect[7] & 0b10  # clean start
    assert connect[7] & 0b100100 == 0b100100  # a will, retained
    assert connect[8:10] == (17).to_bytes(2)
    assert b"\x27" + link_module.PACKET_BOUND.to_bytes(4) in connect  # maximum packet size


async def test_broker_that_closes_before_it_answers_is_unreachable_at_once(
    scripted: ScriptedBroker, station: Make
) -> None:
    scripted.connack = None
    scripted.hang_up_on_connect = True
    table = station(scripted.port)
    await table.ear.until(lambda: table.ear.attempts >= 3)
    assert table.ear.codes == ["E-MQTT-UNREACHABLE"]
    assert "closed before it answered" in table.ear.faults[0].detail


async def test_broker_that_never_answers_is_given_up(
    scripted: ScriptedBroker, station: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "ANSWER_WITHIN_S", 0.05)
    scripted.connack = None
    table = station(scripted.port)
    await table.ear.until(lambda: table.ear.attempts >= 3)
    assert table.ear.codes == ["E-MQTT-UNREACHABLE"]


async def test_broker_subscription_that_is_refused_is_an_error_that_names_it(
    scripted: ScriptedBroker, station: Make
) -> None:
    scripted.suback = 0x87
    table = station(scripted.port, filters=["a/down/ack", "a/post/+/in"])
    await table.ear.until(lambda: table.ear.attempts >= 3)
    assert table.ear.codes == ["E-MQTT-SUBSCRIBE-REFUSED"]
    assert "a/down/ack: Not authorized; a/post/+/in: Not authorized" in table.ear.faults[0].detail
    assert table.ear.connections == 0
    scripted.suback = 0x01
    await table.connected()


async def test_broker_run_cancelled_while_it_subscribes_leaves_nothing_running(
    scripted: ScriptedBroker, station: Make
) -> None:
    before = asyncio.all_tasks()
    scripted.suback = None
    table = station(scripted.port, filters=["a"])
    async with asyncio.timeout(10):
        await scripted.subscribed.wait()
    await table.stop()
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - before
    assert all("_serve" in repr(task) for task in left), left  # the scripted broker's own


async def test_broker_that_closes_while_subscribing_is_lost_at_once(scripted: ScriptedBroker, station: Make) -> None:
    scripted.hang_up_on_subscribe = True
    table = station(scripted.port, filters=["a"])
    await table.ear.until(lambda: table.ear.attempts >= 3)
    assert table.ear.codes == ["E-MQTT-LOST"]
    assert table.ear.connections == 0


# ── Publishing ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\x87", "Not authorized"),
        (b"\x87\x00", "Not authorized"),
        (b"\x97", "Quota exceeded"),
        (b"\x80", "Unspecified error"),
        (b"\xee", "reason code 0xee"),  # no code of the standard
    ],
)
async def test_broker_publication_that_is_refused_fails_with_the_brokers_reason(
    scripted: ScriptedBroker, station: Make, answer: bytes, said: str
) -> None:
    scripted.puback = lambda topic, payload: answer
    table = await station(scripted.port).connected()
    with pytest.raises(Refused, match=said):
        await table.bus.publish(Message("t", b"x"))
    assert table.ear.codes == ["E-MQTT-PUBLISH-REFUSED"]
    assert table.bus.status().refused == 1
    assert table.bus.connected


@pytest.mark.parametrize("answer", [b"", b"\x00", b"\x00\x00", b"\x10", b"\x10\x00"])
async def test_broker_publication_that_is_taken_succeeds_even_when_nobody_listens(
    scripted: ScriptedBroker, station: Make, answer: bytes
) -> None:
    scripted.puback = lambda topic, payload: answer
    table = await station(scripted.port).connected()
    await table.bus.publish(Message("t", b"x"))
    assert table.ear.codes == []


@pytest.mark.parametrize("maximum", [1, 3, 20])
async def test_broker_receive_maximum_is_never_exceeded_and_everything_arrives(
    scripted: ScriptedBroker, station: Make, maximum: int
) -> None:
    scripted.connack = b"\x00\x03\x21" + maximum.to_bytes(2)
    scripted.puback = lambda topic, payload: None
    table = await station(scripted.port).connected()
    assert table.bus.window == maximum
    futures = [table.bus.publish(Message("t", b"%d" % number)) for number in range(50)]
    async with asyncio.timeout(10):
        while not all(future.done() for future in futures):
            scripted.release(len(scripted.held))
            await asyncio.wait([future for future in futures if not future.done()], timeout=0.01)
    assert scripted.most_unanswered <= maximum
    assert [payload for _, payload in scripted.published] == [b"%d" % number for number in range(50)]


async def test_broker_packet_bound_of_the_broker_refuses_a_larger_message_without_sending_it(
    scripted: ScriptedBroker, station: Make
) -> None:
    scripted.connack = b"\x00\x05\x27" + (1_000).to_bytes(4)
    table = await station(scripted.port).connected()
    with pytest.raises(Refused, match="at most 1000"):
        await table.bus.publish(Message("t", b"x" * 1_000))
    await table.bus.publish(Message("t", b"x" * 500))
    assert [len(payload) for _, payload in scripted.published] == [500]
    assert table.bus.connected


async def test_broker_that_acknowledges_nothing_fills_window_and_queue_and_then_says_backpressure(
    scripted: ScriptedBroker, station: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "QUEUE_BOUND", 3)
    scripted.connack = b"\x00\x03\x21" + (2).to_bytes(2)
    scripted.puback = lambda topic, payload: None
    table = await station(scripted.port).connected()
    waiting = [table.bus.publish(Message("t", b"%d" % number)) for number in range(5)]
    full = table.bus.publish(Message("t", b"5"))
    assert isinstance(full.exception(), Backpressure)
    assert (table.bus.status().in_flight, table.bus.status().queued) == (2, 3)
    await table.stop()
    assert all(isinstance(future.exception(), Disconnected) for future in waiting)


async def test_broker_future_that_its_owner_cancelled_harms_nobody(scripted: ScriptedBroker, station: Make) -> None:
    scripted.puback = lambda topic, payload: None
    scripted.connack = b"\x00\x03\x21" + (1).to_bytes(2)
    table = await station(scripted.port).connected()
    flying, queued, last = (table.bus.publish(Message("t", b"%d" % number)) for number in range(3))
    flying.cancel()
    queued.cancel()
    async with asyncio.timeout(10):
        while not last.done():
            scripted.release(len(scripted.held))
            await asyncio.wait({last}, timeout=0.01)
    assert last.exception() is None


async def test_broker_that_forgets_one_acknowledgement_is_given_up(
    scripted: ScriptedBroker, station: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "ACKNOWLEDGE_WITHIN_S", 0.05)
    scripted.puback = lambda topic, payload: None if payload == b"forgotten" else b""
    table = await station(scripted.port).connected()
    await table.bus.publish(Message("t", b"answered"))
    forgotten = table.bus.publish(Message("t", b"forgotten"))
    await table.bus.publish(Message("t", b"answered"))
    await table.ear.until(lambda: table.ear.connections >= 2)
    assert isinstance(forgotten.exception(), Disconnected)
    assert table.ear.codes[0] == "E-MQTT-UNANSWERED"


# ── What comes in, and how it ends ────────────────────────────────────────────────────────────────────────────────────


async def test_broker_disconnect_by_takeover_again_and_again_is_a_stolen_name(
    scripted: ScriptedBroker, station: Make
) -> None:
    scripted.greeting = packet(0xE0, b"\x8e\x00")
    table = station(scripted.port, filters=["a"])
    await table.ear.until(lambda: "E-MQTT-ID-STOLEN" in table.ear.codes)
    assert table.bus.status().takeovers == broker_module.STOLEN_AFTER
    assert "Session taken over" in table.ear.faults[0].detail
    assert table.ear.faults[0].code == "E-MQTT-LOST"  # once may be our own connection of before


async def test_broker_takeovers_that_are_far_apart_are_no_theft(
    scripted: ScriptedBroker, station: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "STOLEN_WITHIN_S", 0.0)
    scripted.greeting = packet(0xE0, b"\x8e\x00")
    table = station(scripted.port, filters=["a"])
    await table.ear.until(lambda: table.ear.attempts >= 5)
    assert "E-MQTT-ID-STOLEN" not in table.ear.codes


async def test_broker_disconnect_with_a_reason_is_told_with_it(scripted: ScriptedBroker, station: Make) -> None:
    scripted.greeting = packet(0xE0, b"\x8b\x00")
    table = station(scripted.port, filters=["a"])
    await table.ear.until(lambda: bool(table.ear.faults))
    assert table.ear.codes == ["E-MQTT-LOST"]
    assert "Server shutting down" in table.ear.faults[0].detail


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x00",
        b"\xf0\x00",
        b"\x40\x01\x00",
        b"\x32\x02\x00\xff",
        b"\xff\xff\xff\xff\xff\xff",
        b"HTTP/1.1 400\r\n\r\n",
    ],
)
async def test_broker_that_sends_garbage_is_left_and_tried_again(
    scripted: ScriptedBroker, station: Make, garbage: bytes
) -> None:
    scripted.greeting = garbage
    scripted.hang_up_on_subscribe = True
    table = station(scripted.port, filters=["a"])
    await table.ear.until(lambda: table.ear.attempts >= 3)
    scripted.greeting, scripted.hang_up_on_subscribe = b"", False
    await table.connected()
    assert table.ear.messages == []
    assert set(table.ear.codes) <= {"E-MQTT-LOST"}
    assert not any("Error(" in fault.detail for fault in table.ear.faults)


async def test_broker_that_sends_a_topic_that_is_not_utf8_is_left_as_the_standard_asks(
    scripted: ScriptedBroker, station: Make
) -> None:
    scripted.greeting = publication(b"a/\xff", b"bad")
    table = station(scripted.port, filters=["a/+"])
    await table.ear.until(lambda: table.ear.attempts >= 3)
    assert "not UTF-8" in table.ear.faults[0].detail
    scripted.greeting = publication(b"a/b", b"good")
    await table.ear.until(lambda: bool(table.ear.messages))
    assert table.ear.payloads[0] == b"good"


async def test_broker_message_before_connected_is_heard_after_it(scripted: ScriptedBroker, station: Make) -> None:
    scripted.greeting = publication(b"a", b"retained")
    table = await station(scripted.port, filters=["a"]).connected()
    await table.ear.until(lambda: bool(table.ear.messages))
    assert table.ear.connections == 1
    assert table.ear.payloads == [b"retained"]
