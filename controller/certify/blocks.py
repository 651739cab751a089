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
from controller.certify.leaf import FIRST_PREVIOUS, LEAF_BOUND, LEAF_PATTERN, leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.policy import Policy
from controller.certify.rotation import ROTATED_END, certified_statement
from controller.certify.shapes import Shapes
from controller.certify.storage import connect_reader, faults_of
from controller.certify.tiles import HASH_BYTES, TILE_WIDTH
from controller.certify.tree import Frontier, root_of
from controller.certify.trust import check_cosignatures, open_checkpoint
from controller.certify.volumes import Chain

_SHAPES = Shapes()
"""What this process has learned of the form of data; it makes nothing but time differ."""

Proof = Callable[[Sequence[bytes]], bool]
"""Whether these leaf hashes of a block lead to a root that is vouched for."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A checkpoint inside a block: the full tiles before the block, and the subtrees of its entries before the cut.

    ``checkpoint`` is None while no key is known that signed ``note``: the entries may yet name one (see ``rotation``).
    ``cosigners`` are the policy's names of the witnesses that cosigned it.
    """

    size: int
    note: str
    checkpoint: Checkpoint | None
    cosigners: frozenset[str]
    tiles: int
    nodes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Examined:
    """A run of full tiles found in order: the root of each, the checkpoints that end in them, and the statements about
    changes of the key that its entries certify.
    """

    roots: list[bytes]
    cuts: list[Cut]
    statements: list[str]


def _altered(index: int, detail: str) -> JournalFault:
    return JournalFault("E-JOURNAL-ALTERED", f"entry {index} was altered: {detail}", index)


@dataclass(frozen=True, slots=True)
class Judges:
    """By which keys entries and checkpoints are judged: those of the log, and the policy's witnesses."""

    keys: LogKeys
    policy: Policy

    def __reduce__(self) -> tuple[Callable[[str, str], "Judges"], tuple[str, str]]:
        """As text on the way to another process, because the keys of OpenSSL cannot travel."""
        return _judges, (self.keys.text, self.policy.text)


def _judges(keys: str, policy: str) -> Judges:
    return Judges(LogKeys.parse(keys), Policy.parse(policy))


def examine_tiles(path: Path, judges: Judges, start: int, stop: int, notes: Sequence[tuple[int, str]]) -> Examined:
    """Verify the full tiles ``start`` to ``stop - 1`` of level 0 and all that is below them.

    ``notes`` are the checkpoints (size, note with its cosignatures) that end in these tiles. Raises JournalFault.
    """
    examined = Examined([], [], [])
    with faults_of(path), closing(connect_reader(path)) as connection, Chain(path, connection) as chain:
        previous = leaf_hash(chain.entries(start * TILE_WIDTH - 1, start * TILE_WIDTH)[0]) if start else b""
        for n in range(start, stop):
            first = n * TILE_WIDTH
            leaves = chain.entries(first, first + TILE_WIDTH)
            hashes = [sha256(b"\0" + leaf).digest() for leaf in leaves]
            row = chain.tile(0, n)
            if row is None:
                raise JournalFault("E-JOURNAL-INCOMPLETE", f"the tile of entries {first} to {first + 255} is missing")
            root = _check_tile(n, row[0], row[1], hashes)
            check_entries(judges.keys.origin, first, leaves, hashes, previous, lambda _: False)
            previous = hashes[-1]
            examined.roots.append(root)
            here = [(size, note) for size, note in notes if first < size <= first + TILE_WIDTH]
            examined.cuts.extend(cut(judges, first, hashes, here))
            examined.statements.extend(statements_in(leaves))
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
    data: list[tuple[bytes, bytes]] = []
    for at, leaf in enumerate(leaves):
        match = matched(leaf)
        if match is None or len(leaf) > LEAF_BOUND:
            raise _altered(first + at, "it does not have the form of an entry")
        content, number, claim, claimed_source, kind = match.group(2, 3, 5, 7, 10)
        if number != b"%d" % (first + at):
            raise _altered(first + at, f"it says that it is entry {number.decode()}")
        if claimed_source != source:
            raise _altered(first + at, f"it says that it comes from {claimed_source.decode()}")
        if claim != expected:
            culprit = first + _culprit(at, claim, leaves, hashes, proof)
            raise _altered(culprit, f"the chain is broken between entries {first + at - 1} and {first + at}")
        expected = b2a_base64(hashes[at], newline=False)
        data.append((kind, content))
    for index, (kind, content) in enumerate(data, first):
        try:
            _SHAPES.check(kind, content)
        except (LeafFault, UnicodeDecodeError) as fault:
            raise _altered(index, f"its data is not in canonical form: {fault}") from fault


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


def statements_in(leaves: Sequence[bytes]) -> list[str]:
    """The statements about changes of the key that these entries, whose form was checked, certify."""
    return [certified_statement(leaf) for leaf in leaves if leaf.endswith(ROTATED_END)]


def cut(judges: Judges, first: int, hashes: Sequence[bytes], notes: Sequence[tuple[int, str]]) -> list[Cut]:
    """Open the checkpoints (in order of size) that end in the block that begins at ``first``. Raises JournalFault."""
    cuts = []
    frontier = Frontier()
    for size, note in notes:
        for leaf in hashes[frontier.size : size - first]:
            frontier.append(leaf)
        cosigners = check_cosignatures(size, note, judges.policy)
        opened = _opened(size, note, judges.keys)
        cuts.append(Cut(size, note, opened, cosigners, first // TILE_WIDTH, tuple(frontier.nodes)))
    return cuts


def _opened(size: int, note: str, keys: LogKeys) -> Checkpoint | None:
    try:
        return open_checkpoint(size, note, keys)
    except JournalFault as fault:
        if fault.code != "E-JOURNAL-KEY":
            raise
        return None
