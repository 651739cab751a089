"""The publisher on the broker in memory, in virtual time: what is sent, when, and how far it counts as delivered."""

import asyncio
import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer
from controller.delivery import publisher as publisher_module
from controller.delivery.bus import BusFault, MemoryBus, MemoryExchange, Message
from controller.delivery.centre import Acknowledgement, parse_replay
from controller.delivery.publisher import (
    CHECKPOINT_EVERY_S,
    RETAINED_WITHIN_S,
    SAVE_EVERY_S,
    WINDOW,
    Publisher,
)
from controller.delivery.retained import RETRY_AFTER_S
from controller.delivery.topics import Topics
from tests.virtual import time_passes

Run = Callable[[Any], Any]
TOPICS = Topics("casino.example", "t07")


class Centre:
    """Hears everything that the table sends, with the instant."""

    def __init__(self, exchange: MemoryExchange) -> None:
        self.bus = exchange.bus("centre")
        self.bus.attach(self, ["#"])
        self.heard: list[tuple[float, Message]] = []
        self.indices: list[int] = []
        self.contiguous = 0  # entries that have arrived without a gap
        self._arrived: set[int] = set()
        self.on_event: Callable[[Message], None] = lambda message: None

    def on_message(self, message: Message) -> None:
        self.heard.append((asyncio.get_running_loop().time(), message))
        if message.topic == TOPICS.event:
            self.indices.append(int(json.loads(message.payload)["id"]))
            self._arrived.add(self.indices[-1])
            while self.contiguous in self._arrived:
                self.contiguous += 1
        self.on_event(message)

    def on_connected(self) -> None:
        pass

    def on_disconnected(self) -> None:
        pass

    def on(self, topic: str) -> list[bytes]:
        return [message.payload for _, message in self.heard if message.topic == topic]


