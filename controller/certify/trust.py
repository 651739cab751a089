"""What in a journal's file may be believed, and why: the checks that a start and a full verification share.

Nothing in the file is believed because it is in the file. A checkpoint is believed because the table's key signed it,
the entries because their root is in a checkpoint, a snapshot because the key signed its digest.
"""

import sqlite3
from collections.abc import Callable

from controller.certify.checkpoint import Checkpoint, parse_checkpoint, snapshot_text
from controller.certify.faults import JournalFault, NoteFault
from controller.certify.log_keys import LogKeys
from controller.certify.note import open_note, parse_note
from controller.certify.policy import Policy


def _signed_text(note: str, keys: LogKeys, what: str) -> str:
    try:
        return open_note(note, keys.verifiers).text
    except NoteFault as fault:
        if fault.code == "E-NOTE-UNSIGNED":
            raise JournalFault(
                "E-JOURNAL-KEY", f"{what} is not signed by a key of {keys.origin}: {fault.detail}"
            ) from fault
        raise JournalFault("E-JOURNAL-ALTERED", f"{what} was altered: {fault.detail}") from fault


def open_checkpoint(size: int, note: str, keys: LogKeys) -> Checkpoint:
    """The checkpoint that is kept under ``size``. Raises JournalFault: E-JOURNAL-ALTERED, E-JOURNAL-KEY."""
    text = _signed_text(note, keys, f"the checkpoint of {size} entries")
    try:
        checkpoint = parse_checkpoint(text)
    except NoteFault as fault:
        raise JournalFault("E-JOURNAL-ALTERED", f"the checkpoint of {size} entries: {fault.detail}") from fault
    if checkpoint.origin != keys.origin:
        raise JournalFault("E-JOURNAL-KEY", f"the checkpoint is one of {checkpoint.origin}, not of {keys.origin}")
    if checkpoint.size != size:
        raise JournalFault("E-JOURNAL-ALTERED", f"the checkpoint of {checkpoint.size} entries is kept under {size}")
    return checkpoint


def check_cosignatures(size: int, note: str, policy: Policy) -> frozenset[str]:
    """The witnesses of ``policy``, by the names that it gives them, that cosigned the checkpoint of ``size`` entries.

    What others cosigned says nothing, and is passed over. Raises JournalFault (E-JOURNAL-ALTERED) when a cosignature
    that is said to be by one of them is not.
    """
    cosigners = set()
    try:
        parsed = parse_note(note)
    except NoteFault as fault:
        raise JournalFault("E-JOURNAL-ALTERED", f"the checkpoint of {size} entries was altered: {fault}") from fault
    for name, witness in policy.named.items():
        for signature in filter(witness.made, parsed.signatures):
            if not witness.verifies(parsed.text, signature):
                detail = f"the cosignature by {witness.name} of {size} entries was altered: it does not fit them"
                raise JournalFault("E-JOURNAL-ALTERED", detail)
            cosigners.add(name)
    return frozenset(cosigners)


def last_checkpoint(connection: sqlite3.Connection, keys: LogKeys) -> tuple[Checkpoint, str]:
    """The newest checkpoint and its note.

    Raises sqlite3.Error, and JournalFault: E-JOURNAL-UNSIGNED, -ALTERED, -KEY.
    """
    row = connection.execute("SELECT size, note FROM checkpoint ORDER BY size DESC LIMIT 1").fetchone()
    if row is None:
        raise JournalFault("E-JOURNAL-UNSIGNED", "the journal holds no checkpoint at all")
    size, note = row
    return open_checkpoint(size, note, keys), note


def check_bounds(connection: sqlite3.Connection, size: int) -> None:
    """Compare the ends of every table with the signed ``size``.

    Raises JournalFault: E-JOURNAL-ROLLED-BACK when entries are gone that were signed, delivered or cosigned;
    E-JOURNAL-UNSIGNED when there are more than were signed; E-JOURNAL-ALTERED; and sqlite3.Error.
    """
    # Two questions, because SQLite finds either end at once, but both together only by going through everything.
    (first,) = connection.execute("SELECT min(idx) FROM log").fetchone()
    (last,) = connection.execute("SELECT max(idx) FROM log").fetchone()
    count = 0 if last is None else last + 1
    (base,) = connection.execute("SELECT max(base) FROM volume").fetchone()
    if first is not None and first < (base or 0):
        raise JournalFault("E-JOURNAL-ALTERED", f"there is an entry {first}, before the first one", first)
    if count < size:
        raise JournalFault("E-JOURNAL-ROLLED-BACK", f"{size} entries were signed, and {count} are left", count)
    if count > size:
        raise JournalFault("E-JOURNAL-UNSIGNED", f"{size} entries were signed, and there are {count}", size)
    for table in ("cursor", "cosignature", "snapshot", "checkpoint"):
        (begins,) = connection.execute(f"SELECT min(size) FROM {table}").fetchone()
        if begins is not None and begins < 0:
            raise JournalFault("E-JOURNAL-ALTERED", f"the {table} table knows of {begins} entries")
        (reached,) = connection.execute(f"SELECT max(size) FROM {table}").fetchone()
        if reached is not None and reached > size:
            detail = f"the journal ends at {size} entries, but its {table} table knows of {reached}"
            raise JournalFault("E-JOURNAL-ROLLED-BACK", detail, size)


def check_snapshot(size: int, root: bytes, body: bytes, note: str, keys: LogKeys) -> None:
    """Whether a key signed this snapshot, of the ``size`` entries that ``root`` stands for.

    Raises JournalFault: E-JOURNAL-ALTERED, E-JOURNAL-KEY.
    """
    what = f"the snapshot at {size} entries"
    if _signed_text(note, keys, what) != snapshot_text(keys.origin, size, root, body):
        raise JournalFault("E-JOURNAL-ALTERED", f"{what} is not the one that was signed")


def last_snapshot(
    connection: sqlite3.Connection, keys: LogKeys, root: Callable[[int], bytes]
) -> tuple[int, bytes] | None:
    """The newest snapshot that a key signed; ``root`` gives the root over the first so many entries.

    One that none of the keys signed is passed over, as one from before the table's key was changed may be: without a
    snapshot more entries are read, which is as safe. Raises sqlite3.Error, and JournalFault: E-JOURNAL-ALTERED.
    """
    for size, body, note in connection.execute("SELECT size, body, note FROM snapshot ORDER BY size DESC").fetchall():
        try:
            check_snapshot(size, root(size), body, note, keys)
        except JournalFault as fault:
            if fault.code != "E-JOURNAL-KEY":
                raise
        else:
            return size, body
    return None


def check_meta(connection: sqlite3.Connection, keys: LogKeys) -> None:
    """What the file says of itself, against the table's keys.

    Raises sqlite3.Error, and JournalFault: E-JOURNAL-ALTERED, E-JOURNAL-KEY.
    """
    meta = dict(connection.execute("SELECT name, value FROM meta ORDER BY name").fetchall())
    if meta.keys() != {"origin", "vkey"}:
        raise JournalFault("E-JOURNAL-ALTERED", f"the meta table holds {sorted(meta)}, not origin and vkey")
    if meta["origin"] != keys.origin:
        raise JournalFault("E-JOURNAL-ALTERED", f"the file says that it is of {meta['origin']}, not {keys.origin}")
    if meta["vkey"] not in keys.text.split("\n"):
        raise JournalFault("E-JOURNAL-KEY", f"the file says that its first key was {meta['vkey']}, which is not known")
