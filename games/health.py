"""The state of the devices, as facts: what is lost, faulty or unverified, and therefore forbids a new round.

A condition is one fact when it begins and one when it ends, however long it lasts. A condition survives a restart
until the device itself says that it is over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from games.custody import JournalVerified
from games.refusals import Refusal
from games.rules import Decision, Fact, Input
from games.seance import SeanceClosed, TableStarted
from games.signals import (
    ClockStepped,
    InputFaultSeen,
    JournalDoubted,
    LinkLost,
    LinkRestored,
    StorageRunsLow,
    WheelFaultCleared,
    WheelFaultKind,
    WheelFaultSeen,
    WheelVerified,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLinkLost(Fact):
    """A device fell silent or was unplugged."""

    KIND: ClassVar[str] = "fr.table.device.link.lost.v1"
    device: str
    silent_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLinkRestored(Fact):
    """A device is heard again."""

    KIND: ClassVar[str] = "fr.table.device.link.restored.v1"
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFaultBegan(Fact):
    """The wheel reports, or shows, a fault."""

    KIND: ClassVar[str] = "fr.table.wheel.fault.began.v1"
    fault: WheelFaultKind
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFaultEnded(Fact):
    """The wheel's fault is over."""

    KIND: ClassVar[str] = "fr.table.wheel.fault.ended.v1"
    fault: WheelFaultKind
    lasted_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelParametersRead(Fact):
    """The wheel's parameters were read back; ``differences`` must be empty for a séance to open."""

    KIND: ClassVar[str] = "fr.table.wheel.parameters.read.v1"
    firmware: str
    pockets: int
    mode: int
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelInputFaulted(Fact):
    """A button, a key or a lamp of the panel misbehaves."""

    KIND: ClassVar[str] = "fr.table.panel.input.faulted.v1"
    name: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WallClockStepped(Fact):
    """The wall clock jumped. The order of entries does not depend on it."""

    KIND: ClassVar[str] = "fr.table.clock.stepped.v1"
    by_ms: int
    quality: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRanLow(Fact):
    """Free space crossed a threshold ("ok", "warn", "no_new_round", "close")."""

    KIND: ClassVar[str] = "fr.table.storage.ran_low.v1"
    level: str
    free_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalFoundDoubtful(Fact):
    """The centre's copy contradicts this journal. No round begins any more in this epoch."""

    KIND: ClassVar[str] = "fr.table.journal.found_doubtful.v1"
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What is known of the devices. ``faults`` maps each standing wheel fault to its detail.

    ``doubt`` is the code of a contradiction with the centre's copy of the journal, or of what a full verification found
    wrong; empty while there is none.
    """

    links_lost: frozenset[str] = frozenset()
    faults: Mapping[str, str] = field(default_factory=dict)
    verified: bool = False
    differences: tuple[str, ...] = ()
    storage: str = "ok"
    doubt: str = ""


def decide(health: Health, signal: Input) -> Decision:
    """The facts of a device's report, when it says something new."""
    match signal:
        case LinkLost(device=device, silent_ms=silent_ms) if device not in health.links_lost:
            return Decision(facts=(DeviceLinkLost(device=device, silent_ms=silent_ms),))
        case LinkRestored(device=device) if device in health.links_lost:
            return Decision(facts=(DeviceLinkRestored(device=device),))
        case WheelFaultSeen(fault=fault, detail=detail) if fault not in health.faults:
            return Decision(facts=(WheelFaultBegan(fault=fault, detail=detail),))
        case WheelFaultCleared(fault=fault, lasted_ms=lasted_ms) if fault in health.faults:
            return Decision(facts=(WheelFaultEnded(fault=fault, lasted_ms=lasted_ms),))
        case WheelVerified(firmware=firmware, pockets=pockets, mode=mode, differences=differences):
            read = WheelParametersRead(firmware=firmware, pockets=pockets, mode=mode, differences=differences)
            return Decision(facts=(read,))
        case InputFaultSeen(name=name, detail=detail):
            return Decision(facts=(PanelInputFaulted(name=name, detail=detail),))
        case ClockStepped(by_ms=by_ms, quality=quality):
            return Decision(facts=(WallClockStepped(by_ms=by_ms, quality=quality),))
        case JournalDoubted(code=code, detail=detail) if code != health.doubt:
            return Decision(facts=(JournalFoundDoubtful(code=code, detail=detail),))
        case StorageRunsLow(level=level, free_bytes=free_bytes) if level != health.storage:
            return Decision(facts=(StorageRanLow(level=level, free_bytes=free_bytes),))
        case _:
            return Decision()


def evolve(health: Health, fact: Fact) -> Health:
    """Fold a device's fact."""
    match fact:
        case DeviceLinkLost(device=device):
            return replace(
                health, links_lost=health.links_lost | {device}, verified=health.verified and device != "wheel"
            )
        case DeviceLinkRestored(device=device):
            return replace(health, links_lost=health.links_lost - {device})
        case WheelFaultBegan(fault=fault, detail=detail):
            return replace(health, faults={**health.faults, fault: detail})
        case WheelFaultEnded(fault=fault):
            return replace(health, faults={kind: detail for kind, detail in health.faults.items() if kind != fault})
        case WheelParametersRead(differences=differences):
            return replace(health, verified=not differences, differences=differences)
        case JournalFoundDoubtful(code=code):
            return replace(health, doubt=code)
        case JournalVerified(code=code) if code:
            return replace(health, doubt=code)
        case StorageRanLow(level=level):
            return replace(health, storage=level)
        case SeanceClosed() | TableStarted():
            # The parameters are read again for each séance, and after each start.
            return replace(health, verified=False, differences=())
        case _:
            return health


def refusals(health: Health, *, verify: bool) -> tuple[Refusal, ...]:
    """Every reason why no round may begin, none when all is well. ``verify``: the wheel's parameters must be read."""
    reasons = []
    if "wheel" in health.links_lost:
        reasons.append(Refusal.WHEEL_SILENT)
    if health.faults:
        reasons.append(Refusal.WHEEL_FAULTY)
    if verify and not health.verified:
        reasons.append(Refusal.WHEEL_NOT_VERIFIED)
    if health.doubt:
        reasons.append(Refusal.JOURNAL_DOUBTED)
    if health.storage in ("no_new_round", "close"):
        reasons.append(Refusal.STORAGE_LOW)
    return tuple(reasons)