class Stage:
    """One table with its publisher, a centre, and the broker between them."""

    def __init__(
        self,
        journal: Any,
        mirror: Signer | None = None,
        cursor: int = 0,
        witnesses: Mapping[str, Signer] = MappingProxyType({}),
    ) -> None:
        self.journal = journal
        self.exchange = MemoryExchange()
        self.centre = Centre(self.exchange)
        self.mirror = mirror
        self.saved: list[tuple[float, int]] = []
        self.kept: list[tuple[int, str]] = []
        self.witnesses = witnesses
        self.witnessed: list[tuple[str, int, str]] = []
        self.faults: list[BusFault] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.bus, self.publisher = self._make(cursor)

    def _make(self, cursor: int) -> tuple[MemoryBus, Publisher]:
        bus = self.exchange.bus("t07")
        publisher = Publisher(
            reader=self.journal,
            bus=bus,
            topics=TOPICS,
            own=LogKeys.of(self.journal.signer.verifier),
            mirror=self.mirror.verifier if self.mirror else None,
            witnesses={name: witness.verifier for name, witness in self.witnesses.items()},
            cursor=cursor,
            save_cursor=lambda name, size: self.saved.append((asyncio.get_running_loop().time(), size)),
            keep_acknowledgement=self._keep,
            on_fault=self.faults.append,
        )
        return bus, publisher

    def _keep(self, ack: Acknowledgement) -> None:
        if self.mirror and ack.cosigner.name == self.mirror.name:
            self.kept.append((ack.size, ack.note))
        else:
            self.witnessed.append((ack.cosigner.name, ack.size, ack.note))

    async def __aenter__(self) -> "Stage":
        await self.start_centre()
        await self.start_table()
        return self

    async def start_centre(self) -> None:
        self.tasks["centre"] = asyncio.create_task(self.centre.bus.run())
        await self.settle()

    async def start_table(self) -> None:
        self.tasks["publisher"] = asyncio.create_task(self.publisher.run())
        self.tasks["bus"] = asyncio.create_task(self.bus.run())
        await self.settle()

    async def stop_table(self) -> None:
        for name in ("bus", "publisher"):
            task = self.tasks.pop(name)
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled(), task.exception()

    async def restart(self) -> None:
        """The daemon ends and starts again with what it had saved."""
        await self.stop_table()
        cosigned = [size for size, _ in self.kept]
        self.bus, self.publisher = self._make(max([0, *cosigned, *(size for _, size in self.saved)]))
        await self.start_table()

    async def __aexit__(self, *_: object) -> None:
        await self.stop_table()
        self.tasks["centre"].cancel()
        await asyncio.wait(self.tasks.values())

    def grow(self, count: int) -> None:
        self.publisher.certified(self.journal.grow(count))

    async def settle(self, seconds: float = 0.0) -> None:
        """Let everything that can happen happen, then let ``seconds`` pass, and again."""
        for wait in (0.0, seconds):
            await time_passes(wait)
            for _ in range(60):
                await asyncio.sleep(0)

    def codes(self) -> list[str]:
        return [fault.code for fault in self.faults]

    def say(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        self.centre.bus.publish(Message(topic, payload, retain=retain))


# ── The stream of entries ─────────────────────────────────────────────────────────────────────────────────────────────


def test_publisher_entries_arrive_in_order_as_the_exact_bytes(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(3)) as stage:
            stage.grow(4)
            await stage.settle()
            assert stage.centre.on(TOPICS.event) == stage.journal.all
            events = [message for _, message in stage.centre.heard if message.topic == TOPICS.event]
            assert {message.content_type for message in events} == {"application/cloudevents+json"}
            assert TOPICS.event not in stage.exchange.retained
            status = stage.publisher.status()
            assert (status.size, status.cursor, status.waiting, status.in_flight) == (7, 7, 0, 0)
            assert status.connected
            assert status.halted is None

    in_virtual_time(story())


def test_publisher_unanswered_entries_never_exceed_the_window(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(0)) as stage:
            stage.exchange.stall()
            stage.grow(3 * WINDOW)
            await stage.settle()
            assert stage.publisher.status().in_flight == WINDOW
            assert stage.publisher.status().waiting == 3 * WINDOW
            stage.exchange.go_on()
            await stage.settle()
            await stage.settle()
            assert stage.centre.indices == list(range(3 * WINDOW))

    in_virtual_time(story())


@pytest.mark.parametrize("window", [1, 2, 3, 20])
def test_publisher_takes_half_of_a_small_window_and_always_goes_on(
    in_virtual_time: Run, journal_of: Any, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(MemoryBus, "window", window)

    async def story() -> None:
        async with Stage(journal_of(0)) as stage:
            stage.exchange.stall()
            stage.grow(25)
            await stage.settle()
            assert stage.publisher.status().in_flight == max(1, window // 2)
            stage.exchange.go_on()
            await stage.settle()
            await stage.settle()
            assert stage.centre.indices == list(range(25))

    in_virtual_time(story())


def test_publisher_answer_to_a_post_goes_before_the_entries_of_its_own_commit(
    in_virtual_time: Run, journal_of: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(0)) as stage:
            stage.grow(5)  # the table loop: certified, and then the answers
            stage.bus.publish(Message(TOPICS.post_out(3), b"answer"))
            await stage.settle()
            order = [message.topic for _, message in stage.centre.heard]
            assert order.index(TOPICS.post_out(3)) < order.index(TOPICS.event)

    in_virtual_time(story())


def test_publisher_catching_up_lets_an_answer_through(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(0)) as stage:
            stage.grow(5_000)
            for _ in range(6):
                await asyncio.sleep(0)
            stage.bus.publish(Message(TOPICS.post_out(3), b"answer"))
            for _ in range(20):
                await stage.settle()
            order = [message.topic for _, message in stage.centre.heard]
            assert order.count(TOPICS.event) == 5_000
            assert order.index(TOPICS.post_out(3)) < 2 * WINDOW + publisher_module.TURN_BOUND * 6

    in_virtual_time(story())


def test_publisher_that_was_stopped_resumes_at_the_saved_cursor(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(10)) as stage:
            await stage.settle()
            await stage.restart()
            stage.grow(5)
            await stage.settle()
            assert stage.centre.indices == list(range(15))

    in_virtual_time(story())


def test_publisher_cursor_beyond_the_journal_is_no_reason_to_send_what_is_not_there(
    in_virtual_time: Run, journal_of: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(3), cursor=9) as stage:
            stage.grow(1)
            await stage.settle()
            assert stage.centre.indices == [3]
            assert (stage.publisher.status().cursor, stage.publisher.status().waiting) == (4, 0)

    in_virtual_time(story())


def test_publisher_without_a_mirror_saves_its_cursor_once_a_second_and_at_the_end(
    in_virtual_time: Run, journal_of: Any
) -> None:
    async def story() -> Stage:
        async with Stage(journal_of(0)) as stage:
            for _ in range(50):
                stage.grow(1)
                await stage.settle(0.1)
        return stage

    stage = in_virtual_time(story())
    instants = [at for at, _ in stage.saved]
    assert all(later - earlier >= SAVE_EVERY_S * 0.999 for earlier, later in pairwise(instants[:-1]))
    assert len(instants) in (5, 6)
    sizes = [size for _, size in stage.saved]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == 50


@pytest.mark.parametrize("losing", [True, False])
def test_publisher_connection_that_is_lost_takes_everything_unanswered_back(
    in_virtual_time: Run, journal_of: Any, losing: bool
) -> None:
    async def story() -> None:
        async with Stage(journal_of(0)) as stage:
            stage.grow(3)
            await stage.settle()
            stage.exchange.stall()
            stage.grow(4)
            await stage.settle()
            stage.exchange.partition("t07", losing=losing)
            assert stage.publisher.status().in_flight == 0
            stage.exchange.go_on()
            stage.grow(2)
            await stage.settle()
            assert stage.publisher.status().waiting == 6
            stage.exchange.heal("t07")
            await stage.settle()
            repeats = [] if losing else [3, 4, 5, 6]
            assert stage.centre.indices == [0, 1, 2, *repeats, 3, 4, 5, 6, 7, 8]
            assert set(stage.centre.on(TOPICS.event)) == set(stage.journal.all)  # a repeat is the same bytes
            assert stage.publisher.status().waiting == 0

    in_virtual_time(story())


def test_publisher_refused_entry_is_tried_again_and_none_is_skipped(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(0)) as stage:
            stage.grow(2)
            await stage.settle()
            stage.exchange.deny(TOPICS.event)
            stage.grow(3)
            await stage.settle(RETRY_AFTER_S * 2.5)
            assert stage.publisher.status().refused == 9  # three entries, three times
            assert stage.publisher.status().cursor == 2
            stage.exchange.permit(TOPICS.event)
            stage.grow(1)
            await stage.settle(RETRY_AFTER_S)
            assert stage.centre.indices == [0, 1, 2, 3, 4, 5]
            assert stage.publisher.status().cursor == 6

    in_virtual_time(story())


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(1, 250)),
        st.tuples(st.just("partition"), st.booleans()),
        st.tuples(st.sampled_from(["heal", "stall", "go_on", "deny", "permit", "restart", "turn"]), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([0.3, 1.0, 6.0])),
    ),
    max_size=15,
)


