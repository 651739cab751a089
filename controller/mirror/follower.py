"""Follows one journal: takes what its table publishes, in any order, and knows what may be cosigned. Touches nothing.

      0 ──────────── cosigned ──────────── size ─────────── next ───────────── announced
      │ held, and said so  │ held, not yet signed for │ missing │ ahead: waits │ signed, not yet here

Entries become part of the tree one after the other, each after its form, number, origin and chain were checked. A
signed checkpoint is compared with the tree when the tree has its size: then it may be cosigned, and never before.

Whatever is already held and comes again is compared and forgotten. What contradicts it (the same index with other
bytes, an entry that follows another one, a signed checkpoint with another root) is a fork: somebody has the table's key
or its place. Nothing more is applied, nothing more is cosigned, and both branches are kept as evidence. No rule could
say which of them is right; persons must.

There are three moments: ``take_checkpoint`` and ``take_entries`` draft, ``drafted`` gives what must be on the disk, and
only after that ``cosignable`` says what may be signed.
"""

from binascii import b2a_base64
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from controller.certify.blocks import check_entries
from controller.certify.faults import JournalFault, NoteFault
from controller.certify.leaf import LEAF_PATTERN, leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.tree import root_of
from controller.mirror.dossier import Dossier
from controller.mirror.faults import Alarm
from controller.mirror.gap import Gap
from controller.mirror.signed import Past, Signed, open_signed, size_of
from controller.mirror.store import BLOCK_HEIGHT, BLOCK_WIDTH, EvidenceKind, Held, Kept, Side

AHEAD_BOUND_BYTES = 1 << 20
"""Entries of one journal that wait for earlier ones. What does not fit is asked for again when its turn comes."""

PENDING_BOUND = 8
"""Checkpoints of one journal that wait for their entries: the earliest, and the newest."""

RECENT_BOUND = 1_024
"""Hashes of the last entries, by which a repeat is known without looking into the store."""

HEARD_EVERY_MS = 10_000
"""How often it is stored that a table was heard, when there is nothing else to store of it."""

_CLAIMED_PREVIOUS = 5
"""In ``LEAF_PATTERN``: what an entry claims to be the hash of the one before."""

Piece = tuple[EvidenceKind, Side, int, bytes]


