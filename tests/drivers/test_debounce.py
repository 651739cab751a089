"""The debouncer: one press is one press, whatever the contact does and however late anyone looks."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.debounce import (
    CALM_US,
    SECOND_US,
    Debouncer,
    DebounceSettings,
    Finding,
    LevelChanged,
    Trouble,
    TroubleBegan,
    TroubleEnded,
)
from drivers.ports import Edge

MS = 1_000
SETTINGS = DebounceSettings(settle_us=5 * MS, minimum_us=20 * MS, stuck_us=10_000 * MS)
START_US = 50 * MS
FOREVER_US = 3_600 * SECOND_US


def button(settings: DebounceSettings = SETTINGS, *, active: bool = False) -> Debouncer:
    return Debouncer(settings, active=active, now_us=0)


def edge(at_us: int, *, active: bool) -> Edge:
    return Edge(line="button", active=active, at_us=at_us)


def toggled(debouncer: Debouncer, times_us: list[int], *, first: bool = True) -> list[Finding]:
    """Feed an edge at each time, with alternating levels."""
    found: list[Finding] = []
    for number, at_us in enumerate(times_us):
        found.extend(debouncer.feed(edge(at_us, active=first == (number % 2 == 0))))
    return found


def levels(found: list[Finding]) -> list[bool]:
    return [finding.active for finding in found if isinstance(finding, LevelChanged)]


def test_press_without_bounce_counts_when_it_has_lasted_the_minimum() -> None:
    debouncer = button()
    assert debouncer.feed(edge(START_US, active=True)) == ()
    assert debouncer.due_us() == START_US + 20 * MS
    assert debouncer.tick(START_US + 20 * MS - 1) == ()
    certain = LevelChanged(active=True, since_us=START_US, at_us=START_US + 20 * MS, clean=True)
    assert debouncer.tick(START_US + 20 * MS) == (certain,)
    assert debouncer.stable


def test_press_that_bounces_for_long_counts_when_its_last_level_has_settled() -> None:
    debouncer = button()
    times_us = [START_US + gap * 4 * MS for gap in range(7)]
    assert toggled(debouncer, times_us) == []
    assert debouncer.due_us() == times_us[-1] + 5 * MS
    certain = LevelChanged(active=True, since_us=START_US, at_us=times_us[-1] + 5 * MS, clean=True)
    assert debouncer.tick(times_us[-1] + 5 * MS) == (certain,)
    assert debouncer.statistics().longest_bounce_us == 24 * MS


def test_press_seen_by_a_late_loop_has_the_instant_at_which_it_was_certain() -> None:
    """Both edges of an 80 ms press are read 300 ms later: the kernel's times prove that the level had held."""
    debouncer = button()
    found = [*debouncer.feed(edge(START_US, active=True)), *debouncer.feed(edge(START_US + 80 * MS, active=False))]
    assert found == [LevelChanged(active=True, since_us=START_US, at_us=START_US + 20 * MS, clean=True)]
    released = LevelChanged(active=False, since_us=START_US + 80 * MS, at_us=START_US + 100 * MS, clean=True)
    assert debouncer.tick(START_US + 300 * MS) == (released,)


def test_pulse_shorter_than_the_minimum_is_ignored_and_counted() -> None:
    debouncer = button()
    found = toggled(debouncer, [START_US, START_US + 19 * MS])
    assert debouncer.due_us() == START_US + 24 * MS
    assert [*found, *debouncer.tick(FOREVER_US)] == []
    assert debouncer.statistics().interference == 1


def test_pulse_as_long_as_the_minimum_is_a_press() -> None:
    debouncer = button()
    assert levels(toggled(debouncer, [START_US, START_US + 20 * MS])) == [True]


def test_mains_hum_on_the_cable_never_becomes_a_press() -> None:
    """Half waves of 8.3 ms are longer than the settling time, and still each is shorter than the minimum."""
    debouncer = button()
    assert toggled(debouncer, [START_US + half * 8_333 for half in range(100)]) == []
    assert debouncer.statistics().interference == 49


def test_edge_reported_late_counts_as_of_now() -> None:
    debouncer = button()
    debouncer.tick(START_US)
    debouncer.feed(edge(START_US - 3 * MS, active=True))
    assert debouncer.due_us() == START_US + 20 * MS


def test_edge_that_repeats_the_level_shows_that_one_was_lost() -> None:
    debouncer = button()
    debouncer.feed(edge(START_US, active=True))
    debouncer.feed(edge(START_US + 10 * MS, active=True))
    assert debouncer.statistics().repeated == 1
    assert debouncer.due_us() == START_US + 20 * MS


def test_level_that_no_edge_told_is_taken_after_it_has_held_from_now() -> None:
    debouncer = button()
    assert debouncer.correct(active=True, now_us=START_US) == ()
    assert debouncer.correct(active=True, now_us=START_US + MS) == ()
    assert debouncer.statistics().missed == 1
    assert levels(list(debouncer.tick(START_US + 20 * MS))) == [True]


