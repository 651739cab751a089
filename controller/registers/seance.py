"""A séance, read from its certified entries: what its report and its statement say.

    opening entry ── … ── closing entry        every entry between belongs to it, and nothing else is looked at
          └── taken one by one (``Sitting.take``), so that a table that plays can read an evening in small steps

Only what people must see is kept: the rounds, the incidents, the money of each post. The amounts of the closing entry
and those that the other entries add up to are both kept, and a report shows both.

Each entry holds the hash of the one before. So whoever finds the closing entry in a signed tree has the whole séance.
"""

import json
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field

from controller import codec
from controller.certify.leaf import LEAF_PATTERN, leaf_hash
from controller.registers.faults import RegisterFault
from games import health, posts
from games.posts import Meters
from games.roulette import facts as roulette
from games.rules import Fact
from games.seance import SeanceClosed, SeanceOpened, TableStarted, TableStopped
from games.statement import TotalsCarried

Round = roulette.RoundClosed | roulette.RoundVoided
Movement = (
    posts.CreditAdded | posts.PlayerPaidOut | posts.StakeConsigned | posts.ConsignmentReleased | posts.OrphanRecorded
)
Event = (
    roulette.IncidentDeclared
    | roulette.EntryMade
    | roulette.PresenceAttested
    | roulette.NumberValidated
    | roulette.GameRestarted
    | roulette.RoundVoided
    | health.DeviceLinkLost
    | health.DeviceLinkRestored
    | health.WheelFaultBegan
    | health.WheelFaultEnded
    | health.WallClockStepped
    | TableStarted
    | TableStopped
)

READ = (
    SeanceOpened,
    SeanceClosed,
    TotalsCarried,
    roulette.RoundClosed,
    posts.StakesPlaced,
    posts.StakesTakenBack,
    posts.PostSettled,
    posts.PostRecredited,
    *Movement.__args__,
    *Event.__args__,
)
"""The kinds of facts that a séance is read from; all others change nothing in its documents."""

_READ_KINDS = frozenset(kind.KIND for kind in READ)


@dataclass(frozen=True, slots=True)
class At:
    """Which entry certified something, and when: the entry's index and its time in UTC."""

    index: int
    time: str


@dataclass(slots=True)
class Seance:
    """One séance, from its opening entry to its closing one.

    ``meters`` are the movements of each post; ``last_hash`` is the hash of the entry that was read last.
    """

    origin: str = ""
    opening: tuple[At, SeanceOpened] | None = None
    closing: tuple[At, SeanceClosed] | None = None
    carried: TotalsCarried | None = None
    rounds: list[tuple[At, Round]] = field(default_factory=list)
    events: list[tuple[At, Event]] = field(default_factory=list)
    movements: list[tuple[At, Movement]] = field(default_factory=list)
    meters: dict[int, Meters] = field(default_factory=dict)
    last_hash: bytes = b""

    def take(self, leaf: bytes) -> None:
        """Read the next entry. Raises RegisterFault (E-SEANCE-ENTRIES) and CodecError."""
        envelope = LEAF_PATTERN.fullmatch(leaf)
        if envelope is None:
            raise RegisterFault("E-SEANCE-ENTRIES", f"these {len(leaf)} bytes do not have the form of an entry")
        if self.last_hash and envelope[5] != b64encode(self.last_hash):
            raise RegisterFault("E-SEANCE-ENTRIES", f"entry {envelope[3].decode()} does not follow the one before")
        self.last_hash = leaf_hash(leaf)
        kind = envelope[10].decode()
        if kind in _READ_KINDS:
            at = At(int(envelope[3]), envelope[8].decode())
            self._fold(at, codec.decode_fact(kind, json.loads(envelope[2])), envelope[7].decode())

    def _fold(self, at: At, fact: Fact, origin: str) -> None:
        if isinstance(fact, SeanceOpened) != (self.opening is None) or self.closing is not None:
            raise RegisterFault("E-SEANCE-ENTRIES", f"entry {at.index} is not of this séance")
        match fact:
            case SeanceOpened():
                self.origin, self.opening = origin, (at, fact)
            case SeanceClosed():
                self.closing = (at, fact)
            case TotalsCarried():
                self.carried = fact
            case _:
                self._sort(at, fact)

    def _sort(self, at: At, fact: Fact) -> None:
        if isinstance(fact, Round):
            self.rounds.append((at, fact))
        if isinstance(fact, Event):
            self.events.append((at, fact))
        if isinstance(fact, Movement):
            self.movements.append((at, fact))
        self._meter(fact)

    def _meter(self, fact: Fact) -> None:
        match fact:
            case posts.CreditAdded(post=post, cents=cents):
                self._add(post, Meters(credited=cents))
            case posts.StakesPlaced(post=post, cents=cents):
                self._add(post, Meters(staked=cents))
            case posts.StakesTakenBack(post=post, cents=cents) | posts.PostRecredited(post=post, cents=cents):
                self._add(post, Meters(returned=cents))
            case posts.PostSettled(post=post, returned=returned, won=won):
                self._add(post, Meters(returned=returned, won=won))
            case posts.PlayerPaidOut(post=post, cents=cents):
                self._add(post, Meters(paid_out=cents))
            case posts.StakeConsigned(post=post, cents=cents):
                self._add(post, Meters(consigned=cents))
            case _:
                pass

    def _add(self, post: int, moved: Meters) -> None:
        self.meters[post] = self.meters.get(post, Meters()) + moved

    @property
    def total(self) -> Meters:
        """The movements of all posts."""
        return sum(self.meters.values(), Meters())


def read_seance(leaves: Iterable[bytes]) -> Seance:
    """The séance of these entries, from its opening to its closing one. Raises RegisterFault and CodecError."""
    seance = Seance()
    for leaf in leaves:
        seance.take(leaf)
    return seance
