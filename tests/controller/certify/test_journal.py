"""The journal: what a commit writes, what is kept of it, and what a failed one leaves behind."""

import resource
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.certify import journal as journal_module
from controller.certify import storage
from controller.certify.checkpoint import parse_checkpoint, snapshot_text
from controller.certify.faults import CertifyFault, JournalFault, LeafFault
from controller.certify.journal import MOVED_EVERY, Journal
from controller.certify.leaf import Record, leaf_hash, parse_leaf
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer, format_note, open_note, parse_note
from controller.certify.tree import EMPTY_ROOT, root_of
from controller.certify.verify import verify
from drivers.clock import ManualClock
from tests.controller.certify.workshop import (
    BOOT,
    MIRROR,
    ORIGIN,
    OTHER_SIGNER,
    SIGNER,
    Saboteur,
    build,
    open_journal,
    stakes,
    stored,
)


def fault_of(action: Callable[[], object]) -> CertifyFault:
    with pytest.raises(CertifyFault) as caught:
        action()
    return caught.value


def kept_sizes(path: Path) -> list[int]:
    return [size for (size,) in stored(path, "SELECT size FROM checkpoint ORDER BY size")]


def cosigned(note: str, time_s: int = 1_796_000_000) -> str:
    parsed = parse_note(note)
    return format_note(parsed.text, [*parsed.signatures, MIRROR.sign(parsed.text, time_s)])


def test_journal_that_was_created_is_empty_and_signed(journal: Journal) -> None:
    assert (journal.size, journal.root) == (0, EMPTY_ROOT)
    assert parse_checkpoint(open_note(journal.checkpoint, [SIGNER.verifier]).text).size == 0
    assert list(journal.leaves(0, 10)) == []


def test_journal_that_exists_is_never_created_again(path: Path) -> None:
    before = path.read_bytes()
    assert fault_of(lambda: Journal.create(path, SIGNER, allow_volatile=True)).code == "E-JOURNAL-EXISTS"
    assert path.read_bytes() == before


def test_journal_that_cannot_be_created_is_a_clear_fault(tmp_path: Path) -> None:
    fault = fault_of(lambda: Journal.create(tmp_path / "none" / "journal.db", SIGNER, allow_volatile=True))
    assert fault.code == "E-JOURNAL-WRITE"


def test_journal_whose_creation_was_cut_short_can_be_created_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.with_name("journal.db.new").write_bytes(b"half a file")
    Journal.create(path, SIGNER, allow_volatile=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["journal.db"]
    assert verify(path, LogKeys.of(SIGNER.verifier)).ok


def test_append_certifies_records_in_order_under_a_signed_root(journal: Journal, clock: ManualClock) -> None:
    clock.advance_us(5_000_999)
    first = journal.append(stakes(3))
    second = journal.append(stakes(2, 3))
    leaves = list(journal.leaves(0, 100))
    read = [parse_leaf(leaf) for leaf in leaves]
    assert [leaf.data for leaf in read] == [record.data for record in stakes(5)]
    assert [leaf.index for leaf in read] == [0, 1, 2, 3, 4]
    assert [leaf.previous for leaf in read] == [bytes(32), *map(leaf_hash, leaves[:-1])]
    assert {(leaf.source, leaf.boot, leaf.mono_ms, leaf.quality, leaf.seance) for leaf in read} == {
        (ORIGIN, BOOT, 5_000, "ntp", "s-1")
    }
    assert (first.first_index, first.size, second.first_index, second.size) == (0, 3, 3, 5)
    assert second.root == journal.root == root_of([leaf_hash(leaf) for leaf in leaves])
    checkpoint = parse_checkpoint(open_note(second.note, [SIGNER.verifier]).text)
    assert (checkpoint.origin, checkpoint.size, checkpoint.root) == (ORIGIN, 5, second.root)
    assert journal.checkpoint == second.note


def test_append_of_nothing_is_refused(journal: Journal) -> None:
    with pytest.raises(ValueError, match="at least one record"):
        journal.append([])


def test_append_of_a_record_that_no_leaf_may_carry_changes_nothing(journal: Journal, path: Path) -> None:
    good, bad = stakes(1)[0], Record("fr.a.v1", '{"a":1.5}', None)
    with pytest.raises(LeafFault):
        journal.append([good, bad])
    assert (journal.size, stored(path, "SELECT count(*) FROM log")) == (0, [(0,)])
    assert journal.append([good]).size == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET leaf = x'00' WHERE idx = 1",
        "DELETE FROM log WHERE idx = 1",
        "INSERT INTO log VALUES (7, x'00')",
        "INSERT INTO log VALUES (-1, x'00')",
        "REPLACE INTO log VALUES (1, x'00')",
        "INSERT OR IGNORE INTO log VALUES (9, x'00')",
    ],
)
def test_entries_are_guarded_against_accidents_with_plain_sql(path: Path, journal: Journal, statement: str) -> None:
    journal.append(stakes(3))
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError, match="the journal"):
        connection.execute(statement)


