"""Whom a verifier believes (c2sp.org/tlog-policy): which logs, which witnesses, and how many of these are enough.

    log casino.example/table/t07/1+e95a7a11+AZ…        the table's key; two lines while the key is being changed
    witness mirror casino.example/mirror+4b3c…+BD…     who cosigns
    witness caisse casino.example/caisse+91aa…+BJ…
    group both all mirror caisse
    quorum both                                        what a checkpoint needs to count as witnessed; or "none"

A group or the quorum names only what stands on a line before it, and a group lists a name once. So each witness counts
in one way, and no definition can go round in circles.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from controller.certify.checkpoint import Checkpoint, parse_checkpoint
from controller.certify.faults import KeyFault, NoteFault
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Verifier, open_note

POLICY_BOUND = 65_536
"""Bytes of the longest policy that is read."""

LINES_BOUND = 512
"""Logs, witnesses and groups together, at the most (the format asks for at least 32 of each)."""

NONE = "none"
"""The quorum of a policy that asks for no witness."""

_FORBIDDEN = re.compile(rb"[^\t\n\x20-\x7e\x80-\xff]")
_BLANKS = re.compile(r"[ \t]+")
_NUMBER = re.compile(r"[1-9][0-9]{0,4}")


@dataclass(frozen=True, slots=True)
class Group:
    """Counts as a witness when at least ``threshold`` of its ``members`` do."""

    threshold: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Witnessed:
    """A checkpoint that a policy accepts as a log's word. ``by`` are the names of the witnesses that cosigned it."""

    checkpoint: Checkpoint
    by: frozenset[str]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy. ``named`` are the witnesses by the names that groups and the quorum use."""

    logs: tuple[LogKeys, ...]
    named: Mapping[str, Verifier] = field(default_factory=lambda: MappingProxyType({}))
    groups: Mapping[str, Group] = field(default_factory=lambda: MappingProxyType({}))
    quorum: str = NONE

    @classmethod
    def parse(cls, policy: str | bytes) -> Self:
        """Read a policy. Raises KeyFault (E-POLICY-MALFORMED), which names the line."""
        return cls(*_Reading().read(policy if isinstance(policy, bytes) else policy.encode(errors="surrogateescape")))

    @property
    def text(self) -> str:
        """The policy as a file."""
        logs = [f"log {verifier.vkey}" for keys in self.logs for verifier in keys.verifiers]
        witnesses = [f"witness {name} {verifier.vkey}" for name, verifier in self.named.items()]
        groups = [f"group {name} {one.threshold} {' '.join(one.members)}" for name, one in self.groups.items()]
        return "\n".join([*logs, *witnesses, *groups, f"quorum {self.quorum}", ""])

    @property
    def witnesses(self) -> tuple[Verifier, ...]:
        """The keys of all witnesses."""
        return tuple(self.named.values())

    def keys(self, origin: str) -> LogKeys:
        """The keys of the log ``origin``. Raises KeyFault (E-POLICY-LOG)."""
        for log in self.logs:
            if log.origin == origin:
                return log
        known = ", ".join(log.origin for log in self.logs) or "none"
        raise KeyFault("E-POLICY-LOG", f"the policy has no key of {origin}; it has keys of: {known}")

    def satisfied_by(self, names: Collection[str]) -> bool:
        """Whether the quorum is reached when these witnesses cosigned."""
        reached = set(names) & set(self.named)
        for name, group in self.groups.items():  # in the order of their definition, which never looks ahead
            if len(reached.intersection(group.members)) >= group.threshold:
                reached.add(name)
        return self.quorum == NONE or self.quorum in reached

    def witnessed(self, note: str) -> Witnessed:
        """The checkpoint that ``note`` is, signed by its log, and who cosigned it; the quorum is not demanded.

        Raises NoteFault (E-NOTE-…, E-CHECKPOINT-MALFORMED) and KeyFault (E-POLICY-LOG).
        """
        origin = note.partition("\n")[0]
        keys = self.keys(origin)
        opened = open_note(note, [*keys.verifiers, *self.witnesses])
        if not any(keys.made(signature) for signature in opened.signatures):
            raise NoteFault("E-NOTE-UNSIGNED", f"the checkpoint is signed by no key of {origin}")
        by = {name for name, verifier in self.named.items() if any(map(verifier.made, opened.signatures))}
        return Witnessed(parse_checkpoint(opened.text), frozenset(by))


class _Reading:
    """A policy on the way from its lines: what was defined so far."""

    def __init__(self) -> None:
        self._logs: dict[str, list[Verifier]] = {}
        self._witnesses: dict[str, Verifier] = {}
        self._groups: dict[str, Group] = {}
        self._quorum: str | None = None
        self._public: set[tuple[str, bytes]] = set()
        self._members: set[str] = set()

    def read(self, policy: bytes) -> tuple[tuple[LogKeys, ...], Mapping[str, Verifier], Mapping[str, Group], str]:
        for number, line in enumerate(_lines(policy), 1):
            words = _BLANKS.split(line.strip(" \t"))
            if words == [""] or words[0].startswith("#"):
                continue
            try:
                self._take(words)
            except (ValueError, KeyFault) as error:
                raise KeyFault("E-POLICY-MALFORMED", f"line {number} of the policy: {error}") from error
        if self._quorum is None:
            raise KeyFault("E-POLICY-MALFORMED", 'the policy has no quorum line; without witnesses it is "quorum none"')
        logs = tuple(LogKeys.of(*verifiers) for verifiers in self._logs.values())
        return logs, MappingProxyType(self._witnesses), MappingProxyType(self._groups), self._quorum

    def _take(self, words: list[str]) -> None:
        match words:
            case ["log", vkey] | ["log", vkey, _]:
                verifier = self._key(vkey, KeyType.ED25519, "log")
                self._logs.setdefault(verifier.name, []).append(verifier)
            case ["witness", name, vkey] | ["witness", name, vkey, _]:
                self._check_new(name)
                self._witnesses[name] = self._key(vkey, KeyType.COSIGNATURE, "witness")
            case ["group", name, threshold, *members]:
                self._check_new(name)
                self._groups[name] = self._group(threshold, members)
            case ["quorum", name]:
                self._take_quorum(name)
            case _:
                raise ValueError(f"{' '.join(words)[:80]!r} is no line of log, witness, group or quorum")
        if len(self._public) + len(self._groups) > LINES_BOUND:
            raise ValueError(f"there are more than {LINES_BOUND} logs, witnesses and groups")

    def _key(self, vkey: str, wanted: KeyType, what: str) -> Verifier:
        verifier = Verifier.parse(vkey)
        if verifier.key_type is not wanted:
            raise ValueError(f"the key of a {what} is of type {wanted}, not {verifier.key_type}")
        if (what, verifier.public) in self._public:
            raise ValueError(f"the key of {verifier.name} stands here for the second time as a {what}")
        self._public.add((what, verifier.public))
        return verifier

    def _group(self, threshold: str, members: list[str]) -> Group:
        for member in members:
            self._check_defined(member)
            if member in self._members:
                raise ValueError(f"{member!r} is a member already: a name counts in one group, once")
            self._members.add(member)
        count = {"any": "1", "all": str(len(members))}.get(threshold, threshold)
        if not members or not _NUMBER.fullmatch(count) or int(count) > len(members):
            raise ValueError(f"a group asks for any, all, or 1 to {len(members)} of its members, not {threshold!r}")
        return Group(int(count), tuple(members))

    def _take_quorum(self, name: str) -> None:
        if self._quorum is not None:
            raise ValueError("this is the second quorum")
        if name != NONE:
            self._check_defined(name)
        self._quorum = name

    def _check_new(self, name: str) -> None:
        if name == NONE or name in self._witnesses or name in self._groups:
            raise ValueError(f"{name!r} is defined already")

    def _check_defined(self, name: str) -> None:
        if name not in self._witnesses and name not in self._groups:
            raise ValueError(f"{name!r} is neither a witness nor a group of a line before")


def _lines(policy: bytes) -> list[str]:
    if len(policy) > POLICY_BOUND:
        raise KeyFault("E-POLICY-MALFORMED", f"the policy is longer than {POLICY_BOUND} bytes")
    if _FORBIDDEN.search(policy):
        raise KeyFault("E-POLICY-MALFORMED", "the policy has a control character other than tab and line end")
    return policy.decode(errors="surrogateescape").split("\n")  # octets above 0x7f mean nothing and are kept
