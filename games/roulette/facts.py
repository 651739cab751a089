"""What may be decided at a roulette."""

from dataclasses import dataclass
from typing import ClassVar

from games.money import Cents
from games.rules import Fact, Request
from games.signals import Direction, Person


@dataclass(frozen=True, slots=True, kw_only=True)
class BettingOpened(Fact):
    """ "Faites vos jeux": the round's bets are open. ``direction`` is the one the rotor must take, if it is bound."""

    KIND: ClassVar[str] = "fr.roulette.betting.opened.v1"
    round: int
    direction: Direction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrdered(Fact):
    """The automatic launcher was told to spin."""

    KIND: ClassVar[str] = "fr.roulette.launch.ordered.v1"
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpinStarted(Fact):
    """The ball runs against the rotor, which turns the right way. ``spin`` is the wheel's own number."""

    KIND: ClassVar[str] = "fr.roulette.spin.started.v1"
    round: int
    spin: int
    direction: Direction
    rotor_mrpm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpinRefused(Fact):
    """The rotor turns the same way as at the last valid spin: the ball must be launched again."""

    KIND: ClassVar[str] = "fr.roulette.spin.refused.v1"
    round: int
    spin: int
    direction: Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMoreBetsCalled(Fact):
    """ "Rien ne va plus": from this entry on no stake is accepted.

    ``source`` is "wheel", "croupier", "timer" or "manual"; ``by`` is the person of the last but one or the last.
    """

    KIND: ClassVar[str] = "fr.roulette.no_more_bets.called.v1"
    round: int
    source: str
    by: Person | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberDetected(Fact):
    """The detector indicates the winning number to the croupier, who has not confirmed it yet."""

    KIND: ClassVar[str] = "fr.roulette.number.detected.v1"
    round: int
    spin: int
    pocket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberAnnounced(Fact):
    """The winning number. ``by`` is the croupier who checked the pocket; nobody when the device announces it."""

    KIND: ClassVar[str] = "fr.roulette.number.announced.v1"
    round: int
    pocket: str
    by: Person | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberValidated(Fact):
    """The winning number, validated in manual mode by the croupier in the presence of a director."""

    KIND: ClassVar[str] = "fr.roulette.number.validated.v1"
    round: int
    pocket: str
    croupier: Person | None
    director: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundClosed(Fact):
    """The round is settled: staked = returned + kept; ``won`` was paid on top of what was returned."""

    KIND: ClassVar[str] = "fr.roulette.round.closed.v1"
    round: int
    pocket: str
    posts: int
    staked: Cents
    returned: Cents
    won: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundVoided(Fact):
    """The round is void; ``cents`` went back to the posts. Nobody is named when a rule voided it."""

    KIND: ClassVar[str] = "fr.roulette.round.voided.v1"
    round: int
    reason: str
    cents: Cents
    croupier: Person | None
    director: Person | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationDisregarded(Fact):
    """The wheel reported something that no round was waiting for; it changes nothing.

    ``seen`` is "launch", "slowing", "pocket" or "missed_pocket"; ``phase`` is the table's phase at that moment.
    """

    KIND: ClassVar[str] = "fr.roulette.observation.disregarded.v1"
    seen: str
    spin: int
    pocket: str
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentDeclared(Fact):
    """Manual mode. ``round`` is 0 when none was open.

    ``number_allowed``: a number read in the cylinder may still be validated, since bets were certainly closed before
    it could be known; otherwise the round can only be void. ``hint`` is a number that the wheel reported, if any.
    """

    KIND: ClassVar[str] = "fr.roulette.incident.declared.v1"
    round: int
    cause: str
    detail: str
    number_allowed: bool
    hint: str
    by: Person | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberDialled(Fact):
    """The croupier dials the number to be entered with the panel's buttons."""

    KIND: ClassVar[str] = "fr.roulette.number.dialled.v1"
    pocket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryMade(Fact):
    """In manual mode somebody entered the number, or (``pocket`` empty) that the round be void."""

    KIND: ClassVar[str] = "fr.roulette.entry.made.v1"
    round: int
    pocket: str
    reason: str
    by: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class PresenceAttested(Fact):
    """A director stands at the table and agrees to the entry."""

    KIND: ClassVar[str] = "fr.roulette.presence.attested.v1"
    round: int
    by: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class GameRestarted(Fact):
    """A director lets play go on after an incident."""

    KIND: ClassVar[str] = "fr.roulette.game.restarted.v1"
    by: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWheel(Request):
    """Launch the ball, with the rotor turning this way where the wheel lets one choose."""

    direction: Direction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetWheel(Request):
    """Tell the wheel that its spin is void and that it must be ready to launch again."""
