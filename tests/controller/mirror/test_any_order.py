"""Whatever comes, in whatever order, with whatever kills in between: the store is the beginning of the journal.

And nothing was ever said that was not stored before.
"""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from controller.certify.checkpoint import parse_checkpoint
from controller.certify.note import open_note
from controller.delivery.bus import Message
from controller.mirror.store import Held, Kept
from tests.controller.mirror.casino import CENTRE, ORIGIN, Centre, MemoryStore, Table

ENTRIES = 600
TABLE = Table(entries=ENTRIES)
CLONE = TABLE.branch(400, 200)
NOTES = {size: TABLE.note(size) for size in range(0, ENTRIES + 1, 50)}


@dataclass(frozen=True, slots=True)
class Kill:
    """The process ends in the next turn: before its ``at``-th commit, or right after it."""

    at: int
    after: bool


class Killed(Exception):
    """The process is gone."""


class MortalStore(MemoryStore):
    """A store whose process may end at a commit."""

    def __init__(self) -> None:
        super().__init__()
        self.kill: Kill | None = None
        self._commits = 0

    def keep(self, changes: list[Kept]) -> None:  # type: ignore[override]
        kill, self._commits = self.kill, self._commits + 1
        due = kill is not None and self._commits > kill.at
        if due and kill is not None and not kill.after:
            raise Killed
        super().keep(changes)
        if due:
            raise Killed

    def arm(self, kill: Kill | None) -> None:
        self.kill, self._commits = kill, 0


@dataclass(frozen=True, slots=True)
class Part:
    """What a table sends: ``count`` entries from so far beside what is held, and perhaps a checkpoint before them."""

    beside: int
    count: int
    note: bool

    def messages(self, size: int) -> list[Message]:
        start = min(max(0, size + self.beside), ENTRIES - 1)
        stop = min(start + self.count, ENTRIES)
        return [*([TABLE.checkpoint(stop)] if self.note else []), *TABLE.events(start, stop)]


def runs_of(table: Table) -> st.SearchStrategy[list[Message]]:
    """A run of entries, as a publisher sends it."""
    starts = st.integers(0, len(table.all) - 1)
    return st.builds(lambda start, count: table.events(start, start + count), starts, st.integers(1, 150))


notes = st.sampled_from(sorted(NOTES)).map(lambda size: [TABLE.checkpoint(size)])
beside = st.one_of(st.just(0), st.integers(-40, 40))
parts = st.builds(Part, beside, st.integers(1, 60), st.booleans())
turns = st.lists(st.one_of(parts, runs_of(TABLE), notes), min_size=1, max_size=4)
kills = st.one_of(st.none(), st.builds(Kill, st.integers(0, 1), st.booleans()))


def check_held(centre: Centre, store: MemoryStore) -> None:
    held = store.rows.get(ORIGIN, Held(origin=ORIGIN))
    assert store.leaves(ORIGIN, 0, ENTRIES) == TABLE.all[: held.size]
    assert held.fork == ""
    assert (held.size, held.frontier.root()) == (held.size, TABLE.root(held.size))


@given(st.lists(st.tuples(turns, kills), max_size=12))
def test_mirror_any_order_with_repeats_gaps_and_kills_holds_the_beginning_of_the_journal(
    plan: list[tuple[list[Part | list[Message]], Kill | None]],
) -> None:
    store = MortalStore()
    centre = Centre(store, TABLE)
    largest = 0
    for turn, kill in plan:
        store.arm(kill)
        try:
            size = centre.size(TABLE)
            runs = [part.messages(size) if isinstance(part, Part) else part for part in turn]
            said = centre.hear(*(message for run in runs for message in run))
        except Killed:
            centre.start()
            said = centre.mirror.acknowledgements()
        check_held(centre, store)
        for message in said:
            if message.topic != TABLE.topics.ack:
                continue
            checkpoint = parse_checkpoint(open_note(message.payload.decode(), [CENTRE.verifier]).text)
            assert checkpoint.size <= store.rows[ORIGIN].size
            assert checkpoint.root == TABLE.root(checkpoint.size)
            assert checkpoint.size >= largest
            largest = checkpoint.size
    store.arm(None)
    centre.hear(*TABLE.events(), TABLE.checkpoint())
    check_held(centre, store)
    assert (store.rows[ORIGIN].size, store.rows[ORIGIN].cosigned) == (ENTRIES, ENTRIES)
    assert centre.alarms == [] or {alarm.code for alarm in centre.alarms} == {"E-MIRROR-ROLLED-BACK"}


@given(st.lists(st.tuples(st.one_of(runs_of(TABLE), notes, runs_of(CLONE)), st.booleans()), max_size=25))
def test_mirror_two_branches_in_any_order_are_never_mixed_and_never_both_cosigned(
    plan: list[tuple[list[Message], bool]],
) -> None:
    store = MemoryStore()
    centre = Centre(store, TABLE)
    for run, restarts in plan:
        if restarts:
            centre.start()
        centre.hear(*run)
    centre.hear(*CLONE.events(), CLONE.checkpoint())
    centre.hear(*TABLE.events(), TABLE.checkpoint())
    held = store.rows[ORIGIN]
    leaves = store.leaves(ORIGIN, 0, ENTRIES)
    assert leaves in (TABLE.all[: held.size], CLONE.all[: held.size])
    roots = {(ack.size, ack.root) for ack in centre.acks(TABLE)}
    assert len({size for size, _ in roots}) == len(roots)
    assert held.fork
    assert "E-MIRROR-FORK" in centre.codes
