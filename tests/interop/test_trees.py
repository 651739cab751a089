"""Our proofs for every pair up to 300, judged by the Go package tlog and by pymerkle; wrong ones, refused by all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pymerkle
import pytest

from controller.certify.leaf import leaf_hash
from controller.certify.tree import (
    consistency_proof,
    inclusion_proof,
    root_of,
    subtrees_of,
    verify_consistency,
    verify_inclusion,
)
from tests.interop.conftest import Judge, record, tree

BOUND = 300
PAIRS = BOUND * (BOUND + 1) // 2
ENTRIES = [b"entry %d" % at for at in range(BOUND + 1)]
HASHES = [leaf_hash(entry) for entry in ENTRIES]
SUBTREES = cache(subtrees_of(HASHES))
ROOTS = [root_of(HASHES[:size]) for size in range(BOUND + 2)]
OTHER = leaf_hash(b"another entry")

REFUSED = {"refused: invalid transparency proof"}
IMPOSSIBLE = {"refused: tlog: invalid inputs in CheckRecord", "refused: tlog: invalid inputs in CheckTree"}


@dataclass(frozen=True)
class Inclusion:
    """One inclusion proof, right or wrong."""

    index: int
    size: int
    proof: tuple[bytes, ...]
    leaf: bytes
    root: bytes

    @property
    def case(self) -> str:
        return record(self.leaf, self.index, self.size, self.proof, self.root)

    @property
    def ours(self) -> bool:
        return verify_inclusion(leaf_hash(self.leaf), self.index, self.size, self.proof, self.root)


@dataclass(frozen=True)
class Consistency:
    """One consistency proof, right or wrong."""

    old: int
    new: int
    proof: tuple[bytes, ...]
    old_root: bytes
    new_root: bytes

    @property
    def case(self) -> str:
        return tree(self.old, self.new, self.old_root, self.new_root, self.proof)

    @property
    def ours(self) -> bool:
        return verify_consistency(self.old, self.new, self.old_root, self.new_root, self.proof)


@pytest.fixture(scope="module")
def inclusions() -> list[Inclusion]:
    """The proof of every entry in every tree of 1 to 300 entries."""
    return [
        Inclusion(index, size, tuple(inclusion_proof(index, size, SUBTREES)), ENTRIES[index], ROOTS[size])
        for size in range(1, BOUND + 1)
        for index in range(size)
    ]


@pytest.fixture(scope="module")
def consistencies() -> list[Consistency]:
    """The proof of every pair of sizes from 1 to 300."""
    return [
        Consistency(old, new, tuple(consistency_proof(old, new, SUBTREES)), ROOTS[old], ROOTS[new])
        for new in range(1, BOUND + 1)
        for old in range(1, new + 1)
    ]


# ── Go ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_inclusion_proof_up_to_300_is_accepted_by_go(judge: Judge, inclusions: list[Inclusion]) -> None:
    told = judge(one.case for one in inclusions)
    assert (len(told), set(told)) == (PAIRS, {"ok"})


def test_every_consistency_proof_up_to_300_is_accepted_by_go(judge: Judge, consistencies: list[Consistency]) -> None:
    told = judge(one.case for one in consistencies)
    assert (len(told), set(told)) == (PAIRS, {"ok"})


def broken_paths(proof: tuple[bytes, ...]) -> Iterator[tuple[bytes, ...]]:
    """The same hashes, but one fewer, one more, two in each other's place, or one changed."""
    yield (*proof, OTHER)
    if proof:
        yield proof[:-1]
        yield proof[1:]
        yield (OTHER, *proof[1:])
    if len(proof) > 1:
        yield (proof[1], proof[0], *proof[2:])


def wrong_inclusions(right: Inclusion) -> Iterator[Inclusion]:
    for proof in broken_paths(right.proof):
        yield replace(right, proof=proof)
    yield replace(right, leaf=ENTRIES[right.index + 1])
    yield replace(right, root=ROOTS[right.size + 1])
    yield replace(right, index=right.index + 1)
    if right.index:
        yield replace(right, index=right.index - 1)
    if (right.size - 1).bit_length() != right.size.bit_length() or right.index == right.size - 1:
        yield replace(right, size=right.size + 1)  # elsewhere the path of a larger tree may go the same way


def test_every_inclusion_proof_that_is_broken_is_refused_by_go_and_by_us(
    judge: Judge, inclusions: list[Inclusion]
) -> None:
    wrong = [broken for right in inclusions for broken in wrong_inclusions(right)]
    assert len(wrong) > 8 * PAIRS
    assert set(judge(one.case for one in wrong)) <= REFUSED | IMPOSSIBLE
    assert not any(one.ours for one in wrong)


