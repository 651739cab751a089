"""The posts: who sits where, with how much credit, and every cent in and out of each post.

A stake leaves the credit at once. What an absent player leaves behind is consigned, and becomes an orphan (register
11 bis) when nobody has claimed it by the end of the séance. At every fact, for each post and for all:

    credited - staked + returned + won = credit at the post + paid out + consigned
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from games.money import Cents
from games.refusals import Refusal
from games.rules import Fact
from games.seance import SeanceOpened
from games.signals import Person, Stake

# ── Facts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerSat(Fact):
    """A player took a post. ``player`` is a salted digest."""

    KIND: ClassVar[str] = "fr.table.player.sat.v1"
    post: int
    request: str
    sitting: int
    player: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditAdded(Fact):
    """The desk loaded a post; ``credit`` is the credit after it."""

    KIND: ClassVar[str] = "fr.table.credit.added.v1"
    post: int
    sitting: int
    cents: Cents
    credit: Cents
    by: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class StakesPlaced(Fact):
    """Stakes were placed and debited. ``origin`` is "bets", "random", or the announcement's name."""

    KIND: ClassVar[str] = "fr.table.stakes.placed.v1"
    post: int
    request: str
    round: int
    origin: str
    stakes: tuple[Stake, ...]
    cents: Cents
    credit: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class StakesTakenBack(Fact):
    """All stakes of a post came back to its credit while bets were open."""

    KIND: ClassVar[str] = "fr.table.stakes.taken_back.v1"
    post: int
    request: str
    round: int
    cents: Cents
    credit: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumChosen(Fact):
    """The player fixed the value of his pieces."""

    KIND: ClassVar[str] = "fr.table.post.minimum.chosen.v1"
    post: int
    request: str
    cents: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class PostSettled(Fact):
    """A post's result of a round: stake given back, winnings on top, credit after both."""

    KIND: ClassVar[str] = "fr.table.post.settled.v1"
    post: int
    round: int
    staked: Cents
    returned: Cents
    won: Cents
    credit: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class PostRecredited(Fact):
    """A void round gave a post all its stakes back."""

    KIND: ClassVar[str] = "fr.table.post.recredited.v1"
    post: int
    round: int
    cents: Cents
    credit: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerPaidOut(Fact):
    """A player left the post and is owed ``cents`` at the desk, under the pay-out number ``payout``.

    ``request`` is empty when the closing of the séance, not the player, ended the sitting.
    """

    KIND: ClassVar[str] = "fr.table.player.paid_out.v1"
    post: int
    request: str
    sitting: int
    payout: int
    cents: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerSteppedAway(Fact):
    """A player is away; the house's limit runs. ``request`` is empty when a director noted it."""

    KIND: ClassVar[str] = "fr.table.player.stepped_away.v1"
    post: int
    request: str
    sitting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerCameBack(Fact):
    """The player is back at his post."""

    KIND: ClassVar[str] = "fr.table.player.came_back.v1"
    post: int
    request: str
    sitting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsenceExceeded(Fact):
    """A player has been away for longer than the house allows: a director may suspend him."""

    KIND: ClassVar[str] = "fr.table.absence.exceeded.v1"
    post: int
    sitting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PostSuspended(Fact):
    """A director suspended an absent player. Stakes in play run to their result first."""

    KIND: ClassVar[str] = "fr.table.post.suspended.v1"
    post: int
    sitting: int
    by: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeConsigned(Fact):
    """What a suspended player had on the post is consigned under a number, and the place is free."""

    KIND: ClassVar[str] = "fr.table.stake.consigned.v1"
    post: int
    sitting: int
    consignment: int
    cents: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsignmentReleased(Fact):
    """The player claimed a consigned amount before the séance ended; the desk pays it."""

    KIND: ClassVar[str] = "fr.table.consignment.released.v1"
    consignment: int
    post: int
    cents: Cents
    payout: int
    by: Person


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanRecorded(Fact):
    """A consigned amount that nobody claimed goes to the register of orphans (modèle 11 bis)."""

    KIND: ClassVar[str] = "fr.table.orphan.recorded.v1"
    consignment: int
    post: int
    cents: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefused(Fact):
    """A player's request was refused, and why. ``bet`` names the stake at fault, where there is one."""

    KIND: ClassVar[str] = "fr.table.post.request.refused.v1"
    post: int
    request: str
    asked: str
    reason: Refusal
    bet: str = ""


