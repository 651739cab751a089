"""The posts: one person at each, credit from the desk only, and what becomes of the money of a player who is away.

The law, electronic roulette, 1°: "Un joueur ne peut jouer que sur un seul poste de jeu (…) Pour quitter son poste de
jeu, le joueur appuie sur la touche "paiement"." What is abandoned goes to the orphans (article 41).
"""

import pytest

from games.money import Cents
from games.posts import (
    AbsenceExceeded,
    ConsignmentReleased,
    CreditAdded,
    OrphanRecorded,
    PlayerCameBack,
    PlayerPaidOut,
    PlayerSat,
    PlayerSteppedAway,
    PostSettled,
    PostSuspended,
    StakeConsigned,
)
from games.refusals import Refusal
from games.roulette.coup import Phase
from games.roulette.rules import Conduct
from games.rules import SetTimer
from games.signals import Role
from tests.games.table import CASHIER, DIRECTOR, EURO, Table, others, playing

both = pytest.mark.parametrize("conduct", list(Conduct))


def betting() -> Table:
    """An open table with two players of 1 000 €, bets open."""
    return playing().reaches(Phase.BETTING)


# ── Sitting ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_player_at_one_post_is_refused_at_another_until_he_leaves() -> None:
    table = playing()
    assert table.sits(3, "anna").refusal is Refusal.PLAYER_ELSEWHERE
    table.cashes_out(1)
    assert table.sits(3, "anna").the(PlayerSat).post == 3


def test_player_at_a_post_that_is_taken_or_that_the_table_does_not_have_is_refused() -> None:
    table = playing()
    assert table.sits(1, "carla").refusal is Refusal.POST_TAKEN
    for post in (0, -1, 4):
        assert table.sits(post, "carla").refusal is Refusal.POST_UNKNOWN


def test_sitting_of_each_player_has_its_own_number_and_a_fresh_credit() -> None:
    table = playing()
    table.cashes_out(1)
    assert table.sits(1, "carla").the(PlayerSat).sitting == 3
    assert table.credit(1) == 0


def test_free_post_is_refused_everything_but_a_player() -> None:
    table = playing().reaches(Phase.BETTING)
    asked = [
        table.stakes(3, {"rouge": 2 * EURO}),
        table.announces(3, "tiers", EURO),
        table.stakes_at_random(3, ("4",), EURO),
        table.takes_back(3),
        table.chooses_minimum(3, EURO),
        table.cashes_out(3),
        table.steps_away(3),
        table.comes_back(3),
    ]
    assert {outcome.refusal for outcome in asked} == {Refusal.POST_FREE}


# ── Money in and out ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_credit_comes_from_the_desk_by_a_cashier_only() -> None:
    table = playing()
    assert table.credits(1, 25 * EURO, CASHIER).facts == (
        CreditAdded(post=1, sitting=1, cents=Cents(25 * EURO), credit=Cents(1_025 * EURO), by=CASHIER),
    )
    for by in others(Role.CASHIER):
        assert table.credits(1, EURO, by).refusal is Refusal.ROLE
    assert table.credit(1) == 1_025 * EURO


@pytest.mark.parametrize("cents", [0, -1, -100 * EURO])
def test_credit_that_is_not_positive_is_refused(cents: int) -> None:
    assert playing().credits(1, cents).refusal is Refusal.CREDIT_NOT_POSITIVE


def test_credit_for_a_post_without_a_player_is_refused() -> None:
    table = playing()
    for post in (3, 99):
        assert table.credits(post, EURO).refusal is Refusal.POST_FREE


@both
@pytest.mark.law("67-15")
def test_paiement_key_frees_the_post_and_leaves_a_numbered_pay_out_for_the_desk(conduct: Conduct) -> None:
    table = playing(conduct)
    table.plays_round("17", {1: {"plein-17": 10 * EURO}})
    first = table.cashes_out(1).the(PlayerPaidOut)
    assert (first.post, first.payout, first.cents) == (1, 1, 1_350 * EURO)
    assert table.player(1) is None
    assert table.cashes_out(2).the(PlayerPaidOut).payout == 2


