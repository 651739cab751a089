"""The full verification of a journal, with nothing but its file and the table's public key.

    last checkpoint: signed by the key?          ── no ──► unsigned, or another key
    as many entries as it says?                  ── fewer ► rolled back          more ► unsigned
    each entry: form, number, chain, tile        ── no ──► altered (the entry is named) or incomplete
    upper tiles, root of the last checkpoint     ── no ──► altered
    every other checkpoint that was kept         ── no ──► altered, or a second history signed by the same key
    snapshots, cosignatures by known keys        ── no ──► altered
    earlier volumes (``volume_check``)           ── no ──► altered or incomplete
    a checkpoint that somebody else remembers    ── no ──► rolled back, or forked
    as many cosignatures as the policy asks for  ── no ──► unsigned

What was changed beside the entries (a table, a guard, a row too many) does not end the verification: it goes on to name
the entry that was altered with it, if there is one. A checkpoint or a snapshot from before a change of the table's key
may be by a key that was not given; the entries themselves, once they are known to be authentic, then say whether it was
the table's (``rotation``).

The entries are independent of each other once their neighbours' hashes are known, so long journals are verified by
several processes, a run of tiles each.
"""

import os
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise
from multiprocessing import get_context
from operator import attrgetter, itemgetter
from pathlib import Path

from controller.certify.blocks import Cut, Examined, Judges, check_entries, cut, examine_tiles, statements_in
from controller.certify.checkpoint import Checkpoint, parse_checkpoint
from controller.certify.faults import JournalFault
from controller.certify.leaf import leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import open_note
from controller.certify.policy import NONE, Policy
from controller.certify.rotation import trusting
from controller.certify.storage import check_layout, connect_reader, faults_of
from controller.certify.structure import check_form, check_kinds, check_names
from controller.certify.tiles import TILE_HEIGHT, TILE_WIDTH, entries, level_count, stored_subtree
from controller.certify.tree import Frontier, fold, root_of
from controller.certify.trust import check_bounds, check_meta, check_snapshot, last_checkpoint, open_checkpoint
from controller.certify.volume_check import check_earlier_volumes, check_tile_count
from controller.certify.volumes import Chain

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
    "E-POLICY-QUORUM": Outcome.UNSIGNED_OR_UNKNOWN_KEY,
    "E-JOURNAL-KEY": Outcome.UNSIGNED_OR_UNKNOWN_KEY,
    "E-JOURNAL-INCOMPLETE": Outcome.INCOMPLETE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a verification found. Only when it is ``ok`` do size, root and checkpoints describe the whole journal.

    ``code`` and ``problem`` say what is wrong, ``others`` what else is; ``index`` is the first entry concerned, where
    it can be known. ``cosignatures`` by known witnesses were verified, ``unknown_cosignatures`` were not, for want of
    their keys. ``witnessed`` is the largest size whose cosignatures, at least one, are enough for the policy.
    """

    outcome: Outcome
    size: int = 0
    root: bytes = b""
    checkpoints: int = 0
    cosignatures: int = 0
    unknown_cosignatures: int = 0
    witnessed: int | None = None
    code: str | None = None
    problem: str | None = None
    index: int | None = None
    others: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return self.outcome is Outcome.OK


@dataclass(frozen=True, slots=True)
class _Found:
    """What the file says of itself at the moment the verification began."""

    last: Checkpoint
    notes: list[tuple[int, str]]
    cosignatures: int


def verify(
    path: Path,
    keys: LogKeys,
    progress: Progress | None = None,
    *,
    remembered: str | None = None,
    policy: Policy | None = None,
    processes: int | None = None,
) -> Verdict:
    """Verify everything in the journal ``path`` with the table's keys.

    ``policy`` names the witnesses whose cosignatures are verified, and how many of them the journal needs.
    ``remembered`` is the note of a checkpoint that was kept elsewhere: the journal must have grown from that one.
    ``processes`` is how many may work at once (default: one for each processor). The journal may be in use meanwhile.
    Raises NoteFault for a ``remembered`` note that no key of the table signed; everything else is in the verdict.
    """
    witness = None if remembered is None else parse_checkpoint(open_note(remembered, keys.verifiers).text)
    workers = processes or len(os.sched_getaffinity(0))
    faults: list[JournalFault] = []
    verdict = Verdict(outcome=Outcome.OK)
    try:
        with faults_of(path), closing(connect_reader(path)) as connection, Chain(path, connection) as chain:
            with _noting(faults):
                check_layout(connection, path)
            check_names(connection)
            check_kinds(connection)
            found = _begin(connection, chain, keys, faults)
            judges = Judges(keys, policy or Policy(logs=()))
            examined = _examine(path, judges, found, workers, progress or (lambda done, size: None))
            keys_shown, cuts = _check_whole(connection, chain, judges, found, examined)
            with _noting(faults):
                check_meta(connection, keys_shown)
            with _noting(faults):
                _check_snapshots(connection, chain, keys_shown, found.last.size)
            if witness is not None:
                _check_remembered(chain, witness, found.last.size)
            check_earlier_volumes(chain, keys_shown)
            check_form(connection)
            verdict = _agreeing(found, cuts, judges.policy)
    except JournalFault as fault:
        faults.append(fault)
    return _blaming(faults) if faults else verdict


@contextmanager
def _noting(faults: list[JournalFault]) -> Iterator[None]:
    """Note an alteration that does not hinder the verification, and go on."""
    try:
        yield
    except JournalFault as fault:
        if fault.code not in ("E-JOURNAL-ALTERED", "E-JOURNAL-KEY"):
            raise
        faults.append(fault)


def _agreeing(found: _Found, cuts: Sequence[Cut], policy: Policy) -> Verdict:
    """The verdict when nothing was altered. Raises JournalFault (E-POLICY-QUORUM) without the policy's quorum."""
    sizes = [one.size for one in cuts if one.cosigners and policy.satisfied_by(one.cosigners)]
    if not sizes and policy.quorum != NONE:
        detail = f"none of {len(cuts)} checkpoints has the cosignatures that make up the quorum {policy.quorum}"
        raise JournalFault("E-POLICY-QUORUM", detail)
    verified = len({(one.size, name) for one in cuts for name in one.cosigners})
    return Verdict(
        outcome=Outcome.OK,
        size=found.last.size,
        root=found.last.root,
        checkpoints=len({size for size, _ in found.notes}),
        cosignatures=verified,
        unknown_cosignatures=found.cosignatures - verified,
        witnessed=max(sizes, default=None),
    )


