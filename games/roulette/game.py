"""The electronic roulette as one game: every input finds its decision here, and the public board is drawn from it.

An order given by a physical button is the same order as a signed one; only the person differs ("key:croupier",
"key:director"), and the key switch must be turned on.
"""

from collections.abc import Mapping
from typing import Any

from games import custody as custody_
from games import health as health_
from games import persons as persons_
from games import posts as posts_
from games import sitting
from games import statement as statement_
from games.custody import EntriesRestored, EpochProclaimed, KeyReplaced, RetentionAsked, VerificationEnded
from games.opening import decide_closing, decide_last, decide_opening, decide_service
from games.persons import EnrolPerson, RevokePerson
from games.posts import Posts
from games.refusals import Refusal
from games.roulette import betting, incident, spin
from games.roulette.announcements import announcement_names
from games.roulette.coup import OPEN_PHASES, Phase, RouletteState, evolve
from games.roulette.rules import Conduct, RouletteRules
from games.roulette.settlement import voiding
from games.rules import NOTHING, Decision, Fact, Input, Lamp, SetTimer, Started, Stopping, TimerFired
from games.seance import KeySwitched, SeancePhase, TableStarted, TableStopped, refuse
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
    EnterNumber,
    KeyTurned,
    LinkRestored,
    NoteAbsence,
    OpenBetting,
    OpenSeance,
    Order,
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
    StepAway,
    SuspendPost,
    TakeBack,
    VoidRound,
)
from games.statement import CertifyStatement

DIRECTOR_BUTTONS = ("ouverture", "relance", "fermeture")
"""Buttons that only a director's key makes work, whoever conducts the game."""

STATEMENT_ROLES = (Role.DIRECTOR,)
"""Whose signatures the statement of a séance needs, one person each. Modèle 7, for a rake, needs a cashier."""

PHASE_TEXT: Mapping[Phase, str] = {
    Phase.IDLE: "Patientez",
    Phase.BETTING: "Faites vos jeux",
    Phase.NO_MORE_BETS: "Rien ne va plus",
    Phase.VERIFYING: "Rien ne va plus",
    Phase.MANUAL: "Incident : jeu suspendu",
    Phase.HALTED: "Jeu suspendu",
}
"""What the public board says. Text for people: the protocol field is ``phase``."""


