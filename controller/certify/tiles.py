"""The tree on disk: tiles of 256 hashes (c2sp.org/tlog-tiles), and the right edge that goes on growing.

    level 1    [ root of tile 0, root of tile 1, … ]        one hash stands for 256 entries
    level 0    [ 256 leaf hashes ][ 256 leaf hashes ][ … partial: not stored, it follows from the last entries ]

A full tile never changes. It is written once, in the commit that completes it, with its root beside it, so that the
edge of a journal of any length is found again from at most 255 entries and 255 roots per level.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from controller.certify.faults import JournalFault
from controller.certify.leaf import leaf_hash
from controller.certify.tree import Frontier, fold, frontier_of

TILE_HEIGHT = 8
TILE_WIDTH = 1 << TILE_HEIGHT
"""Hashes in a full tile."""

HASH_BYTES = 32


@dataclass(frozen=True, slots=True)
class Tile:
    """A full tile: number ``n`` of its level, the root over it, and its 256 hashes end to end."""

    level: int
    n: int
    root: bytes
    hashes: bytes


class _Level:
    """The partial tile at the right edge of one level."""

    __slots__ = ("frontier", "hashes", "n")

    def __init__(self, n: int, frontier: Frontier, hashes: bytearray) -> None:
        self.n = n
        self.frontier = frontier
        self.hashes = hashes

    def copy(self) -> "_Level":
        return _Level(self.n, self.frontier.copy(), bytearray(self.hashes))


class Edge:
    """The right edge of the tree: the partial tile of each level, and the number of entries."""

    __slots__ = ("_levels", "size")

    def __init__(self) -> None:
        self.size = 0
        self._levels: list[_Level] = []

    @classmethod
    def restore(cls, size: int, tail: Sequence[bytes], upper: Iterable[Sequence[bytes]]) -> Self:
        """The edge after ``size`` entries.

        ``tail`` are the leaf hashes that no full tile holds, ``upper`` for each level from 1 on the roots that no full
        tile of that level holds, in order.
        """
        edge = cls()
        edge.size = size
        for level, hashes in enumerate([tail, *upper]):
            tile = size >> (TILE_HEIGHT * (level + 1))
            edge._levels.append(_Level(tile, frontier_of(hashes), bytearray(b"".join(hashes))))
        return edge

    def copy(self) -> "Edge":
        """One that may grow by itself."""
        other = Edge()
        other.size = self.size
        other._levels = [level.copy() for level in self._levels]
        return other

    def extend(self, hashes: Iterable[bytes]) -> list[Tile]:
        """Append leaf hashes; the tiles that this completed, lower ones first."""
        full: list[Tile] = []
        for leaf in hashes:
            self.size += 1
            self._append(0, leaf, full)
        return full

    def _append(self, at: int, node: bytes, full: list[Tile]) -> None:
        if at == len(self._levels):
            self._levels.append(_Level(0, Frontier(), bytearray()))
        level = self._levels[at]
        level.frontier.append(node)
        level.hashes += node
        if level.frontier.size == TILE_WIDTH:
            tile = Tile(at, level.n, level.frontier.root(), bytes(level.hashes))
            full.append(tile)
            self._levels[at] = _Level(level.n + 1, Frontier(), bytearray())
            self._append(at + 1, tile.root, full)

    def node(self, level: int, n: int) -> bytes | None:
        """Hash ``n`` of a level (of level 0: of entry ``n``), when no full tile of that level holds it yet."""
        if level >= len(self._levels):
            return None
        begin = (n - self._levels[level].n * TILE_WIDTH) * HASH_BYTES
        held = self._levels[level].hashes
        return bytes(held[begin : begin + HASH_BYTES]) if 0 <= begin < len(held) else None

    def root(self) -> bytes:
        """The root over all entries."""
        return fold([node for level in reversed(self._levels) for node in level.frontier.nodes])


def level_count(size: int) -> int:
    """Levels that have at least one full tile when there are ``size`` entries."""
    return max(0, (size.bit_length() - 1) // TILE_HEIGHT)


def tile_roots(connection: sqlite3.Connection, level: int, start: int, stop: int) -> list[bytes]:
    """The roots of the full tiles start to stop - 1 of a level. Raises JournalFault (E-JOURNAL-INCOMPLETE)."""
    query = "SELECT root FROM tile INDEXED BY tile_root WHERE level = ? AND n >= ? AND n < ? ORDER BY n"
    roots = [root for (root,) in connection.execute(query, (level, start, stop))]
    if len(roots) != stop - start:
        raise JournalFault("E-JOURNAL-INCOMPLETE", f"tiles are missing at level {level} between {start} and {stop - 1}")
    return roots


def entries(connection: sqlite3.Connection, start: int, stop: int) -> list[bytes]:
    """The leaves start to stop - 1.

    Raises JournalFault: E-JOURNAL-INCOMPLETE that names the first one missing, E-JOURNAL-ALTERED for what is no leaf
    by its kind, E-JOURNAL-DAMAGED.
    """
    between = "FROM log WHERE idx >= ? AND idx < ? ORDER BY idx"
    leaves = [leaf for (leaf,) in connection.execute(f"SELECT leaf {between}", (start, stop)).fetchall()]
    if {*map(type, leaves)} - {bytes}:
        index = start + next(at for at, leaf in enumerate(leaves) if type(leaf) is not bytes)
        raise JournalFault("E-JOURNAL-ALTERED", f"entry {index} was altered: it holds another kind of value", index)
    if len(leaves) != stop - start:
        there = {index for (index,) in connection.execute(f"SELECT idx {between}", (start, stop))}
        missing = next((index for index in range(start, stop) if index not in there), None)
        if missing is None:  # no table writes a number twice: the pages of the file contradict each other
            raise JournalFault("E-JOURNAL-DAMAGED", f"one of the entries {start} to {stop - 1} is there twice")
        raise JournalFault("E-JOURNAL-INCOMPLETE", f"entry {missing} is missing", missing)
    return leaves


def tile_of(connection: sqlite3.Connection, level: int, n: int) -> tuple[bytes, bytes] | None:
    """The root and the hashes of a full tile, None when the file does not hold it."""
    row = connection.execute("SELECT root, hashes FROM tile WHERE level = ? AND n = ?", (level, n)).fetchone()
    return None if row is None else (row[0], row[1])


def restore_edge(connection: sqlite3.Connection, size: int, tail: Sequence[bytes]) -> Edge:
    """The edge of a stored tree, given the hashes of the entries that no full tile holds.

    Raises JournalFault (E-JOURNAL-INCOMPLETE).
    """
    upper = []
    for level in range(1, level_count(size) + 1):
        count = size >> (TILE_HEIGHT * level)
        upper.append(tile_roots(connection, level - 1, count & -TILE_WIDTH, count))
    return Edge.restore(size, tail, upper)


class Source(Protocol):
    """Where entries and tiles are read: the files of one journal (see ``volumes``)."""

    def entries(self, start: int, stop: int) -> list[bytes]:
        """The leaves start to stop - 1. Raises like the function ``entries``."""
        ...

    def tile(self, level: int, n: int) -> tuple[bytes, bytes] | None:
        """The root and the hashes of a full tile, None when there is none."""
        ...

    def tile_roots(self, level: int, start: int, stop: int) -> list[bytes]:
        """The roots of the full tiles start to stop - 1 of a level. Raises like the function ``tile_roots``."""
        ...


def stored_subtree(source: Source, start: int, stop: int) -> bytes:
    """The root over the entries start to stop - 1, a range that RFC 6962 splits off, read from tiles and last entries.

    Raises JournalFault (E-JOURNAL-INCOMPLETE).
    """
    frontier = Frontier()
    for level in range(level_count(stop - start), -1, -1):
        height = TILE_HEIGHT * level
        first = start + frontier.size
        count = (stop - first) >> height
        for node in _nodes(source, level, first >> height, count):
            frontier.append(node, height)
    return frontier.root()


def _nodes(source: Source, level: int, first: int, count: int) -> Iterator[bytes]:
    """``count`` nodes of a level, each of which stands for 256^level entries."""
    if level:
        yield from source.tile_roots(level - 1, first, first + count)
    elif count:
        tile = source.tile(0, first // TILE_WIDTH)
        if tile is None:
            yield from map(leaf_hash, source.entries(first, first + count))
        else:
            begin = first % TILE_WIDTH * HASH_BYTES
            for at in range(begin, begin + count * HASH_BYTES, HASH_BYTES):
                yield tile[1][at : at + HASH_BYTES]
