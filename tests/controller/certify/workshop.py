"""What the tests of the journal build and break with: a fixed key, records, whole journals, and a forger's tools."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from controller.certify.journal import Journal
from controller.certify.leaf import Record, canonical
from controller.certify.note import KeyType, Signer
from controller.certify.storage import SCHEMA
from drivers.clock import ManualClock

ORIGIN = "casino.example/table/t07/1"
BOOT = "0123456789abcdef"
SIGNER = Signer(ORIGIN, bytes(range(32)))
OTHER_SIGNER = Signer(ORIGIN, bytes(range(1, 33)))
MIRROR = Signer("centre.example/mirror", bytes(range(2, 34)), KeyType.COSIGNATURE)

GUARDS = {
    "log_no_update": next(sql for sql in SCHEMA if "log_no_update" in sql),
    "log_no_delete": next(sql for sql in SCHEMA if "log_no_delete" in sql),
    "log_in_order": next(sql for sql in SCHEMA if "log_in_order" in sql),
}


def stakes(count: int, first: int = 0) -> list[Record]:
    """``count`` different records; ``first`` numbers them."""
    return [
        Record("fr.roulette.stake.placed.v1", canonical({"bet": "plein-17", "cents": 500 + at, "post": at % 9}), "s-1")
        for at in range(first, first + count)
    ]


def open_journal(path: Path, clock: ManualClock | None = None, signer: Signer = SIGNER) -> Journal:
    """The journal ``path``, opened for writing wherever it is."""
    return Journal.open(path, signer, clock or ManualClock(), BOOT, lambda: "ntp", allow_volatile=True)


def build(path: Path, batches: Sequence[int], signer: Signer = SIGNER, clock: ManualClock | None = None) -> Path:
    """A closed journal with one commit for each of ``batches``, which says how many entries."""
    Journal.create(path, signer, allow_volatile=True)
    with closing(open_journal(path, clock, signer)) as journal:
        for count in batches:
            journal.append(stakes(count, journal.size))
    return path


@contextmanager
def forgery(path: Path) -> Iterator[sqlite3.Connection]:
    """Direct access for somebody who has the file but no key: guards down, and up again afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for name in GUARDS:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for sql in GUARDS.values():
            connection.execute(sql)
        connection.execute("COMMIT")


def stored(path: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    """What the file answers to a query."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query, values).fetchall()


class Saboteur:
    """A connection whose next COMMIT fails: before it did anything, or after it did everything."""

    def __init__(self, connection: sqlite3.Connection, *, stores: bool) -> None:
        self._connection = connection
        self._stores = stores

    def execute(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        if sql != "COMMIT":
            return self._connection.execute(sql, values)
        self._connection.execute("COMMIT" if self._stores else "ROLLBACK")
        raise sqlite3.OperationalError("disk I/O error")

    def executemany(self, sql: str, values: Iterator[Sequence[object]]) -> sqlite3.Cursor:
        return self._connection.executemany(sql, values)

    def close(self) -> None:
        self._connection.close()
