"""Delivers the journal to the centre. The journal is the outbox: nothing waits for delivery in memory.

      0 ───────────── cursor ─────────── next ─────────────── size
      │ acknowledged    │ sent, window ≤ 200 │ waits in the journal │

With a mirror, the cursor is the size that the mirror cosigned (certification notes, 7.3): the only acknowledgement that
is one. Without, it is the size that the broker acknowledged without a gap. A connection that is lost takes everything
unacknowledged back: ``next`` returns to the cursor, and the same bytes are sent again. The receiver knows a repeat by
the entry's index and its hash. So nothing is lost, and what comes twice has no second effect.

With a mirror, an entry is sent when a published checkpoint covers it, and not before. What the mirror holds is then
always signed for: if the disk of the table forgets its last second, the mirror has nothing of that second, or all that
was signed; it never holds an unsigned entry that the healed table must contradict.

On each connection the retained acknowledgement is awaited for a moment, and sending resumes at its size. Answers to
posts go first: they are published where they arise, while entries wait for the turn of ``run`` and never take more than
half of the connection's window.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

from controller.certify.faults import NoteFault
from controller.certify.log_keys import LogKeys
from controller.certify.note import Verifier
from controller.delivery.bus import Bus, BusFault, Message, NotPublishedError, Refused
from controller.delivery.centre import Acknowledgement, open_acknowledgement, parse_replay
from controller.delivery.retained import RETRY_AFTER_S, Retained
from controller.delivery.topics import Topics

WINDOW = 200
"""Entries sent and not yet acknowledged by the broker, at the most."""

TURN_BOUND = 64
"""Entries sent in one turn of the event loop, so that a long catching up delays nothing else."""

CHECKPOINT_EVERY_S = 1.0
"""A checkpoint is published at most once in this time, but for ``flush``."""

RETAINED_WITHIN_S = 1.0
"""How long a new connection waits for the retained acknowledgement; there may be none."""

SAVE_EVERY_S = 1.0
"""Without a mirror, the cursor is saved at most once in this time; what was not saved is sent again, once."""

REPLAYS_BOUND = 16
"""Replays that wait. The centre asks for one gap at a time; one more is refused, and it will ask again."""

DRAIN_WITHIN_S = 3.0
"""Patience for the last acknowledgements when the program ends."""

EVENT_TYPE = "application/cloudevents+json"
DOCUMENT_TYPE = "application/json"
CHECKPOINT_TYPE = "text/plain; charset=utf-8"

BROKER_CURSOR = "broker"
"""The name under which the cursor is saved when there is no mirror."""

DocumentName = Literal["state", "description", "display"]
Document = bytes | Callable[[int], bytes]
"""A payload, or what makes it from the session number of the connection on which it is published."""


class Outbox(Protocol):
    """The committed entries of the journal."""

    @property
    def size(self) -> int:
        """How many entries are certified."""
        ...

    def leaves(self, start: int, stop: int) -> Iterable[bytes]:
        """The entries ``start`` to ``stop - 1``."""
        ...

    def checkpoint(self) -> str:
        """The note of the newest checkpoint."""
        ...

    def root(self, size: int) -> bytes:
        """The root over the first ``size`` entries."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherStatus:
    """How far delivery has come. ``waiting`` entries are not acknowledged; ``halted`` is the code that stopped it."""

    connected: bool
    size: int
    cursor: int
    waiting: int
    in_flight: int
    refused: int
    replays: int
    halted: str | None


