"""The journal's file: SQLite, opened in the one way that keeps what was committed.

- Write-ahead log with ``synchronous=FULL``: a commit returns after fdatasync, and survives a power cut (with NORMAL
  most simulated cuts lost certified entries). Each setting is read back: some builds and file systems ignore it.
- No memory map: a stray write to a map would reach the file.
- Exactly one connection writes. Its lock is on the folder: a lock file could be removed while a daemon runs, and the
  next one would make itself another. Nor may it be on SQLite's own file: POSIX drops a process's locks on a file as
  soon as the process closes any descriptor of it. So each table keeps its journal in a folder of its own.
- Memory, overlay and network file systems are refused: they lose commits, or cannot share the write-ahead log.

The triggers of ``log`` guard against accidents, not against attackers; these meet the hashes and the signatures.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from controller.certify.faults import JournalFault

APPLICATION_ID = 0x54424C4A
"""Marks the file as a table's journal ("TBLJ")."""

VERSION = 2
"""The version of the layout below. A journal keeps its version for life: another layout is another journal."""

BUSY_TIMEOUT_S = 2
NEEDED_BYTES = 1 << 20
"""With less than this free, the disk is full: opening makes the write-ahead log and its index (32 KiB) anew."""

BATCH_ENTRIES = 512
"""Entries that are read at a time."""

UNSUITABLE = {"tmpfs", "ramfs", "overlay", "9p", "nfs", "nfs4", "cifs", "smb3"}
"""Kinds of file system that lose what was committed, or cannot carry a write-ahead log."""

# The index lets a start read a hundred tile roots from one page, without the tiles.
SCHEMA = (
    "CREATE TABLE log (idx INTEGER PRIMARY KEY, leaf BLOB NOT NULL) STRICT",
    "CREATE TABLE tile (level INTEGER NOT NULL, n INTEGER NOT NULL, root BLOB NOT NULL, hashes BLOB NOT NULL,"
    " PRIMARY KEY (level, n)) STRICT, WITHOUT ROWID",
    "CREATE INDEX tile_root ON tile (level, n, root)",
    "CREATE TABLE checkpoint (size INTEGER PRIMARY KEY, note TEXT NOT NULL) STRICT",
    "CREATE TABLE cosignature (size INTEGER NOT NULL, name TEXT NOT NULL, line TEXT NOT NULL,"
    " PRIMARY KEY (size, name)) STRICT, WITHOUT ROWID",
    "CREATE TABLE snapshot (size INTEGER PRIMARY KEY, body BLOB NOT NULL, note TEXT NOT NULL) STRICT",
    "CREATE TABLE cursor (name TEXT PRIMARY KEY, size INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE volume (base INTEGER PRIMARY KEY, size INTEGER NOT NULL) STRICT",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TRIGGER log_no_update BEFORE UPDATE ON log BEGIN SELECT raise(ABORT, 'the journal is append-only'); END",
    "CREATE TRIGGER log_no_delete BEFORE DELETE ON log BEGIN SELECT raise(ABORT, 'the journal is append-only'); END",
    "CREATE TRIGGER log_in_order BEFORE INSERT ON log"
    " WHEN NEW.idx <> (SELECT coalesce(max(idx) + 1, (SELECT max(base) FROM volume)) FROM log)"
    " BEGIN SELECT raise(ABORT, 'the journal has no holes'); END",
)

