"""The state of a roulette table, and how facts change it.

    IDLE ─faites vos jeux─► BETTING ─rien ne va plus─► NO_MORE_BETS ─number─► IDLE            (launcher)
                                                       NO_MORE_BETS ─detected─► VERIFYING ─croupier─► IDLE
    BETTING, NO_MORE_BETS, VERIFYING ─incident─► MANUAL ─number or void, two persons─► HALTED ─director─► IDLE
    IDLE ─incident─► HALTED

The rotor's direction must be opposite to that of the last *valid* spin: void rounds and refused launches do not count,
and the memory survives restarts because it is folded from the facts.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from games import custody as custody_
from games import health as health_
from games import persons as persons_
from games import posts as posts_
from games import seance as seance_
from games import statement as statement_
from games.custody import Custody
from games.health import Health, WheelFaultBegan
from games.persons import Persons
from games.posts import Posts
from games.roulette.facts import (
    BettingOpened,
    EntryMade,
    GameRestarted,
    IncidentDeclared,
    LaunchOrdered,
    NoMoreBetsCalled,
    NumberAnnounced,
    NumberDetected,
    NumberDialled,
    NumberValidated,
    ObservationDisregarded,
    RoundClosed,
    RoundVoided,
    SpinRefused,
    SpinStarted,
)
from games.rules import Fact
from games.seance import Seance
from games.signals import Direction, Person, WheelFaultKind
from games.statement import Statements

HISTORY = 20
"""Last numbers on the public display."""


class Phase(StrEnum):
    """Where the table stands."""

    IDLE = "idle"
    BETTING = "betting"
    NO_MORE_BETS = "no_more_bets"
    VERIFYING = "verifying"
    MANUAL = "manual"
    HALTED = "halted"


OPEN_PHASES = (Phase.BETTING, Phase.NO_MORE_BETS, Phase.VERIFYING, Phase.MANUAL)
"""The phases in which a round is open: stakes may be in play."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was entered in manual mode: a pocket, or an empty one for a void round."""

    pocket: str
    reason: str
    by: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """The incident that is being resolved."""

    cause: str
    number_allowed: bool
    hint: str = ""
    entry: Entry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coup:
    """The current round, or the last one while the table is idle."""

    round: int = 0
    phase: Phase = Phase.IDLE
    expected: Direction | None = None
    launch_ordered: bool = False
    spin: int | None = None
    direction: Direction | None = None
    refused_launches: int = 0
    detected: str = ""
    dialled: str = ""
    incident: Incident | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouletteState:
    """Everything that a roulette table knows."""

    posts: Posts
    seance: Seance = Seance()
    health: Health = Health()
    statements: Statements = Statements()
    persons: Persons = Persons()
    custody: Custody = Custody()
    coup: Coup = Coup()
    last_direction: Direction | None = None
    history: tuple[str, ...] = ()


def evolve(state: RouletteState, fact: Fact) -> RouletteState:
    """Fold one fact into the table."""
    posts = posts_.evolve(state.posts, fact)
    if posts is not state.posts:
        # Money facts concern the posts alone, but for the opening, which all parts must see.
        state = replace(state, posts=posts)
        if not isinstance(fact, seance_.SeanceOpened):
            return state
    state = replace(
        state,
        seance=seance_.evolve(state.seance, fact),
        health=health_.evolve(state.health, fact),
        statements=statement_.evolve(state.statements, fact),
        persons=persons_.evolve(state.persons, fact),
        custody=custody_.evolve(state.custody, fact),
        coup=_evolve_coup(state.coup, fact),
    )
    if isinstance(fact, RoundClosed):
        return _count_valid_round(state, fact)
    if isinstance(fact, RoundVoided):
        return replace(state, seance=seance_.round_voided(state.seance, staked=fact.cents > 0))
    return state


def _count_valid_round(state: RouletteState, fact: RoundClosed) -> RouletteState:
    return replace(
        state,
        seance=seance_.round_closed(state.seance, fact.round, staked=fact.staked > 0),
        last_direction=state.coup.direction or state.last_direction,
        history=(fact.pocket, *state.history)[:HISTORY],
    )


def _evolve_coup(coup: Coup, fact: Fact) -> Coup:
    match fact:
        case BettingOpened(round=number, direction=direction):
            return Coup(round=number, phase=Phase.BETTING, expected=direction)
        case LaunchOrdered():
            return replace(coup, launch_ordered=True)
        case SpinStarted(spin=spin, direction=direction):
            return replace(coup, spin=spin, direction=direction)
        case SpinRefused():
            return replace(coup, spin=None, direction=None, refused_launches=coup.refused_launches + 1)
        case WheelFaultBegan(fault=WheelFaultKind.LAUNCH_FAILED):
            return replace(coup, refused_launches=coup.refused_launches + 1)
        case NoMoreBetsCalled():
            return replace(coup, phase=Phase.NO_MORE_BETS)
        case NumberDetected(pocket=pocket):
            return replace(coup, phase=Phase.VERIFYING, detected=pocket)
        case NumberAnnounced(pocket=pocket) | NumberValidated(pocket=pocket):
            return replace(coup, detected=pocket)
        case RoundClosed() | RoundVoided():
            return replace(coup, phase=Phase.HALTED if coup.incident else Phase.IDLE)
        case IncidentDeclared(round=0):
            return replace(coup, phase=Phase.HALTED)
        case IncidentDeclared(cause=cause, number_allowed=allowed, hint=hint):
            return replace(
                coup, phase=Phase.MANUAL, incident=Incident(cause=cause, number_allowed=allowed, hint=hint), dialled=""
            )
        case NumberDialled(pocket=pocket):
            return replace(coup, dialled=pocket)
        case EntryMade(pocket=pocket, reason=reason, by=by) if coup.incident:
            return replace(coup, incident=replace(coup.incident, entry=Entry(pocket=pocket, reason=reason, by=by)))
        case ObservationDisregarded(pocket=pocket) if coup.incident and coup.phase is Phase.MANUAL and pocket:
            return replace(coup, incident=replace(coup.incident, hint=pocket))
        case GameRestarted():
            return replace(coup, phase=Phase.IDLE, incident=None, dialled="")
        case _:
            return coup
