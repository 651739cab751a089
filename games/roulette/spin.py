"""The course of a spin: what the wheel and the timers say, and what the round makes of it.

Only what a round waits for moves it: a launch while bets are open, a slowing of that spin, a pocket of that spin after
"rien ne va plus". Anything else at that point is an incident, and anything outside a round is disregarded, as a fact.
A result is paid only when "rien ne va plus" was certified before it.
"""

from games import health as health_
from games.refusals import Refusal
from games.roulette.coup import OPEN_PHASES, Phase, RouletteState
from games.roulette.facts import (
    BettingOpened,
    IncidentDeclared,
    LaunchOrdered,
    NoMoreBetsCalled,
    NumberAnnounced,
    NumberDetected,
    ObservationDisregarded,
    ResetWheel,
    SpinRefused,
    SpinStarted,
    StartWheel,
)
from games.roulette.layout import pockets
from games.roulette.rules import Conduct, RouletteRules
from games.roulette.settlement import settlement
from games.rules import NOTHING, Decision, Fact, Input, Request, SetTimer, TimerFired
from games.seance import SeancePhase
from games.signals import (
    BallLaunched,
    BallSlowed,
    Direction,
    LinkLost,
    PocketDetected,
    PocketMissed,
    WheelFaultKind,
    WheelFaultSeen,
)

NEXT_ROUND = "next_round"
LAUNCH = "launch"
LAUNCH_LIMIT = "launch_limit"
CALL = "call_no_more_bets"
NO_MORE_BETS_LIMIT = "no_more_bets_limit"
NUMBER_LIMIT = "number_limit"

Observation = BallLaunched | BallSlowed | PocketDetected | PocketMissed


def hindrances(rules: RouletteRules, state: RouletteState) -> tuple[Refusal, ...]:
    """Every reason why no round can begin now, none when the table stands ready.

    A launcher does not spin for an empty table, but for the last three rounds, which were announced.
    """
    reasons: list[Refusal] = []
    if state.coup.phase in OPEN_PHASES:
        reasons.append(Refusal.ROUND_OPEN)
    if state.coup.phase is Phase.HALTED:
        reasons.append(Refusal.HALTED)
    if not state.seance.open:
        reasons.append(Refusal.SEANCE_CLOSED)
    elif not state.seance.may_play:
        reasons.append(Refusal.LAST_PLAYED)
    elif rules.conduct is Conduct.LAUNCHER and state.seance.phase is not SeancePhase.LAST and state.posts.all_free:
        reasons.append(Refusal.NOBODY_SEATED)
    return (*reasons, *health_.refusals(state.health, verify=rules.verify_wheel))


def open_betting(rules: RouletteRules, state: RouletteState) -> Decision:
    """Begin the next round: "faites vos jeux"."""
    direction = state.last_direction.opposite if state.last_direction else None
    opened = BettingOpened(round=state.coup.round + 1, direction=direction)
    if rules.conduct is Conduct.CROUPIER:
        return Decision(facts=(opened,))
    return Decision(facts=(opened,), requests=(SetTimer(name=LAUNCH, round=opened.round, after_ms=rules.betting_ms),))


def decide(rules: RouletteRules, state: RouletteState, signal: Observation) -> Decision:
    """What the wheel's observation means here."""
    if isinstance(signal, PocketDetected | PocketMissed) and signal.pocket not in pockets(rules.wheel):
        return _incident_or_disregard(state, signal, "pocket_unknown")
    match signal:
        case BallLaunched():
            return _launched(rules, state, signal)
        case BallSlowed():
            return _slowed(rules, state, signal)
        case PocketDetected():
            return _pocket(rules, state, signal)
        case PocketMissed():
            return _incident_or_disregard(state, signal, "result_missed")


def _launched(rules: RouletteRules, state: RouletteState, signal: BallLaunched) -> Decision:
    coup = state.coup
    if coup.phase is Phase.NO_MORE_BETS and coup.spin is None:
        return _launched_after_the_call(state, signal)
    if coup.phase is not Phase.BETTING:
        return _disregard(state, signal)
    if rules.conduct is Conduct.LAUNCHER and not coup.launch_ordered:
        return incident(state, "launch_not_ordered")
    if _wrong_way(state, signal.direction):
        return _refuse_spin(rules, state, signal)
    return Decision(facts=(_started(state, signal),), requests=_spin_timers(rules, coup.round))


