"""The past of a table: taken up from a snapshot, from the first entry, or decided all over again, it is the same.

The journals are whole simulated evenings: a launcher and a croupier, each also with a wheel on which everything fails.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from controller import codec
from controller.certify.journal import Journal
from controller.certify.leaf import Record, canonical, parse_leaf
from controller.certify.note import Signer
from controller.certify.reader import Reader
from controller.config import load
from controller.history import REMEMBERED_TAIL, Replayed, ReplayError, ended_unclean, next_seance, replay, restore, tail
from controller.rehearsal.simulate import simulate
from controller.table import encode_snapshot
from drivers.clock import ManualClock
from drivers.twin.wheel_faults import read_plan
from games.roulette.coup import RouletteState
from games.roulette.game import Roulette
from games.signals import ButtonPressed
from tests.controller.rehearsal.house import example

FAULTS = "misfire%8,silence%6,contradicted%6,no-result%4,no-more-bets-skipped%4,bit-noise%10,unplug%4,power-cycle%3"
EVENINGS = {"launcher": "", "croupier": "", "launcher with faults": FAULTS, "croupier with faults": FAULTS}
COUPS = 24
AMOUNTS = ("cents", "credit", "staked", "returned", "won", "credited_cents", "paid_out_cents")


@dataclass(frozen=True)
class Past:
    """Entries that were read from somewhere: the past of a table without its journal."""

    entries: tuple[bytes, ...]
    snapshot: tuple[int, bytes] | None = None

    @property
    def size(self) -> int:
        return len(self.entries)

    def leaves(self, start: int, stop: int) -> Iterator[bytes]:
        yield from self.entries[start:stop]

    def latest_snapshot(self) -> tuple[int, bytes] | None:
        return self.snapshot


@dataclass(frozen=True)
class Evening:
    """A simulated evening and the game that was played."""

    game: Roulette
    past: Past
    states: tuple[RouletteState, ...]
    """The state before each entry, and after the last."""


@pytest.fixture(scope="module")
def evenings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Evening]:
    return {name: play(tmp_path_factory.mktemp("evening"), name) for name in EVENINGS}


def play(folder: Path, name: str) -> Evening:
    config = example(folder, name.split()[0])
    simulate(config, folder / "out", coups=COUPS, seed=11, faults=read_plan(EVENINGS[name]))
    with Reader(folder / "out" / "journal.sqlite") as reader:
        entries = tuple(reader.leaves(0, reader.size))
    game = Roulette(load(config).rules)
    states = [game.initial()]
    for leaf in entries:
        entry = json.loads(leaf)
        states.append(game.evolve(states[-1], codec.decode_fact(entry["type"], entry["data"])))
    return Evening(game, Past(entries), tuple(states))


@pytest.fixture(params=list(EVENINGS))
def evening(request: pytest.FixtureRequest, evenings: Mapping[str, Evening]) -> Evening:
    return evenings[request.param]


@pytest.fixture
def quiet(evenings: Mapping[str, Evening]) -> Evening:
    """An evening without incidents."""
    return evenings["launcher"]


# ── Restoring ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_history_restored_from_the_first_entry_is_the_state_that_replaying_arrives_at(evening: Evening) -> None:
    restored = restore(evening.game, Past(evening.past.entries), RouletteState)
    replayed, _ = replay(evening.game, evening.past.entries)
    assert restored == replayed == evening.states[-1]


def test_history_restored_from_a_snapshot_anywhere_is_the_state_restored_without(evening: Evening) -> None:
    closed = [at for at, state in enumerate(evening.states) if evening.game.round_closed(state)]
    assert len(closed) > COUPS
    for size in closed:
        snapshot = (size, encode_snapshot(evening.states[size]))
        assert restore(evening.game, Past(evening.past.entries, snapshot), RouletteState) == evening.states[-1]


def test_history_snapshot_of_another_shape_is_not_read_but_folded_anew(quiet: Evening) -> None:
    wrong = json.loads(encode_snapshot(quiet.game.initial())) | {"shape": "0123456789abcdef"}
    past = Past(quiet.past.entries, (quiet.past.size, canonical(wrong).encode()))
    assert restore(quiet.game, past, RouletteState) == quiet.states[-1]


def test_history_snapshot_is_believed_and_what_came_before_is_not_read(quiet: Evening) -> None:
    size = quiet.past.size - 5
    unreadable = (b"{}",) * size + quiet.past.entries[size:]
    past = Past(unreadable, (size, encode_snapshot(quiet.states[size])))
    assert restore(quiet.game, past, RouletteState) == quiet.states[-1]


def test_history_of_an_empty_journal_is_the_initial_state(quiet: Evening) -> None:
    assert restore(quiet.game, Past(()), RouletteState) == quiet.game.initial()
    assert replay(quiet.game, ()) == (quiet.game.initial(), Replayed(0, 0))


# ── Replaying ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_replay_of_an_evening_decides_every_input_and_finds_every_entry(evening: Evening) -> None:
    told: list[Replayed] = []
    _, replayed = replay(evening.game, evening.past.entries, told.append)
    inputs = [leaf for leaf in evening.past.entries if "input" in json.loads(leaf)["data"]]
    assert replayed == Replayed(evening.past.size, len(inputs))
    assert told == [], "progress is told each thousand decisions"


def test_replay_of_a_long_journal_tells_how_far_it_is(quiet: Evening) -> None:
    told: list[Replayed] = []
    pressed = ButtonPressed(at_us=1, button="relance")
    facts = quiet.game.decide(quiet.game.initial(), pressed).facts
    template = quiet.past.entries[0]
    envelope = parse_leaf(template)
    ((kind, data),) = codec.encode_decision(pressed, facts, 0)
    entry = template.replace(envelope.data.encode(), data.encode()).replace(envelope.kind.encode(), kind.encode())
    replay(quiet.game, [entry] * 2_500, told.append)
    assert [(step.entries, step.decisions) for step in told] == [(1_000, 1_000), (2_000, 2_000)]


def forged(past: Past, index: int, change: Any) -> list[bytes]:
    """The entries with the data of one of them changed; ``change`` gets the data and returns what takes its place."""
    leaf = parse_leaf(past.entries[index])
    data = change(json.loads(leaf.data))
    changed = past.entries[index].replace(leaf.data.encode(), canonical(data).encode())
    return [*past.entries[:index], changed, *past.entries[index + 1 :]]


def amounts(past: Past) -> list[tuple[int, str]]:
    """Every amount in every fact: the entry and the field."""
    found = []
    for index, leaf in enumerate(past.entries):
        data = json.loads(leaf)["data"]
        found += [(index, name) for name in AMOUNTS if name in data]
    return found


def test_replay_any_amount_of_any_fact_altered_by_a_cent_names_the_entry(evening: Evening) -> None:
    places = amounts(evening.past)
    assert {name for _, name in places} == set(AMOUNTS)
    for index, name in places[:: max(1, len(places) // 60)]:
        entries = forged(evening.past, index, lambda data, name=name: data | {name: data[name] + 1})
        with pytest.raises(ReplayError, match=f"^E-REPLAY-DIFFERS entry {index}: ") as caught:
            replay(evening.game, entries)
        assert caught.value.index == index


def test_replay_of_a_journal_that_was_signed_again_with_a_forged_amount_names_the_entry(
    quiet: Evening, tmp_path: Path
) -> None:
    index = next(at for at, name in amounts(quiet.past) if name == "won")
    entries = forged(quiet.past, index, lambda data: data | {"won": data["won"] + 100_000})
    signer = Signer("casino.example/table/t07/1", bytes(range(32)))
    file = tmp_path / "forged.sqlite"
    Journal.create(file, signer, allow_volatile=True)
    journal = Journal.open(file, signer, ManualClock(), "0123456789abcdef", lambda: "free", allow_volatile=True)
    with closing(journal):
        leaves = [parse_leaf(leaf) for leaf in entries]
        journal.append([Record(leaf.kind, leaf.data, leaf.seance) for leaf in leaves])
        signed_again = list(journal.leaves(0, journal.size))
    with pytest.raises(ReplayError, match=f'entry {index}: the journal has .*"won":100.*, the rules give '):
        replay(quiet.game, signed_again)


def test_replay_a_fact_left_out_of_its_decision_is_noticed_where_it_stood(evening: Evening) -> None:
    followers = [at for at, leaf in enumerate(evening.past.entries) if "input_at" in json.loads(leaf)["data"]]
    for index in followers[:: max(1, len(followers) // 20)]:
        with pytest.raises(ReplayError) as caught:
            replay(evening.game, [*evening.past.entries[:index], *evening.past.entries[index + 1 :]])
        assert caught.value.index == index


def test_replay_a_fact_put_into_a_decision_is_noticed_where_it_stands(evening: Evening) -> None:
    followers = [at for at, leaf in enumerate(evening.past.entries) if "input_at" in json.loads(leaf)["data"]]
    for index in followers[:: max(1, len(followers) // 20)]:
        entries = evening.past.entries
        with pytest.raises(ReplayError) as caught:
            replay(evening.game, [*entries[: index + 1], entries[index], *entries[index + 1 :]])
        assert caught.value.index == index + 1


def test_replay_of_an_entry_that_belongs_to_no_input_names_it(quiet: Evening) -> None:
    entries = forged(quiet.past, 0, lambda data: {name: data[name] for name in data if name != "input"})
    with pytest.raises(ReplayError, match="entry 0: belongs to no input"):
        replay(quiet.game, entries)


@pytest.mark.parametrize("signal", [{"kind": "Nothing"}, {"kind": "Started"}, {}, [], "Started"])
def test_replay_of_an_input_that_cannot_be_read_names_its_entry(quiet: Evening, signal: Any) -> None:
    entries = forged(quiet.past, 0, lambda data: data | {"input": signal})
    with pytest.raises(ReplayError, match="entry 0: its input cannot be read"):
        replay(quiet.game, entries)


def test_replay_under_other_rules_finds_what_they_would_have_decided(quiet: Evening, tmp_path: Path) -> None:
    stricter = Roulette(load(example(tmp_path, "launcher", roulette={"minimum_cents": 1_000})).rules)
    with pytest.raises(ReplayError, match=r"StakesPlaced|stakes\.placed"):
        replay(stricter, quiet.past.entries)


# ── The end of the last run ───────────────────────────────────────────────────────────────────────────────────────────


def test_history_that_ends_with_an_orderly_stop_is_clean_and_any_other_is_not(evening: Evening) -> None:
    kinds = [json.loads(leaf)["type"] for leaf in evening.past.entries]
    assert kinds[-1] == "fr.table.stopped.v1", "a simulation ends in good order"
    assert not ended_unclean(evening.past)
    assert ended_unclean(Past(evening.past.entries[:-1]))
    assert not ended_unclean(Past(()))


def test_tail_of_a_short_journal_is_all_of_it_with_indexes(quiet: Evening) -> None:
    assert list(tail(quiet.past)) == list(enumerate(quiet.past.entries))


@pytest.mark.parametrize(
    ("snapshot", "first"),
    [(None, 0), (100, 100), (4_900, 5_000 - REMEMBERED_TAIL), (5_000, 5_000 - REMEMBERED_TAIL)],
)
def test_tail_reaches_back_to_the_last_snapshot_and_never_less_than_is_remembered(
    snapshot: int | None, first: int
) -> None:
    past = Past(tuple(b"%d" % index for index in range(5_000)), None if snapshot is None else (snapshot, b""))
    assert [index for index, _ in tail(past)] == list(range(first, 5_000))


DAY_MS = 86_400_000
HOUR_MS = 3_600_000
PARIS = ZoneInfo("Europe/Paris")
EVENING_MS = 1_796_068_800_000  # 2026-11-30 20:00 UTC


@pytest.mark.parametrize(
    ("last", "wall_ms", "name"),
    [
        ("", EVENING_MS, "2026-11-30-1"),
        ("2026-11-29-4", EVENING_MS, "2026-11-30-1"),
        ("2026-11-30-1", EVENING_MS, "2026-11-30-2"),
        ("2026-11-30-9", EVENING_MS, "2026-11-30-10"),
        ("2026-11-30-10", EVENING_MS, "2026-11-30-11"),
        ("2026-11-30-2", EVENING_MS + DAY_MS, "2026-12-01-1"),
        ("2026-11-30-2", EVENING_MS + 3 * HOUR_MS - 1, "2026-11-30-3"),  # 23:59:59.999 in Paris
        ("2026-11-30-2", EVENING_MS + 3 * HOUR_MS, "2026-12-01-1"),  # midnight in Paris, 23:00 UTC
        ("2026-10-24-1", 1_792_881_000_000, "2026-10-25-1"),  # half past midnight, the night in which summer time ends
    ],
)
def test_seance_name_is_the_day_and_its_number_that_day(last: str, wall_ms: int, name: str) -> None:
    assert next_seance(last, wall_ms, PARIS) == name
