"""What no fact may ever do, whoever caused it: a ledger beside the game, and the sentences that hold at each fact.

``Watch`` sees the facts as they are folded. Its ledger is made from the facts and never from the game's state, so that
the two can be compared: the money of each post, the stakes in play, the open round, the certified direction.

    IDLE ──► BETTING ──► NO_MORE_BETS ──► VERIFYING ──► IDLE      a round, with or without a croupier's check
                 └──────────┴──────────────┴──► MANUAL ──► HALTED ──► IDLE       an incident, and the restart
"""

import dataclasses
from collections import Counter
from dataclasses import dataclass, field

from games.health import Health
from games.posts import (
    ConsignmentReleased,
    CreditAdded,
    Meters,
    OrphanRecorded,
    PlayerPaidOut,
    PlayerSat,
    PostRecredited,
    PostSettled,
    PostSuspended,
    StakeConsigned,
    StakesPlaced,
    StakesTakenBack,
)
from games.roulette.coup import Phase, RouletteState
from games.roulette.facts import (
    BettingOpened,
    GameRestarted,
    IncidentDeclared,
    NoMoreBetsCalled,
    NumberAnnounced,
    NumberDetected,
    NumberValidated,
    RoundClosed,
    RoundVoided,
    SpinRefused,
    SpinStarted,
)
from games.roulette.layout import pockets
from games.roulette.rules import Conduct, RouletteRules
from games.rules import Fact
from games.seance import LastRoundsAnnounced, SeanceClosed, SeanceOpened, SeancePhase
from games.signals import Direction, Role
from tests.games.article_figures import result

PERMITTED = {
    (Phase.IDLE, Phase.BETTING): BettingOpened,
    (Phase.BETTING, Phase.NO_MORE_BETS): NoMoreBetsCalled,
    (Phase.NO_MORE_BETS, Phase.VERIFYING): NumberDetected,
    (Phase.NO_MORE_BETS, Phase.IDLE): RoundClosed,
    (Phase.VERIFYING, Phase.IDLE): RoundClosed,
    (Phase.BETTING, Phase.MANUAL): IncidentDeclared,
    (Phase.NO_MORE_BETS, Phase.MANUAL): IncidentDeclared,
    (Phase.VERIFYING, Phase.MANUAL): IncidentDeclared,
    (Phase.IDLE, Phase.HALTED): IncidentDeclared,
    (Phase.MANUAL, Phase.HALTED): (RoundClosed, RoundVoided),
    (Phase.HALTED, Phase.IDLE): GameRestarted,
}
"""Which phase may follow which, and the fact that leads there. There is no other way."""


