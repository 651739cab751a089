"""The séance: who opens and closes it, when, and that it ends with exactly three announced balls and balanced books.

The law, electronic roulette, 1°: "En début de séance, le croupier met en service les postes de jeu. Un membre du comité
de direction valide les opérations d'ouverture (…) dotée d'un lanceur automatique, la mise en service est opérée par un
membre du comité de direction (…) après l'annonce préalable des trois dernières billes par le croupier ou par un membre
du comité de direction s'il s'agit d'un appareil doté du lanceur automatique (…) valide la fermeture".
"""

import pytest

from games.posts import OrphanRecorded, PlayerPaidOut
from games.refusals import Refusal
from games.roulette.coup import OPEN_PHASES, Phase
from games.roulette.facts import BettingOpened, RoundClosed
from games.roulette.rules import Conduct
from games.roulette.spin import hindrances
from games.seance import (
    LastRoundsAnnounced,
    PostsPutInService,
    PowerWheel,
    SeanceClosed,
    SeanceOpened,
    SeancePhase,
    VerifyWheel,
)
from games.signals import Person, Role, WheelFaultKind
from tests.games.table import CASHIER, CROUPIER, DIRECTOR, EURO, RULES_SHA256, SEANCE, Table, others, playing

both = pytest.mark.parametrize("conduct", list(Conduct))


def ready(conduct: Conduct) -> Table:
    """A closed table that a director could open now."""
    table = Table(conduct)
    table.wheel_is_verified()
    if conduct is Conduct.CROUPIER:
        table.puts_posts_in_service()
    return table


# ── Opening ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
def test_opening_by_a_director_after_the_croupier_put_the_posts_in_service_opens_the_seance() -> None:
    table = Table(Conduct.CROUPIER)
    table.wheel_is_verified()
    assert table.puts_posts_in_service(CROUPIER).the(PostsPutInService).by == CROUPIER
    assert not table.state.seance.open
    opened = table.opens_seance(DIRECTOR)
    assert opened.facts == (SeanceOpened(seance=SEANCE, by=DIRECTOR, rules_sha256=RULES_SHA256),)
    assert table.state.seance.open


@pytest.mark.law("67-15")
def test_opening_before_the_posts_are_in_service_is_refused() -> None:
    table = Table(Conduct.CROUPIER)
    table.wheel_is_verified()
    assert table.opens_seance().refusal is Refusal.POSTS_NOT_IN_SERVICE
    assert not table.state.seance.open


@pytest.mark.law("67-15")
def test_opening_with_a_launcher_is_done_by_the_director_alone() -> None:
    table = ready(Conduct.LAUNCHER)
    assert table.opens_seance(DIRECTOR).kinds == ["PostsPutInService", "SeanceOpened"]
    assert table.every(PostsPutInService)[0].by == DIRECTOR


@pytest.mark.law("67-15")
@pytest.mark.parametrize("by", others(Role.DIRECTOR), ids=lambda person: person.role)
def test_posts_of_a_launcher_are_put_in_service_by_nobody_but_a_director(by: Person) -> None:
    table = ready(Conduct.LAUNCHER)
    assert table.puts_posts_in_service(by).refusal is Refusal.ROLE
    assert table.puts_posts_in_service(DIRECTOR).kinds == ["PostsPutInService"]
    assert table.opens_seance().kinds == ["SeanceOpened"]


@both
@pytest.mark.law("67-15")
@pytest.mark.parametrize("by", others(Role.DIRECTOR), ids=lambda person: person.role)
def test_opening_by_anyone_but_a_director_is_refused(conduct: Conduct, by: Person) -> None:
    table = ready(conduct)
    assert table.opens_seance(by).refusal is Refusal.ROLE
    assert not table.state.seance.open


def test_posts_put_in_service_twice_or_in_an_open_seance_are_refused() -> None:
    table = ready(Conduct.CROUPIER)
    assert table.puts_posts_in_service().refusal is Refusal.POSTS_IN_SERVICE
    table.opens_seance()
    assert table.puts_posts_in_service().refusal is Refusal.SEANCE_OPEN
    assert table.opens_seance().refusal is Refusal.SEANCE_OPEN


def test_opening_at_a_table_that_is_not_fit_is_refused_with_every_reason_at_once() -> None:
    table = Table(Conduct.CROUPIER)
    table.wheel_falls_silent()
    table.wheel_fails(WheelFaultKind.SENSOR_FAULT)
    table.storage_is("no_new_round")
    refused = table.opens_seance()
    assert refused.reasons == (
        Refusal.POSTS_NOT_IN_SERVICE,
        Refusal.WHEEL_SILENT,
        Refusal.WHEEL_FAULTY,
        Refusal.WHEEL_NOT_VERIFIED,
        Refusal.STORAGE_LOW,
    )
    assert refused.refusal is Refusal.POSTS_NOT_IN_SERVICE


