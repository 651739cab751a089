"""A roulette with an automatic launcher: the device conducts the round and announces the number, a director watches.

The law, electronic roulette: "Lorsque le mouvement de la bille commence à ralentir, un "rien ne va plus" s'enclenche ou
est annoncé par l'appareil et les joueurs ne peuvent plus miser (…) Pour la roulette électronique avec lanceur
automatique, l'appareil annonce le numéro gagnant."
"""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.money import Cents
from games.posts import PostSettled
from games.refusals import Refusal
from games.roulette.coup import Phase
from games.roulette.facts import (
    BettingOpened,
    IncidentDeclared,
    LaunchOrdered,
    NoMoreBetsCalled,
    NumberAnnounced,
    ResetWheel,
    RoundClosed,
    SpinRefused,
    SpinStarted,
    StartWheel,
)
from games.roulette.layout import Wheel, layout, pockets
from games.roulette.rules import Conduct
from games.rules import SetTimer
from games.signals import Direction, Role, WheelFaultKind
from tests.games.article_figures import result
from tests.games.table import CROUPIER, DIRECTOR, EURO, Table, others, playing

LAUNCHER = Conduct.LAUNCHER
CLOCKWISE, COUNTERCLOCKWISE = Direction.CLOCKWISE, Direction.COUNTERCLOCKWISE
both_wheels = pytest.mark.parametrize("wheel", list(Wheel), ids=lambda wheel: f"{wheel}-pockets")


def launched(table: Table) -> Table:
    """The launcher was told to spin, and nothing was seen of it."""
    table.reaches(Phase.BETTING)
    table.time_ends("launch")
    return table


# ── The course of a round ─────────────────────────────────────────────────────────────────────────────────────────────


@both_wheels
@pytest.mark.law("67-15")
def test_round_of_a_launcher_is_conducted_by_the_device_from_beginning_to_payment(wheel: Wheel) -> None:
    table = playing(LAUNCHER, wheel)
    assert table.time_ends("next_round").facts == (BettingOpened(round=1, direction=None),)
    assert table.last.requests == (SetTimer(name="launch", round=1, after_ms=table.rules.betting_ms),)
    table.stakes(1, {"plein-17": 10 * EURO})
    assert table.time_ends("launch").facts == (LaunchOrdered(round=1),)
    assert table.last.asked(StartWheel) == [StartWheel(direction=None)]
    assert table.ball_runs().kinds == ["SpinStarted"]
    assert table.stakes(2, {"rouge": 10 * EURO}).refusal is None  # bets are open until the ball slows
    assert table.ball_slows().facts == (NoMoreBetsCalled(round=1, source="wheel", by=None),)
    paid = table.ball_in("17")
    assert paid.facts[0] == NumberAnnounced(round=1, pocket="17", by=None)
    assert [(post.post, post.returned, post.won) for post in paid.every(PostSettled)] == [
        (1, 10 * EURO, 350 * EURO),
        (2, 0, 0),
    ]
    assert paid.facts[-1] == RoundClosed(
        round=1,
        pocket="17",
        posts=2,
        staked=Cents(20 * EURO),
        returned=Cents(10 * EURO),
        won=Cents(350 * EURO),
    )
    assert table.timers["next_round"] == SetTimer(name="next_round", round=2, after_ms=table.rules.between_ms)


@both_wheels
@given(data=st.data())
@settings(max_examples=60)
@pytest.mark.law("55-12")
@pytest.mark.law("55-2")
def test_settlement_of_any_stakes_at_any_pocket_is_what_the_articles_give(wheel: Wheel, data: st.DataObject) -> None:
    bets = layout(wheel)
    amounts = st.integers(min_value=1, max_value=10).map(lambda units: 2 * units * EURO)
    bags = st.dictionaries(st.sampled_from(sorted(bets)), amounts, min_size=1, max_size=40)
    staked: Mapping[int, dict[str, int]] = {post: data.draw(bags, label=f"post {post}") for post in (1, 2)}
    pocket = data.draw(st.sampled_from(pockets(wheel)), label="pocket")
    table = playing(LAUNCHER, wheel)
    table.plays_round(pocket, staked)
    settled = {post.post: post for post in table.last.every(PostSettled)}
    for post, bag in staked.items():
        returned, won = result(int(wheel), bag, pocket)
        assert (settled[post].staked, settled[post].returned, settled[post].won) == (sum(bag.values()), returned, won)
        assert table.credit(post) == 1_000 * EURO - sum(bag.values()) + returned + won
    closed = table.last.the(RoundClosed)
    assert closed.staked == sum(post.staked for post in settled.values())
    assert (closed.returned, closed.won) == tuple(
        sum(amount) for amount in zip(*((post.returned, post.won) for post in settled.values()), strict=True)
    )


