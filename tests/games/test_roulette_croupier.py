"""A roulette that a croupier conducts: he says what is said, launches the ball, and looks before he announces.

The law, electronic roulette, 1°: "Le croupier (…) actionne, à chaque fois, le plateau mobile dans un sens opposé au
précédent et lance la bille dans le sens inverse (…) Après l'arrêt de la bille sur un numéro, le détecteur indique au
croupier le numéro gagnant. Après vérification du numéro sorti dans le cylindre, le croupier annonce le numéro".
"""

import pytest

from games.money import Cents
from games.posts import PostSettled
from games.refusals import Refusal
from games.roulette.coup import Phase
from games.roulette.facts import (
    BettingOpened,
    IncidentDeclared,
    NoMoreBetsCalled,
    NumberAnnounced,
    NumberDetected,
    ObservationDisregarded,
    ResetWheel,
    RoundClosed,
    SpinRefused,
    SpinStarted,
)
from games.roulette.layout import Wheel
from games.rules import Lamp, SetTimer
from games.signals import Direction, Role
from tests.games.table import CROUPIER, DIRECTOR, EURO, Table, others, playing

CLOCKWISE, COUNTERCLOCKWISE = Direction.CLOCKWISE, Direction.COUNTERCLOCKWISE


def expected_direction(table: Table) -> Direction | None:
    """Which way the rotor must turn in the round that begins now."""
    return table.says_faites_vos_jeux().the(BettingOpened).direction


# ── The course of a round ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_round_of_a_croupier_goes_from_faites_vos_jeux_to_the_announced_and_paid_number() -> None:
    table = playing()
    assert table.says_faites_vos_jeux().facts == (BettingOpened(round=1, direction=None),)
    assert table.last.requests == ()  # it is for the croupier to launch
    table.stakes(1, {"plein-17": 10 * EURO})
    assert table.ball_runs(direction=CLOCKWISE).the(SpinStarted).direction is CLOCKWISE
    limit = table.rules.no_more_bets_limit_ms
    assert table.last.requests == (SetTimer(name="no_more_bets_limit", round=1, after_ms=limit),)
    assert table.stakes(2, {"rouge": 10 * EURO}).refusal is None  # bets are open while the ball runs
    assert table.ball_slows().facts == (NoMoreBetsCalled(round=1, source="wheel", by=None),)
    assert table.ball_in("17").facts == (NumberDetected(round=1, spin=1, pocket="17"),)
    assert table.confirms("17").facts == (
        NumberAnnounced(round=1, pocket="17", by=CROUPIER),
        PostSettled(
            post=1,
            round=1,
            staked=Cents(10 * EURO),
            returned=Cents(10 * EURO),
            won=Cents(350 * EURO),
            credit=Cents(1_350 * EURO),
        ),
        PostSettled(
            post=2, round=1, staked=Cents(10 * EURO), returned=Cents(0), won=Cents(0), credit=Cents(990 * EURO)
        ),
        RoundClosed(
            round=1,
            pocket="17",
            posts=2,
            staked=Cents(20 * EURO),
            returned=Cents(10 * EURO),
            won=Cents(350 * EURO),
        ),
    )
    assert table.last.requests == ()
    assert table.phase is Phase.IDLE
    assert table.game.board(table.state)["last_numbers"] == ["17"]


def test_faites_vos_jeux_is_said_by_the_croupier_or_a_director_and_once() -> None:
    table = playing()
    for by in others(Role.CROUPIER, Role.DIRECTOR):
        assert table.says_faites_vos_jeux(by).refusal is Refusal.ROLE
    assert table.says_faites_vos_jeux(DIRECTOR).refusal is None
    assert table.says_faites_vos_jeux().refusal is Refusal.ROUND_OPEN


@pytest.mark.parametrize(
    ("phase", "reason"),
    [
        (Phase.NO_MORE_BETS, Refusal.ROUND_OPEN),
        (Phase.VERIFYING, Refusal.ROUND_OPEN),
        (Phase.MANUAL, Refusal.ROUND_OPEN),
        (Phase.HALTED, Refusal.HALTED),
    ],
)
def test_faites_vos_jeux_before_the_round_is_over_is_refused(phase: Phase, reason: Refusal) -> None:
    assert playing().reaches(phase).says_faites_vos_jeux().refusal is reason


