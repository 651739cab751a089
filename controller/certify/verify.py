"""The full verification of a journal, with nothing but its file and the table's public key.

    last checkpoint: signed by the key?          ── no ──► unsigned, or another key
    as many entries as it says?                  ── fewer ► rolled back          more ► unsigned
    each entry: form, number, chain, tile        ── no ──► altered (the entry is named) or incomplete
    upper tiles, root of the last checkpoint     ── no ──► altered
    every other checkpoint that was kept         ── no ──► altered, or a second history signed by the same key
    snapshots                                    ── no ──► altered
    a checkpoint that somebody else remembers    ── no ──► rolled back, or forked

The entries are independent of each other once their neighbours' hashes are known, so long journals are verified by
several processes, a run of tiles each.
"""

import os
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path

from controller.certify.blocks import Cut, Examined, check_entries, cut, examine_tiles
from controller.certify.checkpoint import Checkpoint, parse_checkpoint
from controller.certify.faults import JournalFault
from controller.certify.leaf import leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import open_note
from controller.certify.storage import check_layout, connect_reader, faults_of
from controller.certify.tiles import TILE_HEIGHT, TILE_WIDTH, entries, level_count, stored_subtree
from controller.certify.tree import Frontier, fold, root_of
from controller.certify.trust import check_bounds, check_snapshot, last_checkpoint

RUN_TILES = 64
"""Tiles that one process verifies at a time: enough to be worth the hand-over, few enough to share evenly."""

ALONE_BOUND = 4 * RUN_TILES
"""Up to so many tiles one process is faster than several, which must start first."""

Progress = Callable[[int, int], None]
"""Called with the entries verified so far and all entries."""


class Outcome(IntEnum):
    """The result, which is also the exit status of the commands that verify."""

    OK = 0
    ALTERED = 1
    ROLLED_BACK_OR_FORKED = 2
    UNSIGNED_OR_UNKNOWN_KEY = 3
    INCOMPLETE = 4
    UNREADABLE = 5


