"""The SQLite file below the entries: values of another kind, other names, pages that do not fit are all found."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from controller.certify.faults import JournalFault
from controller.certify.structure import check_form, check_kinds, check_names
from controller.certify.tiles import entries
from controller.certify.verify import Outcome, verify
from tests.controller.certify.archives import KEYS
from tests.controller.certify.workshop import build


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal of 300 entries, with one tile."""
    return build(tmp_path / "journal.db", [300])


def edit_schema(journal: Path, statement: str) -> None:
    """Change the names in the file, which SQLite itself would not."""
    with closing(sqlite3.connect(journal, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)


def as_text(journal: Path, leaf: bytes) -> None:
    """Mark an entry's bytes as a text: the number of its kind is odd instead of even (SQLite file format, 2.1)."""
    content = bytearray(journal.read_bytes())
    at = content.find(leaf) - 1
    content[at] += 1
    journal.write_bytes(content)


def test_file_that_is_well_formed_passes(journal: Path) -> None:
    with closing(sqlite3.connect(journal)) as connection:
        check_names(connection)
        check_kinds(connection)
        check_form(connection)


def test_entry_that_became_a_text_is_named(journal: Path) -> None:
    with closing(sqlite3.connect(journal)) as connection:
        (leaf,) = connection.execute("SELECT leaf FROM log WHERE idx = 41").fetchone()
    as_text(journal, leaf)
    verdict = verify(journal, KEYS)
    assert (verdict.outcome, verdict.code, verdict.index) == (Outcome.ALTERED, "E-JOURNAL-ALTERED", 41)
    assert "another kind of value" in str(verdict.problem)


def test_value_of_another_kind_in_any_column_is_found_and_an_absent_one_is_not() -> None:
    for row, good in (
        ((1, b"x", 5), True),
        ((1, b"x", None), True),
        (("one", b"x", 5), False),
        ((1, "x", 5), False),
        ((1, b"x", 1.5), False),
    ):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE t (n INTEGER NOT NULL, b BLOB NOT NULL, spare INTEGER)")
            connection.execute("INSERT INTO t VALUES (?, ?, ?)", row)
            if good:
                check_kinds(connection)
            else:
                with pytest.raises(JournalFault, match=f"t {row[0]} was altered"):
                    check_kinds(connection)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sqlite_schema SET name = 'Meta' WHERE name = 'meta'",
        "UPDATE sqlite_schema SET tbl_name = 'LOG' WHERE name = 'log_no_delete'",
        "UPDATE sqlite_schema SET type = 'Trigger' WHERE name = 'log_no_delete'",
    ],
)
def test_table_or_guard_under_another_name_is_altered(journal: Path, statement: str) -> None:
    edit_schema(journal, statement)
    with closing(sqlite3.connect(journal)) as connection, pytest.raises(JournalFault, match="E-JOURNAL-ALTERED"):
        check_names(connection)
    assert verify(journal, KEYS).outcome in {Outcome.ALTERED, Outcome.UNREADABLE}


def test_schema_that_is_no_text_is_altered_and_nothing_breaks(journal: Path) -> None:
    edit_schema(journal, "UPDATE sqlite_schema SET sql = CAST(sql AS BLOB) WHERE name = 'log_no_delete'")
    assert verify(journal, KEYS).outcome in {Outcome.ALTERED, Outcome.UNREADABLE}


def test_index_beside_its_table_is_compared(journal: Path) -> None:
    with closing(sqlite3.connect(journal)) as connection:
        (root,) = connection.execute("SELECT root FROM tile").fetchone()
    content = bytearray(journal.read_bytes())
    places = [at for at in range(len(content)) if content.startswith(root, at)]
    assert len(places) == 2  # in the table, and in the index
    outcomes = set()
    for at in places:
        bad = bytearray(content)
        bad[at] ^= 1
        journal.write_bytes(bad)
        outcomes.add(verify(journal, KEYS).code)
    assert outcomes == {"E-JOURNAL-ALTERED", "E-JOURNAL-DAMAGED"}


def test_entry_that_is_there_twice_is_damage_and_one_that_is_not_is_named() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE log (idx INTEGER, leaf BLOB)")
        connection.executemany("INSERT INTO log VALUES (?, x'00')", [(0,), (1,), (1,), (2,)])
        with pytest.raises(JournalFault, match="E-JOURNAL-DAMAGED"):
            entries(connection, 0, 3)
        with pytest.raises(JournalFault, match="entry 3 is missing"):
            entries(connection, 2, 5)


def test_entry_read_as_another_kind_of_value_is_named() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE log (idx INTEGER, leaf)")
        connection.executemany("INSERT INTO log VALUES (?, ?)", [(0, b"x"), (1, b"x"), (2, "x"), (3, None)])
        assert entries(connection, 0, 2) == [b"x", b"x"]
        with pytest.raises(JournalFault, match="entry 2 was altered") as caught:
            entries(connection, 0, 4)
    assert caught.value.index == 2
