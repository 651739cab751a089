"""Time is evidence, never order: whatever the clocks do, entries stay in order, verify, and tell of the clock."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.certify.journal import Journal
from controller.certify.leaf import parse_leaf
from controller.certify.log_keys import LogKeys
from controller.certify.verify import verify
from controller.service import TimeQuality, step_while_down
from drivers.clock import ManualClock
from tests.controller.certify.workshop import SIGNER, build, stakes

KEYS = LogKeys.of(SIGNER.verifier)
DAY_MS = 86_400_000
NOON_MS = 1_796_040_000_000
LEAP_MS = 1_483_228_799_000  # 2016-12-31 23:59:59 UTC, which Linux tells twice

QUALITIES = st.sampled_from(["ntp", "rtc", "free"])
WALLS_MS = st.one_of(
    st.sampled_from([0, NOON_MS, NOON_MS - DAY_MS, NOON_MS + DAY_MS, LEAP_MS, LEAP_MS + 999]),
    st.integers(0, 253_402_300_799_999),
)


class AnyClock(ManualClock):
    """A clock that shows what it is told, forwards or backwards."""

    def show(self, wall_ms: int, mono_us: int) -> None:
        self._shown = wall_ms, mono_us

    def wall_ms(self) -> int:
        return self._shown[0]

    def mono_us(self) -> int:
        return self._shown[1]


def opened(path: Path, clock: AnyClock, boot: int, quality: str) -> Journal:
    return Journal.open(path, SIGNER, clock, f"{boot:016x}", lambda: quality, allow_volatile=True)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(WALLS_MS, st.integers(0, 10**12), QUALITIES, st.booleans()), min_size=1, max_size=8))
def test_clocks_that_jump_repeat_and_restart_leave_order_and_totals_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, story: list[tuple[int, int, str, bool]]
) -> None:
    path = build(tmp_path_factory.mktemp("clock") / "journal.sqlite", [])
    clock, boot, quality = AnyClock(), 0, story[0][2]
    journal = opened(path, clock, boot, quality)
    shown = []
    for at, (wall_ms, mono_us, wanted, reboots) in enumerate(story):
        if reboots:
            journal.close()
            boot, quality = boot + 1, wanted
            journal = opened(path, clock, boot, quality)
        clock.show(wall_ms, mono_us)
        journal.append(stakes(2, 2 * at))
        shown += [(f"{boot:016x}", mono_us // 1_000, quality)] * 2
    with closing(journal):
        leaves = [parse_leaf(leaf) for leaf in journal.leaves(0, journal.size)]
    assert [leaf.index for leaf in leaves] == list(range(2 * len(story)))
    assert [leaf.data for leaf in leaves] == [record.data for record in stakes(2 * len(story))]
    assert [(leaf.boot, leaf.mono_ms, leaf.quality) for leaf in leaves] == shown
    assert verify(path, KEYS, processes=1).ok


def test_leap_second_that_is_told_twice_gives_the_same_time_and_the_right_order(tmp_path: Path) -> None:
    path, clock = build(tmp_path / "journal.sqlite", []), AnyClock()
    with closing(opened(path, clock, 1, "ntp")) as journal:
        for at, wall_ms in enumerate([LEAP_MS, LEAP_MS + 999, LEAP_MS, LEAP_MS + 1_000]):
            clock.show(wall_ms, at)
            journal.append(stakes(1, at))
        times = [parse_leaf(leaf).time[-7:] for leaf in journal.leaves(0, 4)]
    assert times == ["59.000Z", "59.999Z", "59.000Z", "00.000Z"]
    assert verify(path, KEYS, processes=1).ok


@pytest.mark.parametrize(
    ("wall_ms", "by_ms"),
    [
        (NOON_MS, None),
        (NOON_MS + DAY_MS, None),  # down for a day, or a day ahead: nobody can tell
        (NOON_MS - 500, None),
        (NOON_MS - 501, -501),
        (NOON_MS - DAY_MS, -DAY_MS),
        (0, -NOON_MS),  # a board without a battery
    ],
)
def test_clock_that_went_back_while_the_table_was_down_is_told_at_the_start(wall_ms: int, by_ms: int | None) -> None:
    clock = AnyClock()
    clock.show(wall_ms, 7)
    step = step_while_down("2026-11-30T12:00:00.000Z", clock, TimeQuality.FREE)
    assert (None if step is None else step.by_ms) == by_ms
    assert step is None or (step.at_us, step.quality) == (7, "free")