def _outcome_of(fault: JournalFault) -> Outcome:
    return _OUTCOMES.get(fault.code, Outcome.UNREADABLE)


def _blaming(faults: Sequence[JournalFault]) -> Verdict:
    """The worst of all faults that were found, one that names an entry before one that does not."""
    worst = min(faults, key=lambda fault: (_outcome_of(fault), fault.index is None))
    indexes = [fault.index for fault in (worst, *faults) if fault.index is not None]
    return Verdict(
        outcome=_outcome_of(worst),
        code=worst.code,
        problem=worst.detail,
        index=indexes[0] if indexes else None,
        others=tuple(f"{fault.code} {fault.detail}" for fault in faults if fault is not worst),
    )


def _begin(connection: sqlite3.Connection, chain: Chain, keys: LogKeys, faults: list[JournalFault]) -> _Found:
    """Read everything that a running table might replace, in one look at the file; then what earlier volumes kept."""
    connection.execute("BEGIN")
    last, _ = last_checkpoint(connection, keys)
    check_bounds(connection, last.size)
    with _noting(faults):
        check_tile_count(connection, last.size, chain.base)
    notes, cosignatures = _notes(connection)
    connection.execute("COMMIT")
    for volume in chain.listed[:-1]:
        with faults_of(volume.path):
            earlier_notes, earlier_cosignatures = _notes(chain.connection(volume))
        notes |= earlier_notes
        cosignatures |= earlier_cosignatures
    return _Found(last, sorted(notes), len(cosignatures))


def _notes(connection: sqlite3.Connection) -> tuple[set[tuple[int, str]], set[tuple[int, str]]]:
    """Every checkpoint with the cosignatures that are kept for it, each with its size; and who cosigned which size."""
    notes = dict(connection.execute("SELECT size, note FROM checkpoint ORDER BY size").fetchall())
    cosignatures: set[tuple[int, str]] = set()
    for size, name, line in connection.execute("SELECT size, name, line FROM cosignature ORDER BY size, name"):
        if size not in notes or not line.startswith(f"— {name} ") or "\n" in line:
            raise JournalFault("E-JOURNAL-ALTERED", f"the cosignature by {name} of {size} entries was altered")
        notes[size] += f"{line}\n"
        cosignatures.add((size, name))
    return set(notes.items()), cosignatures