# ── The number ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_number_that_the_detector_indicates_pays_nobody_before_the_croupier_has_looked() -> None:
    table = playing()
    table.says_faites_vos_jeux()
    table.stakes(1, {"plein-17": 10 * EURO})
    table.closes_bets()
    table.ball_in("17")
    assert table.every(PostSettled) == []
    assert table.credit(1) == 990 * EURO
    assert table.game.lamps(table.state)["numero"] is Lamp.BLINKING
    assert table.game.board(table.state)["detected"] == "17"


@pytest.mark.law("67-15")
def test_number_that_differs_from_the_detected_one_cannot_be_confirmed() -> None:
    table = playing().reaches(Phase.VERIFYING, "17")
    for other in ("34", "0", "00", ""):
        assert table.confirms(other).refusal is Refusal.POCKET_DIFFERS
    assert table.every(RoundClosed) == []


def test_number_is_confirmed_by_those_who_conduct_and_only_once_it_is_detected() -> None:
    table = playing().reaches(Phase.NO_MORE_BETS)
    assert table.confirms("17").refusal is Refusal.NOTHING_TO_CONFIRM
    table.ball_in("17")
    for by in others(Role.CROUPIER, Role.DIRECTOR):
        assert table.confirms("17", by).refusal is Refusal.ROLE
    assert table.confirms("17", DIRECTOR).the(NumberAnnounced).by == DIRECTOR
    assert table.confirms("17").refusal is Refusal.NOTHING_TO_CONFIRM


def test_number_that_the_wheel_repeats_while_the_croupier_looks_changes_nothing() -> None:
    table = playing().reaches(Phase.VERIFYING, "17")
    assert table.ball_in("17").kinds == ["ObservationDisregarded"]
    assert table.confirms("17").the(RoundClosed).pocket == "17"


def test_limit_of_the_number_is_inert_while_the_croupier_looks_and_after_his_word() -> None:
    table = playing().reaches(Phase.VERIFYING, "17")
    assert table.timer_fires("number_limit", of_round=1).facts == ()
    table.confirms("17")
    assert table.time_ends("number_limit").facts == ()


def test_number_of_another_spin_while_the_croupier_looks_is_disregarded() -> None:
    table = playing().reaches(Phase.VERIFYING, "17")
    assert table.ball_in("34", spin=99).kinds == ["ObservationDisregarded"]
    assert table.confirms("17").the(RoundClosed).pocket == "17"


def test_number_that_the_wheel_repeats_after_the_settlement_pays_nobody_again() -> None:
    table = playing()
    table.plays_round("17", {1: {"plein-17": 10 * EURO}})
    assert table.ball_in("17").facts == (ObservationDisregarded(seen="pocket", spin=1, pocket="17", phase="idle"),)
    assert table.ball_was_in("17").kinds == ["ObservationDisregarded"]
    assert table.credit(1) == 1_350 * EURO


def test_number_that_comes_late_in_the_next_round_pays_nobody() -> None:
    table = playing()
    table.plays_round("17")
    table.says_faites_vos_jeux()
    table.stakes(1, {"plein-17": 10 * EURO})
    assert table.ball_in("17").kinds == ["ObservationDisregarded"]  # no ball runs: bets stay open
    table.closes_bets()
    table.ends_round("4")
    assert table.credit(1) == 990 * EURO


def test_number_confirmed_at_a_wheel_that_is_never_verified_asks_for_no_verification() -> None:
    table = playing(verify_wheel=False).reaches(Phase.VERIFYING, "17")
    assert table.confirms("17").requests == ()


@pytest.mark.law("67-15")
def test_launch_and_slowing_outside_a_round_are_disregarded_as_facts() -> None:
    table = playing()
    assert table.ball_runs().the(ObservationDisregarded).seen == "launch"
    assert table.ball_slows().the(ObservationDisregarded).seen == "slowing"
    assert table.phase is Phase.IDLE


# ── The rotor's direction ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_rotor_may_turn_either_way_at_first_and_then_alternates() -> None:
    table = playing()
    assert expected_direction(table) is None
    table.ball_runs(direction=COUNTERCLOCKWISE)
    table.ball_slows(direction=COUNTERCLOCKWISE)
    table.ends_round("17")
    for direction in (CLOCKWISE, COUNTERCLOCKWISE, CLOCKWISE):
        assert expected_direction(table) is direction
        table.closes_bets()
        table.ends_round("4")


