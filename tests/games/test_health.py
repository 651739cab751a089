"""The devices: a condition is one fact when it begins and one when it ends, and forbids a new round meanwhile.

What a fault does to the round that is open depends on the phase alone: while bets are open it leads to a void round,
once they are closed two persons may still read the number, and while the croupier looks, only a contradiction of the
very number that he looks at stops him (wheel notes, 2.5).
"""

import pytest

from games.health import (
    DeviceLinkLost,
    DeviceLinkRestored,
    JournalFoundDoubtful,
    PanelInputFaulted,
    StorageRanLow,
    WallClockStepped,
    WheelFaultBegan,
    WheelFaultEnded,
    WheelParametersRead,
)
from games.posts import PostSettled
from games.refusals import Refusal
from games.roulette.coup import Phase
from games.roulette.facts import IncidentDeclared, ResetWheel
from games.roulette.rules import Conduct
from games.seance import PowerWheel, VerifyWheel
from games.signals import ClockStepped, InputFaultSeen, JournalDoubted, WheelFaultKind
from tests.games.table import EURO, Table, playing

both = pytest.mark.parametrize("conduct", list(Conduct))

STOPPING = sorted(set(WheelFaultKind) - {WheelFaultKind.LAUNCH_FAILED, WheelFaultKind.PARAMETER_DRIFT})
"""The faults that stop a round at once."""


# ── Conditions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_link_that_is_lost_and_restored_is_one_fact_each_time() -> None:
    table = playing()
    assert table.wheel_falls_silent().facts == (DeviceLinkLost(device="wheel", silent_ms=2_500),)
    assert table.wheel_falls_silent().facts == ()
    assert table.wheel_is_heard().facts == (DeviceLinkRestored(device="wheel"),)
    assert table.wheel_is_heard().facts == ()


def test_fault_that_begins_and_ends_is_one_fact_each_time() -> None:
    table = playing()
    fault = WheelFaultKind.ROTOR_SPEED
    assert table.wheel_fails(fault, "90 rpm").facts == (WheelFaultBegan(fault=fault, detail="90 rpm"),)
    assert table.wheel_fails(fault, "91 rpm").facts == ()
    assert table.wheel_recovers(fault).facts == (WheelFaultEnded(fault=fault, lasted_ms=900),)
    assert table.wheel_recovers(fault).facts == ()


def test_storage_level_is_a_fact_when_it_changes() -> None:
    table = playing()
    assert table.storage_is("ok").facts == ()
    assert table.storage_is("warn").facts == (StorageRanLow(level="warn", free_bytes=1_000),)
    assert table.storage_is("warn").facts == ()
    assert table.storage_is("ok").kinds == ["StorageRanLow"]


def test_panel_fault_and_clock_step_are_facts_that_change_nothing_else() -> None:
    for phase in Phase:
        table = playing().reaches(phase)
        before = table.state
        assert table.hears(InputFaultSeen, name="relance", detail="stuck").facts == (
            PanelInputFaulted(name="relance", detail="stuck"),
        )
        assert table.hears(ClockStepped, by_ms=-3_600_000, quality="free").facts == (
            WallClockStepped(by_ms=-3_600_000, quality="free"),
        )
        assert table.state == before


def test_verification_of_the_wheel_is_a_fact_with_every_difference() -> None:
    table = playing()
    read = table.wheel_is_verified("mode: is 1157, must be 1159", "pockets: is 38, must be 37").the(WheelParametersRead)
    assert read.differences == ("mode: is 1157, must be 1159", "pockets: is 38, must be 37")
    assert not table.state.health.verified


# ── No new round ──────────────────────────────────────────────────────────────────────────────────────────────────────


@both
@pytest.mark.parametrize("level", ["no_new_round", "close"])
def test_storage_that_runs_low_lets_the_round_end_and_no_new_one_begin(conduct: Conduct, level: str) -> None:
    table = playing(conduct).reaches(Phase.NO_MORE_BETS)
    table.storage_is(level)
    assert table.ends_round("17").kinds[-1] == "RoundClosed"
    assert table.says_faites_vos_jeux().refusal is Refusal.STORAGE_LOW
    table.storage_is("warn")
    assert table.begins_round().refusal is None


@both
@pytest.mark.parametrize("fault", list(WheelFaultKind))
def test_fault_that_stands_lets_no_new_round_begin_until_it_is_over(conduct: Conduct, fault: WheelFaultKind) -> None:
    table = playing(conduct)
    table.wheel_fails(fault)
    assert table.says_faites_vos_jeux().refusal is Refusal.WHEEL_FAULTY
    table.wheel_recovers(fault)
    assert table.begins_round().refusal is None