async def act(stage: Stage, denied: list[str], operation: tuple[str, Any]) -> None:
    """Do one operation of the property below."""
    match operation:
        case ("grow", count):
            stage.grow(count)
        case ("partition", losing):
            stage.exchange.partition("t07", losing=losing)
        case ("heal", _):
            stage.exchange.heal("t07")
        case ("stall", _):
            stage.exchange.stall()
        case ("go_on", _):
            stage.exchange.go_on()
        case ("deny", _) if not denied:
            denied.append(TOPICS.event)
            stage.exchange.deny(TOPICS.event)
        case ("permit", _) if denied:
            stage.exchange.permit(denied.pop())
        case ("restart", _):
            await stage.restart()
        case ("wait", seconds):
            await stage.settle(seconds)
    await asyncio.sleep(0)


@given(OPERATIONS)
@settings(max_examples=60)
@example([("stall", None), ("grow", 300), ("wait", 0.3), ("partition", False), ("go_on", None), ("heal", None)])
@example(
    [("deny", None), ("grow", 5), ("wait", 0.3), ("partition", True), ("permit", None), ("heal", None), ("grow", 2)]
)
@example([("deny", None), ("grow", 5), ("turn", None), ("partition", True), ("heal", None), ("permit", None)])
def test_publisher_without_a_mirror_loses_nothing_whatever_happens(
    in_virtual_time: Run, journal_of: Any, operations: list[tuple[str, Any]]
) -> None:
    async def story() -> None:
        async with Stage(journal_of(2)) as stage:
            denied: list[str] = []
            for operation in operations:
                await act(stage, denied, operation)
                assert stage.publisher.status().cursor <= stage.journal.size
            for name in ("go_on", "permit", "heal"):
                await act(stage, denied, (name, None))
            for _ in range(12):
                await stage.settle(RETRY_AFTER_S)
            assert stage.centre.contiguous == stage.journal.size
            assert set(stage.centre.on(TOPICS.event)) == set(stage.journal.all)
            assert stage.publisher.status().cursor == stage.journal.size
            assert stage.publisher.status().in_flight == 0

    in_virtual_time(story())


# ── The mirror ────────────────────────────────────────────────────────────────────────────────────────────────────────


