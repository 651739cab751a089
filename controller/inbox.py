"""The one door through which everything reaches the table: bounded, and in one order.

There are two lanes. What devices, keys, timers and staff say goes first, because "rien ne va plus" must not queue
behind a burst of stakes: a stake counts only if it was certified before that instant, so letting the cut-off pass is
the safe side. Within a lane the order is that of arrival.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from games.rules import Fact, Input
from games.signals import PostRequest

POST_LANE_BOUND = 4_096
"""Post requests that may wait. One more is refused with E-INBOX-FULL: the post is told, and may repeat its request."""

STAFF_LANE_BOUND = 4_096
"""Observations, orders and timers that may wait. They come at human and mechanical pace: reaching this is a fault."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an input led to. The facts are certified: entry ``first_index`` and those that follow it."""

    first_index: int
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Letter:
    """An input, and who wants to know what became of it (called once, after the commit)."""

    signal: Input
    done: Callable[[Outcome], None] | None = None


class Door(Protocol):
    """Where an input is let in."""

    def put(self, signal: Input, done: Callable[[Outcome], None] | None = None) -> None:
        """Take an input. Raises InboxFullError when there is no room for it."""
        ...


class InboxFullError(Exception):
    """The lane has reached its bound; nothing was taken."""


class Inbox:
    """Letters waiting for the table. Only the event loop's thread may touch it."""

    def __init__(self) -> None:
        self._staff: deque[Letter] = deque()
        self._posts: deque[Letter] = deque()
        self._something = asyncio.Event()

    def __len__(self) -> int:
        return len(self._staff) + len(self._posts)

    @property
    def urgent(self) -> bool:
        """Whether something waits in the staff lane."""
        return bool(self._staff)

    def put(self, signal: Input, done: Callable[[Outcome], None] | None = None) -> None:
        """Queue an input. Raises InboxFullError when its lane is full."""
        is_post = isinstance(signal, PostRequest)
        lane, bound = (self._posts, POST_LANE_BOUND) if is_post else (self._staff, STAFF_LANE_BOUND)
        if len(lane) >= bound:
            raise InboxFullError(f"{'post' if is_post else 'staff'} lane holds {bound} inputs")
        lane.append(Letter(signal, done))
        self._something.set()

    async def wait(self) -> None:
        """Return when at least one letter waits."""
        await self._something.wait()

    def take(self) -> Letter | None:
        """The next letter, staff lane first, or None."""
        lane = self._staff or self._posts
        if not lane:
            self._something.clear()
            return None
        return lane.popleft()
