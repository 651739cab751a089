"""The full verification of entries, tile by tile: the hot loop, and how the altered one is named.

An entry is held in place from three sides: its own hash in a tile, the ``prev`` of the entry after it, and the root of
a signed checkpoint. Where these disagree, the one that stands alone is the altered one.
"""

from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from controller.certify.checkpoint import Checkpoint
from controller.certify.faults import JournalFault, LeafFault
from controller.certify.leaf import FIRST_PREVIOUS, LEAF_BOUND, LEAF_PATTERN, check_data, leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.storage import connect_reader, faults_of
from controller.certify.tiles import HASH_BYTES, TILE_WIDTH, entries
from controller.certify.tree import Frontier, root_of
from controller.certify.trust import open_checkpoint

Proof = Callable[[Sequence[bytes]], bool]
"""Whether these leaf hashes of a block lead to a root that is vouched for."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A checkpoint inside a block: the full tiles before the block, and the subtrees of its entries before the cut."""

    checkpoint: Checkpoint
    tiles: int
    nodes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Examined:
    """A run of full tiles found in order: the root of each, and the checkpoints that end in them."""

    roots: list[bytes]
    cuts: list[Cut]


def _altered(index: int, detail: str) -> JournalFault:
    return JournalFault("E-JOURNAL-ALTERED", f"entry {index} was altered: {detail}", index)


def examine_tiles(path: Path, keys_text: str, start: int, stop: int, notes: Sequence[tuple[int, str]]) -> Examined:
    """Verify the full tiles ``start`` to ``stop - 1`` of level 0 and all that is below them.

    ``notes`` are the checkpoints (size, note) that end in these tiles. Raises JournalFault.
    """
    keys = LogKeys.parse(keys_text)
    examined = Examined([], [])
    with faults_of(path), closing(connect_reader(path)) as connection:
        previous = leaf_hash(entries(connection, start * TILE_WIDTH - 1, start * TILE_WIDTH)[0]) if start else b""
        for n in range(start, stop):
            first = n * TILE_WIDTH
            leaves = entries(connection, first, first + TILE_WIDTH)
            hashes = [sha256(b"\0" + leaf).digest() for leaf in leaves]
            row = connection.execute("SELECT root, hashes FROM tile WHERE level = 0 AND n = ?", (n,)).fetchone()
            if row is None:
                raise JournalFault("E-JOURNAL-INCOMPLETE", f"the tile of entries {first} to {first + 255} is missing")
            root = _check_tile(n, row[0], row[1], hashes)
            check_entries(keys.origin, first, leaves, hashes, previous, lambda _: False)
            previous = hashes[-1]
            examined.roots.append(root)
            here = [(size, note) for size, note in notes if first < size <= first + TILE_WIDTH]
            examined.cuts.extend(cut(keys, first, hashes, here))
    return examined


def _check_tile(n: int, root: bytes, stored: bytes, hashes: list[bytes]) -> bytes:
    """Compare the hashes of 256 entries with the tile that was stored for them; the root over them."""
    computed = root_of(hashes)
    if b"".join(hashes) == stored and computed == root:
        return computed
    if computed == root or b"".join(hashes) == stored:
        raise JournalFault("E-JOURNAL-ALTERED", f"tile {n} of level 0 was altered; the entries under it were not")
    differs = (at for at in range(TILE_WIDTH) if stored[at * HASH_BYTES : (at + 1) * HASH_BYTES] != hashes[at])
    raise _altered(n * TILE_WIDTH + next(differs, 0), "its hash is not the one in its tile")


def check_entries(
    origin: str, first: int, leaves: Sequence[bytes], hashes: Sequence[bytes], previous: bytes, proof: Proof
) -> None:
    """Check form, number, origin and chain of consecutive entries. ``previous`` is the hash of the one before, if any.

    Raises JournalFault (E-JOURNAL-ALTERED) that names the entry.
    """
    source = origin.encode()
    expected = b2a_base64(previous or FIRST_PREVIOUS, newline=False)
    matched = LEAF_PATTERN.fullmatch
    data: list[bytes] = []
    for at, leaf in enumerate(leaves):
        match = matched(leaf)
        if match is None or len(leaf) > LEAF_BOUND:
            raise _altered(first + at, "it does not have the form of an entry")
        content, index, claim, claimed_source = match.group(2, 3, 5, 7)
        if index != b"%d" % (first + at):
            raise _altered(first + at, f"it says that it is entry {index.decode()}")
        if claimed_source != source:
            raise _altered(first + at, f"it says that it comes from {claimed_source.decode()}")
        if claim != expected:
            culprit = first + _culprit(at, claim, leaves, hashes, proof)
            raise _altered(culprit, f"the chain is broken between entries {first + at - 1} and {first + at}")
        expected = b2a_base64(hashes[at], newline=False)
        data.append(content)
    _check_all_data(first, data)


def _culprit(at: int, claim: bytes, leaves: Sequence[bytes], hashes: Sequence[bytes], proof: Proof) -> int:
    """Which of two neighbours was altered, when entry ``at`` claims another hash for the entry before it."""
    if at == 0:
        return 0
    if at + 1 < len(leaves):
        after = LEAF_PATTERN.fullmatch(leaves[at + 1])
        holds = after is not None and after[5] == b2a_base64(hashes[at], newline=False)
        return at - 1 if holds else at
    repaired = [*hashes[: at - 1], b64decode(claim), *hashes[at:]]
    return at - 1 if proof(repaired) else at


def _check_all_data(first: int, data: Sequence[bytes]) -> None:
    try:
        check_data([content.decode() for content in data])
    except (LeafFault, UnicodeDecodeError):
        for at, content in enumerate(data):
            try:
                check_data([content.decode()])
            except (LeafFault, UnicodeDecodeError) as fault:
                raise _altered(first + at, f"its data is not in canonical form: {fault}") from fault
        raise


def cut(keys: LogKeys, first: int, hashes: Sequence[bytes], notes: Sequence[tuple[int, str]]) -> list[Cut]:
    """Open the checkpoints (in order of size) that end in the block that begins at ``first``. Raises JournalFault."""
    cuts = []
    frontier = Frontier()
    for size, note in notes:
        for leaf in hashes[frontier.size : size - first]:
            frontier.append(leaf)
        cuts.append(Cut(open_checkpoint(size, note, keys), first // TILE_WIDTH, tuple(frontier.nodes)))
    return cuts