# ── When a round begins ───────────────────────────────────────────────────────────────────────────────────────────────


def test_launcher_does_not_spin_for_an_empty_table_and_begins_when_a_player_sits() -> None:
    table = Table(LAUNCHER).opens()
    assert table.timers == {}
    assert table.says_faites_vos_jeux().refusal is Refusal.NOBODY_SEATED
    assert SetTimer(name="next_round", round=1, after_ms=table.rules.between_ms) in table.sits(1).requests
    assert table.sits(2, "ben").requests == ()  # it is already waiting


def test_next_round_does_not_begin_when_the_last_player_left_meanwhile() -> None:
    table = playing(LAUNCHER)
    table.plays_round()
    table.cashes_out(1)
    table.cashes_out(2)
    assert table.time_ends("next_round").facts == ()
    table.sits(1, "anna", EURO)
    assert table.time_ends("next_round").the(BettingOpened).round == 2


@pytest.mark.parametrize("round_number", [0, 1, 3, 99])
def test_next_round_timer_of_another_round_is_inert(round_number: int) -> None:
    table = playing(LAUNCHER)
    table.plays_round()
    assert table.timer_fires("next_round", of_round=round_number).facts == ()


def test_next_round_waits_for_the_devices_and_begins_by_itself_when_they_are_well() -> None:
    table = playing(LAUNCHER)
    table.wheel_fails(WheelFaultKind.SENSOR_FAULT)
    assert table.time_ends("next_round").facts == ()
    assert table.says_faites_vos_jeux().refusal is Refusal.WHEEL_FAULTY
    table.wheel_recovers(WheelFaultKind.SENSOR_FAULT)
    assert table.time_ends("next_round").kinds == ["BettingOpened"]


def test_next_round_after_a_power_cut_waits_until_the_wheel_is_verified() -> None:
    table = playing(LAUNCHER)
    table.loses_power()
    assert "next_round" not in table.timers
    table.wheel_is_verified()
    assert table.time_ends("next_round").kinds == ["BettingOpened"]


def test_next_round_after_a_power_cut_begins_where_no_verification_is_asked() -> None:
    table = playing(LAUNCHER, verify_wheel=False)
    table.loses_power()
    assert table.time_ends("next_round").kinds == ["BettingOpened"]


def test_next_round_may_be_begun_by_a_director_before_its_time_and_the_timer_is_then_inert() -> None:
    table = playing(LAUNCHER)
    for by in others(Role.DIRECTOR):
        assert table.says_faites_vos_jeux(by).refusal is Refusal.ROLE
    assert table.says_faites_vos_jeux(DIRECTOR).kinds == ["BettingOpened"]
    assert table.time_ends("next_round").facts == ()


# ── The launch ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_launch_is_ordered_once_and_only_while_bets_are_open() -> None:
    table = launched(playing(LAUNCHER))
    assert table.timer_fires("launch", of_round=1).facts == ()
    table.ball_runs()
    table.ball_slows()
    table.ends_round("4")
    table.begins_round()
    assert table.timer_fires("launch", of_round=1).facts == ()


def test_launch_is_not_ordered_after_an_incident_closed_the_bets() -> None:
    table = playing(LAUNCHER).reaches(Phase.BETTING)
    table.declares_incident()
    assert table.time_ends("launch").facts == ()


def test_launch_that_is_not_seen_is_an_incident_without_a_number() -> None:
    table = launched(playing(LAUNCHER))
    declared = table.time_ends("launch_limit").the(IncidentDeclared)
    assert (declared.cause, declared.number_allowed) == ("launch_not_seen", False)