def test_button_held_too_long_is_called_stuck_once_and_cleared_by_its_release() -> None:
    debouncer = button()
    debouncer.feed(edge(START_US, active=True))
    debouncer.tick(START_US + 20 * MS)
    stuck_at_us = START_US + 10_000 * MS
    assert debouncer.due_us() == stuck_at_us
    assert debouncer.tick(stuck_at_us) == (TroubleBegan(trouble=Trouble.STUCK, at_us=stuck_at_us),)
    assert debouncer.due_us() is None
    assert debouncer.troubles == {Trouble.STUCK}
    debouncer.feed(edge(stuck_at_us + SECOND_US, active=False))
    settled_us = stuck_at_us + SECOND_US + 20 * MS
    released, cleared = debouncer.tick(settled_us)
    assert released == LevelChanged(active=False, since_us=stuck_at_us + SECOND_US, at_us=settled_us, clean=True)
    assert cleared == TroubleEnded(trouble=Trouble.STUCK, at_us=settled_us, lasted_us=SECOND_US + 20 * MS)
    assert debouncer.troubles == frozenset()


def test_button_held_at_start_is_called_stuck_without_a_press() -> None:
    debouncer = button(active=True)
    assert debouncer.tick(FOREVER_US) == (TroubleBegan(trouble=Trouble.STUCK, at_us=10_000 * MS),)


def test_key_that_stays_turned_is_never_stuck() -> None:
    debouncer = button(replace(SETTINGS, stuck_us=None), active=True)
    assert debouncer.due_us() is None
    assert debouncer.tick(FOREVER_US) == ()


def storm_times_us(edges: int, gap_us: int = MS) -> list[int]:
    return [START_US + number * gap_us for number in range(edges)]


def test_edges_up_to_the_storm_bound_in_a_second_are_no_storm() -> None:
    debouncer = button()
    assert toggled(debouncer, storm_times_us(SETTINGS.storm_edges)) == []
    assert debouncer.troubles == frozenset()


def test_edges_over_the_storm_bound_are_told_once_and_the_level_is_held() -> None:
    debouncer = button()
    times_us = storm_times_us(5 * SETTINGS.storm_edges)
    began = TroubleBegan(trouble=Trouble.STORM, at_us=times_us[SETTINGS.storm_edges])
    assert toggled(debouncer, times_us) == [began]
    assert (debouncer.stable, debouncer.statistics().storms) == (False, 1)
    assert debouncer.due_us() == times_us[-1] + CALM_US
    lasted_us = times_us[-1] + CALM_US - began.at_us
    ended = TroubleEnded(trouble=Trouble.STORM, at_us=times_us[-1] + CALM_US, lasted_us=lasted_us)
    assert debouncer.tick(FOREVER_US) == (ended,)
    assert debouncer.statistics().interference == 0


def test_edges_spread_over_more_than_a_second_are_no_storm() -> None:
    debouncer = button()
    apart_us = SECOND_US // SETTINGS.storm_edges
    assert toggled(debouncer, storm_times_us(3 * SETTINGS.storm_edges, apart_us)) == []


def test_level_found_active_after_a_storm_is_taken_and_is_no_press() -> None:
    debouncer = button()
    times_us = storm_times_us(2 * SETTINGS.storm_edges + 1)
    toggled(debouncer, times_us)
    calm_us = times_us[-1] + CALM_US
    ended, changed = debouncer.tick(calm_us)
    assert isinstance(ended, TroubleEnded)
    assert changed == LevelChanged(active=True, since_us=calm_us, at_us=calm_us, clean=False)
    assert debouncer.tick(FOREVER_US) == (TroubleBegan(trouble=Trouble.STUCK, at_us=calm_us + 10_000 * MS),)


def test_press_after_a_storm_counts_again() -> None:
    debouncer = button()
    toggled(debouncer, storm_times_us(2 * SETTINGS.storm_edges))
    found = toggled(debouncer, [10 * SECOND_US, 10 * SECOND_US + 100 * MS])
    assert levels(found) == [True]


def test_storm_on_a_held_button_does_not_release_it() -> None:
    debouncer = button()
    debouncer.feed(edge(START_US, active=True))
    debouncer.tick(START_US + 20 * MS)
    later_us = [at_us + SECOND_US for at_us in storm_times_us(2 * SETTINGS.storm_edges)]
    found = toggled(debouncer, later_us, first=False)
    assert levels([*found, *debouncer.tick(later_us[-1] + CALM_US)]) == []
    assert debouncer.stable


