"""Turning the journal: a full live file becomes a volume, and a small new one goes on. Only while nobody writes.

    1  the live file is verified as at a start, closed for good, synced
    2  link    live file  ─► volume     now it has both names
    3  a draft beside it takes over what a start and the play need; it is verified in the same way, synced
    4  rename  draft      ─► live file  this one step is the turning

At each moment a whole live file has its name. After a power cut before step 4 the next start turns again; the draft is
made anew and the second name is the right one already. No entry is changed or deleted by any of this.
"""

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from controller.certify.faults import JournalFault
from controller.certify.keys import sync_folder
from controller.certify.leaf import parse_leaf, time_text
from controller.certify.log_keys import LogKeys
from controller.certify.recovery import recover
from controller.certify.storage import (
    APPLICATION_ID,
    SCHEMA,
    VERSION,
    check_layout,
    connect_reader,
    connect_writer,
    faults_of,
    lock,
    make_durable,
    move_pages,
)
from controller.certify.tiles import TILE_WIDTH
from controller.certify.volumes import Volume, first_tile, list_volumes, volume_path

CARRIED_ENTRIES = 2_048
"""At the least so many entries are taken over: a start reads them to know the last requests of the posts."""

VOLUME_ENTRIES = 600_000
"""Entries of one volume, unless the month ends before: about a month of 20,000 a day."""

# The last cosignature of each witness shows how far he has seen the journal.
_TAKEN_OVER = (
    "INSERT INTO log SELECT idx, leaf FROM old.log WHERE idx >= :base ORDER BY idx",
    "INSERT INTO tile SELECT level, n, root, hashes FROM old.tile WHERE level > 0 OR n >= :tile",
    "INSERT INTO checkpoint SELECT size, note FROM old.checkpoint WHERE size = :size"
    " OR size IN (SELECT max(size) FROM old.cosignature GROUP BY name)",
    "INSERT INTO cosignature SELECT size, name, line FROM old.cosignature"
    " WHERE size IN (SELECT max(size) FROM old.cosignature GROUP BY name)",
    "INSERT INTO snapshot SELECT size, body, note FROM old.snapshot",
    "INSERT INTO cursor SELECT name, size FROM old.cursor",
    "INSERT INTO meta SELECT name, value FROM old.meta",
)


@dataclass(frozen=True, slots=True)
class Turned:
    """The volume that was made, and how many entries the new live file took over of the ``size`` there are."""

    volume: Path
    size: int
    taken_over: int


def due(path: Path, wall_ms: int, volume_entries: int = VOLUME_ENTRIES) -> bool:
    """Whether the journal ``path`` is to be turned at the next start. Raises JournalFault.

    It is when the live file has ``volume_entries`` new entries, or its first new entry is of an earlier month (UTC).
    """
    with faults_of(path), closing(connect_reader(path)) as connection:
        check_layout(connection, path)
        return _is_due(connection, list_volumes(connection, path)[-1], wall_ms, volume_entries)


def _is_due(connection: sqlite3.Connection, live: Volume, wall_ms: int, volume_entries: int) -> bool:
    (last,) = connection.execute("SELECT max(idx) FROM log").fetchone()
    if last is None or last < live.turned_size:
        return False
    if last + 1 - live.turned_size >= volume_entries:
        return _new_base(connection, last + 1) > live.base
    row = connection.execute("SELECT leaf FROM log WHERE idx = ?", (live.turned_size,)).fetchone()
    ended = row is not None and parse_leaf(row[0]).time[: len("2026-11")] < time_text(wall_ms)[: len("2026-11")]
    return ended and _new_base(connection, last + 1) > live.base


