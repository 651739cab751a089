"""The whole way from the journal to the centre over real brokers that are killed, hang, refuse: nothing is lost.

The centre is written with aiomqtt alone. It keeps the contiguous entries, asks for gaps and cosigns, as the interface
documents it.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from paho.mqtt.subscribeoptions import SubscribeOptions

from controller.certify.checkpoint import parse_checkpoint
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer, Verifier, open_note
from controller.delivery import publisher as publisher_module
from controller.delivery import retained as retained_module
from controller.delivery.bus import BusFault
from controller.delivery.centre import Acknowledgement
from controller.delivery.publisher import Publisher
from controller.delivery.topics import Topics

Make = Callable[..., Any]
PATIENCE_S = 20.0


class Centre:
    """The central system: keeps the contiguous entries, asks for gaps, cosigns.

    A checkpoint runs ahead of its entries, so a gap is one only when no entry has come for ``quiet_s``.

    ``seen`` counts each arrival of an entry. An entry that comes twice with other bytes is a fork, and fails.
    """

    def __init__(
        self, broker: Any, topics: Topics, own: Verifier, cosign: Callable[[str], bytes] | None, quiet_s: float
    ) -> None:
        self.entries: list[bytes] = []
        self.seen: dict[int, int] = {}
        self.state: list[bytes] = []
        self.content_types: set[str | None] = set()
        self._broker = broker
        self._topics = topics
        self._own = own
        self._cosign = cosign
        self._quiet_s = quiet_s
        self._checkpoint = ""
        self._early: dict[int, bytes] = {}
        self._changed = asyncio.Event()
        self._arrived = asyncio.Event()
        self.listening = asyncio.Event()

    async def run(self) -> None:
        while True:
            await self._broker.up.wait()
            try:
                await self._serve()
            except (aiomqtt.MqttError, OSError):
                self.listening.clear()

    async def _serve(self) -> None:
        client = aiomqtt.Client(
            "127.0.0.1", self._broker.port, identifier="centre", protocol=aiomqtt.ProtocolVersion.V5, timeout=2
        )
        async with client:
            options = SubscribeOptions(qos=1)
            wanted = (self._topics.event, self._topics.checkpoint, self._topics.state)
            await client.subscribe([(topic, options) for topic in wanted])
            self.listening.set()
            asking = asyncio.create_task(self._ask_for_gaps(client))
            try:
                async for message in client.messages:
                    await self._hear(client, message)
            finally:
                asking.cancel()
                await asyncio.wait({asking})

    async def _hear(self, client: aiomqtt.Client, message: aiomqtt.Message) -> None:
        payload = bytes(message.payload)
        if message.topic.value == self._topics.state:
            self.state.append(payload)
        elif message.topic.value == self._topics.checkpoint:
            self._checkpoint = payload.decode()
        else:
            self.content_types.add(getattr(message.properties, "ContentType", None))
            self._store(int(json.loads(payload)["id"]), payload)
        if self._cosign and self._checkpoint and self._checkpoint_size() == len(self.entries):
            await client.publish(self._topics.ack, self._cosign(self._checkpoint), qos=1, retain=True)
        self._changed.set()

    async def _ask_for_gaps(self, client: aiomqtt.Client) -> None:
        """Ask for what is missing, once nothing comes by itself."""
        while True:
            self._arrived.clear()
            try:
                async with asyncio.timeout(self._quiet_s):
                    await self._arrived.wait()
            except TimeoutError:
                if self._checkpoint and len(self.entries) < self._checkpoint_size():
                    wanted = json.dumps({"from": len(self.entries), "to": self._checkpoint_size()})
                    await client.publish(self._topics.replay, wanted, qos=1)

    def _checkpoint_size(self) -> int:
        return parse_checkpoint(open_note(self._checkpoint, [self._own]).text).size

    def _store(self, index: int, payload: bytes) -> None:
        self.seen[index] = self.seen.get(index, 0) + 1
        if index < len(self.entries):
            assert self.entries[index] == payload, f"entry {index} came with other bytes"
        self._early[index] = payload
        self._arrived.set()
        while len(self.entries) in self._early:
            self.entries.append(self._early.pop(len(self.entries)))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
async def centre(
    broker: Any, topics: Topics, journal_of: Make, acknowledge: Make
) -> AsyncIterator[Callable[..., Awaitable[Centre]]]:
    """``await centre(mirror_signer)``: a centre that listens on the broker."""
    tasks: list[asyncio.Task[None]] = []

    async def make(mirror: Signer | None, quiet_s: float = 0.2) -> Centre:
        cosign = None if mirror is None else lambda checkpoint: acknowledge(checkpoint, mirror)
        made = Centre(broker, topics, journal_of().signer.verifier, cosign, quiet_s)
        tasks.append(asyncio.create_task(made.run()))
        async with asyncio.timeout(PATIENCE_S):
            await made.listening.wait()
        return made

    yield make
    for task in tasks:
        while not task.done():  # the library may swallow a cancellation that comes in the very instant of an answer
            task.cancel()
            await asyncio.wait({task}, timeout=PATIENCE_S / 4)
        assert task.cancelled(), task.exception()


class Table:
    """A publisher on a real bus, with a journal in memory that survives it."""

    def __init__(self, station: Any, topics: Topics, journal: Any, mirror: Signer | None, cursor: int) -> None:
        self.station = station
        self.journal = journal
        self.saved = cursor
        self.cosigned = cursor
        self.faults: list[BusFault] = []
        self.publisher = Publisher(
            reader=journal,
            bus=station.bus,
            topics=topics,
            own=LogKeys.of(journal.signer.verifier),
            mirror=mirror.verifier if mirror else None,
            witnesses={},
            cursor=cursor,
            save_cursor=self._save,
            keep_acknowledgement=self._keep,
            on_fault=self.faults.append,
        )
        self._changed = asyncio.Event()
        self._tasks = [asyncio.create_task(self.publisher.run())]
        self.station.run()

    def _save(self, name: str, size: int) -> None:
        self.saved = size

    def _keep(self, ack: Acknowledgement) -> None:
        self.cosigned = ack.size
        self._changed.set()

    def grow(self, count: int) -> None:
        self.publisher.certified(self.journal.grow(count))

    async def until_cosigned(self, size: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.cosigned < size:
                self._changed.clear()
                await self._changed.wait()

    async def stop(self) -> None:
        await self.station.stop()
        for task in self._tasks:
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled(), task.exception()


@pytest.fixture
async def table_of(station_of: Make, broker: Any, topics: Topics) -> AsyncIterator[Make]:
    """``table_of(journal, mirror, cursor)``: a table that is connected to the broker, or tries to be."""
    made: list[Table] = []

    def make(journal: Any, mirror: Signer | None = None, cursor: int = 0, **options: Any) -> Table:
        made.append(Table(station_of(broker.port, "t07", (), **options), topics, journal, mirror, cursor))
        return made[-1]

    yield make
    for table in made:
        if not table.station.task.done():
            await table.stop()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test waits less than a table does before it sends, checks and tries again."""
    monkeypatch.setattr(publisher_module, "RETAINED_WITHIN_S", 0.1)
    monkeypatch.setattr(publisher_module, "CHECKPOINT_EVERY_S", 0.05)
    monkeypatch.setattr(publisher_module, "RETRY_AFTER_S", 0.1)
    monkeypatch.setattr(retained_module, "RETRY_AFTER_S", 0.1)