@both
def test_journal_that_the_centre_contradicts_lets_the_round_end_and_no_new_one_begin(conduct: Conduct) -> None:
    table = playing(conduct).reaches(Phase.NO_MORE_BETS)
    doubted = table.hears(JournalDoubted, code="E-FORK", detail="entry 7")
    assert doubted.facts == (JournalFoundDoubtful(code="E-FORK", detail="entry 7"),)
    assert table.hears(JournalDoubted, code="E-FORK", detail="entry 8").facts == ()
    assert table.ends_round("17").kinds[-1] == "RoundClosed"
    assert table.says_faites_vos_jeux().refusal is Refusal.JOURNAL_DOUBTED
    table.loses_power()
    table.wheel_is_verified()
    assert table.says_faites_vos_jeux().refusal is Refusal.JOURNAL_DOUBTED
    for post in (1, 2):
        table.cashes_out(post)
    assert table.closes_seance().refusal is None


@both
def test_wheel_that_was_lost_is_read_again_before_a_new_round(conduct: Conduct) -> None:
    table = playing(conduct)
    table.wheel_falls_silent()
    assert table.says_faites_vos_jeux().reasons == (Refusal.WHEEL_SILENT, Refusal.WHEEL_NOT_VERIFIED)
    assert table.wheel_is_heard().requests == (VerifyWheel(), PowerWheel(on=True))
    assert table.says_faites_vos_jeux().refusal is Refusal.WHEEL_NOT_VERIFIED
    table.wheel_is_verified()
    assert table.begins_round().refusal is None


def test_wheel_that_was_lost_while_the_croupier_looked_is_read_again_after_his_word() -> None:
    table = playing().reaches(Phase.VERIFYING, "17")
    assert table.wheel_falls_silent().kinds == ["DeviceLinkLost"]
    assert table.wheel_is_heard().requests == ()  # the round is open: the wheel cannot be read now
    confirmed = table.confirms("17")
    assert confirmed.kinds[-1] == "RoundClosed"
    assert confirmed.asked(VerifyWheel) == [VerifyWheel()]


def test_link_of_another_device_leaves_the_wheel_as_it_is() -> None:
    table = playing()
    table.wheel_falls_silent("panel")
    assert table.wheel_is_heard("panel").requests == ()
    table.wheel_falls_silent("panel")
    assert table.says_faites_vos_jeux().refusal is None
    assert table.ball_runs().kinds == ["SpinStarted"]
    assert table.wheel_is_heard("panel").requests == ()
    unread = Table()
    unread.wheel_falls_silent("panel")
    assert not unread.state.health.verified


# ── Faults in an open round ───────────────────────────────────────────────────────────────────────────────────────────


@both
@pytest.mark.parametrize(("phase", "allowed"), [(Phase.BETTING, False), (Phase.NO_MORE_BETS, True)])
@pytest.mark.law("67-15")
def test_wheel_that_falls_silent_in_a_round_leads_to_manual_mode(conduct: Conduct, phase: Phase, allowed: bool) -> None:
    table = playing(conduct).reaches(phase)
    declared = table.wheel_falls_silent().the(IncidentDeclared)
    assert (declared.cause, declared.number_allowed) == ("wheel_silent", allowed)


@both
@pytest.mark.parametrize("fault", STOPPING)
@pytest.mark.law("67-15")
def test_fault_in_a_round_leads_to_manual_mode_and_pays_nobody(conduct: Conduct, fault: WheelFaultKind) -> None:
    for phase in (Phase.BETTING, Phase.NO_MORE_BETS):
        table = playing(conduct).reaches(Phase.BETTING)
        table.stakes(1, {"plein-17": EURO})
        if phase is Phase.NO_MORE_BETS:
            table.closes_bets()
        declared = table.wheel_fails(fault, "code 4").the(IncidentDeclared)
        certain = phase is Phase.NO_MORE_BETS and fault is not WheelFaultKind.BALL_WITH_ROTOR
        assert (declared.cause, declared.detail, declared.number_allowed) == (fault, "code 4", certain)
        assert table.ball_in("17").kinds == ["ObservationDisregarded"]
        assert table.every(PostSettled) == []