def mirroring(stage: Stage, acknowledge: Any) -> None:
    """Let the centre keep entries and cosign each checkpoint whose entries it has, as a mirror does."""
    newest: list[str] = []

    def on_event(message: Message) -> None:
        if message.topic == TOPICS.checkpoint:
            newest[:] = [message.payload.decode()]
            size = int(newest[0].split("\n")[1])
            have = stage.centre.contiguous
            if size > have:
                stage.say(TOPICS.replay, json.dumps({"from": have, "to": size}).encode())
        if newest and int(newest[0].split("\n")[1]) == stage.centre.contiguous:
            stage.say(TOPICS.ack, acknowledge(newest.pop(), stage.mirror), retain=True)

    stage.centre.on_event = on_event


def test_publisher_with_a_mirror_counts_what_the_mirror_cosigned_and_nothing_else(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(0), mirror) as stage:
            await stage.settle(RETAINED_WITHIN_S)
            stage.grow(5)
            await stage.settle(1)
            assert stage.centre.indices == [0, 1, 2, 3, 4]
            assert stage.publisher.status().cursor == 0  # the broker has them all; that is no delivery
            note = acknowledge(stage.journal.checkpoint(), mirror)
            stage.say(TOPICS.ack, note, retain=True)
            await stage.settle()
            assert stage.publisher.status().cursor == 5
            assert stage.kept == [(5, note.decode())]
            assert stage.saved == []
            assert stage.faults == []

    in_virtual_time(story())


def test_publisher_resumes_at_the_retained_acknowledgement(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any
) -> None:
    async def story() -> None:
        journal = journal_of(6)
        stage = Stage(journal, mirror, cursor=2)
        await stage.start_centre()
        stage.say(TOPICS.ack, acknowledge(journal.checkpoint(), mirror), retain=True)
        journal.grow(3)
        stage.publisher.certified(9)
        await stage.start_table()
        assert stage.centre.indices == [6, 7, 8]
        assert [size for size, _ in stage.kept] == [6]
        await stage.__aexit__()

    in_virtual_time(story())


def test_publisher_mirror_that_went_back_gets_the_entries_again(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any
) -> None:
    async def story() -> None:
        journal = journal_of(4)
        older = acknowledge(journal.checkpoint(), mirror)
        journal.grow(4)
        stage = Stage(journal, mirror, cursor=8)
        await stage.start_centre()
        stage.say(TOPICS.ack, older, retain=True)
        await stage.start_table()
        assert stage.centre.indices == [4, 5, 6, 7]
        assert stage.publisher.status().cursor == 8  # what was cosigned stays cosigned
        assert stage.faults == []
        await stage.__aexit__()

    in_virtual_time(story())


def test_publisher_that_is_connected_again_resumes_at_once_when_the_acknowledgement_is_there(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(3), mirror) as stage:
            await stage.settle(RETAINED_WITHIN_S)
            stage.say(TOPICS.ack, acknowledge(stage.journal.checkpoint(), mirror), retain=True)
            await stage.settle()
            stage.grow(2)
            await stage.settle()
            before = asyncio.get_running_loop().time()
            stage.exchange.partition("t07")
            stage.exchange.heal("t07")
            await stage.settle()
            assert stage.centre.indices == [0, 1, 2, 3, 4, 3, 4]
            assert asyncio.get_running_loop().time() == before

    in_virtual_time(story())


def test_publisher_acknowledgement_that_comes_late_spares_what_was_not_sent_yet(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(1_000), mirror) as stage:
            stage.exchange.stall()
            await stage.settle(RETAINED_WITHIN_S)
            stage.publisher.on_message(Message(TOPICS.ack, acknowledge(stage.journal.checkpoint(), mirror)))
            stage.grow(1)
            stage.exchange.go_on()
            await stage.settle()
            assert stage.centre.indices == [*range(WINDOW), 1_000]

    in_virtual_time(story())


def test_publisher_without_a_retained_acknowledgement_waits_a_moment_and_begins(
    in_virtual_time: Run, journal_of: Any, mirror: Signer
) -> None:
    async def story() -> None:
        async with Stage(journal_of(3), mirror, cursor=1) as stage:
            assert stage.centre.indices == []
            await stage.settle(RETAINED_WITHIN_S)
            assert stage.centre.indices == [1, 2]

    in_virtual_time(story())


