"""A journal unpacked for questions: a database with one table for each kind of fact, one row for each entry.

    fr.table.stakes.placed.v1  ──►  table stakes_placed_v1 (entry, time, seance, post, round, cents, credit, stakes …)

An auditor asks it in SQL, or with any tool for SQLite. It proves nothing: each row names the entry that does.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import sqlite_utils

from controller.certify.leaf import parse_leaf
from controller.codec import INPUT, INPUT_AT

BATCH = 5_000
"""Entries that are unpacked at a time."""


def unpack(leaves: Iterable[bytes], out: Path, progress: Callable[[int], None] = lambda _: None) -> dict[str, int]:
    """Write the database; returns how many rows each table has. Raises FileExistsError when ``out`` exists."""
    if out.exists():
        raise FileExistsError(out)
    database = sqlite_utils.Database(out, strict=True)
    rows: dict[str, int] = {}
    done = 0
    waiting = iter(leaves)
    while batch := list(islice(waiting, BATCH)):
        by_table: dict[str, list[dict[str, Any]]] = {}
        for leaf in batch:
            table, row = _row(leaf)
            by_table.setdefault(table, []).append(row)
        for table, some in by_table.items():
            database.table(table).insert_all(some, pk="entry", alter=True)
            rows[table] = rows.get(table, 0) + len(some)
        done += len(batch)
        progress(done)
    database.close()
    return rows


def _row(leaf: bytes) -> tuple[str, dict[str, Any]]:
    entry = parse_leaf(leaf)
    row: dict[str, Any] = {"entry": entry.index, "time": entry.time, "seance": entry.seance or ""}
    row |= _columns(json.loads(entry.data))
    return table_of(entry.kind), row


def _columns(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if name == INPUT:
            yield "asked_by", value["kind"]
        elif name != INPUT_AT:
            yield name, int(value) if isinstance(value, bool) else value if _is_plain(value) else json.dumps(value)


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | str)


def table_of(kind: str) -> str:
    """The table of a kind of fact: its name without ``fr.`` and its domain."""
    return "_".join(kind.split(".")[2:])
