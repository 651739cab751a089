"""The certified journal of one table: what is not in it did not happen, and what is in it cannot change unseen.

    append(records)  =  one transaction:  entries + tiles they complete + signed checkpoint (+ snapshot)
                                          └────────── all of them on the disk, or none ──────────┘

``append`` returns when the transaction is on the disk. That is what "certified" means: no lamp, reply, credit or
message comes before. The checkpoint is signed inside the transaction and leaves it only afterwards, so a published
checkpoint always has its entries.

A commit that fails leaves it unknown whether it is on the disk. So it is never tried again: the journal is dead, the
process ends, and the next start reads what is there.

A checkpoint is replaced by the next one, unless it is to be kept: because the caller said so, because somebody cosigned
it, because it was the last before a restart, or as the first of a new tile (at most one per second).
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from controller.certify.bound import BoundEntries
from controller.certify.checkpoint import Checkpoint, parse_checkpoint, snapshot_text
from controller.certify.faults import JournalFault, NoteFault
from controller.certify.keys import sync_folder
from controller.certify.leaf import Record, Stamp, build_leaves, leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signature, Signer, Verifier, format_note, open_note, sign_note
from controller.certify.recovery import Recovered, recover
from controller.certify.storage import (
    APPLICATION_ID,
    SCHEMA,
    VERSION,
    check_layout,
    connect_writer,
    faults_of,
    lock,
    make_durable,
    move_pages,
    refuse_volatile,
)
from controller.certify.tiles import TILE_WIDTH, Tile, stored_subtree
from controller.certify.tree import EMPTY_ROOT
from controller.certify.trust import last_snapshot
from controller.certify.volumes import Chain
from drivers.clock import Clock

KEPT_EVERY_MS = 1_000
"""The shortest time between two checkpoints that are kept because they begin a tile."""

MOVED_EVERY = 256
"""Commits after which what they wrote into the write-ahead log (some 5 pages each) is moved to the main file."""

SNAPSHOTS_KEPT = 2
"""The last snapshot, and the one before it."""


@dataclass(frozen=True, slots=True)
class Appended:
    """A commit: its first entry, the entries there are now, the root over them, and the signed checkpoint."""

    first_index: int
    size: int
    root: bytes
    note: str


class Journal:
    """An open journal: the only thing that writes to its file. Use it in one thread at a time, and close it."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        lock_descriptor: int,
        signers: Sequence[Signer],
        stamp: Callable[[], Stamp],
        recovered: Recovered,
    ) -> None:
        self._path = path
        self._connection = connection
        self._chain = Chain(path, connection)
        self._lock: int | None = lock_descriptor
        self._signers = tuple(signers)
        self._keys = LogKeys.of(*(signer.verifier for signer in signers))
        self._stamp = stamp
        self._dead = False
        self._commits = 0
        self._edge = recovered.edge
        self._previous = recovered.previous
        self._latest = Appended(self._edge.size, self._edge.size, self._edge.root(), recovered.note)
        self._keep_latest = True
        self._kept_size = self._edge.size
        self._kept_ms = -KEPT_EVERY_MS

    @classmethod
    def create(cls, path: Path, signer: Signer, *, allow_volatile: bool = False) -> None:
        """Make an empty journal of the origin ``signer.name``, with its signed checkpoint of no entries.

        The file appears complete or not at all. Raises JournalFault: E-JOURNAL-EXISTS, E-JOURNAL-VOLATILE,
        E-JOURNAL-WRITE, E-JOURNAL-SETTING.
        """
        if path.exists():
            raise JournalFault("E-JOURNAL-EXISTS", f"{path} exists; a journal is never overwritten")
        if not allow_volatile:
            refuse_volatile(path)
        draft = path.with_name(f"{path.name}.new")
        try:
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640))
            with closing(connect_writer(draft)) as connection:
                make_durable(connection)
                _lay_out(connection, signer)
                if not move_pages(connection):
                    raise JournalFault("E-JOURNAL-BUSY", f"another program reads {draft}, which nobody knows yet")
            os.link(draft, path)
            draft.unlink()
            sync_folder(path.parent)
        except (sqlite3.Error, OSError) as error:
            raise JournalFault("E-JOURNAL-WRITE", f"{path} cannot be created: {error}") from error

    @classmethod
    def open(
        cls,
        path: Path,
        signer: Signer,
        clock: Clock,
        boot: str,
        quality: Callable[[], str],
        *,
        previous: Signer | None = None,
        allow_volatile: bool = False,
    ) -> Self:
        """Open an existing journal for writing, after what it goes on from was verified (see ``recovery``).

        No other journal in the same folder can be open for writing meanwhile: each table has a folder of its own.

        ``boot`` is this start's random identifier, 16 hexadecimal digits; ``quality`` tells how good the wall clock is
        now. ``previous`` is the key that ``signer`` replaces: as long as it is given, both sign (see ``rotation``).
        ``allow_volatile`` permits file systems that lose commits, for simulation. Raises JournalFault.
        """
        if not path.exists():
            raise JournalFault("E-JOURNAL-MISSING", f"there is no journal {path}")
        if not allow_volatile:
            refuse_volatile(path)

        def stamp() -> Stamp:
            return Stamp(
                source=signer.name,
                boot=boot,
                mono_ms=clock.mono_us() // 1_000,
                wall_ms=clock.wall_ms(),
                quality=quality(),
            )

        signers = (signer,) if previous is None else (previous, signer)
        keys = LogKeys.of(*(one.verifier for one in signers))
        descriptor = lock(path)
        try:
            with faults_of(path):
                connection, recovered = _connect_verified(path, keys)
            _keep_names(path)
        except JournalFault:
            os.close(descriptor)
            raise
        return cls(path, connection, descriptor, signers, stamp, recovered)

    @property
    def size(self) -> int:
        """How many entries are certified."""
        return self._latest.size

    @property
    def base(self) -> int:
        """The first entry of the live file; those before are in earlier volumes. Raises JournalFault."""
        with faults_of(self._path):
            return self._chain.base

    @property
    def root(self) -> bytes:
        """The root over all certified entries."""
        return self._latest.root

    @property
    def checkpoint(self) -> str:
        """The signed note of the newest checkpoint."""
        return self._latest.note

    def append(
        self, records: Sequence[Record], *, snapshot: bytes | None = None, keep_checkpoint: bool = False
    ) -> Appended:
        """Certify ``records``, in order, and with them ``snapshot``, the state after the last of them.

        Raises LeafFault when a record cannot be certified, which changes nothing; and JournalFault (E-JOURNAL-WRITE)
        when the commit failed, after which this journal is dead.
        """
        if not records:
            raise ValueError("a commit needs at least one record")
        stamp = self._stamp()
        first = self.size
        leaves, hashes = build_leaves(first, self._previous, records, stamp)
        edge = self._edge.copy()
        tiles = edge.extend(hashes)
        checkpoint = Checkpoint(self._keys.origin, edge.size, edge.root())
        latest = Appended(first, edge.size, checkpoint.root, sign_note(checkpoint.text, *self._signers))
        with self._transaction() as connection:
            connection.executemany("INSERT INTO log VALUES (?, ?)", enumerate(leaves, first))
            if tiles:
                _write_tiles(connection, tiles)
            if self._keep_latest:
                connection.execute("INSERT INTO checkpoint VALUES (?, ?)", (latest.size, latest.note))
            else:
                replace = "UPDATE checkpoint SET size = ?, note = ? WHERE size = ?"
                connection.execute(replace, (latest.size, latest.note, first))
            if snapshot is not None:
                text = snapshot_text(self._keys.origin, latest.size, latest.root, snapshot)
                _write_snapshot(connection, latest.size, snapshot, sign_note(text, *self._signers))
        self._edge, self._previous, self._latest = edge, hashes[-1], latest
        self._keep_latest = self._begins_tile(stamp.mono_ms) or keep_checkpoint
        return latest

    def _begins_tile(self, mono_ms: int) -> bool:
        """Whether the newest checkpoint is to be kept as the first of a new tile."""
        is_first = self.size // TILE_WIDTH > self._kept_size // TILE_WIDTH
        if not is_first or mono_ms - self._kept_ms < KEPT_EVERY_MS:
            return False
        self._kept_size, self._kept_ms = self.size, mono_ms
        return True

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of the body on the disk, or the death of this journal."""
        if self._dead:
            raise JournalFault("E-JOURNAL-WRITE", f"{self._path} is closed to writing since a commit failed")
        self._dead = True  # whatever ends the body early leaves it so
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
            self._commits += 1
            if self._commits % MOVED_EVERY == 0:
                move_pages(self._connection)
        except (sqlite3.Error, OSError) as error:
            detail = f"{self._path}: the commit after {self.size} entries failed, on the disk or not: {error}"
            raise JournalFault("E-JOURNAL-WRITE", detail) from error
        self._dead = False

    def leaf(self, index: int) -> bytes:
        """Entry ``index``. Raises IndexError when there is none, and JournalFault."""
        for leaf in self.leaves(index, index + 1):
            return leaf
        raise IndexError(f"{self._path} has no entry {index}")

    def leaves(self, start: int, stop: int) -> Iterator[bytes]:
        """The entries start to stop - 1, as far as there are any, a block at a time, each bound to the signed root.

        Raises JournalFault: E-JOURNAL-ALTERED before anything of an altered block is given, -INCOMPLETE, and others.
        """
        start, stop = max(start, 0), min(stop, self.size)
        bound = BoundEntries(self._chain, self._edge)
        for n in range(start // TILE_WIDTH, -(-stop // TILE_WIDTH)):
            first = n * TILE_WIDTH
            with faults_of(self._path):
                leaves, _ = bound.block(n)
            yield from leaves[max(start - first, 0) : stop - first]

    def latest_snapshot(self) -> tuple[int, bytes] | None:
        """The newest snapshot that a key signed, and the number of entries it includes. Raises JournalFault."""
        bound = BoundEntries(self._chain, self._edge)
        with faults_of(self._path):
            return last_snapshot(self._connection, self._keys, bound.root)

    def cursor(self, name: str) -> int:
        """How far the reader ``name`` has come: the number of entries it has dealt with. Raises JournalFault."""
        with faults_of(self._path):
            row = self._connection.execute("SELECT size FROM cursor WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else row[0]

    def set_cursor(self, name: str, size: int) -> None:
        """Remember, on the disk, how far the reader ``name`` has come. Raises JournalFault (E-JOURNAL-WRITE)."""
        if not 0 <= size <= self.size:
            raise ValueError(f"the cursor {name} cannot be at {size}: there are {self.size} entries")
        update = "INSERT INTO cursor VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET size = excluded.size"
        with self._transaction() as connection:
            connection.execute(update, (name, size))

    def add_cosignature(self, note: str, cosigner: Verifier) -> Checkpoint:
        """Keep the cosignature that ``note``, a checkpoint of this journal that came back, bears by ``cosigner``.

        The checkpoint need not be the newest, nor still be kept; it is kept from now on. Returns it. Raises NoteFault
        when either signature is missing or wrong, which changes nothing; and JournalFault: E-JOURNAL-ROLLED-BACK when
        the checkpoint has more entries than this journal, E-JOURNAL-FORKED when it has others, E-JOURNAL-WRITE.
        """
        own, cosignature, checkpoint = self._opened(note, cosigner)
        if checkpoint.size > self.size:
            detail = f"{cosigner.name} holds {checkpoint.size} entries that this table signed; {self.size} are here"
            raise JournalFault("E-JOURNAL-ROLLED-BACK", detail, self.size)
        with faults_of(self._path):
            root = stored_subtree(self._chain, 0, checkpoint.size) if checkpoint.size else EMPTY_ROOT
        if root != checkpoint.root:
            detail = f"{cosigner.name} cosigned other first {checkpoint.size} entries than those that are here"
            raise JournalFault("E-JOURNAL-FORKED", detail)
        with self._transaction() as connection:
            kept = (checkpoint.size, format_note(checkpoint.text, own))
            connection.execute("INSERT OR IGNORE INTO checkpoint VALUES (?, ?)", kept)
            line = (checkpoint.size, cosigner.name, cosignature.line)
            connection.execute("INSERT OR IGNORE INTO cosignature VALUES (?, ?, ?)", line)
        self._keep_latest = self._keep_latest or checkpoint.size == self.size
        return checkpoint

    def restore_entries(self, leaves: Sequence[bytes], note: str, cosigner: Verifier) -> Checkpoint:
        """Take back entries that the disk lost, from whoever kept them: all that ``note`` stands for, or none.

        ``note`` is a checkpoint of this journal's own, cosigned by ``cosigner``; ``leaves`` are the entries from the
        first missing one up to its size. Our key signed the root over them, so when they lead to it, they are what was
        certified, byte for byte (certification notes, 7.3). Returns the checkpoint. Raises NoteFault when a signature
        is missing or wrong, and JournalFault: E-JOURNAL-INCOMPLETE when the entries do not reach exactly that far,
        E-JOURNAL-FORKED when they lead to another root. Both change nothing. E-JOURNAL-WRITE as for ``append``.
        """
        own, cosignature, checkpoint = self._opened(note, cosigner)
        first = self.size
        if not leaves or first + len(leaves) != checkpoint.size:
            detail = f"entries {first} to {checkpoint.size - 1} are missing, and {len(leaves)} were given back"
            raise JournalFault("E-JOURNAL-INCOMPLETE", detail, first)
        hashes = [leaf_hash(leaf) for leaf in leaves]
        edge = self._edge.copy()
        tiles = edge.extend(hashes)
        if edge.root() != checkpoint.root:
            detail = f"the {first} entries here and those given back do not lead to what was signed for {edge.size}"
            raise JournalFault("E-JOURNAL-FORKED", detail, first)
        latest = Appended(first, edge.size, checkpoint.root, format_note(checkpoint.text, own))
        with self._transaction() as connection:
            connection.executemany("INSERT INTO log VALUES (?, ?)", enumerate(leaves, first))
            _write_tiles(connection, tiles)
            connection.execute("INSERT INTO checkpoint VALUES (?, ?)", (latest.size, latest.note))
            line = (latest.size, cosigner.name, cosignature.line)
            connection.execute("INSERT INTO cosignature VALUES (?, ?, ?)", line)
        self._edge, self._previous, self._latest = edge, hashes[-1], latest
        self._keep_latest = True
        return checkpoint

    def _opened(self, note: str, cosigner: Verifier) -> tuple[list[Signature], Signature, Checkpoint]:
        opened = open_note(note, [*self._keys.verifiers, cosigner])
        own = [signature for signature in opened.signatures if self._keys.made(signature)]
        other = [signature for signature in opened.signatures if cosigner.made(signature)]
        if not own or not other:
            lacking = cosigner.name if own else self._keys.origin
            raise NoteFault("E-NOTE-UNSIGNED", f"the checkpoint that came back is not signed by {lacking}")
        return own, other[0], parse_checkpoint(opened.text)

    def close(self) -> None:
        """Close the file and let another daemon have it. Raises JournalFault (E-JOURNAL-WRITE) when that fails."""
        try:
            if not self._dead:
                move_pages(self._connection)
        except sqlite3.Error as error:
            raise JournalFault("E-JOURNAL-WRITE", f"{self._path} cannot be closed: {error}") from error
        finally:
            self._dead = True
            self._chain.close()
            self._connection.close()
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None


def _lay_out(connection: sqlite3.Connection, signer: Signer) -> None:
    """Tables, guards and the checkpoint of no entries, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO volume VALUES (0, 0)")
    note = sign_note(Checkpoint(signer.name, 0, EMPTY_ROOT).text, signer)
    connection.execute("INSERT INTO checkpoint VALUES (0, ?)", (note,))
    meta = [("origin", signer.name), ("vkey", signer.verifier.vkey)]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", meta)
    connection.execute("COMMIT")


