"""The bus: which filter hears which topic, and the broker in memory that the simulation plays on."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import topic_matches_sub

from controller.delivery import bus as bus_module
from controller.delivery.bus import (
    Backpressure,
    Disconnected,
    MemoryBus,
    MemoryExchange,
    Message,
    NotPublishedError,
    Refused,
    Routes,
    matches,
)
from tests.virtual import time_passes

Run = Callable[[Any], Any]

LEVELS = st.lists(st.sampled_from(["a", "b", "", "$x", "up"]), min_size=1, max_size=4)
PATTERNS = st.lists(st.sampled_from(["a", "b", "", "$x", "+"]), min_size=1, max_size=4)


class Log:
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_message(self, message: Message) -> None:
        self.heard.append(message)

    def on_connected(self) -> None:
        self.heard.append("connected")

    def on_disconnected(self) -> None:
        self.heard.append("disconnected")


class Members:
    """Clients of one exchange that run until the test is over."""

    def __init__(self) -> None:
        self.exchange = MemoryExchange()
        self.tasks: list[asyncio.Task[None]] = []

    async def join(self, name: str, *filters: str, will: Message | None = None) -> tuple[MemoryBus, Log]:
        bus, log = self.exchange.bus(name, None if will is None else lambda session: will), Log()
        bus.attach(log, filters)
        self.tasks.append(asyncio.get_running_loop().create_task(bus.run()))
        await turns()
        return bus, log

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)


async def turns() -> None:
    """Let everything that can happen now happen."""
    for _ in range(8):
        await asyncio.sleep(0)


# ── Filters ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(PATTERNS, st.booleans(), LEVELS)
def test_matches_any_filter_and_topic_agrees_with_another_implementation(
    pattern: list[str], open_ended: bool, topic: list[str]
) -> None:
    wanted = "/".join([*pattern, "#"] if open_ended else pattern)
    name = "/".join(topic)
    expected = topic_matches_sub(wanted, name)
    if name.startswith("$") and not wanted.startswith("$"):
        expected = False  # MQTT 5, section 4.7.2
    assert matches(wanted, name) == expected


@pytest.mark.parametrize(
    ("pattern", "topic", "heard"),
    [
        ("sport/#", "sport", True),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/uptime", False),
        ("$SYS/#", "$SYS/uptime", True),
    ],
)
def test_matches_the_examples_of_the_standard_agree(pattern: str, topic: str, heard: bool) -> None:
    assert matches(pattern, topic) is heard


def test_routes_listener_with_two_matching_filters_hears_a_message_once() -> None:
    routes, log, other = Routes(), Log(), Log()
    routes.add(log, ["a/+", "a/b"])
    routes.add(other, ["c"])
    routes.deliver(Message("a/b", b"1"))
    routes.deliver(Message("a/b", b"2"))
    assert [message.payload for message in log.heard] == [b"1", b"2"]
    assert other.heard == []
    assert routes.filters == ["a/+", "a/b", "c"]


def test_routes_more_topics_than_are_remembered_are_still_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "ROUTE_CACHE_BOUND", 2)
    routes, log = Routes(), Log()
    routes.add(log, ["a/+"])
    for _ in range(2):
        for name in ("a/1", "a/2", "a/3"):
            routes.deliver(Message(name, b""))
    assert [message.topic for message in log.heard] == ["a/1", "a/2", "a/3"] * 2


# ── The broker in memory ──────────────────────────────────────────────────────────────────────────────────────────────


def test_exchange_message_arrives_at_who_listens_and_the_sender_is_told(in_virtual_time: Run) -> None:
    async def story() -> None:
        members = Members()
        table, _ = await members.join("t07")
        _, log = await members.join("centre", "t/+/up")
        _, deaf = await members.join("other", "x")
        future = table.publish(Message("t/7/up", b"one", content_type="text/plain"))
        assert not future.done()
        await future
        await turns()
        assert log.heard == ["connected", Message("t/7/up", b"one", content_type="text/plain")]
        assert deaf.heard == ["connected"]
        await members.leave()

    in_virtual_time(story())


def test_exchange_messages_of_one_sender_arrive_in_order(in_virtual_time: Run) -> None:
    async def story() -> None:
        members = Members()
        table, _ = await members.join("t07")
        _, log = await members.join("centre", "#")
        for number in range(50):
            table.publish(Message("t", b"%d" % number))
        await turns()
        assert [message.payload for message in log.heard[1:]] == [b"%d" % number for number in range(50)]
        await members.leave()

    in_virtual_time(story())


def test_exchange_retained_message_meets_who_comes_later_until_it_is_cleared(in_virtual_time: Run) -> None:
    async def story() -> None:
        members = Members()
        table, _ = await members.join("t07")
        await table.publish(Message("s", b"old", retain=True))
        await table.publish(Message("s", b"new", retain=True))
        _, late = await members.join("late", "s")
        assert late.heard == ["connected", Message("s", b"new", retain=True)]
        await table.publish(Message("s", b"", retain=True))
        _, later = await members.join("later", "s")
        assert later.heard == ["connected"]
        await members.leave()

    in_virtual_time(story())


def test_exchange_partition_fails_what_is_in_flight_and_publishes_the_will(in_virtual_time: Run) -> None:
    async def story(losing: bool) -> list[bytes]:
        members = Members()
        table, log = await members.join("t07", will=Message("state", b"lost", retain=True))
        _, centre = await members.join("centre", "state", "event")
        future = table.publish(Message("event", b"1"))
        members.exchange.partition("t07", losing=losing)
        assert isinstance(future.exception(), Disconnected)
        assert isinstance(table.publish(Message("event", b"2")).exception(), Disconnected)
        await turns()
        assert log.heard == ["connected", "disconnected"]
        assert members.exchange.retained["state"].payload == b"lost"
        members.exchange.heal("t07")
        await turns()
        assert log.heard == ["connected", "disconnected", "connected"]
        assert table.session == 2
        await members.leave()
        return [message.payload for message in centre.heard if isinstance(message, Message)]

    assert sorted(in_virtual_time(story(losing=False))) == [b"1", b"lost"]  # unknown to the sender, it arrived
    assert in_virtual_time(story(losing=True)) == [b"lost"]  # and here it did not


def test_exchange_denied_topic_is_refused_until_it_is_permitted(in_virtual_time: Run) -> None:
    async def story() -> None:
        members = Members()
        table, _ = await members.join("t07")
        _, log = await members.join("centre", "#")
        members.exchange.deny("t/+/event")
        with pytest.raises(Refused, match="Not authorized"):
            await table.publish(Message("t/7/event", b"1"))
        members.exchange.permit("t/+/event")
        await table.publish(Message("t/7/event", b"2"))
        await turns()
        assert [message.payload for message in log.heard[1:]] == [b"2"]
        await members.leave()

    in_virtual_time(story())


def test_exchange_that_hangs_answers_nothing_and_then_everything_in_order(in_virtual_time: Run) -> None:
    async def story() -> None:
        members = Members()
        table, _ = await members.join("t07")
        _, log = await members.join("centre", "#")
        members.exchange.stall()
        futures = [table.publish(Message("t", b"%d" % number)) for number in range(3)]
        late, late_log = await members.join("late", "#")
        await turns()
        assert not any(future.done() for future in futures)
        assert (late.connected, late_log.heard) == (False, [])
        members.exchange.go_on()
        await turns()
        assert all(future.done() and future.exception() is None for future in futures)
        assert [message.payload for message in log.heard[1:]] == [b"0", b"1", b"2"]
        assert late.connected
        await members.leave()

    in_virtual_time(story())


def test_exchange_expired_message_is_not_delivered(in_virtual_time: Run) -> None:
    async def story() -> None:
        members = Members()
        table, _ = await members.join("t07")
        _, log = await members.join("centre", "#")
        members.exchange.stall()
        table.publish(Message("t", b"short", expiry_s=10, retain=True))
        table.publish(Message("t", b"long", expiry_s=30))
        await time_passes(20)
        members.exchange.go_on()
        await turns()
        assert [message.payload for message in log.heard[1:]] == [b"long"]
        _, late = await members.join("late", "#")
        assert late.heard == ["connected"]
        await members.leave()

    in_virtual_time(story())


def test_bus_queue_that_is_full_takes_no_more_and_says_so(in_virtual_time: Run) -> None:
    async def story() -> None:
        members = Members()
        table, _ = await members.join("t07")
        members.exchange.stall()
        room = bus_module.IN_FLIGHT_WINDOW + bus_module.QUEUE_BOUND
        futures = [table.publish(Message("t", b"")) for _ in range(room)]
        assert isinstance(table.publish(Message("t", b"")).exception(), Backpressure)
        members.exchange.go_on()
        await asyncio.gather(*futures)
        await table.publish(Message("t", b""))
        await members.leave()

    in_virtual_time(story())


def test_exchange_second_client_of_one_name_takes_the_first_ones_place(in_virtual_time: Run) -> None:
    async def story() -> None:
        members = Members()
        first, log = await members.join("t07")
        second, _ = await members.join("t07")
        assert (first.connected, second.connected) == (False, True)
        assert log.heard == ["connected", "disconnected"]
        await members.leave()

    in_virtual_time(story())


def test_bus_that_is_stopped_leaves_no_will_behind(in_virtual_time: Run) -> None:
    async def story() -> None:
        members = Members()
        _, log = await members.join("t07", will=Message("state", b"lost", retain=True))
        await members.leave()
        assert log.heard == ["connected", "disconnected"]
        assert members.exchange.retained == {}

    in_virtual_time(story())


@pytest.mark.parametrize("error", [Refused, Disconnected, Backpressure])
def test_not_published_each_reason_has_its_own_code(error: type[NotPublishedError]) -> None:
    assert error.code.startswith("E-MQTT-")
    assert error.code != NotPublishedError.code