def test_statistics_hold_the_shortest_and_the_longest_bounce() -> None:
    debouncer = button()
    toggled(debouncer, [START_US, START_US + 2 * MS, START_US + 4 * MS])
    debouncer.tick(SECOND_US)
    assert debouncer.statistics().shortest_bounce_us == 4 * MS
    toggled(debouncer, [2 * SECOND_US], first=False)
    debouncer.tick(3 * SECOND_US)
    statistics = debouncer.statistics()
    assert (statistics.shortest_bounce_us, statistics.longest_bounce_us) == (0, 4 * MS)
    assert (statistics.edges, statistics.changes) == (4, 2)


bounce_gaps_us = st.lists(st.integers(1, SETTINGS.settle_us - 1), max_size=20).map(
    lambda gaps: gaps[: len(gaps) // 2 * 2]
)
"""Gaps between the edges of one bouncing change: an even number, so that the last edge has the new level."""

press = st.tuples(bounce_gaps_us, st.integers(20 * MS, 500 * MS), bounce_gaps_us, st.integers(20 * MS, 500 * MS))


def edges_of(presses: list[tuple[list[int], int, list[int], int]]) -> tuple[list[int], list[int]]:
    """All edge times of these presses, and for each press the time of its first edge."""
    times_us: list[int] = []
    begun_us: list[int] = []
    now_us = START_US
    for down_gaps, held_us, up_gaps, pause_us in presses:
        begun_us.append(now_us)
        for gaps, then_us in ((down_gaps, held_us), (up_gaps, pause_us)):
            times_us.append(now_us)
            for gap_us in gaps:
                now_us += gap_us
                times_us.append(now_us)
            now_us += then_us
    return times_us, begun_us


@given(st.lists(press, min_size=1, max_size=5))
def test_presses_that_bounce_and_settle_are_each_one_press_in_order(
    presses: list[tuple[list[int], int, list[int], int]],
) -> None:
    debouncer = button(replace(SETTINGS, storm_edges=10_000))
    times_us, begun_us = edges_of(presses)
    found = [*toggled(debouncer, times_us), *debouncer.tick(FOREVER_US)]
    changes = [finding for finding in found if isinstance(finding, LevelChanged)]
    assert [change.active for change in changes] == [True, False] * len(presses)
    assert [change.since_us for change in changes if change.active] == begun_us
    assert [change.at_us for change in changes] == sorted(change.at_us for change in changes)


@given(st.lists(press, min_size=1, max_size=4), st.lists(st.integers(0, 5 * SECOND_US), max_size=40))
def test_looks_at_any_moments_between_edges_change_nothing(
    presses: list[tuple[list[int], int, list[int], int]], looks_us: list[int]
) -> None:
    times_us, _ = edges_of(presses)
    undisturbed, watched = button(), button()
    expected = [*toggled(undisturbed, times_us), *undisturbed.tick(FOREVER_US)]
    moments = sorted([*((at_us, 1, None) for at_us in looks_us), *((at_us, 0, at_us) for at_us in times_us)])
    found: list[Finding] = []
    active = True
    for moment_us, _, edge_us in moments:
        if edge_us is None:
            found.extend(watched.tick(moment_us))
        else:
            found.extend(watched.feed(edge(edge_us, active=active)))
            active = not active
    assert [*found, *watched.tick(FOREVER_US)] == expected
    assert watched.statistics() == undisturbed.statistics()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40 * MS)), max_size=300))
def test_edges_of_any_kind_give_alternating_levels_and_end_at_the_last_one(edges: list[tuple[bool, int]]) -> None:
    debouncer = button()
    now_us = START_US
    found: list[Finding] = []
    for active, gap_us in edges:
        now_us += gap_us
        found.extend(debouncer.feed(edge(now_us, active=active)))
    found.extend(debouncer.tick(FOREVER_US))
    seen = levels(found)
    assert all(earlier != later for earlier, later in pairwise([False, *seen]))
    assert debouncer.stable == debouncer.raw == (edges[-1][0] if edges else False)
    assert [finding.at_us for finding in found] == sorted(finding.at_us for finding in found)


@given(st.lists(st.tuples(st.integers(1, 20 * MS - 1), st.integers(5 * MS, 100 * MS)), max_size=60))
def test_pulses_shorter_than_the_minimum_and_apart_never_give_a_change(pulses: list[tuple[int, int]]) -> None:
    debouncer = button()
    now_us = START_US
    found: list[Finding] = []
    for width_us, apart_us in pulses:
        found.extend(debouncer.feed(edge(now_us, active=True)))
        found.extend(debouncer.feed(edge(now_us + width_us, active=False)))
        now_us += width_us + apart_us
    found.extend(debouncer.tick(FOREVER_US))
    assert levels(found) == []
    if not debouncer.statistics().storms:
        assert debouncer.statistics().interference == len(pulses)


@pytest.mark.parametrize("active", [False, True])
def test_line_on_which_nothing_happens_awaits_nothing_but_a_stuck_button(active: bool) -> None:
    assert button(active=active).due_us() == (10_000 * MS if active else None)
