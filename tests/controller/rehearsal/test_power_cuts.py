"""The power goes at every stage of a round and comes back: stakes come back to the cent, or two persons read the ball.

bets open, ball or no ball     nobody can say when the ball slowed: void by rule, every stake back
no more bets, or a number      the ball lies in the wheel: manual mode, with what the wheel says as a hint
no round, manual mode, halt    nothing changes
"""

import pytest

from drivers.twin.wheel_faults import FaultKind, read_plan
from tests.controller.rehearsal.house import House, play
from tests.controller.rehearsal.stages import (
    CERTAIN,
    CREDIT,
    EVERY_STAGE,
    OPEN_BETS,
    money,
    reach,
    staked,
    turn_over,
    won,
)


@EVERY_STAGE
@pytest.mark.parametrize("losing", [True, False], ids=["last words lost", "last words arrive"])
@pytest.mark.law("67-15")
def test_power_cut_at_any_stage_keeps_every_cent_and_follows_the_rule(conduct: str, stage: str, losing: bool) -> None:
    async def story(house: House) -> None:
        await staked(house)
        await reach(house, stage)
        before, state = money(house), house.state
        await house.restart(losing=losing)
        if stage in OPEN_BETS:
            assert money(house) == [(CREDIT, 0), (CREDIT, 0)]
            (voided,) = house.every("roulette.round.voided")
            assert voided == {"round": 2, "reason": "power_cut", "cents": 1_050}
            assert house.state.coup.phase == "halted"
        else:
            assert money(house) == before
        if stage in CERTAIN:
            assert house.state.coup.phase == "manual"
            assert house.state.coup.incident is not None
            assert house.state.coup.incident.number_allowed
        elif stage not in OPEN_BETS:
            assert (house.state.coup, house.state.seance.phase) == (state.coup, state.seance.phase)
        assert house.state.last_direction == state.last_direction
        assert house.state.seance.name == "2026-11-30-1"

    play(story, conduct=conduct)


@EVERY_STAGE
def test_power_cut_at_any_stage_leaves_a_table_that_plays_on_under_the_other_direction(
    conduct: str, stage: str
) -> None:
    async def story(house: House) -> None:
        await staked(house)
        await reach(house, stage)
        await house.restart()
        await house.let_pass(60)
        if house.state.coup.phase in ("manual", "halted"):
            await house.settle_incident()
        played = house.state.coup.round
        if conduct == "croupier":
            await turn_over(house)
            await house.begin_round()
        await house.until(lambda: house.state.coup.round > played and house.state.coup.phase == "betting")
        opened = house.every("roulette.betting.opened")[-1]
        assert opened["direction"] == house.state.last_direction.opposite
        answer = await house.stake(house.post(1), rouge=200)
        assert answer["ok"]
        await house.reach("idle")
        assert house.every("roulette.round.closed")[-1]["staked"] >= 200
        assert sum(credit + stakes for credit, stakes in money(house)) == 2 * CREDIT + won(house)

    play(story, conduct=conduct)


@pytest.mark.parametrize(
    ("conduct", "stage"), [("launcher", "no more bets"), ("croupier", "no more bets"), ("croupier", "verifying")]
)
@pytest.mark.law("67-15")
def test_power_cut_after_no_more_bets_pays_the_number_that_two_persons_read_in_the_wheel(
    conduct: str, stage: str
) -> None:
    async def story(house: House) -> None:
        await staked(house)
        await reach(house, stage)
        await house.restart()
        await house.until(lambda: bool(house.state.coup.incident and house.state.coup.incident.hint))
        fell = house.twin.truths[-1].pocket
        assert house.state.coup.incident is not None
        assert house.state.coup.incident.hint == fell == "17"
        assert house.every("table.post.settled") == [], "a hint is never paid by itself"
        await house.settle_incident()
        (validated,) = house.every("roulette.number.validated")
        assert validated["director"] == {"badge": "director", "role": "director"}
        assert validated.get("croupier", {}).get("role") == ("croupier" if conduct == "croupier" else None)
        first, second = house.every("table.post.settled")
        # 17 is black, odd and low: 35 times the full number, and once the low half.
        assert (first["returned"], first["won"]) == (150 + 100, 35 * 150 + 100)
        assert (second["returned"], second["won"]) == (500, 500)

    play(story, conduct=conduct, pockets=["5", "17"])