class Publisher:
    """The table's outgoing side. Only the event loop's thread may call it.

    ``own`` are the table's keys, ``mirror`` is the mirror's, and ``witnesses`` are those of whoever else cosigns, by
    the names of their topics. ``cursor`` is where delivery stood when it was last saved: by ``keep_acknowledgement``
    with a mirror, by ``save_cursor(name, size)`` without. ``keep_acknowledgement`` is also given the witnesses' lines.
    """

    def __init__(
        self,
        *,
        reader: Outbox,
        bus: Bus,
        topics: Topics,
        own: LogKeys,
        mirror: Verifier | None,
        witnesses: Mapping[str, Verifier],
        cursor: int,
        save_cursor: Callable[[str, int], None],
        keep_acknowledgement: Callable[[Acknowledgement], None],
        on_fault: Callable[[BusFault], None],
    ) -> None:
        self._reader = reader
        self._bus = bus
        self._topics = topics
        self._own = own
        self._cosigners = {topics.witness(name): witness for name, witness in witnesses.items()}
        self._mirror = mirror
        if mirror is not None:
            self._cosigners[topics.ack] = mirror
        self._size = reader.size
        self._cursor = self._saved = self._next = min(cursor, self._size)
        self._covered = 0  # entries under the checkpoint that was published last
        self._save_cursor = save_cursor
        self._keep_acknowledgement = keep_acknowledgement
        self._on_fault = on_fault
        self._sending = False
        self._halted: str | None = None
        self._in_flight: dict[int, None] = {}  # entries of the live stream, in the order in which they were sent
        self._replaying = 0
        self._held: int | None = None  # the first entry that was refused
        self._refused = 0
        self._replays: deque[range] = deque()
        self._last_acks: dict[str, bytes] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._stirred = asyncio.Event()
        self._settled = asyncio.Event()
        self._documents: dict[str, Document] = {}
        self._retained = {name: self._retain(name, topic) for name, topic in document_topics(topics).items()}
        self._checkpoint = Retained(
            bus,
            topics.checkpoint,
            self._newest_checkpoint,
            content_type=CHECKPOINT_TYPE,
            pause_s=CHECKPOINT_EVERY_S,
            done=self._settled.set,
        )
        bus.attach(self, (topics.replay, *self._cosigners))

    # ── What the daemon says ──────────────────────────────────────────────────────────────────────────────────────────

    def certified(self, size: int) -> None:
        """The journal now has ``size`` entries."""
        self._size = size
        self._checkpoint.changed()
        self._stirred.set()

    def flush(self) -> None:
        """Publish the newest checkpoint now."""
        self._checkpoint.hurry()

    def set_document(self, name: DocumentName, document: Document) -> None:
        """Publish a retained document, now and on each new connection. The latest wins."""
        self._documents[name] = document
        self._retained[name].changed()

    def status(self) -> PublisherStatus:
        """A snapshot."""
        return PublisherStatus(
            connected=self._bus.connected,
            size=self._size,
            cursor=self._cursor,
            waiting=self._size - self._cursor,
            in_flight=len(self._in_flight) + self._replaying,
            refused=self._refused,
            replays=len(self._replays),
            halted=self._halted,
        )

    async def run(self) -> None:
        """Send what there is to send, until cancelled."""
        try:
            while True:
                await self._stirred.wait()
                self._stirred.clear()
                self._send_turn()
        finally:
            self._stop()

    async def drain(self, within_s: float = DRAIN_WITHIN_S) -> bool:
        """Publish the newest checkpoint and wait until the broker has acknowledged all; False when it did not."""
        self.flush()
        try:
            async with asyncio.timeout(within_s):
                while not self._all_settled():
                    self._settled.clear()
                    await self._settled.wait()
        except TimeoutError:
            return False
        return True

    def _all_settled(self) -> bool:
        sent = self._next == self._size and not self._in_flight and not self._replays and not self._replaying
        return sent and all(one.settled for one in (self._checkpoint, *self._retained.values()))

    # ── What the bus says ─────────────────────────────────────────────────────────────────────────────────────────────

    def on_connected(self) -> None:
        """See ``Listener``."""
        for document in self._retained.values():
            document.hurry()
        self._checkpoint.hurry()
        if self._mirror is None:
            self._begin(self._cursor)
        else:
            self._after(RETAINED_WITHIN_S, "begin", lambda: self._begin(self._cursor))

    def on_disconnected(self) -> None:
        """See ``Listener``: what was not acknowledged will be sent again, replays will be asked for again."""
        self._sending = False
        self._cancel("begin")
        self._cancel("retry")
        for retained in (self._checkpoint, *self._retained.values()):
            retained.rest()
        self._in_flight.clear()
        self._replays.clear()
        self._held = None
        self._last_acks.clear()
        self._next = self._cursor
        self._settled.set()

    def on_message(self, message: Message) -> None:
        """See ``Listener``."""
        if message.topic == self._topics.replay:
            self._on_replay(message.payload)
        elif message.payload != self._last_acks.get(message.topic):
            self._last_acks[message.topic] = message.payload
            self._on_ack(message.payload, self._cosigners[message.topic])

    def _on_ack(self, payload: bytes, cosigner: Verifier) -> None:
        try:
            ack = open_acknowledgement(payload, self._own, cosigner)
        except NoteFault as fault:
            self._on_fault(BusFault("E-ACK-REFUSED", f"{fault.detail} ({fault.code})"))
            return
        if ack.size > self._size:
            detail = f"{cosigner.name} cosigned {ack.size} entries that this table signed, the journal has {self._size}"
            self._halt("E-JOURNAL-ROLLED-BACK", detail)
        elif self._reader.root(ack.size) != ack.root:
            detail = f"the {ack.size} entries that {cosigner.name} cosigned are not the first {ack.size} of the journal"
            self._halt("E-JOURNAL-FORKED", detail)
        elif cosigner is self._mirror:
            self._on_good_ack(ack)
        else:
            self._keep_acknowledgement(ack)

    def _on_good_ack(self, ack: Acknowledgement) -> None:
        if ack.size > self._cursor:
            self._cursor = ack.size
            self._keep_acknowledgement(ack)
        if "begin" in self._timers:
            self._begin(ack.size)
        elif ack.size > self._next:
            self._next = ack.size
        self._stirred.set()

    def _on_replay(self, payload: bytes) -> None:
        try:
            wanted = parse_replay(payload, self._size)
        except ValueError as error:
            self._on_fault(BusFault("E-REPLAY-REFUSED", str(error)))
            return
        if any(wanted.start >= waiting.start and wanted.stop <= waiting.stop for waiting in self._replays):
            return  # asked twice
        if len(self._replays) >= REPLAYS_BOUND:
            self._on_fault(BusFault("E-REPLAY-REFUSED", f"{REPLAYS_BOUND} replays wait already"))
            return
        self._replays.append(wanted)
        self._stirred.set()

    # ── Sending ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, resume: int) -> None:
        self._cancel("begin")
        if self._halted is None:
            self._next = resume
            self._sending = True
            self._stirred.set()

    def _send_turn(self) -> None:
        """Send as far as the window allows. Half the room is for a replay that waits, since it closes a gap."""
        if not self._sending or not self._bus.connected:
            return
        room = max(1, min(WINDOW, self._bus.window // 2)) - len(self._in_flight) - self._replaying
        room = max(0, min(room, TURN_BOUND))
        limit = self._size if self._mirror is None else self._covered
        stop = max(self._next, min(self._next + (room + 1) // 2 if self._replays else self._next + room, limit))
        for index, leaf in enumerate(self._reader.leaves(self._next, stop), self._next):
            self._in_flight[index] = None
            self._publish(leaf).add_done_callback(partial(self._answered, index))
        rest = room - (stop - self._next)
        self._next = stop
        while self._replays and rest > 0:
            rest -= self._send_replay(rest)
        if room and (self._next < limit or self._replays):
            asyncio.get_running_loop().call_soon(self._stirred.set)

    def _send_replay(self, room: int) -> int:
        """Send the beginning of the replay that waits longest; returns how many entries that was."""
        wanted = self._replays.popleft()
        stop = min(wanted.start + room, wanted.stop)
        for leaf in self._reader.leaves(wanted.start, stop):
            self._replaying += 1
            self._publish(leaf).add_done_callback(self._replayed)
        if stop < wanted.stop:
            self._replays.appendleft(range(stop, wanted.stop))
        return stop - wanted.start

    def _publish(self, leaf: bytes) -> asyncio.Future[None]:
        return self._bus.publish(Message(self._topics.event, leaf, content_type=EVENT_TYPE))

    def _answered(self, index: int, future: asyncio.Future[None]) -> None:
        """The broker answered for an entry of the live stream."""
        if index not in self._in_flight:  # the connection was lost meanwhile, and the entry was taken back
            return
        del self._in_flight[index]
        error = future.exception()
        if isinstance(error, NotPublishedError):
            self._hold(index, error)
        elif self._mirror is None:
            self._advance()
        self._stirred.set()
        self._settled.set()

    def _replayed(self, future: asyncio.Future[None]) -> None:
        """The broker answered for an entry of a replay. What it refused, the centre will miss, and ask for again."""
        self._replaying -= 1
        self._refused += isinstance(future.exception(), Refused)
        self._stirred.set()
        self._settled.set()

    def _hold(self, index: int, error: NotPublishedError) -> None:
        """An entry was refused: stop, let what is in flight be answered, and begin again from that entry."""
        self._refused += isinstance(error, Refused)
        self._held = index if self._held is None else min(self._held, index)
        self._sending = False
        self._after(RETRY_AFTER_S, "retry", self._retry)

    def _retry(self) -> None:
        if self._in_flight or self._held is None:
            self._after(RETRY_AFTER_S, "retry", self._retry)
            return
        held, self._held = self._held, None
        self._begin(max(held, self._cursor))

    def _advance(self) -> None:
        """Without a mirror: the cursor is the first entry that the broker has not acknowledged."""
        first = next(iter(self._in_flight), self._next)
        first = first if self._held is None else min(first, self._held)
        if first > self._cursor:
            self._cursor = first
            if "save" not in self._timers:
                self._after(SAVE_EVERY_S, "save", self._save)

    def _save(self) -> None:
        if self._mirror is None and self._cursor != self._saved:
            self._saved = self._cursor
            self._save_cursor(BROKER_CURSOR, self._cursor)

    def _halt(self, code: str, detail: str) -> None:
        """Send no entry any more: going on would turn what was found into a second history."""
        self._sending = False
        self._halted = code
        self._on_fault(BusFault(code, detail))

    def _newest_checkpoint(self) -> bytes | None:
        """The checkpoint that is published now; the entries under it may follow."""
        if not self._size:
            return None
        self._covered = self._size
        self._stirred.set()
        return self._reader.checkpoint().encode()

    # ── Documents and timers ──────────────────────────────────────────────────────────────────────────────────────────

    def _retain(self, name: str, topic: str) -> Retained:
        return Retained(
            self._bus,
            topic,
            partial(self._document, name),
            content_type=DOCUMENT_TYPE,
            done=self._settled.set,
        )

    def _document(self, name: str) -> bytes | None:
        document = self._documents.get(name)
        return document(self._bus.session) if callable(document) else document

    def _after(self, seconds: float, name: str, step: Callable[[], None]) -> None:
        def due() -> None:
            del self._timers[name]
            step()

        self._cancel(name)
        self._timers[name] = asyncio.get_running_loop().call_later(seconds, due)

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _stop(self) -> None:
        for name in list(self._timers):
            self._cancel(name)
        for retained in (self._checkpoint, *self._retained.values()):
            retained.rest()
        self._save()


def document_topics(topics: Topics) -> dict[DocumentName, str]:
    return {"state": topics.state, "description": topics.description, "display": topics.display}
