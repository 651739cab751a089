"""The table's loop: decide in order, certify in one commit, and only then let anything be known.

The journal is real; its disk obeys the test. ``told`` keeps, in order, everything that leaves the table.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from controller.certify.faults import JournalFault
from controller.certify.journal import Journal
from controller.certify.note import Signer
from controller.certify.reader import Reader
from controller.history import restore
from controller.inbox import Inbox, Outcome
from controller.table import (
    BATCH_BOUND,
    BATCH_SLICE_BOUND_US,
    BATCH_SLICE_US,
    SLICE_SHARE,
    SNAPSHOT_EVERY,
    Certified,
    Table,
)
from drivers.clock import ManualClock
from games.money import Cents
from games.posts import PlayerPaidOut, PlayerSat, RequestRefused, StakesPlaced
from games.refusals import Refusal
from games.roulette.coup import Phase, RouletteState
from games.roulette.facts import NoMoreBetsCalled
from games.roulette.game import Roulette
from games.roulette.layout import Wheel
from games.roulette.rules import Conduct, RouletteRules
from games.rules import Fact, Input, Request, Started, Stopping, TimerFired
from games.seance import SeanceClosed, SeanceOpened, TableStarted
from games.signals import (
    BallLaunched,
    BallSlowed,
    CashOut,
    CloseSeance,
    CreditPost,
    DeclareIncident,
    Direction,
    LinkRestored,
    OpenSeance,
    Person,
    PlaceStakes,
    PocketDetected,
    Role,
    Sit,
    Stake,
    WheelVerified,
)
from tests.controller.writers import DiskWriter

SIGNER = Signer("casino.example/table/t07/1", bytes(range(32)))
BOOT = "9f1c0b7e52d3a844"
DIRECTOR = Person(badge="D-01", role=Role.DIRECTOR)
CASHIER = Person(badge="K-03", role=Role.CASHIER)
POSTS = 3
RULES = RouletteRules(wheel=Wheel(37), conduct=Conduct.LAUNCHER, posts=POSTS, minimum=Cents(100))
MOST = 1_000_000
VERIFIED = WheelVerified(at_us=0, firmware="V2.52", pockets=37, mode=1_159, differences=())


def credit(post: int, cents: int) -> CreditPost:
    return CreditPost(at_us=0, by=CASHIER, post=post, cents=Cents(cents))


class TickingClock(ManualClock):
    """A clock on which every look takes time."""

    tick_us = 0

    def mono_us(self) -> int:
        self.advance_us(self.tick_us)
        return super().mono_us()


class Bench:
    """A table on a journal; nothing runs by itself."""

    def __init__(self, file: Path) -> None:
        self.clock = TickingClock()
        self.inbox = Inbox()
        self.told: list[tuple[str, Any]] = []
        self.journal = Journal.open(file, SIGNER, self.clock, BOOT, lambda: "ntp", allow_volatile=True)
        self.writer = DiskWriter(self.journal)
        game = Roulette(RULES)
        self.table = Table(
            game,
            restore(game, self.journal, RouletteState),
            self.inbox,
            self.writer,
            self.clock,
            size=self.journal.size,
            seance_name=lambda state: state.seance.name,
            perform=lambda request: self.told.append(("request", request)),
            certified=lambda certified: self.told.append(("certified", certified)),
        )
        self._spin = 0
        self._asked = 0

    # ── What is put in ────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, signal: Input) -> None:
        """Let an input in; its outcome is told under its own name."""
        self.inbox.put(signal, lambda outcome: self.told.append(("answer", (signal, outcome))))

    async def hears(self, *signals: Input) -> None:
        """Let inputs in, and let the table do one batch after another until none waits."""
        for signal in signals:
            self.put(signal)
        while len(self.inbox):
            await self.table.step()

    async def opens(self) -> None:
        """Start, open the séance, and seat a player with credit at each post."""
        await self.hears(
            Started(at_us=0, boot=BOOT, unclean=False),
            VERIFIED,
            OpenSeance(at_us=0, by=DIRECTOR, seance="2026-11-30-1", rules_sha256="a" * 64),
        )
        for post in range(1, POSTS + 1):
            await self.hears(Sit(at_us=0, post=post, request="sit", player=f"player-{post}"))
            await self.hears(credit(post, MOST))

    async def begins_round(self) -> None:
        await self.hears(TimerFired(at_us=0, name="next_round", round=self.state.coup.round + 1))
        assert self.state.coup.phase is Phase.BETTING

    async def launches(self) -> None:
        self._spin += 1
        await self.hears(TimerFired(at_us=0, name="launch", round=self.state.coup.round), self.wheel(BallLaunched))

    async def ends_round(self, pocket: str = "17") -> None:
        await self.hears(self.wheel(BallSlowed), PocketDetected(at_us=0, spin=self._spin, pocket=pocket))
        assert self.state.coup.phase is Phase.IDLE

    def wheel(self, kind: type[BallLaunched] | type[BallSlowed]) -> Input:
        direction = self.state.coup.expected or Direction.CLOCKWISE
        return kind(at_us=0, spin=self._spin, direction=direction, rotor_mrpm=16_000)

    def stake(self, post: int = 1, cents: int = 100) -> PlaceStakes:
        self._asked += 1
        stakes = (Stake(bet="rouge", cents=Cents(cents)),)
        return PlaceStakes(at_us=0, post=post, request=f"s{self._asked}", round=self.state.coup.round, stakes=stakes)

    # ── What can be read ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> RouletteState:
        return self.table.state

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(leaf) for leaf in self.journal.leaves(0, self.journal.size)]

    def outcomes(self, of: type[Input]) -> list[Outcome]:
        """What became of the inputs of a kind, in the order in which they were answered."""
        return [what[1] for name, what in self.told if name == "answer" and isinstance(what[0], of)]

    def decided(self, of: type[Input]) -> list[Fact]:
        return [fact for outcome in self.outcomes(of) for fact in outcome.facts]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "journal.sqlite"
    Journal.create(path, SIGNER, allow_volatile=True)
    return path


@pytest.fixture
def bench(file: Path) -> Iterator[Bench]:
    made = Bench(file)
    with closing(made.writer):
        yield made


@pytest.fixture
async def playing(bench: Bench) -> Bench:
    """A table with bets open."""
    await bench.opens()
    await bench.begins_round()
    bench.told.clear()
    bench.writer.asked.clear()
    return bench


# ── Write, then tell ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_table_until_the_commit_returned_tells_nobody_anything(playing: Bench) -> None:
    playing.writer.hold()
    size, state = playing.table.size, playing.state
    playing.put(credit(1, 500))
    playing.put(TimerFired(at_us=0, name="launch", round=1))
    step = asyncio.create_task(playing.table.step())
    for _ in range(20):
        await asyncio.sleep(0)
    assert playing.writer.asked, "the commit is under way"
    assert playing.told == []
    assert (playing.table.size, playing.state) == (size, state)
    playing.writer.release()
    await step
    assert [name for name, _ in playing.told] == ["certified", "answer", "answer", "request", "request"]


async def test_table_after_the_commit_first_shows_the_state_then_answers_then_acts(playing: Bench) -> None:
    await playing.hears(TimerFired(at_us=0, name="launch", round=1), credit(1, 500))
    assert [name for name, _ in playing.told] == ["certified", "answer", "answer", "request", "request"]
    certified = playing.told[0][1]
    assert isinstance(certified, Certified)
    assert certified.state is playing.state
    assert [type(fact).__name__ for fact in certified.facts] == ["LaunchOrdered", "CreditAdded"]
    assert certified.first_index == playing.table.size - 2
    assert certified.size == playing.table.size


async def test_table_failed_commit_that_stored_nothing_ends_the_run_and_tells_nobody(
    playing: Bench, file: Path
) -> None:
    size = playing.table.size
    playing.writer.fail_next(stored=False)
    playing.put(playing.stake())
    with pytest.raises(JournalFault, match="E-JOURNAL-WRITE"):
        await playing.table.run()
    assert playing.told == []
    with Reader(file) as reader:
        assert reader.size == size


async def test_table_failed_commit_that_had_stored_all_ends_the_run_and_tells_nobody(
    playing: Bench, file: Path
) -> None:
    size = playing.table.size
    playing.writer.fail_next(stored=True)
    playing.put(playing.stake(cents=300))
    with pytest.raises(JournalFault, match="E-JOURNAL-WRITE"):
        await playing.table.run()
    assert playing.told == []
    playing.writer.close()
    again = Bench(file)
    with closing(again.writer):
        assert again.table.size == size + 1
        assert again.state.posts.seated(1).staked == 300, "what was stored counts, although nobody was told"


async def test_table_input_that_decides_nothing_is_answered_without_a_commit(playing: Bench) -> None:
    await playing.hears(LinkRestored(at_us=0, device="wheel"))
    assert playing.writer.asked == []
    assert playing.outcomes(LinkRestored) == [Outcome(playing.table.size, ())]


async def test_table_outcome_names_the_entry_that_certifies_its_first_fact(playing: Bench) -> None:
    stakes = [playing.stake(post) for post in (1, 2, 3)]
    await playing.hears(*stakes)
    for stake, outcome in zip(stakes, playing.outcomes(PlaceStakes), strict=True):
        entry = playing.entries[outcome.first_index]
        assert (entry["data"]["request"], entry["data"]["post"]) == (stake.request, stake.post)
        assert entry["data"]["input"]["kind"] == "PlaceStakes"


async def test_table_further_facts_of_a_decision_point_to_the_entry_with_its_input(playing: Bench) -> None:
    await playing.hears(playing.stake(1), playing.stake(2))
    await playing.launches()
    await playing.ends_round()
    (outcome,) = playing.outcomes(PocketDetected)
    assert len(outcome.facts) == 4, "the number, two posts and the round"
    first, *rest = playing.entries[outcome.first_index : outcome.first_index + 4]
    assert first["data"]["input"]["kind"] == "PocketDetected"
    assert [entry["data"]["input_at"] for entry in rest] == [outcome.first_index] * 3
    assert all("input" not in entry["data"] for entry in rest)


# ── Group commit ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_table_burst_of_stakes_costs_one_commit_for_each_full_batch(playing: Bench) -> None:
    await playing.hears(*[playing.stake(1 + at % POSTS) for at in range(2 * BATCH_BOUND + 44)])
    assert [len(commit.records) for commit in playing.writer.asked] == [BATCH_BOUND, BATCH_BOUND, 44]
    assert len(playing.decided(PlaceStakes)) == 2 * BATCH_BOUND + 44


async def test_table_lone_input_is_committed_alone_and_at_once(playing: Bench) -> None:
    await playing.hears(playing.stake())
    assert [len(commit.records) for commit in playing.writer.asked] == [1]


async def test_table_batch_ends_when_its_slice_of_time_is_used_up(playing: Bench) -> None:
    playing.clock.tick_us = BATCH_SLICE_US // 4
    await playing.hears(*[playing.stake() for _ in range(15)])
    playing.clock.tick_us = 0
    assert [len(commit.records) for commit in playing.writer.asked] == [5, 5, 5]


async def slow_commit(playing: Bench, took_us: int) -> None:
    """One commit, for which the disk takes so long."""
    playing.writer.hold()
    playing.put(playing.stake())
    step = asyncio.create_task(playing.table.step())
    await asyncio.sleep(0)
    playing.clock.advance_us(took_us)
    playing.writer.release()
    await step
    playing.writer.asked.clear()


async def test_table_batch_after_a_slow_commit_is_larger_and_shrinks_with_the_next_quick_one(playing: Bench) -> None:
    await slow_commit(playing, took_us=3 * SLICE_SHARE * BATCH_SLICE_US)
    playing.clock.tick_us = BATCH_SLICE_US // 4
    await playing.hears(*[playing.stake() for _ in range(23)])
    playing.clock.tick_us = 0
    assert [len(commit.records) for commit in playing.writer.asked] == [13, 5, 5]


async def test_table_batch_after_a_commit_that_hung_holds_the_loop_no_longer_than_its_bound(playing: Bench) -> None:
    await slow_commit(playing, took_us=60_000_000)
    playing.clock.tick_us = BATCH_SLICE_BOUND_US // 4
    await playing.hears(*[playing.stake() for _ in range(10)])
    playing.clock.tick_us = 0
    assert len(playing.writer.asked[0].records) == 5


async def test_table_between_two_batches_of_a_burst_lets_in_what_came_meanwhile(playing: Bench) -> None:
    await playing.launches()
    playing.told.clear()
    for _ in range(2 * BATCH_BOUND):
        playing.put(playing.stake())
    asyncio.get_running_loop().call_soon(playing.put, playing.wheel(BallSlowed))
    asyncio.get_running_loop().call_soon(playing.put, Stopping(at_us=0, boot=BOOT))
    await playing.table.run()
    assert len(playing.decided(PlaceStakes)) == BATCH_BOUND
    assert isinstance(playing.decided(BallSlowed)[0], NoMoreBetsCalled)


async def test_table_stakes_of_one_batch_are_decided_one_upon_the_other(playing: Bench) -> None:
    playing.put(playing.stake(cents=RULES.bets["rouge"].max_stake(RULES.minimum)))
    playing.put(playing.stake(cents=100))
    await playing.table.step()
    placed, refused = playing.decided(PlaceStakes)
    assert isinstance(placed, StakesPlaced)
    assert isinstance(refused, RequestRefused)
    assert refused.reason is Refusal.STAKE_ABOVE_MAXIMUM
    assert len(playing.writer.asked) == 1


async def test_table_pay_out_twice_in_one_batch_pays_once(playing: Bench) -> None:
    playing.put(CashOut(at_us=0, post=1, request="a"))
    playing.put(CashOut(at_us=0, post=1, request="b"))
    await playing.table.step()
    paid, refused = playing.decided(CashOut)
    assert isinstance(paid, PlayerPaidOut)
    assert paid.cents == MOST
    assert isinstance(refused, RequestRefused)
    assert refused.reason is Refusal.POST_FREE


@pytest.mark.law("67-15")
async def test_table_no_more_bets_behind_a_burst_of_stakes_is_decided_before_all_that_wait(playing: Bench) -> None:
    await playing.launches()
    playing.told.clear()
    for at in range(1_000):
        playing.put(playing.stake(1 + at % POSTS))
    playing.put(playing.wheel(BallSlowed))
    await playing.hears()
    assert isinstance(playing.decided(BallSlowed)[0], NoMoreBetsCalled)
    refused = playing.decided(PlaceStakes)
    assert len(refused) == 1_000
    assert {getattr(fact, "reason", None) for fact in refused} == {Refusal.STAKE_LATE}
    assert all(playing.state.posts.seated(post).staked == 0 for post in range(1, POSTS + 1))


@pytest.mark.law("67-15")
async def test_table_no_more_bets_during_a_commit_lets_no_stake_in_but_those_of_that_commit(playing: Bench) -> None:
    await playing.launches()
    playing.told.clear()
    playing.writer.asked.clear()
    for _ in range(1_000):
        playing.put(playing.stake())
    playing.writer.hold()
    step = asyncio.create_task(playing.table.step())
    await asyncio.sleep(0)
    playing.put(playing.wheel(BallSlowed))
    playing.writer.release()
    await step
    await playing.hears()
    kinds = [type(fact) for fact in playing.decided(PlaceStakes)]
    assert kinds == [StakesPlaced] * BATCH_BOUND + [RequestRefused] * (1_000 - BATCH_BOUND)
    (called,) = playing.outcomes(BallSlowed)
    late = [entry for entry in playing.entries[called.first_index :] if entry["type"] == StakesPlaced.KIND]
    assert late == [], "no stake is certified after no more bets"


async def test_table_stopping_decides_nothing_any_more_and_the_journal_ends_there(playing: Bench) -> None:
    playing.put(playing.stake())
    playing.put(Stopping(at_us=0, boot=BOOT))
    await playing.table.run()
    playing.put(playing.stake())
    assert playing.entries[-1]["type"] == "fr.table.stopped.v1"
    assert playing.outcomes(PlaceStakes) == [], "a stake that waits is not decided, and the post sends it again"


# ── Snapshots and checkpoints ─────────────────────────────────────────────────────────────────────────────────────────


async def test_table_snapshot_is_taken_at_the_first_closed_round_after_enough_entries(playing: Bench) -> None:
    await playing.hears(*[playing.stake() for _ in range(20)])
    while playing.table.size < 3 * SNAPSHOT_EVERY:
        size_before = playing.table.size
        await playing.hears(*[playing.stake(2) for _ in range(90)])
        await playing.launches()
        await playing.ends_round()
        await playing.begins_round()
        assert playing.table.size > size_before
    taken = [commit for commit in playing.writer.asked if commit.snapshot]
    assert len(taken) == 2
    for commit in taken:
        assert commit.snapshot is not None
        assert json.loads(commit.snapshot)["state"]["coup"]["phase"] == "idle"
        assert commit.records[-1].kind == "fr.roulette.round.closed.v1"


async def test_table_open_round_of_any_length_is_never_in_a_snapshot(playing: Bench) -> None:
    await playing.hears(*[playing.stake(cents=100) for _ in range(2 * SNAPSHOT_EVERY)])
    assert [commit for commit in playing.writer.asked if commit.snapshot] == []


async def test_table_started_again_and_again_still_takes_its_snapshots(file: Path) -> None:
    taken = 0
    for run in range(12):
        bench = Bench(file)
        with closing(bench.writer):
            if run == 0:
                await bench.opens()
            await bench.hears(Started(at_us=0, boot=BOOT, unclean=True))
            for _ in range(40):
                await bench.hears(CreditPost(at_us=0, by=CASHIER, post=1, cents=Cents(1)))
            taken += sum(commit.snapshot is not None for commit in bench.writer.asked)
    assert taken > 0


async def test_table_restored_from_a_snapshot_has_the_state_that_was_certified(playing: Bench, file: Path) -> None:
    await playing.hears(*[playing.stake() for _ in range(SNAPSHOT_EVERY)])
    await playing.launches()
    await playing.ends_round()
    assert playing.journal.latest_snapshot() is not None
    await playing.begins_round()
    await playing.hears(playing.stake(2, 500))
    state = playing.state
    playing.writer.close()
    again = Bench(file)
    with closing(again.writer):
        assert again.state == state


@pytest.mark.parametrize("kind", [TableStarted, SeanceOpened, SeanceClosed, PlayerPaidOut], ids=lambda kind: kind.KIND)
async def test_table_checkpoint_of_a_milestone_is_kept(bench: Bench, kind: type[Fact]) -> None:
    await bench.opens()
    for post in range(1, POSTS + 1):
        await bench.hears(CashOut(at_us=0, post=post, request="out"))
    await bench.hears(CloseSeance(at_us=0, by=DIRECTOR))
    milestones = [certified for name, certified in bench.told if name == "certified" and certified.milestone]
    assert any(isinstance(fact, kind) for certified in milestones for fact in certified.facts)
    kept = [commit for commit in bench.writer.asked if commit.keep_checkpoint]
    assert len(kept) == len(milestones)
    assert any(record.kind == kind.KIND for commit in kept for record in commit.records)


async def test_table_checkpoint_of_an_incident_is_kept_and_that_of_a_stake_is_not(playing: Bench) -> None:
    await playing.hears(playing.stake())
    await playing.hears(DeclareIncident(at_us=0, by=DIRECTOR, reason="essai"))
    assert [commit.keep_checkpoint for commit in playing.writer.asked] == [False, True]


async def test_table_entries_bear_the_name_of_the_seance_that_was_open(bench: Bench) -> None:
    await bench.opens()
    for post in range(1, POSTS + 1):
        await bench.hears(CashOut(at_us=0, post=post, request="out"))
    await bench.hears(CloseSeance(at_us=0, by=DIRECTOR), VERIFIED)
    seances = {entry["type"]: entry.get("seance") for entry in bench.entries}
    assert seances["fr.table.started.v1"] is None
    assert seances[PlayerSat.KIND] == "2026-11-30-1"
    assert seances[SeanceClosed.KIND] == "2026-11-30-1"
    assert bench.entries[-1].get("seance") is None


async def test_table_request_is_performed_after_every_answer_of_its_batch(playing: Bench) -> None:
    playing.put(TimerFired(at_us=0, name="launch", round=1))
    for post in (1, 2, 3):
        playing.put(credit(post, 500))
    await playing.table.step()
    assert [name for name, _ in playing.told] == ["certified", *["answer"] * 4, *["request"] * 2]
    assert all(isinstance(what, Request) for name, what in playing.told if name == "request")


async def test_table_urgent_input_is_not_held_up_by_the_stakes_that_wait_behind_it(playing: Bench) -> None:
    for _ in range(10):
        playing.put(playing.stake())
    playing.put(TimerFired(at_us=0, name="launch", round=1))
    await playing.hears()
    assert [len(commit.records) for commit in playing.writer.asked] == [1, 10]
    assert playing.told[1][0] == "answer"
    assert isinstance(playing.told[1][1][0], TimerFired)