@both
def test_opening_with_a_wheel_whose_parameters_differ_is_refused_until_they_agree(conduct: Conduct) -> None:
    table = ready(conduct)
    table.wheel_is_verified("pockets: is 38, must be 37")
    assert table.opens_seance().refusal is Refusal.WHEEL_NOT_VERIFIED
    table.wheel_is_verified()
    assert table.opens_seance().refusal is None


@both
def test_opening_switches_the_wheel_on_and_closing_switches_it_off_to_be_verified_anew(conduct: Conduct) -> None:
    table = ready(conduct)
    assert table.opens_seance().asked(PowerWheel) == [PowerWheel(on=True)]
    assert table.closes_seance().requests == (PowerWheel(on=False), VerifyWheel())
    if conduct is Conduct.CROUPIER:
        table.puts_posts_in_service()
    assert table.opens_seance().refusal is Refusal.WHEEL_NOT_VERIFIED
    table.wheel_is_verified()
    assert table.opens_seance().refusal is None


@both
def test_closed_table_refuses_everything_but_its_opening(conduct: Conduct) -> None:
    table = Table(conduct)
    orders = [
        table.says_faites_vos_jeux,
        table.says_rien_ne_va_plus,
        table.declares_incident,
        table.voids,
        table.attests,
        table.restarts,
        table.announces_last,
        table.closes_seance,
    ]
    assert {order().refusal for order in orders} == {Refusal.SEANCE_CLOSED}
    assert table.credits(1, EURO).refusal is Refusal.SEANCE_CLOSED
    assert table.confirms("17").refusal is Refusal.SEANCE_CLOSED
    assert table.sits(1).refusal is Refusal.POST_OUT_OF_SERVICE
    assert table.stakes(1, {"rouge": EURO}).refusal is Refusal.POST_OUT_OF_SERVICE


@both
def test_closed_table_says_every_reason_why_no_round_can_begin(conduct: Conduct) -> None:
    table = Table(conduct)
    assert hindrances(table.rules, table.state) == (Refusal.SEANCE_CLOSED, Refusal.WHEEL_NOT_VERIFIED)


# ── The three last balls ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.law("67-15")
@pytest.mark.parametrize("by", [CROUPIER, DIRECTOR], ids=lambda person: person.role)
def test_last_balls_are_announced_by_the_croupier_or_by_a_director(by: Person) -> None:
    table = playing(Conduct.CROUPIER)
    assert table.announces_last(by).facts == (LastRoundsAnnounced(by=by, after_round=0),)


@pytest.mark.law("67-15")
@pytest.mark.parametrize("by", others(Role.DIRECTOR), ids=lambda person: person.role)
def test_last_balls_of_a_launcher_are_announced_by_a_director_only(by: Person) -> None:
    table = playing(Conduct.LAUNCHER)
    assert table.announces_last(by).refusal is Refusal.ROLE
    assert table.announces_last(DIRECTOR).kinds == ["LastRoundsAnnounced"]


@pytest.mark.parametrize("by", others(Role.CROUPIER, Role.DIRECTOR), ids=lambda person: person.role)
def test_last_balls_announced_by_someone_without_the_role_are_refused(by: Person) -> None:
    assert playing(Conduct.CROUPIER).announces_last(by).refusal is Refusal.ROLE


@both
@pytest.mark.law("67-15")
def test_last_balls_are_exactly_three_and_a_fourth_is_refused(conduct: Conduct) -> None:
    table = playing(conduct)
    table.plays_round("4")
    table.announces_last()
    for left, pocket in zip((2, 1, 0), ("17", "0", "32"), strict=True):
        assert table.state.seance.may_play
        table.plays_round(pocket, {1: {"rouge": 2 * EURO}})
        assert table.state.seance.last_left == left
    assert table.state.seance.phase is SeancePhase.ENDED
    assert table.says_faites_vos_jeux().refusal is Refusal.LAST_PLAYED
    assert "next_round" not in table.timers
    assert len(table.every(RoundClosed)) == 4


@both
def test_last_balls_announced_twice_or_after_the_end_are_refused(conduct: Conduct) -> None:
    table = playing(conduct)
    table.announces_last()
    assert table.announces_last().refusal is Refusal.LAST_ANNOUNCED
    for _ in range(3):
        table.plays_round()
    assert table.announces_last().refusal is Refusal.LAST_PLAYED