class Roulette:
    """One roulette under its house rules (the ``Game`` protocol)."""

    def __init__(self, rules: RouletteRules) -> None:
        self.rules = rules
        self._maxima = {str(bet.kind): bet.max_stake(rules.minimum) for bet in rules.bets.values()}
        self._announcements = announcement_names(rules.wheel, rules.announcements, rules.zero_combinations)

    def initial(self) -> RouletteState:
        """An empty table, closed."""
        return RouletteState(posts=posts_.initial(self.rules.posts))

    def evolve(self, state: RouletteState, fact: Fact) -> RouletteState:
        """Fold one certified fact."""
        return evolve(state, fact)

    def round_closed(self, state: RouletteState) -> bool:
        """Whether no stake can be in play."""
        return state.coup.phase not in OPEN_PHASES

    def decide(self, state: RouletteState, signal: Input) -> Decision:
        """Answer one input."""
        match signal:
            case PlaceStakes() | PlaceAnnouncement() | PlaceRandom() | TakeBack() | ChooseMinimum():
                return betting.decide(self.rules, state, signal)
            case ButtonPressed():
                decision = self._decide_button(state, signal)
            case _:
                decision = self._decide(state, signal)
        return self._schedule(state, signal, decision)

    def _decide(self, state: RouletteState, signal: Input) -> Decision:
        rules = self.rules
        match signal:
            case Order(by=by) if state.persons.revoked(by):
                return refuse(signal, Refusal.SIGNER_REVOKED)  # it was taken before the revocation was certified
            case BallLaunched() | BallSlowed() | PocketDetected() | PocketMissed():
                return spin.decide(rules, state, signal)
            case TimerFired(name=name):
                if name.startswith(sitting.ABSENCE):
                    return sitting.decide_timer(state.posts, signal)
                return spin.decide_timer(rules, state, signal)
            case Sit() | CashOut() | StepAway() | ComeBack():
                return sitting.decide_request(state.seance, state.posts, signal, rules.absence_ms)
            case CreditPost() | NoteAbsence() | SuspendPost() | ReleaseConsigned():
                return sitting.decide_order(state.seance, state.posts, signal, rules.absence_ms)
            case Started():
                return self._decide_start(state, signal)
            case Stopping(boot=boot):
                return Decision(facts=(TableStopped(boot=boot),))
            case KeyTurned(key=key, on=on):
                changed = (key in state.seance.keys_on) != on
                return Decision(facts=(KeySwitched(key=key, on=on),)) if changed else NOTHING
            case Order():
                return self._decide_order(state, signal)
            case EntriesRestored() | EpochProclaimed() | KeyReplaced() | VerificationEnded() | RetentionAsked():
                return custody_.decide(state.custody, signal)
            case _:
                condition = health_.decide(state.health, signal)
                if not condition.facts:
                    return NOTHING
                consequence = spin.decide_fault(rules, state, signal)
                back = isinstance(signal, LinkRestored) and signal.device == "wheel" and self.round_closed(state)
                wheel = incident.ready_wheel(state) if back else ()
                return Decision(facts=(*condition.facts, *consequence.facts), requests=(*consequence.requests, *wheel))

    def _decide_order(self, state: RouletteState, order: Order) -> Decision:
        rules, croupier = self.rules, self.rules.conduct is Conduct.CROUPIER
        match order:
            case PutPostsInService():
                return decide_service(state.seance, order, croupier=croupier)
            case OpenSeance():
                verify = rules.verify_wheel
                return decide_opening(
                    state.seance, state.health, state.statements, order, croupier=croupier, verify=verify
                )
            case AnnounceLast():
                return decide_last(state.seance, order, croupier=croupier, round_number=state.coup.round)
            case CloseSeance():
                can_play = not health_.refusals(state.health, verify=rules.verify_wheel)
                return decide_closing(
                    state.seance,
                    state.posts,
                    state.statements.carried,
                    order,
                    round_open=not self.round_closed(state),
                    can_play=can_play,
                )
            case CertifyStatement():
                return statement_.decide(state.statements, order, STATEMENT_ROLES)
            case EnrolPerson() | RevokePerson():
                return persons_.decide(state.persons, order)
            case (
                OpenBetting()
                | CallNoMoreBets()
                | ConfirmNumber()
                | DeclareIncident()
                | EnterNumber()
                | AttestPresence()
                | VoidRound()
                | RestartGame()
            ):
                return incident.decide(rules, state, order)
            case _:
                return refuse(order, Refusal.BUTTON_UNKNOWN)

    def _decide_start(self, state: RouletteState, signal: Started) -> Decision:
        """Whatever was open when the power went is never resumed by guessing.

        Bets still open: nobody can say whether the ball had slowed meanwhile, so the round is void by rule. Bets
        certainly closed: the ball lies in the wheel, and two persons read it.
        """
        facts: list[Fact] = [TableStarted(boot=signal.boot, unclean=signal.unclean)]
        coup = state.coup
        if coup.phase is Phase.BETTING:
            facts += spin.incident(state, "power_cut").facts
            facts += voiding(state.posts, coup.round, "power_cut", None, None)
        elif coup.phase in (Phase.NO_MORE_BETS, Phase.VERIFYING):
            facts += spin.incident(state, "power_cut", hint=coup.detected).facts
        timers = sitting.absence_timers(state.posts, self.rules.absence_ms)
        closed = coup.phase not in (Phase.NO_MORE_BETS, Phase.VERIFYING, Phase.MANUAL)
        wheel = incident.ready_wheel(state) if closed else ()
        return Decision(facts=tuple(facts), requests=(*timers, *wheel))

    def _decide_button(self, state: RouletteState, signal: ButtonPressed) -> Decision:
        croupier = self.rules.conduct is Conduct.CROUPIER and signal.button not in DIRECTOR_BUTTONS
        person = incident.CROUPIER_KEY if croupier else incident.DIRECTOR_KEY
        order = _order_of_button(state, signal, person)
        if order is None:
            return refuse(Order(at_us=signal.at_us, by=person), Refusal.BUTTON_UNKNOWN)
        if person.badge.removeprefix("key:") not in state.seance.keys_on:
            return refuse(order, Refusal.KEY_OFF)
        if signal.button in ("dizaine", "unite"):
            if state.coup.phase is not Phase.MANUAL:
                return refuse(order, Refusal.NO_INCIDENT)
            return incident.dial(self.rules, state, signal.button)
        return self._decide_order(state, order)

    def _schedule(self, state: RouletteState, signal: Input, decision: Decision) -> Decision:
        """With a launcher, ask for the next round whenever the table becomes ready for it."""
        if self.rules.conduct is Conduct.CROUPIER or not decision.facts:
            return decision
        after = state
        for fact in decision.facts:
            after = evolve(after, fact)
        ready = not spin.hindrances(self.rules, after)
        was_ready = not spin.hindrances(self.rules, state) and not isinstance(signal, Started)
        if not ready or was_ready:
            return decision
        timer = SetTimer(name=spin.NEXT_ROUND, round=after.coup.round + 1, after_ms=self.rules.between_ms)
        return Decision(facts=decision.facts, requests=(*decision.requests, timer))

    def board(self, state: RouletteState) -> Mapping[str, Any]:
        """The public display: the rules that must be shown, the phase, and the last numbers."""
        rules, coup = self.rules, state.coup
        return {
            "game": "roulette",
            "wheel": int(rules.wheel),
            "conduct": str(rules.conduct),
            "minimum_cents": rules.minimum,
            "maxima_cents": dict(self._maxima),
            "announcements": list(self._announcements),
            "random_combinations": rules.random_combinations,
            "seance": state.seance.name,
            "seance_phase": str(state.seance.phase),
            "last_left": state.seance.last_left,
            "round": coup.round,
            "phase": str(coup.phase),
            "text": "Table fermée" if state.seance.phase is SeancePhase.CLOSED else PHASE_TEXT[coup.phase],
            "detected": coup.detected if coup.phase is Phase.VERIFYING else "",
            "dialled": coup.dialled if coup.phase is Phase.MANUAL else "",
            "last_numbers": list(state.history),
        }

    def lamps(self, state: RouletteState) -> Mapping[str, Lamp]:
        """The panel's lamps. One blinks when the person whose lamp it is has something to do."""
        phase = state.coup.phase
        return {
            "faites-vos-jeux": Lamp.ON if phase is Phase.BETTING else Lamp.OFF,
            "rien-ne-va-plus": Lamp.ON if phase in (Phase.NO_MORE_BETS, Phase.VERIFYING) else Lamp.OFF,
            "numero": Lamp.BLINKING if phase is Phase.VERIFYING else Lamp.OFF,
            "incident": Lamp.BLINKING if phase is Phase.MANUAL else Lamp.ON if phase is Phase.HALTED else Lamp.OFF,
            "seance": Lamp.ON if state.seance.open else Lamp.OFF,
        }


