"""The tree in an archive: its tiles and entries, given only when they are bound to the signed root.

    signed root ──► right edge of every level ──► full tiles, from the top down ──► entries

The right edge (the partial tiles) must lead to the signed root. A full tile must lead to its hash in the tile above it,
which was bound before. An entry must have its hash in its tile. Where tile and entry disagree, the one that does not
lead to the root is the altered one.
"""

from base64 import b64decode
from collections.abc import Sequence

from controller.certify.blocks import check_entries
from controller.certify.checkpoint import Checkpoint
from controller.certify.faults import JournalFault
from controller.certify.leaf import FIRST_PREVIOUS, LEAF_BOUND, LEAF_PATTERN, leaf_hash
from controller.certify.tar import TarReader
from controller.certify.tile_paths import TileName, level_bound, width_at
from controller.certify.tiles import HASH_BYTES, TILE_HEIGHT, TILE_WIDTH
from controller.certify.tree import Frontier, root_of

LENGTH_BYTES = 2
"""What precedes each entry of a bundle."""


class ArchiveTree:
    """The tiles of ``tar`` under ``checkpoint``, which was signed."""

    def __init__(self, tar: TarReader, checkpoint: Checkpoint) -> None:
        """Raises JournalFault when the right edge does not lead to the root: E-JOURNAL-ALTERED, E-ARCHIVE-…"""
        self._tar = tar
        self._checkpoint = checkpoint
        self._upper: dict[tuple[int, int], list[bytes]] = {}
        if self.root(checkpoint.size) != checkpoint.root:
            self._blame_edge()

    def root(self, size: int) -> bytes:
        """The root over the first ``size`` entries. Raises JournalFault when the archive has not the tiles for it."""
        return self._root(size, None)

    def _root(self, size: int, tail: Sequence[bytes] | None) -> bytes:
        """The root, with ``tail`` in the place of the last hashes of level 0."""
        frontier = Frontier()
        for level in reversed(range(level_bound(size))):
            total = size >> TILE_HEIGHT * level
            if not (width := total % TILE_WIDTH):
                continue
            hashes = self._bound(level, total // TILE_WIDTH)[:width] if level or tail is None else tail
            for node in hashes:
                frontier.append(node, TILE_HEIGHT * level)
        return frontier.root()

    def block(self, n: int) -> list[bytes]:
        """The entries of block ``n``, each of them bound.

        Raises JournalFault: E-JOURNAL-ALTERED, with the index of the altered entry where that can be known, E-ARCHIVE-…
        """
        leaves, whole = self._parsed(n)
        hashes = [leaf_hash(leaf) for leaf in leaves]
        tile = self._tile(0, n)
        if whole and hashes == tile and self._leads(n, tile):
            return leaves
        first = n * TILE_WIDTH
        if self._leads(n, tile):
            same = (own == bound for own, bound in zip(hashes, tile, strict=False))
            at = first + next((at for at, good in enumerate(same) if not good), min(len(hashes), len(tile) - 1))
            raise JournalFault("E-JOURNAL-ALTERED", f"entry {at} was altered: its hash is not the one in its tile", at)
        if whole and self._leads(n, hashes):
            raise JournalFault("E-JOURNAL-ALTERED", f"tile {n} of level 0 was altered; the entries under it were not")
        self._blame_chain(n, leaves, hashes)
        raise self._ran(n)

    def bundle(self, n: int) -> list[bytes]:
        """The entries of block ``n`` as they are in the archive."""
        return self._parsed(n)[0]

    # ── Tiles ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _bound(self, level: int, n: int) -> list[bytes]:
        """The hashes of a tile after they were found to lead to the hash above. Partial ones lead to the root."""
        if (level, n) in self._upper:
            return self._upper[level, n]
        hashes = self._tile(level, n)
        if len(hashes) == TILE_WIDTH and root_of(hashes) != self._above(level, n):
            if level == 0 and TileName(None, n, TILE_WIDTH).path in self._tar.members:
                self.block(n)  # it can say which entry
            raise JournalFault("E-JOURNAL-ALTERED", f"tile {n} of level {level} is not the one that was signed")
        if level:
            self._upper[level, n] = hashes
        return hashes

    def _above(self, level: int, n: int) -> bytes:
        return self._bound(level + 1, n // TILE_WIDTH)[n % TILE_WIDTH]

    def _tile(self, level: int, n: int) -> list[bytes]:
        """The hashes of a tile as they are in the archive."""
        width = width_at(self._checkpoint.size, level, n)
        name = TileName(level, n, width).path
        stored = self._tar.read(name, width * HASH_BYTES)
        if len(stored) != width * HASH_BYTES:
            raise JournalFault("E-ARCHIVE-FORM", f"{name} has {len(stored)} bytes, not {width} hashes")
        return [stored[at : at + HASH_BYTES] for at in range(0, len(stored), HASH_BYTES)]

    def _leads(self, n: int, hashes: Sequence[bytes]) -> bool:
        """Whether these hashes of block ``n`` lead to what is signed."""
        if width_at(self._checkpoint.size, 0, n) == TILE_WIDTH:
            return root_of(hashes) == self._above(0, n)
        return self._root(self._checkpoint.size, hashes) == self._checkpoint.root

    # ── Entries ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _parsed(self, n: int) -> tuple[list[bytes], bool]:
        """The entries of a bundle, and whether it holds just as many as it must and nothing else."""
        width = width_at(self._checkpoint.size, 0, n)
        content = self._tar.read(TileName(None, n, width).path, width * (LENGTH_BYTES + LEAF_BOUND))
        leaves: list[bytes] = []
        at = 0
        while at < len(content) and len(leaves) < width:
            end = at + LENGTH_BYTES + int.from_bytes(content[at : at + LENGTH_BYTES])
            leaves.append(content[at + LENGTH_BYTES : end])
            at = end
        return leaves, at == len(content) and len(leaves) == width

    # ── What was altered ─────────────────────────────────────────────────────────────────────────────────────────────

    def _blame_edge(self) -> None:
        """Say what is wrong at the right edge."""
        size = self._checkpoint.size
        if size % TILE_WIDTH and TileName(None, size // TILE_WIDTH, size % TILE_WIDTH).path in self._tar.members:
            self.block(size // TILE_WIDTH)
        raise JournalFault("E-JOURNAL-ALTERED", "the tiles of the right edge do not lead to the signed root")

    def _blame_chain(self, n: int, leaves: Sequence[bytes], hashes: Sequence[bytes]) -> None:
        """Let the chain name the entry, when tile and entries were altered together."""
        before = FIRST_PREVIOUS
        if n and leaves and (match := LEAF_PATTERN.fullmatch(leaves[0])):
            before = b64decode(match[5])
        origin = self._checkpoint.origin
        check_entries(origin, n * TILE_WIDTH, leaves, hashes, before, lambda repaired: self._leads(n, repaired))

    def _ran(self, n: int) -> JournalFault:
        """The chain holds up to the end of the block, and yet it is not what was signed."""
        width = width_at(self._checkpoint.size, 0, n)
        last = n * TILE_WIDTH + width - 1
        if width < TILE_WIDTH and level_bound(self._checkpoint.size) > 1:
            detail = f"the right edge is not what was signed: a tile of it, or the entries up to {last}"
            return JournalFault("E-JOURNAL-ALTERED", detail)
        detail = f"entry {last}, or a run of entries that ends with it, is not what was signed"
        return JournalFault("E-JOURNAL-ALTERED", detail, last)
