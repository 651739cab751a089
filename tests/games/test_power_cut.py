"""The power fails in each phase: what was certified stands, and nothing is ever resumed by guessing.

Bets still open: nobody can say whether the ball slowed meanwhile, so the round is void by rule. Bets certainly closed:
the ball lies in the wheel, and persons read it. An incident or a halt goes on as it was.
"""

import dataclasses

import pytest

from games.posts import PostRecredited, PostSettled
from games.refusals import Refusal
from games.roulette.coup import Phase
from games.roulette.facts import IncidentDeclared, NumberValidated, RoundClosed, RoundVoided
from games.roulette.rules import Conduct
from games.rules import Started, Stopping
from games.seance import PowerWheel, TableStarted, TableStopped, VerifyWheel
from games.signals import WheelFaultKind
from tests.games.table import EURO, Table, playing

both = pytest.mark.parametrize("conduct", list(Conduct))


def cut_in(conduct: Conduct, phase: Phase) -> Table:
    """10 € on 17 by Anna, on to this phase, and the power fails."""
    table = playing(conduct).reaches(Phase.BETTING)
    table.stakes(1, {"plein-17": 10 * EURO})
    if phase is not Phase.BETTING:
        table.closes_bets()
    if phase is Phase.VERIFYING:
        table.ball_in("17")
    if phase is Phase.MANUAL:
        table.declares_incident()
    table.loses_power()
    return table


@both
def test_power_cut_between_rounds_changes_nothing_but_the_wheels_verification(conduct: Conduct) -> None:
    table = playing(conduct)
    table.plays_round("17", {1: {"plein-17": 10 * EURO}})
    before = table.state
    started = table.loses_power()
    assert started.facts == (TableStarted(boot="boot-2", unclean=True),)
    assert started.requests == (VerifyWheel(), PowerWheel(on=True))
    assert dataclasses.replace(table.state, health=before.health) == before
    assert table.says_faites_vos_jeux().refusal is Refusal.WHEEL_NOT_VERIFIED
    table.wheel_is_verified()
    assert table.begins_round().refusal is None


@both
def test_power_cut_while_bets_are_open_voids_the_round_and_returns_every_stake(conduct: Conduct) -> None:
    table = cut_in(conduct, Phase.BETTING)
    assert table.last.kinds == ["TableStarted", "IncidentDeclared", "PostRecredited", "RoundVoided"]
    voided = table.last.the(RoundVoided)
    assert (voided.reason, voided.cents, voided.croupier, voided.director) == ("power_cut", 10 * EURO, None, None)
    assert table.last.the(PostRecredited).credit == table.credit(1) == 1_000 * EURO
    assert table.phase is Phase.HALTED


@both
@pytest.mark.law("67-15")
def test_power_cut_while_the_ball_is_awaited_leads_to_manual_mode_with_a_number(conduct: Conduct) -> None:
    table = cut_in(conduct, Phase.NO_MORE_BETS)
    assert table.last.requests == ()  # the wheel is left alone: the ball lies in it
    declared = table.last.the(IncidentDeclared)
    assert (declared.cause, declared.number_allowed, declared.hint) == ("power_cut", True, "")
    assert table.every(PostSettled) == []
    table.enters("17")
    table.attests()
    assert table.every(NumberValidated)[0].pocket == "17"
    assert table.credit(1) == 1_350 * EURO


@pytest.mark.law("67-15")
def test_power_cut_while_the_croupier_looks_leads_to_manual_mode_that_shows_what_was_detected() -> None:
    table = cut_in(Conduct.CROUPIER, Phase.VERIFYING)
    declared = table.last.the(IncidentDeclared)
    assert (declared.cause, declared.number_allowed, declared.hint) == ("power_cut", True, "17")
    assert table.confirms("17").refusal is Refusal.NOTHING_TO_CONFIRM
    table.voids()
    table.attests()
    assert table.credit(1) == 1_000 * EURO


@both
def test_power_cut_in_manual_mode_keeps_the_incident_and_what_was_entered(conduct: Conduct) -> None:
    table = cut_in(conduct, Phase.MANUAL)
    assert table.last.kinds == ["TableStarted"]
    assert table.phase is Phase.MANUAL
    table.enters("17")
    if conduct is Conduct.CROUPIER:
        table.loses_power()
        table.attests()
    assert table.every(RoundClosed)[0].pocket == "17"


@both
def test_power_cut_while_play_is_halted_keeps_it_halted(conduct: Conduct) -> None:
    table = playing(conduct).reaches(Phase.HALTED)
    assert table.loses_power().kinds == ["TableStarted"]
    table.wheel_is_verified()
    assert table.says_faites_vos_jeux().refusal is Refusal.HALTED
    table.restarts()
    assert table.says_faites_vos_jeux().refusal is None


@both
def test_power_cut_of_a_closed_table_asks_for_the_wheels_parameters_and_leaves_it_off(conduct: Conduct) -> None:
    assert Table(conduct).hears(Started, boot="boot-1", unclean=False).requests == (VerifyWheel(),)


@both
@pytest.mark.parametrize("phase", [Phase.BETTING, Phase.NO_MORE_BETS, Phase.MANUAL])
def test_power_cut_a_second_time_while_the_first_is_settled_pays_and_returns_nothing_twice(
    conduct: Conduct, phase: Phase
) -> None:
    table = cut_in(conduct, phase)
    for _ in range(3):
        assert table.loses_power().kinds == ["TableStarted"]
    table.voids()
    table.attests()
    assert table.credit(1) == 1_000 * EURO
    assert len(table.every(RoundVoided)) == 1


@both
def test_power_cut_makes_every_stake_of_the_round_before_late(conduct: Conduct) -> None:
    for phase in (Phase.BETTING, Phase.NO_MORE_BETS, Phase.MANUAL):
        table = cut_in(conduct, phase)
        assert table.stakes(1, {"rouge": 2 * EURO}).refusal is Refusal.STAKE_LATE


@pytest.mark.law("67-15")
def test_power_cut_forgets_the_keys_so_that_nobody_is_taken_to_be_present() -> None:
    table = playing()
    for key in ("croupier", "director"):
        table.turns_key(key)
    table.reaches(Phase.NO_MORE_BETS)
    table.loses_power()
    assert table.presses("confirmer").refusal is Refusal.KEY_OFF
    assert table.enters("17").kinds == ["EntryMade"]  # and not at once a settlement
    table.turns_key("director")  # the panel tells at start how each key stands
    assert table.enters("17").kinds[-1] == "RoundClosed"


def test_power_cut_does_not_end_a_fault_or_a_lost_link() -> None:
    table = playing()
    table.wheel_fails(WheelFaultKind.SENSOR_FAULT)
    table.wheel_falls_silent()
    table.storage_is("no_new_round")
    table.loses_power()
    assert table.says_faites_vos_jeux().reasons == (
        Refusal.WHEEL_SILENT,
        Refusal.WHEEL_FAULTY,
        Refusal.WHEEL_NOT_VERIFIED,
        Refusal.STORAGE_LOW,
    )


@both
def test_orderly_stop_in_an_open_round_is_settled_at_the_start_like_a_power_cut(conduct: Conduct) -> None:
    table = playing(conduct).reaches(Phase.BETTING)
    table.stakes(1, {"plein-17": 10 * EURO})
    assert table.hears(Stopping, boot="boot-1").facts == (TableStopped(boot="boot-1"),)
    assert table.hears(Started, boot="boot-2", unclean=False).the(RoundVoided).cents == 10 * EURO