# ── State ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """Who sits at a post. ``stakes`` are those in play, by bet; ``minimum`` is 0 until the player fixes one."""

    sitting: int
    digest: str
    credit: Cents = Cents(0)
    minimum: Cents = Cents(0)
    stakes: Mapping[str, Cents] = field(default_factory=dict)
    staked: Cents = Cents(0)
    away: bool = False
    away_too_long: bool = False
    suspended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Meters:
    """Perpetual totals in cents; they never go back."""

    credited: Cents = Cents(0)
    staked: Cents = Cents(0)
    returned: Cents = Cents(0)
    won: Cents = Cents(0)
    paid_out: Cents = Cents(0)
    consigned: Cents = Cents(0)

    def __add__(self, other: "Meters") -> "Meters":
        return Meters(
            credited=Cents(self.credited + other.credited),
            staked=Cents(self.staked + other.staked),
            returned=Cents(self.returned + other.returned),
            won=Cents(self.won + other.won),
            paid_out=Cents(self.paid_out + other.paid_out),
            consigned=Cents(self.consigned + other.consigned),
        )

    def __sub__(self, other: "Meters") -> "Meters":
        return Meters(
            credited=Cents(self.credited - other.credited),
            staked=Cents(self.staked - other.staked),
            returned=Cents(self.returned - other.returned),
            won=Cents(self.won - other.won),
            paid_out=Cents(self.paid_out - other.paid_out),
            consigned=Cents(self.consigned - other.consigned),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A post: its meters, and its player if one sits there."""

    meters: Meters = Meters()
    player: Player | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consignment:
    """Money put aside for an absent player."""

    post: int
    cents: Cents


@dataclass(frozen=True, slots=True, kw_only=True)
class Posts:
    """All posts by casino number, and what is consigned. ``at_opening``: the meters when the séance opened."""

    by_number: Mapping[int, Post]
    consigned: Mapping[int, Consignment] = field(default_factory=dict)
    sittings: int = 0
    payouts: int = 0
    consignments: int = 0
    at_opening: Meters = Meters()

    def player(self, number: int) -> Player | None:
        """The player at a post, if any."""
        post = self.by_number.get(number)
        return post.player if post else None

    def seated(self, number: int) -> Player:
        """The player at a post that is known to be occupied."""
        player = self.by_number[number].player
        assert player is not None, f"post {number} was checked to be occupied"
        return player

    @property
    def all_free(self) -> bool:
        """Whether nobody sits anywhere."""
        return not any(post.player for post in self.by_number.values())

    def players(self) -> tuple[tuple[int, Player], ...]:
        """Every occupied post, in order of number."""
        return tuple((number, post.player) for number, post in sorted(self.by_number.items()) if post.player)

    def total(self) -> Meters:
        """The general counter: the sum of all posts."""
        return sum((post.meters for post in self.by_number.values()), Meters())


def initial(posts: int) -> Posts:
    """``posts`` free posts, numbered from 1."""
    return Posts(by_number={number: Post() for number in range(1, posts + 1)})


# ── Folding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def evolve(posts: Posts, fact: Fact) -> Posts:
    """Fold a fact of the posts; facts of others leave them as they are."""
    match fact:
        case StakesPlaced(post=number, stakes=stakes, cents=cents, credit=credit):
            player = posts.seated(number)
            in_play = dict(player.stakes)
            for stake in stakes:
                in_play[stake.bet] = Cents(in_play.get(stake.bet, 0) + stake.cents)
            staking = replace(player, credit=credit, stakes=in_play, staked=Cents(player.staked + cents))
            return _put(posts, number, staking, Meters(staked=cents))
        case StakesTakenBack(post=number, cents=cents, credit=credit):
            cleared = replace(posts.seated(number), credit=credit, stakes={}, staked=Cents(0))
            return _put(posts, number, cleared, Meters(returned=cents))
        case PostSettled(post=number, returned=returned, won=won, credit=credit):
            settled = replace(posts.seated(number), credit=credit, stakes={}, staked=Cents(0))
            return _put(posts, number, settled, Meters(returned=returned, won=won))
        case PostRecredited(post=number, cents=cents, credit=credit):
            cleared = replace(posts.seated(number), credit=credit, stakes={}, staked=Cents(0))
            return _put(posts, number, cleared, Meters(returned=cents))
        case PlayerSat(post=number, sitting=sitting, player=digest):
            return replace(_put(posts, number, Player(sitting=sitting, digest=digest)), sittings=sitting)
        case CreditAdded(post=number, cents=cents, credit=credit):
            return _put(posts, number, replace(posts.seated(number), credit=credit), Meters(credited=cents))
        case MinimumChosen(post=number, cents=cents):
            return _put(posts, number, replace(posts.seated(number), minimum=cents))
        case PlayerPaidOut(post=number, payout=payout, cents=cents):
            return replace(_put(posts, number, None, Meters(paid_out=cents)), payouts=payout)
        case PlayerSteppedAway(post=number):
            return _put(posts, number, replace(posts.seated(number), away=True))
        case PlayerCameBack(post=number):
            return _put(posts, number, replace(posts.seated(number), away=False, away_too_long=False))
        case AbsenceExceeded(post=number):
            return _put(posts, number, replace(posts.seated(number), away_too_long=True))
        case PostSuspended(post=number):
            return _put(posts, number, replace(posts.seated(number), suspended=True))
        case StakeConsigned(post=number, consignment=consignment, cents=cents):
            freed = _put(posts, number, None, Meters(consigned=cents))
            aside = {**posts.consigned, consignment: Consignment(post=number, cents=cents)}
            return replace(freed, consigned=aside, consignments=consignment)
        case ConsignmentReleased(consignment=consignment, payout=payout):
            return replace(posts, consigned=_without(posts.consigned, consignment), payouts=payout)
        case OrphanRecorded(consignment=consignment):
            return replace(posts, consigned=_without(posts.consigned, consignment))
        case SeanceOpened():
            return replace(posts, at_opening=posts.total())
        case _:
            return posts


def _put(posts: Posts, number: int, player: Player | None, moved: Meters | None = None) -> Posts:
    meters = posts.by_number[number].meters
    post = Post(meters=meters + moved if moved else meters, player=player)
    return replace(posts, by_number={**posts.by_number, number: post})


def _without(consigned: Mapping[int, Consignment], gone: int) -> dict[int, Consignment]:
    return {number: consignment for number, consignment in consigned.items() if number != gone}
