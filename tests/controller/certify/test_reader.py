"""Reading beside the writer."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from controller.certify.faults import JournalFault
from controller.certify.journal import Journal
from controller.certify.leaf import leaf_hash
from controller.certify.reader import Reader
from controller.certify.tree import EMPTY_ROOT, root_of, verify_consistency, verify_inclusion
from tests.controller.certify.workshop import build, forgery, open_journal, stakes


def test_reader_sees_each_commit_of_the_living_writer(path: Path, journal: Journal) -> None:
    with Reader(path) as reader:
        assert (reader.size, list(reader.leaves(0, 10)), reader.root(0)) == (0, [], EMPTY_ROOT)
        for count in (1, 600, 3):
            appended = journal.append(stakes(count))
            assert (reader.size, reader.checkpoint()) == (appended.size, appended.note)
            assert reader.root(appended.size) == appended.root
            assert list(reader.leaves(0, appended.size)) == list(journal.leaves(0, appended.size))
            assert reader.leaf(appended.size - 1) == journal.leaf(appended.size - 1)


def test_reader_in_the_middle_of_a_stream_lets_the_writer_go_on_and_sees_what_it_adds(
    path: Path, journal: Journal
) -> None:
    journal.append(stakes(600))
    with Reader(path) as reader:
        stream = reader.leaves(0, 2_000)
        seen = [next(stream)]
        journal.append(stakes(500))
        seen += list(stream)
        assert seen == list(journal.leaves(0, 1_100))


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (5, 5), (5, 4), (3, 7), (500, 520), (590, 700), (700, 800)])
def test_reader_range_at_any_border_gives_what_there_is(tmp_path: Path, start: int, stop: int) -> None:
    path = build(tmp_path / "journal.db", [600])
    with Reader(path) as reader, closing(open_journal(path)) as journal:
        assert list(reader.leaves(start, stop)) == list(journal.leaves(0, 600))[start:stop]


def test_reader_entry_that_does_not_exist_is_an_index_error(path: Path) -> None:
    with Reader(path) as reader, pytest.raises(IndexError, match="no entry 0"):
        reader.leaf(0)


def test_reader_proofs_of_a_stored_journal_verify(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [300, 300, 70])
    with Reader(path) as reader:
        hashes = [leaf_hash(leaf) for leaf in reader.leaves(0, 670)]
        for size in (1, 255, 256, 257, 600, 670):
            root = root_of(hashes[:size])
            assert reader.root(size) == root
            for index in {0, size // 2, size - 1}:
                assert verify_inclusion(hashes[index], index, size, reader.inclusion_proof(index, size), root)
            proof = reader.consistency_proof(size, 670)
            assert verify_consistency(size, 670, root, reader.root(670), proof)


def test_reader_can_change_nothing(path: Path) -> None:
    with Reader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._connection.execute("INSERT INTO meta VALUES ('a', 'b')")


def test_reader_of_what_is_no_journal_says_so(tmp_path: Path, path: Path) -> None:
    (tmp_path / "other").write_bytes(b"something else" * 50)
    for name, code in [("none", "E-JOURNAL-MISSING"), ("other", "E-JOURNAL-FOREIGN")]:
        with pytest.raises(JournalFault) as caught:
            Reader(tmp_path / name)
        assert caught.value.code == code
    with forgery(path) as connection:
        connection.execute("DELETE FROM checkpoint")
    with Reader(path) as reader, pytest.raises(JournalFault) as caught:
        reader.checkpoint()
    assert caught.value.code == "E-JOURNAL-UNSIGNED"
