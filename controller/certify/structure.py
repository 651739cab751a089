"""The SQLite file below the entries: does each column hold what it is declared to, and is every page well formed?

A flipped bit need not hit an entry's bytes. It may turn a blob into a text, lose a row between two pages, or change an
index beside its table, and what is read then is nothing that a table ever wrote. So a full verification asks for both:
the kinds of all values before anything is read from them, and the form of the file at the end, when nothing better is
known to be wrong.
"""

import sqlite3

from controller.certify.faults import JournalFault

_KINDS = {"INTEGER": "integer", "TEXT": "text", "BLOB": "blob"}


def check_kinds(connection: sqlite3.Connection) -> None:
    """Whether every value is of its column's kind. Raises sqlite3.Error, and JournalFault (E-JOURNAL-ALTERED)."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in tables:
        columns = connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (table,)).fetchall()
        wrong = [
            f"typeof({name}) <> '{_KINDS[kind]}'" + ("" if needed or key else f" AND {name} IS NOT NULL")
            for name, kind, needed, key in columns
        ]
        first = columns[0][0]
        query = f"SELECT {first} FROM {table} WHERE {' OR '.join(wrong)} ORDER BY {first} LIMIT 1"
        for (key,) in connection.execute(query):
            where = f"{table} {key}"
            index = key if table == "log" and isinstance(key, int) else None
            named = where if index is None else f"entry {index}"
            raise JournalFault("E-JOURNAL-ALTERED", f"{named} was altered: it holds another kind of value", index)


def check_names(connection: sqlite3.Connection) -> None:
    """Whether tables, indexes and guards go by the names with which they were made, upper and lower case included.

    Raises sqlite3.Error, and JournalFault (E-JOURNAL-ALTERED).
    """
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    for kind, name, table, sql in (map(str, row) for row in rows):
        if not kind.islower() or not sql.startswith(f"CREATE {kind.upper()} {name} ") or f" {table} " not in sql:
            raise JournalFault("E-JOURNAL-ALTERED", f"the {kind} {name} of {table} was made by another name: {sql}")


def check_form(connection: sqlite3.Connection) -> None:
    """Whether the file is well formed, each index beside its table. Raises sqlite3.Error, and JournalFault
    (E-JOURNAL-DAMAGED).
    """
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise JournalFault("E-JOURNAL-DAMAGED", f"the file is damaged: {found}")
