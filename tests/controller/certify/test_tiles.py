"""The tree on disk, against the tree in memory."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.certify.faults import JournalFault
from controller.certify.leaf import leaf_hash
from controller.certify.storage import SCHEMA
from controller.certify.tiles import TILE_WIDTH, Edge, entries, level_count, restore_edge, stored_subtree
from controller.certify.tree import EMPTY_ROOT, inclusion_proof, root_of, subtrees_of, verify_inclusion
from controller.certify.volumes import Chain

COUNT = 2_000
LEAVES = [b"leaf %d" % at for at in range(COUNT)]
HASHES = [leaf_hash(leaf) for leaf in LEAVES]


@pytest.fixture(scope="module")
def stored() -> Iterator[sqlite3.Connection]:
    """A database with entries and the tiles they complete."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for sql in SCHEMA:
            connection.execute(sql)
        connection.execute("INSERT INTO volume VALUES (0, 0)")
        connection.executemany("INSERT INTO log VALUES (?, ?)", enumerate(LEAVES))
        tiles = Edge().extend(HASHES)
        rows = [(tile.level, tile.n, tile.root, tile.hashes) for tile in tiles]
        connection.executemany("INSERT INTO tile VALUES (?, ?, ?, ?)", rows)
        yield connection


def test_edge_grown_in_any_steps_has_the_root_of_its_entries() -> None:
    edge = Edge()
    assert edge.root() == EMPTY_ROOT
    for start in range(0, COUNT, 7):
        edge.extend(HASHES[start : start + 7])
        assert edge.root() == root_of(HASHES[: edge.size])


def test_edge_gives_each_full_tile_once_with_its_hashes_and_root() -> None:
    tiles = Edge().extend(HASHES)
    assert [(tile.level, tile.n) for tile in tiles] == [(0, n) for n in range(COUNT // TILE_WIDTH)]
    for tile in tiles:
        own = HASHES[tile.n * TILE_WIDTH : (tile.n + 1) * TILE_WIDTH]
        assert (tile.hashes, tile.root) == (b"".join(own), root_of(own))


def test_edge_of_two_levels_gives_the_upper_tile_after_the_last_lower_one() -> None:
    edge = Edge()
    tiles = edge.extend([HASHES[0]] * TILE_WIDTH * TILE_WIDTH)
    assert [(tile.level, tile.n) for tile in tiles[-2:]] == [(0, 255), (1, 0)]
    assert tiles[-1].hashes == b"".join(tile.root for tile in tiles[:-1])
    assert edge.root() == tiles[-1].root


def test_edge_copy_that_grows_leaves_the_original_alone() -> None:
    edge = Edge()
    edge.extend(HASHES[:300])
    grown = edge.copy()
    grown.extend(HASHES[300:600])
    assert (edge.size, edge.root()) == (300, root_of(HASHES[:300]))
    assert (grown.size, grown.root()) == (600, root_of(HASHES[:600]))


@given(st.integers(0, COUNT))
def test_edge_restored_at_any_size_has_the_same_root_and_goes_on_alike(stored: sqlite3.Connection, size: int) -> None:
    edge = restore_edge(stored, size, HASHES[size - size % TILE_WIDTH : size])
    assert (edge.size, edge.root()) == (size, root_of(HASHES[:size]))
    grown = Edge()
    grown.extend(HASHES[:size])
    assert edge.extend(HASHES[size:]) == grown.extend(HASHES[size:])
    assert edge.root() == grown.root()


@settings(max_examples=50)
@given(st.integers(1, COUNT), st.data())
def test_inclusion_proof_from_stored_tiles_is_that_from_memory(
    stored: sqlite3.Connection, size: int, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, size - 1))
    chain = Chain(Path("journal.db"), stored)
    proof = inclusion_proof(index, size, lambda start, stop: stored_subtree(chain, start, stop))
    assert proof == inclusion_proof(index, size, subtrees_of(HASHES))
    assert verify_inclusion(HASHES[index], index, size, proof, root_of(HASHES[:size]))


@pytest.mark.parametrize(("size", "levels"), [(0, 0), (255, 0), (256, 1), (65_535, 1), (65_536, 2), (2**24, 3)])
def test_level_count_at_each_border_is_that_of_the_full_tiles(size: int, levels: int) -> None:
    assert level_count(size) == levels


def test_entries_that_are_missing_are_named(stored: sqlite3.Connection) -> None:
    assert entries(stored, 3, 5) == LEAVES[3:5]
    with pytest.raises(JournalFault, match=f"entry {COUNT} is missing") as caught:
        entries(stored, COUNT - 2, COUNT + 2)
    assert (caught.value.code, caught.value.index) == ("E-JOURNAL-INCOMPLETE", COUNT)


def test_edge_without_its_tiles_is_incomplete(stored: sqlite3.Connection) -> None:
    with pytest.raises(JournalFault, match="tiles are missing at level 0") as caught:
        restore_edge(stored, COUNT + TILE_WIDTH, [])
    assert caught.value.code == "E-JOURNAL-INCOMPLETE"
