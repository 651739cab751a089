"""The verification at start-up: whoever touched the end of the file is found, and how much must be read for it."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from controller.certify.faults import JournalFault
from controller.certify.leaf import leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.recovery import recover
from controller.certify.storage import connect_writer
from controller.certify.tree import root_of
from tests.controller.certify.workshop import MIRROR, OTHER_SIGNER, SIGNER, build, forgery, open_journal, stakes, stored


def fault_of(path: Path) -> JournalFault:
    with pytest.raises(JournalFault) as caught:
        open_journal(path)
    return caught.value


def flip(leaf: bytes, at: int) -> bytes:
    return leaf[:at] + bytes([leaf[at] ^ 1]) + leaf[at + 1 :]


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 300, 512])
def test_start_after_any_count_of_entries_goes_on_where_it_ended(tmp_path: Path, count: int) -> None:
    path = build(tmp_path / "journal.db", [count])
    with closing(open_journal(path)) as journal:
        assert journal.size == count
        assert journal.append(stakes(1)).first_index == count


@pytest.mark.parametrize(("count", "index"), [(5, 0), (5, 3), (5, 4), (300, 256), (300, 299)])
def test_start_with_an_altered_entry_at_the_end_names_it(tmp_path: Path, count: int, index: int) -> None:
    path = build(tmp_path / "journal.db", [count])
    with forgery(path) as connection:
        ((leaf,),) = connection.execute("SELECT leaf FROM log WHERE idx = ?", (index,))
        connection.execute("UPDATE log SET leaf = ? WHERE idx = ?", (flip(leaf, 40), index))
    fault = fault_of(path)
    assert (fault.code, fault.index) == ("E-JOURNAL-ALTERED", index)
    assert f"entry {index}" in fault.detail


def test_start_with_entries_cut_off_says_that_the_journal_went_back(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [5])
    with forgery(path) as connection:
        connection.execute("DELETE FROM log WHERE idx >= 3")
    fault = fault_of(path)
    assert (fault.code, fault.index) == ("E-JOURNAL-ROLLED-BACK", 3)


@pytest.mark.parametrize("table", ["cursor", "cosignature", "snapshot"])
def test_start_with_a_journal_shorter_than_what_was_delivered_says_that_it_went_back(
    tmp_path: Path, table: str
) -> None:
    path = tmp_path / "journal.db"
    build(path, [3])
    with closing(open_journal(path)) as journal:
        note = journal.append(stakes(2), snapshot=b"state" if table == "snapshot" else None).note
        journal.set_cursor("mirror", 5 if table == "cursor" else 1)
        if table == "cosignature":
            text = note.partition("\n\n")[0] + "\n"
            journal.add_cosignature(f"{note}{MIRROR.sign(text, 1).line}\n", MIRROR.verifier)
    with forgery(path) as connection:
        connection.execute("DELETE FROM log WHERE idx >= 3")
        connection.execute("DELETE FROM checkpoint WHERE size > 3")
    fault = fault_of(path)
    assert fault.code == "E-JOURNAL-ROLLED-BACK"
    assert table in fault.detail


def test_start_with_entries_that_nobody_signed_is_refused(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [5])
    with forgery(path) as connection:
        connection.execute("INSERT INTO log SELECT 5, leaf FROM log WHERE idx = 4")
    fault = fault_of(path)
    assert (fault.code, fault.index) == ("E-JOURNAL-UNSIGNED", 5)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("DELETE FROM checkpoint", "E-JOURNAL-UNSIGNED"),
        ("UPDATE checkpoint SET note = replace(note, char(10) || '300', char(10) || '299')", "E-JOURNAL-ALTERED"),
        ("UPDATE checkpoint SET note = 'x'", "E-JOURNAL-ALTERED"),
        ("UPDATE checkpoint SET size = 301 WHERE size = 300", "E-JOURNAL-ALTERED"),
        ("DELETE FROM tile", "E-JOURNAL-INCOMPLETE"),
        ("UPDATE tile SET root = zeroblob(32)", "E-JOURNAL-ALTERED"),
        ("DELETE FROM log WHERE idx = 270", "E-JOURNAL-INCOMPLETE"),
        ("DELETE FROM log WHERE idx = 255", "E-JOURNAL-INCOMPLETE"),
        ("INSERT INTO log VALUES (-1, x'00')", "E-JOURNAL-ALTERED"),
        ("UPDATE snapshot SET body = x'00'", "E-JOURNAL-ALTERED"),
        ("UPDATE snapshot SET note = (SELECT note FROM checkpoint WHERE size = 300)", "E-JOURNAL-ALTERED"),
        ("UPDATE snapshot SET size = 299", "E-JOURNAL-ALTERED"),
    ],
)
def test_start_with_anything_missing_or_changed_at_the_edge_is_refused(tmp_path: Path, change: str, code: str) -> None:
    path = tmp_path / "journal.db"
    build(path, [1])
    with closing(open_journal(path)) as journal:
        journal.append(stakes(299), snapshot=b"state")
    with forgery(path) as connection:
        connection.execute(change)
    assert fault_of(path).code == code


def test_start_with_entries_and_chain_rewritten_without_the_key_is_refused(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [4])
    other = tmp_path / "other.db"
    build(other, [1], OTHER_SIGNER)
    with closing(open_journal(other, signer=OTHER_SIGNER)) as forger:
        forger.append(stakes(3, 50))
    leaves = stored(other, "SELECT leaf, idx FROM log")
    with forgery(path) as connection:
        connection.executemany("UPDATE log SET leaf = ? WHERE idx = ?", leaves)
    assert fault_of(path).code == "E-JOURNAL-ALTERED"


def test_start_with_the_whole_file_of_another_key_is_refused(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [4], OTHER_SIGNER)
    assert fault_of(path).code == "E-JOURNAL-KEY"


def test_start_that_is_refused_leaves_the_file_as_it_was_and_unlocked(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [4])
    with forgery(path) as connection:
        connection.execute("UPDATE log SET leaf = x'00' WHERE idx = 2")
    before = path.read_bytes()
    assert fault_of(path).code == fault_of(path).code == "E-JOURNAL-ALTERED"
    assert path.read_bytes() == before


# ── Nothing is folded that is not bound to the signed root ───────────────────────────────────────────────────────────


def with_snapshots(path: Path) -> Path:
    """600 entries, two full tiles and 88 more, with snapshots at 300 and at 550."""
    build(path, [1])
    with closing(open_journal(path)) as journal:
        journal.append(stakes(299, 1), snapshot=b"state at 300")
        journal.append(stakes(250, 300), snapshot=b"state at 550")
        journal.append(stakes(50, 550))
    return path


def forge_amount(connection: sqlite3.Connection, index: int) -> bytes:
    """More money in an entry, which stays a well-formed one; returns it."""
    ((leaf,),) = connection.execute("SELECT leaf FROM log WHERE idx = ?", (index,))
    forged = re.sub(rb'"cents":[0-9]+', b'"cents":99999999', leaf)
    assert forged != leaf
    connection.execute("UPDATE log SET leaf = ? WHERE idx = ?", (forged, index))
    return bytes(forged)


INDEXES = [0, 7, 254, 255, 256, 299, 300, 400, 511, 512, 549, 550, 598, 599]


@pytest.mark.law("67-15")
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize(("deleted", "read_from"), [(0, 511), (1, 255), (2, 0)])
def test_start_with_a_forged_amount_in_anything_it_goes_on_from_names_the_entry(
    tmp_path: Path, index: int, deleted: int, read_from: int
) -> None:
    path = with_snapshots(tmp_path / "journal.db")
    with forgery(path) as connection:
        forge_amount(connection, index)
        connection.execute(f"DELETE FROM snapshot WHERE size > {[550, 300, 0][deleted]}")
    if index >= read_from:
        fault = fault_of(path)
        assert (fault.code, fault.index) == ("E-JOURNAL-ALTERED", index)
        assert f"entry {index}" in fault.detail
        return
    with closing(open_journal(path)) as journal:
        assert journal.latest_snapshot() == ([550, 300][deleted], [b"state at 550", b"state at 300"][deleted])
        given: list[bytes] = []
        with pytest.raises(JournalFault) as caught:
            given.extend(journal.leaves(0, journal.size))
        assert (caught.value.code, caught.value.index) == ("E-JOURNAL-ALTERED", index)
    assert len(given) <= index


@pytest.mark.parametrize("count", [256, 512])
def test_start_that_ends_with_a_full_tile_checks_that_tile_whatever_the_snapshot(tmp_path: Path, count: int) -> None:
    path = build(tmp_path / "journal.db", [count - 1])
    with closing(open_journal(path)) as journal:
        journal.append(stakes(1), snapshot=b"state")
    with forgery(path) as connection:
        forge_amount(connection, count - 1)
    fault = fault_of(path)
    assert (fault.code, fault.index) == ("E-JOURNAL-ALTERED", count - 1)


def rewrite_tile(connection: sqlite3.Connection, level: int, n: int, at: int, node: bytes, *, root: bool) -> bytes:
    """Another hash in a tile, and the root that follows from it; returns that root."""
    query = "SELECT hashes FROM tile WHERE level = ? AND n = ?"
    ((stored,),) = connection.execute(query, (level, n))
    hashes = stored[: at * 32] + node + stored[at * 32 + 32 :]
    new_root = root_of([hashes[begin : begin + 32] for begin in range(0, len(hashes), 32)])
    connection.execute("UPDATE tile SET hashes = ? WHERE level = ? AND n = ?", (hashes, level, n))
    if root:
        connection.execute("UPDATE tile SET root = ? WHERE level = ? AND n = ?", (new_root, level, n))
    return new_root


@pytest.mark.parametrize("root", [False, True])
def test_start_with_a_forged_amount_and_a_tile_made_to_match_it_is_refused(tmp_path: Path, root: bool) -> None:
    path = build(tmp_path / "journal.db", [600])
    with forgery(path) as connection:
        rewrite_tile(connection, 0, 1, 44, leaf_hash(forge_amount(connection, 300)), root=root)
    assert fault_of(path).code == "E-JOURNAL-ALTERED"


def test_leaves_under_forged_tiles_of_two_levels_are_never_given(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [65_536])
    with closing(open_journal(path)) as journal:
        journal.append(stakes(3), snapshot=b"state")
    with forgery(path) as connection:
        root = rewrite_tile(connection, 0, 3, 0, leaf_hash(forge_amount(connection, 768)), root=True)
        rewrite_tile(connection, 1, 0, 3, root, root=False)
    with closing(open_journal(path)) as journal:
        assert len(list(journal.leaves(65_536, 65_539))) == 3
        for index in (768, 1_023, 0, 65_535):  # with the upper tile false, nothing below it can be shown to be signed
            with pytest.raises(JournalFault) as caught:
                journal.leaf(index)
            assert caught.value.code == "E-JOURNAL-ALTERED"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("UPDATE tile SET hashes = zeroblob(8192) WHERE n = 0", "E-JOURNAL-ALTERED"),
        ("UPDATE tile SET hashes = substr(hashes, 1, 8191) WHERE n = 0", "E-JOURNAL-ALTERED"),
        ("UPDATE tile SET hashes = CAST(hashes || zeroblob(32) AS BLOB) WHERE n = 0", "E-JOURNAL-ALTERED"),
        ("UPDATE log SET leaf = (SELECT leaf FROM log WHERE idx = 9) WHERE idx = 8", "E-JOURNAL-ALTERED"),
        ("DELETE FROM log WHERE idx = 8", "E-JOURNAL-INCOMPLETE"),
    ],
)
def test_start_without_a_snapshot_refuses_anything_changed_anywhere(tmp_path: Path, change: str, code: str) -> None:
    path = build(tmp_path / "journal.db", [600])
    with forgery(path) as connection:
        connection.execute(change)
    assert fault_of(path).code == code


def test_snapshot_that_is_exchanged_while_the_journal_is_open_is_not_given(tmp_path: Path) -> None:
    path = with_snapshots(tmp_path / "journal.db")
    with closing(open_journal(path)) as journal:
        with forgery(path) as connection:
            connection.execute("UPDATE snapshot SET body = x'00' WHERE size = 550")
        with pytest.raises(JournalFault, match="not the one that was signed"):
            journal.latest_snapshot()


def test_leaves_that_are_read_while_the_journal_grows_past_a_tile_are_those_of_the_beginning(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [300])
    with closing(open_journal(path)) as journal:
        stream = journal.leaves(0, 1_000)
        given = [next(stream)]
        journal.append(stakes(400, 300))
        given.extend(stream)
        assert given == list(journal.leaves(0, 300))


def test_start_reads_no_more_of_a_long_journal_than_of_a_short_one(tmp_path: Path) -> None:
    def steps(count: int) -> int:
        path = build(tmp_path / f"{count}.db", [count - 100])
        with closing(open_journal(path)) as journal:
            journal.append(stakes(60), snapshot=b"state")
            journal.append(stakes(40))
        counted = [0]

        def count_ten() -> int:
            counted[0] += 1
            return 0

        with closing(connect_writer(path)) as connection:
            connection.set_progress_handler(count_ten, 10)
            recover(connection, path, LogKeys.of(SIGNER.verifier))
        return counted[0]

    # Both end 44 entries after a full tile; the long one has 67 times the entries, and 77 more tile roots to read.
    assert steps(256 * 78 + 44) <= steps(256 + 44) + 100