def test_every_inclusion_proof_claimed_for_another_size_is_judged_alike_by_go_and_by_us(
    judge: Judge, inclusions: list[Inclusion]
) -> None:
    # The path binds the size only as far as it has another shape there: the signed checkpoint binds the rest.
    moved = [replace(right, size=right.size + by) for right in inclusions for by in (-1, 1, 256)]
    told = [verdict == "ok" for verdict in judge(one.case for one in moved)]
    assert told == [one.ours for one in moved]
    assert 0 < sum(told) < len(told)


def wrong_consistencies(right: Consistency) -> Iterator[Consistency]:
    for proof in broken_paths(right.proof):
        yield replace(right, proof=proof)
    yield replace(right, old_root=OTHER)
    yield replace(right, new_root=ROOTS[right.new + 1])
    if right.old < right.new:
        yield replace(right, old_root=ROOTS[right.old + 1])


def test_every_consistency_proof_that_is_broken_is_refused_by_go_and_by_us(
    judge: Judge, consistencies: list[Consistency]
) -> None:
    wrong = [broken for right in consistencies for broken in wrong_consistencies(right)]
    assert len(wrong) > 7 * PAIRS
    assert set(judge(one.case for one in wrong)) == REFUSED
    assert not any(one.ours for one in wrong)


def test_proof_of_nothing_is_refused_by_go_and_by_us(judge: Judge) -> None:
    nothing = [Inclusion(0, 0, (), b"", ROOTS[0]), Inclusion(1, 1, (), ENTRIES[0], ROOTS[1])]
    assert set(judge(one.case for one in nothing)) == {"refused: tlog: invalid inputs in CheckRecord"}
    assert not any(one.ours for one in nothing)
    shrunk = Consistency(2, 1, (), ROOTS[2], ROOTS[1])
    assert (judge([shrunk.case]), shrunk.ours) == (["refused: tlog: invalid inputs in CheckTree"], False)


# ── pymerkle ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def oracle() -> pymerkle.InmemoryTree:
    """An independent tree over the same entries."""
    grown = pymerkle.InmemoryTree(algorithm="sha256")
    for entry in ENTRIES:
        grown.append_entry(entry)
    return grown


def test_every_inclusion_proof_up_to_300_is_pymerkles_and_is_accepted_by_it(
    oracle: pymerkle.InmemoryTree, inclusions: list[Inclusion]
) -> None:
    for one in inclusions:
        shape = oracle.prove_inclusion(one.index + 1, one.size)
        path = [HASHES[one.index], *one.proof]
        assert shape.path == path
        pymerkle.verify_inclusion(HASHES[one.index], one.root, as_pymerkle(pymerkle.InclusionProof, shape, path))


def test_every_consistency_proof_from_an_odd_size_up_to_300_is_accepted_by_pymerkle(
    oracle: pymerkle.InmemoryTree, consistencies: list[Consistency]
) -> None:
    # From an even size pymerkle also writes down what the old root is made of, which RFC 6962 leaves out.
    odd = [one for one in consistencies if one.old % 2 and one.old < one.new]
    assert len(odd) == 22_500
    for one in odd:
        shape = oracle.prove_consistency(one.old, one.new)
        lowest, second, *rest = one.proof if one.old > 1 else (one.old_root, *one.proof)
        path = [second, lowest, *rest]  # pymerkle writes these two in the other order
        pymerkle.verify_consistency(one.old_root, one.new_root, as_pymerkle(pymerkle.ConsistencyProof, shape, path))


def test_consistency_proof_with_a_wrong_hash_is_refused_by_pymerkle(
    oracle: pymerkle.InmemoryTree, consistencies: list[Consistency]
) -> None:
    for one in consistencies:
        if one.new == 137 and one.old % 2 and 1 < one.old < 137:
            shape = oracle.prove_consistency(one.old, one.new)
            path = [one.proof[1], OTHER, *one.proof[2:]]
            with pytest.raises(pymerkle.InvalidProof):
                pymerkle.verify_consistency(
                    one.old_root, one.new_root, as_pymerkle(pymerkle.ConsistencyProof, shape, path)
                )


def as_pymerkle(kind: Any, shape: Any, path: Sequence[bytes]) -> Any:
    """Our path in the form that pymerkle verifies, with the directions that it knows for this place."""
    form = shape.serialize()
    return kind.deserialize(form | {"path": [node.hex() for node in path]})
