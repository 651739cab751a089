"""The verification at start-up: is everything that the table is about to go on from what the key signed?

                        snapshot                      last full tile       end
    ├──────── … ────────────┼──────────────┬──────────────┬───────────────────┤
         not read        └──────── each entry, bound to the signed root ──────┘

Read are the last checkpoint, the entries that no full tile holds (at most 255), and at most 255 tile roots per level:
from these follows the root that the checkpoint must name. Then the last snapshot, which the key signed, and every entry
that it does not include (``bound``). The table takes a snapshot every few hundred entries, so the time does not grow
with the journal; without one the start reads everything, which is slower and as safe.

An altered entry before the snapshot is beside this path, and nothing is folded from it. It shows in the full
verification (``verify``), which is meant to run daily, and which is asked here too when something is wrong and it is
not plain where.

Nothing is ever repaired in place: the file is evidence.
"""

import sqlite3
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controller.certify.bound import BoundEntries
from controller.certify.faults import JournalFault
from controller.certify.leaf import FIRST_PREVIOUS, LEAF_PATTERN, leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.tiles import TILE_WIDTH, Edge, entries, restore_edge
from controller.certify.trust import check_bounds, last_checkpoint, last_snapshot
from controller.certify.verify import verify
from controller.certify.volumes import Chain


@dataclass(frozen=True, slots=True)
class Recovered:
    """Where the journal goes on: the edge of its tree, the hash of its last entry, the note of its last checkpoint."""

    edge: Edge
    previous: bytes
    note: str


def recover(connection: sqlite3.Connection, path: Path, keys: LogKeys) -> Recovered:
    """Check what the table goes on from, and return where the journal goes on.

    Raises sqlite3.Error, and JournalFault: E-JOURNAL-ALTERED, -ROLLED-BACK, -FORKED, -UNSIGNED, -KEY, -INCOMPLETE.
    """
    checkpoint, note = last_checkpoint(connection, keys)
    check_bounds(connection, checkpoint.size)
    tail = entries(connection, checkpoint.size - checkpoint.size % TILE_WIDTH, checkpoint.size)
    hashes = [leaf_hash(leaf) for leaf in tail]
    edge = restore_edge(connection, checkpoint.size, hashes)
    if edge.root() != checkpoint.root:
        raise _located(path, keys)
    try:
        with Chain(path, connection) as chain:
            bound = BoundEntries(chain, edge)
            snapshot = last_snapshot(connection, keys, bound.root)
            previous = _last_hash(chain, bound, edge.size, 0 if snapshot is None else snapshot[0])
    except JournalFault as fault:
        if fault.code != "E-JOURNAL-ALTERED" or fault.index is not None:
            raise
        raise _located(path, keys) from fault
    return Recovered(edge, previous, note)


def _last_hash(chain: Chain, bound: BoundEntries, size: int, start: int) -> bytes:
    """The hash of the last entry, after the blocks from that of entry ``start`` on were checked, one at the least."""
    first = max(0, min(start, size - 1)) // TILE_WIDTH
    previous = _entry_before(chain, first * TILE_WIDTH)
    for n in range(first, -(-size // TILE_WIDTH)):
        leaves, hashes = bound.block(n)
        if not _is_chained(leaves, hashes, previous):
            raise JournalFault("E-JOURNAL-ALTERED", f"the chain is broken at entry {n * TILE_WIDTH} or after it")
        previous = hashes[-1]
    return previous


def _entry_before(chain: Chain, index: int) -> bytes:
    """The hash of the entry before ``index``."""
    return leaf_hash(chain.entries(index - 1, index)[0]) if index else FIRST_PREVIOUS


def _is_chained(leaves: Sequence[bytes], hashes: Sequence[bytes], previous: bytes) -> bool:
    for leaf, own in zip(leaves, hashes, strict=True):
        match = LEAF_PATTERN.fullmatch(leaf)
        if match is None or match[5] != b64encode(previous):
            return False
        previous = own
    return True


def _located(path: Path, keys: LogKeys) -> JournalFault:
    """What is wrong, named by a full verification."""
    verdict = verify(path, keys)
    code = verdict.code or "E-JOURNAL-ALTERED"
    return JournalFault(code, verdict.problem or "the entries do not lead to the signed root", verdict.index)