def test_launch_limit_is_inert_once_the_ball_runs_or_an_incident_is_open() -> None:
    running, broken = launched(playing(LAUNCHER)), launched(playing(LAUNCHER))
    running.ball_runs()
    broken.declares_incident()
    for table in (running, broken):
        assert table.time_ends("launch_limit").facts == ()


def test_ball_that_runs_or_slows_without_an_order_is_an_incident_without_a_number() -> None:
    for slows in (False, True):
        table = playing(LAUNCHER).reaches(Phase.BETTING)
        seen = table.ball_slows(spin=1) if slows else table.ball_runs()
        declared = seen.the(IncidentDeclared)
        assert (declared.cause, declared.number_allowed) == ("launch_not_ordered", False)
        assert table.stakes(1, {"rouge": 2 * EURO}).refusal is Refusal.STAKE_LATE


@pytest.mark.law("67-15")
def test_rotor_of_a_launcher_is_told_to_alternate() -> None:
    table = playing(LAUNCHER)
    table.plays_round()  # clockwise
    for direction in (COUNTERCLOCKWISE, CLOCKWISE):
        assert table.begins_round().the(BettingOpened).direction is direction
        assert table.time_ends("launch").asked(StartWheel) == [StartWheel(direction=direction)]
        table.closes_bets()
        table.ends_round("4")


@pytest.mark.law("67-15")
def test_rotor_that_turns_the_same_way_again_is_stopped_and_the_ball_launched_anew() -> None:
    table = playing(LAUNCHER)
    table.plays_round()  # clockwise
    launched(table)
    refused = table.ball_runs(direction=CLOCKWISE)
    assert refused.facts == (SpinRefused(round=2, spin=2, direction=CLOCKWISE),)
    assert refused.requests == (
        ResetWheel(),
        StartWheel(direction=COUNTERCLOCKWISE),
        SetTimer(name="launch_limit", round=2, after_ms=table.rules.launch_limit_ms),
    )
    assert table.ball_runs().the(SpinStarted).direction is COUNTERCLOCKWISE


@pytest.mark.law("67-15")
def test_rotor_that_turns_the_same_way_three_times_is_an_incident_without_a_number() -> None:
    table = playing(LAUNCHER, relaunch_limit=3)
    table.plays_round()
    launched(table)
    for _ in range(2):
        assert table.ball_runs(direction=CLOCKWISE).kinds == ["SpinRefused"]
    stopped = table.ball_runs(direction=CLOCKWISE)
    assert stopped.the(IncidentDeclared).cause == "rotor_not_alternating"
    assert not stopped.the(IncidentDeclared).number_allowed
    assert stopped.requests == (ResetWheel(),)


@pytest.mark.law("67-15")
def test_rotor_direction_that_a_failed_launch_upset_is_checked_again_at_the_relaunch() -> None:
    table = playing(LAUNCHER)
    table.plays_round()
    launched(table)
    table.ball_runs()
    table.wheel_fails(WheelFaultKind.LAUNCH_FAILED)
    assert table.ball_runs(direction=CLOCKWISE).kinds == ["SpinRefused"]
    assert table.ball_runs().kinds == ["SpinStarted"]


# ── Rien ne va plus, and the number ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_rien_ne_va_plus_that_is_not_detected_in_time_is_manual_mode_without_a_number() -> None:
    table = launched(playing(LAUNCHER))
    table.ball_runs()
    declared = table.time_ends("no_more_bets_limit").the(IncidentDeclared)
    assert (declared.cause, declared.number_allowed) == ("no_more_bets_undetected", False)


@pytest.mark.law("67-15")
def test_number_before_rien_ne_va_plus_is_manual_mode_and_is_never_paid() -> None:
    table = launched(playing(LAUNCHER))
    table.ball_runs()
    table.stakes(1, {"plein-17": EURO})
    declared = table.ball_in("17").the(IncidentDeclared)
    assert (declared.cause, declared.number_allowed, declared.hint) == ("no_more_bets_undetected", False, "17")
    assert table.enters("17").refusal is Refusal.NUMBER_NOT_ALLOWED


