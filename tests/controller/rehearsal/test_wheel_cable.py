"""The wheel's cable is pulled out at every stage of a round, and put back: a number that nobody heard is never paid.

bets open            void only: nobody can say whether the ball had slowed
no more bets         manual mode; what the wheel tells afterwards is a hint
a number is shown    the croupier confirms what he sees
no round             none begins before the wheel is heard and read again
"""

import pytest

from tests.controller.rehearsal.house import House, play
from tests.controller.rehearsal.stages import CREDIT, EVERY_STAGE, OPEN_BETS, money, reach, staked, turn_over, won

AWAY_S = 90.0
"""Longer than a spin."""


@EVERY_STAGE
@pytest.mark.parametrize("away_s", [1.0, AWAY_S])
@pytest.mark.law("67-15")
def test_wheel_unplugged_at_any_stage_and_put_back_costs_nobody_a_cent(conduct: str, stage: str, away_s: float) -> None:
    async def story(house: House) -> None:
        await staked(house)
        await reach(house, stage)
        settled = len(house.every("table.post.settled"))
        house.cable.unplug()
        await house.until(lambda: "wheel" in house.state.health.links_lost)
        declared = house.every("roulette.incident.declared")
        if stage in (*OPEN_BETS, "no more bets"):
            assert house.state.coup.phase == "manual"
            assert declared[-1]["cause"] == "wheel_silent"
            assert declared[-1]["number_allowed"] is (stage == "no more bets")
        await house.let_pass(away_s)
        house.cable.replug()
        await house.let_pass(AWAY_S)
        assert len(house.every("table.post.settled")) == settled or stage == "settled"
        if house.state.coup.phase == "verifying":
            await house.press("confirmer", lambda: house.state.coup.phase == "idle")
        if house.state.coup.phase in ("manual", "halted"):
            await house.settle_incident()
        assert sum(credit + stakes for credit, stakes in money(house)) == 2 * CREDIT + won(house)
        if stage in OPEN_BETS:
            assert [fact["cents"] for fact in house.every("table.post.recredited")] == [550, 500]
        played = house.state.coup.round
        if conduct == "croupier":
            await turn_over(house)
            await house.begin_round()
        await house.until(lambda: house.state.coup.round > played or house.state.coup.phase == "betting")
        assert not house.running.done()

    play(story, conduct=conduct)


@pytest.mark.parametrize("conduct", ["launcher", "croupier"])
@pytest.mark.law("67-15")
def test_wheel_unplugged_after_no_more_bets_tells_afterwards_what_fell_and_persons_decide(conduct: str) -> None:
    async def story(house: House) -> None:
        await staked(house)
        await reach(house, "no more bets")
        house.cable.unplug()
        await house.let_pass(60)
        assert house.twin.truths[-1].pocket == "17"
        assert house.state.coup.phase == "manual"
        house.cable.replug()
        await house.until(lambda: bool(house.state.coup.incident and house.state.coup.incident.hint))
        assert house.state.coup.incident is not None
        assert house.state.coup.incident.hint == "17"
        assert house.every("table.post.settled") == []
        await house.settle_incident()
        assert house.every("roulette.number.validated")[0]["pocket"] == "17"
        assert [fact["won"] for fact in house.every("table.post.settled")] == [35 * 150 + 100, 500]

    play(story, conduct=conduct, pockets=["5", "17"])


def test_wheel_absent_at_the_start_opens_nothing_and_the_table_waits_for_it() -> None:
    async def story(house: House) -> None:
        house.cable.unplug()
        await house.start()
        await house.let_pass(30)
        refused = await house.order("director", "seance.open")
        assert (refused["ok"], refused["code"]) == (False, "E-WHEEL-SILENT")
        assert set(refused["data"]["reasons"]) == {"E-WHEEL-SILENT", "E-WHEEL-NOT-VERIFIED"}
        assert "E-SERIAL-ABSENT" in house.daemon.status()["wheel"]["fault"]
        house.cable.replug()
        await house.open()
        assert house.state.seance.open

    play(story)


def test_wheel_unplugged_and_put_back_all_evening_is_told_once_each_time() -> None:
    async def story(house: House) -> None:
        await house.open()
        for _ in range(10):
            house.cable.unplug()
            await house.let_pass(20)
            house.cable.replug()
            await house.let_pass(20)
        lost, back = house.every("table.device.link.lost"), house.every("table.device.link.restored")
        assert len(lost) == len(back) <= 11
        assert house.state.health.verified, "its parameters were read again after each return"

    play(story)