@both
@pytest.mark.law("67-15")
def test_round_that_is_void_after_the_announcement_is_played_again_and_does_not_count(conduct: Conduct) -> None:
    table = playing(conduct)
    table.announces_last()
    table.plays_round()
    table.reaches(Phase.HALTED)
    table.restarts()
    assert table.state.seance.last_left == 2
    table.plays_round()
    table.plays_round()
    assert table.state.seance.phase is SeancePhase.ENDED
    assert len(table.every(BettingOpened)) == 4


@both
@pytest.mark.parametrize("phase", OPEN_PHASES)
@pytest.mark.law("67-15")
def test_round_that_runs_at_the_announcement_does_not_count_among_the_three(conduct: Conduct, phase: Phase) -> None:
    if conduct is Conduct.LAUNCHER and phase is Phase.VERIFYING:
        phase = Phase.NO_MORE_BETS  # the device announces at once: there is nothing to verify
    table = playing(conduct).reaches(phase)
    assert table.announces_last().the(LastRoundsAnnounced).after_round == 1
    match phase:
        case Phase.BETTING:
            table.closes_bets()
            table.ends_round("17")
        case Phase.NO_MORE_BETS:
            table.ends_round("17")
        case Phase.VERIFYING:
            table.confirms("17")
        case _:
            table.enters("17")
            table.attests()
            table.restarts()
    assert len(table.every(RoundClosed)) == 1
    assert table.state.seance.last_left == 3
    for _ in range(3):
        table.plays_round()
    assert table.state.seance.phase is SeancePhase.ENDED


@pytest.mark.law("67-15")
def test_last_balls_announced_while_play_is_halted_follow_the_restart() -> None:
    table = playing(Conduct.LAUNCHER).reaches(Phase.HALTED)
    table.announces_last()
    table.restarts()
    for _ in range(3):
        table.plays_round()
    assert table.state.seance.phase is SeancePhase.ENDED


@both
@pytest.mark.law("67-15")
def test_closing_after_the_announcement_waits_for_the_last_balls_even_when_every_player_has_left(
    conduct: Conduct,
) -> None:
    table = playing(conduct)
    table.announces_last()
    table.cashes_out(1)
    table.cashes_out(2)
    assert table.closes_seance().refusal is Refusal.LAST_NOT_PLAYED


@pytest.mark.law("31")
@pytest.mark.parametrize("conduct", list(Conduct))
def test_closing_after_the_announcement_needs_no_balls_when_everybody_left_and_the_wheel_cannot_play(
    conduct: Conduct,
) -> None:
    table = playing(conduct)
    table.announces_last()
    table.cashes_out(1)
    table.wheel_falls_silent()
    assert table.closes_seance().refusal is Refusal.LAST_NOT_PLAYED
    table.cashes_out(2)
    assert table.closes_seance().refusal is None


@pytest.mark.law("67-15")
def test_last_balls_of_a_launcher_are_played_even_when_every_player_has_left() -> None:
    table = playing(Conduct.LAUNCHER)
    table.announces_last()
    table.cashes_out(1)
    table.cashes_out(2)
    for _ in range(3):
        table.plays_round()
    assert table.closes_seance().refusal is None


# ── Closing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@both
@pytest.mark.law("67-15")
def test_closing_after_the_last_ball_is_validated_by_a_director(conduct: Conduct) -> None:
    table = playing(conduct)
    table.announces_last()
    for _ in range(3):
        table.plays_round()
    for by in others(Role.DIRECTOR):
        assert table.closes_seance(by).refusal is Refusal.ROLE
    assert table.closes_seance(DIRECTOR).the(SeanceClosed).by == DIRECTOR
    assert not table.state.seance.open


@both
@pytest.mark.law("67-15")
def test_closing_before_the_last_balls_are_played_is_refused(conduct: Conduct) -> None:
    table = playing(conduct)
    table.plays_round(stakes={1: {"rouge": 2 * EURO}})
    assert table.closes_seance().refusal is Refusal.LAST_NOT_PLAYED
    table.announces_last()
    for _ in range(2):
        table.plays_round(stakes={1: {"rouge": 2 * EURO}})
        assert table.closes_seance().refusal is Refusal.LAST_NOT_PLAYED
    table.plays_round()
    assert table.closes_seance().refusal is None


@pytest.mark.parametrize("phase", OPEN_PHASES)
def test_closing_while_a_round_is_open_is_refused_in_each_phase(phase: Phase) -> None:
    table = playing(Conduct.CROUPIER)
    for _ in range(3):
        table.plays_round()
    table.reaches(phase)
    assert table.closes_seance().refusal is Refusal.ROUND_OPEN


