"""The service in its process: its queues are bounded, and what is dropped is counted and comes again."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from controller.delivery.bus import Message, Refused, fail
from controller.mirror import service as module
from controller.mirror.faults import Alarm, MirrorFault
from controller.mirror.mirror import Mirror
from controller.mirror.service import RECALLS_BOUND, MirrorService
from drivers.clock import ManualClock
from tests.controller.mirror.casino import CENTRE, MemoryStore, Table

PATIENCE_S = 20.0


class HandBus:
    """A bus worked by hand: what is published is remembered, and acknowledged unless it is to be refused."""

    session = 1
    window = 400

    def __init__(self) -> None:
        self.connected = True
        self.published: list[Message] = []
        self.refuses = 0

    def attach(self, listener: Any, filters: Any) -> None:
        self.filters = filters

    def publish(self, message: Message) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.published.append(message)
        if self.refuses:
            self.refuses -= 1
            return fail(future, Refused("Not authorized"))
        future.set_result(None)
        return future

    async def run(self) -> None:
        await asyncio.Event().wait()


class Running:
    """A service that runs on a bus worked by hand."""

    def __init__(self, store: MemoryStore, *tables: Table) -> None:
        self.bus = HandBus()
        self.alarms: list[Alarm] = []
        self._turned = asyncio.Event()
        mirror = Mirror([table.keys for table in tables], store, CENTRE, ManualClock())
        self.service = MirrorService(mirror, self.bus, on_alarm=self.alarms.append, on_turn=self._turned.set)
        self.task = asyncio.get_running_loop().create_task(self.service.run())

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._turned.clear()
                await self._turned.wait()

    def acks(self) -> list[bytes]:
        return [message.payload for message in self.bus.published if message.retain]


@pytest.fixture
def table() -> Table:
    return Table(entries=300)


@pytest.fixture
async def running(table: Table, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    for name in ("RETAINED_WITHIN_S", "RESTATE_AFTER_S", "TICK_S", "GATHER_S", "RECALL_PAUSE_S"):
        monkeypatch.setattr(module, name, 0.01)
    made = Running(MemoryStore(), table)
    yield made
    made.task.cancel()
    await asyncio.wait({made.task})


async def test_mirror_service_says_nothing_retained_before_the_broker_had_time_to_remind_it(
    running: Running, table: Table
) -> None:
    for message in [*table.events(), table.checkpoint()]:
        running.service.on_message(message)
    await running.until(lambda: running.service.status().turns >= 3)
    assert running.acks() == []
    running.service.on_connected()
    await running.until(lambda: bool(running.acks()))
    assert b"\n300\n" in running.acks()[-1]


async def test_mirror_service_acknowledgement_that_was_refused_is_said_again(running: Running, table: Table) -> None:
    running.service.on_connected()
    running.bus.refuses = 1
    for message in [*table.events(), table.checkpoint()]:
        running.service.on_message(message)
    await running.until(lambda: len(running.acks()) >= 2)
    assert running.acks()[0] == running.acks()[1]


async def test_mirror_service_messages_that_wait_are_bounded_and_the_others_are_counted(
    running: Running, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "INBOUND_BOUND_BYTES", 10_000)
    for message in table.events():
        running.service.on_message(message)
    status = running.service.status()
    assert 0 < status.waiting < 300
    assert status.dropped == 300 - status.waiting
    await running.until(lambda: running.service.status().waiting == 0)
    for message in table.events(status.waiting, status.waiting + 5):
        running.service.on_message(message)
    assert running.service.status().dropped == status.dropped


async def test_mirror_service_turn_takes_no_more_than_its_bound(
    running: Running, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TURN_BOUND", 50)
    for message in table.events():
        running.service.on_message(message)
    turns = running.service.status().turns
    await running.until(lambda: running.service.status().waiting == 0)
    assert running.service.status().turns >= turns + 5


async def test_mirror_service_recalls_that_wait_are_bounded_and_one_of_each_table(
    running: Running, table: Table
) -> None:
    for message in table.events():
        running.service.on_message(message)
    await running.until(lambda: running.service.status().waiting == 0)
    await running.until(lambda: running.service.status().turns >= 2)
    wanted = json.dumps({"from": 5, "to": 250}).encode()
    for number in range(RECALLS_BOUND + 3):
        running.service.on_message(Message(f"casino/v1/casino.example/table/x{number}/up/recall", wanted))
    assert running.service.status().dropped == 3
    await running.until(lambda: running.service.status().strangers == RECALLS_BOUND)
    for _ in range(2):
        running.service.on_message(Message(table.topics.recall, wanted))
    await running.until(lambda: len(running.bus.published) >= 245)
    assert [message.payload for message in running.bus.published] == table.all[5:250]


async def test_mirror_service_whose_store_fails_ends(table: Table) -> None:
    class Full(MemoryStore):
        def keep(self, changes: Any) -> None:
            raise MirrorFault("E-MIRROR-STORE", "the disk is full")

    broken = Running(Full(), table)
    for message in [*table.events(), table.checkpoint()]:
        broken.service.on_message(message)
    await asyncio.wait({broken.task}, timeout=PATIENCE_S)
    error = broken.task.exception()
    assert isinstance(error, ExceptionGroup)
    assert error.subgroup(MirrorFault) is not None
    assert broken.acks() == []


async def test_mirror_service_counts_an_empty_message_too(running: Running, table: Table) -> None:
    bound = module.INBOUND_BOUND_BYTES // module.MESSAGE_BYTES
    empty = Message(table.topics.event, b"")
    for _ in range(bound + 5):
        running.service.on_message(empty)
    assert running.service.status().dropped == 5