def test_publisher_acknowledgement_that_cannot_be_believed_changes_nothing(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(5), mirror) as stage:
            await stage.settle(RETAINED_WITHIN_S)
            checkpoint = stage.journal.checkpoint()
            good = acknowledge(checkpoint, mirror)
            stranger = Signer(mirror.name, b"\1" * 32, mirror.key_type)
            other_table = Signer("casino.example/table/t08/1", b"\2" * 32)
            lines = good.split(b"\n")
            refused = {
                "not UTF-8": b"\xff" + good,
                "empty": b"",
                "no note": b"5",
                "not cosigned": checkpoint.encode(),
                "cosigned by another": acknowledge(checkpoint, stranger),
                "without our signature": b"\n".join([*lines[:4], *lines[5:]]),
                "altered size": good.replace(b"\n5\n", b"\n4\n", 1),
                "of another journal": acknowledge(
                    checkpoint_of(stage.journal.signer, stage.journal, "old/t07/1"), mirror
                ),
                "of another table": acknowledge(checkpoint_of(other_table, stage.journal), mirror),
                "too long": good + b"x" * 70_000,
            }
            for payload in refused.values():
                stage.say(TOPICS.ack, payload)
                await stage.settle()
            assert stage.codes() == ["E-ACK-REFUSED"] * len(refused)
            assert stage.publisher.status().cursor == 0
            assert stage.kept == []
            stage.say(TOPICS.ack, good)
            await stage.settle()
            assert stage.publisher.status().cursor == 5

    in_virtual_time(story())


def checkpoint_of(signer: Signer, journal: Any, origin: str = "") -> str:
    """A checkpoint of the same size and root, by another key or of another origin."""
    text = f"{origin or signer.name}\n" + "\n".join(journal.checkpoint().split("\n")[1:3]) + "\n"
    return f"{text}\n{signer.sign(text).line}\n"


def test_publisher_acknowledgement_beyond_the_journal_shows_that_it_was_rolled_back(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any
) -> None:
    async def story() -> None:
        longer = journal_of(9)
        async with Stage(journal_of(5), mirror) as stage:
            stage.say(TOPICS.ack, acknowledge(longer.checkpoint(), mirror), retain=True)
            await stage.settle(RETAINED_WITHIN_S)
            assert stage.codes() == ["E-JOURNAL-ROLLED-BACK"]
            assert "cosigned 9 entries" in stage.faults[0].detail
            assert stage.publisher.status().halted == "E-JOURNAL-ROLLED-BACK"
            stage.grow(2)
            stage.publisher.set_document("state", b"degraded")
            await stage.settle(10)
            assert stage.centre.indices == []  # nothing is added to a history that is not the whole one
            assert stage.centre.on(TOPICS.state) == [b"degraded"]
            stage.exchange.partition("t07")
            stage.exchange.heal("t07")
            await stage.settle(10)
            assert stage.centre.indices == []

    in_virtual_time(story())


def test_publisher_acknowledgement_of_another_history_shows_a_fork(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any
) -> None:
    async def story() -> None:
        clone = journal_of(5, flavour="clone")
        async with Stage(journal_of(8), mirror) as stage:
            await stage.settle(RETAINED_WITHIN_S)
            before = len(stage.centre.indices)
            stage.say(TOPICS.ack, acknowledge(clone.checkpoint(), mirror))
            await stage.settle()
            assert stage.codes() == ["E-JOURNAL-FORKED"]
            assert stage.publisher.status().halted == "E-JOURNAL-FORKED"
            assert stage.publisher.status().cursor == 0
            stage.grow(2)
            await stage.settle(10)
            assert len(stage.centre.indices) == before

    in_virtual_time(story())


@given(OPERATIONS)
@settings(max_examples=60)
def test_publisher_with_a_mirror_ends_with_everything_cosigned_whatever_happens(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any, operations: list[tuple[str, Any]]
) -> None:
    async def story() -> None:
        async with Stage(journal_of(2), mirror) as stage:
            mirroring(stage, acknowledge)
            denied: list[str] = []
            for operation in operations:
                await act(stage, denied, operation)
                assert stage.publisher.status().cursor <= stage.centre.contiguous
            for name in ("go_on", "permit", "heal"):
                await act(stage, denied, (name, None))
            for _ in range(12):
                await stage.settle(RETRY_AFTER_S)
            stage.publisher.flush()
            await stage.settle(1)
            assert stage.centre.contiguous == stage.journal.size
            assert set(stage.centre.on(TOPICS.event)) == set(stage.journal.all)
            assert stage.publisher.status().cursor == stage.journal.size
            assert [size for size, _ in stage.kept] == sorted({size for size, _ in stage.kept})
            assert stage.codes() == []

    in_virtual_time(story())


