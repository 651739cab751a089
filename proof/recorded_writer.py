"""The writer whose system calls are recorded: the real journal, made, written to, closed, turned, and opened again.

    python -m proof.recorded_writer FOLDER COMMITS [--careless]

After each commit it says on standard output how far entries are certified, and by that promises them: the recorder sees
the line among the other calls. ``--careless`` sets ``synchronous=NORMAL`` behind the journal's back, as many a guide
recommends, so that a proof that finds nothing can be shown to be able to find something.
"""

import random
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from controller.certify import turning
from controller.certify.journal import Journal
from controller.certify.leaf import Record, canonical
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, format_note, open_note
from drivers.clock import ManualClock

ORIGIN = "casino.example/table/t07/1"
TABLE = Signer(ORIGIN, bytes(range(32)))
MIRROR = Signer("centre.example/mirror", bytes(range(2, 34)), KeyType.COSIGNATURE)
FILE = "journal.sqlite"

CERTIFIED, COSIGNED, CREATED = "certified", "cosigned", "created"
"""The words of the promises: so many entries are certified; the cosignature over so many is kept; the journal is."""

DAY_MS = 86_400_000

STARTS = 4
"""How often the journal is opened."""

PAST_ENTRIES = 600
"""Entries of the first commit: a journal of less than two tiles has nothing to leave to a volume."""

VOLUME_ENTRIES = 10
"""At each later start there are more, so that the journal is turned and a new volume begins."""


def main() -> None:
    """Write."""
    folder, commits = Path(sys.argv[1]), int(sys.argv[2])
    path, chance = folder / FILE, random.Random(7)
    Journal.create(path, TABLE, allow_volatile=True)
    promise(CREATED, 0)
    turning.CARRIED_ENTRIES = 0  # so that a short journal is turned too
    for start in range(STARTS):
        if start:
            turning.turn(path, LogKeys.of(TABLE.verifier), start * DAY_MS, VOLUME_ENTRIES)
        with closing(_open(path, start)) as journal:
            if "--careless" in sys.argv:
                journal._connection.execute("PRAGMA synchronous = NORMAL")
            for commit in range(commits // STARTS):
                _write(journal, chance, commit, PAST_ENTRIES if start == commit == 0 else None)


def _open(path: Path, start: int) -> Journal:
    clock = ManualClock()
    clock.advance_us(start * 10_000_000)
    return Journal.open(path, TABLE, clock, f"{start:016x}", lambda: "ntp", allow_volatile=True)


def _write(journal: Journal, chance: random.Random, commit: int, count: int | None) -> None:
    """One commit, and now and then what else a table writes: a snapshot, a cosignature, a cursor."""
    count = count or 1 + int(chance.expovariate(0.5))
    snapshot = bytes(chance.randbytes(2_000)) if commit % 29 == 28 else None
    keep = commit % 13 == 12
    promise(CERTIFIED, journal.append(_records(count, journal.size), snapshot=snapshot, keep_checkpoint=keep).size)
    if commit % 17 == 16:
        text = open_note(journal.checkpoint, [TABLE.verifier]).text
        note = format_note(text, [TABLE.sign(text), MIRROR.sign(text, 1_796_000_000 + commit)])
        promise(COSIGNED, journal.add_cosignature(note, MIRROR.verifier).size)
    if commit % 23 == 22:
        journal.set_cursor("broker", journal.size)


def _records(count: int, first: int) -> Sequence[Record]:
    data = [canonical({"bet": "plein-17", "cents": 500 + at, "post": at % 9}) for at in range(first, first + count)]
    return [Record("fr.table.stakes.placed.v1", one, "2026-11-30-1") for one in data]


def promise(word: str, size: int) -> None:
    """Say it, in one system call."""
    sys.stdout.write(f"{word} {size}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
