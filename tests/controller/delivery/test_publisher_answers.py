"""The publisher against a broker whose every answer is chosen: late, out of order, refused one by one."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.certify.log_keys import LogKeys
from controller.delivery.bus import Backpressure, Disconnected, Message, NotPublishedError, Refused, fail
from controller.delivery.publisher import TURN_BOUND, Publisher
from controller.delivery.retained import RETRY_AFTER_S
from controller.delivery.topics import Topics
from tests.virtual import time_passes

Run = Callable[[Any], Any]
TOPICS = Topics("casino.example", "t07")


class PatientBus:
    """A bus that answers nothing by itself."""

    window = 400

    def __init__(self) -> None:
        self.connected = False
        self.session = 0
        self.waiting: dict[int, asyncio.Future[None]] = {}
        self.sent: list[int] = []
        self.listener: Any = None

    def attach(self, listener: Any, filters: Sequence[str]) -> None:
        self.listener = listener

    def publish(self, message: Message) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if message.topic == TOPICS.event:
            index = int(json.loads(message.payload)["id"])
            self.sent.append(index)
            self.waiting[index] = future
        else:
            future.set_result(None)
        return future

    async def run(self) -> None:
        await asyncio.Event().wait()

    def connect(self) -> None:
        self.connected, self.session = True, self.session + 1
        self.listener.on_connected()

    def disconnect(self) -> None:
        self.connected = False
        for future in self.waiting.values():
            fail(future, Disconnected("lost"))
        self.waiting.clear()
        self.listener.on_disconnected()

    def answer(self, *indices: int) -> None:
        for index in indices:
            self.waiting.pop(index).set_result(None)

    def refuse(self, index: int, error: NotPublishedError | None = None) -> None:
        fail(self.waiting.pop(index), error or Refused("Quota exceeded"))


class Scene:
    """A publisher without a mirror on a patient bus."""

    def __init__(self, journal: Any) -> None:
        self.journal = journal
        self.bus = PatientBus()
        self.saved: list[int] = []
        self.publisher = Publisher(
            reader=journal,
            bus=self.bus,
            topics=TOPICS,
            own=LogKeys.of(journal.signer.verifier),
            mirror=None,
            witnesses={},
            cursor=0,
            save_cursor=lambda name, size: self.saved.append(size),
            keep_acknowledgement=lambda ack: None,
            on_fault=lambda fault: None,
        )

    async def __aenter__(self) -> "Scene":
        self.task = asyncio.create_task(self.publisher.run())
        self.bus.connect()
        await turns()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})
        assert self.task.cancelled(), self.task.exception()

    @property
    def cursor(self) -> int:
        return self.publisher.status().cursor


async def turns() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def test_publisher_cursor_stops_at_the_first_entry_that_is_not_answered(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Scene(journal_of(6)) as scene:
            assert scene.bus.sent == [0, 1, 2, 3, 4, 5]
            for answered, cursor in (((1, 2, 5), 0), ((0,), 3), ((4,), 3), ((3,), 6)):
                scene.bus.answer(*answered)
                await turns()
                assert scene.cursor == cursor

    in_virtual_time(story())


def test_publisher_cursor_never_passes_an_entry_that_was_refused(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Scene(journal_of(6)) as scene:
            scene.bus.refuse(3)
            scene.bus.answer(0, 1, 2, 4, 5)
            await turns()
            assert scene.cursor == 3
            assert scene.bus.sent == [0, 1, 2, 3, 4, 5]
            await time_passes(RETRY_AFTER_S)
            await turns()
            assert scene.bus.sent[6:] == [3, 4, 5]
            scene.bus.answer(3, 4, 5)
            await turns()
            assert scene.cursor == 6
        assert scene.saved == [3, 6]

    in_virtual_time(story())


def test_publisher_begins_again_at_the_first_of_several_that_were_refused(
    in_virtual_time: Run, journal_of: Any
) -> None:
    async def story() -> None:
        async with Scene(journal_of(5)) as scene:
            scene.bus.refuse(1)
            scene.bus.refuse(3, Backpressure("full"))
            scene.bus.answer(0, 2, 4)
            await time_passes(RETRY_AFTER_S)
            await turns()
            assert scene.bus.sent[5:] == [1, 2, 3, 4]
            assert scene.publisher.status().refused == 1  # the other was never asked

    in_virtual_time(story())


def test_publisher_does_not_begin_again_before_everything_was_answered(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Scene(journal_of(5)) as scene:
            scene.bus.refuse(1)
            scene.bus.answer(0, 2, 4)
            await time_passes(RETRY_AFTER_S * 3)
            await turns()
            assert scene.bus.sent == [0, 1, 2, 3, 4]
            scene.bus.answer(3)
            await time_passes(RETRY_AFTER_S)
            await turns()
            assert scene.bus.sent[5:] == [1, 2, 3, 4]
            assert scene.cursor == 1

    in_virtual_time(story())


@pytest.mark.parametrize("same_turn", [True, False])
def test_publisher_answer_that_comes_with_the_loss_of_the_connection_is_not_counted_twice(
    in_virtual_time: Run, journal_of: Any, same_turn: bool
) -> None:
    async def story() -> None:
        async with Scene(journal_of(4)) as scene:
            scene.bus.answer(0, 1)
            if not same_turn:
                await turns()
            scene.bus.disconnect()
            await turns()
            assert scene.cursor == (0 if same_turn else 2)
            scene.bus.connect()
            await turns()
            assert scene.bus.sent[4:] == list(range(scene.cursor, 4))
            scene.bus.answer(*scene.bus.waiting)
            await turns()
            assert scene.cursor == 4

    in_virtual_time(story())


def test_publisher_sends_a_bounded_number_in_one_turn(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        scene = Scene(journal_of(1_000))
        scene.bus.connect()
        task = asyncio.create_task(scene.publisher.run())
        sent = 0
        for _ in range(20):
            await asyncio.sleep(0)
            assert len(scene.bus.sent) - sent <= TURN_BOUND
            sent = len(scene.bus.sent)
        assert sent == 200
        task.cancel()
        await asyncio.wait({task})

    in_virtual_time(story())


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("answer"), st.integers(0, 50)),
        st.tuples(st.just("refuse"), st.integers(0, 50)),
        st.tuples(st.sampled_from(["lose", "grow", "wait"]), st.just(0)),
    ),
    max_size=60,
)


@given(STEPS)
def test_publisher_cursor_counts_only_what_was_answered_with_yes_in_any_order(
    in_virtual_time: Run, journal_of: Any, steps: list[tuple[str, int]]
) -> None:
    async def story() -> None:
        accepted: set[int] = set()
        async with Scene(journal_of(8)) as scene:
            for what, number in steps:
                waiting = sorted(scene.bus.waiting)
                if what == "answer" and waiting:
                    index = waiting[number % len(waiting)]
                    accepted.add(index)
                    scene.bus.answer(index)
                elif what == "refuse" and waiting:
                    scene.bus.refuse(waiting[number % len(waiting)])
                elif what == "lose":
                    scene.bus.disconnect()
                    scene.bus.connect()
                elif what == "grow":
                    scene.publisher.certified(scene.journal.grow(3))
                elif what == "wait":
                    await time_passes(RETRY_AFTER_S)
                await turns()
                assert set(range(scene.cursor)) <= accepted
            for _ in range(3):
                await time_passes(RETRY_AFTER_S)
                await turns()
                accepted |= set(scene.bus.waiting)
                scene.bus.answer(*list(scene.bus.waiting))
                await turns()
            assert scene.cursor == scene.journal.size
        assert all(set(range(size)) <= accepted for size in scene.saved)

    in_virtual_time(story())