def test_settings_that_keep_commits_are_in_force(journal: Journal) -> None:
    def setting(name: str) -> Any:
        return journal._connection.execute(f"PRAGMA {name}").fetchone()

    assert (setting("journal_mode"), setting("synchronous")) == (("wal",), (2,))
    assert setting("mmap_size") in {(0,), None}


class Deaf(sqlite3.Connection):
    """A build of SQLite that knows no full synchronization."""

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        return super().execute("PRAGMA synchronous = NORMAL" if sql == "PRAGMA synchronous = FULL" else sql, *values)


def test_setting_that_is_ignored_stops_the_opening(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Deaf))
    fault = fault_of(lambda: open_journal(path))
    assert fault.code == "E-JOURNAL-SETTING"
    assert "synchronous" in fault.detail


def test_journal_that_is_written_to_for_long_keeps_its_write_ahead_log_short(path: Path, journal: Journal) -> None:
    for _ in range(3 * MOVED_EVERY):
        journal.append(stakes(1, journal.size))
    pages = path.with_name(f"{path.name}-wal").stat().st_size // 4_096
    assert pages < 10 * MOVED_EVERY
    assert path.stat().st_size > 2 * MOVED_EVERY * 256, "what was certified is in the main file"


class Dying:
    """A connection on a disk that cannot move pages any more."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if "wal_checkpoint" in sql:
            raise sqlite3.OperationalError("disk I/O error")
        return self._connection.execute(sql, *values)

    def executemany(self, sql: str, values: Iterator[Sequence[object]]) -> sqlite3.Cursor:
        return self._connection.executemany(sql, values)

    def close(self) -> None:
        self._connection.close()


def test_disk_that_fails_while_pages_are_moved_kills_the_journal_and_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(path)
    monkeypatch.setattr(journal, "_connection", Dying(journal._connection))
    for at in range(MOVED_EVERY - 1):
        journal.append(stakes(1, at))
    assert fault_of(lambda: journal.append(stakes(1))).code == "E-JOURNAL-WRITE"
    assert fault_of(lambda: journal.append(stakes(1))).code == "E-JOURNAL-WRITE"
    journal.close()
    with closing(open_journal(path)) as again:
        assert again.size == MOVED_EVERY
    assert verify(path, LogKeys.of(SIGNER.verifier)).ok


def test_disk_that_fails_at_the_closing_is_a_fault_and_lets_another_daemon_open(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(path)
    journal.append(stakes(3))
    monkeypatch.setattr(journal, "_connection", Dying(journal._connection))
    assert fault_of(journal.close).code == "E-JOURNAL-WRITE"
    with closing(open_journal(path)) as again:
        assert again.size == 3


def test_second_daemon_on_the_same_journal_is_refused_until_the_first_has_closed(path: Path) -> None:
    first = open_journal(path)
    assert fault_of(lambda: open_journal(path)).code == "E-JOURNAL-BUSY"
    first.append(stakes(1))
    first.close()
    with closing(open_journal(path)) as second:
        assert second.size == 1


def test_journal_on_a_file_system_that_forgets_is_refused_unless_permitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "file_system", lambda path: "tmpfs")
    path = tmp_path / "journal.db"
    assert fault_of(lambda: Journal.create(path, SIGNER)).code == "E-JOURNAL-VOLATILE"
    Journal.create(path, SIGNER, allow_volatile=True)
    fault = fault_of(lambda: Journal.open(path, SIGNER, ManualClock(), BOOT, lambda: "ntp"))
    assert fault.code == "E-JOURNAL-VOLATILE"
    monkeypatch.setattr(storage, "file_system", lambda path: "ext4")
    Journal.open(path, SIGNER, ManualClock(), BOOT, lambda: "ntp").close()


@settings(max_examples=20)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=5))
def test_journal_appended_in_any_batches_and_reopened_between_goes_on_alike(
    tmp_path_factory: pytest.TempPathFactory, batches: list[int]
) -> None:
    path = tmp_path_factory.mktemp("batches") / "journal.db"
    Journal.create(path, SIGNER, allow_volatile=True)
    leaves: list[bytes] = []
    for count in batches:
        with closing(open_journal(path)) as journal:
            journal.append(stakes(count, journal.size))
            leaves = list(journal.leaves(0, journal.size + 1))
            assert journal.root == root_of([leaf_hash(leaf) for leaf in leaves])
    assert len(leaves) == sum(batches)
    verdict = verify(path, LogKeys.of(SIGNER.verifier))
    assert (verdict.ok, verdict.size) == (True, sum(batches))


# ── Checkpoints ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_checkpoint_is_replaced_by_the_next_unless_it_was_to_be_kept(path: Path, journal: Journal) -> None:
    journal.append(stakes(1))
    journal.append(stakes(1), keep_checkpoint=True)
    journal.append(stakes(1))
    journal.append(stakes(1))
    assert kept_sizes(path) == [0, 2, 4]  # 0: the last of the creation


def test_checkpoint_that_was_the_last_before_a_restart_is_kept(path: Path) -> None:
    for _ in range(3):
        with closing(open_journal(path)) as journal:
            journal.append(stakes(2))
            journal.append(stakes(2))
    with closing(open_journal(path)) as journal:
        journal.append(stakes(1))
    assert kept_sizes(path) == [0, 4, 8, 12, 13]


def test_checkpoint_that_begins_a_tile_is_kept_at_most_once_a_second(
    path: Path, journal: Journal, clock: ManualClock
) -> None:
    for step_us in (0, 999_000, 1_000, 1_000_000):
        clock.advance_us(step_us)
        journal.append(stakes(250))
        journal.append(stakes(10))
        journal.append(stakes(10))
    assert kept_sizes(path) == [0, 260, 790, 1_060, 1_080]


def test_append_of_one_record_usually_writes_two_pages(path: Path, journal: Journal) -> None:
    journal.append(stakes(1))
    log = path.with_name("journal.db-wal")
    pages = []
    for at in range(40):
        before = log.stat().st_size
        journal.append(stakes(1, at))
        pages.append((log.stat().st_size - before) // (4_096 + 24))
    assert sorted(pages)[len(pages) // 2] == 2
    assert max(pages) <= 5


# ── Snapshots and cursors ────────────────────────────────────────────────────────────────────────────────────────────


def test_snapshot_is_kept_with_its_signature_and_only_the_last_two_are(path: Path, journal: Journal) -> None:
    assert journal.latest_snapshot() is None
    for body in (b"one", b"two", b"three"):
        root = journal.append(stakes(2), snapshot=body).root
    journal.append(stakes(1))
    assert journal.latest_snapshot() == (6, b"three")
    assert [size for (size,) in stored(path, "SELECT size FROM snapshot ORDER BY size")] == [4, 6]
    ((note,),) = stored(path, "SELECT note FROM snapshot WHERE size = 6")
    assert open_note(str(note), [SIGNER.verifier]).text == snapshot_text(ORIGIN, 6, root, b"three")


def test_cursor_is_remembered_across_a_restart_and_stays_within_the_journal(path: Path) -> None:
    with closing(open_journal(path)) as journal:
        journal.append(stakes(5))
        assert journal.cursor("mirror") == 0
        journal.set_cursor("mirror", 3)
        journal.set_cursor("mirror", 4)
        for size in (-1, 6):
            with pytest.raises(ValueError, match="cannot be at"):
                journal.set_cursor("mirror", size)
    with closing(open_journal(path)) as journal:
        assert (journal.cursor("mirror"), journal.cursor("other")) == (4, 0)


def test_leaf_that_exists_is_returned_and_one_beyond_is_an_index_error(journal: Journal) -> None:
    journal.append(stakes(3))
    assert parse_leaf(journal.leaf(2)).index == 2
    for index in (3, -1):
        with pytest.raises(IndexError, match=f"no entry {index}"):
            journal.leaf(index)


# ── Cosignatures ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_cosignature_of_the_newest_checkpoint_is_stored_and_keeps_it(path: Path, journal: Journal) -> None:
    note = journal.append(stakes(3)).note
    assert journal.add_cosignature(cosigned(note), MIRROR.verifier).size == 3
    journal.append(stakes(1))
    journal.append(stakes(1))
    assert kept_sizes(path) == [0, 3, 5]
    line = MIRROR.sign(parse_note(note).text, 1_796_000_000).line
    assert stored(path, "SELECT size, name, line FROM cosignature") == [(3, MIRROR.name, line)]


def test_cosignature_of_a_checkpoint_that_was_replaced_brings_it_back(path: Path, journal: Journal) -> None:
    note = journal.append(stakes(300)).note
    journal.append(stakes(300), keep_checkpoint=True)
    old = journal.append(stakes(1)).note
    journal.append(stakes(1))
    assert 601 not in kept_sizes(path)
    for returned in (old, old, note):
        journal.add_cosignature(cosigned(returned), MIRROR.verifier)
    assert kept_sizes(path) == [0, 300, 600, 601, 602]
    assert verify(path, LogKeys.of(SIGNER.verifier)).ok


def test_cosignature_that_came_twice_keeps_the_first_time(path: Path, journal: Journal) -> None:
    note = journal.append(stakes(1)).note
    for time_s in (5, 6):
        journal.add_cosignature(cosigned(note, time_s), MIRROR.verifier)
    ((line,),) = stored(path, "SELECT line FROM cosignature")
    assert line == MIRROR.sign(parse_note(note).text, 5).line


def test_cosignature_of_the_empty_journal_is_accepted(journal: Journal) -> None:
    assert journal.add_cosignature(cosigned(journal.checkpoint), MIRROR.verifier).size == 0


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda note: note, "E-NOTE-UNSIGNED"),
        (lambda note: cosigned(note).replace(f"— {ORIGIN} ", "— casino.example/table/t08/1 "), "E-NOTE-UNSIGNED"),
        (lambda note: cosigned(note)[:-20] + "AAAAAAAAAAAAAAAAAAA\n", "E-NOTE-SIGNATURE"),
        (lambda note: cosigned(note)[:-1], "E-NOTE-MALFORMED"),
        (lambda note: cosigned(note).replace("\n2\n", "\n1\n"), "E-NOTE-SIGNATURE"),
        (lambda note: "", "E-NOTE-MALFORMED"),
    ],
)
def test_cosignature_that_is_not_in_order_is_refused_and_play_goes_on(
    path: Path, journal: Journal, spoil: Callable[[str], str], code: str
) -> None:
    note = journal.append(stakes(2)).note
    assert fault_of(lambda: journal.add_cosignature(spoil(note), MIRROR.verifier)).code == code
    assert stored(path, "SELECT count(*) FROM cosignature") == [(0,)]
    assert journal.append(stakes(1)).size == 3


def test_cosignature_of_a_longer_journal_shows_that_this_one_went_back(path: Path, tmp_path: Path) -> None:
    longer = build(tmp_path / "longer.db", [5])
    ((note,),) = stored(longer, "SELECT note FROM checkpoint WHERE size = 5")
    with closing(open_journal(path)) as journal:
        journal.append(stakes(3))
        fault = fault_of(lambda: journal.add_cosignature(cosigned(str(note)), MIRROR.verifier))
    assert fault.code == "E-JOURNAL-ROLLED-BACK"
    assert "holds 5 entries" in fault.detail


def test_cosignature_of_another_history_by_the_same_key_shows_the_fork(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    Journal.create(other, SIGNER, allow_volatile=True)
    with closing(open_journal(other)) as fork:
        note = fork.append(stakes(2, 100)).note
    with closing(open_journal(path)) as journal:
        journal.append(stakes(3))
        assert fault_of(lambda: journal.add_cosignature(cosigned(note), MIRROR.verifier)).code == "E-JOURNAL-FORKED"
        assert journal.append(stakes(1)).size == 4


# ── Failures, in pairs: failed and not stored, failed but stored ─────────────────────────────────────────────────────


@pytest.mark.parametrize("stores", [False, True])
def test_commit_that_fails_kills_the_journal_and_the_next_start_reads_what_is_there(
    path: Path, monkeypatch: pytest.MonkeyPatch, stores: bool
) -> None:
    journal = open_journal(path)
    certified = journal.append(stakes(300))
    monkeypatch.setattr(journal, "_connection", Saboteur(journal._connection, stores=stores))
    assert fault_of(lambda: journal.append(stakes(2, 300), snapshot=b"state")).code == "E-JOURNAL-WRITE"
    assert (journal.size, journal.root, journal.checkpoint) == (300, certified.root, certified.note)
    attempts: list[Callable[[], object]] = [
        lambda: journal.append(stakes(1)),
        lambda: journal.set_cursor("mirror", 1),
        lambda: journal.add_cosignature(cosigned(certified.note), MIRROR.verifier),
    ]
    for attempt in attempts:
        assert "closed to writing" in fault_of(attempt).detail
    journal.close()
    with closing(open_journal(path)) as reopened:
        assert reopened.size == (302 if stores else 300)
        assert reopened.latest_snapshot() == ((302, b"state") if stores else None)
        assert reopened.append(stakes(1)).size == reopened.size
    assert verify(path, LogKeys.of(SIGNER.verifier)).ok


@pytest.mark.parametrize("stores", [False, True])
def test_cursor_that_cannot_be_written_kills_the_journal_too(
    path: Path, monkeypatch: pytest.MonkeyPatch, stores: bool
) -> None:
    journal = open_journal(path)
    journal.append(stakes(5))
    monkeypatch.setattr(journal, "_connection", Saboteur(journal._connection, stores=stores))
    assert fault_of(lambda: journal.set_cursor("mirror", 5)).code == "E-JOURNAL-WRITE"
    assert fault_of(lambda: journal.append(stakes(1))).code == "E-JOURNAL-WRITE"
    journal.close()
    with closing(open_journal(path)) as reopened:
        assert (reopened.size, reopened.cursor("mirror")) == (5, 5 if stores else 0)


@contextmanager
def files_no_longer_than(length: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_disk_that_takes_no_more_kills_the_journal_and_loses_nothing_certified(path: Path) -> None:
    journal = open_journal(path)
    certified = journal.append(stakes(50))
    length = path.with_name("journal.db-wal").stat().st_size
    with files_no_longer_than(length + 5_000):
        assert fault_of(lambda: journal.append(stakes(200, 50))).code == "E-JOURNAL-WRITE"
    assert fault_of(lambda: journal.append(stakes(1))).code == "E-JOURNAL-WRITE"
    journal.close()
    with closing(open_journal(path)) as reopened:
        assert (reopened.size, reopened.root) == (50, certified.root)
    assert verify(path, LogKeys.of(SIGNER.verifier)).size == 50


def test_interrupted_commit_that_is_not_a_disk_error_leaves_the_journal_dead(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(journal_module, "_write_snapshot", explode)
    journal = open_journal(path)
    with pytest.raises(RuntimeError, match="a bug"):
        journal.append(stakes(1), snapshot=b"")
    assert fault_of(lambda: journal.append(stakes(1))).code == "E-JOURNAL-WRITE"
    journal.close()
    with closing(open_journal(path)) as reopened:
        assert reopened.size == 0


def test_journal_that_was_closed_writes_no_more_and_closes_twice(path: Path) -> None:
    journal = open_journal(path)
    journal.close()
    journal.close()
    with pytest.raises(JournalFault):
        journal.append(stakes(1))


@pytest.mark.parametrize("signer", [OTHER_SIGNER, Signer("casino.example/table/t08/1", bytes(range(32)))])
def test_journal_of_another_key_is_refused(path: Path, signer: Signer) -> None:
    assert fault_of(lambda: open_journal(path, signer=signer)).code == "E-JOURNAL-KEY"
    open_journal(path).close()


def test_leaves_are_exactly_those_asked_for_across_blocks(journal: Journal) -> None:
    journal.append(stakes(700))
    everything = list(journal.leaves(0, 700))
    assert len(everything) == 700
    for start, stop in ((0, 1), (255, 257), (256, 512), (300, 301), (511, 700), (-5, 3), (690, 900), (400, 400)):
        assert list(journal.leaves(start, stop)) == everything[max(start, 0) : stop], (start, stop)


def test_new_journal_may_be_read_by_its_group_and_by_nobody_else(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o640


def test_cursor_may_stand_at_the_beginning(journal: Journal) -> None:
    journal.set_cursor("broker", 0)
    assert (journal.cursor("broker"), journal.base) == (0, 0)


def test_folder_that_cannot_be_synced_stops_the_opening_and_lets_go_of_the_journal(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(journal_module, "sync_folder", fail)
    assert fault_of(lambda: open_journal(path)).code == "E-JOURNAL-WRITE"
    monkeypatch.undo()
    open_journal(path).close()
