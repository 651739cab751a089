"""Manual mode: what the device could not settle, two persons settle, and a director lets play go on.

The law, electronic roulette, 1°: "En cas de non-détection du "rien ne va plus", le croupier passe en mode manuel. De la
même façon, en cas de non-détection du numéro, le croupier passe aussi en mode manuel afin de valider le numéro. Ces
deux opérations sont effectuées obligatoirement en présence d'un membre du comité de direction, qui procède à la relance
du jeu. Il en est de même pour tout autre incident."
"""

import pytest

from games.posts import PostRecredited, PostSettled
from games.refusals import Refusal
from games.roulette.coup import OPEN_PHASES, Phase
from games.roulette.facts import (
    EntryMade,
    GameRestarted,
    IncidentDeclared,
    NumberAnnounced,
    NumberValidated,
    PresenceAttested,
    ResetWheel,
    RoundClosed,
    RoundVoided,
)
from games.roulette.incident import CROUPIER_KEY, DIRECTOR_KEY
from games.roulette.layout import Wheel
from games.roulette.rules import Conduct
from games.rules import Lamp
from games.seance import VerifyWheel
from games.signals import Person, Role, WheelFaultKind
from tests.games.table import CROUPIER, DIRECTOR, EURO, Table, others, playing

both = pytest.mark.parametrize("conduct", list(Conduct))


def staked(conduct: Conduct = Conduct.CROUPIER, phase: Phase = Phase.MANUAL, **rules: object) -> Table:
    """10 € on 17 by Anna and 20 € on red by Ben, and then on to this phase."""
    table = playing(conduct, **rules).reaches(Phase.BETTING)
    table.stakes(1, {"plein-17": 10 * EURO})
    table.stakes(2, {"rouge": 20 * EURO})
    if phase is Phase.BETTING:
        return table
    table.closes_bets()
    if phase is Phase.VERIFYING:
        table.ball_in("17")
    if phase is Phase.MANUAL:
        table.declares_incident()
    assert table.phase is phase
    return table


def voided(table: Table) -> RoundVoided:
    """The round is made void by those who may, and the fact of it."""
    table.voids()
    if not table.launcher:
        table.attests()
    return table.last.the(RoundVoided)


# ── The number, by two persons ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_number_entered_by_the_croupier_pays_nobody_until_a_director_attests() -> None:
    table = staked()
    assert table.enters("17", CROUPIER).facts == (EntryMade(round=1, pocket="17", reason="", by=CROUPIER),)
    assert table.every(PostSettled) == []
    attested = table.attests(DIRECTOR)
    assert attested.facts[:2] == (
        PresenceAttested(round=1, by=DIRECTOR),
        NumberValidated(round=1, pocket="17", croupier=CROUPIER, director=DIRECTOR),
    )
    assert (table.credit(1), table.credit(2)) == (1_350 * EURO, 980 * EURO)


@pytest.mark.law("67-15")
def test_number_entered_while_the_directors_key_is_on_is_validated_at_once() -> None:
    table = staked()
    table.turns_key("director")
    entered = table.enters("17", CROUPIER)
    assert entered.the(NumberValidated).director == DIRECTOR_KEY
    assert entered.the(NumberValidated).croupier == CROUPIER
    assert entered.the(RoundClosed).pocket == "17"


@pytest.mark.law("67-15")
def test_number_entered_before_the_directors_key_is_on_is_validated_when_it_is_confirmed_again() -> None:
    table = staked()
    table.turns_key("croupier")
    table.presses("dizaine")
    table.presses("dizaine")
    for _ in range(7):
        table.presses("unite")
    assert table.presses("confirmer").facts == (EntryMade(round=1, pocket="17", reason="", by=CROUPIER_KEY),)
    table.turns_key("director")
    assert table.every(PostSettled) == []  # a key that is turned says who is there, not that he agrees
    assert table.presses("confirmer").the(NumberValidated).director == DIRECTOR_KEY


@pytest.mark.law("67-15")
def test_number_entered_by_the_director_needs_the_croupier_at_the_table() -> None:
    table = staked()
    assert table.enters("17", DIRECTOR).refusal is Refusal.CROUPIER_ABSENT
    table.turns_key("croupier")
    entered = table.enters("17", DIRECTOR)
    assert entered.the(NumberValidated).croupier == CROUPIER_KEY
    assert entered.the(NumberValidated).director == DIRECTOR


