"""The stages of a round, and the way to each: where something is about to go wrong."""

from typing import Any

import pytest

from tests.controller.rehearsal.house import House
from tests.controller.rehearsal.people import Post

CREDIT = 10_000
OPEN_BETS = ("betting", "launch ordered", "launched")
CERTAIN = ("no more bets", "verifying")
STAGES = {
    "launcher": (*OPEN_BETS, "no more bets", "settled", "manual", "halted"),
    "croupier": ("betting", "launched", *CERTAIN, "settled", "manual", "entered", "halted"),
}
EVERY_STAGE = pytest.mark.parametrize(
    ("conduct", "stage"), [(conduct, stage) for conduct, stages in STAGES.items() for stage in stages]
)


async def staked(house: House) -> tuple[Post, Post, list[dict[str, Any]]]:
    """A first round was played; in the second two players staked. Returns the posts and all answers."""
    await house.open()
    one, two = await house.seat(1, CREDIT), await house.seat(2, CREDIT)
    await house.begin_round()
    await house.reach("idle")
    await house.begin_round()
    answers = [
        await house.stake(one, rouge=300, plein_17=150),
        await house.stake(two, noir=500),
        await house.stake(one, manque=100),
    ]
    assert all(answer["ok"] for answer in answers)
    return one, two, answers


async def reach(house: House, stage: str) -> None:
    """Go on to the stage, from open bets."""
    if stage == "launch ordered":
        await house.until(lambda: house.state.coup.launch_ordered)
    elif stage == "launched":
        await house.reach("launched")
    elif stage in ("no more bets", "manual", "entered", "halted"):
        await house.reach("no_more_bets")
    elif stage == "verifying":
        await house.reach("verifying")
    elif stage == "settled":
        await house.reach("idle")
    conducting = "croupier" if house.config.roulette.conduct == "croupier" else "director"
    if stage in ("manual", "entered", "halted"):
        await house.order(conducting, "incident.declare", reason="essai")
    if stage in ("entered", "halted"):
        await house.order("croupier" if stage == "entered" else "director", "round.void", reason="essai")
    assert house.state.coup.phase == {
        "launch ordered": "betting",
        "launched": "betting",
        "no more bets": "no_more_bets",
        "settled": "idle",
        "entered": "manual",
    }.get(stage, stage)


def money(house: House) -> list[tuple[int, int]]:
    """Credit and stakes in play of each player."""
    return [(player.credit, player.staked) for _, player in house.state.posts.players()]


def won(house: House) -> int:
    """What the house lost to the players over all rounds, in cents."""
    return sum(fact["returned"] + fact["won"] - fact["staked"] for fact in house.every("roulette.round.closed"))


async def turn_over(house: House) -> None:
    """The croupier turns the rotor over, if it does not turn as at the last valid spin, before "faites vos jeux"."""
    if house.twin.truths[-1].clockwise is not (house.state.last_direction == "clockwise"):
        house.cable.spin()
        await house.let_pass(60)