_OUTCOMES = {
    "E-JOURNAL-ALTERED": Outcome.ALTERED,
    "E-JOURNAL-ROLLED-BACK": Outcome.ROLLED_BACK_OR_FORKED,
    "E-JOURNAL-FORKED": Outcome.ROLLED_BACK_OR_FORKED,
    "E-JOURNAL-UNSIGNED": Outcome.UNSIGNED_OR_UNKNOWN_KEY,
    "E-JOURNAL-KEY": Outcome.UNSIGNED_OR_UNKNOWN_KEY,
    "E-JOURNAL-INCOMPLETE": Outcome.INCOMPLETE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a verification found. Only when it is ``ok`` do size, root and checkpoints describe the whole journal.

    ``code`` and ``problem`` say what is wrong; ``index`` is the first entry concerned, where it can be known.
    """

    outcome: Outcome
    size: int = 0
    root: bytes = b""
    checkpoints: int = 0
    code: str | None = None
    problem: str | None = None
    index: int | None = None

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return self.outcome is Outcome.OK


@dataclass(frozen=True, slots=True)
class _Found:
    """What the file says of itself at the moment the verification began."""

    last: Checkpoint
    notes: list[tuple[int, str]]


def verify(
    path: Path,
    keys: LogKeys,
    progress: Progress | None = None,
    *,
    remembered: str | None = None,
    processes: int | None = None,
) -> Verdict:
    """Verify everything in the journal ``path`` with the table's keys.

    ``remembered`` is the note of a checkpoint that was kept elsewhere: the journal must have grown from that one.
    ``processes`` is how many may work at once (default: one for each processor). The journal may be in use meanwhile.
    Raises NoteFault for a ``remembered`` note that no key of the table signed; everything else is in the verdict.
    """
    witness = None if remembered is None else parse_checkpoint(open_note(remembered, keys.verifiers).text)
    workers = processes or len(os.sched_getaffinity(0))
    try:
        with faults_of(path), closing(connect_reader(path)) as connection:
            check_layout(connection, path)
            found = _begin(connection, keys)
            examined = _examine(path, keys, found, workers, progress or (lambda done, size: None))
            _check_whole(connection, keys, found, examined)
            _check_snapshots(connection, keys)
            if witness is not None:
                _check_remembered(connection, witness, found.last.size)
    except JournalFault as fault:
        outcome = _OUTCOMES.get(fault.code, Outcome.UNREADABLE)
        return Verdict(outcome=outcome, code=fault.code, problem=fault.detail, index=fault.index)
    return Verdict(outcome=Outcome.OK, size=found.last.size, root=found.last.root, checkpoints=len(found.notes))


def _begin(connection: sqlite3.Connection, keys: LogKeys) -> _Found:
    """Read everything that a running table might replace, in one look at the file."""
    connection.execute("BEGIN")
    last, _ = last_checkpoint(connection, keys)
    check_bounds(connection, last.size)
    _check_tile_count(connection, last.size)
    notes = connection.execute("SELECT size, note FROM checkpoint ORDER BY size").fetchall()
    connection.execute("COMMIT")
    return _Found(last, notes)


def _check_tile_count(connection: sqlite3.Connection, size: int) -> None:
    """A tile too many is found here, one too few where it is missed."""
    expected = sum(size >> (TILE_HEIGHT * (level + 1)) for level in range(level_count(size)))
    (count,) = connection.execute("SELECT count(*) FROM tile").fetchone()
    if count > expected:
        raise JournalFault("E-JOURNAL-ALTERED", f"there are {count} tiles where {size} entries make {expected}")


def _examine(path: Path, keys: LogKeys, found: _Found, workers: int, progress: Progress) -> Examined:
    """All full tiles of level 0, in runs, by one process or by several."""
    tiles = found.last.size // TILE_WIDTH
    whole = Examined([], [])
    for run in _runs(path, keys.text, tiles, found.notes, workers if tiles > ALONE_BOUND else 1):
        whole.roots.extend(run.roots)
        whole.cuts.extend(run.cuts)
        progress(len(whole.roots) * TILE_WIDTH, found.last.size)
    return whole


def _runs(path: Path, keys_text: str, tiles: int, notes: list[tuple[int, str]], workers: int) -> Iterator[Examined]:
    starts = range(0, tiles, RUN_TILES)
    stops = [min(start + RUN_TILES, tiles) for start in starts]
    bounds = [bisect_right(notes, tile * TILE_WIDTH, key=itemgetter(0)) for tile in [*starts, tiles]]
    shares = [notes[low:high] for low, high in pairwise(bounds)]
    if workers == 1:
        for start, stop, share in zip(starts, stops, shares, strict=True):
            yield examine_tiles(path, keys_text, start, stop, share)
        return
    # Fresh processes, because a copy of a process with threads may stand still for ever.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        count = len(stops)
        yield from pool.map(examine_tiles, [path] * count, [keys_text] * count, starts, stops, shares)


def _check_whole(connection: sqlite3.Connection, keys: LogKeys, found: _Found, examined: Examined) -> None:
    """The last entries, the upper tiles, and the root of every checkpoint."""
    size, roots = found.last.size, examined.roots
    first = len(roots) * TILE_WIDTH
    _check_upper_tiles(connection, size, roots)
    leaves = entries(connection, first, size)
    hashes = [leaf_hash(leaf) for leaf in leaves]
    frontier = _frontier(roots)
    previous = leaf_hash(entries(connection, first - 1, first)[0]) if first else b""

    def proof(tail: Sequence[bytes]) -> bool:
        return _root(frontier, tail) == found.last.root

    check_entries(keys.origin, first, leaves, hashes, previous, proof)
    tail_notes = [(at, note) for at, note in found.notes if at > first or first == at == 0]
    tail_cuts = cut(keys, first, hashes, tail_notes)
    _check_roots(roots, sorted([*examined.cuts, *tail_cuts], key=_size_of), size)


def _size_of(one: Cut) -> int:
    return one.checkpoint.size


def _frontier(roots: Sequence[bytes]) -> Frontier:
    frontier = Frontier()
    for root in roots:
        frontier.append(root, TILE_HEIGHT)
    return frontier


def _root(frontier: Frontier, tail: Sequence[bytes]) -> bytes:
    whole = frontier.copy()
    for leaf in tail:
        whole.append(leaf)
    return whole.root()


def _check_upper_tiles(connection: sqlite3.Connection, size: int, roots: Sequence[bytes]) -> None:
    """Every level above 0 follows from the one below."""
    nodes = roots
    for level in range(1, level_count(size)):
        full = len(nodes) // TILE_WIDTH
        computed = []
        for n in range(full):
            hashes = nodes[n * TILE_WIDTH : (n + 1) * TILE_WIDTH]
            computed.append(root_of(hashes))
            query = "SELECT root, hashes FROM tile WHERE level = ? AND n = ?"
            row = connection.execute(query, (level, n)).fetchone()
            if row is None:
                raise JournalFault("E-JOURNAL-INCOMPLETE", f"tile {n} of level {level} is missing")
            if row != (computed[n], b"".join(hashes)):
                raise JournalFault("E-JOURNAL-ALTERED", f"tile {n} of level {level} was altered; the entries were not")
        nodes = computed


def _check_roots(roots: Sequence[bytes], cuts: Sequence[Cut], last: int) -> None:
    """Every checkpoint's root against the entries, in order of size, so that what disagrees is fenced in."""
    good = 0
    wrong: list[int] = []
    frontier = Frontier()
    for one in cuts:
        for root in roots[frontier.size // TILE_WIDTH : one.tiles]:
            frontier.append(root, TILE_HEIGHT)
        if fold([*frontier.nodes, *one.nodes]) != one.checkpoint.root:
            wrong.append(one.checkpoint.size)
        elif not wrong:
            good = one.checkpoint.size
    if not wrong:
        return
    first = wrong[0]
    if last not in wrong:
        detail = f"the key signed another history of {first} entries than the one that led to {last} entries"
        raise JournalFault("E-JOURNAL-FORKED", detail, good)
    if first < last:
        raise JournalFault("E-JOURNAL-ALTERED", f"entries {good} to {first - 1} are not those that were signed", good)
    # The chain holds up to its end. One altered entry can only be the last; several were linked anew up to the last.
    detail = f"entry {last - 1}, or a run of entries after {good - 1} that ends with it, is not what was signed"
    raise JournalFault("E-JOURNAL-ALTERED", detail, max(last - 1, 0))


def _check_snapshots(connection: sqlite3.Connection, keys: LogKeys) -> None:
    for size, body, note in connection.execute("SELECT size, body, note FROM snapshot ORDER BY size"):
        check_snapshot(size, body, note, keys)


def _check_remembered(connection: sqlite3.Connection, remembered: Checkpoint, size: int) -> None:
    """Compare with a checkpoint that was kept out of reach of whoever has this file."""
    if remembered.size > size:
        detail = f"a checkpoint of {remembered.size} entries was signed, and the journal ends at {size}"
        raise JournalFault("E-JOURNAL-ROLLED-BACK", detail, size)
    if stored_subtree(connection, 0, remembered.size) != remembered.root:
        detail = f"a checkpoint of {remembered.size} entries was signed that is not of this journal's history"
        raise JournalFault("E-JOURNAL-FORKED", detail)
