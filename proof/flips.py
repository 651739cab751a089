"""Each byte of a sample journal and of a sample archive changed by one bit, and what the verification says of it.

    changed byte ──► found                                        with the entry, where the byte is an entry's
                └──► not found ──► everything reads as before     space of the file that holds nothing
                               └──► something reads otherwise     what must never happen

A SQLite file has space that belongs to nothing: the middle of a page that is not full. A changed byte there changes no
entry, no hash and no signature, and no reader can meet it. It is counted by itself, and it is not called found: for
each such byte everything that the file holds is read back, through tables and through indexes, and compared.

The only content that nobody signs is how far each reader of the journal has come (``cursor``): a note of the table to
itself, which is changed all the time, and which the mirror corrects. It is counted by itself too.
"""

import os
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from controller.certify.archive_check import verify_archive
from controller.certify.journal import Journal
from controller.certify.leaf import Record, canonical
from controller.certify.log_keys import LogKeys
from controller.certify.note import format_note, parse_note
from controller.certify.policy import Policy
from controller.certify.tar import TarReader
from controller.certify.tile_paths import parse_tile_path
from controller.certify.tiles import TILE_WIDTH
from controller.certify.verify import Outcome, Verdict, verify
from drivers.clock import ManualClock
from proof.attacks import MIRROR, TABLE
from proof.results import Result, all_of, none_of

KEYS = LogKeys.of(TABLE.verifier)
POLICY = Policy.parse(f"log {TABLE.verifier.vkey}\nwitness centre {MIRROR.verifier.vkey}\nquorum centre\n")

BATCHES = (90, 90, 90, 12)
"""Entries of the commits of the sample journal: one full tile, and a part of the next."""


@dataclass(slots=True)
class Flips:
    """What became of the changed bytes. Each list holds offsets into the file."""

    bytes: int = 0
    found: Counter[str] = field(default_factory=Counter)
    in_entries: int = 0
    misnamed: list[int] = field(default_factory=list)
    nothing_there: int = 0
    cursor_only: list[int] = field(default_factory=list)
    unnoticed: list[int] = field(default_factory=list)

    def add(self, other: "Flips") -> None:
        """Count what another part of the file came to."""
        self.bytes += other.bytes
        self.found += other.found
        self.in_entries += other.in_entries
        self.nothing_there += other.nothing_there
        self.misnamed += other.misnamed
        self.cursor_only += other.cursor_only
        self.unnoticed += other.unnoticed

    @property
    def found_in_all(self) -> int:
        """How many changed bytes were found."""
        return sum(self.found.values())


PART_BYTES = 2_048
"""How many bytes one process changes at a time."""

SAMPLE = Path(__file__).resolve().parents[1] / "docs" / "samples" / "good.tar"

Flip = Callable[[Path, Iterable[int]], Flips]


def prove() -> Iterator[Result]:
    """Change every byte of both, and yield what was found."""
    with tempfile.TemporaryDirectory() as work:
        journal = _whole(flip_journal, make_journal(Path(work) / "journal.sqlite"))
        archive = _whole(flip_archive, Path(shutil.copy(SAMPLE, work)))
    holding = journal.bytes - journal.nothing_there - len(journal.cursor_only)
    least = 80_000
    yield all_of("a changed byte of a journal is found", journal.found_in_all, holding, "bytes in use", at_least=least)
    yield none_of("… reads otherwise and is not found", len(journal.unnoticed), journal.bytes, "bytes", at_least=least)
    yield _named("journal", journal)
    yield _aside("… lies where the file holds nothing: all reads as before", journal.nothing_there, journal.bytes)
    yield _aside("… is in the unsigned note of what was delivered", len(journal.cursor_only), journal.bytes)
    yield all_of("a changed byte of an archive is found", archive.found_in_all, archive.bytes, "bytes", at_least=30_000)
    yield _named("archive", archive)


def _named(what: str, flips: Flips) -> Result:
    named = flips.in_entries - len(flips.misnamed)
    claim = f"… and the entry is named, where the byte of the {what} is an entry's"
    return all_of(claim, named, flips.in_entries, "bytes of entries", at_least=10_000)


def _aside(claim: str, found: int, tried: int) -> Result:
    """A figure that has to be told, and has no goal."""
    return Result(claim=claim, found=found, tried=tried, what="bytes", goal="told apart", met=True)


