"""What runs in the virtual machine whose power is cut: a table that was cut before starts again, and plays on.

    /run/data     the disk; the journal is on it
    /run/shared   the world outside, which keeps what it was told: entries, the newest checkpoint, and what was said

It says what it found at the start, and by how many entries it trails what the world remembers. Then stakes flow,
through the real game, table, writer and journal; each commit is told to the world after it returned, not before.
"""

import asyncio
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from bench.stage import rules
from controller import history
from controller.certify.checkpoint import parse_checkpoint
from controller.certify.faults import CertifyFault
from controller.certify.journal import Journal
from controller.certify.log_keys import LogKeys
from controller.certify.note import open_note
from controller.certify.reader import Reader
from controller.certify.verify import verify
from controller.certify.writer import Writer
from controller.inbox import Inbox, Outcome
from controller.table import Certified, Table
from drivers.clock import SystemClock
from games.money import Cents
from games.roulette.coup import Phase, RouletteState
from games.roulette.game import Roulette
from games.rules import Input, Request, SetTimer, Started, TimerFired
from games.signals import CreditPost, OpenSeance, Person, PlaceStakes, RestartGame, Role, Sit, Stake, TakeBack
from proof.recorded_writer import FILE, MIRROR, TABLE

POSTS = 4
CREDIT = Cents(1_000_000_00)
BOOT = "f" * 16
KEYS = LogKeys.of(TABLE.verifier)

DIRECTOR = Person(badge="d", role=Role.DIRECTOR)
CASHIER = Person(badge="c", role=Role.CASHIER)


class World:
    """The shared folder: whatever is written there has left the machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told = (folder / "told").open("ab", buffering=0)
        self._entries = (folder / "entries").open("ab", buffering=0)

    def say(self, **about: object) -> None:
        """One line, in one system call."""
        self._told.write(json.dumps(about).encode() + b"\n")

    def keep(self, leaves: Iterable[bytes], note: str) -> None:
        """What a table publishes after a commit: the entries, and the checkpoint over them."""
        self._entries.write(b"".join(leaf + b"\n" for leaf in leaves))
        self.say(certified=note)

    @property
    def acknowledgement(self) -> str:
        """The newest checkpoint of which the world holds all entries, cosigned; empty at the beginning."""
        return (self._folder / "acknowledgement").read_text(encoding="utf-8")

    def remembered(self, start: int, stop: int) -> list[bytes]:
        """Entries that it was told."""
        return (self._folder / "remembered").read_bytes().split(b"\n")[start:stop]


def found(world: World, path: Path) -> Journal:
    """The journal as the last power cut left it, compared with what the world remembers, and healed if it trails."""
    try:
        journal = _opened(path)
    except CertifyFault as fault:
        world.say(found=0, fault=fault.code)
        shutil.rmtree(path.parent)
        journal = _opened(path)
    else:
        world.say(found=journal.size, sound=verify(path, KEYS, processes=1).ok)
    known = _compare(world, journal) if world.acknowledgement else 0
    if journal.size > known:  # certified at the last moment before the cut, and never told
        world.keep(journal.leaves(known, journal.size), journal.checkpoint)
    return journal


def _opened(path: Path) -> Journal:
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        Journal.create(path, TABLE)
    return Journal.open(path, TABLE, SystemClock(), BOOT, lambda: "free")


def _compare(world: World, journal: Journal) -> int:
    """How many entries the world remembers; the journal has at least these afterwards."""
    note = world.acknowledgement
    size = parse_checkpoint(open_note(note, [TABLE.verifier]).text).size
    try:
        journal.add_cosignature(note, MIRROR.verifier)
    except CertifyFault as fault:
        world.say(detected=fault.code, trails_by=size - journal.size)
        journal.restore_entries(world.remembered(journal.size, size), note, MIRROR.verifier)
        world.say(healed=journal.size)
    return size


class Evening:
    """A real table, played as fast as it certifies."""

    def __init__(self, world: World, journal: Journal, reader: Reader) -> None:
        self._world, self._reader, self._clock = world, reader, SystemClock()
        self._inbox, game = Inbox(), Roulette(rules(POSTS))
        self.table = Table(
            game,
            history.restore(game, journal, RouletteState),
            self._inbox,
            Writer(journal),
            self._clock,
            size=journal.size,
            seance_name=lambda state: state.seance.name,
            perform=self._perform,
            certified=self._certified,
        )

    async def play(self) -> None:
        """Until the power goes."""
        running = asyncio.create_task(self.table.run())
        await self._ask(Started(at_us=self._now, boot=BOOT, unclean=True))
        if not self.table.state.seance.open:
            await self._open()
        if self.table.state.coup.phase is Phase.HALTED:
            await self._ask(RestartGame(at_us=self._now, by=DIRECTOR))
        number = self.table.size
        while not running.done():
            number += 1
            await asyncio.gather(*(self._stake(post, number) for post in range(1, POSTS + 1)))

    async def _open(self) -> None:
        await self._ask(OpenSeance(at_us=self._now, by=DIRECTOR, seance="2026-11-30-1", rules_sha256="0" * 64))
        for post in range(1, POSTS + 1):
            await self._ask(Sit(at_us=self._now, post=post, request="sit", player=f"player-{post}"))
            await self._ask(CreditPost(at_us=self._now, by=CASHIER, post=post, cents=CREDIT))
        await self._ask(TimerFired(at_us=self._now, name="next_round", round=1))

    async def _stake(self, post: int, number: int) -> None:
        """Stake on red and think better of it."""
        of_round, now = self.table.state.coup.round, self._now
        stakes = (Stake(bet="rouge", cents=Cents(500)),)
        await self._ask(PlaceStakes(at_us=now, post=post, request=f"s{number}", round=of_round, stakes=stakes))
        await self._ask(TakeBack(at_us=now, post=post, request=f"t{number}", round=of_round))

    @property
    def _now(self) -> int:
        return self._clock.mono_us()

    async def _ask(self, signal: Input) -> Outcome:
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._inbox.put(signal, done.set_result)
        return await done

    def _perform(self, request: Request) -> None:
        if isinstance(request, SetTimer) and request.name == "next_round":
            self._inbox.put(TimerFired(at_us=self._now, name=request.name, round=request.round))

    def _certified(self, certified: Certified[RouletteState]) -> None:
        self._world.keep(self._reader.leaves(certified.first_index, certified.size), self._reader.checkpoint())


def main() -> None:
    """Find, heal, play."""
    disk, world = Path(sys.argv[1]), World(Path(sys.argv[2]))
    path = disk / "table" / FILE
    journal = found(world, path)
    asyncio.run(Evening(world, journal, Reader(path)).play())


if __name__ == "__main__":
    main()
