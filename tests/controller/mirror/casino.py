"""Tables that certify, seen from the centre: their keys, their entries, and what they publish."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Protocol

from controller.certify.checkpoint import Checkpoint
from controller.certify.leaf import FIRST_PREVIOUS, Record, Stamp, build_leaves, canonical
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, sign_note
from controller.certify.tree import EMPTY_ROOT, root_of
from controller.delivery.bus import Message
from controller.delivery.centre import Acknowledgement, open_acknowledgement
from controller.delivery.topics import Topics
from controller.mirror.faults import Alarm
from controller.mirror.mirror import Mirror
from controller.mirror.store import Evidence, Held, Kept, Store
from drivers.clock import ManualClock

TOPICS = Topics("casino.example", "t07")
ORIGIN = "casino.example/table/t07/1"


def seeded(name: str, kind: KeyType = KeyType.ED25519) -> Signer:
    """The same key for the same name."""
    return Signer(name, sha256(name.encode()).digest(), kind)


CENTRE = seeded("centre.example/mirror", KeyType.COSIGNATURE)
WITNESS = seeded("caisse.example/witness", KeyType.COSIGNATURE)


class Opener(Protocol):
    """See ``conftest.Opening``."""

    kind: str
    url: str

    def __call__(self) -> Store: ...
    def read(self) -> Store: ...
    def backup(self) -> None: ...
    def restore(self) -> None: ...
    def close(self) -> None: ...


class Table:
    """A journal in memory, built by the product's own leaves, with roots by the plain definition of the tree."""

    def __init__(
        self, origin: str = ORIGIN, entries: int = 0, flavour: str = "", signers: Sequence[Signer] = ()
    ) -> None:
        site, _, name, _ = origin.split("/")
        self.origin = origin
        self.topics = Topics(site, name)
        self.signers = list(signers) or [seeded(origin)]
        self.all: list[bytes] = []
        self.hashes: list[bytes] = []
        self.flavour = flavour
        self.grow(entries)

    @property
    def keys(self) -> LogKeys:
        return LogKeys.of(*(signer.verifier for signer in self.signers))

    def grow(self, count: int) -> "Table":
        """Certify ``count`` entries more."""
        first = len(self.all)
        records = [
            Record("fr.roulette.stake.placed.v1", canonical({"at": first + at, "flavour": self.flavour}), "s-1")
            for at in range(count)
        ]
        stamp = Stamp(source=self.origin, boot="0" * 16, mono_ms=first, wall_ms=1_796_000_000_000, quality="ntp")
        leaves, hashes = build_leaves(first, self.hashes[-1] if self.hashes else FIRST_PREVIOUS, records, stamp)
        self.all += leaves
        self.hashes += hashes
        return self

    def branch(self, at: int, count: int, flavour: str = "other") -> "Table":
        """Another journal with the same first ``at`` entries and ``count`` others, by the same keys: a cloned card."""
        other = Table(self.origin, flavour=flavour, signers=self.signers)
        other.all, other.hashes = self.all[:at], self.hashes[:at]
        return other.grow(count)

    def root(self, size: int) -> bytes:
        return root_of(self.hashes[:size]) if size else EMPTY_ROOT

    def note(self, size: int | None = None) -> str:
        """The signed checkpoint of ``size`` entries."""
        reached = len(self.all) if size is None else size
        return sign_note(Checkpoint(self.origin, reached, self.root(reached)).text, *self.signers)

    def events(self, start: int = 0, stop: int | None = None) -> list[Message]:
        """The entries start to stop - 1, as they are published."""
        return [Message(self.topics.event, leaf) for leaf in self.all[start:stop]]

    def checkpoint(self, size: int | None = None) -> Message:
        return Message(self.topics.checkpoint, self.note(size).encode(), retain=True)


class MemoryStore:
    """The promise of a store, in the fewest words. ``fails`` ends the process before, or after, a commit."""

    def __init__(self) -> None:
        self.rows: dict[str, Held] = {}
        self.entries: dict[tuple[str, int], bytes] = {}
        self.roots: dict[tuple[str, int], bytes] = {}
        self.pieces: dict[str, list[Evidence]] = {}

    def held(self) -> list[Held]:
        return sorted(self.rows.values(), key=lambda held: held.origin)

    def keep(self, changes: Sequence[Kept]) -> None:
        for one in changes:
            origin = one.held.origin
            self.rows[origin] = one.held
            for index, leaf in enumerate(one.leaves, one.first):
                assert (origin, index) not in self.entries
                self.entries[origin, index] = leaf
            for n, root in one.blocks:
                assert (origin, n) not in self.roots
                self.roots[origin, n] = root
            self.pieces.setdefault(origin, []).extend(one.evidence)

    def leaves(self, origin: str, start: int, stop: int) -> list[bytes]:
        return [self.entries[origin, at] for at in range(start, stop) if (origin, at) in self.entries]

    def blocks(self, origin: str, count: int) -> list[bytes]:
        return [self.roots[origin, n] for n in range(count)]

    def evidence(self, origin: str) -> list[Evidence]:
        return self.pieces.get(origin, [])

    def close(self) -> None:
        pass


class Centre:
    """A mirror, or a witness, that can be started again from its store, and what it has said."""

    def __init__(self, store: Store, *tables: Table, witness: str | None = None) -> None:
        self.store = store
        self.clock = ManualClock()
        self.signer = WITNESS if witness else CENTRE
        self.tables = tables
        self.witness = witness
        self.said: list[Message] = []
        self.alarms: list[Alarm] = []
        self.start()

    def start(self) -> None:
        """Begin from the store, as after a kill."""
        logs = [table.keys for table in self.tables]
        self.mirror = Mirror(logs, self.store, self.signer, self.clock, witness=self.witness)

    def hear(self, *messages: Message) -> list[Message]:
        """One turn; what it answers."""
        said = self.mirror.work(messages)
        self.said += said
        self.alarms += self.mirror.alarms()
        return said

    def wait(self, ms: int) -> list[Message]:
        """Let time pass, and take a turn without messages."""
        self.clock.advance_us(1_000 * ms)
        return self.hear()

    def held(self, table: Table) -> Held:
        return {one.origin: one for one in self.store.held()}[table.origin]

    def size(self, table: Table) -> int:
        return {one.origin: one.size for one in self.store.held()}.get(table.origin, 0)

    @property
    def codes(self) -> list[str]:
        return [alarm.code for alarm in self.alarms]

    def acks(self, table: Table) -> list[Acknowledgement]:
        """What was said to a table, opened as the table opens it."""
        own = table.topics.witness(self.witness) if self.witness else table.topics.ack
        payloads = [message.payload for message in self.said if message.topic == own]
        return [
            open_acknowledgement(payload, LogKeys.of(table.signers[0].verifier), self.signer.verifier)
            for payload in payloads
        ]