# ── Replays ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_publisher_replay_sends_the_same_bytes_again(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(10)) as stage:
            await stage.settle()
            first = stage.centre.on(TOPICS.event)
            stage.say(TOPICS.replay, b'{"from": 3, "to": 6}')
            await stage.settle()
            assert stage.centre.indices == [*range(10), 3, 4, 5]
            assert stage.centre.on(TOPICS.event)[10:] == first[3:6]
            assert stage.publisher.status().cursor == 10
            assert stage.publisher.status().replays == 0

    in_virtual_time(story())


def test_publisher_long_replay_and_new_entries_share_the_window(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(2_000), cursor=2_000) as stage:
            stage.say(TOPICS.replay, b'{"from": 0, "to": 2000}')
            await asyncio.sleep(0)
            stage.grow(1_000)
            for _ in range(20):
                await stage.settle()
            sent = stage.centre.indices
            assert sorted(sent) == list(range(3_000))
            assert [index for index in sent if index < 2_000] == list(range(2_000))
            assert [index for index in sent if index >= 2_000] == list(range(2_000, 3_000))
            assert sent.index(2_000) < 500  # neither waits for the other to end
            assert sent.index(200) < 800

    in_virtual_time(story())


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"{}",
        b"[0, 3]",
        b"null",
        b'{"from": 0}',
        b'{"from": 0, "to": 3, "why": 1}',
        b'{"from": 0, "to": 11}',
        b'{"from": -1, "to": 3}',
        b'{"from": 3, "to": 3}',
        b'{"from": 5, "to": 3}',
        b'{"from": 0.0, "to": 3}',
        b'{"from": true, "to": 3}',
        b'{"from": "0", "to": "3"}',
        b'{"from": 0, "to": ' + b"9" * 250 + b"}",
        b'{"from": 0, "to": NaN}',
        b"[" * 200,
        b"\xff\xfe",
        b'{"from": 0, "to": 3}' + b" " * 300,
    ],
)
def test_publisher_replay_that_makes_no_sense_is_refused(
    in_virtual_time: Run, journal_of: Any, request_bytes: bytes
) -> None:
    async def story() -> None:
        async with Stage(journal_of(10)) as stage:
            await stage.settle()
            stage.say(TOPICS.replay, request_bytes)
            await stage.settle()
            assert stage.codes() == ["E-REPLAY-REFUSED"]
            assert stage.centre.indices == list(range(10))

    in_virtual_time(story())


@given(st.binary(max_size=300), st.integers(0, 50))
def test_parse_replay_of_any_bytes_is_refused_or_lies_within_the_journal(payload: bytes, size: int) -> None:
    try:
        wanted = parse_replay(payload, size)
    except ValueError:
        return
    assert 0 <= wanted.start < wanted.stop <= size


def test_publisher_replays_that_repeat_are_one_and_those_beyond_the_bound_are_refused(
    in_virtual_time: Run, journal_of: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(100)) as stage:
            await stage.settle()
            stage.exchange.stall()
            stage.grow(WINDOW)  # the window is full: replays wait
            await stage.settle()
            stage.exchange.deny("none")  # no effect on them
            for first in [*range(publisher_module.REPLAYS_BOUND), 0, 1, 2]:
                replay = json.dumps({"from": first, "to": first + 1}).encode()
                stage.publisher.on_message(Message(TOPICS.replay, replay))
            assert stage.publisher.status().replays == publisher_module.REPLAYS_BOUND
            assert stage.faults == []
            stage.publisher.on_message(Message(TOPICS.replay, b'{"from": 50, "to": 60}'))
            assert stage.codes() == ["E-REPLAY-REFUSED"]
            stage.exchange.go_on()
            await stage.settle()
            assert sorted(stage.centre.indices) == sorted([*range(300), *range(publisher_module.REPLAYS_BOUND)])

    in_virtual_time(story())


def test_publisher_replay_that_was_cut_off_is_forgotten_and_may_be_asked_for_again(
    in_virtual_time: Run, journal_of: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(500)) as stage:
            await stage.settle()
            stage.exchange.stall()
            stage.publisher.on_message(Message(TOPICS.replay, b'{"from": 0, "to": 500}'))
            await stage.settle()
            stage.exchange.partition("t07", losing=True)
            stage.exchange.go_on()
            stage.exchange.heal("t07")
            await stage.settle()
            assert stage.publisher.status().replays == 0
            assert stage.publisher.status().in_flight == 0
            assert stage.centre.indices == list(range(500))
            stage.say(TOPICS.replay, b'{"from": 0, "to": 500}')
            await stage.settle()
            assert stage.centre.indices == [*range(500), *range(500)]

    in_virtual_time(story())