@pytest.mark.law("67-15")
def test_number_of_a_launcher_is_validated_by_the_director_alone() -> None:
    table = staked(Conduct.LAUNCHER)
    table.turns_key("croupier")  # whoever turns it: a launcher has no croupier
    entered = table.enters("17", DIRECTOR)
    assert entered.the(NumberValidated) == NumberValidated(round=1, pocket="17", croupier=None, director=DIRECTOR)
    assert table.credit(1) == 1_350 * EURO


@both
def test_number_entered_by_someone_without_the_role_is_refused(conduct: Conduct) -> None:
    table = staked(conduct)
    may = (Role.CROUPIER, Role.DIRECTOR) if conduct is Conduct.CROUPIER else (Role.DIRECTOR,)
    for by in others(*may):
        assert table.enters("17", by).refusal is Refusal.ROLE
        assert table.voids(by).refusal is Refusal.ROLE
    for by in others(Role.DIRECTOR):
        assert table.attests(by).refusal is Refusal.ROLE


def test_number_entered_wrongly_can_be_entered_again_before_the_director_attests() -> None:
    table = staked()
    table.enters("34")
    table.enters("17")
    assert table.attests().the(NumberValidated).pocket == "17"


@both
@pytest.mark.parametrize("pocket", ["37", "00", "", "x", "017", "-1"])
def test_number_that_the_wheel_does_not_have_cannot_be_entered(conduct: Conduct, pocket: str) -> None:
    table = staked(conduct)
    assert table.enters(pocket).refusal is Refusal.POCKET_UNKNOWN
    assert table.phase is Phase.MANUAL


def test_number_double_zero_can_be_entered_where_the_wheel_has_it() -> None:
    table = playing(wheel=Wheel.DOUBLE_ZERO).reaches(Phase.MANUAL)
    table.enters("00")
    assert table.attests().the(RoundClosed).pocket == "00"


def test_confirming_button_in_manual_mode_enters_nothing_that_nobody_dialled() -> None:
    table = staked(phase=Phase.VERIFYING)
    for key in ("croupier", "director"):
        table.turns_key(key)
    table.ball_in("4")  # the wheel changes its mind as the croupier confirms
    assert table.presses("confirmer").refusal is Refusal.POCKET_UNKNOWN
    assert table.every(PostSettled) == []
    table.presses("unite")
    assert table.presses("confirmer").the(NumberValidated).pocket == "0"


@both
def test_attestation_before_anything_is_entered_or_without_an_incident_is_refused(conduct: Conduct) -> None:
    table = playing(conduct)
    assert table.attests().refusal is Refusal.NO_INCIDENT
    table.reaches(Phase.MANUAL)
    assert table.attests().refusal is Refusal.NOTHING_ENTERED


@both
def test_entry_outside_manual_mode_is_refused_in_each_phase(conduct: Conduct) -> None:
    phases = set(Phase) - {Phase.MANUAL} - ({Phase.VERIFYING} if conduct is Conduct.LAUNCHER else set())
    for phase in phases:
        table = playing(conduct).reaches(phase)
        assert table.enters("17").refusal is Refusal.NO_INCIDENT, phase
        assert table.voids().refusal is Refusal.NO_INCIDENT, phase


# ── A void round ──────────────────────────────────────────────────────────────────────────────────────────────────────


@both
def test_void_round_gives_every_stake_back_exactly(conduct: Conduct) -> None:
    table = staked(conduct)
    assert (table.credit(1), table.credit(2)) == (990 * EURO, 980 * EURO)
    fact = voided(table)
    assert fact.cents == 30 * EURO and fact.reason == "unreadable"
    assert fact.director == DIRECTOR
    assert fact.croupier == (None if conduct is Conduct.LAUNCHER else CROUPIER)
    assert [back.cents for back in table.every(PostRecredited)] == [10 * EURO, 20 * EURO]
    assert (table.credit(1), table.credit(2)) == (1_000 * EURO, 1_000 * EURO)
    assert table.every(PostSettled) == []


def test_void_round_by_the_croupier_waits_for_the_director() -> None:
    table = staked()
    assert table.voids().kinds == ["EntryMade"]
    assert table.phase is Phase.MANUAL
    assert table.attests().the(RoundVoided).croupier == CROUPIER


def test_void_round_has_no_number_on_the_board() -> None:
    table = staked()
    voided(table)
    assert table.game.board(table.state)["last_numbers"] == []


# ── When a number may still count ─────────────────────────────────────────────────────────────────────────────────────