def _whole(flip: Flip, file: Path) -> Flips:
    """Change every byte of ``file``, on all processors."""
    size, flips = file.stat().st_size, Flips()
    parts = [range(first, min(first + PART_BYTES, size)) for first in range(0, size, PART_BYTES)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for part in pool.map(flip, [file] * len(parts), parts):
            flips.add(part)
            print(f"\r{flips.bytes:,} of {size:,} bytes of {file.name}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return flips


def make_journal(path: Path) -> Path:
    """The sample journal: entries, a tile, two snapshots, checkpoints, a cosignature, a cursor."""
    clock = ManualClock()
    Journal.create(path, TABLE, allow_volatile=True)
    with closing(Journal.open(path, TABLE, clock, "0123456789abcdef", lambda: "ntp", allow_volatile=True)) as journal:
        for count in BATCHES:
            size = journal.size
            records = [Record("fr.table.x.v1", canonical({"cents": at}), "s") for at in range(size, size + count)]
            snapshot = canonical({"state": list(range(200))}).encode()
            journal.append(records, snapshot=snapshot, keep_checkpoint=True)
            clock.advance_us(5_000_000)
        parsed = parse_note(journal.checkpoint)
        line = MIRROR.sign(parsed.text, 1_796_000_000)
        journal.add_cosignature(format_note(parsed.text, [*parsed.signatures, line]), MIRROR.verifier)
        journal.set_cursor("mirror", journal.size)
    return path


def flipped(content: bytes, offsets: Iterable[int], file: Path) -> Iterator[int]:
    """Write ``content`` to ``file`` with one bit changed in one byte, for each of ``offsets``."""
    file.write_bytes(content)
    with file.open("r+b", buffering=0) as opened:
        for at in offsets:
            opened.seek(at)
            opened.write(bytes([content[at] ^ 1 << at % 8]))
            yield at
            opened.seek(at)
            opened.write(content[at : at + 1])


# ── A journal ────────────────────────────────────────────────────────────────────────────────────────────────────────


def flip_journal(journal: Path, offsets: Iterable[int]) -> Flips:
    """Change bytes of a copy of ``journal``, one after the other."""
    content, flips = journal.read_bytes(), Flips()
    original, entries = _read_all(journal), _entries_of_journal(content, journal)
    copy = journal.with_name(f"flipped-{os.getpid()}.sqlite")
    for at in flipped(content, offsets, copy):
        flips.bytes += 1
        verdict = verify(copy, KEYS, policy=POLICY, processes=1)
        _count(flips, verdict, at, entries.get(at))
        if verdict.ok:
            _look(flips, at, original, _read_all(copy))
    copy.unlink()
    return flips


def _look(flips: Flips, at: int, before: Mapping[str, list[object]], now: Mapping[str, list[object]]) -> None:
    """What reads otherwise, when the verification found nothing."""
    different = {name for name in before if before[name] != now.get(name)}
    if not different:
        flips.nothing_there += 1
    elif different == {"cursor"}:
        flips.cursor_only.append(at)
    else:
        flips.unnoticed.append(at)


def _read_all(path: Path) -> dict[str, list[object]]:
    """Every value in the file, with its kind, through tables and through indexes."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        ask = connection.execute
        held: dict[str, list[object]] = {
            "schema": ask("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
        }
        for (name,) in ask("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            held[name.decode()] = ask(f"SELECT * FROM {name.decode()}").fetchall()
        held["tile_root"] = ask("SELECT level, n, root FROM tile INDEXED BY tile_root").fetchall()
        held["header"] = ask("PRAGMA user_version").fetchall() + ask("PRAGMA application_id").fetchall()
    return held


def _entries_of_journal(content: bytes, journal: Path) -> dict[int, int]:
    """For each offset inside an entry's bytes, the entry's number."""
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
        leaves = connection.execute("SELECT idx, leaf FROM log").fetchall()
    return {at: index for index, leaf in leaves for at in _place(content, leaf)}


def _place(content: bytes, leaf: bytes) -> range:
    begin = content.find(leaf)
    return range(begin, begin + len(leaf)) if begin >= 0 else range(0)


# ── An archive ───────────────────────────────────────────────────────────────────────────────────────────────────────


def flip_archive(archive: Path, offsets: Iterable[int]) -> Flips:
    """Change bytes of a copy of ``archive``, one after the other."""
    content, flips = archive.read_bytes(), Flips()
    entries = _entries_of_archive(archive)
    copy = archive.with_name(f"flipped-{os.getpid()}.tar")
    for at in flipped(content, offsets, copy):
        flips.bytes += 1
        verdict, _ = verify_archive(copy, KEYS)
        _count(flips, verdict, at, entries.get(at))
        if verdict.ok:
            flips.unnoticed.append(at)
    copy.unlink()
    return flips


def _entries_of_archive(archive: Path) -> dict[int, int]:
    """For each offset inside an entry's bytes, in its line or in its bundle, the entry's number."""
    entries: dict[int, int] = {}
    _, contents = verify_archive(archive, KEYS)
    assert contents is not None
    with archive.open("rb") as file:
        tar = TarReader.open(file)
        for name, member in tar.members.items():
            content = tar.read(name, member.length)
            if name == "events.jsonl":
                for index, line in enumerate(content.splitlines(), contents.span.start):
                    at = member.offset + content.index(line)
                    entries |= dict.fromkeys(range(at, at + len(line)), index)
            elif (tile := parse_tile_path(name)) and tile.level is None:
                at = 0
                for index in range(tile.n * TILE_WIDTH, tile.n * TILE_WIDTH + tile.width):
                    end = at + 2 + int.from_bytes(content[at : at + 2])
                    entries |= dict.fromkeys(range(member.offset + at, member.offset + end), index)
                    at = end
    return entries


def _count(flips: Flips, verdict: Verdict, at: int, entry: int | None) -> None:
    if verdict.outcome is not Outcome.OK:
        flips.found[verdict.outcome.name] += 1
    if entry is not None:
        flips.in_entries += 1
        if verdict.index != entry:
            flips.misnamed.append(at)