def assert_same(centre: Centre, journal: Any) -> None:
    """Every entry arrived, as the same bytes; ``Centre`` has compared each repeat."""
    assert centre.entries == journal.all


async def test_delivery_of_a_thousand_entries_is_cosigned_and_each_came_once(
    broker: Any, centre: Make, table_of: Make, journal_of: Make, mirror: Signer
) -> None:
    station = await centre(mirror, quiet_s=PATIENCE_S)
    table = table_of(journal_of(400), mirror)
    table.grow(600)
    await table.until_cosigned(1_000)
    assert_same(station, table.journal)
    assert set(station.seen.values()) == {1}
    assert station.content_types == {"application/cloudevents+json"}
    assert table.publisher.status().waiting == 0


async def test_delivery_over_a_broker_that_is_killed_again_and_again_loses_nothing(
    broker: Any, centre: Make, table_of: Make, journal_of: Make, mirror: Signer
) -> None:
    station = await centre(mirror)
    table = table_of(journal_of(50), mirror)
    await table.until_cosigned(50)
    for remaining in (250, 100):
        table.grow(300)
        wanted = table.journal.size - remaining
        await station.until(lambda seen=wanted: len(station.entries) >= seen)  # somewhere in the middle
        await broker.kill()
        table.grow(20)
        await broker.start()
        table.grow(20)
    await table.until_cosigned(table.journal.size)
    assert_same(station, table.journal)


