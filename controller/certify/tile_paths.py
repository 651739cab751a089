"""Where the tiles of a log stand: the names of c2sp.org/tlog-tiles, and which tiles a part of a log needs.

    tile/<level>/<N>[.p/<width>]       up to 256 hashes, partial ones with their width
    tile/entries/<N>[.p/<width>]       the entries of 256 leaf hashes, each after its length in two bytes

N is written in groups of three digits, all but the last after an x: 1234067 is ``x001/x234/067``.

To prove the entries start to stop - 1 against the root over ``size`` entries, these tiles are enough, and all of them
are needed: at each level those on the way from the entries up, and the right edge, from which the root follows.

    level 1        [ . . . a . ]                   [ . . ]  ◄ right edge
    level 0     [ … ][ … s══════════s … ][ … ]     [ . ]    ◄ right edge
                     └ with the neighbours ┘

One entry before and one after the part are in it too, where there are any: they show that the part is whole.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from controller.certify.tiles import TILE_HEIGHT, TILE_WIDTH

_PATH = re.compile(r"tile/(entries|[0-7])/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?")


@dataclass(frozen=True, slots=True)
class TileName:
    """Tile ``n`` of a level, with ``width`` hashes (256 when it is full); without a level, a bundle of entries."""

    level: int | None
    n: int
    width: int

    @property
    def path(self) -> str:
        """The path of c2sp.org/tlog-tiles."""
        level = "entries" if self.level is None else str(self.level)
        partial = "" if self.width == TILE_WIDTH else f".p/{self.width}"
        return f"tile/{level}/{_grouped(self.n)}{partial}"


@dataclass(frozen=True, slots=True)
class Span:
    """The entries ``start`` to ``stop - 1`` of a log of ``size`` entries; ``later`` is one more entry, about them."""

    start: int
    stop: int
    size: int
    later: int | None = None

    @property
    def blocks(self) -> list[int]:
        """The blocks of 256 entries that hold the part, its neighbours, and the later entry."""
        if self.start == self.stop:
            return []
        blocks = range(max(self.start - 1, 0) // TILE_WIDTH, min(self.stop, self.size - 1) // TILE_WIDTH + 1)
        return sorted({*blocks, *([] if self.later is None else [self.later // TILE_WIDTH])})

    @property
    def bundles(self) -> list[TileName]:
        """The bundles of entries."""
        return [TileName(None, n, width_at(self.size, 0, n)) for n in self.blocks]

    @property
    def hash_tiles(self) -> list[TileName]:
        """The tiles of hashes, lower levels first."""
        return [TileName(level, n, width) for level in range(level_bound(self.size)) for n, width in self._level(level)]

    def _level(self, level: int) -> Iterator[tuple[int, int]]:
        total = self.size >> TILE_HEIGHT * level
        edge = total // TILE_WIDTH
        for n in sorted({block >> TILE_HEIGHT * level for block in self.blocks}):
            if n < edge:
                yield n, TILE_WIDTH
        if total % TILE_WIDTH:
            yield edge, total % TILE_WIDTH


def level_bound(size: int) -> int:
    """How many levels the tree over ``size`` entries has, partial tiles included."""
    return -(-size.bit_length() // TILE_HEIGHT)


def width_at(size: int, level: int, n: int) -> int:
    """How many hashes tile ``n`` of a level has when there are ``size`` entries."""
    return min(TILE_WIDTH, (size >> TILE_HEIGHT * level) - n * TILE_WIDTH)


def parse_tile_path(path: str) -> TileName | None:
    """Read a path; None when it is not one, or not in its only spelling."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    level, number, width = match.groups()
    n = int(number.replace("x", "").replace("/", ""))
    name = TileName(None if level == "entries" else int(level), n, TILE_WIDTH if width is None else int(width))
    return name if name.path == path else None


def _grouped(n: int) -> str:
    groups = [f"{n % 1_000:03d}"]
    while n := n // 1_000:
        groups.append(f"x{n % 1_000:03d}")
    return "/".join(reversed(groups))
