"""One retained topic by itself: when it is settled, and which timer counts."""

import asyncio
from collections.abc import Callable
from typing import Any

from controller.delivery.bus import Disconnected, Message, Refused
from controller.delivery.retained import RETRY_AFTER_S, Retained
from tests.virtual import time_passes

Run = Callable[[Any], Any]


class Line:
    """A bus that notes what is published, with the instant, and answers when it is told to."""

    def __init__(self) -> None:
        self.connected = True
        self.sent: list[tuple[float, bytes]] = []
        self.futures: list[asyncio.Future[None]] = []

    def publish(self, message: Message) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        self.sent.append((loop.time(), message.payload))
        self.futures.append(loop.create_future())
        return self.futures[-1]

    async def answer(self, error: Exception | None = None) -> None:
        if error is None:
            self.futures[-1].set_result(None)
        else:
            self.futures[-1].set_exception(error)
        await asyncio.sleep(0)


def retained_on(line: Any, payloads: list[bytes | None], pause_s: float = 0.0) -> Retained:
    return Retained(line, "a/b", lambda: payloads[-1], content_type="text/plain", pause_s=pause_s, done=lambda: None)


def test_topic_is_settled_before_anything_changed_and_after_the_answer(in_virtual_time: Run) -> None:
    async def story() -> None:
        line = Line()
        retained = retained_on(line, [b"one"])
        assert retained.settled
        retained.changed()
        assert not retained.settled, "it is on its way"
        await line.answer()
        assert retained.settled

    in_virtual_time(story())


def test_topic_that_changed_without_a_connection_is_not_settled(in_virtual_time: Run) -> None:
    async def story() -> None:
        line = Line()
        line.connected = False
        retained = retained_on(line, [b"one"])
        retained.changed()
        assert not retained.settled
        assert line.sent == []

    in_virtual_time(story())


def test_topic_that_changes_on_its_way_is_sent_once_more(in_virtual_time: Run) -> None:
    async def story() -> None:
        line, payloads = Line(), [b"one"]
        retained = retained_on(line, [*payloads])
        retained.changed()
        retained.changed()
        retained.changed()
        assert len(line.sent) == 1
        await line.answer()
        assert len(line.sent) == 2
        await line.answer()
        assert retained.settled
        assert len(line.sent) == 2

    in_virtual_time(story())


def test_timer_that_was_given_up_wakes_nobody(in_virtual_time: Run) -> None:
    async def story() -> None:
        line = Line()
        retained = retained_on(line, [b"one"], pause_s=1.0)
        retained.changed()
        await line.answer()
        await time_passes(0.25)
        retained.rest()
        retained.changed()
        await line.answer()
        retained.changed()
        await time_passes(2.0)
        assert [instant for instant, _ in line.sent] == [0.0, 0.25, 1.25]

    in_virtual_time(story())


def test_pause_and_retry_are_one_timer_of_which_the_later_counts(in_virtual_time: Run) -> None:
    async def story() -> None:
        line = Line()
        retained = retained_on(line, [b"one"], pause_s=1.0)
        retained.changed()
        await line.answer(Refused())
        assert not retained.settled
        await time_passes(RETRY_AFTER_S + 1.0)
        assert [instant for instant, _ in line.sent] == [0.0, RETRY_AFTER_S]

    in_virtual_time(story())


def test_topic_whose_connection_was_lost_waits_for_no_timer(in_virtual_time: Run) -> None:
    async def story() -> None:
        line = Line()
        retained = retained_on(line, [b"one"])
        retained.changed()
        line.connected = False
        await line.answer(Disconnected())
        line.connected = True
        retained.hurry()
        assert [instant for instant, _ in line.sent] == [0.0, 0.0]

    in_virtual_time(story())


def test_topic_without_a_payload_sends_nothing_and_is_settled(in_virtual_time: Run) -> None:
    async def story() -> None:
        line = Line()
        retained = retained_on(line, [None])
        retained.changed()
        assert line.sent == []
        assert retained.settled

    in_virtual_time(story())
