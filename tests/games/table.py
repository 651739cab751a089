"""A table for tests: the game's own two functions, and a verb for everything that people, players and devices do.

``Table`` decides and folds exactly as the daemon does, without a journal: each verb gives one input to the game and
returns what came of it. It also keeps the timers that the game asked for, so that a test says "the betting time ends"
and fails if nobody had asked for that timer. Nothing here decides anything, and ``Watch`` looks on at each fact.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from games.money import Cents
from games.posts import Player, RequestRefused
from games.refusals import Refusal
from games.roulette import spin
from games.roulette.coup import Phase, RouletteState
from games.roulette.game import Roulette
from games.roulette.layout import Wheel, pockets
from games.roulette.rules import Conduct, RouletteRules
from games.rules import Decision, Fact, Input, Request, SetTimer, Started, TimerFired
from games.seance import OrderRefused
from games.signals import (
    AnnounceLast,
    AttestPresence,
    BallLaunched,
    BallSlowed,
    ButtonPressed,
    CallNoMoreBets,
    CashOut,
    ChooseMinimum,
    CloseSeance,
    ComeBack,
    ConfirmNumber,
    CreditPost,
    DeclareIncident,
    Direction,
    EnterNumber,
    KeyTurned,
    LinkLost,
    LinkRestored,
    NoteAbsence,
    OpenBetting,
    OpenSeance,
    Person,
    PlaceAnnouncement,
    PlaceRandom,
    PlaceStakes,
    PocketDetected,
    PocketMissed,
    PutPostsInService,
    ReleaseConsigned,
    RestartGame,
    Role,
    Sit,
    Stake,
    StepAway,
    StorageRunsLow,
    SuspendPost,
    TakeBack,
    VoidRound,
    WheelFaultCleared,
    WheelFaultKind,
    WheelFaultSeen,
    WheelVerified,
)
from tests.games.watch import Watch

DIRECTOR = Person(badge="D-01", role=Role.DIRECTOR)
CROUPIER = Person(badge="C-07", role=Role.CROUPIER)
CASHIER = Person(badge="K-03", role=Role.CASHIER)
TECHNICIAN = Person(badge="T-09", role=Role.TECHNICIAN)
PEOPLE: Mapping[Role, Person] = {person.role: person for person in (DIRECTOR, CROUPIER, CASHIER, TECHNICIAN)}

EURO = 100
"""One euro in cents."""

SEANCE = "2026-11-30/1"
RULES_SHA256 = "a" * 64

F = TypeVar("F", bound=Fact)
R = TypeVar("R", bound=Request)


def others(*roles: Role) -> list[Person]:
    """Everybody but those who may."""
    return [person for role, person in PEOPLE.items() if role not in roles]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one input."""

    facts: tuple[Fact, ...]
    requests: tuple[Request, ...]

    def every(self, kind: type[F]) -> list[F]:
        """The facts of this kind, in order."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def the(self, kind: type[F]) -> F:
        """The only fact of this kind."""
        found = self.every(kind)
        assert len(found) == 1, f"{len(found)} facts of {kind.__name__} among {self.kinds}"
        return found[0]

    def asked(self, kind: type[R]) -> list[R]:
        """The requests of this kind, in order."""
        return [request for request in self.requests if isinstance(request, kind)]

    @property
    def kinds(self) -> list[str]:
        """The names of the facts, in order."""
        return [type(fact).__name__ for fact in self.facts]

    @property
    def refusal(self) -> Refusal | None:
        """Why an order or a player's request was refused, when that is all that came of it."""
        match self.facts:
            case (OrderRefused(reason=reason) | RequestRefused(reason=reason),):
                return reason
            case _:
                return None

    @property
    def reasons(self) -> tuple[str, ...]:
        """All the reasons of a refused order."""
        return self.the(OrderRefused).reasons