# ── Retained: checkpoint and documents ────────────────────────────────────────────────────────────────────────────────


def test_publisher_checkpoint_is_published_once_a_second_and_the_last_one_always(
    in_virtual_time: Run, journal_of: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(1)) as stage:
            for _ in range(30):
                stage.grow(1)
                await stage.settle(0.1)
            await stage.settle(CHECKPOINT_EVERY_S)
            instants = [at for at, message in stage.centre.heard if message.topic == TOPICS.checkpoint]
            assert all(b - a >= CHECKPOINT_EVERY_S * 0.999 for a, b in pairwise(instants))
            assert len(instants) in (4, 5)
            assert stage.exchange.retained[TOPICS.checkpoint].payload == stage.journal.checkpoint().encode()

    in_virtual_time(story())


def test_publisher_flush_publishes_the_newest_checkpoint_at_once(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(1)) as stage:
            stage.grow(1)
            stage.publisher.flush()
            await stage.settle()
            stage.grow(1)
            stage.publisher.flush()
            await stage.settle()
            sizes = [payload.split(b"\n")[1] for payload in stage.centre.on(TOPICS.checkpoint)]
            assert sizes[-1] == b"3"
            assert b"2" in sizes
            assert asyncio.get_running_loop().time() == 0

    in_virtual_time(story())


def test_publisher_document_the_latest_wins_and_comes_again_on_each_connection(
    in_virtual_time: Run, journal_of: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(1)) as stage:
            for number in range(10):
                stage.publisher.set_document("display", b"%d" % number)
            await stage.settle()
            assert stage.centre.on(TOPICS.display)[-1] == b"9"
            assert len(stage.centre.on(TOPICS.display)) == 2  # the first was on its way; the others made one
            stage.publisher.set_document("state", lambda session: b"game in session %d" % session)
            await stage.settle()
            stage.exchange.partition("t07")
            stage.publisher.set_document("display", b"while away")
            stage.exchange.heal("t07")
            await stage.settle()
            assert stage.exchange.retained[TOPICS.display].payload == b"while away"
            assert stage.centre.on(TOPICS.state) == [b"game in session 1", b"game in session 2"]
            assert TOPICS.description not in stage.exchange.retained

    in_virtual_time(story())


def test_publisher_document_that_is_refused_is_tried_again(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(1)) as stage:
            stage.exchange.deny(TOPICS.description)
            stage.publisher.set_document("description", b"what I am")
            await stage.settle(2 * RETRY_AFTER_S)
            assert stage.centre.on(TOPICS.description) == []
            stage.exchange.permit(TOPICS.description)
            await stage.settle(RETRY_AFTER_S)
            assert stage.centre.on(TOPICS.description) == [b"what I am"]

    in_virtual_time(story())


# ── The end ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_publisher_drain_returns_when_everything_is_acknowledged(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(1)) as stage:
            stage.grow(700)
            stage.publisher.set_document("state", b"closed")
            assert await stage.publisher.drain()
            await stage.settle()
            assert stage.centre.indices == list(range(701))
            assert stage.exchange.retained[TOPICS.state].payload == b"closed"
            assert stage.exchange.retained[TOPICS.checkpoint].payload == stage.journal.checkpoint().encode()
            assert asyncio.get_running_loop().time() == 0

    in_virtual_time(story())


def test_publisher_drain_without_a_broker_ends_in_time_and_says_no(in_virtual_time: Run, journal_of: Any) -> None:
    async def story() -> None:
        async with Stage(journal_of(1)) as stage:
            stage.exchange.partition("t07")
            stage.grow(5)
            assert not await stage.publisher.drain(2.0)
            assert asyncio.get_running_loop().time() == pytest.approx(2.0)
            assert stage.publisher.status().waiting == 5

    in_virtual_time(story())


def test_publisher_drain_counts_what_a_lost_connection_took_back(
    in_virtual_time: Run, journal_of: Any, mirror: Signer
) -> None:
    async def story() -> None:
        async with Stage(journal_of(5), mirror) as stage:
            await stage.settle(RETAINED_WITHIN_S)
            assert await stage.publisher.drain()
            stage.exchange.partition("t07")
            stage.exchange.heal("t07")
            assert not await stage.publisher.drain(RETAINED_WITHIN_S / 2)  # it still waits for the acknowledgement
            assert await stage.publisher.drain()
            assert stage.centre.indices == [*range(5), *range(5)]

    in_virtual_time(story())