@pytest.mark.law("67-15")
def test_ball_that_turns_with_the_rotor_makes_the_spin_void_and_resets_the_wheel() -> None:
    table = playing().reaches(Phase.NO_MORE_BETS)
    assert table.wheel_fails(WheelFaultKind.BALL_WITH_ROTOR).asked(ResetWheel) == [ResetWheel()]
    assert table.enters("17").refusal is Refusal.NUMBER_NOT_ALLOWED


@both
def test_parameters_that_drift_let_the_round_end_as_it_began(conduct: Conduct) -> None:
    for phase in (Phase.BETTING, Phase.NO_MORE_BETS):
        table = playing(conduct).reaches(phase)
        assert table.wheel_fails(WheelFaultKind.PARAMETER_DRIFT).kinds == ["WheelFaultBegan"]
        if phase is Phase.BETTING:
            table.closes_bets()
        assert table.ends_round("17").kinds[-1] == "RoundClosed"
        assert table.says_faites_vos_jeux().refusal is Refusal.WHEEL_FAULTY


@both
def test_launch_that_fails_is_the_wheels_to_repeat_until_the_limit_and_then_an_incident(conduct: Conduct) -> None:
    table = playing(conduct, relaunch_limit=3).reaches(Phase.BETTING)
    if table.launcher:
        table.time_ends("launch")
    failed = WheelFaultKind.LAUNCH_FAILED
    for _ in range(2):
        table.ball_runs()
        assert table.wheel_fails(failed).kinds == ["WheelFaultBegan"]
        table.wheel_recovers(failed)
    table.ball_runs()
    declared = table.wheel_fails(failed).the(IncidentDeclared)
    assert (declared.cause, declared.number_allowed) == ("launch_failed", False)


def test_launch_that_fails_is_counted_once_however_often_the_wheel_says_so() -> None:
    table = playing(relaunch_limit=2).reaches(Phase.BETTING)
    failed = WheelFaultKind.LAUNCH_FAILED
    assert table.wheel_fails(failed).kinds == ["WheelFaultBegan"]
    assert table.wheel_fails(failed).facts == ()
    assert table.phase is Phase.BETTING


def test_launch_that_fails_after_rien_ne_va_plus_is_an_incident() -> None:
    table = playing().reaches(Phase.NO_MORE_BETS)
    assert table.wheel_fails(WheelFaultKind.LAUNCH_FAILED).the(IncidentDeclared).cause == "launch_failed"


@pytest.mark.parametrize("fault", sorted(set(WheelFaultKind) - {WheelFaultKind.NUMBER_CONTRADICTED}))
def test_fault_that_begins_while_the_croupier_looks_does_not_stop_him(fault: WheelFaultKind) -> None:
    table = playing().reaches(Phase.VERIFYING, "17")
    assert table.wheel_fails(fault).kinds == ["WheelFaultBegan"]
    assert table.confirms("17").kinds[-1] == "RoundClosed"
    assert table.says_faites_vos_jeux().refusal is Refusal.WHEEL_FAULTY


@both
@pytest.mark.parametrize("phase", [Phase.IDLE, Phase.MANUAL, Phase.HALTED])
def test_fault_or_silence_outside_a_running_round_is_a_fact_and_no_second_incident(
    conduct: Conduct, phase: Phase
) -> None:
    table = playing(conduct).reaches(phase)
    incidents = len(table.every(IncidentDeclared))
    for fault in WheelFaultKind:
        assert table.wheel_fails(fault).kinds == ["WheelFaultBegan"]
    assert table.wheel_falls_silent().kinds == ["DeviceLinkLost"]
    assert len(table.every(IncidentDeclared)) == incidents
    assert table.phase is phase


@both
def test_wheel_that_is_unplugged_and_plugged_in_again_in_each_phase_never_pays_or_loses_a_stake(
    conduct: Conduct,
) -> None:
    for phase in (Phase.BETTING, Phase.NO_MORE_BETS):
        table = playing(conduct).reaches(Phase.BETTING)
        table.stakes(1, {"plein-17": 10 * EURO})
        if phase is Phase.NO_MORE_BETS:
            table.closes_bets()
        table.wheel_falls_silent()
        table.wheel_is_heard()
        table.ball_was_in("17")
        assert table.every(PostSettled) == []
        table.voids()
        table.attests()
        assert table.credit(1) == 1_000 * EURO
        assert VerifyWheel() in table.restarts().requests
        table.wheel_is_verified()
        assert table.begins_round().refusal is None