class Follower:
    """One journal. ``held`` is what the store has of it, ``past`` reads the store, None for a witness."""

    def __init__(self, keys: LogKeys, held: Held, past: Past | None, evidence: int = 0) -> None:
        self.keys = keys
        self.held = held
        self.alarms: list[Alarm] = []
        self.repeats = 0
        self.refused = 0
        self.restate = False
        self._past = past
        self._frontier = held.frontier
        self._tail: list[bytes] = []
        if past is not None:
            start = held.size & -BLOCK_WIDTH
            self._tail = [leaf_hash(leaf) for leaf in past.leaves(start, held.size)]
        self._recent: deque[bytes] = deque(self._tail, maxlen=RECENT_BOUND)
        self._ahead: dict[int, bytes] = {}
        self._ahead_bytes = 0
        self._pending: dict[int, Signed] = {}
        self._due: Signed | None = None
        self._last_note = ""
        self._gap = Gap()
        self._first = held.size
        self._leaves: list[bytes] = []
        self._blocks: list[tuple[int, bytes]] = []
        self._dossier = Dossier(keys.origin, evidence)
        self._changed = False
        self._heard_stored_ms = held.heard_ms

    # ── What is heard ─────────────────────────────────────────────────────────────────────────────────────────────────

    def take_entries(self, entries: Sequence[tuple[int, bytes]], now_ms: int) -> None:
        """The entries of one draft, in the order in which they came, each with the index that it claims.

        ``now_ms`` is monotonic.
        """
        if not self.held.fork:
            self._sort(entries, now_ms)
        if self.held.fork:
            self._keep_other_entries(entries)

    def _sort(self, entries: Sequence[tuple[int, bytes]], now_ms: int) -> None:
        """Those whose turn it is become part of the tree, even beside what contradicts them: they came first."""
        run: list[bytes] = []
        repeats: list[tuple[int, bytes]] = []
        size = self.size
        for index, leaf in entries:
            at = index - size
            if at < 0:
                repeats.append((index, leaf))
            elif at < len(run):
                self._compare_entry(index, run[at], leaf)
            elif at == len(run):
                run.append(leaf)
                if self._ahead:
                    self._draw_ahead(run)
            else:
                self._wait(index, leaf)
        self._compare_repeats(repeats)
        if run:
            self._apply(run, now_ms)

    def take_checkpoint(self, text: str) -> None:
        """A checkpoint as it came: signed, or refused. Those of one draft come before its entries."""
        assert not self._leaves, "the entries of this draft are not in the store"
        if text == self._last_note:
            self.repeats += 1
            return
        signed = self._opened(text)
        if signed is None:
            return
        self._last_note = text
        size = signed.checkpoint.size
        if self.held.fork:
            self._add_evidence("checkpoint", "other", size, signed.text.encode())
            return
        if size < self.held.announced <= self.held.latest:
            detail = f"it signed {size} entries now, and {self.held.announced} earlier"
            self._alarm("E-MIRROR-ROLLED-BACK", detail)
        self._update(latest=size, announced=max(size, self.held.announced))
        self._weigh(signed)

    def take_claim(self, text: str) -> None:
        """An acknowledgement that this mirror signed, as the broker retained it: what was said then still binds."""
        stated = size_of(text)
        if self.held.fork or stated <= self.held.cosigned or stated < self.held.claimed:
            return
        signed = self._opened(text)
        if signed is None:
            return
        size = signed.checkpoint.size
        if size > self.held.claimed:
            detail = f"{size} entries were cosigned here, and the store knows of {self.held.cosigned}"
            self._alarm("E-MIRROR-RESTORED", detail)
        self._update(claimed=size, announced=max(size, self.held.announced))
        self._weigh(signed)

    def heard(self, wall_ms: int) -> None:
        """Something of this journal came at ``wall_ms``."""
        if abs(wall_ms - self._heard_stored_ms) >= HEARD_EVERY_MS:
            self._heard_stored_ms = wall_ms
            self._changed = True
        self.held = replace(self.held, heard_ms=wall_ms)

    def refuse(self, detail: str) -> None:
        """Something came for this journal that is neither an entry nor a note."""
        self.refused += 1
        self._alarm("E-MIRROR-REFUSED", detail)

    # ── What follows from it ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def size(self) -> int:
        """The entries that the tree has, those of the draft included."""
        return self._frontier.size

    def drafted(self) -> Kept | None:
        """What must be stored now, if anything changed. It must be on the disk before ``cosignable`` is asked."""
        if not self._changed:
            return None
        self.held = replace(self.held, size=self.size, previous=self._previous(), nodes=tuple(self._frontier.nodes))
        kept = Kept(
            held=self.held, first=self._first, leaves=self._leaves, blocks=self._blocks, evidence=self._dossier.take()
        )
        self._first, self._leaves, self._blocks = self.size, [], []
        self._changed = False
        return kept

    def cosignable(self) -> Signed | None:
        """The newest checkpoint all of whose entries are stored under its root, if there is more to say than before."""
        due, self._due = self._due, None
        if due is None:
            return None
        # What was said before a backup was restored is not taken back by a smaller word.
        return due if due.checkpoint.size >= self.held.claimed else None

    def cosigned(self, signed: Signed, ack: str) -> Kept:
        """``signed`` was cosigned as ``ack``: what must be stored before anybody is told."""
        self.held = replace(self.held, cosigned=signed.checkpoint.size, ack=ack)
        return Kept(held=self.held)

    def wanted(self, now_ms: int) -> range | None:
        """The entries to ask for now: the first gap, when nothing came for a while. ``now_ms`` is monotonic."""
        if self.held.fork:
            return None
        stop = min(self._ahead) if self._ahead else max(self._pending, default=0)
        return self._gap.ask(self.size, stop, now_ms)

    @property
    def missing(self) -> int:
        """Entries that the table signed and that are not here."""
        return max(0, self.held.announced - self.size)

    # ── Entries ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _draw_ahead(self, run: list[bytes]) -> None:
        while (leaf := self._ahead.pop(self.size + len(run), None)) is not None:
            self._ahead_bytes -= len(leaf)
            run.append(leaf)

    def _wait(self, index: int, leaf: bytes) -> None:
        waiting = self._ahead.get(index)
        if waiting is not None:
            self._compare_entry(index, waiting, leaf)
        elif self._ahead_bytes + len(leaf) <= AHEAD_BOUND_BYTES:
            self._ahead[index] = leaf
            self._ahead_bytes += len(leaf)

    def _compare_entry(self, index: int, ours: bytes, other: bytes) -> None:
        if ours == other:
            self.repeats += 1
        else:
            pieces: list[Piece] = [("entry", "held", index, ours), ("entry", "other", index, other)]
            self._fork(f"entry {index} came with two contents", pieces)

    def _compare_repeats(self, repeats: Sequence[tuple[int, bytes]]) -> None:
        """Entries that are held: by their hashes where these are at hand, else by what is stored, a run at a time."""
        first_recent = self.size - len(self._recent)
        older: list[tuple[int, bytes]] = []
        for index, leaf in repeats:
            if index < first_recent:
                older.append((index, leaf))
            elif self._recent[index - first_recent] == leaf_hash(leaf):
                self.repeats += 1
            else:
                self._fork_at(index, leaf)
        if self._past is None:
            return  # a witness has no entries: the roots that it has seen speak for them
        for _, run in groupby(enumerate(sorted(older)), lambda pair: pair[1][0] - pair[0]):
            leaves = [one for _, one in run]
            stored = self._past.leaves(leaves[0][0], leaves[-1][0] + 1)
            for (index, leaf), ours in zip(leaves, stored, strict=True):
                self._compare_entry(index, ours, leaf)

    def _apply(self, run: Sequence[bytes], now_ms: int) -> None:
        """The entries from ``size`` on: those that are right become part of the tree."""
        hashes = [leaf_hash(leaf) for leaf in run]
        try:
            check_entries(self.keys.origin, self.size, run, hashes, self._previous(), _never)
            right = len(run)
        except JournalFault:
            right = self._count_right(run, hashes)
        if right:
            self._grow(run[:right], hashes[:right])
            self._gap.grown(now_ms)
        if right < len(run) and not self.held.fork:
            self._refuse(run[right])

    def _count_right(self, run: Sequence[bytes], hashes: Sequence[bytes]) -> int:
        """How many of the entries are right before the first that is not."""
        previous = self._previous()
        for at, leaf in enumerate(run):
            try:
                check_entries(self.keys.origin, self.size + at, [leaf], [hashes[at]], previous, _never)
            except JournalFault:
                return at
            previous = hashes[at]
        return len(run)

    def _grow(self, leaves: Sequence[bytes], hashes: Sequence[bytes]) -> None:
        first, stop = self.size, self.size + len(leaves)
        cuts = [size for size in sorted(self._pending) if size <= stop]
        for cut in [*cuts, stop]:
            for one in hashes[self.size - first : cut - first]:
                self._frontier.append(one)
            if cut in self._pending and not self.held.fork:
                self._match(self._pending.pop(cut), self._frontier.root())
        self._recent.extend(hashes)
        self._changed = True
        if self._past is None:
            return
        self._leaves.extend(leaves)
        self._tail.extend(hashes)
        while len(self._tail) >= BLOCK_WIDTH:
            n = (stop - len(self._tail)) >> BLOCK_HEIGHT
            self._blocks.append((n, root_of(self._tail[:BLOCK_WIDTH])))
            del self._tail[:BLOCK_WIDTH]

    def _previous(self) -> bytes:
        return self._recent[-1] if self._recent else self.held.previous

    def _refuse(self, leaf: bytes) -> None:
        """The entry whose turn it is is not right: it follows another one than ours, or it is no entry."""
        match = LEAF_PATTERN.fullmatch(leaf)
        claimed = None if match is None else match[_CLAIMED_PREVIOUS]
        if self.size and claimed is not None and claimed != b2a_base64(self._previous(), newline=False):
            self._fork_at(self.size, leaf)
            return
        self.refuse(f"entry {self.size} is not in the form of an entry: {leaf[:80]!r}")

    # ── Checkpoints ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _opened(self, text: str) -> Signed | None:
        try:
            return open_signed(text, self.keys)
        except NoteFault as fault:
            self.refuse(f"a checkpoint: {fault.detail} ({fault.code})")
            return None

    def _weigh(self, signed: Signed) -> None:
        """Compare a checkpoint with the tree, now or when the tree has its size."""
        size, root = signed.checkpoint.size, signed.checkpoint.root
        if size > self.size:
            waiting = self._pending.get(size)
            if waiting is not None and waiting.checkpoint.root != root:
                pair = (waiting.text.encode(), signed.text.encode())
                self._fork(
                    f"two checkpoints of {size} entries were signed",
                    [("checkpoint", "other", size, one) for one in pair],
                )
                return
            if waiting is None and len(self._pending) >= PENDING_BOUND:
                del self._pending[max(self._pending)]
            self._pending[size] = signed
        elif size == self.size:
            self._match(signed, self._frontier.root())
        elif self._past is not None:
            self._match(signed, self._past.root(size))
        elif size == self.held.cosigned:
            self._match(signed, open_signed(self.held.ack, self.keys).checkpoint.root)
        else:
            self.restate = True

    def _match(self, signed: Signed, root: bytes) -> None:
        checkpoint = signed.checkpoint
        if checkpoint.root != root:
            why = f"the signed checkpoint of {checkpoint.size} entries has another root than the entries that came"
            self._fork(why, [("checkpoint", "other", checkpoint.size, signed.text.encode())])
        elif checkpoint.size > self.held.cosigned:
            if self._due is None or checkpoint.size >= self._due.checkpoint.size:
                self._due = signed
        elif checkpoint.size < self.held.cosigned:
            self.restate = True

    # ── Forks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _fork_at(self, index: int, other: bytes) -> None:
        """``other`` claims to be entry ``index``, and cannot follow, or be, what is held."""
        last = min(index, self.size - 1)
        pieces: list[Piece] = [("entry", "held", last, self._leaf(last)), ("entry", "other", index, other)]
        self._fork(f"entry {index} came with another content, or after another entry, than those held", pieces)

    def _leaf(self, index: int) -> bytes:
        """An entry that is held, of the draft or of the store; nothing for a witness."""
        if index >= self._first and self._leaves:
            return self._leaves[index - self._first]
        stored = self._past.leaves(index, index + 1) if self._past else ()
        return stored[0] if stored else b""

    def _fork(self, why: str, pieces: Sequence[Piece]) -> None:
        """Stop, and keep what contradicts each other: these pieces, what we last cosigned, and what waits."""
        if self.held.fork:  # each further piece is of the same fork
            for kind, side, at, content in pieces:
                self._add_evidence(kind, side, at, content)
            return
        self._update(fork=why)
        self._due = None
        self._alarm("E-MIRROR-FORK", why)
        ack: list[Piece] = [("checkpoint", "held", self.held.cosigned, self.held.ack.encode())]
        signed: list[Piece] = [("checkpoint", "other", at, one.text.encode()) for at, one in self._pending.items()]
        waiting: list[Piece] = [("entry", "other", at, leaf) for at, leaf in self._ahead.items()]
        for kind, side, at, content in [*pieces, *ack, *signed, *waiting]:
            if content:
                self._add_evidence(kind, side, at, content)
        self._pending.clear()
        self._ahead.clear()
        self._ahead_bytes = 0

    def _keep_other_entries(self, entries: Sequence[tuple[int, bytes]]) -> None:
        for index, leaf in entries:
            if self._dossier.full:
                return
            if index >= self.size or self._leaf(index) != leaf:
                self._add_evidence("entry", "other", index, leaf)

    def _add_evidence(self, kind: EvidenceKind, side: Side, at: int, content: bytes) -> None:
        if self._dossier.add(kind, side, at, content, self.held.heard_ms):
            self._changed = True

    def _update(self, *, fork: str = "", latest: int = -1, announced: int = -1, claimed: int = -1) -> None:
        held = self.held
        after = replace(
            held,
            fork=fork or held.fork,
            latest=held.latest if latest < 0 else latest,
            announced=held.announced if announced < 0 else announced,
            claimed=held.claimed if claimed < 0 else claimed,
        )
        self._changed = self._changed or after != held
        self.held = after

    def _alarm(self, code: str, detail: str) -> None:
        self.alarms.append(Alarm(code, self.keys.origin, detail))


def _never(_: Sequence[bytes]) -> bool:
    return False
