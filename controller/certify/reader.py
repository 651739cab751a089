"""Reading a journal beside its writer: for ``tablectl``, the publisher, and all who must not change anything.

Each answer is one short transaction, so a slow consumer never holds back the write-ahead log.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from controller.certify.faults import JournalFault
from controller.certify.storage import check_layout, connect_reader, faults_of
from controller.certify.tiles import stored_subtree
from controller.certify.tree import consistency_proof, inclusion_proof
from controller.certify.volumes import Chain


class Reader:
    """The committed entries of a journal, those that a running daemon adds included.

    All methods raise JournalFault when the file cannot be read. Use it in one thread at a time, and close it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            raise JournalFault("E-JOURNAL-MISSING", f"there is no journal {path}")
        with faults_of(path):
            self._connection = connect_reader(path)
        self._chain = Chain(path, self._connection)
        try:
            with faults_of(path):
                check_layout(self._connection, path)
        except JournalFault:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go."""
        self._chain.close()
        self._connection.close()

    def checkpoint(self) -> str:
        """The note of the newest checkpoint. It is as the file has it: whoever relies on it checks its signature."""
        return self._newest()[1]

    @property
    def size(self) -> int:
        """How many entries are certified."""
        return self._newest()[0]

    def _newest(self) -> tuple[int, str]:
        with faults_of(self._path):
            row = self._connection.execute("SELECT size, note FROM checkpoint ORDER BY size DESC LIMIT 1").fetchone()
        if row is None:
            raise JournalFault("E-JOURNAL-UNSIGNED", f"{self._path} holds no checkpoint at all")
        size, note = row
        return size, note

    def leaf(self, index: int) -> bytes:
        """Entry ``index``. Raises IndexError when there is none."""
        for leaf in self.leaves(index, index + 1):
            return leaf
        raise IndexError(f"{self._path} has no entry {index}")

    def leaves(self, start: int, stop: int) -> Iterator[bytes]:
        """The entries start to stop - 1, as far as there are any, a batch at a time."""
        return self._chain.stream(start, stop)

    def notes(self, start: int) -> list[str]:
        """The kept checkpoints of ``start`` entries or more, in order, each with the cosignatures kept for it."""
        notes: dict[int, str] = {}
        lines: dict[int, dict[str, str]] = {}
        with faults_of(self._path):
            listed = [volume for volume in self._chain.listed if volume.stop is None or volume.stop >= start]
        for volume in listed:
            with faults_of(volume.path):
                connection = self._chain.connection(volume)
                query = "SELECT size, note FROM checkpoint WHERE size >= ? ORDER BY size"
                notes |= dict(connection.execute(query, (start,)).fetchall())
                for size, name, line in connection.execute("SELECT size, name, line FROM cosignature"):
                    lines.setdefault(size, {})[name] = f"{line}\n"
        cosigned = {size: "".join(named[name] for name in sorted(named)) for size, named in lines.items()}
        return [notes[size] + cosigned.get(size, "") for size in sorted(notes)]

    def cosigned_size(self) -> int | None:
        """The largest size of which this file has a cosignature, None without one."""
        with faults_of(self._path):
            (size,) = self._connection.execute("SELECT max(size) FROM cosignature").fetchone()
        return None if size is None else int(size)

    def root(self, size: int) -> bytes:
        """The root over the first ``size`` entries."""
        return self._subtree(0, size)

    def inclusion_proof(self, index: int, size: int) -> list[bytes]:
        """What shows entry ``index`` to be in the tree of ``size`` entries. Raises ValueError when it is not."""
        return inclusion_proof(index, size, self._subtree)

    def consistency_proof(self, old: int, new: int) -> list[bytes]:
        """What shows ``old`` entries to be the first of ``new``. Raises ValueError when there is no such proof."""
        return consistency_proof(old, new, self._subtree)

    def subtree(self, start: int, stop: int) -> bytes:
        """The root over the entries start to stop - 1, a range that RFC 6962 splits off."""
        return self._subtree(start, stop)

    def _subtree(self, start: int, stop: int) -> bytes:
        with faults_of(self._path):
            return stored_subtree(self._chain, start, stop)
