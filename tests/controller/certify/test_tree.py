"""The Merkle tree, against pymerkle, the published test tree of Certificate Transparency, and itself."""

import pymerkle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.certify.leaf import leaf_hash
from controller.certify.tree import (
    EMPTY_ROOT,
    Frontier,
    consistency_proof,
    frontier_of,
    inclusion_proof,
    node_hash,
    root_of,
    subtrees_of,
    verify_consistency,
    verify_inclusion,
)

ENTRIES = [b"entry %d" % at for at in range(300)]
HASHES = [leaf_hash(entry) for entry in ENTRIES]
SUBTREES = subtrees_of(HASHES)
ROOTS = [root_of(HASHES[:size]) for size in range(301)]
QUICK = 120

# The eight entries and roots that the tests of the Certificate Transparency project have used since 2012.
PUBLISHED_ENTRIES = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
PUBLISHED_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


@pytest.fixture(scope="module")
def oracle() -> pymerkle.InmemoryTree:
    """An independent tree over the same entries."""
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for entry in ENTRIES:
        tree.append_entry(entry)
    return tree


def test_root_of_the_published_entries_is_the_published_one() -> None:
    hashes = [leaf_hash(entry) for entry in PUBLISHED_ENTRIES]
    assert [root_of(hashes[:size]).hex() for size in range(9)] == PUBLISHED_ROOTS


def test_root_of_every_size_is_that_of_pymerkle(oracle: pymerkle.InmemoryTree) -> None:
    assert [oracle.get_root(size) for size in range(1, 301)] == ROOTS[1:]


def test_frontier_grown_entry_by_entry_has_the_root_of_every_size() -> None:
    frontier = Frontier()
    assert frontier.root() == EMPTY_ROOT == ROOTS[0]
    for size, leaf in enumerate(HASHES, 1):
        frontier.append(leaf)
        assert frontier.root() == ROOTS[size]
        assert len(frontier.nodes) == size.bit_count()
        assert frontier_of(HASHES[:size]).nodes == frontier.nodes


@given(st.lists(st.integers(0, 6), max_size=12))
def test_frontier_grown_by_subtrees_of_falling_height_has_the_root_of_their_entries(heights: list[int]) -> None:
    frontier = Frontier()
    for height in sorted(heights, reverse=True):
        if frontier.size + (1 << height) <= 300:
            frontier.append(SUBTREES(frontier.size, frontier.size + (1 << height)), height)
    assert frontier.root() == ROOTS[frontier.size]


def test_frontier_copy_that_grows_leaves_the_original_alone() -> None:
    frontier = Frontier()
    frontier.append(HASHES[0])
    grown = frontier.copy()
    grown.append(HASHES[1])
    assert (frontier.root(), grown.root()) == (ROOTS[1], ROOTS[2])


def test_inclusion_proof_of_every_entry_in_every_size_is_pymerkles_path(oracle: pymerkle.InmemoryTree) -> None:
    for size in range(1, QUICK + 1):
        for index in range(size):
            proof = inclusion_proof(index, size, SUBTREES)
            assert oracle.prove_inclusion(index + 1, size).path[1:] == proof


def test_inclusion_proof_of_every_entry_in_every_size_verifies_and_for_its_neighbour_does_not() -> None:
    for size in range(1, QUICK + 1):
        for index in range(size):
            proof = inclusion_proof(index, size, SUBTREES)
            assert verify_inclusion(HASHES[index], index, size, proof, ROOTS[size])
            assert not verify_inclusion(HASHES[index + 1], index, size, proof, ROOTS[size])
            assert not verify_inclusion(HASHES[index], index + 1, size, proof, ROOTS[size])


def test_inclusion_proof_of_ours_is_accepted_by_pymerkle(oracle: pymerkle.InmemoryTree) -> None:
    for index, size in [(0, 1), (42, 137), (136, 137), (0, 300), (299, 300), (255, 256), (256, 257)]:
        shape = oracle.prove_inclusion(index + 1, size)
        ours = pymerkle.InclusionProof.deserialize(
            {
                "type": shape.kind,
                "metadata": shape.get_metadata(),
                "rule": shape.rule,
                "path": [HASHES[index].hex(), *(node.hex() for node in inclusion_proof(index, size, SUBTREES))],
            }
        )
        pymerkle.verify_inclusion(HASHES[index], ROOTS[size], ours)