def _new_base(connection: sqlite3.Connection, size: int) -> int:
    """Where the next live file begins: a block before all that a start reads."""
    (snapshot,) = connection.execute("SELECT min(size) FROM snapshot").fetchone()
    read = min(size if snapshot is None else snapshot, size - CARRIED_ENTRIES)
    return max(0, (read // TILE_WIDTH - 1) * TILE_WIDTH)


def turn(path: Path, keys: LogKeys, wall_ms: int, volume_entries: int = VOLUME_ENTRIES) -> Turned | None:
    """Turn the journal ``path`` when it is due; None when it is not, or while another program reads it.

    Call it before the journal is opened for writing. Raises JournalFault: what ``Journal.open`` raises when the file
    is not what the key signed, E-JOURNAL-WRITE, E-VOLUME-FOREIGN; the live file is whole in any case.
    """
    if not path.exists():
        raise JournalFault("E-JOURNAL-MISSING", f"there is no journal {path}")
    descriptor = lock(path)
    try:
        _protect(path)
        return _turn(path, keys, wall_ms, volume_entries) if due(path, wall_ms, volume_entries) else None
    except JournalFault as fault:
        if fault.code != "E-JOURNAL-BUSY":
            raise
        return None
    except OSError as error:
        raise JournalFault("E-JOURNAL-WRITE", f"{path} cannot be turned: {error}") from error
    finally:
        os.close(descriptor)


def _protect(path: Path) -> None:
    """Take the right to write from all earlier volumes: the last turning may have ended just before."""
    with faults_of(path), closing(connect_reader(path)) as connection:
        check_layout(connection, path)
        listed = list_volumes(connection, path)
    for volume in listed[:-1]:
        if volume.path.exists() and volume.path.stat().st_mode & 0o222:
            volume.path.chmod(0o440)


def _turn(path: Path, keys: LogKeys, wall_ms: int, volume_entries: int) -> Turned:
    live, size, base = _finish(path, keys)
    volume = volume_path(path, live.base)
    if not volume.exists():
        os.link(path, volume)
        sync_folder(path.parent)
    elif not volume.samefile(path):
        raise JournalFault("E-VOLUME-FOREIGN", f"{path} cannot be turned: there is another file {volume}")
    draft = path.with_name(f"{path.name}.turning")
    for leftover in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm")):
        leftover.unlink(missing_ok=True)
    _draw_up(draft, path, size, base, keys)
    draft.replace(path)
    sync_folder(path.parent)
    _protect(path)
    return Turned(volume, size, size - base)


def _finish(path: Path, keys: LogKeys) -> tuple[Volume, int, int]:
    """Verify the live file, and leave nothing of it in a write-ahead log.

    Returns it, the size of the journal, and the base of the next live file.
    """
    with faults_of(path), closing(connect_writer(path)) as connection:
        check_layout(connection, path)
        make_durable(connection)
        size = recover(connection, path, keys).edge.size
        live, base = list_volumes(connection, path)[-1], _new_base(connection, size)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        # A file that is never written again needs no write-ahead log; and this fails while anybody else has it open.
        (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    if mode != "delete" or Path(f"{path}-wal").exists():
        raise JournalFault("E-JOURNAL-BUSY", f"another program reads {path}")
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return live, size, base


def _draw_up(draft: Path, path: Path, size: int, base: int, keys: LogKeys) -> None:
    """Make the next live file beside this one."""
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, path.stat().st_mode & 0o777))
    with faults_of(draft), closing(connect_writer(draft)) as connection:
        make_durable(connection)
        connection.execute("ATTACH DATABASE ? AS old", (str(path),))
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO volume SELECT base, size FROM old.volume")
        connection.execute("INSERT INTO volume VALUES (?, ?)", (base, size))
        for statement in _TAKEN_OVER:
            connection.execute(statement, {"base": base, "tile": first_tile(base), "size": size})
        connection.execute("COMMIT")
        connection.execute("DETACH DATABASE old")
        if not move_pages(connection):
            raise JournalFault("E-JOURNAL-BUSY", f"another program reads {draft}, which nobody knows yet")
        recover(connection, path, keys)
    if Path(f"{draft}-wal").exists():
        raise JournalFault("E-JOURNAL-BUSY", f"another program reads {draft}, which nobody knows yet")