@pytest.mark.law("67-15")
def test_paiement_key_with_a_stake_in_play_is_refused_until_the_round_is_over() -> None:
    table = betting()
    table.stakes(1, {"rouge": 2 * EURO})
    assert table.cashes_out(1).refusal is Refusal.STAKE_IN_PLAY
    table.closes_bets()
    assert table.cashes_out(1).refusal is Refusal.STAKE_IN_PLAY
    assert table.cashes_out(2).refusal is None  # he has nothing in play
    table.ends_round("3")
    assert table.cashes_out(1).the(PlayerPaidOut).cents == 1_002 * EURO


# ── Absence, suspension, consigned money ──────────────────────────────────────────────────────────────────────────────


def away_too_long(table: Table, post: int = 1) -> Table:
    """The player stepped away and the house's limit has run out."""
    table.steps_away(post)
    table.time_ends(f"absence:{post}")
    return table


def test_absence_sets_the_limit_of_the_house_and_its_end_is_a_fact() -> None:
    table = playing(absence_ms=300_000)
    away = table.steps_away(1)
    assert away.kinds == ["PlayerSteppedAway"]
    assert away.asked(SetTimer) == [SetTimer(name="absence:1", round=1, after_ms=300_000)]
    assert table.time_ends("absence:1").facts == (AbsenceExceeded(post=1, sitting=1),)


def test_absence_is_noted_by_a_director_only_and_once() -> None:
    table = playing()
    for by in others(Role.DIRECTOR):
        assert table.notes_absence(1, by).refusal is Refusal.ROLE
    assert table.notes_absence(1).the(PlayerSteppedAway).request == ""
    assert "absence:1" in table.timers
    assert table.notes_absence(1).refusal is Refusal.AWAY
    assert table.notes_absence(3).refusal is Refusal.POST_FREE


def test_absent_player_can_do_nothing_at_his_post_until_he_is_back() -> None:
    table = betting()
    table.steps_away(1)
    asked = [
        table.stakes(1, {"rouge": 2 * EURO}),
        table.chooses_minimum(1, EURO),
        table.cashes_out(1),
        table.steps_away(1),
    ]
    assert {outcome.refusal for outcome in asked} == {Refusal.AWAY}
    assert table.comes_back(1).kinds == ["PlayerCameBack"]
    assert table.comes_back(1).refusal is Refusal.NOT_AWAY
    assert table.stakes(1, {"rouge": 2 * EURO}).refusal is None


def test_timer_of_an_absence_that_is_over_is_inert() -> None:
    table = playing()
    table.steps_away(1)
    table.comes_back(1)
    assert table.time_ends("absence:1").facts == ()


def test_timer_of_an_absence_of_the_player_before_is_inert() -> None:
    table = playing()
    table.steps_away(1)
    table.comes_back(1)
    table.cashes_out(1)
    table.sits(1, "carla")
    table.steps_away(1)
    assert table.timer_fires("absence:1", of_round=1).facts == ()
    assert table.timer_fires("absence:3", of_round=1).facts == ()
    assert table.timer_fires("absence:99", of_round=1).facts == ()
    assert table.time_ends("absence:1").kinds == ["AbsenceExceeded"]
    assert table.timer_fires("absence:1", of_round=3).facts == ()


def test_absence_that_ends_late_but_before_a_suspension_starts_again_from_nothing() -> None:
    table = away_too_long(playing())
    assert table.comes_back(1).the(PlayerCameBack).sitting == 1
    assert table.suspends(1).refusal is Refusal.ABSENCE_WITHIN_LIMIT
    table.steps_away(1)
    assert table.suspends(1).refusal is Refusal.ABSENCE_WITHIN_LIMIT


def test_suspension_before_the_limit_or_of_nobody_is_refused() -> None:
    table = playing()
    assert table.suspends(1).refusal is Refusal.ABSENCE_WITHIN_LIMIT
    table.steps_away(1)
    assert table.suspends(1).refusal is Refusal.ABSENCE_WITHIN_LIMIT
    assert table.suspends(3).refusal is Refusal.POST_FREE