def by_definition(old: int, hashes: list[bytes], complete: bool) -> list[bytes]:
    """SUBPROOF of RFC 6962 section 2.1.2, word for word."""
    new = len(hashes)
    if old == new:
        return [] if complete else [root_of(hashes)]
    split = 1
    while split * 2 < new:
        split *= 2
    if old <= split:
        return [*by_definition(old, hashes[:split], complete), root_of(hashes[split:])]
    return [*by_definition(old - split, hashes[split:], False), root_of(hashes[:split])]


def test_consistency_proof_of_every_pair_of_sizes_is_that_of_the_definition_and_verifies() -> None:
    for new in range(1, QUICK + 1):
        for old in range(1, new + 1):
            proof = consistency_proof(old, new, SUBTREES)
            assert proof == by_definition(old, HASHES[:new], True)
            assert verify_consistency(old, new, ROOTS[old], ROOTS[new], proof)


def test_consistency_proof_from_an_odd_size_holds_only_hashes_of_pymerkles(oracle: pymerkle.InmemoryTree) -> None:
    # From an even size pymerkle also writes down what the old root is made of, down to its last two leaves.
    for new in range(2, QUICK + 1):
        for old in range(1, new, 2):
            assert set(consistency_proof(old, new, SUBTREES)) <= set(oracle.prove_consistency(old, new).path)


def test_proofs_of_the_tree_of_seven_are_those_of_the_rfc() -> None:
    a, b, c, d, e, f, j = HASHES[:7]
    g, h, i = node_hash(a, b), node_hash(c, d), node_hash(e, f)
    k, m = node_hash(g, h), node_hash(i, j)
    assert ROOTS[7] == node_hash(k, m)
    assert [inclusion_proof(at, 7, SUBTREES) for at in (0, 3, 4, 6)] == [[b, h, m], [c, g, m], [f, j, k], [i, k]]
    assert [consistency_proof(at, 7, SUBTREES) for at in (3, 4, 6)] == [[c, d, g, m], [m], [i, j, k]]


@given(st.integers(1, 300), st.data())
def test_consistency_proof_altered_in_any_way_is_refused(new: int, data: st.DataObject) -> None:
    old = data.draw(st.integers(1, new))
    proof = consistency_proof(old, new, SUBTREES)
    wrong = ROOTS[(old + 1) % 301]
    assert not verify_consistency(old, new, wrong, ROOTS[new], proof)
    assert not verify_consistency(old, new, ROOTS[old], wrong if old + 1 != new else ROOTS[0], proof)
    assert not verify_consistency(old, new, ROOTS[old], ROOTS[new], [*proof, ROOTS[1]])
    if proof:
        at = data.draw(st.integers(0, len(proof) - 1))
        assert not verify_consistency(old, new, ROOTS[old], ROOTS[new], [*proof[:at], *proof[at + 1 :]])
        assert not verify_consistency(old, new, ROOTS[old], ROOTS[new], [*proof[:at], bytes(32), *proof[at + 1 :]])


@given(st.integers(1, 300), st.data())
def test_inclusion_proof_altered_in_any_way_is_refused(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(index, size, SUBTREES)
    assert verify_inclusion(HASHES[index], index, size, proof, ROOTS[size])
    assert not verify_inclusion(HASHES[index], index, size, [*proof, ROOTS[1]], ROOTS[size])
    assert not verify_inclusion(HASHES[index], index, size, proof, ROOTS[size - 1])
    if proof:
        at = data.draw(st.integers(0, len(proof) - 1))
        assert not verify_inclusion(HASHES[index], index, size, [*proof[:at], *proof[at + 1 :]], ROOTS[size])
        assert not verify_inclusion(HASHES[index], index, size, [*proof[:at], bytes(32), *proof[at + 1 :]], ROOTS[size])


def test_proofs_that_cannot_exist_are_neither_made_nor_accepted() -> None:
    for index, size in [(-1, 5), (5, 5), (0, 0)]:
        with pytest.raises(ValueError, match="has no entry"):
            inclusion_proof(index, size, SUBTREES)
        assert not verify_inclusion(HASHES[0], index, size, [], ROOTS[1])
    for old, new in [(0, 5), (6, 5), (-1, 5)]:
        with pytest.raises(ValueError, match="no consistency proof"):
            consistency_proof(old, new, SUBTREES)
    assert not verify_consistency(6, 5, ROOTS[6], ROOTS[5], [])
    assert verify_consistency(0, 5, EMPTY_ROOT, ROOTS[5], [])
    assert not verify_consistency(0, 5, ROOTS[1], ROOTS[5], [])
    assert not verify_consistency(0, 5, EMPTY_ROOT, ROOTS[5], [ROOTS[1]])
    assert not verify_consistency(3, 5, ROOTS[3], ROOTS[5], [])
