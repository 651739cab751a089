"""What may go wrong with a simulated wheel, as data: a list for chosen spins, and chances for all the others.

Every kind was seen on a real wheel or stands in the maker's guide (wheel notes, 2.3 and 2.5). In words, for a command
line: ``misfire@3,silence@5:8:4,bit-noise%2`` is a misfire in the 3rd spin, 8 s of silence from state 4 of the 5th on,
and bit noise in 2 of 100 spins.
"""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class FaultKind(StrEnum):
    """One thing that goes wrong in one spin."""

    MISFIRE = "misfire"  # flag 8, and the wheel launches again
    BALL_REMOVED = "ball-removed"  # flag 1 in state 4, the wheel stops after 75 s
    BALL_WITH_ROTOR = "ball-with-rotor"  # flag 2
    SENSOR_FAULT = "sensor-fault"  # flag 4, then state 6
    RUNAWAY_ROTOR = "runaway-rotor"  # up to 98 rpm, then 000 and flag 4, then state 6
    NO_NUMBER_LINE = "no-number-line"
    CONTRADICTED = "contradicted"  # the bare number is another one
    NO_MORE_BETS_SKIPPED = "no-more-bets-skipped"  # state 4 never comes
    NO_RESULT = "no-result"  # state 4 never ends
    NOT_IN_TRACK = "not-in-track"  # state 7 (firmware 2.52, option bit 32)
    SAME_DIRECTION = "same-direction"  # the rotor turns as it did before
    SILENCE = "silence"  # nothing comes, what was said is lost
    BURST = "burst"  # nothing comes, then all at once
    GLUED = "glued"  # line ends are lost
    TRUNCATED = "truncated"
    FRAGMENTS = "fragments"  # only the tail of a line comes
    DOUBLED = "doubled"  # lines come twice
    BIT_NOISE = "bit-noise"
    POWER_CYCLE = "power-cycle"  # spin numbers begin again
    UNPLUG = "unplug"  # the adapter is pulled out


STRIKING = {FaultKind.SILENCE, FaultKind.BURST, FaultKind.POWER_CYCLE, FaultKind.UNPLUG}
"""Faults that begin when a state is entered, and last."""

DAMAGING = {FaultKind.GLUED, FaultKind.TRUNCATED, FaultKind.FRAGMENTS, FaultKind.DOUBLED, FaultKind.BIT_NOISE}
"""Faults that damage lines, one in three of the spin."""

FIRST_SPIN, CERTAIN_PERCENT = 1, 100
"""Spins are counted from 1; a chance has a hundred hundredths at most."""

FAULT = re.compile(
    r"(?P<kind>[a-z-]+)(?:@(?P<spin>\d{1,6})(?::(?P<seconds>\d{1,6}))?(?::(?P<state>[1-5]))?|%(?P<percent>\d{1,3}))"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one spin. ``seconds`` (of the listener's clock) and ``state`` matter to the striking ones."""

    kind: FaultKind
    seconds: int = 8
    state: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """The faults by spin, counted from 1 since the twin was made, and the chance of each kind in any spin."""

    by_spin: Mapping[int, tuple[Fault, ...]] = field(default_factory=dict)
    chances: Mapping[FaultKind, float] = field(default_factory=dict)

    def of_spin(self, spin: int, rng: random.Random) -> tuple[Fault, ...]:
        """What goes wrong in this spin."""
        by_chance = tuple(Fault(kind) for kind, chance in self.chances.items() if rng.random() < chance)
        return self.by_spin.get(spin, ()) + by_chance


class FaultPlanError(ValueError):
    """Words that are no faults. ``words`` has them all."""

    def __init__(self, words: list[str]) -> None:
        shapes = "KIND@SPIN[:SECONDS[:STATE]], spins from 1 and states 1 to 5, or KIND%PERCENT, 100 at most"
        wrong = ", ".join(map(repr, words))
        super().__init__(f"{wrong}: a fault is {shapes}, with KIND one of {', '.join(FaultKind)}")
        self.words = words


def read_plan(text: str) -> FaultPlan:
    """The plan that a person wrote. Raises FaultPlanError with every word that is wrong."""
    by_spin = dict[int, tuple[Fault, ...]]()
    chances = dict[FaultKind, float]()
    wrong = list[str]()
    for word in filter(None, (part.strip() for part in text.split(","))):
        match = FAULT.fullmatch(word)
        if match is None or not _is_meant(match):
            wrong.append(word)
            continue
        kind = FaultKind(match["kind"])
        if match["percent"]:
            chances[kind] = int(match["percent"]) / 100
        else:
            fault = Fault(kind, int(match["seconds"] or Fault(kind).seconds), int(match["state"] or Fault(kind).state))
            spin = int(match["spin"])
            by_spin[spin] = (*by_spin.get(spin, ()), fault)
    if wrong:
        raise FaultPlanError(wrong)
    return FaultPlan(by_spin=by_spin, chances=chances)


def _is_meant(match: re.Match[str]) -> bool:
    """Whether a word of the right shape names a kind, and a spin or a chance that there can be."""
    percent, spin = match["percent"], match["spin"]
    within = int(percent) <= CERTAIN_PERCENT if percent else int(spin) >= FIRST_SPIN
    return within and match["kind"] in set(FaultKind)


def damage(kind: FaultKind, line: bytes, rng: random.Random) -> bytes:
    """A line, with its end, as it comes out of a bad cable."""
    body = line.removesuffix(b"\r\n")
    match kind:
        case FaultKind.GLUED:
            return body[:7] + b"*X;" + line
        case FaultKind.TRUNCATED:
            return body[: rng.randrange(len(body) // 2, len(body))] + b"\r\n"
        case FaultKind.FRAGMENTS:
            return line[-rng.randrange(3, 8) :]
        case FaultKind.DOUBLED:
            return line + line
        case FaultKind.BIT_NOISE:
            at = rng.randrange(len(line))
            return line[:at] + bytes([line[at] ^ 1 << rng.randrange(8)]) + line[at + 1 :]
        case _:
            return line
