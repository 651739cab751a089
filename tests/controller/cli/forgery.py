"""What a forger may do to a journal's file."""

import sqlite3
from contextlib import closing
from pathlib import Path

from controller.certify.reader import Reader


def alter(journal: Path, statement: str, *values: object) -> None:
    """Change a journal's file behind the back of its guards, and put the guards back."""
    with closing(sqlite3.connect(journal)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement, values)
        for _, sql in guards:
            connection.execute(sql)
        connection.commit()


def flip_byte(journal: Path, index: int, old: bytes, new: bytes) -> None:
    """Change a few bytes inside one entry, to as many others."""
    with closing(Reader(journal)) as reader:
        leaf = reader.leaf(index)
    assert leaf.count(old) >= 1
    assert len(old) == len(new)
    alter(journal, "UPDATE log SET leaf = ? WHERE idx = ?", leaf.replace(old, new, 1), index)


def find_entry(journal: Path, kind: str) -> int:
    """The first entry of a kind."""
    with closing(Reader(journal)) as reader:
        return next(at for at, leaf in enumerate(reader.leaves(0, reader.size)) if f'"type":"{kind}"'.encode() in leaf)
