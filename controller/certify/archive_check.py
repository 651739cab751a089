"""The verification of an archive, with nothing but its file and the table's public key, or a policy.

    frame of the tar: every byte as we write it?     ── no ──► altered, incomplete, or no archive
    checkpoint: signed by the table?                 ── no ──► unsigned, or another key
    right edge: does it lead to the signed root?     ── no ──► altered (the entry is named where one is concerned)
    each tile, from the root down; each entry        ── no ──► altered (the entry is named)
    form, number, origin and chain of each entry     ── no ──► altered (the entry is named)
    events.jsonl: the very same entries?             ── no ──► altered (the entry is named)
    all of the séance, and nothing else?             ── no ──► incomplete, altered
    other checkpoints, policy, README                ── no ──► altered, or a second history signed by the same key

The content is hostile until it is bound to the root: members are read one at a time and up to a bound, nothing is
unpacked, and what is expected is computed, not taken from the file.
"""

from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from controller.certify.archive import (
    SEANCE,
    WHOLE,
    Report,
    Signed,
    certified_note,
    digest_line,
    policy_of,
    seance_of,
    seconds_of,
    signed_checkpoint,
)
from controller.certify.archive_readme import README
from controller.certify.archive_tree import ArchiveTree
from controller.certify.blocks import check_entries
from controller.certify.checkpoint import Checkpoint, parse_checkpoint
from controller.certify.faults import JournalFault, KeyFault, LeafFault, NoteFault
from controller.certify.leaf import LEAF_PATTERN, leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import NOTE_BOUND, open_note
from controller.certify.policy import NONE, POLICY_BOUND, Policy
from controller.certify.tar import TarReader
from controller.certify.tile_paths import Span, parse_tile_path
from controller.certify.tiles import TILE_WIDTH
from controller.certify.verify import Outcome, Progress, Verdict

REPORT_BOUND = 16 << 20
"""Bytes of the longest report of a séance in an archive."""

