"""The verification at start-up: does the file still end as the key last signed it?

The time it takes does not grow with the journal. Read are the last checkpoint, the entries that no full tile holds (at
most 255), at most 255 tile roots per level, and the last snapshot. From these follows the root that the checkpoint must
name: an altered end, a missing entry, another key or a shortened file show at once. An altered entry further back is
beside this path; it shows in the full verification (``verify``), which is meant to run daily, and which is asked here
too when something is wrong, to say what and where.

Nothing is ever repaired in place: the file is evidence.
"""

import sqlite3
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controller.certify.faults import JournalFault
from controller.certify.leaf import FIRST_PREVIOUS, LEAF_PATTERN, leaf_hash
from controller.certify.note import Verifier
from controller.certify.tiles import TILE_WIDTH, Edge, entries, restore_edge
from controller.certify.trust import check_bounds, check_snapshot, last_checkpoint
from controller.certify.verify import verify


@dataclass(frozen=True, slots=True)
class Recovered:
    """Where the journal goes on: the edge of its tree, the hash of its last entry, the note of its last checkpoint."""

    edge: Edge
    previous: bytes
    note: str


def recover(connection: sqlite3.Connection, path: Path, verifier: Verifier) -> Recovered:
    """Check the end of the journal and return where it goes on.

    Raises sqlite3.Error, and JournalFault: E-JOURNAL-ALTERED, -ROLLED-BACK, -FORKED, -UNSIGNED, -KEY, -INCOMPLETE.
    """
    checkpoint, note = last_checkpoint(connection, verifier)
    check_bounds(connection, checkpoint.size)
    tail = entries(connection, checkpoint.size - checkpoint.size % TILE_WIDTH, checkpoint.size)
    hashes = [leaf_hash(leaf) for leaf in tail]
    edge = restore_edge(connection, checkpoint.size, hashes)
    previous = _entry_before(connection, checkpoint.size - len(tail))
    if edge.root() != checkpoint.root or not _is_chained(tail, hashes, previous):
        raise _located(path, verifier)
    _check_last_snapshot(connection, verifier)
    return Recovered(edge, hashes[-1] if hashes else previous, note)


def _entry_before(connection: sqlite3.Connection, index: int) -> bytes:
    """The hash of the entry before ``index``."""
    return leaf_hash(entries(connection, index - 1, index)[0]) if index else FIRST_PREVIOUS


def _is_chained(leaves: Sequence[bytes], hashes: Sequence[bytes], previous: bytes) -> bool:
    for leaf, own in zip(leaves, hashes, strict=True):
        match = LEAF_PATTERN.fullmatch(leaf)
        if match is None or match[5] != b64encode(previous):
            return False
        previous = own
    return True


def _located(path: Path, verifier: Verifier) -> JournalFault:
    """What is wrong, named by a full verification."""
    verdict = verify(path, verifier.vkey)
    code = verdict.code or "E-JOURNAL-ALTERED"
    return JournalFault(code, verdict.problem or "the entries do not lead to the signed root", verdict.index)


def _check_last_snapshot(connection: sqlite3.Connection, verifier: Verifier) -> None:
    row = connection.execute("SELECT size, body, note FROM snapshot ORDER BY size DESC LIMIT 1").fetchone()
    if row is not None:
        size, body, note = row
        check_snapshot(size, body, note, verifier)