def _connect_verified(path: Path, keys: LogKeys) -> tuple[sqlite3.Connection, Recovered]:
    connection = connect_writer(path)
    try:
        check_layout(connection, path)  # before any setting touches a file that may be somebody else's
        make_durable(connection)
        return connection, recover(connection, path, keys)
    except (sqlite3.Error, JournalFault):
        connection.close()
        raise


def _keep_names(path: Path) -> None:
    """Make sure that the write-ahead log has its name after a power cut: SQLite passes over an error here."""
    try:
        sync_folder(path.parent)
    except OSError as error:
        raise JournalFault("E-JOURNAL-WRITE", f"the folder of {path} cannot be synced: {error.strerror}") from error


def _write_tiles(connection: sqlite3.Connection, tiles: Sequence[Tile]) -> None:
    rows = [(tile.level, tile.n, tile.root, tile.hashes) for tile in tiles]
    connection.executemany("INSERT INTO tile VALUES (?, ?, ?, ?)", rows)


def _write_snapshot(connection: sqlite3.Connection, size: int, body: bytes, note: str) -> None:
    connection.execute("INSERT INTO snapshot VALUES (?, ?, ?)", (size, body, note))
    latest = "SELECT size FROM snapshot ORDER BY size DESC LIMIT ?"
    connection.execute(f"DELETE FROM snapshot WHERE size NOT IN ({latest})", (SNAPSHOTS_KEPT,))