# ── Witnesses ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CAISSE = Signer("caisse.example/witness", bytes(range(32)), KeyType.COSIGNATURE)


def test_publisher_keeps_the_line_of_a_witness_and_delivers_by_the_mirror_alone(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(10), mirror, witnesses={"caisse": CAISSE}) as stage:
            line = acknowledge(stage.journal.checkpoint(), CAISSE)
            stage.say(TOPICS.witness("caisse"), line, retain=True)
            await stage.settle()
            assert stage.witnessed == [("caisse.example/witness", 10, line.decode())]
            assert stage.kept == []
            assert stage.publisher.status().cursor == 0
            stage.say(TOPICS.witness("caisse"), line, retain=True)
            await stage.settle()
            assert len(stage.witnessed) == 1

    in_virtual_time(story())


def test_publisher_that_a_witness_contradicts_stops_as_for_the_mirror(
    in_virtual_time: Run, journal_of: Any, acknowledge: Any
) -> None:
    async def story() -> None:
        for entries, flavour, code in ((12, "", "E-JOURNAL-ROLLED-BACK"), (10, "other", "E-JOURNAL-FORKED")):
            async with Stage(journal_of(10), None, witnesses={"caisse": CAISSE}) as stage:
                line = acknowledge(journal_of(entries, flavour).checkpoint(), CAISSE)
                stage.say(TOPICS.witness("caisse"), line, retain=True)
                await stage.settle()
                assert stage.codes() == [code]
                assert stage.publisher.status().halted == code
                assert stage.witnessed == []

    in_virtual_time(story())


def test_publisher_refuses_the_line_of_a_witness_that_another_one_signed(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, acknowledge: Any
) -> None:
    async def story() -> None:
        async with Stage(journal_of(10), mirror, witnesses={"caisse": CAISSE}) as stage:
            stage.say(TOPICS.witness("caisse"), acknowledge(stage.journal.checkpoint(), mirror), retain=True)
            stage.say(TOPICS.ack, acknowledge(stage.journal.checkpoint(), CAISSE), retain=True)
            await stage.settle()
            assert stage.codes() == ["E-ACK-REFUSED", "E-ACK-REFUSED"]
            assert (stage.kept, stage.witnessed) == ([], [])

    in_virtual_time(story())


# ── Nothing is sent that no published checkpoint covers ───────────────────────────────────────────────────────────────


def covered(centre: Centre) -> bool:
    """Whether each entry came after a checkpoint that covers it."""
    size = 0
    for _, message in centre.heard:
        if message.topic == TOPICS.checkpoint:
            size = max(size, int(message.payload.split(b"\n")[1]))
        elif message.topic == TOPICS.event and int(json.loads(message.payload)["id"]) >= size:
            return False
    return True


@given(steps=st.lists(st.tuples(st.integers(1, 90), st.sampled_from([0.0, 0.01, 0.3, 1.0])), min_size=1, max_size=12))
@settings(max_examples=30)
def test_publisher_with_a_mirror_sends_no_entry_before_a_checkpoint_that_covers_it(
    in_virtual_time: Run, journal_of: Any, mirror: Signer, steps: list[tuple[int, float]]
) -> None:
    async def story() -> None:
        async with Stage(journal_of(), mirror) as stage:
            await stage.settle(RETAINED_WITHIN_S)
            for count, pause_s in steps:
                stage.grow(count)
                await stage.settle(pause_s)
            await stage.settle(3 * CHECKPOINT_EVERY_S)
            assert stage.centre.contiguous == stage.journal.size
            assert covered(stage.centre)

    in_virtual_time(story())


def test_publisher_with_a_mirror_holds_entries_back_until_the_next_checkpoint_and_no_longer(
    in_virtual_time: Run, journal_of: Any, mirror: Signer
) -> None:
    async def story() -> None:
        async with Stage(journal_of(1), mirror) as stage:
            await stage.settle(RETAINED_WITHIN_S)
            stage.grow(1)
            await stage.settle()
            stage.grow(5)
            await stage.settle()
            assert stage.centre.contiguous == 2
            await stage.settle(CHECKPOINT_EVERY_S)
            assert stage.centre.contiguous == 7
            stage.grow(5)
            stage.publisher.flush()
            await stage.settle()
            assert stage.centre.contiguous == 12

    in_virtual_time(story())