@both
@pytest.mark.law("31")
def test_closing_after_three_rounds_without_a_stake_needs_no_announcement(conduct: Conduct) -> None:
    table = playing(conduct)
    table.plays_round()
    table.plays_round()
    assert table.closes_seance().refusal is Refusal.LAST_NOT_PLAYED
    table.plays_round()
    assert table.closes_seance().refusal is None


@both
@pytest.mark.law("31")
def test_closing_after_three_empty_rounds_that_a_stake_interrupted_is_refused(conduct: Conduct) -> None:
    table = playing(conduct)
    for stakes in ({}, {}, {1: {"plein-17": EURO}}, {}):
        table.plays_round("4", stakes)
    assert table.closes_seance().refusal is Refusal.LAST_NOT_PLAYED


@both
@pytest.mark.law("31")
def test_void_round_with_stakes_interrupts_a_run_of_empty_rounds_and_an_empty_one_does_not(conduct: Conduct) -> None:
    for staked, empty in ((True, 0), (False, 2)):
        table = playing(conduct)
        table.plays_round()
        table.plays_round()
        table.begins_round()
        if staked:
            table.stakes(1, {"rouge": 2 * EURO})
        table.closes_bets()
        table.declares_incident()
        table.voids()
        table.attests()
        assert table.phase is Phase.HALTED
        assert table.state.seance.empty == empty


@both
@pytest.mark.law("31")
def test_closing_when_every_player_has_left_needs_no_announcement(conduct: Conduct) -> None:
    table = playing(conduct)
    table.plays_round(stakes={1: {"rouge": 2 * EURO}})
    table.cashes_out(1)
    assert table.closes_seance().refusal is Refusal.LAST_NOT_PLAYED
    table.cashes_out(2)
    assert table.closes_seance().refusal is None


@both
@pytest.mark.law("67-15")
@pytest.mark.law("41")
def test_closing_pays_every_player_records_the_orphans_and_leaves_balanced_books(conduct: Conduct) -> None:
    table = playing(conduct)  # 1 000 € at posts 1 and 2
    table.sits(3, "carla", 50 * EURO)
    table.steps_away(3)
    table.time_ends("absence:3")
    table.suspends(3)
    table.announces_last()
    table.plays_round("17", {1: {"plein-17": 10 * EURO}, 2: {"rouge": 100 * EURO}})  # +350 €, -100 €
    table.plays_round("0", {2: {"noir": 100 * EURO}})  # half of it
    table.plays_round("2")
    closed = table.closes_seance()
    paid = {fact.post: fact.cents for fact in closed.every(PlayerPaidOut)}
    assert paid == {1: 1_350 * EURO, 2: 850 * EURO}
    assert closed.the(OrphanRecorded).cents == 50 * EURO
    assert closed.facts[-1] == SeanceClosed(
        seance=SEANCE,
        by=DIRECTOR,
        rounds=3,
        credited_cents=2_050 * EURO,
        staked_cents=210 * EURO,
        returned_cents=60 * EURO,
        won_cents=350 * EURO,
        paid_out_cents=2_200 * EURO,
        orphaned_cents=50 * EURO,
    )
    assert table.state.posts.players() == () and table.state.posts.consigned == {}


@both
@pytest.mark.law("41")
def test_closing_figures_count_what_was_claimed_in_time_as_paid_by_the_desk(conduct: Conduct) -> None:
    table = Table(conduct).opens()
    table.sits(1, "anna", 30 * EURO)
    table.steps_away(1)
    table.time_ends("absence:1")
    table.suspends(1)
    table.releases(1, CASHIER)
    closed = table.closes_seance().the(SeanceClosed)
    assert (closed.credited_cents, closed.paid_out_cents, closed.orphaned_cents) == (30 * EURO, 30 * EURO, 0)


@both
def test_closing_figures_are_those_of_this_seance_alone(conduct: Conduct) -> None:
    table = Table(conduct)
    for seance in ("2026-11-30/1", "2026-11-30/2"):
        table.wheel_is_verified()
        table.puts_posts_in_service(table.conductor)
        table.opens_seance(seance=seance)
        table.sits(1, "anna", 20 * EURO)
        table.plays_round("17", {1: {"plein-17": EURO}})
        table.cashes_out(1)
        table.sits(2, "ben", 10 * EURO)
        table.steps_away(2)
        table.time_ends("absence:2")
        table.suspends(2)
        closed = table.closes_seance().the(SeanceClosed)
        assert closed.seance == seance
        assert (closed.rounds, closed.credited_cents, closed.won_cents) == (1, 30 * EURO, 35 * EURO)
        assert (closed.paid_out_cents, closed.orphaned_cents) == (55 * EURO, 10 * EURO)
