"""What a mirror keeps, and the one promise it makes about it: ``keep`` returns when everything is on the disk.

    origin     one row for each journal: how far it is held, its tree's edge, what was cosigned, whether it is forked
    entry      the exact bytes of each entry, by (origin, index)
    block      the root over each 256 entries, so that the root at any earlier size costs no more than 255 entries
    evidence   both branches of a fork: entries and signed checkpoints that contradict each other

A row of ``origin`` and the entries that it speaks of are written in one transaction. The tables of a witness hold no
entries and no blocks. No row is ever changed except the one of ``origin``; an entry that is there a second time is a
bug, and the primary key refuses it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from controller.certify.leaf import FIRST_PREVIOUS, leaf_hash
from controller.certify.tree import Frontier

BLOCK_HEIGHT = 8
BLOCK_WIDTH = 1 << BLOCK_HEIGHT
"""Entries under one root of the table ``block``."""

EvidenceKind = Literal["entry", "checkpoint"]
ROW = "name, size, previous, nodes, cosigned, ack, announced, latest, claimed, heard_ms, fork"
"""The columns of ``origin`` in which a journal is kept."""

_NODE_BYTES = 32

Side = Literal["held", "other"]
"""Of what is evidence: the branch that is held, or what contradicts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One journal as it is held.

    ``nodes`` are the subtree roots at the right edge of the tree of ``size`` entries, ``previous`` the hash of the last
    one. ``cosigned`` is the size that was last cosigned, with ``ack``, the note that said so. ``announced`` is the
    largest size that the table's key signed, ``latest`` the one it signed last, ``claimed`` the largest that this
    mirror is known to have cosigned, which is more than ``cosigned`` only after its store was restored from a backup.
    ``fork`` says why nothing is applied any more. ``heard_ms`` is wall time.
    """

    origin: str
    size: int = 0
    previous: bytes = FIRST_PREVIOUS
    nodes: tuple[bytes, ...] = ()
    cosigned: int = 0
    ack: str = ""
    announced: int = 0
    latest: int = 0
    claimed: int = 0
    heard_ms: int = 0
    fork: str = ""

    @property
    def frontier(self) -> Frontier:
        """The edge, which may grow by itself."""
        return Frontier(self.size, self.nodes)


def row_of(held: Held) -> tuple[Any, ...]:
    """A journal as a row of ``origin``."""
    edge = b"".join(held.nodes)
    reached = (held.announced, held.latest, held.claimed)
    return (held.origin, held.size, held.previous, edge, held.cosigned, held.ack, *reached, held.heard_ms, held.fork)


def held_of(row: Sequence[Any]) -> Held:
    """The journal of a row of ``origin``."""
    name, size, previous, edge, cosigned, ack, announced, latest, claimed, heard_ms, fork = row
    return Held(
        origin=name,
        size=size,
        previous=bytes(previous),
        nodes=tuple(bytes(edge[at : at + _NODE_BYTES]) for at in range(0, len(edge), _NODE_BYTES)),
        cosigned=cosigned,
        ack=ack,
        announced=announced,
        latest=latest,
        claimed=claimed,
        heard_ms=heard_ms,
        fork=fork,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One piece of a fork: an entry with its index, or a signed checkpoint with its size, in ``at``."""

    origin: str
    kind: EvidenceKind
    side: Side
    at: int
    content: bytes
    heard_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What one transaction changes of one journal: its row, and what is added, the entries from ``first`` on."""

    held: Held
    first: int = 0
    leaves: Sequence[bytes] = ()
    blocks: Sequence[tuple[int, bytes]] = ()
    evidence: Sequence[Evidence] = field(default=())


class Store(Protocol):
    """Where a mirror keeps what it holds. All methods raise MirrorFault (E-MIRROR-STORE)."""

    def held(self) -> list[Held]:
        """Every journal."""
        ...

    def keep(self, changes: Sequence[Kept]) -> None:
        """One transaction for all ``changes``; it is on the disk when this returns. After a failure, end."""
        ...

    def leaves(self, origin: str, start: int, stop: int) -> list[bytes]:
        """The entries start to stop - 1, as far as they are held."""
        ...

    def blocks(self, origin: str, count: int) -> list[bytes]:
        """The roots of the first ``count`` blocks."""
        ...

    def evidence(self, origin: str) -> list[Evidence]:
        """What was kept of a fork, in order of index or size."""
        ...

    def close(self) -> None:
        """Let the store go."""
        ...


def stored_root(store: Store, origin: str, size: int) -> bytes:
    """The root over the first ``size`` entries, all of which are held."""
    frontier = Frontier()
    for root in store.blocks(origin, size >> BLOCK_HEIGHT):
        frontier.append(root, BLOCK_HEIGHT)
    for leaf in store.leaves(origin, frontier.size, size):
        frontier.append(leaf_hash(leaf))
    return frontier.root()