@pytest.mark.law("67-15")
def test_rotor_that_turns_the_same_way_again_makes_no_spin_and_the_ball_is_launched_anew() -> None:
    table = playing()
    table.plays_round()  # clockwise
    table.says_faites_vos_jeux()
    table.stakes(1, {"rouge": 10 * EURO})
    assert table.ball_runs(direction=CLOCKWISE).facts == (SpinRefused(round=2, spin=2, direction=CLOCKWISE),)
    assert table.last.requests == ()  # it is for the croupier to launch again
    assert table.phase is Phase.BETTING and table.staked(1) == 10 * EURO
    assert table.ball_runs(direction=COUNTERCLOCKWISE).kinds == ["SpinStarted"]
    table.ball_slows()
    assert table.ends_round("3").the(PostSettled).won == 10 * EURO


def test_limit_of_a_spin_is_inert_when_its_relaunch_was_refused() -> None:
    table = playing()
    table.plays_round()
    table.says_faites_vos_jeux()
    table.ball_runs()
    table.ball_runs(direction=CLOCKWISE)
    assert table.time_ends("no_more_bets_limit").facts == ()  # no ball runs


@pytest.mark.law("67-15")
def test_rotor_that_keeps_turning_the_same_way_ends_in_manual_mode_without_a_number() -> None:
    table = playing(relaunch_limit=2)
    table.plays_round()
    table.says_faites_vos_jeux()
    table.ball_runs(direction=CLOCKWISE)
    stopped = table.ball_runs(direction=CLOCKWISE)
    assert stopped.kinds == ["SpinRefused", "IncidentDeclared"]
    assert stopped.the(IncidentDeclared).cause == "rotor_not_alternating"
    assert not stopped.the(IncidentDeclared).number_allowed
    assert stopped.asked(ResetWheel) == [ResetWheel()]


@pytest.mark.law("67-15")
def test_rotor_found_turning_the_same_way_when_the_ball_slows_closes_bets_and_pays_no_number() -> None:
    table = playing()
    table.plays_round()
    table.says_faites_vos_jeux()
    stopped = table.ball_slows(spin=2, direction=CLOCKWISE)
    assert stopped.kinds == ["NoMoreBetsCalled", "IncidentDeclared"]
    assert not stopped.the(IncidentDeclared).number_allowed
    assert stopped.requests == (ResetWheel(),)


@pytest.mark.law("67-15")
def test_rotor_direction_is_not_moved_by_a_void_round() -> None:
    table = playing()
    table.plays_round()  # clockwise
    table.reaches(Phase.HALTED)  # counterclockwise, void
    table.restarts()
    assert expected_direction(table) is COUNTERCLOCKWISE


@pytest.mark.law("67-15")
def test_rotor_direction_of_a_number_validated_by_two_persons_counts() -> None:
    table = playing()
    table.plays_round()  # clockwise
    table.reaches(Phase.MANUAL)  # counterclockwise
    table.enters("17")
    table.attests()
    table.restarts()
    assert expected_direction(table) is CLOCKWISE


@pytest.mark.law("67-15")
def test_rotor_direction_is_remembered_over_a_power_cut_and_over_a_closed_seance() -> None:
    table = playing()
    table.plays_round()
    table.loses_power()
    for player in (1, 2):
        table.cashes_out(player)
    table.closes_seance()
    table.opens()
    assert expected_direction(table) is COUNTERCLOCKWISE


# ── Rien ne va plus ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_rien_ne_va_plus_by_the_croupiers_word_closes_bets_while_the_ball_runs() -> None:
    table = playing()
    table.says_faites_vos_jeux()
    table.ball_runs()
    called = table.says_rien_ne_va_plus(CROUPIER)
    assert called.facts == (NoMoreBetsCalled(round=1, source="croupier", by=CROUPIER),)
    assert called.asked(SetTimer) == [SetTimer(name="number_limit", round=1, after_ms=table.rules.number_limit_ms)]
    assert table.stakes(1, {"rouge": 2 * EURO}).refusal is Refusal.STAKE_LATE
    assert table.ball_slows().facts == ()  # the wheel says it too, as expected
    assert table.ends_round("17").the(RoundClosed).pocket == "17"


def test_rien_ne_va_plus_while_no_bets_are_open_or_by_another_is_refused() -> None:
    table = playing()
    assert table.says_rien_ne_va_plus().refusal is Refusal.NOT_BETTING
    table.says_faites_vos_jeux()
    table.ball_runs()
    for by in others(Role.CROUPIER, Role.DIRECTOR):
        assert table.says_rien_ne_va_plus(by).refusal is Refusal.ROLE
    table.says_rien_ne_va_plus()
    assert table.says_rien_ne_va_plus().refusal is Refusal.NOT_BETTING