def _order_of_button(state: RouletteState, pressed: ButtonPressed, by: Person) -> Order | None:
    """The order that a button stands for, or None for one that this game does not have."""
    at_us, coup = pressed.at_us, state.coup
    manual = coup.phase is Phase.MANUAL
    match pressed.button:
        case "mise-en-service":
            return PutPostsInService(at_us=at_us, by=by)
        case "faites-vos-jeux":
            return OpenBetting(at_us=at_us, by=by)
        case "rien-ne-va-plus":
            return CallNoMoreBets(at_us=at_us, by=by)
        case "confirmer":
            pocket = coup.dialled if manual else coup.detected
            return (EnterNumber if manual else ConfirmNumber)(at_us=at_us, by=by, pocket=pocket)
        case "incident":
            return DeclareIncident(at_us=at_us, by=by, reason="bouton")
        case "coup-nul":
            return VoidRound(at_us=at_us, by=by, reason="bouton")
        case "trois-dernieres":
            return AnnounceLast(at_us=at_us, by=by)
        case "relance":
            return RestartGame(at_us=at_us, by=by)
        case "fermeture":
            return CloseSeance(at_us=at_us, by=by)
        case "dizaine" | "unite" | "ouverture":
            return Order(at_us=at_us, by=by)
        case _:
            return None


BUTTONS = (
    "mise-en-service",
    "ouverture",
    "faites-vos-jeux",
    "rien-ne-va-plus",
    "confirmer",
    "incident",
    "coup-nul",
    "dizaine",
    "unite",
    "trois-dernieres",
    "relance",
    "fermeture",
)
"""The buttons of a roulette's panel. "ouverture", its key on, becomes an order in the shell, which knows the date."""


LAMPS = ("faites-vos-jeux", "rien-ne-va-plus", "numero", "incident", "seance")
"""The lamps of a roulette's panel."""


def totals(posts: Posts) -> Mapping[str, int]:
    """The general counter, for status and summaries."""
    total = posts.total()
    return {
        "credited": total.credited,
        "staked": total.staked,
        "returned": total.returned,
        "won": total.won,
        "paid_out": total.paid_out,
        "consigned": total.consigned,
    }
