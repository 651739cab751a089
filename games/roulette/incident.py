"""Manual mode: two persons settle what the device could not.

With a croupier: he enters the number that he reads in the cylinder, or that the round be void, and a director present
agrees, by his key or his signed order. With an automatic launcher there is no croupier, and the director acts alone.
Then play is halted until a director restarts it (the law, electronic roulette, 1°).

When it is not certain that bets were closed before the number could be known, no number may be validated: the round can
only be void, and every stake comes back.
"""

from games.refusals import Refusal
from games.roulette.coup import OPEN_PHASES, Entry, Phase, RouletteState
from games.roulette.facts import (
    EntryMade,
    GameRestarted,
    IncidentDeclared,
    NoMoreBetsCalled,
    NumberAnnounced,
    NumberDialled,
    NumberValidated,
    PresenceAttested,
    ResetWheel,
)
from games.roulette.layout import pockets
from games.roulette.rules import Conduct, RouletteRules
from games.roulette.settlement import settlement, voiding
from games.roulette.spin import NUMBER_LIMIT, hindrances, incident, open_betting
from games.rules import Decision, Fact, Request, SetTimer
from games.seance import PowerWheel, VerifyWheel, conducting, lacks_role, refuse
from games.signals import (
    AttestPresence,
    CallNoMoreBets,
    ConfirmNumber,
    DeclareIncident,
    EnterNumber,
    OpenBetting,
    Person,
    RestartGame,
    Role,
    VoidRound,
)

DIRECTOR_KEY = Person(badge="key:director", role=Role.DIRECTOR)
CROUPIER_KEY = Person(badge="key:croupier", role=Role.CROUPIER)

RoundOrder = (
    OpenBetting
    | CallNoMoreBets
    | ConfirmNumber
    | DeclareIncident
    | EnterNumber
    | AttestPresence
    | VoidRound
    | RestartGame
)


def decide(rules: RouletteRules, state: RouletteState, order: RoundOrder) -> Decision:
    """Answer an order about the round."""
    if not state.seance.open:
        return refuse(order, Refusal.SEANCE_CLOSED)
    match order:
        case OpenBetting():
            return _open_betting(rules, state, order)
        case CallNoMoreBets():
            return _call_no_more_bets(rules, state, order)
        case ConfirmNumber():
            return _confirm(rules, state, order)
        case DeclareIncident():
            return _declare(rules, state, order)
        case EnterNumber(pocket=pocket):
            return _enter(rules, state, order, Entry(pocket=pocket, reason="", by=order.by))
        case VoidRound(reason=reason):
            return _enter(rules, state, order, Entry(pocket="", reason=reason, by=order.by))
        case AttestPresence():
            return _attest(rules, state, order)
        case RestartGame():
            return _restart(state, order)


def _staff(rules: RouletteRules) -> tuple[Role, ...]:
    return conducting(croupier=rules.conduct is Conduct.CROUPIER)


def _open_betting(rules: RouletteRules, state: RouletteState, order: OpenBetting) -> Decision:
    if lacks_role(order, *_staff(rules)):
        return refuse(order, Refusal.ROLE)
    if reasons := hindrances(rules, state):
        return refuse(order, *reasons)
    return open_betting(rules, state)


def _call_no_more_bets(rules: RouletteRules, state: RouletteState, order: CallNoMoreBets) -> Decision:
    coup = state.coup
    if lacks_role(order, *_staff(rules)):
        return refuse(order, Refusal.ROLE)
    if coup.phase is not Phase.BETTING:
        return refuse(order, Refusal.NOT_BETTING)
    if rules.conduct is Conduct.CROUPIER and rules.button_calls_no_more_bets:
        # Even when no launch was seen: what the croupier announces stops the bets at once.
        called = NoMoreBetsCalled(round=coup.round, source="croupier", by=order.by)
        timer = SetTimer(name=NUMBER_LIMIT, round=coup.round, after_ms=rules.number_limit_ms)
        return Decision(facts=(called,), requests=(timer,))
    if rules.conduct is Conduct.LAUNCHER and not coup.launch_ordered:
        return refuse(order, Refusal.NOT_LAUNCHED)
    # The device missed it and a person calls it: manual mode. The number may count if the ball was seen to run, or if
    # the croupier, who launched it, says so.
    called = NoMoreBetsCalled(round=coup.round, source="manual", by=order.by)
    witnessed = coup.spin is not None or rules.conduct is Conduct.CROUPIER
    declared = incident(state, "no_more_bets_undetected", number_allowed=witnessed)
    return Decision(facts=(called, *declared.facts))


def _confirm(rules: RouletteRules, state: RouletteState, order: ConfirmNumber) -> Decision:
    coup = state.coup
    if lacks_role(order, *_staff(rules)):
        return refuse(order, Refusal.ROLE)
    if coup.phase is not Phase.VERIFYING:
        return refuse(order, Refusal.NOTHING_TO_CONFIRM)
    if order.pocket != coup.detected:
        return refuse(order, Refusal.POCKET_DIFFERS)
    announced = NumberAnnounced(round=coup.round, pocket=coup.detected, by=order.by)
    # A wheel whose link was lost and came back while the croupier looked could not be read in the open round.
    wheel = ready_wheel(state) if rules.verify_wheel and not state.health.verified else ()
    return Decision(facts=(announced, *settlement(rules, state.posts, coup.round, coup.detected)), requests=wheel)