@EVERY_STAGE
def test_power_cut_at_any_stage_gives_every_repeated_request_the_answer_it_had(conduct: str, stage: str) -> None:
    async def story(house: House) -> None:
        one, two, answers = await staked(house)
        refused = await two.ask("stake", id="bad", round=2, stakes=[{"bet": "vert", "cents": 100}])
        await reach(house, stage)
        await house.restart()
        before = money(house)
        stakes = [{"bet": "pair", "cents": 700}]
        for answer, post in zip([*answers, refused], [one, two, one, two], strict=True):
            assert await post.ask("stake", id=answer["id"], round=2, stakes=stakes) == answer
        sat = await one.ask("sit", id="1-1", player="carte-0009")
        assert sat["kind"] == "fr.table.player.sat.v1"
        assert money(house) == before

    play(story, conduct=conduct)


def test_power_cut_of_a_request_that_was_never_certified_leaves_it_to_be_asked_again() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, CREDIT)
        house.writer.hold()
        request = post.say("minimum", cents=100)
        await house.let_pass(1)
        await house.restart()
        assert house.every("table.post.minimum.chosen") == []
        answer = await post.ask("minimum", id=request, cents=100)
        assert answer["ok"]
        assert len(house.every("table.post.minimum.chosen")) == 1

    play(story)


def test_power_cut_between_commit_and_answer_gives_the_answer_to_the_repeated_request() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, CREDIT)
        house.writer.fail_next(stored=True)
        request = post.say("payout")
        await house.until(house.running.done)
        assert post.answers(request) == []
        await house.restart()
        paid = await post.ask("payout", id=request)
        assert (paid["ok"], paid["data"]["cents"]) == (True, CREDIT)
        assert len(house.every("table.player.paid_out")) == 1

    play(story)


def test_power_cut_again_and_again_in_one_round_voids_it_once() -> None:
    async def story(house: House) -> None:
        await staked(house)
        for _ in range(5):
            await house.restart()
        assert len(house.every("roulette.round.voided")) == 1
        assert len(house.every("table.post.recredited")) == 2
        assert money(house) == [(CREDIT, 0), (CREDIT, 0)]

    play(story)


def test_power_cut_during_an_absence_gives_it_its_whole_limit_again() -> None:
    async def story(house: House) -> None:
        await house.open()
        post = await house.seat(1, CREDIT)
        await post.ask("away")
        limit_s = house.config.roulette.absence_ms / 1_000
        await house.let_pass(limit_s * 0.9)
        await house.restart()
        await house.let_pass(limit_s * 0.9)
        assert house.every("table.absence.exceeded") == []
        await house.until(lambda: bool(house.every("table.absence.exceeded")), within_s=limit_s)
        suspended = await house.order("director", "post.suspend", post=1)
        assert suspended["ok"]
        assert house.every("table.stake.consigned")[0]["cents"] == CREDIT

    play(story)


def test_power_cut_forgets_who_stood_at_the_table_and_the_keys_tell_again() -> None:
    async def story(house: House) -> None:
        await house.open()
        house.inputs.turn("director", on=True)
        await house.until(lambda: house.state.seance.keys_on == {"croupier", "director"})
        await house.restart()
        await house.until(lambda: house.state.seance.keys_on == {"croupier", "director"})
        switched = [(fact["key"], fact["on"]) for fact in house.every("table.key.switched")]
        assert sorted(switched[2:]) == [("croupier", True), ("director", True)]

    play(story, conduct="croupier")


STANDING = {
    FaultKind.MISFIRE: "launch_failed",
    FaultKind.BALL_REMOVED: "ball_missing",
    FaultKind.BALL_WITH_ROTOR: "ball_with_rotor",
    FaultKind.SENSOR_FAULT: "sensor_fault",
    FaultKind.RUNAWAY_ROTOR: "rotor_speed",
    FaultKind.CONTRADICTED: "number_contradicted",
    FaultKind.NOT_IN_TRACK: "ball_not_in_track",
}
"""What goes wrong with the wheel, and the fault that then stands."""


@pytest.mark.parametrize("kind", list(STANDING))
@pytest.mark.parametrize("away_s", [0.0, 120.0], ids=["back at once", "back when it is over"])
def test_power_cut_while_a_fault_of_the_wheel_stands_keeps_it_until_the_wheel_shows_that_it_is_over(
    kind: FaultKind, away_s: float
) -> None:
    async def story(house: House) -> None:
        await house.open()
        await house.seat(1, CREDIT)
        await house.until(lambda: STANDING[kind] in house.state.health.faults)
        await house.kill()
        await house.let_pass(away_s)
        await house.start()
        assert STANDING[kind] in house.state.health.faults, "a power cut mends nothing"
        await house.let_pass(120)
        if house.state.coup.phase in ("manual", "halted"):
            await house.settle_incident()
        await house.until(lambda: house.state.coup.round >= 3)
        assert house.every("table.wheel.fault.ended")

    play(story, faults=read_plan(f"{kind}@1"))
