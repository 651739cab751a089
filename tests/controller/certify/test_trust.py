"""What may be believed in a file, check by check, with the code of each fault."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controller.certify.checkpoint import Checkpoint, snapshot_text
from controller.certify.faults import JournalFault
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signature, Signer, format_note, sign_note
from controller.certify.policy import Policy
from controller.certify.trust import (
    check_bounds,
    check_cosignatures,
    check_meta,
    check_snapshot,
    last_checkpoint,
    last_snapshot,
    open_checkpoint,
)
from tests.controller.certify.workshop import MIRROR, ORIGIN, OTHER_SIGNER, SIGNER, build

KEYS = LogKeys.of(SIGNER.verifier)
TEXT = Checkpoint(ORIGIN, 5, bytes(32)).text
POLICY = Policy.parse(f"log {SIGNER.verifier.vkey}\nwitness mirror {MIRROR.verifier.vkey}\nquorum none\n")


def fault_of(act: Callable[[], object]) -> tuple[str, int | None]:
    with pytest.raises(JournalFault) as caught:
        act()
    return caught.value.code, caught.value.index


@pytest.fixture
def file(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A journal of five entries without any guard."""
    with closing(sqlite3.connect(build(tmp_path / "journal.db", [2, 3]), isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        yield connection


# ── Checkpoints and cosignatures ──────────────────────────────────────────────────────────────────────────────────────


def test_checkpoint_under_its_own_size_by_its_own_key_opens() -> None:
    assert open_checkpoint(5, sign_note(TEXT, SIGNER), KEYS) == Checkpoint(ORIGIN, 5, bytes(32))


@pytest.mark.parametrize(
    ("note", "code"),
    [
        (sign_note("not a checkpoint\n", SIGNER), "E-JOURNAL-ALTERED"),
        (sign_note(Checkpoint("casino.example/table/t08/1", 5, bytes(32)).text, SIGNER), "E-JOURNAL-KEY"),
        (sign_note(Checkpoint(ORIGIN, 6, bytes(32)).text, SIGNER), "E-JOURNAL-ALTERED"),
        (sign_note(TEXT, OTHER_SIGNER), "E-JOURNAL-KEY"),
        ("nonsense", "E-JOURNAL-ALTERED"),
        (format_note(TEXT, [Signature(ORIGIN, SIGNER.verifier.key_id, bytes(64))]), "E-JOURNAL-ALTERED"),
    ],
)
def test_checkpoint_that_is_not_the_keys_word_for_this_size_has_its_code(note: str, code: str) -> None:
    assert fault_of(lambda: open_checkpoint(5, note, KEYS)) == (code, None)


def test_cosigners_are_the_known_witnesses_whose_lines_fit_and_strangers_are_passed_over() -> None:
    stranger = Signer("stranger.example", bytes(32), KeyType.COSIGNATURE)
    own, right, other = SIGNER.sign(TEXT), MIRROR.sign(TEXT, 7), stranger.sign(TEXT, 7)
    assert check_cosignatures(5, format_note(TEXT, [own, right, other]), POLICY) == {"mirror"}
    assert check_cosignatures(5, format_note(TEXT, [own, other]), POLICY) == set()
    wrong = MIRROR.sign(f"{TEXT}x\n", 7)
    assert fault_of(lambda: check_cosignatures(5, format_note(TEXT, [own, wrong]), POLICY))[0] == "E-JOURNAL-ALTERED"
    assert fault_of(lambda: check_cosignatures(5, "nonsense", POLICY))[0] == "E-JOURNAL-ALTERED"


def test_last_checkpoint_is_the_largest_and_there_must_be_one(file: sqlite3.Connection) -> None:
    assert last_checkpoint(file, KEYS)[0].size == 5
    file.execute("DELETE FROM checkpoint")
    assert fault_of(lambda: last_checkpoint(file, KEYS)) == ("E-JOURNAL-UNSIGNED", None)


# ── The ends of the tables ────────────────────────────────────────────────────────────────────────────────────────────


def test_bounds_of_an_untouched_journal_are_those_that_were_signed(file: sqlite3.Connection) -> None:
    check_bounds(file, 5)
    assert fault_of(lambda: check_bounds(file, 6)) == ("E-JOURNAL-ROLLED-BACK", 5)
    assert fault_of(lambda: check_bounds(file, 4)) == ("E-JOURNAL-UNSIGNED", 4)


def test_bounds_of_an_empty_journal_are_nothing(file: sqlite3.Connection) -> None:
    file.execute("DELETE FROM log")
    file.execute("DELETE FROM checkpoint")
    check_bounds(file, 0)
    assert fault_of(lambda: check_bounds(file, 1)) == ("E-JOURNAL-ROLLED-BACK", 0)


def test_entry_before_the_first_one_is_named(file: sqlite3.Connection) -> None:
    file.execute("INSERT INTO log SELECT -1, leaf FROM log WHERE idx = 0")
    assert fault_of(lambda: check_bounds(file, 5)) == ("E-JOURNAL-ALTERED", -1)


def test_entry_that_belongs_to_an_earlier_volume_is_named(file: sqlite3.Connection) -> None:
    file.execute("DELETE FROM volume")
    file.execute("INSERT INTO volume (base, size) VALUES (2, 5)")
    assert fault_of(lambda: check_bounds(file, 5)) == ("E-JOURNAL-ALTERED", 0)
    file.execute("DELETE FROM log WHERE idx < 2")
    check_bounds(file, 5)


@pytest.mark.parametrize(
    ("size", "code"), [(-1, "E-JOURNAL-ALTERED"), (0, None), (5, None), (6, "E-JOURNAL-ROLLED-BACK")]
)
def test_size_in_a_table_lies_within_the_journal(file: sqlite3.Connection, size: int, code: str | None) -> None:
    file.execute("INSERT OR REPLACE INTO cursor (name, size) VALUES ('mirror', ?)", (size,))
    if code is None:
        check_bounds(file, 5)
    else:
        assert fault_of(lambda: check_bounds(file, 5))[0] == code


# ── Snapshots and what the file says of itself ────────────────────────────────────────────────────────────────────────


def snapshot(file: sqlite3.Connection, size: int, body: bytes, signer: Signer, signed: bytes | None = None) -> None:
    note = sign_note(snapshot_text(ORIGIN, size, bytes(32), body if signed is None else signed), signer)
    file.execute("INSERT INTO snapshot (size, body, note) VALUES (?, ?, ?)", (size, body, note))


def root(size: int) -> bytes:
    return bytes(32)


def test_last_snapshot_is_the_newest_that_the_key_signed(file: sqlite3.Connection) -> None:
    assert last_snapshot(file, KEYS, root) is None
    snapshot(file, 2, b"older", SIGNER)
    snapshot(file, 4, b"of another key", OTHER_SIGNER)
    assert last_snapshot(file, KEYS, root) == (2, b"older")
    snapshot(file, 5, b"altered", SIGNER, signed=b"signed")
    assert fault_of(lambda: last_snapshot(file, KEYS, root)) == ("E-JOURNAL-ALTERED", None)


def test_snapshot_over_another_root_is_altered(file: sqlite3.Connection) -> None:
    snapshot(file, 2, b"state", SIGNER)
    ((note,),) = file.execute("SELECT note FROM snapshot")
    check_snapshot(2, bytes(32), b"state", note, KEYS)
    other = bytes([1] * 32)
    assert fault_of(lambda: check_snapshot(2, other, b"state", note, KEYS)) == ("E-JOURNAL-ALTERED", None)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("DELETE FROM meta WHERE name = 'vkey'", "E-JOURNAL-ALTERED"),
        ("INSERT INTO meta VALUES ('more', 'x')", "E-JOURNAL-ALTERED"),
        ("UPDATE meta SET value = 'elsewhere' WHERE name = 'origin'", "E-JOURNAL-ALTERED"),
        ("UPDATE meta SET value = 'elsewhere' WHERE name = 'vkey'", "E-JOURNAL-KEY"),
    ],
)
def test_what_the_file_says_of_itself_is_origin_and_first_key(file: sqlite3.Connection, change: str, code: str) -> None:
    check_meta(file, KEYS)
    file.execute(change)
    assert fault_of(lambda: check_meta(file, KEYS)) == (code, None)