@both
@pytest.mark.parametrize(
    ("phase", "allowed"), [(Phase.BETTING, False), (Phase.NO_MORE_BETS, True), (Phase.VERIFYING, True)]
)
@pytest.mark.law("67-15")
def test_incident_allows_a_number_only_when_bets_were_certainly_closed(
    conduct: Conduct, phase: Phase, allowed: bool
) -> None:
    if conduct is Conduct.LAUNCHER and phase is Phase.VERIFYING:
        return
    table = staked(conduct, phase)
    assert table.declares_incident().the(IncidentDeclared).number_allowed is allowed
    if allowed:
        table.enters("17")
        table.attests()
        assert table.every(RoundClosed)[-1].pocket == "17"
    else:
        assert table.enters("17").refusal is Refusal.NUMBER_NOT_ALLOWED
        assert voided(table).cents == 30 * EURO


def test_incident_shows_the_number_that_the_croupier_looked_at_and_no_older_one() -> None:
    for phase, hint in ((Phase.IDLE, ""), (Phase.BETTING, ""), (Phase.NO_MORE_BETS, ""), (Phase.VERIFYING, "4")):
        table = playing()
        table.plays_round("17")
        table.reaches(phase, "4")
        assert table.declares_incident().the(IncidentDeclared).hint == hint


@both
def test_incident_refuses_every_stake_as_late_and_taking_back_too(conduct: Conduct) -> None:
    table = staked(conduct, Phase.BETTING)
    table.declares_incident()
    assert table.stakes(1, {"rouge": 2 * EURO}).refusal is Refusal.STAKE_LATE
    assert table.takes_back(1).refusal is Refusal.STAKE_LATE


@both
def test_incident_is_declared_by_those_who_conduct_and_not_twice(conduct: Conduct) -> None:
    table = staked(conduct, Phase.NO_MORE_BETS)
    may = (Role.CROUPIER, Role.DIRECTOR) if conduct is Conduct.CROUPIER else (Role.DIRECTOR,)
    for by in others(*may):
        assert table.declares_incident(by).refusal is Refusal.ROLE
    declared = table.declares_incident(reason="a player touched the ball").the(IncidentDeclared)
    assert (declared.cause, declared.detail) == ("declared", "a player touched the ball")
    assert declared.by == table.conductor
    assert table.declares_incident().refusal is Refusal.INCIDENT_OPEN
    voided(table)
    assert table.declares_incident().refusal is Refusal.INCIDENT_OPEN


@both
@pytest.mark.law("67-15")
def test_incident_outside_a_round_halts_play_until_a_director_restarts_it(conduct: Conduct) -> None:
    table = playing(conduct)
    table.plays_round()
    assert table.declares_incident().the(IncidentDeclared).round == 0
    assert table.phase is Phase.HALTED
    assert table.enters("17").refusal is Refusal.NO_INCIDENT
    assert table.says_faites_vos_jeux().refusal is Refusal.HALTED
    table.restarts()
    assert table.begins_round().refusal is None


# ── The restart ───────────────────────────────────────────────────────────────────────────────────────────────────────


@both
@pytest.mark.parametrize("by", others(Role.DIRECTOR), ids=lambda person: person.role)
@pytest.mark.law("67-15")
def test_game_is_restarted_by_a_director_and_by_nobody_else(conduct: Conduct, by: Person) -> None:
    table = playing(conduct).reaches(Phase.HALTED)
    assert table.restarts(by).refusal is Refusal.ROLE
    assert table.phase is Phase.HALTED
    restarted = table.restarts(DIRECTOR)
    assert restarted.facts == (GameRestarted(by=DIRECTOR),)
    assert restarted.asked(ResetWheel) == [ResetWheel()]
    assert restarted.asked(VerifyWheel) == [VerifyWheel()]
    assert table.phase is Phase.IDLE


@both
def test_game_that_is_not_halted_cannot_be_restarted(conduct: Conduct) -> None:
    for phase in (Phase.IDLE, Phase.BETTING, Phase.NO_MORE_BETS, Phase.MANUAL):
        assert playing(conduct).reaches(phase).restarts().refusal is Refusal.NOT_HALTED, phase


@pytest.mark.law("67-15")
def test_game_after_a_validated_number_is_halted_too_until_the_director_restarts_it() -> None:
    table = staked()
    table.enters("17")
    table.attests()
    assert table.phase is Phase.HALTED
    assert table.says_faites_vos_jeux().refusal is Refusal.HALTED
    table.turns_key("director")
    assert table.presses("relance").the(GameRestarted).by == DIRECTOR_KEY
    assert table.says_faites_vos_jeux().refusal is None