def _examine(path: Path, judges: Judges, found: _Found, workers: int, progress: Progress) -> Examined:
    """All full tiles of level 0, in runs, by one process or by several."""
    tiles = found.last.size // TILE_WIDTH
    whole = Examined([], [], [])
    for run in _runs(path, judges, tiles, found.notes, workers if tiles > ALONE_BOUND else 1):
        whole.roots.extend(run.roots)
        whole.cuts.extend(run.cuts)
        whole.statements.extend(run.statements)
        progress(len(whole.roots) * TILE_WIDTH, found.last.size)
    return whole


def _runs(path: Path, judges: Judges, tiles: int, notes: list[tuple[int, str]], workers: int) -> Iterator[Examined]:
    starts = range(0, tiles, RUN_TILES)
    stops = [min(start + RUN_TILES, tiles) for start in starts]
    bounds = [bisect_right(notes, tile * TILE_WIDTH, key=itemgetter(0)) for tile in [*starts, tiles]]
    shares = [notes[low:high] for low, high in pairwise(bounds)]
    if workers == 1:
        for start, stop, share in zip(starts, stops, shares, strict=True):
            yield examine_tiles(path, judges, start, stop, share)
        return
    # Fresh processes, because a copy of a process with threads may stand still for ever.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        count = len(stops)
        yield from pool.map(examine_tiles, [path] * count, [judges] * count, starts, stops, shares)


def _check_whole(
    connection: sqlite3.Connection, chain: Chain, judges: Judges, found: _Found, examined: Examined
) -> tuple[LogKeys, list[Cut]]:
    """The last entries, the upper tiles, and the root of every checkpoint.

    Returns the keys that the entries show to be the table's, and all checkpoints, opened, in order of size.
    """
    size, roots = found.last.size, examined.roots
    first = len(roots) * TILE_WIDTH
    _check_upper_tiles(connection, size, roots)
    leaves = entries(connection, first, size)
    hashes = [leaf_hash(leaf) for leaf in leaves]
    frontier = _frontier(roots)
    previous = leaf_hash(chain.entries(first - 1, first)[0]) if first else b""

    def proof(tail: Sequence[bytes]) -> bool:
        return _root(frontier, tail) == found.last.root

    check_entries(judges.keys.origin, first, leaves, hashes, previous, proof)
    empty_cuts = cut(judges, 0, [], [(at, note) for at, note in found.notes if at <= 0])
    tail_cuts = cut(judges, first, hashes, [(at, note) for at, note in found.notes if at > first])
    cuts = sorted([*empty_cuts, *examined.cuts, *tail_cuts], key=attrgetter("size"))
    _check_roots(roots, cuts, size)
    # From here on the entries are known to be authentic, so that they may say which key came before.
    keys_shown = trusting(judges.keys, [*examined.statements, *statements_in(leaves)])
    earlier = [one for one in cuts if one.checkpoint is None]
    _check_roots(
        roots, [replace(one, checkpoint=open_checkpoint(one.size, one.note, keys_shown)) for one in earlier], size
    )
    return keys_shown, cuts


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
        if one.checkpoint is None:
            continue
        for root in roots[frontier.size // TILE_WIDTH : one.tiles]:
            frontier.append(root, TILE_HEIGHT)
        if fold([*frontier.nodes, *one.nodes]) != one.checkpoint.root:
            wrong.append(one.size)
        elif not wrong:
            good = one.size
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


def _check_snapshots(connection: sqlite3.Connection, chain: Chain, keys: LogKeys, last: int) -> None:
    query = "SELECT size, body, note FROM snapshot WHERE size <= ? ORDER BY size"
    for size, body, note in connection.execute(query, (last,)).fetchall():
        check_snapshot(size, stored_subtree(chain, 0, size), body, note, keys)


def _check_remembered(chain: Chain, remembered: Checkpoint, size: int) -> None:
    """Compare with a checkpoint that was kept out of reach of whoever has this file."""
    if remembered.size > size:
        detail = f"a checkpoint of {remembered.size} entries was signed, and the journal ends at {size}"
        raise JournalFault("E-JOURNAL-ROLLED-BACK", detail, size)
    if stored_subtree(chain, 0, remembered.size) != remembered.root:
        detail = f"a checkpoint of {remembered.size} entries was signed that is not of this journal's history"
        raise JournalFault("E-JOURNAL-FORKED", detail)
