"""The mirror's store in SQLite: write-ahead log with ``synchronous=FULL``, both read back, and one writer.

The settings and their reasons are those of the journal (``certify/storage.py``).
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from controller.certify.faults import JournalFault
from controller.certify.keys import sync_folder
from controller.certify.storage import connect_reader, connect_writer, lock, make_durable, refuse_volatile
from controller.mirror.faults import MirrorFault
from controller.mirror.store import ROW, Evidence, Held, Kept, held_of, row_of

APPLICATION_ID = 0x54424C4D
"""Marks the file as a mirror's store ("TBLM")."""

VERSION = 1

SCHEMA = (
    "CREATE TABLE origin (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL,"
    " previous BLOB NOT NULL, nodes BLOB NOT NULL, cosigned INTEGER NOT NULL, ack TEXT NOT NULL,"
    " announced INTEGER NOT NULL, latest INTEGER NOT NULL, claimed INTEGER NOT NULL, heard_ms INTEGER NOT NULL,"
    " fork TEXT NOT NULL) STRICT",
    "CREATE TABLE entry (origin INTEGER NOT NULL, idx INTEGER NOT NULL, leaf BLOB NOT NULL,"
    " PRIMARY KEY (origin, idx)) STRICT, WITHOUT ROWID",
    "CREATE TABLE block (origin INTEGER NOT NULL, n INTEGER NOT NULL, root BLOB NOT NULL,"
    " PRIMARY KEY (origin, n)) STRICT, WITHOUT ROWID",
    "CREATE TABLE evidence (origin INTEGER NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL, content BLOB NOT NULL,"
    " side TEXT NOT NULL, heard_ms INTEGER NOT NULL, PRIMARY KEY (origin, kind, at, content)) STRICT, WITHOUT ROWID",
)

_PUT_ORIGIN = (
    f"INSERT INTO origin ({ROW}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    f" ON CONFLICT (name) DO UPDATE SET ({ROW}) = (excluded.{ROW.replace(', ', ', excluded.')}) RETURNING id"
)


class SqliteStore:
    """See ``Store``. Only the writer may ``keep``; a reader may look beside it. Use it in one thread at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock_descriptor: int | None) -> None:
        self._path = path
        self._connection = connection
        self._lock = lock_descriptor
        self._ids: dict[str, int] = {}

    @classmethod
    def open(cls, path: Path, *, allow_volatile: bool = False) -> "SqliteStore":
        """The store ``path``, made if there is none, for writing. Its folder is locked: one mirror in each.

        Raises MirrorFault: E-MIRROR-STORE, E-MIRROR-BUSY.
        """
        descriptor: int | None = None
        try:
            with _faults_of(path):
                if not allow_volatile:
                    refuse_volatile(path)
                descriptor = lock(path)
                if not path.exists():
                    _lay_out(path)
                connection = connect_writer(path)
                _check_layout(connection, path)
                make_durable(connection)
        except MirrorFault:
            if descriptor is not None:
                os.close(descriptor)
            raise
        return cls(path, connection, descriptor)

    @classmethod
    def read(cls, path: Path) -> "SqliteStore":
        """An existing store, only to be read, beside the mirror that writes. Raises MirrorFault (E-MIRROR-STORE)."""
        if not path.exists():
            raise MirrorFault("E-MIRROR-STORE", f"there is no store {path}")
        with _faults_of(path):
            connection = connect_reader(path)
            _check_layout(connection, path)
        return cls(path, connection, None)

    def held(self) -> list[Held]:
        """See ``Store``."""
        with _faults_of(self._path):
            rows = self._connection.execute(f"SELECT {ROW} FROM origin ORDER BY name").fetchall()
        return [held_of(row) for row in rows]

    def keep(self, changes: Sequence[Kept]) -> None:
        """See ``Store``."""
        with _faults_of(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            for one in changes:
                self._keep(self._connection, one)
            self._connection.execute("COMMIT")

    def _keep(self, connection: sqlite3.Connection, one: Kept) -> None:
        (origin,) = connection.execute(_PUT_ORIGIN, row_of(one.held)).fetchone()
        if one.leaves:
            rows = ((origin, index, leaf) for index, leaf in enumerate(one.leaves, one.first))
            connection.executemany("INSERT INTO entry VALUES (?, ?, ?)", rows)
        if one.blocks:
            connection.executemany("INSERT INTO block VALUES (?, ?, ?)", ((origin, n, root) for n, root in one.blocks))
        if one.evidence:
            pieces = ((origin, at.kind, at.at, at.content, at.side, at.heard_ms) for at in one.evidence)
            connection.executemany("INSERT OR IGNORE INTO evidence VALUES (?, ?, ?, ?, ?, ?)", pieces)

    def leaves(self, origin: str, start: int, stop: int) -> list[bytes]:
        """See ``Store``."""
        query = "SELECT leaf FROM entry WHERE origin = ? AND idx >= ? AND idx < ? ORDER BY idx"
        with _faults_of(self._path):
            return [leaf for (leaf,) in self._connection.execute(query, (self._id(origin), start, stop))]

    def blocks(self, origin: str, count: int) -> list[bytes]:
        """See ``Store``."""
        query = "SELECT root FROM block WHERE origin = ? AND n < ? ORDER BY n"
        with _faults_of(self._path):
            return [root for (root,) in self._connection.execute(query, (self._id(origin), count))]

    def evidence(self, origin: str) -> list[Evidence]:
        """See ``Store``."""
        query = (
            "SELECT kind, side, at, content, heard_ms FROM evidence WHERE origin = ? ORDER BY at, kind, side, content"
        )
        with _faults_of(self._path):
            rows = self._connection.execute(query, (self._id(origin),)).fetchall()
        return [
            Evidence(origin=origin, kind=kind, side=side, at=at, content=content, heard_ms=heard_ms)
            for kind, side, at, content, heard_ms in rows
        ]

    def _id(self, origin: str) -> int:
        """The number of an origin; one that no row has when there is no such origin yet."""
        if origin not in self._ids:
            row = self._connection.execute("SELECT id FROM origin WHERE name = ?", (origin,)).fetchone()
            if row is None:
                return 0
            self._ids[origin] = row[0]
        return self._ids[origin]

    def close(self) -> None:
        """See ``Store``."""
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a bug, not a state of the file
    except (sqlite3.Error, OSError) as error:
        raise MirrorFault("E-MIRROR-STORE", f"{path}: {error}") from error
    except JournalFault as fault:
        code = "E-MIRROR-BUSY" if fault.code == "E-JOURNAL-BUSY" else "E-MIRROR-STORE"
        raise MirrorFault(code, f"{path}: {fault.detail}") from fault


def _lay_out(path: Path) -> None:
    """Make an empty store: complete, or not at all."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640))
    connection = connect_writer(draft)
    try:
        make_durable(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        connection.close()
    draft.replace(path)
    sync_folder(path.parent)


def _check_layout(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if (application, version) != (APPLICATION_ID, VERSION):
        raise MirrorFault("E-MIRROR-STORE", f"{path} is no mirror's store of layout {VERSION}")