@pytest.mark.law("67-15")
def test_number_that_is_not_detected_in_time_is_manual_mode_with_a_number() -> None:
    table = playing(LAUNCHER).reaches(Phase.NO_MORE_BETS)
    declared = table.time_ends("number_limit").the(IncidentDeclared)
    assert (declared.cause, declared.number_allowed) == ("number_undetected", True)


@pytest.mark.law("67-15")
def test_rien_ne_va_plus_by_the_directors_word_is_manual_mode_with_a_number() -> None:
    table = playing(LAUNCHER).reaches(Phase.BETTING)
    assert table.says_rien_ne_va_plus().refusal is Refusal.NOT_LAUNCHED
    table = launched(playing(LAUNCHER))
    table.ball_runs()
    assert table.says_rien_ne_va_plus(CROUPIER).refusal is Refusal.ROLE
    called = table.says_rien_ne_va_plus(DIRECTOR)
    assert called.the(NoMoreBetsCalled).source == "manual"
    assert called.the(IncidentDeclared).number_allowed


@pytest.mark.law("67-15")
def test_rien_ne_va_plus_when_the_launchers_ball_was_not_seen_closes_bets_and_lets_no_number_count() -> None:
    called = launched(playing(LAUNCHER)).says_rien_ne_va_plus(DIRECTOR)
    assert called.the(NoMoreBetsCalled).source == "manual"
    assert not called.the(IncidentDeclared).number_allowed


def test_rien_ne_va_plus_by_timer_closes_bets_and_the_wheels_own_call_is_then_expected() -> None:
    table = launched(playing(LAUNCHER, no_more_bets_after_ms=10_000))
    table.ball_runs()
    assert table.time_ends("call_no_more_bets").the(NoMoreBetsCalled).source == "timer"
    assert table.ball_slows().facts == ()
    assert table.ball_in("4").the(RoundClosed).pocket == "4"


@pytest.mark.parametrize("timer", ["launch", "launch_limit", "call_no_more_bets", "no_more_bets_limit", "number_limit"])
def test_timer_of_a_round_that_is_over_is_inert_in_every_phase_of_the_next(timer: str) -> None:
    for phase in set(Phase) - {Phase.VERIFYING}:
        table = playing(LAUNCHER, no_more_bets_after_ms=10_000)
        table.plays_round()
        table.reaches(phase)
        assert table.timer_fires(timer, of_round=table.round - 1).facts == (), phase


@both_wheels
@pytest.mark.law("55-1")
@pytest.mark.law("51")
def test_pocket_of_the_other_wheel_is_manual_mode_and_never_a_number(wheel: Wheel) -> None:
    for unknown in ("37", "-1", "", "000", *([] if wheel is Wheel.DOUBLE_ZERO else ["00"])):
        table = playing(LAUNCHER, wheel).reaches(Phase.NO_MORE_BETS)
        assert table.ball_in(unknown).the(IncidentDeclared).cause == "pocket_unknown"
    table = playing(LAUNCHER, wheel).reaches(Phase.NO_MORE_BETS)
    last = "00" if wheel is Wheel.DOUBLE_ZERO else "0"
    assert table.ball_in(last).the(NumberAnnounced).pocket == last


def test_launcher_never_waits_for_a_croupiers_word() -> None:
    table = playing(LAUNCHER).reaches(Phase.NO_MORE_BETS)
    for by in others(Role.DIRECTOR):
        assert table.confirms("17", by).refusal is Refusal.ROLE
        assert table.declares_incident(by).refusal is Refusal.ROLE
    assert table.confirms("17", DIRECTOR).refusal is Refusal.NOTHING_TO_CONFIRM
    assert table.ball_in("17").the(NumberAnnounced).by is None
    assert table.ball_in("17").kinds == ["ObservationDisregarded"]


def test_panel_of_a_launcher_needs_the_directors_key_for_every_button() -> None:
    table = playing(LAUNCHER)
    table.turns_key("croupier")
    assert table.presses("faites-vos-jeux").refusal is Refusal.KEY_OFF
    table.turns_key("director")
    assert table.presses("faites-vos-jeux").kinds == ["BettingOpened"]
