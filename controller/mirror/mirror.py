"""Many journals, one store, one key: what came is checked, stored, and only then cosigned. Knows no broker.

    work(messages)   drafts of all journals ──► one transaction ──► COMMIT ──► cosign ──► COMMIT ──► what to publish
                                                                   (durable)          (we know what we said)

Whatever queued while a commit was under way goes into the next one, of all tables together. A failed commit ends the
process: the next start knows from the store what is held, and the tables send the rest again.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from controller.certify.faults import KeyFault, NoteFault
from controller.certify.keys import is_table_name
from controller.certify.leaf import LEAF_PATTERN
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, format_note, open_note
from controller.delivery.bus import Message
from controller.delivery.centre import parse_replay
from controller.delivery.topics import Topics
from controller.mirror.faults import Alarm
from controller.mirror.follower import Follower
from controller.mirror.signed import Past
from controller.mirror.store import Held, Kept, Store, stored_root
from drivers.clock import Clock

RECALL_BOUND = 1_000
"""Entries that one recall gives back."""

STRANGERS_BOUND = 256
"""Origins that are in no policy and were told about; more are only counted."""

_INDEX, _SOURCE = 3, 7
"""In ``LEAF_PATTERN``: the index of an entry, and its origin."""

UTF8 = "text/plain; charset=utf-8"


@dataclass(slots=True)
class _Place:
    """One table: its topics, and its journals, an epoch each, the oldest first."""

    topics: Topics
    own: str
    journals: dict[str, Follower] = field(default_factory=dict)

    @property
    def present(self) -> Follower:
        """The journal of the newest epoch of which anything is known; else of the first."""
        followers = list(self.journals.values())
        known = [one for one in followers if one.size or one.held.announced]
        return known[-1] if known else followers[0]


@dataclass(slots=True)
class _Heard:
    """What came for one journal in one turn."""

    entries: list[tuple[int, bytes]] = field(default_factory=list)
    checkpoints: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)


class Mirror:
    """The central service without its broker. All methods are called in one thread, one after the other.

    ``logs`` are the journals of the policy; ``signer`` is of type 0x04. A ``witness`` keeps no entries; its name is one
    level of the topic on which it speaks. Raises KeyFault (E-MIRROR-KEY, E-POLICY-LOG).
    """

    def __init__(
        self, logs: Sequence[LogKeys], store: Store, signer: Signer, clock: Clock, *, witness: str | None = None
    ) -> None:
        if signer.verifier.key_type is not KeyType.COSIGNATURE:
            raise KeyFault("E-MIRROR-KEY", f"the key of {signer.name} cannot cosign: it must be of type 4")
        self.strangers = 0
        self._store = store
        self._signer = signer
        self._clock = clock
        self._witness = witness
        self._alarms: list[Alarm] = []
        self._told: set[str] = set()
        self._places: dict[str, _Place] = {}
        self._own: dict[str, _Place] = {}
        held = {one.origin: one for one in store.held()}
        for keys in sorted(logs, key=_epoch_of):
            self._follow(keys, held.get(keys.origin, Held(origin=keys.origin)))

    def _follow(self, keys: LogKeys, held: Held) -> None:
        topics = _topics_of(keys.origin)
        own = topics.ack if self._witness is None else topics.witness(self._witness)
        place = self._places.setdefault(topics.root, _Place(topics, own))
        self._own[own] = place
        origin = keys.origin
        evidence = len(self._store.evidence(origin)) if held.fork else 0
        past = None
        if self._witness is None:
            past = Past(partial(self._store.leaves, origin), partial(stored_root, self._store, origin))
        place.journals[origin] = Follower(keys, held, past, evidence)

    @property
    def filters(self) -> tuple[str, ...]:
        """What a mirror must hear: the tables, and what itself said earlier."""
        own = "down/ack" if self._witness is None else f"down/witness/{self._witness}"
        heard = ["up/event", "up/checkpoint", own] + ([] if self._witness else ["up/recall"])
        return tuple(f"casino/v1/+/table/+/{one}" for one in heard)

    @property
    def followers(self) -> Iterator[Follower]:
        """Every journal."""
        for place in self._places.values():
            yield from place.journals.values()

    # ── One turn ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def work(self, messages: Sequence[Message]) -> list[Message]:
        """Take what came, store it, cosign what is stored; what is to be published, in order.

        Raises MirrorFault (E-MIRROR-STORE), after which nobody can say what is stored: end, and start again.
        """
        now_ms = self._clock.mono_us() // 1_000
        touched: list[tuple[_Place, Follower]] = []
        for place, follower, heard in self._sorted(messages):
            follower.heard(self._clock.wall_ms())
            for text in heard.claims:
                follower.take_claim(text)
            for text in heard.checkpoints:
                follower.take_checkpoint(text)
            follower.take_entries(heard.entries, now_ms)
            touched.append((place, follower))
        self._keep([kept for _, follower in touched if (kept := follower.drafted()) is not None])
        return [*self._cosign(touched), *self._replays(now_ms)]

    def _keep(self, changes: Sequence[Kept]) -> None:
        if changes:
            self._store.keep(changes)

    def _cosign(self, touched: Sequence[tuple[_Place, Follower]]) -> list[Message]:
        """Sign what the store now holds, remember having signed it, and say so."""
        changes, spoken = [], []
        time_s = self._clock.wall_ms() // 1_000
        for place, follower in touched:
            signed = follower.cosignable()
            if signed is not None:
                line = self._signer.sign(signed.note.text, time_s)
                ack = format_note(signed.note.text, [*signed.note.signatures, line])
                changes.append(follower.cosigned(signed, ack))
            if (signed or follower.restate) and follower is place.present:
                spoken.append(place)
            follower.restate = False
        self._keep(changes)
        return [said for place in spoken if (said := _ack(place)) is not None]

    def _replays(self, now_ms: int) -> list[Message]:
        asked = []
        for place in self._places.values():
            wanted = place.present.wanted(now_ms)
            if wanted is not None:
                payload = json.dumps({"from": wanted.start, "to": wanted.stop}).encode()
                asked.append(Message(place.topics.replay, payload, content_type="application/json"))
        return asked

    def acknowledgements(self) -> list[Message]:
        """What was last cosigned of each table, for a broker that may have forgotten it."""
        return [said for place in self._places.values() if (said := _ack(place)) is not None]

    def recall(self, message: Message) -> list[Message]:
        """The entries that a table asks for, exactly as they came: what is held of them, RECALL_BOUND at the most."""
        place = self._places.get(message.topic.removesuffix("/up/recall"))
        if place is None:
            self._stranger(message.topic)
            return []
        follower = place.present
        try:
            wanted = parse_replay(message.payload, follower.held.size)
        except ValueError as error:
            self._alarms.append(Alarm("E-MIRROR-RECALL", follower.keys.origin, str(error)))
            return []
        stop = min(wanted.stop, wanted.start + RECALL_BOUND)
        leaves = self._store.leaves(follower.keys.origin, wanted.start, stop)
        return [Message(place.topics.entry, leaf, content_type="application/cloudevents+json") for leaf in leaves]

    def alarms(self) -> list[Alarm]:
        """What a person should know since the last time."""
        told = [*self._alarms, *(alarm for follower in self.followers for alarm in follower.alarms)]
        self._alarms.clear()
        for follower in self.followers:
            follower.alarms.clear()
        return told

    # ── Whose it is ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _sorted(self, messages: Sequence[Message]) -> list[tuple[_Place, Follower, _Heard]]:
        """What came, by journal. A journal speaks on the topics of its own table and on no other."""
        found: dict[str, tuple[_Place, Follower, _Heard]] = {}
        for message in messages:
            root, _, kind = message.topic.rpartition("/up/")
            place = self._places.get(root) or self._own.get(message.topic)
            if place is None:
                self._stranger(message.topic)
            elif kind == "event":
                self._sort_entry(place, message.payload, found)
            else:
                self._sort_note(place, message, claim=message.topic in self._own, found=found)
        return list(found.values())

    def _sort_entry(self, place: _Place, leaf: bytes, found: dict[str, tuple[_Place, Follower, _Heard]]) -> None:
        match = LEAF_PATTERN.fullmatch(leaf)
        if match is None:
            place.present.refuse(f"{len(leaf)} bytes that are not an entry")
            return
        heard = self._heard(place, match[_SOURCE].decode(), found)
        if heard is not None:
            heard.entries.append((int(match[_INDEX]), leaf))

    def _sort_note(
        self, place: _Place, message: Message, *, claim: bool, found: dict[str, tuple[_Place, Follower, _Heard]]
    ) -> None:
        try:
            text = message.payload.decode("utf-8")
        except UnicodeDecodeError:
            place.present.refuse("a checkpoint that is not UTF-8")
            return
        origin = text.partition("\n")[0]
        heard = self._heard(place, origin, found)
        if heard is None:
            return
        if not claim:
            heard.checkpoints.append(text)
        elif text != place.journals[origin].held.ack and self._is_ours(text):
            heard.claims.append(text)

    def _heard(self, place: _Place, origin: str, found: dict[str, tuple[_Place, Follower, _Heard]]) -> _Heard | None:
        if origin not in found:
            follower = place.journals.get(origin)
            if follower is None:
                self._stranger(f"{place.topics.root}: {origin[:200]}")
                return None
            found[origin] = (place, follower, _Heard())
        owner, _, heard = found[origin]
        return heard if owner is place else None

    def _is_ours(self, text: str) -> bool:
        try:
            open_note(text, [self._signer.verifier])
        except NoteFault as fault:
            self._alarms.append(Alarm("E-MIRROR-REFUSED", self._signer.name, f"an acknowledgement: {fault.detail}"))
            return False
        return True

    def _stranger(self, about: str) -> None:
        self.strangers += 1
        if about not in self._told and len(self._told) < STRANGERS_BOUND:
            self._told.add(about)
            self._alarms.append(Alarm("E-MIRROR-STRANGER", about, "it is in no log line of the policy"))


def _ack(place: _Place) -> Message | None:
    """What is said of a table now; nothing while the store knows less than was said before."""
    held = place.present.held
    if not held.ack or held.cosigned < held.claimed:
        return None
    return Message(place.own, held.ack.encode(), retain=True, content_type=UTF8)


def _epoch_of(keys: LogKeys) -> int:
    epoch = keys.origin.rpartition("/")[2]
    return int(epoch) if epoch.isascii() and epoch.isdecimal() else 0


def _topics_of(origin: str) -> Topics:
    if not is_table_name(origin):
        raise KeyFault("E-POLICY-LOG", f"the log {origin!r} is not that of a table: <site>/table/<table>/<epoch>")
    site, _, table, _ = origin.split("/")
    return Topics(site, table)