class Table:
    """A roulette, its facts so far, and the timers that run. ``rules`` go to ``RouletteRules`` as they are."""

    def __init__(
        self, conduct: Conduct = Conduct.CROUPIER, wheel: Wheel = Wheel.SINGLE_ZERO, *, posts: int = 3, **rules: Any
    ) -> None:
        self.rules = RouletteRules(
            conduct=conduct, wheel=wheel, posts=posts, **{"minimum": Cents(EURO), "announcements": frozenset(), **rules}
        )
        self.game = Roulette(self.rules)
        self.state: RouletteState = self.game.initial()
        self.facts: list[Fact] = []
        self.timers: dict[str, SetTimer] = {}
        self.last = Outcome((), ())
        self.watch = Watch(self.rules)
        self._now_us = 0
        self._spin = 0

    # ── The two functions ─────────────────────────────────────────────────────────────────────────────────────────────

    def hears(self, kind: type[Input], **fields: Any) -> Outcome:
        """Give one input to the game and fold what it decides."""
        self._now_us += 1_000
        signal = kind(at_us=self._now_us, **fields)
        before = repr(self.state)
        decision: Decision = self.game.decide(self.state, signal)
        assert self.game.decide(self.state, signal) == decision, f"two decisions on {signal}"
        assert repr(self.state) == before, f"deciding {signal} changed the state"
        for fact in decision.facts:
            earlier, self.state = self.state, self.game.evolve(self.state, fact)
            self.facts.append(fact)
            self.watch.fact(earlier, fact, self.state)
        for request in decision.requests:
            if isinstance(request, SetTimer):
                self.timers[request.name] = request
        self.last = Outcome(decision.facts, decision.requests)
        return self.last

    def folded_again(self) -> RouletteState:
        """The state that another process makes of the same facts."""
        state = self.game.initial()
        for fact in self.facts:
            state = self.game.evolve(state, fact)
        return state

    def loses_power(self) -> Outcome:
        """The power fails and comes back: timers are gone, and the state is what the facts say."""
        self.timers.clear()
        self.state = self.folded_again()
        return self.hears(Started, boot="boot-2", unclean=True)

    # ── What can be read ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def phase(self) -> Phase:
        return self.state.coup.phase

    @property
    def round(self) -> int:
        return self.state.coup.round

    @property
    def launcher(self) -> bool:
        return self.rules.conduct is Conduct.LAUNCHER

    @property
    def conductor(self) -> Person:
        """Who conducts the game: the croupier, or with a launcher the director."""
        return DIRECTOR if self.launcher else CROUPIER

    def player(self, post: int) -> Player | None:
        return self.state.posts.player(post)

    def credit(self, post: int) -> int:
        """The credit at an occupied post, in cents."""
        return self.state.posts.seated(post).credit

    def staked(self, post: int) -> int:
        """What is in play at an occupied post, in cents."""
        return self.state.posts.seated(post).staked

    def every(self, kind: type[F]) -> list[F]:
        """All facts of this kind since the beginning."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    # ── The house ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def puts_posts_in_service(self, by: Person = CROUPIER) -> Outcome:
        return self.hears(PutPostsInService, by=by)

    def opens_seance(self, by: Person = DIRECTOR, seance: str = SEANCE) -> Outcome:
        return self.hears(OpenSeance, by=by, seance=seance, rules_sha256=RULES_SHA256)

    def announces_last(self, by: Person | None = None) -> Outcome:
        return self.hears(AnnounceLast, by=by or self.conductor)

    def closes_seance(self, by: Person = DIRECTOR) -> Outcome:
        return self.hears(CloseSeance, by=by)

    def says_faites_vos_jeux(self, by: Person | None = None) -> Outcome:
        return self.hears(OpenBetting, by=by or self.conductor)

    def says_rien_ne_va_plus(self, by: Person | None = None) -> Outcome:
        return self.hears(CallNoMoreBets, by=by or self.conductor)

    def confirms(self, pocket: str, by: Person | None = None) -> Outcome:
        return self.hears(ConfirmNumber, by=by or self.conductor, pocket=pocket)

    def declares_incident(self, by: Person | None = None, reason: str = "seen") -> Outcome:
        return self.hears(DeclareIncident, by=by or self.conductor, reason=reason)

    def enters(self, pocket: str, by: Person | None = None) -> Outcome:
        return self.hears(EnterNumber, by=by or self.conductor, pocket=pocket)

    def voids(self, by: Person | None = None, reason: str = "unreadable") -> Outcome:
        return self.hears(VoidRound, by=by or self.conductor, reason=reason)

    def attests(self, by: Person = DIRECTOR) -> Outcome:
        return self.hears(AttestPresence, by=by)

    def restarts(self, by: Person = DIRECTOR) -> Outcome:
        return self.hears(RestartGame, by=by)

    def credits(self, post: int, cents: int, by: Person = CASHIER) -> Outcome:
        return self.hears(CreditPost, by=by, post=post, cents=cents)

    def notes_absence(self, post: int, by: Person = DIRECTOR) -> Outcome:
        return self.hears(NoteAbsence, by=by, post=post)

    def suspends(self, post: int, by: Person = DIRECTOR) -> Outcome:
        return self.hears(SuspendPost, by=by, post=post)

    def releases(self, consignment: int, by: Person = CASHIER) -> Outcome:
        return self.hears(ReleaseConsigned, by=by, consignment=consignment)

    def turns_key(self, key: str, *, on: bool = True) -> Outcome:
        return self.hears(KeyTurned, key=key, on=on)

    def presses(self, button: str) -> Outcome:
        return self.hears(ButtonPressed, button=button)

    # ── The players ───────────────────────────────────────────────────────────────────────────────────────────────────

    def asks(self, kind: type[Input], post: int, **fields: Any) -> Outcome:
        """One message from a post."""
        return self.hears(kind, post=post, request=f"r{self._now_us}", **fields)

    def sits(self, post: int, player: str = "anna", cents: int = 0) -> Outcome:
        """A player sits down, and the desk loads the post when ``cents`` are given."""
        sat = self.asks(Sit, post, player=player)
        return self.credits(post, cents) if cents else sat

    def stakes(self, post: int, bets: Mapping[str, int], *, of_round: int | None = None) -> Outcome:
        """Stakes in cents by bet, in the current round unless told otherwise."""
        stakes = tuple(Stake(bet=bet, cents=Cents(cents)) for bet, cents in bets.items())
        return self.asks(PlaceStakes, post, round=self.round if of_round is None else of_round, stakes=stakes)

    def announces(self, post: int, announcement: str, cents: int) -> Outcome:
        return self.asks(PlaceAnnouncement, post, round=self.round, announcement=announcement, cents=cents)

    def stakes_at_random(self, post: int, drawn: tuple[str, ...], cents: int) -> Outcome:
        return self.asks(PlaceRandom, post, round=self.round, cents=cents, pockets=drawn)

    def takes_back(self, post: int) -> Outcome:
        return self.asks(TakeBack, post, round=self.round)

    def chooses_minimum(self, post: int, cents: int) -> Outcome:
        return self.asks(ChooseMinimum, post, cents=cents)

    def cashes_out(self, post: int) -> Outcome:
        return self.asks(CashOut, post)

    def steps_away(self, post: int) -> Outcome:
        return self.asks(StepAway, post)

    def comes_back(self, post: int) -> Outcome:
        return self.asks(ComeBack, post)

    # ── The devices ───────────────────────────────────────────────────────────────────────────────────────────────────

    def ball_runs(self, *, direction: Direction | None = None, same_spin: bool = False) -> Outcome:
        """The ball is launched, against a rotor that turns as the round asks unless ``direction`` says otherwise."""
        self._spin += 0 if same_spin else 1
        return self._wheel_turns(BallLaunched, self._spin, direction)

    def ball_slows(self, *, spin: int | None = None, direction: Direction | None = None) -> Outcome:
        return self._wheel_turns(BallSlowed, self._spin if spin is None else spin, direction)

    def _wheel_turns(self, kind: type[Input], spin_number: int, direction: Direction | None) -> Outcome:
        turned = direction or self.state.coup.expected or Direction.CLOCKWISE
        return self.hears(kind, spin=spin_number, direction=turned, rotor_mrpm=16_000)

    def ball_in(self, pocket: str, *, spin: int | None = None) -> Outcome:
        return self.hears(PocketDetected, spin=self._spin if spin is None else spin, pocket=pocket)

    def ball_was_in(self, pocket: str) -> Outcome:
        """After a gap, the wheel tells how a spin had ended while nobody listened."""
        return self.hears(PocketMissed, spin=self._spin, pocket=pocket)

    def wheel_fails(self, fault: WheelFaultKind, detail: str = "code 4") -> Outcome:
        return self.hears(WheelFaultSeen, fault=fault, detail=detail)

    def wheel_recovers(self, fault: WheelFaultKind) -> Outcome:
        return self.hears(WheelFaultCleared, fault=fault, lasted_ms=900)

    def wheel_falls_silent(self, device: str = "wheel") -> Outcome:
        return self.hears(LinkLost, device=device, silent_ms=2_500)

    def wheel_is_heard(self, device: str = "wheel") -> Outcome:
        return self.hears(LinkRestored, device=device)

    def wheel_is_verified(self, *differences: str) -> Outcome:
        number = int(self.rules.wheel)
        return self.hears(WheelVerified, firmware="2.52", pockets=number, mode=1159, differences=differences)

    def storage_is(self, level: str) -> Outcome:
        return self.hears(StorageRunsLow, level=level, free_bytes=1_000)

    def time_ends(self, timer: str) -> Outcome:
        """A timer that the game asked for comes due."""
        due = self.timers.pop(timer)
        return self.hears(TimerFired, name=timer, round=due.round)

    def timer_fires(self, timer: str, of_round: int) -> Outcome:
        """A timer that nobody waits for any more, or never asked for."""
        return self.hears(TimerFired, name=timer, round=of_round)

    # ── The usual course ──────────────────────────────────────────────────────────────────────────────────────────────

    def opens(self) -> "Table":
        """Open the séance in the usual way."""
        self.wheel_is_verified()
        if not self.launcher:
            self.puts_posts_in_service()
        assert self.opens_seance().refusal is None
        return self

    def seats(self, cents: int = 1_000 * EURO) -> "Table":
        """Anna sits at post 1 and Ben at post 2, each with ``cents``."""
        self.sits(1, "anna", cents)
        self.sits(2, "ben", cents)
        return self

    def begins_round(self) -> Outcome:
        """ "Faites vos jeux", by whoever or whatever says it here."""
        return self.time_ends(spin.NEXT_ROUND) if self.launcher else self.says_faites_vos_jeux()

    def launches(self) -> Outcome:
        """The ball is on its way, the right way."""
        if self.launcher and not self.state.coup.launch_ordered:
            self.time_ends(spin.LAUNCH)
        return self.ball_runs()

    def closes_bets(self) -> Outcome:
        """From open bets to "rien ne va plus" by the wheel."""
        self.launches()
        return self.ball_slows()

    def ends_round(self, pocket: str) -> Outcome:
        """From closed bets to the settlement."""
        fallen = self.ball_in(pocket)
        return fallen if self.launcher else self.confirms(pocket)

    def plays_round(self, pocket: str = "17", stakes: Mapping[int, Mapping[str, int]] | None = None) -> Outcome:
        """One whole round with these stakes by post."""
        self.begins_round()
        for post, bets in (stakes or {}).items():
            assert self.stakes(post, bets).refusal is None
        self.closes_bets()
        return self.ends_round(pocket)

    def reaches(self, phase: Phase, pocket: str = "17") -> "Table":
        """Go from idle to this phase by the usual course; a halt by an incident that voids the round."""
        if phase is not Phase.IDLE:
            self.begins_round()
        if phase in (Phase.NO_MORE_BETS, Phase.VERIFYING, Phase.MANUAL, Phase.HALTED):
            self.closes_bets()
        if phase is Phase.VERIFYING:
            self.ball_in(pocket)
        if phase in (Phase.MANUAL, Phase.HALTED):
            self.declares_incident()
        if phase is Phase.HALTED:
            self.voids()
            if not self.launcher:
                self.attests()
        assert self.phase is phase, f"{self.phase} instead of {phase}"
        return self


def playing(conduct: Conduct = Conduct.CROUPIER, wheel: Wheel = Wheel.SINGLE_ZERO, **rules: Any) -> Table:
    """An open table with two players."""
    return Table(conduct, wheel, **rules).opens().seats()


ALL_POCKETS: Mapping[Wheel, tuple[str, ...]] = {wheel: pockets(wheel) for wheel in Wheel}