def test_next_round_of_a_launcher_is_asked_for_by_the_restart() -> None:
    table = playing(Conduct.LAUNCHER).reaches(Phase.HALTED)
    assert "next_round" not in table.timers
    table.restarts()
    assert table.time_ends("next_round").kinds == ["BettingOpened"]


def test_lamps_and_board_show_an_incident_until_its_end() -> None:
    table = playing().reaches(Phase.MANUAL)
    shown = []
    for step in (table.voids, table.attests, table.restarts):
        shown.append((table.game.lamps(table.state)["incident"], table.game.board(table.state)["text"]))
        step()
    assert shown == [
        (Lamp.BLINKING, "Incident : jeu suspendu"),
        (Lamp.BLINKING, "Incident : jeu suspendu"),
        (Lamp.ON, "Jeu suspendu"),
    ]
    assert table.game.lamps(table.state)["incident"] is Lamp.OFF


# ── Results that never pay ────────────────────────────────────────────────────────────────────────────────────────────


@both
def test_result_of_another_spin_is_an_incident_that_shows_it_and_pays_nobody(conduct: Conduct) -> None:
    for shift in (-1, 1, 100):
        table = staked(conduct, Phase.NO_MORE_BETS)
        spin = table.state.coup.spin or 0
        declared = table.ball_in("17", spin=spin + shift).the(IncidentDeclared)
        assert (declared.cause, declared.hint) == ("result_of_another_spin", "17")
        assert table.every(PostSettled) == []


@both
def test_result_that_was_missed_is_a_hint_for_persons_and_pays_nobody(conduct: Conduct) -> None:
    for phase, allowed in ((Phase.BETTING, False), (Phase.NO_MORE_BETS, True)):
        table = staked(conduct, phase)
        declared = table.ball_was_in("17").the(IncidentDeclared)
        assert (declared.cause, declared.hint, declared.number_allowed) == ("result_missed", "17", allowed)
        assert table.every(NumberAnnounced) == []


@both
def test_result_on_an_unknown_pocket_is_an_incident_and_pays_nobody(conduct: Conduct) -> None:
    for phase in (Phase.BETTING, Phase.NO_MORE_BETS):
        table = staked(conduct, phase)
        for seen in (table.ball_in, table.ball_was_in):
            seen("00")
        assert table.every(IncidentDeclared)[0].cause == "pocket_unknown"
        assert table.every(PostSettled) == []


@pytest.mark.law("67-15")
def test_result_that_the_wheel_contradicts_while_the_croupier_looks_is_an_incident() -> None:
    table = staked(phase=Phase.VERIFYING)
    declared = table.ball_in("34").the(IncidentDeclared)
    assert (declared.cause, declared.detail) == ("number_contradicted", "17 then 34")
    assert table.confirms("17").refusal is Refusal.NOTHING_TO_CONFIRM
    assert table.every(PostSettled) == []


@both
def test_result_that_two_readings_of_the_wheel_contradict_is_an_incident_in_each_phase(conduct: Conduct) -> None:
    for phase in (Phase.NO_MORE_BETS, Phase.VERIFYING):
        if conduct is Conduct.LAUNCHER and phase is Phase.VERIFYING:
            continue
        table = staked(conduct, phase)
        assert table.wheel_fails(WheelFaultKind.NUMBER_CONTRADICTED).kinds == ["WheelFaultBegan", "IncidentDeclared"]
        assert table.confirms("17").refusal is Refusal.NOTHING_TO_CONFIRM
        assert table.every(PostSettled) == []


@both
def test_result_that_comes_in_manual_mode_is_shown_as_a_hint_and_pays_nobody(conduct: Conduct) -> None:
    table = staked(conduct)
    assert table.ball_in("17").kinds == ["ObservationDisregarded"]
    table.ball_runs()
    assert table.state.coup.incident is not None and table.state.coup.incident.hint == "17"
    assert table.every(PostSettled) == []


@both
def test_result_twice_in_one_round_pays_once(conduct: Conduct) -> None:
    table = staked(conduct, Phase.NO_MORE_BETS)
    table.ends_round("17")
    credit = table.credit(1)
    for _ in range(2):
        table.ball_in("17")
        table.ball_in("17", spin=99)
    assert table.credit(1) == credit == 1_350 * EURO
    assert len(table.every(RoundClosed)) == 1


@pytest.mark.parametrize("phase", OPEN_PHASES)
def test_launch_while_bets_are_closed_or_an_incident_is_open_is_disregarded(phase: Phase) -> None:
    table = staked(phase=phase)
    assert table.ball_runs().kinds == (["SpinStarted"] if phase is Phase.BETTING else ["ObservationDisregarded"])
