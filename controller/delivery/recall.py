"""Entries that come back from the mirror, in any order, twice, among rubbish: which of them are ours?

    our last entry ◄── prev ── start ◄── prev ── start + 1 ◄── … ◄── stop - 1          root = the one that we signed
                                            ╲ another entry of the same number: nothing leads back to it

An entry names the hash of the one before it, so whatever has the right end has the right middle: a chain is followed
from its end back to our own last entry. Which end is right, and that nothing else is, only the root says that our key
signed; that is for the journal to check when it takes them.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from controller.certify.faults import LeafFault
from controller.certify.leaf import LEAF_BOUND, leaf_hash, parse_leaf
from controller.delivery.bus import Bus, Message
from controller.delivery.topics import Topics

RECALL_BOUND = 1_000
"""Entries asked for at a time; a mirror gives no more."""

HEALED_BOUND = 100_000
"""Entries that a start takes back, at the most: five busy days. Beyond, the disk is not one to go on with."""

HELD_BOUND_BYTES = 96 << 20
"""And so many bytes, with whatever rubbish came between them."""

VARIANTS_BOUND = 4
"""Entries of one number that are kept: one is right, the others are somebody's rubbish."""


def page_of(wanted: range) -> range:
    """The first entries of those wanted, as many as may be asked for at a time."""
    return wanted[:RECALL_BOUND]


def ask(bus: Bus, topics: Topics, page: range) -> None:
    """Ask the mirror for a page of entries. Whether it heard shows by what comes back."""
    request = {"from": page.start, "to": page.stop}
    bus.publish(Message(topics.recall, json.dumps(request).encode(), content_type="application/json"))


@dataclass(slots=True)
class Recalled:
    """What came back of the entries ``wanted`` of the journal ``origin``."""

    origin: str
    wanted: range
    _came: dict[int, dict[bytes, tuple[bytes, bytes]]] = field(default_factory=dict)
    """By number, then by hash: the entry, and the hash that it names."""
    _held_bytes: int = 0
    _first: int = 0

    def take(self, payload: bytes) -> bool:
        """Keep an entry if it can be one of those wanted; whether it was kept."""
        if len(payload) > LEAF_BOUND:
            return False
        try:
            leaf = parse_leaf(payload)
        except LeafFault:
            return False
        if leaf.source != self.origin or leaf.index not in self.wanted:
            return False
        variants = self._came.setdefault(leaf.index, {})
        own = leaf_hash(payload)
        if own in variants or len(variants) >= VARIANTS_BOUND or self.full:
            return False
        variants[own] = (payload, leaf.previous)
        self._held_bytes += len(payload)
        return True

    @property
    def full(self) -> bool:
        """Whether no more can be kept."""
        return self._held_bytes >= HELD_BOUND_BYTES

    @property
    def missing(self) -> range:
        """From the first entry of which nothing came to the end of those wanted; empty when something came of each."""
        self._first = max(self._first, self.wanted.start)
        while self._first in self._came:
            self._first += 1
        return range(self._first, self.wanted.stop)

    def chains(self, last: bytes) -> Iterator[Sequence[bytes]]:
        """Each unbroken chain of all that is wanted that follows the entry with the hash ``last``."""
        for end in self._came.get(self.wanted.stop - 1, {}):
            chain = self._back_from(end, last)
            if chain is not None:
                yield chain

    def _back_from(self, end: bytes, last: bytes) -> Sequence[bytes] | None:
        leaves, link = [], end
        for index in reversed(self.wanted):
            found = self._came.get(index, {}).get(link)
            if found is None:
                return None
            leaf, link = found
            leaves.append(leaf)
        return leaves[::-1] if link == last else None
