"""The Merkle tree of RFC 6962, section 2.1 (RFC 9162 keeps it): one root that stands for every entry and their order.

            root of 7                 node = SHA-256(0x01 ‖ left ‖ right)
           ╱         ╲                leaf = SHA-256(0x00 ‖ entry), see ``leaf.leaf_hash``
        ╱  ╲         ╱ ╲              a tree of n entries splits at the largest power of two below n
      ╱╲    ╱╲     ╱╲   6
     0  1  2  3   4  5

Appending never changes a full subtree, so the right edge alone (``Frontier``: at most one subtree per bit of the size)
is enough to go on. An inclusion proof shows an entry to be in a tree, a consistency proof shows a tree to be the
beginning of a longer one; both take about log2(n) hashes.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

EMPTY_ROOT = sha256(b"").digest()
"""The root of a tree without entries."""

Subtree = Callable[[int, int], bytes]
"""``subtree(start, stop)`` is the root over the entries start to stop - 1, for any range that RFC 6962 splits off."""


def node_hash(left: bytes, right: bytes) -> bytes:
    """RFC 6962 section 2.1: SHA-256 of a one byte and both children."""
    return sha256(b"\1" + left + right).digest()


def fold(nodes: Sequence[bytes]) -> bytes:
    """The root over full subtrees that stand side by side, largest first."""
    if not nodes:
        return EMPTY_ROOT
    root = nodes[-1]
    for node in reversed(nodes[:-1]):
        root = node_hash(node, root)
    return root


class Frontier:
    """The right edge of a growing tree: the roots of its full subtrees, largest first, one for each bit of ``size``."""

    __slots__ = ("nodes", "size")

    def __init__(self, size: int = 0, nodes: Iterable[bytes] = ()) -> None:
        self.size = size
        self.nodes = list(nodes)

    def append(self, node: bytes, height: int = 0) -> None:
        """Add the root of a full subtree of 2^height entries. ``size`` must be a multiple of 2^height."""
        assert self.size % (1 << height) == 0
        trailing = self.size >> height
        while trailing & 1:
            node = sha256(b"\1" + self.nodes.pop() + node).digest()
            trailing >>= 1
        self.nodes.append(node)
        self.size += 1 << height

    def root(self) -> bytes:
        """The root over all entries so far."""
        return fold(self.nodes)

    def copy(self) -> "Frontier":
        """One that may grow by itself."""
        return Frontier(self.size, self.nodes)


def root_of(hashes: Sequence[bytes]) -> bytes:
    """The root over leaf hashes: pairs level by level, where the last one without a neighbour moves up as it is."""
    if not hashes:
        return EMPTY_ROOT
    level = list(hashes)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        odd = level[-1:] if len(level) & 1 else []
        level = [sha256(b"\1" + left + right).digest() for left, right in pairs] + odd
    return level[0]


def frontier_of(hashes: Sequence[bytes]) -> Frontier:
    """The frontier after these leaf hashes."""
    size, nodes, start = len(hashes), [], 0
    for height in range(size.bit_length() - 1, -1, -1):
        if size >> height & 1:
            nodes.append(root_of(hashes[start : start + (1 << height)]))
            start += 1 << height
    return Frontier(size, nodes)


def subtrees_of(hashes: Sequence[bytes]) -> Subtree:
    """Subtree roots computed from all leaf hashes at hand."""
    return lambda start, stop: root_of(hashes[start:stop])


def _split(size: int) -> int:
    """The largest power of two that is smaller than ``size`` (at least 2)."""
    return 1 << (size - 1).bit_length() - 1


def inclusion_proof(index: int, size: int, subtree: Subtree) -> list[bytes]:
    """RFC 6962 section 2.1.1: the path from entry ``index`` to the root of ``size`` entries, lowest sibling first.

    Raises ValueError when the tree has no such entry.
    """
    if not 0 <= index < size:
        raise ValueError(f"a tree of {size} entries has no entry {index}")
    path: list[bytes] = []
    start, stop = 0, size
    while stop - start > 1:
        middle = start + _split(stop - start)
        if index < middle:
            path.append(subtree(middle, stop))
            stop = middle
        else:
            path.append(subtree(start, middle))
            start = middle
    return path[::-1]


def consistency_proof(old: int, new: int, subtree: Subtree) -> list[bytes]:
    """RFC 6962 section 2.1.2: what links the root of ``old`` entries to that of ``new``. Raises ValueError for no link.

    A tree without entries is the beginning of any other: there is nothing to prove, and no proof.
    """
    if not 0 < old <= new:
        raise ValueError(f"there is no consistency proof from {old} to {new} entries")
    path: list[bytes] = []
    start, stop = 0, new
    while stop != old:
        middle = start + _split(stop - start)
        if old <= middle:
            path.append(subtree(middle, stop))
            stop = middle
        else:
            path.append(subtree(start, middle))
            start = middle
    if start:
        path.append(subtree(start, stop))
    return path[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether the entry with leaf hash ``leaf`` is number ``index`` of the ``size`` entries under ``root``.

    RFC 9162 section 2.1.3.2.
    """
    if not 0 <= index < size:
        return False
    at, last, node = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if at & 1 or at == last:
            node = node_hash(sibling, node)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and node == root


def verify_consistency(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether the ``old`` entries under ``old_root`` are the first of the ``new`` ones under ``new_root``.

    RFC 9162 section 2.1.4.2. Without old entries nothing is shown, and nothing is accepted but an empty proof.
    """
    if not 0 <= old <= new:
        return False
    if old in {0, new}:
        return not proof and old_root == (new_root if old else EMPTY_ROOT)
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if not path:
        return False
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    old_node = new_node = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            old_node, new_node = node_hash(sibling, old_node), node_hash(sibling, new_node)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            new_node = node_hash(new_node, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and old_node == old_root and new_node == new_root
