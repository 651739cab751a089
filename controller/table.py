"""The table: takes what waits in the inbox, decides it in order, certifies it in one commit, and only then lets it act.

    inbox ──► decide ──► facts ──► journal.commit ──► requests, answers, board, lamps
                │                     (one sync)            nothing before this line
                └── the next input is decided on the state that these facts make

The inputs of one batch share one commit (group commit), so that a burst of stakes costs one sync; a batch ends as soon
as its time slice is used up, so that the next "rien ne va plus" never waits long for a burst, and as soon as the last
urgent input is decided, so that nothing rides along on its commit.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from controller import codec
from controller.certify.leaf import Record, canonical
from controller.certify.writer import Certifier
from controller.inbox import Inbox, Letter, Outcome
from drivers.clock import Clock
from games.posts import PlayerPaidOut
from games.roulette.facts import IncidentDeclared
from games.rules import Fact, Game, Request, Stopping
from games.seance import SeanceClosed, SeanceOpened, TableStarted
from games.signals import PostRequest
from games.statement import SeanceCertified

BATCH_BOUND = 128
"""Inputs decided before a commit, at the most."""

BATCH_SLICE_US = 150
"""Time after which a batch is committed even if more inputs wait; longer where commits take long, see below."""

SLICE_SHARE = 4
"""A batch is decided for up to a quarter of the time that the last commit took. On a slow disk batches then grow, and
what waits for "rien ne va plus" to be certified grows no faster than a commit itself."""

BATCH_SLICE_BOUND_US = 5_000
"""The longest slice, for the event loop stands still meanwhile."""

SNAPSHOT_EVERY = 256
"""Entries after which the next closed round takes a snapshot, so that a start folds only a short tail."""

MILESTONES = (TableStarted, SeanceOpened, SeanceClosed, SeanceCertified, PlayerPaidOut, IncidentDeclared)
"""Facts whose checkpoint is kept for ever and published at once."""

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Certified(Generic[State]):
    """A commit: the new state, the journal's size, and the facts in it, from entry ``first_index`` on."""

    state: State
    first_index: int
    facts: tuple[Fact, ...]
    milestone: bool

    @property
    def size(self) -> int:
        """The journal's size after the commit."""
        return self.first_index + len(self.facts)


@dataclass(slots=True)
class _Batch(Generic[State]):
    state: State
    seance: str
    records: list[Record]
    facts: list[Fact]
    requests: list[Request]
    decided: list[tuple[Letter, Outcome]]


SeanceName = Callable[[State], str]


class Table(Generic[State]):
    """One game, its certified state, and the only writer of its journal."""

    def __init__(
        self,
        game: Game[State],
        state: State,
        inbox: Inbox,
        writer: Certifier,
        clock: Clock,
        *,
        size: int,
        seance_name: SeanceName[State],
        perform: Callable[[Request], None],
        certified: Callable[[Certified[State]], None],
    ) -> None:
        """``size`` is the journal's; ``perform`` does a request, ``certified`` hears of each commit before that."""
        self.game = game
        self.state = state
        self._inbox = inbox
        self._writer = writer
        self._clock = clock
        self._size = size
        self._slice_us = BATCH_SLICE_US
        self._snapshot_size = 0  # so that a start by a newer program soon writes a snapshot that it can read
        self._stopped = False
        self._seance_name = seance_name
        self._perform = perform
        self._certified = certified

    @property
    def size(self) -> int:
        """Number of certified entries."""
        return self._size

    async def run(self) -> None:
        """Decide and certify until the table stops in good order: that it stopped is the last thing certified.

        Raises JournalFault when a commit fails: the process must then end.
        """
        while not self._stopped:
            await self._inbox.wait()
            await self.step()
            if len(self._inbox):
                await asyncio.sleep(0)  # let in what came meanwhile: an urgent input is decided before those that wait

    async def step(self) -> None:
        """Decide one batch and certify it."""
        batch = self._decide_batch()
        if batch.records:
            await self._commit(batch)
        for letter, outcome in batch.decided:
            if letter.done:
                letter.done(outcome)
        for request in batch.requests:
            self._perform(request)

    def _decide_batch(self) -> _Batch[State]:
        batch = _Batch(self.state, self._seance_name(self.state), [], [], [], [])
        slice_end_us = self._clock.mono_us() + self._slice_us
        for _ in range(BATCH_BOUND):
            letter = self._inbox.take()
            if letter is None:
                break
            self._decide(batch, letter)
            if isinstance(letter.signal, Stopping):
                self._stopped = True
                break
            urgent = not isinstance(letter.signal, PostRequest)
            if (urgent and not self._inbox.urgent) or self._clock.mono_us() > slice_end_us:
                break
        return batch

    def _decide(self, batch: _Batch[State], letter: Letter) -> None:
        decision = self.game.decide(batch.state, letter.signal)
        first_index = self._size + len(batch.records)
        batch.decided.append((letter, Outcome(first_index, decision.facts)))
        batch.requests += decision.requests
        batch.facts += decision.facts
        entries = codec.encode_decision(letter.signal, decision.facts, first_index)
        for fact, (kind, data) in zip(decision.facts, entries, strict=True):
            batch.state = self.game.evolve(batch.state, fact)
            if isinstance(fact, SeanceOpened):  # the opening and the closing belong to the séance themselves
                batch.seance = fact.seance
            batch.records.append(Record(kind, data, batch.seance or None))
            if isinstance(fact, SeanceClosed):
                batch.seance = ""

    async def _commit(self, batch: _Batch[State]) -> None:
        first_index, size = self._size, self._size + len(batch.records)
        milestone = any(isinstance(fact, MILESTONES) for fact in batch.facts)
        snapshot = self._snapshot(batch.state, size)
        began_us = self._clock.mono_us()
        await self._writer.commit(batch.records, snapshot=snapshot, keep_checkpoint=milestone)
        took_us = self._clock.mono_us() - began_us
        self._slice_us = min(max(BATCH_SLICE_US, took_us // SLICE_SHARE), BATCH_SLICE_BOUND_US)
        self._size, self.state = size, batch.state
        self._certified(Certified(batch.state, first_index, tuple(batch.facts), milestone))

    def _snapshot(self, state: State, size: int) -> bytes | None:
        if size - self._snapshot_size < SNAPSHOT_EVERY or not self.game.round_closed(state):
            return None
        self._snapshot_size = size
        return encode_snapshot(state)


def encode_snapshot(state: object) -> bytes:
    """A state as a journal snapshot: a cache of the fold, marked with the shape of the state that wrote it."""
    state_type: Any = type(state)
    return canonical({"shape": codec.shape(state_type), "state": codec.to_plain(state)}).encode()
