"""Entries that are bound to the signed root: each block of 256 is checked, all the way up, before any of it is given.

    signed root  ──►  edge  ──►  tile of level 1  ──►  tile of level 0  ──►  256 entries
                                 (its 256 hashes must lead to the hash above, and so on down)

A checkpoint binds the edge, the edge the tiles that hang from it, each tile those below. Nothing on this way is
believed because it is stored. So whatever is folded, from whichever entry on, is what the key signed, and the cost
grows with what is read, not with the journal.
"""

from collections.abc import Sequence

from controller.certify.faults import JournalFault
from controller.certify.leaf import leaf_hash
from controller.certify.tiles import HASH_BYTES, TILE_HEIGHT, TILE_WIDTH, Edge, Source, level_count
from controller.certify.tree import Frontier, root_of


class BoundEntries:
    """The entries of a journal under an ``edge`` whose root was signed."""

    def __init__(self, source: Source, edge: Edge) -> None:
        self._source = source
        self._edge = edge
        self._tiles: dict[tuple[int, int], list[bytes]] = {}

    def block(self, n: int) -> tuple[list[bytes], list[bytes]]:
        """The leaves of block ``n`` (entries 256 n and up to 255 more) and their hashes; the last block may be partial.

        Raises sqlite3.Error, and JournalFault: E-JOURNAL-ALTERED, with the index of the altered entry where the tile
        shows it, E-JOURNAL-INCOMPLETE.
        """
        first = n * TILE_WIDTH
        leaves = self._source.entries(first, min(first + TILE_WIDTH, self._edge.size))
        hashes = [leaf_hash(leaf) for leaf in leaves]
        signed = self._signed_hashes(n, len(leaves))
        for at, (own, bound) in enumerate(zip(hashes, signed, strict=True), first):
            if own != bound:
                raise JournalFault("E-JOURNAL-ALTERED", f"entry {at} was altered: it is not what was signed", at)
        return leaves, hashes

    def root(self, size: int) -> bytes:
        """The root over the first ``size`` entries, of which there must be as many. Raises like ``block``."""
        frontier = Frontier()
        for level in range(level_count(size), -1, -1):
            height = TILE_HEIGHT * level
            for n in range(frontier.size >> height, size >> height):
                frontier.append(self._node(level, n), height)
        return frontier.root()

    def _signed_hashes(self, n: int, count: int) -> Sequence[bytes]:
        """What the signed root says that the leaf hashes of block ``n`` are."""
        if count == TILE_WIDTH:
            return self._tile(0, n)
        held = (self._edge.node(0, n * TILE_WIDTH + at) for at in range(count))
        return [node for node in held if node is not None]

    def _tile(self, level: int, n: int) -> list[bytes]:
        """The hashes of a full tile, after they were found to lead to the hash above them."""
        row = self._source.tile(level, n)
        if row is None:
            raise JournalFault("E-JOURNAL-INCOMPLETE", f"tile {n} of level {level} is missing")
        root, stored = row
        hashes = [stored[at : at + HASH_BYTES] for at in range(0, len(stored), HASH_BYTES)]
        bound = self._node(level + 1, n)
        if len(stored) != TILE_WIDTH * HASH_BYTES or root != bound or root_of(hashes) != bound:
            raise JournalFault("E-JOURNAL-ALTERED", f"tile {n} of level {level} is not the one that was signed")
        return hashes

    def _node(self, level: int, n: int) -> bytes:
        """What the signed root says that hash ``n`` of a level is: of level 0 an entry's, above a tile's root."""
        held = self._edge.node(level, n)
        if held is not None:
            return held
        tile = (level, n >> TILE_HEIGHT)
        if tile not in self._tiles:
            self._tiles[tile] = self._tile(*tile)
        return self._tiles[tile][n % TILE_WIDTH]