@dataclass
class Watch:
    """A ledger of the facts, and everything that must hold when the next one comes."""

    rules: RouletteRules
    account: dict[int, Counter[str]] = field(default_factory=dict)  # by post: what went in and out, in cents
    in_play: dict[int, Counter[str]] = field(default_factory=dict)  # by post: cents by bet
    consigned: dict[int, int] = field(default_factory=dict)
    claimed: int = 0
    orphans: int = 0
    open_round: int | None = None
    last_round: int = 0
    called: bool = False
    number: str | None = None
    number_allowed: bool = True
    direction: Direction | None = None  # of this round's spin
    last_direction: Direction | None = None  # of the last valid spin
    valid_since_announcement: int | None = None
    payouts: int = 0
    sittings: int = 0
    at_opening: Counter[str] = field(default_factory=Counter)
    went: set[tuple[Phase, Phase]] = field(default_factory=set)

    def fact(self, before: RouletteState, fact: Fact, after: RouletteState) -> None:
        """One fact was folded."""
        self._round(before, fact)
        self._people(before, fact)
        self._money(before, fact)
        self._phase(before, fact, after)
        self._books(before, after)

    def _round(self, before: RouletteState, fact: Fact) -> None:
        match fact:
            case BettingOpened(round=number, direction=direction):
                assert self.open_round is None, "two rounds are open"
                assert number == self.last_round + 1, "a round was left out"
                assert before.seance.phase in (SeancePhase.OPEN, SeancePhase.LAST), "no round may begin in this séance"
                assert may_begin(before.health, self.rules), "a device forbids a new round"
                bound = self.last_direction.opposite if self.last_direction else None
                assert direction == bound, "the direction asked for is not opposite to the last valid one"
                self.open_round = self.last_round = number
                self.called, self.number, self.number_allowed, self.direction = False, None, True, None
            case SpinStarted(round=number, direction=direction):
                assert number == self.open_round, "a spin of another round"
                unseen = before.coup.spin is None and self.number is None
                assert not self.called or unseen, "a second spin after no more bets"
                assert direction is (before.coup.expected or direction), "the rotor must turn the other way"
                self.direction = direction
            case SpinRefused(round=number, direction=direction):
                assert number == self.open_round and not self.called, "a spin after no more bets"
                assert direction is not before.coup.expected, "a spin was refused that turned the right way"
                self.direction = None
            case NoMoreBetsCalled(round=number):
                assert number == self.open_round and not self.called, "no more bets is called once in a round"
                self.called = True
            case IncidentDeclared(round=number, number_allowed=allowed):
                assert number == (self.open_round or 0), "an incident of another round"
                self.number_allowed = allowed
                assert not allowed or self.called, "a number is allowed only after no more bets"
            case NumberAnnounced(round=number, pocket=pocket) | NumberValidated(round=number, pocket=pocket):
                assert number == self.open_round and self.called, "a number before no more bets"
                assert self.number is None, "a second number in one round"
                assert pocket in pockets(self.rules.wheel), "a pocket that the wheel does not have"
                self.number = pocket
            case RoundClosed(round=number, pocket=pocket):
                assert number == self.open_round and self.number == pocket, "a round closed without its number"
                self._ends()
                self.last_direction = self.direction or self.last_direction
                if self.valid_since_announcement is not None:
                    self.valid_since_announcement += number > before.seance.last_after
            case RoundVoided(round=number):
                assert number == self.open_round and self.number is None, "a void round with a number"
                self._ends()
            case _:
                pass

    def _ends(self) -> None:
        assert not any(+bets for bets in self.in_play.values()), "stakes are left in play"
        self.open_round = None

    def _people(self, before: RouletteState, fact: Fact) -> None:
        by_croupier = self.rules.conduct is Conduct.CROUPIER
        match fact:
            case SeanceOpened(by=by) | GameRestarted(by=by) | PostSuspended(by=by):
                assert by.role is Role.DIRECTOR, "what only a director may do"
                self.at_opening = self._total() if isinstance(fact, SeanceOpened) else self.at_opening
            case CreditAdded(by=by):
                assert by.role is Role.CASHIER, "credit that no cashier gave"
            case NumberAnnounced(by=by):
                assert (by is not None) is by_croupier, "a croupier announces the number, or the device does"
            case NumberValidated(croupier=croupier, director=director):
                assert self.number_allowed, "a number is validated that the incident does not allow"
                assert director.role is Role.DIRECTOR, "a number without a director"
                assert (croupier is not None and croupier.role is Role.CROUPIER) is by_croupier, "one person alone"
            case RoundVoided(reason="power_cut", croupier=None, director=None):
                pass
            case RoundVoided(croupier=croupier, director=director):
                assert director is not None and director.role is Role.DIRECTOR, "a void round without a director"
                assert (croupier is not None and croupier.role is Role.CROUPIER) is by_croupier, "one person alone"
            case LastRoundsAnnounced(by=by):
                may = by.role is Role.DIRECTOR or (by_croupier and by.role is Role.CROUPIER)
                assert may, "who announced the last rounds may not"
                assert before.seance.phase is SeancePhase.OPEN, "the last rounds are announced once"
                self.valid_since_announcement = 0
            case SeanceClosed(by=by):
                assert by.role is Role.DIRECTOR, "what only a director may do"
                assert self.open_round is None, "a séance is closed with a round open"
                played = self.valid_since_announcement in (None, 3) or before.seance.empty >= 3
                cannot_play = not may_begin(before.health, self.rules)
                assert played or cannot_play, "a séance is closed before its last rounds"
                self.valid_since_announcement = None
                self._closing_figures(fact)
            case _:
                pass
        assert self.valid_since_announcement in (None, 0, 1, 2, 3), "a fourth round after the announcement"

    def _money(self, before: RouletteState, fact: Fact) -> None:
        match fact:
            case PlayerSat(sitting=sitting):
                assert sitting == self.sittings + 1, "each sitting has its own number"
                self.sittings = sitting
            case CreditAdded(post=post, cents=cents):
                assert cents > 0, "credit of nothing"
                self._move(post, credited=cents)
            case StakesPlaced(post=post, round=number, stakes=stakes, cents=cents):
                assert before.coup.phase is Phase.BETTING and not self.called, "a stake after no more bets"
                assert number == self.open_round, "a stake of another round"
                assert cents == sum(stake.cents for stake in stakes), "the stakes do not add up"
                assert cents <= before.posts.seated(post).credit, "a stake beyond the credit"
                self._move(post, staked=cents)
                for stake in stakes:
                    assert stake.cents > 0, "a stake of nothing"
                    self.in_play.setdefault(post, Counter())[stake.bet] += stake.cents
            case StakesTakenBack(post=post, cents=cents):
                assert not self.called, "a stake was taken back after no more bets"
                self._give_back(post, cents)
            case PostRecredited(post=post, cents=cents):
                self._give_back(post, cents)
            case PostSettled(post=post, staked=staked, returned=returned, won=won):
                assert self.number is not None, "a settlement without a number"
                stakes = self.in_play.pop(post, Counter())
                assert staked == stakes.total() > 0, "a settlement of stakes that are not in play"
                assert (returned, won) == result(int(self.rules.wheel), stakes, self.number), "a wrong pay-out"
                self._move(post, returned=returned, won=won)
            case PlayerPaidOut(post=post, payout=payout, cents=cents):
                self._pays_out(payout)
                assert post not in self.in_play, "a player left with stakes in play"
                self._move(post, paid_out=cents)
            case StakeConsigned(post=post, consignment=number, cents=cents):
                assert number not in self.consigned and post not in self.in_play, "stakes in play were consigned"
                self.consigned[number] = cents
                self._move(post, consigned=cents)
            case ConsignmentReleased(consignment=number, payout=payout, cents=cents):
                self._pays_out(payout)
                assert self.consigned.pop(number, None) == cents, "not what was consigned"
                self.claimed += cents
            case OrphanRecorded(consignment=number, cents=cents):
                assert self.consigned.pop(number, None) == cents, "not what was consigned"
                self.orphans += cents
            case _:
                pass

    def _move(self, post: int, **cents: int) -> None:
        assert min(cents.values()) >= 0, "a negative amount"
        self.account.setdefault(post, Counter()).update(cents)

    def _give_back(self, post: int, cents: int) -> None:
        assert cents == self.in_play.pop(post, Counter()).total(), "a stake came back changed"
        self._move(post, returned=cents)

    def _pays_out(self, payout: int) -> None:
        assert payout == self.payouts + 1, "each pay-out has its own number"
        self.payouts = payout

    def _total(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for account in self.account.values():
            total.update(account)
        return total

    def _closing_figures(self, closed: SeanceClosed) -> None:
        moved = self._total()
        moved.subtract(self.at_opening)
        counted = (closed.credited_cents, closed.staked_cents, closed.returned_cents, closed.won_cents)
        assert counted == tuple(moved[meter] for meter in ("credited", "staked", "returned", "won")), "a wrong figure"
        assert closed.paid_out_cents == moved["paid_out"] + self.claimed, "not what the desk pays"
        assert closed.orphaned_cents == self.orphans, "not what nobody claimed"
        kept = closed.staked_cents - closed.returned_cents - closed.won_cents
        assert closed.credited_cents == kept + closed.paid_out_cents + closed.orphaned_cents, "the books do not balance"
        self.claimed = self.orphans = 0

    def _phase(self, before: RouletteState, fact: Fact, after: RouletteState) -> None:
        here, there = before.coup.phase, after.coup.phase
        if here is not there:
            assert (here, there) in PERMITTED, f"{here} to {there} by {type(fact).__name__}"
            assert isinstance(fact, PERMITTED[here, there]), f"{here} to {there} by {type(fact).__name__}"
            self.went.add((here, there))
        round_open = there in (Phase.BETTING, Phase.NO_MORE_BETS, Phase.VERIFYING, Phase.MANUAL)
        assert (self.open_round is not None) is round_open, "a round is open where none may be"

    def _books(self, before: RouletteState, after: RouletteState) -> None:
        seated = []
        for number, post in after.posts.by_number.items():
            account, stakes = self.account.get(number, Counter()), self.in_play.get(number, Counter())
            meters = {meter.name: getattr(post.meters, meter.name) for meter in dataclasses.fields(Meters)}
            assert meters == {name: account[name] for name in meters}, f"meters of post {number}"
            credit = account["credited"] - account["staked"] + account["returned"] + account["won"]
            credit -= account["paid_out"] + account["consigned"]
            player = post.player
            assert credit == (player.credit if player else 0) >= 0, f"credit of post {number}"
            assert stakes == Counter(player.stakes if player else {}), f"stakes in play at post {number}"
            assert stakes.total() == (player.staked if player else 0), f"stakes in play at post {number}"
            seated += [player.digest] if player else []
        assert len(seated) == len(set(seated)), "one person at two posts"
        aside = {number: consignment.cents for number, consignment in after.posts.consigned.items()}
        assert aside == self.consigned, "money that is put aside"
        moved = after.posts.total() - before.posts.total()
        assert min(getattr(moved, meter.name) for meter in dataclasses.fields(Meters)) >= 0, "a meter went back"


def may_begin(health: Health, rules: RouletteRules) -> bool:
    """Whether the devices allow a round at all."""
    verified = health.verified or not rules.verify_wheel
    sound = "wheel" not in health.links_lost and not health.faults and not health.doubt
    return verified and sound and health.storage in ("ok", "warn")