def _launched_after_the_call(state: RouletteState, signal: BallLaunched) -> Decision:
    """The croupier had closed the bets before the launch was seen: it is this round's spin, if it is a valid one."""
    if _wrong_way(state, signal.direction):
        return incident(state, "rotor_not_alternating", number_allowed=False)
    return Decision(facts=(_started(state, signal),))


def _wrong_way(state: RouletteState, direction: Direction) -> bool:
    return state.coup.expected is not None and direction is not state.coup.expected


def _started(state: RouletteState, signal: BallLaunched | BallSlowed) -> SpinStarted:
    return SpinStarted(
        round=state.coup.round, spin=signal.spin, direction=signal.direction, rotor_mrpm=signal.rotor_mrpm
    )


def _spin_timers(rules: RouletteRules, round_number: int) -> tuple[Request, ...]:
    limit = SetTimer(name=NO_MORE_BETS_LIMIT, round=round_number, after_ms=rules.no_more_bets_limit_ms)
    if not rules.no_more_bets_after_ms:
        return (limit,)
    return (limit, SetTimer(name=CALL, round=round_number, after_ms=rules.no_more_bets_after_ms))


def _refuse_spin(rules: RouletteRules, state: RouletteState, signal: BallLaunched) -> Decision:
    coup = state.coup
    refused = SpinRefused(round=coup.round, spin=signal.spin, direction=signal.direction)
    if coup.refused_launches + 1 >= rules.relaunch_limit:
        declared = incident(state, "rotor_not_alternating").facts
        return Decision(facts=(refused, *declared), requests=(ResetWheel(),))
    if rules.conduct is Conduct.CROUPIER:
        return Decision(facts=(refused,))
    again = SetTimer(name=LAUNCH_LIMIT, round=coup.round, after_ms=rules.launch_limit_ms)
    return Decision(facts=(refused,), requests=(ResetWheel(), StartWheel(direction=coup.expected), again))


def _slowed(rules: RouletteRules, state: RouletteState, signal: BallSlowed) -> Decision:
    coup = state.coup
    if coup.phase is not Phase.BETTING:
        return NOTHING if coup.phase is Phase.NO_MORE_BETS else _disregard(state, signal)
    called = NoMoreBetsCalled(round=coup.round, source="wheel", by=None)
    timer = SetTimer(name=NUMBER_LIMIT, round=coup.round, after_ms=rules.number_limit_ms)
    if _wrong_way(state, signal.direction):
        return Decision(facts=(called, *incident(state, "rotor_not_alternating").facts), requests=(ResetWheel(),))
    if rules.conduct is Conduct.LAUNCHER and not coup.launch_ordered:
        return Decision(facts=(called, *incident(state, "launch_not_ordered").facts))
    if coup.spin == signal.spin:
        return Decision(facts=(called,), requests=(timer,))
    if coup.spin is not None:
        # A spin was seen launched and another one slows: what became of the first nobody knows.
        return Decision(facts=(called, *incident(state, "slowing_of_another_spin").facts))
    # The launch itself was not seen, but this is its ball: state, direction and number all come with the slowing.
    return Decision(facts=(_started(state, signal), called), requests=(timer,))


def _pocket(rules: RouletteRules, state: RouletteState, signal: PocketDetected) -> Decision:
    coup = state.coup
    match coup.phase:
        case Phase.NO_MORE_BETS if signal.spin == coup.spin:
            return _number(rules, state, signal)
        case Phase.NO_MORE_BETS:
            return incident(state, "result_of_another_spin", hint=signal.pocket)
        case Phase.BETTING if coup.spin is not None:
            return incident(state, "no_more_bets_undetected", hint=signal.pocket)
        case Phase.VERIFYING if signal.spin == coup.spin and signal.pocket != coup.detected:
            return incident(state, "number_contradicted", f"{coup.detected} then {signal.pocket}")
        case _:
            return _disregard(state, signal)


def _number(rules: RouletteRules, state: RouletteState, signal: PocketDetected) -> Decision:
    if rules.conduct is Conduct.CROUPIER:
        detected = NumberDetected(round=state.coup.round, spin=signal.spin, pocket=signal.pocket)
        return Decision(facts=(detected,))
    announced = NumberAnnounced(round=state.coup.round, pocket=signal.pocket, by=None)
    return Decision(facts=(announced, *settlement(rules, state.posts, state.coup.round, signal.pocket)))