@pytest.mark.law("67-15")
def test_rien_ne_va_plus_of_a_croupier_whose_launch_was_not_seen_stops_the_bets_at_once() -> None:
    table = playing()
    table.says_faites_vos_jeux()
    assert table.says_rien_ne_va_plus().the(NoMoreBetsCalled).source == "croupier"
    assert table.stakes(1, {"rouge": 2 * EURO}).refusal is Refusal.STAKE_LATE


def test_launch_seen_after_the_croupiers_call_is_the_rounds_spin() -> None:
    table = playing()
    table.says_faites_vos_jeux()
    table.says_rien_ne_va_plus()
    table.ball_runs()
    assert table.ends_round("17").the(RoundClosed).pocket == "17"


def test_launch_the_wrong_way_after_the_croupiers_call_lets_no_number_count() -> None:
    table = playing()
    table.plays_round()
    table.says_faites_vos_jeux()
    table.says_rien_ne_va_plus()
    assert table.state.last_direction is not None
    declared = table.ball_runs(direction=table.state.last_direction).the(IncidentDeclared)
    assert (declared.cause, declared.number_allowed) == ("rotor_not_alternating", False)


@pytest.mark.law("67-15")
def test_rien_ne_va_plus_that_a_timer_calls_where_configured_closes_bets() -> None:
    table = playing(no_more_bets_after_ms=8_000)
    table.says_faites_vos_jeux()
    assert "call_no_more_bets" not in table.timers
    assert SetTimer(name="call_no_more_bets", round=1, after_ms=8_000) in table.ball_runs().requests
    assert table.time_ends("call_no_more_bets").facts == (NoMoreBetsCalled(round=1, source="timer", by=None),)
    assert table.last.requests == (SetTimer(name="number_limit", round=1, after_ms=table.rules.number_limit_ms),)
    assert table.stakes(1, {"rouge": 2 * EURO}).refusal is Refusal.STAKE_LATE


def test_rien_ne_va_plus_of_a_timer_is_inert_once_bets_are_closed_or_the_launch_was_refused() -> None:
    table = playing(no_more_bets_after_ms=8_000).reaches(Phase.NO_MORE_BETS)
    assert table.time_ends("call_no_more_bets").facts == ()
    table.ends_round("17")
    table.says_faites_vos_jeux()
    assert table.timer_fires("call_no_more_bets", of_round=1).facts == ()
    assert table.timer_fires("call_no_more_bets", of_round=2).facts == ()  # no ball runs


@pytest.mark.law("67-15")
def test_rien_ne_va_plus_by_a_button_that_is_not_an_ordinary_way_is_manual_mode_with_a_number() -> None:
    table = playing(button_calls_no_more_bets=False)
    table.says_faites_vos_jeux()
    table.ball_runs()
    called = table.says_rien_ne_va_plus()
    assert called.the(NoMoreBetsCalled).source == "manual"
    assert called.the(IncidentDeclared).cause == "no_more_bets_undetected"
    assert called.the(IncidentDeclared).number_allowed
    assert table.stakes(1, {"rouge": 2 * EURO}).refusal is Refusal.STAKE_LATE


@pytest.mark.law("67-15")
def test_slowing_of_a_ball_whose_launch_went_unseen_closes_bets_all_the_same() -> None:
    table = playing()
    table.says_faites_vos_jeux()
    assert table.ball_slows(spin=9).kinds == ["SpinStarted", "NoMoreBetsCalled"]
    assert "number_limit" in table.timers
    table.ball_in("17", spin=9)
    assert table.confirms("17").the(RoundClosed).pocket == "17"


# ── Payment ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("55-12")
def test_zero_of_the_wheel_of_37_returns_half_of_an_even_chance_and_nothing_of_a_dozen() -> None:
    table = playing()
    table.plays_round("0", {1: {"rouge": 10 * EURO, "douzaine-1": 10 * EURO}, 2: {"plein-0": EURO}})
    assert (table.credit(1), table.credit(2)) == (985 * EURO, 1_035 * EURO)


@pytest.mark.law("55-2")
@pytest.mark.parametrize("zero", ["0", "00"])
def test_zeros_of_the_wheel_of_38_take_all_of_an_even_chance(zero: str) -> None:
    table = playing(wheel=Wheel.DOUBLE_ZERO)
    table.plays_round(zero, {1: {"rouge": 10 * EURO}, 2: {f"plein-{zero}": EURO, "cinq-numeros": EURO}})
    assert (table.credit(1), table.credit(2)) == (990 * EURO, (1_035 + 6) * EURO)