_OUTCOMES = {
    "E-ARCHIVE-FORM": Outcome.ALTERED,
    "E-ARCHIVE-INCOMPLETE": Outcome.INCOMPLETE,
    "E-ARCHIVE-NARROW": Outcome.INCOMPLETE,
    "E-ARCHIVE-REPORT": Outcome.ALTERED,
    "E-JOURNAL-ALTERED": Outcome.ALTERED,
    "E-JOURNAL-FORKED": Outcome.ROLLED_BACK_OR_FORKED,
    "E-JOURNAL-ROLLED-BACK": Outcome.ROLLED_BACK_OR_FORKED,
    "E-JOURNAL-KEY": Outcome.UNSIGNED_OR_UNKNOWN_KEY,
    "E-POLICY-QUORUM": Outcome.UNSIGNED_OR_UNKNOWN_KEY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a verified archive holds: the entries ``span``, of ``seance`` or of a whole journal (None).

    ``last_kind`` is the kind of its last entry, empty when there is none.
    """

    seance: str | None
    span: Span
    signed: Signed
    last_kind: str


def archived_checkpoint(path: Path) -> str:
    """The signed checkpoint of an archive, as it is in the file. Raises JournalFault (E-ARCHIVE-…) and OSError."""
    with path.open("rb") as file:
        return TarReader.open(file).read("checkpoint", 4 * NOTE_BOUND).decode(errors="replace")


def verify_archive(
    path: Path,
    keys: LogKeys,
    progress: Progress = lambda done, size: None,
    *,
    remembered: str | None = None,
    policy: Policy | None = None,
    report: Report | None = None,
) -> tuple[Verdict, Contents | None]:
    """Verify everything in the archive ``path`` with the table's keys; the contents are told when all agrees.

    ``remembered`` is the note of a checkpoint that was kept elsewhere: the archive must be of the same history.
    ``policy`` says which witnesses must have cosigned. ``report`` makes the report of the séance again from the
    entries, to be compared with the one that was signed. Raises NoteFault for a ``remembered`` note that no key of the
    table signed, and OSError when the file cannot be read.
    """
    witness = None if remembered is None else parse_checkpoint(open_note(remembered, keys.verifiers).text)
    try:
        with path.open("rb") as file:
            check = _Check(TarReader.open(file), keys)
            contents, signed = check.run(progress)
            if witness is not None:
                check.compare(witness, contents)
            if policy is not None:
                _check_quorum(policy, contents, signed)
            if report is not None:
                check.compare_report(report, contents)
    except JournalFault as fault:
        outcome = _OUTCOMES.get(fault.code, Outcome.UNREADABLE)
        return Verdict(outcome=outcome, code=fault.code, problem=fault.detail, index=fault.index), None
    except LeafFault as fault:  # signed, and yet nothing that a table writes
        return Verdict(outcome=Outcome.ALTERED, code=fault.code, problem=fault.detail), None
    return _agreeing(signed, policy), contents


def _agreeing(signed: Sequence[Signed], policy: Policy | None) -> Verdict:
    head = signed[0].checkpoint
    known = sum(len(_witnesses(policy, one)) for one in signed) if policy else 0
    return Verdict(
        outcome=Outcome.OK,
        size=head.size,
        root=head.root,
        checkpoints=len(signed),
        cosignatures=known,
        unknown_cosignatures=sum(len(one.cosigners) for one in signed) - known,
        witnessed=_witnessed(policy, signed) if policy is not None and policy.quorum != NONE else None,
    )


def _check_quorum(policy: Policy, contents: Contents, signed: Sequence[Signed]) -> None:
    """Whether enough witnesses cosigned: the whole séance, or of a whole journal, which goes on, any beginning."""
    reached = _witnessed(policy, signed)
    if reached is None or (contents.seance is not None and reached < contents.span.stop):
        so_far = "none of its checkpoints" if reached is None else f"only its first {reached} entries"
        by = ", ".join(sorted(_witnesses(policy, contents.signed))) or "nobody"
        size = contents.signed.checkpoint.size
        detail = f"enough witnesses cosigned {so_far}; the checkpoint of {size} entries is cosigned by {by}"
        raise JournalFault("E-POLICY-QUORUM", detail)


def _witnessed(policy: Policy, signed: Sequence[Signed]) -> int | None:
    """The largest size for which enough witnesses of ``policy`` vouch."""
    enough = (one.checkpoint.size for one in signed if policy.satisfied_by(_witnesses(policy, one)))
    return max(enough, default=None)


def _witnesses(policy: Policy, signed: Signed) -> frozenset[str]:
    """The witnesses of ``policy`` that cosigned."""
    made = [signature for _, signature in signed.signatures]
    return frozenset(name for name, key in policy.named.items() if any(map(key.made, made)))


class _Found:
    """What the bound entries are to the séance ``seance``, or to the whole journal without one."""

    __slots__ = ("_seance", "last", "later", "note", "start", "stop")

    def __init__(self, seance: str | None) -> None:
        self._seance = seance
        self.start = 0
        self.stop = 0
        self.last = b""
        self.later: int | None = None
        self.note: str | None = None

    def see(self, index: int, leaf: bytes) -> None:
        """The next entry."""
        if self._seance is None or seance_of(leaf) == self._seance.encode():
            self.start = index if not self.last else self.start
            self.stop, self.last = index + 1, leaf
        if self._seance is not None and self.note is None:
            self.note = certified_note(leaf, self._seance)
            self.later = None if self.note is None else index


class _Check:
    """One verification. What is bound to the signed root is in ``_tree``."""

    def __init__(self, tar: TarReader, keys: LogKeys) -> None:
        self._tar = tar
        self._keys = keys
        self._named = self._own_policy()
        self._head = self._checkpoint("checkpoint")
        self._tree = ArchiveTree(tar, self._head.checkpoint)

    def run(self, progress: Progress) -> tuple[Contents, list[Signed]]:
        """Everything but a comparison; the contents, and all checkpoints."""
        if self._tar.read("README", len(README.encode())) != README.encode():
            raise JournalFault("E-ARCHIVE-FORM", "the README is not that of an archive of version 1")
        found = self._check_blocks(self._blocks(), progress)
        span = Span(found.start, found.stop, self._head.checkpoint.size, found.later)
        others = self._check_members(span, found)
        self._check_lines(span)
        self._check_statement(found)
        signed = [self._head, *(self._other(name, span) for name in others)]
        if self._tar.read("policy", POLICY_BOUND) != policy_of(signed).text.encode():
            raise JournalFault("E-ARCHIVE-FORM", "the policy does not name exactly the keys that signed")
        if self._tar.time_s != (seconds_of(found.last) if found.last else 0):
            raise JournalFault("E-ARCHIVE-FORM", "the time of the members is not that of the last entry")
        kind = LEAF_PATTERN.fullmatch(found.last)
        last_kind = kind[10].decode() if kind else ""
        return Contents(seance=self._seance, span=span, signed=self._head, last_kind=last_kind), signed

    @property
    def _seance(self) -> str | None:
        """The séance that the archive says it is of; None when it is a whole journal."""
        folder = self._tar.folder
        if not folder.startswith(SEANCE) and folder != WHOLE:
            raise JournalFault("E-ARCHIVE-FORM", f"the folder {folder} is neither {WHOLE} nor {SEANCE}…")
        return None if folder == WHOLE else folder.removeprefix(SEANCE)

    # ── What is signed ───────────────────────────────────────────────────────────────────────────────────────────────

    def _own_policy(self) -> Policy:
        """The keys that the archive names. They are not believed; every signature in it must be by one of them."""
        try:
            policy = Policy.parse(self._tar.read("policy", POLICY_BOUND))
            policy.keys(self._keys.origin)
        except KeyFault as fault:
            raise JournalFault("E-ARCHIVE-FORM", f"the policy cannot be used: {fault.detail}") from fault
        return policy

    def _checkpoint(self, name: str) -> Signed:
        """A checkpoint that the table signed, in which every line is by a key of the archive's policy."""
        try:
            note = self._tar.read(name, 4 * NOTE_BOUND).decode()
            open_note(note, self._keys.verifiers)
            signed = signed_checkpoint(note, self._named.keys(self._keys.origin), self._named.witnesses)
        except UnicodeDecodeError as error:
            raise JournalFault("E-JOURNAL-ALTERED", f"{name} is not text: {error}") from error
        except NoteFault as fault:
            code = "E-JOURNAL-KEY" if fault.code == "E-NOTE-UNSIGNED" else "E-JOURNAL-ALTERED"
            raise JournalFault(code, f"{name}: {fault.detail}") from fault
        if signed.note != note:
            raise JournalFault("E-ARCHIVE-FORM", f"the signatures of {name} are not just those of the policy, in order")
        if signed.checkpoint.origin != self._keys.origin:
            raise JournalFault("E-JOURNAL-KEY", f"{name} is one of {signed.checkpoint.origin}")
        return signed

    def _other(self, name: str, span: Span) -> Signed:
        """Another checkpoint, which must be of the same history."""
        one = self._checkpoint(name)
        size = one.checkpoint.size
        if name != f"checkpoints/{size}" or not span.start <= size <= span.stop or size == span.size:
            raise JournalFault("E-ARCHIVE-FORM", f"{name} is a checkpoint of {size} entries")
        if self._tree.root(size) != one.checkpoint.root:
            detail = f"the key signed another history of {size} entries than the one that led to {span.size} entries"
            raise JournalFault("E-JOURNAL-FORKED", detail)
        return one

    # ── Entries ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _blocks(self) -> list[int]:
        """The blocks whose entries are in the archive."""
        names = [name for member in self._tar.members if (name := parse_tile_path(member)) and name.level is None]
        blocks = sorted(name.n for name in names)
        size = self._head.checkpoint.size
        if blocks and blocks[-1] * TILE_WIDTH >= size:
            raise JournalFault("E-ARCHIVE-FORM", f"there are entries beyond the {size} that were signed")
        return blocks

    def _check_blocks(self, blocks: list[int], progress: Progress) -> _Found:
        """Every entry of every block: is it bound, and what is it to the séance?"""
        found = _Found(self._seance)
        before, previous = -1, b""
        for done, n in enumerate(blocks):
            progress(done * TILE_WIDTH, len(blocks) * TILE_WIDTH)
            first = n * TILE_WIDTH
            leaves = self._tree.block(n)
            if n != before + 1 and (match := LEAF_PATTERN.fullmatch(leaves[0])):
                previous = b64decode(match[5])  # the entry is bound, and the one before it is not in the archive
            hashes = [leaf_hash(leaf) for leaf in leaves]
            check_entries(self._keys.origin, first, leaves, hashes, previous, lambda _: False)
            before, previous = n, hashes[-1]
            for index, leaf in enumerate(leaves, first):
                found.see(index, leaf)
        return found

    def _check_members(self, span: Span, found: _Found) -> list[str]:
        """Everything that is needed, and nothing else. The other checkpoints."""
        if self._seance is None and (span.start, span.stop) != (0, span.size):
            detail = f"the archive of a whole journal of {span.size} entries has {span.start} to {span.stop - 1}"
            raise JournalFault("E-ARCHIVE-INCOMPLETE", detail)
        if self._seance is not None and span.start == span.stop:
            raise JournalFault("E-ARCHIVE-INCOMPLETE", f"there is no entry of {self._tar.folder} in the archive")
        expected = {"README", "checkpoint", "events.jsonl", "policy"}
        expected |= {tile.path for tile in [*span.hash_tiles, *span.bundles]}
        if found.note is not None:
            expected |= {"seance.txt", "statement.note"}
        for name in sorted(expected):
            self._tar.member(name)
        others = [name for name in self._tar.members if name.startswith("checkpoints/")]
        if more := self._tar.members.keys() - expected - set(others):
            raise JournalFault("E-ARCHIVE-FORM", f"{min(more)} does not belong into the archive")
        return others

    def _check_lines(self, span: Span) -> None:
        """``events.jsonl`` against the bound entries."""
        offset = 0
        for index, leaf in enumerate(self._lines(span), span.start):
            line = leaf + b"\n"
            found = self._tar.part("events.jsonl", offset, len(line))
            if not found:
                raise JournalFault("E-ARCHIVE-INCOMPLETE", f"events.jsonl ends before entry {index}", index)
            if found != line:
                detail = f"entry {index} was altered: its line in events.jsonl is not what was signed"
                raise JournalFault("E-JOURNAL-ALTERED", detail, index)
            offset += len(line)
        if self._tar.member("events.jsonl").length != offset:
            raise JournalFault("E-ARCHIVE-FORM", f"events.jsonl goes on after entry {span.stop - 1}")

    def _check_statement(self, found: _Found) -> None:
        """The statement against the entry that certified it, and the report against the statement."""
        if found.note is None:
            return
        if self._tar.read("statement.note", 4 * NOTE_BOUND) != found.note.encode():
            detail = f"statement.note is not the one that entry {found.later} certified"
            raise JournalFault("E-JOURNAL-ALTERED", detail, found.later)
        report = self._tar.read("seance.txt", REPORT_BOUND)
        if f"\n{digest_line(report)}\n" not in found.note:
            raise JournalFault("E-ARCHIVE-FORM", "seance.txt is not the report that the persons signed")

    def compare_report(self, report: Report, contents: Contents) -> None:
        """Make the report again, and compare it with the one in the archive."""
        span = contents.span
        if span.later is None:
            return
        again = report(self._lines(span), self._tree.root(span.stop)).encode()
        if self._tar.read("seance.txt", REPORT_BOUND) != again:
            raise JournalFault("E-ARCHIVE-REPORT", "the report that was signed is not the one that the entries give")

    def _lines(self, span: Span) -> Iterator[bytes]:
        """The entries of the séance."""
        for n in span.blocks:
            first = n * TILE_WIDTH
            yield from self._tree.bundle(n)[max(span.start - first, 0) : max(span.stop - first, 0)]

    # ── What somebody else remembers ─────────────────────────────────────────────────────────────────────────────────

    def compare(self, remembered: Checkpoint, contents: Contents) -> None:
        """Compare with a checkpoint that was kept elsewhere, as far as the archive reaches."""
        size, span = remembered.size, contents.span
        if size > span.size and contents.seance is None:
            detail = f"a checkpoint of {size} entries was signed, and the archive of the journal ends at {span.size}"
            raise JournalFault("E-JOURNAL-ROLLED-BACK", detail, span.size)
        if size != span.size and not span.start <= size <= span.stop:
            detail = (
                f"the archive has the tree of {span.start} to {span.stop} and of {span.size} entries, so it cannot be"
                f" compared with a checkpoint of {size}"
            )
            raise JournalFault("E-ARCHIVE-NARROW", detail)
        if self._tree.root(size) != remembered.root:
            detail = f"a checkpoint of {size} entries was signed that is not of this archive's history"
            raise JournalFault("E-JOURNAL-FORKED", detail)