async def test_delivery_over_a_broker_that_hangs_loses_nothing(
    broker: Any, centre: Make, table_of: Make, journal_of: Make, mirror: Signer
) -> None:
    station = await centre(mirror, quiet_s=PATIENCE_S)
    table = table_of(journal_of(10), mirror)
    await table.until_cosigned(10)
    broker.freeze()
    table.grow(500)
    for _ in range(20):
        await asyncio.sleep(0)
    assert 0 < table.publisher.status().in_flight <= publisher_module.WINDOW
    broker.thaw()
    table.grow(5)
    await table.until_cosigned(515)
    assert_same(station, table.journal)
    assert set(station.seen.values()) == {1}


async def test_delivery_over_a_broker_that_hangs_beyond_the_keepalive_repeats_and_loses_nothing(
    broker: Any, centre: Make, table_of: Make, journal_of: Make, mirror: Signer
) -> None:
    station = await centre(mirror)
    table = table_of(journal_of(10), mirror, keepalive_s=1)
    await table.until_cosigned(10)
    broker.freeze()
    table.grow(30)
    await table.station.ear.until(lambda: table.station.ear.losses == 1)
    table.grow(30)
    broker.thaw()
    await table.until_cosigned(70)
    assert_same(station, table.journal)
    assert max(station.seen.values()) <= 2  # what the frozen broker had taken came a second time, as the same bytes


async def test_delivery_that_begins_without_a_broker_waits_for_it(
    broker: Any, centre: Make, table_of: Make, journal_of: Make, mirror: Signer
) -> None:
    station = await centre(mirror)
    await broker.kill()
    table = table_of(journal_of(5), mirror)
    await table.station.ear.until(lambda: "E-MQTT-UNREACHABLE" in table.station.ear.codes)
    table.grow(300)
    assert table.publisher.status().waiting == 305
    await broker.start()
    await table.until_cosigned(305)
    assert_same(station, table.journal)


