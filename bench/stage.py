"""A table for the benchmarks: a journal on this disk, a roulette that is open, a hundred players with credit."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from controller.certify.journal import Journal
from controller.certify.note import Signer
from controller.certify.writer import Writer
from controller.inbox import Inbox, Outcome
from controller.table import Table
from drivers.clock import SystemClock
from games.money import Cents
from games.roulette.coup import RouletteState
from games.roulette.game import Roulette
from games.roulette.layout import Wheel
from games.roulette.rules import Conduct, RouletteRules
from games.rules import Input, TimerFired
from games.signals import CreditPost, OpenSeance, Person, PlaceStakes, Role, Sit, Stake

POSTS = 100
CREDIT = Cents(1_000_000_000)
BUILD = Path("build/bench")
"""On the same disk as the checkout: a bench on a memory file system says nothing about certifying."""


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table in the betting phase of round 1."""

    table: Table[RouletteState]
    inbox: Inbox
    clock: SystemClock

    async def ask(self, signal: Input) -> Outcome:
        """Let one input in and wait until what it led to is certified."""
        done = asyncio.get_running_loop().create_future()
        self.inbox.put(signal, done.set_result)
        outcome: Outcome = await done
        return outcome


def rules(posts: int = POSTS) -> RouletteRules:
    """The rules of the benchmarks."""
    return RouletteRules(
        wheel=Wheel.SINGLE_ZERO, conduct=Conduct.LAUNCHER, posts=posts, minimum=Cents(50), verify_wheel=False
    )


def _build_folder() -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    return BUILD


@asynccontextmanager
async def open_table() -> AsyncIterator[OpenTable]:
    """A table whose hundred players sit, have credit, and may bet."""
    with tempfile.TemporaryDirectory(dir=_build_folder()) as folder:
        file, clock = Path(folder) / "journal.sqlite", SystemClock()
        signer = Signer.generate("bench.example/table/t00/1")
        Journal.create(file, signer, allow_volatile=True)
        writer = Writer(Journal.open(file, signer, clock, "0" * 16, lambda: "free", allow_volatile=True))
        inbox, game = Inbox(), Roulette(rules())
        table = Table(
            game,
            game.initial(),
            inbox,
            writer,
            clock,
            size=0,
            seance_name=lambda state: state.seance.name,
            perform=lambda _: None,
            certified=lambda _: None,
        )
        running = asyncio.create_task(table.run())
        opened = OpenTable(table, inbox, clock)
        await _fill(opened)
        try:
            yield opened
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            writer.close()


async def _fill(table: OpenTable) -> None:
    director, cashier = Person(badge="d", role=Role.DIRECTOR), Person(badge="c", role=Role.CASHIER)
    await table.ask(OpenSeance(at_us=0, by=director, seance="2026-11-30-1", rules_sha256="0" * 64))
    for post in range(1, POSTS + 1):
        await table.ask(Sit(at_us=0, post=post, request="sit", player=f"player-{post}"))
        await table.ask(CreditPost(at_us=0, by=cashier, post=post, cents=CREDIT))
    await table.ask(TimerFired(at_us=0, name="next_round", round=1))


def stakes(number: int, per_message: int) -> PlaceStakes:
    """A message with so many stakes, of a post that takes its turn."""
    lines = tuple(Stake(bet=f"sixain-{1 + 3 * at}-{6 + 3 * at}", cents=Cents(50)) for at in range(per_message))
    return PlaceStakes(at_us=0, post=1 + number % POSTS, request=f"r{number}", round=1, stakes=lines)


Report = Callable[[str], None]
