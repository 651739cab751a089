"""The volumes of one journal: no entry is ever deleted, and yet the live file stays small.

    base 0               base 599,552                     base 1,209,344
    ├─ volume 0 ─────────────┬─┐
                         ├─ volume 1 ────────────────────────┬─┐
                                                          ├─ live file ──────►
                                                          the last entries are in both

Entries are numbered through, and all are leaves of one tree. A volume is a whole journal as it stood when it was
turned (see ``turning``), named after its first entry; it never changes again. The live file carries on the entries that
a start reads, every tile of level 1 and above, and the tiles of level 0 from the level-1 tile of its base on: so a
start and the play need no volume. Whoever asks for an earlier entry or proof is led to the volume that holds it.

Which volumes there are is in the live file, so that one that is missing is missed.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from controller.certify.faults import JournalFault
from controller.certify.storage import BATCH_ENTRIES, check_layout, connect_reader, faults_of
from controller.certify.tiles import TILE_HEIGHT, TILE_WIDTH, entries, tile_of, tile_roots

Answer = TypeVar("Answer")

FIRST_TILE_SHIFT = 2 * TILE_HEIGHT
"""Entries under a tile of level 1, as a power of two."""


@dataclass(frozen=True, slots=True)
class Volume:
    """A file of the journal: it begins at entry ``base``, and the file after it takes over at ``stop``.

    ``turned_size`` is the size of the journal when the file was begun: what is before, it took over from the last one.
    """

    path: Path
    base: int
    turned_size: int
    stop: int | None


def volume_path(live: Path, base: int) -> Path:
    """Where the volume that begins at entry ``base`` is, beside the live file."""
    return live.with_name(f"{live.stem}.{base:010d}{live.suffix}")


def first_tile(base: int) -> int:
    """The first tile of level 0 in a file that begins at entry ``base``."""
    return (base >> FIRST_TILE_SHIFT) << TILE_HEIGHT


def list_volumes(connection: sqlite3.Connection, live: Path) -> list[Volume]:
    """All files of the journal, the live one last, as the live one lists them.

    Raises sqlite3.Error, and JournalFault (E-JOURNAL-ALTERED) when no turning can have made such a list.
    """
    rows: list[tuple[int, int]] = connection.execute("SELECT base, size FROM volume ORDER BY base").fetchall()
    bases = [base for base, _ in rows]
    plausible = bases[:1] == [0] and all(base % TILE_WIDTH == 0 and base <= size for base, size in rows)
    if not plausible or [size for _, size in rows] != sorted({size for _, size in rows}):
        raise JournalFault("E-JOURNAL-ALTERED", f"the list of volumes in {live} was altered: it reads {rows[:5]}")
    stops: list[int | None] = [*bases[1:], None]
    return [
        Volume(live if stop is None else volume_path(live, base), base, size, stop)
        for (base, size), stop in zip(rows, stops, strict=True)
    ]


def volumes(path: Path) -> list[Volume]:
    """All files of the journal ``path``, the live one last. Raises JournalFault when the live file cannot be read."""
    if not path.exists():
        raise JournalFault("E-JOURNAL-MISSING", f"there is no journal {path}")
    with faults_of(path):
        connection = connect_reader(path)
        try:
            check_layout(connection, path)
            return list_volumes(connection, path)
        finally:
            connection.close()


class Chain:
    """Entries and tiles of all volumes of one journal; ``connection`` is to its live file and stays the caller's.

    Earlier volumes are opened when something in them is asked for. All methods raise sqlite3.Error for the live file,
    and JournalFault: E-JOURNAL-INCOMPLETE when a volume, an entry or a tile is missing, and what ``faults_of`` says.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._live = connection
        self._path = path
        self._listed: list[Volume] | None = None
        self._opened: dict[int, sqlite3.Connection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the earlier volumes go."""
        for connection in self._opened.values():
            connection.close()
        self._opened.clear()

    @property
    def listed(self) -> list[Volume]:
        """All files, the live one last."""
        if self._listed is None:
            self._listed = list_volumes(self._live, self._path)
        return self._listed

    @property
    def base(self) -> int:
        """The first entry of the live file."""
        return self.listed[-1].base

    def connection(self, volume: Volume) -> sqlite3.Connection:
        """The open file of ``volume``."""
        if volume.stop is None:
            return self._live
        if volume.base not in self._opened:
            self._opened[volume.base] = _open(volume)
        return self._opened[volume.base]

    def entries(self, start: int, stop: int) -> list[bytes]:
        """The leaves start to stop - 1."""
        found: list[bytes] = []
        for volume, first, last in self._shares(start, stop):
            found += self._ask(volume, entries, first, last)
        return found

    def tile(self, level: int, n: int) -> tuple[bytes, bytes] | None:
        """The root and the hashes of a full tile, None when no file holds it."""
        live = self.listed[-1]
        if level or n >= first_tile(live.base):
            return tile_of(self._live, level, n)
        ((volume, _, _),) = self._shares(n * TILE_WIDTH, n * TILE_WIDTH + 1)
        return self._ask(volume, tile_of, level, n)

    def tile_roots(self, level: int, start: int, stop: int) -> list[bytes]:
        """The roots of the full tiles start to stop - 1 of a level."""
        if level or start >= first_tile(self.base):
            return tile_roots(self._live, level, start, stop)
        found: list[bytes] = []
        for volume, first, last in self._shares(start * TILE_WIDTH, stop * TILE_WIDTH):
            found += self._ask(volume, tile_roots, 0, first // TILE_WIDTH, last // TILE_WIDTH)
        return found

    def stream(self, start: int, stop: int) -> Iterator[bytes]:
        """The entries start to stop - 1, as far as there are any, a batch at a time. Raises JournalFault alone.

        Each batch is one short transaction, so a slow consumer does not hold back the write-ahead log.
        """
        query = "SELECT leaf FROM log WHERE idx >= ? AND idx < ? ORDER BY idx"
        with faults_of(self._path):
            shares = list(self._shares(start, stop))
        for volume, begin, end in shares:
            for first in range(begin, end, BATCH_ENTRIES):
                wanted = min(BATCH_ENTRIES, end - first)
                with faults_of(volume.path):
                    rows = self.connection(volume).execute(query, (first, first + wanted)).fetchall()
                for (leaf,) in rows:
                    yield leaf
                if len(rows) < wanted:
                    return

    def _shares(self, start: int, stop: int) -> Iterator[tuple[Volume, int, int]]:
        """What of the entries start to stop - 1 each file is asked for."""
        for volume in self.listed:
            first, last = max(start, volume.base), stop if volume.stop is None else min(stop, volume.stop)
            if first < last:
                yield volume, first, last

    def _ask(self, volume: Volume, question: Callable[..., Answer], *about: int) -> Answer:
        if volume.stop is None:
            return question(self._live, *about)
        with faults_of(volume.path):
            return question(self.connection(volume), *about)


def _open(volume: Volume) -> sqlite3.Connection:
    if not volume.path.exists():
        detail = f"the volume {volume.path} with the entries {volume.base} to {(volume.stop or 0) - 1} is missing"
        raise JournalFault("E-JOURNAL-INCOMPLETE", detail, volume.base)
    with faults_of(volume.path):
        connection = connect_reader(volume.path)
        try:
            check_layout(connection, volume.path)
        except (JournalFault, sqlite3.Error):
            connection.close()
            raise
    return connection
