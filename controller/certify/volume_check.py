"""The verification of earlier volumes: whatever is in them twice, or beside the entries, agrees with the whole.

The entries that a volume holds for the journal are verified with the others (``verify``). Left are the entries and
tiles that the next file took over, the volume's end, its own list of volumes, its snapshots, and the form of its file.
"""

import sqlite3

from controller.certify.faults import JournalFault
from controller.certify.log_keys import LogKeys
from controller.certify.storage import faults_of
from controller.certify.structure import check_form, check_kinds, check_names
from controller.certify.tiles import TILE_HEIGHT, entries, level_count, stored_subtree
from controller.certify.trust import check_bounds, check_meta, check_snapshot, last_checkpoint
from controller.certify.volumes import Chain, Volume, first_tile, list_volumes


def check_earlier_volumes(chain: Chain, keys: LogKeys) -> None:
    """Check all volumes but the live file, after the entries were found authentic.

    Raises sqlite3.Error, and JournalFault like ``verify``, with the name of the volume.
    """
    for volume, after in zip(chain.listed, chain.listed[1:], strict=False):
        with faults_of(volume.path):
            connection = chain.connection(volume)
            check_names(connection)
            check_kinds(connection)
            _check_end(chain, volume, after, connection, keys)
            _check_taken_over(chain, volume, after, connection)
            check_meta(connection, keys)
            for size, body, note in connection.execute("SELECT size, body, note FROM snapshot").fetchall():
                check_snapshot(size, stored_subtree(chain, 0, size), body, note, keys)
            check_form(connection)


def check_tile_count(connection: sqlite3.Connection, size: int, base: int) -> None:
    """A tile too many is found here, one too few where it is missed."""
    expected, count = _expected_tiles(size, base), _tile_count(connection)
    if count > expected:
        raise JournalFault("E-JOURNAL-ALTERED", f"there are {count} tiles where {size} entries make {expected}")


def _expected_tiles(size: int, base: int) -> int:
    """Tiles in a file that begins at entry ``base``."""
    return sum(size >> (TILE_HEIGHT * (level + 1)) for level in range(level_count(size))) - first_tile(base)


def _tile_count(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM tile").fetchone()
    return int(count)


def _check_end(chain: Chain, volume: Volume, after: Volume, connection: sqlite3.Connection, keys: LogKeys) -> None:
    """The volume ends where it was turned, and knows the same volumes before it."""
    size = last_checkpoint(connection, keys)[0].size
    if size != after.turned_size:
        detail = f"{volume.path} ends at {size} entries; it was turned at {after.turned_size}"
        raise JournalFault("E-JOURNAL-ALTERED", detail)
    check_bounds(connection, size)
    check_tile_count(connection, size, volume.base)
    own = [(one.base, one.turned_size) for one in list_volumes(connection, volume.path)]
    known = [(one.base, one.turned_size) for one in chain.listed[: len(own)]]
    if own != known or own[-1] != (volume.base, volume.turned_size):
        raise JournalFault("E-JOURNAL-ALTERED", f"{volume.path} lists other volumes than the live file: {own[-5:]}")


def _check_taken_over(chain: Chain, volume: Volume, after: Volume, connection: sqlite3.Connection) -> None:
    """Entries and tiles that the next file took over are the same in both."""
    here = entries(connection, after.base, after.turned_size)
    there = chain.entries(after.base, after.turned_size)
    for index, (own, taken) in enumerate(zip(here, there, strict=True), after.base):
        if own != taken:
            raise JournalFault("E-JOURNAL-ALTERED", f"entry {index} was altered in {volume.path}", index)
    for level, n, root, hashes in connection.execute("SELECT level, n, root, hashes FROM tile"):
        if chain.tile(level, n) != (root, hashes):
            raise JournalFault("E-JOURNAL-ALTERED", f"tile {n} of level {level} was altered in {volume.path}")
    if _tile_count(connection) < _expected_tiles(after.turned_size, volume.base):
        raise JournalFault("E-JOURNAL-INCOMPLETE", f"a tile is missing from {volume.path}")
