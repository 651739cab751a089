"""Where reading begins and what a fault names: bound blocks, starts after a snapshot, and notes with cosignatures."""

from contextlib import closing
from pathlib import Path

import pytest

from controller.certify.bound import BoundEntries
from controller.certify.checkpoint import Checkpoint
from controller.certify.faults import JournalFault
from controller.certify.journal import Journal
from controller.certify.leaf import leaf_hash
from controller.certify.note import KeyType, Signer, sign_note
from controller.certify.reader import Reader
from controller.certify.tiles import Edge
from controller.certify.tree import root_of
from tests.controller.certify.workshop import MIRROR, ORIGIN, SIGNER, build, forgery, open_journal, stakes

LEAVES = [b"entry %d" % at for at in range(600)]
HASHES = [leaf_hash(leaf) for leaf in LEAVES]


class Stored:
    """Entries and tiles that anybody may change."""

    def __init__(self) -> None:
        self.leaves = [*LEAVES]
        self.edge = Edge()
        self.tiles = {(tile.level, tile.n): (tile.root, tile.hashes) for tile in self.edge.extend(HASHES)}

    def entries(self, start: int, stop: int) -> list[bytes]:
        return self.leaves[start:stop]

    def tile(self, level: int, n: int) -> tuple[bytes, bytes] | None:
        return self.tiles.get((level, n))

    def tile_roots(self, level: int, start: int, stop: int) -> list[bytes]:
        return [self.tiles[level, n][0] for n in range(start, stop)]


def fault_of_block(stored: Stored, n: int) -> tuple[str, int | None]:
    with pytest.raises(JournalFault) as caught:
        BoundEntries(stored, stored.edge).block(n)
    return caught.value.code, caught.value.index


def test_block_is_its_entries_and_their_hashes_whole_or_partial() -> None:
    stored = Stored()
    bound = BoundEntries(stored, stored.edge)
    for n, start, stop in ((0, 0, 256), (1, 256, 512), (2, 512, 600)):
        assert bound.block(n) == (LEAVES[start:stop], HASHES[start:stop])


@pytest.mark.parametrize("index", [0, 255, 256, 300, 512, 599])
def test_block_with_an_altered_entry_names_it(index: int) -> None:
    stored = Stored()
    stored.leaves[index] = b"altered"
    assert fault_of_block(stored, index // 256) == ("E-JOURNAL-ALTERED", index)


def test_block_whose_tile_is_gone_is_incomplete() -> None:
    stored = Stored()
    del stored.tiles[0, 1]
    assert fault_of_block(stored, 1) == ("E-JOURNAL-INCOMPLETE", None)


# ── Starts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def altered(path: Path, *indexes: int) -> Path:
    with forgery(path) as connection:
        for index in indexes:
            connection.execute("UPDATE log SET leaf = CAST(leaf || x'20' AS BLOB) WHERE idx = ?", (index,))
    return path


def with_snapshot(path: Path, before: int, after: int) -> Path:
    """A journal with a snapshot after ``before`` entries, and ``after`` more entries."""
    Journal.create(path, SIGNER, allow_volatile=True)
    with closing(open_journal(path)) as journal:
        journal.append(stakes(before), snapshot=b"state")
        if after:
            journal.append(stakes(after, before))
    return path


def test_start_reads_no_block_before_that_of_the_last_entry_when_the_snapshot_includes_it(tmp_path: Path) -> None:
    path = altered(with_snapshot(tmp_path / "journal.db", 257, 0), 100)
    with closing(open_journal(path)) as journal:
        assert journal.size == 257


def test_start_names_the_altered_entry_that_it_read_and_not_one_beside_its_path(tmp_path: Path) -> None:
    path = altered(with_snapshot(tmp_path / "journal.db", 260, 500), 10, 300)
    with pytest.raises(JournalFault) as caught:
        open_journal(path)
    assert (caught.value.code, caught.value.index) == ("E-JOURNAL-ALTERED", 300)


def test_start_under_a_signed_root_that_is_not_that_of_the_entries_asks_the_full_verification(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [3, 300])
    with forgery(path) as connection:
        note = sign_note(Checkpoint(ORIGIN, 303, bytes(32)).text, SIGNER)
        connection.execute("UPDATE checkpoint SET note = ? WHERE size = 303", (note,))
        connection.execute("DELETE FROM log WHERE idx = 7")
    with pytest.raises(JournalFault) as caught:
        open_journal(path)
    assert (caught.value.code, caught.value.index) == ("E-JOURNAL-INCOMPLETE", 7)


# ── Reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_reader_gives_each_kept_checkpoint_with_its_cosignatures_by_name(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    Journal.create(path, SIGNER, allow_volatile=True)
    second = Signer("caisse.example/witness", bytes(32), KeyType.COSIGNATURE)
    with closing(open_journal(path)) as journal, Reader(path) as reader:
        assert reader.cosigned_size() is None
        first = journal.append(stakes(2), keep_checkpoint=True).note
        text = first.partition("\n\n")[0] + "\n"
        lines = {one.name: one.sign(text, 7).line for one in (MIRROR, second)}
        for one in (MIRROR, second):
            journal.add_cosignature(f"{first}{lines[one.name]}\n", one.verifier)
        last = journal.append(stakes(3, 2)).note
        cosigned = first + "".join(f"{lines[name]}\n" for name in sorted(lines))
        assert reader.notes(1) == reader.notes(2) == [cosigned, last]
        assert reader.notes(3) == [last]
        assert reader.notes(6) == []
        assert reader.cosigned_size() == 2
        hashes = [leaf_hash(leaf) for leaf in reader.leaves(0, 5)]
        assert reader.subtree(0, 4) == root_of(hashes[:4])
        assert reader.subtree(4, 5) == hashes[4]
