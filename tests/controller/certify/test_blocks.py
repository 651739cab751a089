"""What each entry of a block must say of itself, although chain, tile and root are those of a key that lies."""

from dataclasses import replace

import pytest

from controller.certify.blocks import check_entries
from controller.certify.faults import JournalFault
from controller.certify.leaf import FIRST_PREVIOUS, LEAF_BOUND, Record, Stamp, build_leaf, canonical, leaf_hash
from tests.controller.certify.workshop import ORIGIN

STAMP = Stamp(source=ORIGIN, boot="9f1c0b7e52d3a844", mono_ms=1, wall_ms=1, quality="ntp")


def chained(first: int, previous: bytes, *says: tuple[int, Stamp, Record]) -> list[bytes]:
    """Entries, each of which names the hash of the one before."""
    leaves = []
    for index, stamp, record in says:
        leaves.append(build_leaf(index, previous, record, stamp))
        previous = leaf_hash(leaves[-1])
    return leaves


def sized(length: int) -> Record:
    return Record("fr.a.b.v1", canonical({"a": "x" * length}), None)


def check(leaves: list[bytes], first: int = 0, previous: bytes = b"") -> None:
    check_entries(ORIGIN, first, leaves, list(map(leaf_hash, leaves)), previous, lambda tail: False)


def fault_of(leaves: list[bytes], first: int = 0, previous: bytes = b"") -> tuple[str, int | None, str]:
    with pytest.raises(JournalFault) as caught:
        check(leaves, first, previous)
    return caught.value.code, caught.value.index, caught.value.detail


def test_entries_that_say_what_they_are_pass_from_the_first_one_and_from_any_other() -> None:
    check(chained(0, FIRST_PREVIOUS, (0, STAMP, sized(1)), (1, STAMP, sized(2))))
    previous = leaf_hash(b"the entry before")
    check(chained(7, previous, (7, STAMP, sized(1)), (8, STAMP, sized(2))), 7, previous)


def test_entry_that_says_it_is_another_one_is_named_where_it_stands() -> None:
    leaves = chained(0, FIRST_PREVIOUS, (0, STAMP, sized(1)), (5, STAMP, sized(2)))
    code, index, detail = fault_of(leaves)
    assert (code, index) == ("E-JOURNAL-ALTERED", 1)
    assert "it says that it is entry 5" in detail


def test_entry_of_another_journal_is_named_though_it_is_chained() -> None:
    elsewhere = replace(STAMP, source="casino.example/table/t08/1")
    code, index, detail = fault_of(chained(0, FIRST_PREVIOUS, (0, STAMP, sized(1)), (1, elsewhere, sized(2))))
    assert (code, index) == ("E-JOURNAL-ALTERED", 1)
    assert "it says that it comes from casino.example/table/t08/1" in detail


def test_entry_of_just_the_permitted_length_passes_and_a_longer_one_is_named() -> None:
    spare = LEAF_BOUND - len(build_leaf(0, FIRST_PREVIOUS, sized(0), STAMP))
    (full,) = chained(0, FIRST_PREVIOUS, (0, STAMP, sized(spare)))
    assert len(full) == LEAF_BOUND
    check([full])
    assert fault_of([full.replace(b"xx", b"xxx", 1)])[:2] == ("E-JOURNAL-ALTERED", 0)


def test_break_of_the_chain_blames_the_neighbour_that_its_other_neighbour_contradicts() -> None:
    leaves = chained(0, FIRST_PREVIOUS, *((at, STAMP, sized(at)) for at in range(4)))
    before = [*leaves]
    before[1] = build_leaf(1, leaf_hash(leaves[0]), sized(9), STAMP)
    assert fault_of(before)[1] == 1, "entry 2 names another entry 1, and entry 3 names this entry 2"
    after = [*leaves]
    after[2] = build_leaf(2, leaf_hash(b"nothing"), sized(2), STAMP)
    assert fault_of(after)[1] == 2, "entry 2 names another entry 1, and entry 3 another entry 2"
    first = [build_leaf(0, leaf_hash(b"nothing"), sized(0), STAMP), *leaves[1:]]
    assert fault_of(first)[1] == 0
