"""Delivery in bad weather: table, mirror and broker die, networks tear, and nothing is lost or has a second effect."""

from collections.abc import Callable
from pathlib import Path

from tests.system.storm import storm

RUNS = 4


async def test_storms_lose_no_entry_and_decide_no_stake_twice(tmp_path: Path, program: Callable[[str], str]) -> None:
    found = [one async for one in storm(tmp_path, program, RUNS, seed=7)]
    assert [one for one in found if not one.sound] == []
    assert len(found) == RUNS
    assert sum(one.entries for one in found) > 50
