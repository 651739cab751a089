"""Everything that may come in: what devices observe, what persons order, what players ask for.

Names say what was seen or asked, never what it means for the game: that is for ``decide``.
"""

from dataclasses import dataclass
from enum import StrEnum

from games.money import Cents
from games.rules import Input

# ── Observations: a device saw ────────────────────────────────────────────────────────────────────────────────────────


class Direction(StrEnum):
    """Which way the rotor (plateau) turns, seen from above."""

    CLOCKWISE = "clockwise"
    COUNTERCLOCKWISE = "counterclockwise"

    @property
    def opposite(self) -> "Direction":
        """The other way."""
        return Direction.COUNTERCLOCKWISE if self is Direction.CLOCKWISE else Direction.CLOCKWISE


@dataclass(frozen=True, slots=True, kw_only=True)
class BallLaunched(Input):
    """The ball runs in the rim and the rotor's direction is known. ``spin`` is the wheel's own spin number."""

    spin: int
    direction: Direction
    rotor_mrpm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BallSlowed(Input):
    """The ball slowed under the threshold: the wheel calls "rien ne va plus"."""

    spin: int
    direction: Direction
    rotor_mrpm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PocketDetected(Input):
    """The wheel found the ball in ``pocket`` ("0", "00", "1" … "36"), twice or by two independent ways."""

    spin: int
    pocket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PocketMissed(Input):
    """After a gap in the link the wheel reports that spin ``spin`` had ended in ``pocket`` while nobody listened.

    It is a hint for the persons who resolve the incident, never a result by itself.
    """

    spin: int
    pocket: str


class WheelFaultKind(StrEnum):
    """What may be wrong with a wheel (wheel notes, 2.5)."""

    BALL_MISSING = "ball_missing"  # no ball, or it was taken out
    BALL_WITH_ROTOR = "ball_with_rotor"  # it turns the same way as the rotor
    LAUNCH_FAILED = "launch_failed"
    SENSOR_FAULT = "sensor_fault"  # sensor, motor or encoder
    ROTOR_SPEED = "rotor_speed"  # outside the configured range
    NUMBER_CONTRADICTED = "number_contradicted"  # two readings of one spin disagree
    PARAMETER_DRIFT = "parameter_drift"  # the wheel's stored parameters are not the registered ones
    STOPPED = "stopped"  # the wheel switched itself off
    SELF_TEST = "self_test"  # its own test reported a code
    BALL_NOT_IN_TRACK = "ball_not_in_track"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFaultSeen(Input):
    """A fault condition began. It is one input however long the condition lasts."""

    fault: WheelFaultKind
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFaultCleared(Input):
    """The condition is gone; ``lasted_ms`` says for how long it stood."""

    fault: WheelFaultKind
    lasted_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelVerified(Input):
    """The wheel's identity and parameters were read back and compared with the registered ones.

    ``differences`` is empty when all agree; each is one readable line, ``name: is …, must be …``.
    """

    firmware: str
    pockets: int
    mode: int
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLost(Input):
    """Nothing was heard from ``device`` for ``silent_ms``, or its port vanished."""

    device: str
    silent_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRestored(Input):
    """``device`` is heard again, at its natural pace."""

    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonPressed(Input):
    """One debounced press of a panel button, by the name on the cabinet."""

    button: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTurned(Input):
    """A key switch ("croupier" or "director") was turned on or off."""

    key: str
    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFaultSeen(Input):
    """A panel input misbehaves: stuck, bouncing without end, or its chip is gone."""

    name: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStepped(Input):
    """The wall clock jumped by ``by_ms`` against the monotonic one."""

    by_ms: int
    quality: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRunsLow(Input):
    """Free space fell under a threshold: ``level`` is "warn", "no_new_round" or "close"."""

    level: str
    free_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalDoubted(Input):
    """The central mirror holds other entries than this journal, or more of them: ``code`` says which."""

    code: str
    detail: str


# ── Orders: a person asked, by a signed order or by a key ─────────────────────────────────────────────────────────────


class Role(StrEnum):
    """What a person may do."""

    DIRECTOR = "director"  # membre du comité de direction
    CROUPIER = "croupier"
    CASHIER = "cashier"  # caissier
    TECHNICIAN = "technician"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who acts: the badge of a signed order, or the physical key (``badge`` is then "key:<name>")."""

    badge: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Input):
    """Base of all orders. ``evidence`` is the signed note that carried it, so that anyone can check the signature.

    It is empty when a physical key acted.
    """

    by: Person
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutPostsInService(Order):
    """The croupier puts the posts in service; a director then validates the opening."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSeance(Order):
    """Validate the opening; with a launcher also put the posts in service.

    ``seance`` is the new séance's name, date and number.
    """

    seance: str
    rules_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSeance(Order):
    """Validate the closing of the séance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceLast(Order):
    """Announce the three last balls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBetting(Order):
    """Say "faites vos jeux" (croupier conduct), or let the next automatic round begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNoMoreBets(Order):
    """Say "rien ne va plus"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmNumber(Order):
    """The croupier saw the ball in the detected pocket and announces it."""

    pocket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareIncident(Order):
    """Go to manual mode."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnterNumber(Order):
    """In manual mode: the number read in the cylinder by this person."""

    pocket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttestPresence(Order):
    """In manual mode: the director is at the table and agrees to what was entered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoidRound(Order):
    """In manual mode: the round is void and every stake comes back."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartGame(Order):
    """After an incident was resolved: play goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditPost(Order):
    """The cash desk loads a post with money received from the player."""

    post: int
    cents: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteAbsence(Order):
    """A director sees that the player of this post is away: the house's limit starts to run."""

    post: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendPost(Order):
    """Suspend a player who is absent for longer than the house allows, and consign what is on the post."""

    post: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseConsigned(Order):
    """Give a consigned amount back to the player who claims it before the séance ends."""

    consignment: int


# ── Post requests: a player asked, from a post ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class PostRequest(Input):
    """Base of what a post sends. ``request`` is the post's own identifier of the message; it is answered once."""

    post: int
    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sit(PostRequest):
    """A player takes the post. ``player`` is a salted digest of what identifies him to the house, never a name."""

    player: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """An amount on one bet of the layout, by the bet's name ("plein-17", "rouge" …)."""

    bet: str
    cents: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceStakes(PostRequest):
    """Stake on table bets, all or nothing, in round ``round``."""

    round: int
    stakes: tuple[Stake, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceAnnouncement(PostRequest):
    """Stake a classic announcement ("voisins-du-zero", "finale-6" …) with ``cents`` on each piece."""

    round: int
    announcement: str
    cents: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRandom(PostRequest):
    """Stake ``cents`` en plein on each of ``pockets``, a random combination that the device drew for the post."""

    round: int
    cents: Cents
    pockets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeBack(PostRequest):
    """Take back all stakes of this post in round ``round`` while bets are open."""

    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseMinimum(PostRequest):
    """The player fixes the value of his pieces."""

    cents: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class CashOut(PostRequest):
    """The "paiement" key: leave the post and be paid at the desk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAway(PostRequest):
    """The player leaves the post for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComeBack(PostRequest):
    """The player is back at the post."""
