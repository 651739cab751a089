"""What every game is made of: inputs, facts, requests, and the two functions between them.

    input ──► decide(state, input) ──► facts ──► journal (certified) ──► evolve(state, fact)
                                   └─► requests, done only after the facts are certified

Inputs are *observations* (a device saw), *orders* (a person asked), *post requests* (a player asked) and *timers*.
Each carries the instant at which it arrived; a timer names the round it was set for, so that a late one is inert.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """Anything that may change the table. ``at_us`` is the monotonic clock of this boot, in microseconds."""

    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something decided. It takes effect when the journal has certified it, never before.

    ``KIND`` is the type on the wire, ``fr.<domain>.<subject>.<past participle>.v<version>``; a published version never
    changes its fields.
    """

    KIND: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Something to be done by the controller once the facts of the same decision are certified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to one input: what is now decided, and what must then be done, both in order."""

    facts: tuple[Fact, ...] = ()
    requests: tuple[Request, ...] = ()


NOTHING = Decision()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimer(Request):
    """Ask for a ``TimerFired`` with this name and round after ``after_ms``. A timer of the same name is replaced."""

    name: str
    round: int
    after_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired(Input):
    """A timer that was set for ``round`` came due; the game ignores it when that round is over."""

    name: str
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Input):
    """The daemon started on this journal. ``unclean`` when the last run did not end by an orderly stop."""

    boot: str
    unclean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping(Input):
    """The daemon was asked to stop in good order."""

    boot: str


class Lamp(StrEnum):
    """What a panel lamp shows."""

    OFF = "off"
    ON = "on"
    BLINKING = "blinking"


State = TypeVar("State")


class Game(Protocol[State]):
    """One game under one set of house rules. All methods are pure."""

    def initial(self) -> State:
        """The state before the first fact of the journal."""
        ...

    def decide(self, state: State, signal: Input) -> Decision:
        """Answer one input. Never raises for anything that a person, a player or a device can do."""
        ...

    def evolve(self, state: State, fact: Fact) -> State:
        """Fold one certified fact into the state. Total: a fact that was decided can always be folded."""
        ...

    def board(self, state: State) -> Mapping[str, Any]:
        """The public display: plain JSON values, certified figures only."""
        ...

    def lamps(self, state: State) -> Mapping[str, Lamp]:
        """What each panel lamp shows now, by lamp name."""
        ...

    def round_closed(self, state: State) -> bool:
        """Whether no round is open, so that a snapshot may be taken here."""
        ...