_UNREADABLE = {sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


@contextmanager
def faults_of(path: Path) -> Iterator[None]:
    """Turn what SQLite says about an existing file into a JournalFault."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a closed connection or a wrong statement is a bug, not a state of the file
    except sqlite3.Error as error:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise JournalFault("E-JOURNAL-BUSY", f"another program holds {path}") from error
        if primary == sqlite3.SQLITE_FULL or (primary in _UNREADABLE and is_full(path)):
            raise JournalFault("E-JOURNAL-WRITE", f"the disk of {path} is full: {error}") from error
        if primary == sqlite3.SQLITE_NOTADB:
            raise JournalFault("E-JOURNAL-FOREIGN", f"{path} is not a journal: {error}") from error
        if primary in _UNREADABLE:
            raise JournalFault("E-JOURNAL-UNREADABLE", f"{path} cannot be read: {error}") from error
        raise JournalFault("E-JOURNAL-DAMAGED", f"{path} is damaged: {error}") from error
    except UnicodeDecodeError as error:  # what SQLite says about a damaged file may quote it
        raise JournalFault("E-JOURNAL-DAMAGED", f"{path} is damaged: {error}") from error


def is_full(path: Path) -> bool:
    """Whether the file system of ``path`` has no room left: for data, or for another file (if it counts files)."""
    space = os.statvfs(path.parent)
    return space.f_bavail * space.f_frsize < NEEDED_BYTES or (space.f_files > 0 and space.f_favail == 0)


def lock(path: Path) -> int:
    """Take the writer's lock: that of the folder in which the journal ``path`` really is. Close it to release it.

    Raises JournalFault: E-JOURNAL-BUSY when another daemon has it, E-JOURNAL-UNREADABLE.
    """
    folder = path.resolve().parent
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise JournalFault("E-JOURNAL-UNREADABLE", f"{folder} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise JournalFault("E-JOURNAL-BUSY", f"another daemon writes {path}, or another journal in {folder}") from error
    return descriptor


def file_system(path: Path) -> str:
    """The kind of file system that holds ``path``, as Linux names it."""
    target = path.resolve()
    kind, depth = "unknown", -1
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        mount = Path(before.split(" ")[4].encode().decode("unicode_escape"))
        # A later line covers an earlier one on the same folder.
        if target.is_relative_to(mount) and len(mount.parts) >= depth:
            kind, depth = after.split(" ")[0], len(mount.parts)
    return kind


def refuse_volatile(path: Path) -> None:
    """Raise JournalFault (E-JOURNAL-VOLATILE) when the file system cannot keep a journal."""
    kind = file_system(path.parent)
    if kind in UNSUITABLE:
        raise JournalFault("E-JOURNAL-VOLATILE", f"{path} is on {kind}, which cannot keep a journal")


def _set(connection: sqlite3.Connection, name: str, value: str, expected: object) -> None:
    """Set a pragma and read it back: a build that ignores it must not go unnoticed."""
    connection.execute(f"PRAGMA {name} = {value}")
    row = connection.execute(f"PRAGMA {name}").fetchone()
    found = row[0] if row else 0
    if found != expected:
        raise JournalFault("E-JOURNAL-SETTING", f"SQLite keeps {name} = {found} where {value} was asked for")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Transactions are begun by hand, and the connection may change threads (it is used by one at a time)."""
    uri = f"file:{quote(str(path))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)


def connect_writer(path: Path) -> sqlite3.Connection:
    """The one writing connection to an existing file; make it durable before it writes. Raises sqlite3.Error."""
    return _connect(path, "rw")


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads, beside the writer. Keep its transactions short: they hold back the write-ahead
    log. Raises sqlite3.Error.
    """
    return _connect(path, "ro")


def make_durable(connection: sqlite3.Connection) -> None:
    """Set what keeps commits, and read it back. Raises JournalFault (E-JOURNAL-SETTING) and sqlite3.Error."""
    _set(connection, "journal_mode", "WAL", "wal")
    _set(connection, "synchronous", "FULL", 2)
    _set(connection, "mmap_size", "0", 0)
    _set(connection, "wal_autocheckpoint", "0", 0)  # it would pass over its own errors: see move_pages
    _set(connection, "trusted_schema", "OFF", 0)


def move_pages(connection: sqlite3.Connection) -> bool:
    """Move what the write-ahead log holds into the main file, and sync it; whether all of it is there now.

    SQLite would do this by itself after a commit and at the end, but then nobody hears of a write or a sync that
    failed. A reader that is at work may hold some of it back until the next time. Raises sqlite3.Error.
    """
    busy, logged, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return not busy and logged == moved


def check_layout(connection: sqlite3.Connection, path: Path) -> None:
    """Whether this is a journal, of this version, with its guards in place.

    Raises JournalFault: E-JOURNAL-FOREIGN, E-JOURNAL-VERSION, E-JOURNAL-ALTERED; and sqlite3.Error.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise JournalFault("E-JOURNAL-FOREIGN", f"{path} is a database, but not a table's journal")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        raise JournalFault("E-JOURNAL-VERSION", f"{path} has layout {version}; this program knows layout {VERSION}")
    found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
    if found != set(SCHEMA):
        wrong = " / ".join(sorted(map(str, found ^ set(SCHEMA))))[:300]
        raise JournalFault("E-JOURNAL-ALTERED", f"the tables or guards of {path} were changed: {wrong}")
