"""The mirror's store in PostgreSQL: the same tables, the same promise.

``fsync`` and ``synchronous_commit`` are read back: a server that runs without them acknowledges what a power cut takes
away, and what a mirror cosigned must not be taken away. An advisory lock lets one mirror write in each database.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from controller.mirror.faults import MirrorFault
from controller.mirror.store import ROW, Evidence, Held, Kept, held_of, row_of

MIRROR_LOCK = 0x54424C4D
"""The advisory lock of the mirror that writes ("TBLM")."""

CONNECT_WITHIN_S = 10

SCHEMA = b"""
CREATE TABLE IF NOT EXISTS origin (
    id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY, name text NOT NULL UNIQUE, size bigint NOT NULL,
    previous bytea NOT NULL, nodes bytea NOT NULL, cosigned bigint NOT NULL, ack text NOT NULL,
    announced bigint NOT NULL, latest bigint NOT NULL, claimed bigint NOT NULL, heard_ms bigint NOT NULL,
    fork text NOT NULL);
CREATE TABLE IF NOT EXISTS entry (
    origin integer NOT NULL, idx bigint NOT NULL, leaf bytea NOT NULL, PRIMARY KEY (origin, idx));
CREATE TABLE IF NOT EXISTS block (
    origin integer NOT NULL, n bigint NOT NULL, root bytea NOT NULL, PRIMARY KEY (origin, n));
CREATE TABLE IF NOT EXISTS evidence (
    origin integer NOT NULL, kind text NOT NULL, at bigint NOT NULL, side text NOT NULL, content bytea NOT NULL,
    heard_ms bigint NOT NULL, digest bytea GENERATED ALWAYS AS (sha256(content)) STORED,
    PRIMARY KEY (origin, kind, at, digest))
"""

_COLUMNS = ROW.split(", ")
_PUT_ORIGIN = (
    f"INSERT INTO origin ({ROW}) VALUES ({', '.join(['%s'] * len(_COLUMNS))}) ON CONFLICT (name)"
    f" DO UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in _COLUMNS)} RETURNING id, name"
).encode()
_PUT_EVIDENCE = (
    b"INSERT INTO evidence (origin, kind, at, side, content, heard_ms) VALUES (%s, %s, %s, %s, %s, %s)"
    b" ON CONFLICT DO NOTHING"
)


class PostgresStore:
    """See ``Store``. Use it in one thread at a time."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        self._ids: dict[str, int] = {}

    @classmethod
    def open(cls, url: str) -> "PostgresStore":
        """The store in the database ``url``, made if there is none, for writing.

        Raises MirrorFault: E-MIRROR-STORE; E-MIRROR-BUSY when another mirror writes there.
        """
        with _faults():
            connection = psycopg.connect(url, connect_timeout=CONNECT_WITHIN_S)
        try:
            with _faults():
                _check_durable(connection)
                locked = connection.execute("SELECT pg_try_advisory_lock(%s)", (MIRROR_LOCK,)).fetchone()
                if locked != (True,):
                    raise MirrorFault("E-MIRROR-BUSY", f"another mirror writes in {connection.info.dbname}")
                connection.execute(SCHEMA)
                connection.commit()
        except MirrorFault:
            connection.close()
            raise
        return cls(connection)

    @classmethod
    def read(cls, url: str) -> "PostgresStore":
        """An existing store, only to be read, beside the mirror that writes. Raises MirrorFault (E-MIRROR-STORE)."""
        with _faults():
            connection = psycopg.connect(url, connect_timeout=CONNECT_WITHIN_S, autocommit=True)
            connection.execute("SET default_transaction_read_only = on")
        return cls(connection)

    def held(self) -> list[Held]:
        """See ``Store``."""
        return [held_of(row) for row in self._ask(f"SELECT {ROW} FROM origin ORDER BY name")]

    def keep(self, changes: Sequence[Kept]) -> None:
        """See ``Store``."""
        with _faults(), self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(_PUT_ORIGIN, [row_of(one.held) for one in changes], returning=True)
            for origin, name in _all_rows(cursor):
                self._ids[name] = origin
            with cursor.copy("COPY entry (origin, idx, leaf) FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(["int4", "int8", "bytea"])
                for one in changes:
                    origin = self._ids[one.held.origin]
                    for index, leaf in enumerate(one.leaves, one.first):
                        copy.write_row((origin, index, leaf))
            blocks = [(self._ids[one.held.origin], n, root) for one in changes for n, root in one.blocks]
            if blocks:
                cursor.executemany("INSERT INTO block VALUES (%s, %s, %s)", blocks)
            pieces = [
                (self._ids[one.held.origin], at.kind, at.at, at.side, at.content, at.heard_ms)
                for one in changes
                for at in one.evidence
            ]
            if pieces:
                cursor.executemany(_PUT_EVIDENCE, pieces)

    def leaves(self, origin: str, start: int, stop: int) -> list[bytes]:
        """See ``Store``."""
        query = "SELECT leaf FROM entry WHERE origin = %s AND idx >= %s AND idx < %s ORDER BY idx"
        return [bytes(leaf) for (leaf,) in self._ask(query, self._id(origin), start, stop)]

    def blocks(self, origin: str, count: int) -> list[bytes]:
        """See ``Store``."""
        query = "SELECT root FROM block WHERE origin = %s AND n < %s ORDER BY n"
        return [bytes(root) for (root,) in self._ask(query, self._id(origin), count)]

    def evidence(self, origin: str) -> list[Evidence]:
        """See ``Store``."""
        query = (
            "SELECT kind, side, at, content, heard_ms FROM evidence WHERE origin = %s"
            ' ORDER BY at, kind COLLATE "C", side COLLATE "C", content'
        )
        return [
            Evidence(origin=origin, kind=kind, side=side, at=at, content=bytes(content), heard_ms=heard_ms)
            for kind, side, at, content, heard_ms in self._ask(query, self._id(origin))
        ]

    def _id(self, origin: str) -> int:
        """The number of an origin; one that no row has when there is no such origin yet."""
        if origin not in self._ids:
            rows = self._ask("SELECT id FROM origin WHERE name = %s", origin)
            if not rows:
                return 0
            self._ids[origin] = rows[0][0]
        return self._ids[origin]

    def _ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with _faults(), self._connection.transaction():
            return self._connection.execute(query.encode(), values, binary=True).fetchall()

    def close(self) -> None:
        """See ``Store``."""
        self._connection.close()


def _all_rows(cursor: psycopg.Cursor[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rows of every statement of an ``executemany``."""
    more: bool | None = True
    while more:
        yield from cursor
        more = cursor.nextset()


@contextmanager
def _faults() -> Iterator[None]:
    """The server's complaint as a fault. Its text never holds the password of the URL."""
    try:
        yield
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:
            raise  # a bug
        raise MirrorFault("E-MIRROR-STORE", f"PostgreSQL: {error}".strip()) from error
    except psycopg.Error as error:
        raise MirrorFault("E-MIRROR-STORE", f"PostgreSQL: {error}".strip()) from error


def _check_durable(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    connection.execute("SET synchronous_commit = on")
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
        if row != ("on",):
            raise MirrorFault(
                "E-MIRROR-STORE", f"PostgreSQL runs with {name} = {row and row[0]}: a power cut loses entries"
            )