def test_suspension_by_anyone_but_a_director_is_refused() -> None:
    table = away_too_long(playing())
    for by in others(Role.DIRECTOR):
        assert table.suspends(1, by).refusal is Refusal.ROLE
    assert table.suspends(1, DIRECTOR).the(PostSuspended).by == DIRECTOR


def test_suspension_without_stakes_in_play_consigns_the_credit_and_frees_the_place() -> None:
    table = away_too_long(playing())
    consigned = table.suspends(1).the(StakeConsigned)
    assert (consigned.post, consigned.consignment, consigned.cents) == (1, 1, 1_000 * EURO)
    assert table.player(1) is None
    assert table.sits(1, "carla").refusal is None


@both
@pytest.mark.law("41")
def test_suspension_with_stakes_in_play_waits_for_their_result_and_consigns_both(conduct: Conduct) -> None:
    table = playing(conduct).reaches(Phase.BETTING)
    table.stakes(1, {"plein-17": 10 * EURO})
    away_too_long(table)
    assert table.suspends(1).kinds == ["PostSuspended"]
    assert table.sits(1, "carla").refusal is Refusal.POST_TAKEN
    table.closes_bets()
    ended = table.ends_round("17")
    assert ended.the(PostSettled).won == 350 * EURO
    assert ended.the(StakeConsigned).cents == 1_350 * EURO
    assert table.player(1) is None


def test_suspension_in_a_round_that_becomes_void_consigns_the_stake_that_came_back() -> None:
    table = betting()
    table.stakes(1, {"plein-17": 10 * EURO})
    away_too_long(table).suspends(1)
    table.declares_incident()
    table.voids()
    assert table.attests().the(StakeConsigned).cents == 1_000 * EURO


def test_suspended_player_can_ask_for_nothing_and_cannot_sit_elsewhere() -> None:
    table = betting()
    table.stakes(1, {"plein-17": 10 * EURO})
    away_too_long(table).suspends(1)
    asked = [
        table.takes_back(1),
        table.stakes(1, {"rouge": 2 * EURO}),
        table.comes_back(1),
        table.cashes_out(1),
        table.credits(1, EURO),
        table.suspends(1),
        table.notes_absence(1),
    ]
    assert {outcome.refusal for outcome in asked} == {Refusal.SUSPENDED}
    assert table.sits(3, "anna").refusal is Refusal.PLAYER_ELSEWHERE


def test_consigned_money_is_released_once_by_a_director_or_a_cashier() -> None:
    table = playing()
    for post in (1, 2):
        away_too_long(table, post).suspends(post)
    for by in others(Role.DIRECTOR, Role.CASHIER):
        assert table.releases(1, by).refusal is Refusal.ROLE
    released = table.releases(1, CASHIER).the(ConsignmentReleased)
    assert (released.post, released.cents, released.payout) == (1, 1_000 * EURO, 1)
    assert table.releases(2, DIRECTOR).the(ConsignmentReleased).payout == 2
    for consignment in (1, 2, 3):
        assert table.releases(consignment).refusal is Refusal.CONSIGNMENT_UNKNOWN


@pytest.mark.law("41")
def test_consigned_money_that_nobody_claims_is_an_orphan_at_the_end_of_the_seance() -> None:
    table = playing()
    for post in (1, 2):
        away_too_long(table, post).suspends(post)
    table.releases(1)
    assert table.closes_seance().every(OrphanRecorded) == [
        OrphanRecorded(consignment=2, post=2, cents=Cents(1_000 * EURO))
    ]
    assert table.releases(2).refusal is Refusal.SEANCE_CLOSED


def test_absences_that_ran_at_a_power_cut_get_their_whole_limit_again() -> None:
    table = playing()
    table.steps_away(1)
    away_too_long(table, 2)
    started = table.loses_power()
    assert [timer.name for timer in started.asked(SetTimer) if timer.name.startswith("absence")] == ["absence:1"]
    assert table.time_ends("absence:1").kinds == ["AbsenceExceeded"]
    assert table.suspends(2).refusal is None