def _declare(rules: RouletteRules, state: RouletteState, order: DeclareIncident) -> Decision:
    coup = state.coup
    if lacks_role(order, *_staff(rules)):
        return refuse(order, Refusal.ROLE)
    if coup.phase in (Phase.MANUAL, Phase.HALTED):
        return refuse(order, Refusal.INCIDENT_OPEN)
    declared = IncidentDeclared(
        round=coup.round if coup.phase in OPEN_PHASES else 0,
        cause="declared",
        detail=order.reason,
        number_allowed=coup.phase in (Phase.NO_MORE_BETS, Phase.VERIFYING),
        hint=coup.detected if coup.phase is Phase.VERIFYING else "",
        by=order.by,
    )
    return Decision(facts=(declared,))


def _enter(rules: RouletteRules, state: RouletteState, order: EnterNumber | VoidRound, entry: Entry) -> Decision:
    coup = state.coup
    if lacks_role(order, *_staff(rules)):
        return refuse(order, Refusal.ROLE)
    if coup.phase is not Phase.MANUAL or coup.incident is None:
        return refuse(order, Refusal.NO_INCIDENT)
    if isinstance(order, EnterNumber):
        if entry.pocket not in pockets(rules.wheel):
            return refuse(order, Refusal.POCKET_UNKNOWN)
        if not coup.incident.number_allowed:
            return refuse(order, Refusal.NUMBER_NOT_ALLOWED)
    made = EntryMade(round=coup.round, pocket=entry.pocket, reason=entry.reason, by=entry.by)
    croupier, director = _witnesses(rules, state, entry)
    if rules.conduct is Conduct.CROUPIER and croupier is None:
        return refuse(order, Refusal.CROUPIER_ABSENT)
    if director is None:
        return Decision(facts=(made,))
    return Decision(facts=(made, *_resolve(rules, state, entry, croupier, director)))


def _witnesses(rules: RouletteRules, state: RouletteState, entry: Entry) -> tuple[Person | None, Person | None]:
    """The croupier and the director behind an entry: its author, and those whose keys are turned on."""
    keys = state.seance.keys_on
    by_croupier = entry.by.role is Role.CROUPIER
    croupier = entry.by if by_croupier else CROUPIER_KEY if "croupier" in keys else None
    director = DIRECTOR_KEY if "director" in keys else None
    if not by_croupier:
        director = entry.by
    return (croupier if rules.conduct is Conduct.CROUPIER else None), director


def _attest(rules: RouletteRules, state: RouletteState, order: AttestPresence) -> Decision:
    coup = state.coup
    if lacks_role(order, Role.DIRECTOR):
        return refuse(order, Refusal.ROLE)
    if coup.phase is not Phase.MANUAL or coup.incident is None:
        return refuse(order, Refusal.NO_INCIDENT)
    entry = coup.incident.entry
    if entry is None:
        return refuse(order, Refusal.NOTHING_ENTERED)
    croupier, _ = _witnesses(rules, state, entry)
    attested = PresenceAttested(round=coup.round, by=order.by)
    return Decision(facts=(attested, *_resolve(rules, state, entry, croupier, order.by)))


def _resolve(
    rules: RouletteRules, state: RouletteState, entry: Entry, croupier: Person | None, director: Person
) -> tuple[Fact, ...]:
    coup = state.coup
    if not entry.pocket:
        return voiding(state.posts, coup.round, entry.reason, croupier, director)
    validated = NumberValidated(round=coup.round, pocket=entry.pocket, croupier=croupier, director=director)
    return (validated, *settlement(rules, state.posts, coup.round, entry.pocket))


def _restart(state: RouletteState, order: RestartGame) -> Decision:
    if lacks_role(order, Role.DIRECTOR):
        return refuse(order, Refusal.ROLE)
    if state.coup.phase is not Phase.HALTED:
        return refuse(order, Refusal.NOT_HALTED)
    return Decision(facts=(GameRestarted(by=order.by),), requests=(ResetWheel(), *ready_wheel(state)))


def ready_wheel(state: RouletteState) -> tuple[Request, ...]:
    """What makes the wheel ready again while no round is open: read its parameters, and switch it on for a séance."""
    return (VerifyWheel(), PowerWheel(on=True)) if state.seance.open else (VerifyWheel(),)


def dial(rules: RouletteRules, state: RouletteState, button: str) -> Decision:
    """The panel's "dizaine" and "unite" buttons: the first press shows 0, then 0, 10, 20, 30 (and 00), and the units.

    A number that the wheel does not have can be dialled on the way to another; it cannot be entered. Nor can nothing: a
    stray press of "confirmer" must not enter a 0 that nobody dialled.
    """
    dialled = state.coup.dialled
    if not dialled:
        number = "0"
    elif button == "dizaine":
        steps = ["0", "1", "2", "3"] + (["00"] if "00" in pockets(rules.wheel) else [])
        tens = "00" if dialled == "00" else dialled[0] if len(dialled) == 2 else "0"
        following = steps[(steps.index(tens) + 1) % len(steps)]
        number = following if following == "00" else str(int(following + dialled[-1]))
    else:
        units = (int(dialled[-1]) + 1) % 10
        number = str(int((dialled[0] if len(dialled) == 2 else "0") + str(units)))
    return Decision(facts=(NumberDialled(pocket=number),))