async def test_delivery_of_a_table_that_ends_and_starts_again_resumes_where_the_mirror_is(
    broker: Any,
    centre: Make,
    table_of: Make,
    journal_of: Make,
    mirror: Signer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    station = await centre(mirror, quiet_s=PATIENCE_S)
    first = table_of(journal_of(300), mirror)
    await first.until_cosigned(300)
    await first.stop()
    monkeypatch.setattr(publisher_module, "RETAINED_WITHIN_S", PATIENCE_S)
    first.journal.grow(40)
    second = table_of(first.journal, mirror, cursor=0)  # the retained acknowledgement knows better
    await second.until_cosigned(340)
    assert_same(station, second.journal)
    assert set(station.seen.values()) == {1}


async def test_delivery_without_a_mirror_resumes_at_the_saved_cursor(
    broker: Any, centre: Make, table_of: Make, journal_of: Make
) -> None:
    station = await centre(None)
    first = table_of(journal_of(300))
    await station.until(lambda: len(station.entries) == 300)
    assert await first.publisher.drain()
    await first.stop()
    assert first.saved == 300
    first.journal.grow(40)
    second = table_of(first.journal, cursor=first.saved)
    await station.until(lambda: len(station.entries) == 340)
    assert_same(station, second.journal)
    assert set(station.seen.values()) == {1}


async def test_delivery_with_a_cursor_that_was_not_saved_repeats_the_same_bytes(
    broker: Any, centre: Make, table_of: Make, journal_of: Make
) -> None:
    station = await centre(None)
    first = table_of(journal_of(300))
    await station.until(lambda: len(station.entries) == 300)
    await first.stop()
    second = table_of(first.journal, cursor=120)  # as after a power cut: an older cursor was on the disk
    second.grow(10)
    await station.until(lambda: len(station.entries) == 310)
    assert_same(station, second.journal)
    assert {index for index, times in station.seen.items() if times == 2} == set(range(120, 300))


async def test_delivery_of_a_centre_that_was_away_is_made_up_by_replay(
    broker: Any, centre: Make, table_of: Make, journal_of: Make, mirror: Signer
) -> None:
    table = table_of(journal_of(250), mirror)
    await table.station.connected()
    assert await table.publisher.drain(PATIENCE_S)  # the broker acknowledged everything, and nobody was there
    assert table.cosigned == 0
    station = await centre(mirror)
    await table.until_cosigned(250)
    assert_same(station, table.journal)
    table.grow(10)
    await table.until_cosigned(260)


async def test_delivery_state_is_retained_and_the_will_of_a_lost_table_has_its_session(
    broker: Any, centre: Make, table_of: Make, journal_of: Make, topics: Topics
) -> None:
    station = await centre(None)
    table = table_of(journal_of(1))
    table.publisher.set_document("state", lambda session: b"game %d" % session)
    await station.until(lambda: station.state == [b"game 1"])
    table.station.bus._link._paho.socket().shutdown(socket.SHUT_RDWR)  # no goodbye
    await station.until(lambda: b"game 2" in station.state)
    assert station.state == [b"game 1", b"lost 1", b"game 2"]


async def test_delivery_that_the_access_list_refuses_is_told_and_goes_on_when_it_is_permitted(
    topics: Topics,
    journal_of: Make,
    station_of: Make,
    mosquitto_of: Make,
    program: Callable[[str], str],
    tmp_path: Path,
    free_port: int,
) -> None:
    rights = f"topic readwrite {topics.root}/up/#\ntopic deny {topics.event}\n"
    (tmp_path / "acl").write_text(rights)
    lines = (f"listener {free_port} 127.0.0.1", "allow_anonymous true", f"acl_file {tmp_path}/acl", "user root")
    (tmp_path / "refusing.conf").write_text("\n".join(lines) + "\n")
    broker = await mosquitto_of(program("mosquitto"), tmp_path / "refusing.conf").start()
    listener = station_of(free_port, "centre", (topics.event,))
    table = Table(station_of(free_port, "t07", ()), topics, journal_of(20), None, 0)
    try:
        await listener.run().connected()
        await table.station.ear.until(lambda: "E-MQTT-PUBLISH-REFUSED" in table.station.ear.codes)
        await asyncio.sleep(0)  # the publisher hears of it in the next turn
        await asyncio.sleep(0)
        assert table.publisher.status().refused > 0
        assert table.publisher.status().cursor == 0
        assert "Not authorized" in table.station.ear.faults[0].detail
        (tmp_path / "acl").write_text(f"topic readwrite {topics.root}/#\n")
        broker.reload()
        await listener.ear.until(lambda: set(listener.ear.payloads) == set(table.journal.all))
        assert await table.publisher.drain(PATIENCE_S)
        assert table.publisher.status().cursor == 20
        arrived = list(dict.fromkeys(listener.ear.payloads))
        assert arrived == table.journal.all
    finally:
        await table.stop()
        await listener.stop()
        await broker.kill()