def _incident_or_disregard(state: RouletteState, signal: PocketDetected | PocketMissed, cause: str) -> Decision:
    if state.coup.phase in (Phase.BETTING, Phase.NO_MORE_BETS):
        return incident(state, cause, f"spin {signal.spin}", hint=signal.pocket)
    return _disregard(state, signal)


def _disregard(state: RouletteState, signal: Observation) -> Decision:
    match signal:
        case BallLaunched():
            seen, pocket = "launch", ""
        case BallSlowed():
            seen, pocket = "slowing", ""
        case PocketDetected(pocket=pocket):
            seen = "pocket"
        case PocketMissed(pocket=pocket):
            seen = "missed_pocket"
    phase = str(state.coup.phase)
    return Decision(facts=(ObservationDisregarded(seen=seen, spin=signal.spin, pocket=pocket, phase=phase),))


def incident(
    state: RouletteState,
    cause: str,
    detail: str = "",
    *,
    hint: str = "",
    number_allowed: bool | None = None,
) -> Decision:
    """Manual mode for the open round. A number may be validated only if "rien ne va plus" was certified in time."""
    coup = state.coup
    in_time = coup.phase in (Phase.NO_MORE_BETS, Phase.VERIFYING) if number_allowed is None else number_allowed
    declared = IncidentDeclared(
        round=coup.round, cause=cause, detail=detail, number_allowed=in_time, hint=hint, by=None
    )
    return Decision(facts=(declared,))


def decide_fault(rules: RouletteRules, state: RouletteState, signal: Input) -> Decision:
    """What a lost link or a wheel's fault does to the round that is open: ``signal`` began a condition."""
    coup = state.coup
    contradicted = isinstance(signal, WheelFaultSeen) and signal.fault is WheelFaultKind.NUMBER_CONTRADICTED
    if coup.phase not in (Phase.BETTING, Phase.NO_MORE_BETS) and not (contradicted and coup.phase is Phase.VERIFYING):
        return NOTHING
    match signal:
        case LinkLost(device="wheel", silent_ms=silent_ms):
            return incident(state, "wheel_silent", f"{silent_ms} ms")
        case WheelFaultSeen(fault=WheelFaultKind.LAUNCH_FAILED):
            if coup.phase is Phase.BETTING and coup.refused_launches + 1 < rules.relaunch_limit:
                return NOTHING  # the wheel launches again by itself
            return incident(state, "launch_failed")
        case WheelFaultSeen(fault=WheelFaultKind.PARAMETER_DRIFT):
            return NOTHING  # the round ends as it began; the next one does not begin
        case WheelFaultSeen(fault=WheelFaultKind.BALL_WITH_ROTOR, detail=detail):
            # The maker's rule and ours agree: this spin is void, whatever number it may show.
            declared = incident(state, "ball_with_rotor", detail, number_allowed=False)
            return Decision(facts=declared.facts, requests=(ResetWheel(),))
        case WheelFaultSeen(fault=fault, detail=detail):
            return incident(state, str(fault), detail)
        case _:
            return NOTHING


def decide_timer(rules: RouletteRules, state: RouletteState, signal: TimerFired) -> Decision:
    """A timer of the round came due; one of another round, or of a phase that is over, does nothing."""
    coup = state.coup
    if signal.name == NEXT_ROUND:
        due = signal.round == coup.round + 1 and not hindrances(rules, state)
        return open_betting(rules, state) if due else NOTHING
    if signal.round != coup.round:
        return NOTHING
    betting, launched = coup.phase is Phase.BETTING, coup.spin is not None
    match signal.name:
        case "launch" if betting and not coup.launch_ordered:
            facts: tuple[Fact, ...] = (LaunchOrdered(round=coup.round),)
            limit = SetTimer(name=LAUNCH_LIMIT, round=coup.round, after_ms=rules.launch_limit_ms)
            return Decision(facts=facts, requests=(StartWheel(direction=coup.expected), limit))
        case "launch_limit" if betting and not launched:
            return incident(state, "launch_not_seen")
        case "call_no_more_bets" if betting and launched:
            called = NoMoreBetsCalled(round=coup.round, source="timer", by=None)
            timer = SetTimer(name=NUMBER_LIMIT, round=coup.round, after_ms=rules.number_limit_ms)
            return Decision(facts=(called,), requests=(timer,))
        case "no_more_bets_limit" if betting and launched:
            return incident(state, "no_more_bets_undetected")
        case "number_limit" if coup.phase is Phase.NO_MORE_BETS:
            return incident(state, "number_undetected")
        case _:
            return NOTHING
