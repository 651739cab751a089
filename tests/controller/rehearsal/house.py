"""A whole table under virtual time, told as a story: the production daemon among a wheel, posts and staff of the tests.

    play(story)         story(house) is a coroutine; nothing in it takes real time, and nothing is luck

The wheel is the twin behind a cable that can be pulled, the broker is in memory and can be cut off, the disk can be
slow or fail, and the daemon can be killed at any instant and started again on the same journal.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

import tomli_w

from controller.certify.journal import Journal
from controller.certify.note import Signer
from controller.certify.reader import Reader
from controller.config import load
from controller.daemon import Daemon, Hardware, Surroundings, state_document
from controller.delivery.bus import MemoryBus, MemoryExchange, Message
from controller.delivery.topics import Topics
from controller.entropy import SeededEntropy
from controller.options import Config
from controller.rehearsal.simulate import SALT, rehearsal_overrides, staff_keys
from controller.rehearsal.virtual_time import LoopClock, VirtualTimeLoop
from controller.schemas import Challenge
from controller.storage_watch import StorageWatch
from drivers.twin.panel import TwinInputs, TwinOutputs
from drivers.twin.serial import TwinCable
from drivers.twin.wheel import TwinSettings, WheelTwin
from drivers.twin.wheel_faults import FaultPlan
from games.roulette.coup import RouletteState
from games.roulette.game import BUTTONS, Roulette
from tests.controller.rehearsal.people import Office, Post
from tests.controller.writers import DiskWriter

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "config" / "roulette-launcher.toml"
LAMPS = ("faites-vos-jeux", "rien-ne-va-plus", "numero", "incident", "seance")

SHARED_MEMORY = Path("/dev/shm")
MEMORY = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
"""Where journals of stories are: a disk that syncs in no time. What survives a power cut is for other tests."""

PATIENCE_S = 600.0
"""Virtual seconds after which what is waited for will never come."""

T = TypeVar("T")
Story = Callable[["House"], Awaitable[T]]


def play(story: Story[T], **options: Any) -> T:
    """Tell a story in virtual time. ``options`` are those of ``House``."""

    async def tell(folder: Path) -> T:
        async with House(folder, **options) as house:
            return await story(house)

    with TemporaryDirectory(dir=MEMORY) as folder, asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(tell(Path(folder)))


def table_config(folder: Path, staff: Mapping[str, Signer], conduct: str, options: Mapping[str, Any]) -> Config:
    """The example configuration, rehearsed in ``folder``; ``options`` replace those of its sections."""
    overrides = rehearsal_overrides(staff, folder / "journal.sqlite")
    wires = {name: {line: pin + at for at, line in enumerate(lines)} for name, pin, lines in _wiring(conduct)}
    overrides["panel"] = {"device": "gpio", **wires}
    overrides["roulette"] = {"conduct": conduct}
    if conduct == "croupier":
        overrides["wheel"] = {"commands": False, "rotor_min_mrpm": 15_000, "rotor_max_mrpm": 40_000}
    for section, changed in options.items():
        overrides[section] = {**overrides.get(section, {}), **changed}
    return load(EXAMPLE, overrides)


def example(folder: Path, conduct: str, **options: Any) -> Path:
    """A configuration file of a table of this conduct, for whoever reads one; ``options`` replace section's options."""
    staff = staff_keys("casino.example.simulation", SeededEntropy(1))
    config = table_config(folder, staff, conduct, options)
    file = folder / f"roulette-{conduct}.toml"
    document = config.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    file.write_text(tomli_w.dumps(document), encoding="utf-8")
    return file


def _wiring(conduct: str) -> Iterator[tuple[str, int, Sequence[str]]]:
    yield "buttons", 0, BUTTONS
    yield "keys", 20, ("director", "croupier") if conduct == "croupier" else ("director",)
    yield "lamps", 22, LAMPS


class House:
    """One table and everybody around it. ``options`` replace sections of the configuration."""

    def __init__(
        self,
        folder: Path,
        *,
        conduct: str = "launcher",
        pockets: Sequence[str] = (),
        faults: FaultPlan | None = None,
        seed: int = 7,
        posts: int = 3,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.entropy = SeededEntropy(seed)
        self.clock = LoopClock(asyncio.get_running_loop())
        self.staff = staff_keys("casino.example.simulation", self.entropy)
        self.config = table_config(folder, self.staff, conduct, {"table": {"posts": posts}, **(options or {})})
        self.file = self.config.journal.file
        self.signer = Signer(self.config.origin, bytes.fromhex(self.entropy.hex(32)))
        self.previous: Signer | None = None
        """The key that ``signer`` replaces, from the next start on."""
        self.game = Roulette(self.config.rules)
        self.exchange = MemoryExchange()
        self.topics = Topics(self.config.site, self.config.table.name)
        settings = TwinSettings(pockets=self.config.roulette.wheel, croupier=conduct == "croupier")
        self.twin = WheelTwin(
            settings, random.Random(seed), faults=faults, pockets=pockets, now_us=self.clock.mono_us()
        )
        self.cable = TwinCable(self.twin, self.clock)
        self.inputs = TwinInputs(
            buttons=tuple(self.config.panel.buttons), keys=tuple(self.config.panel.keys), clock=self.clock, seed=seed
        )
        self._stirred = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._posts: dict[int, Post] = {}
        self._named = 0
        self.office = Office(self, self.staff)
        self.centre = self.office.ear
        self.starts = 0
        self.has_panel = True
        self.free_percent: int | None = None
        """Free space of the disk, watched from the next start on."""
        self.daemon: Daemon
        self.writer: DiskWriter
        self.outputs: TwinOutputs
        self.running: asyncio.Task[None]
        self._reader: Reader

    async def __aenter__(self) -> Self:
        Journal.create(self.file, self.signer, allow_volatile=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.starts:
            await self.kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.cable.close()

    # ── Time ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def stir(self) -> None:
        """Something happened: whoever waits looks again."""
        self._stirred.set()

    async def until(self, condition: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
        """Wait for what must come true; it is looked at after each commit, message and wait."""
        async with asyncio.timeout(within_s):
            while not condition():
                self._stirred.clear()
                await self._stirred.wait()

    async def let_pass(self, seconds: float) -> None:
        """Let virtual time pass."""
        passed = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, passed.set)
        await passed.wait()

    async def until_phase(self, phase: str, within_s: float = PATIENCE_S) -> None:
        """Wait for the round's phase."""
        await self.until(lambda: self.state.coup.phase == phase, within_s)

    # ── The daemon ────────────────────────────────────────────────────────────────────────────────────────────────────

    def raise_daemon(self, hold: bool = False) -> None:
        """Begin to run a daemon on the journal; ``hold`` lets none of its commits return."""
        self.starts += 1
        boot = self.entropy.hex(8)
        journal = Journal.open(
            self.file, self.signer, self.clock, boot, lambda: "free", previous=self.previous, allow_volatile=True
        )
        self.writer = DiskWriter(journal, self.stir)
        if hold:
            self.writer.hold()
        self._reader = Reader(self.file)
        self.outputs = TwinOutputs(tuple(self.config.panel.lamps))

        hardware = Hardware(open_line=self.cable.open, inputs=self.inputs, outputs=self.outputs)
        if not self.has_panel:
            hardware = Hardware(open_line=self.cable.open)

        def will(session: int) -> Message:
            return Message(self.topics.state, state_document("lost", boot, session, simulation=True), retain=True)

        self.daemon = Daemon(
            self.config,
            past=journal,
            reader=self._reader,
            writer=self.writer,
            bus=self.exchange.bus("table", will),
            hardware=hardware,
            around=Surroundings(
                clock=self.clock,
                entropy=self.entropy,
                boot=boot,
                salt=SALT,
                signer=self.signer,
                previous=self.previous,
                software_sha256="0" * 64,
            ),
        )
        self.exchange.heal("table")
        storage = None
        if self.free_percent is not None:
            storage = StorageWatch(
                self.file.parent, self.clock, self.daemon.emit, lambda _: (self.free_percent or 0, 100)
            )
        run = self.daemon.run(storage=storage, on_ready=self.stir)
        self.running = asyncio.get_running_loop().create_task(run)
        self.running.add_done_callback(lambda _: self.stir())

    async def start(self) -> None:
        """Run a daemon, and wait until its start is certified and it is connected."""
        self.raise_daemon()
        await self.until(lambda: self.daemon.bus.connected or self.running.done())

    async def kill(self, *, losing: bool = True) -> None:
        """The power goes: no stop, no goodbye. ``losing``: what was just sent is lost too, or arrives."""
        self.exchange.partition("table", losing=losing)
        self.running.cancel()
        await asyncio.wait({self.running})
        self.daemon.timers.stop()
        self._reader.close()
        self.writer.close()

    async def restart(self, *, losing: bool = True) -> None:
        """The power goes and comes back."""
        await self.kill(losing=losing)
        await self.start()

    async def stop(self) -> None:
        """Stop in good order."""
        self.daemon.stop()
        await self.running

    # ── What can be read ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> RouletteState:
        return self.daemon.table.state

    @property
    def leaves(self) -> list[bytes]:
        """Every certified entry."""
        with Reader(self.file) as reader:
            return list(reader.leaves(0, reader.size))

    @property
    def facts(self) -> list[tuple[str, dict[str, Any]]]:
        """Every certified fact: the short kind ("roulette.round.closed") and its data without what it came from."""
        return [read_fact(leaf) for leaf in self.leaves]

    def every(self, kind: str) -> list[dict[str, Any]]:
        """The facts of a kind, in order."""
        return [data for found, data in self.facts if found == kind]

    def credit(self, post: int) -> int:
        player = self.state.posts.player(post)
        return player.credit if player else 0

    @property
    def board(self) -> dict[str, Any]:
        """The retained public board."""
        board: dict[str, Any] = json.loads(self.exchange.retained[self.topics.display].payload)
        return board

    # ── People ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def client(self, name: str) -> MemoryBus:
        """A client on the broker, running."""
        bus = self.exchange.bus(name)
        self._tasks.add(asyncio.get_running_loop().create_task(bus.run()))
        return bus

    def post(self, number: int) -> Post:
        """The post of this number."""
        if number not in self._posts:
            self._posts[number] = Post(self, number)
        return self._posts[number]

    async def stake(self, post: Post, **cents: int) -> dict[str, Any]:
        """A post stakes in the present round."""
        return await post.stake(self.state.coup.round, **cents)

    def command(self, payload: bytes) -> None:
        """Send a command as it is."""
        self.office.command(payload)

    async def challenge(self) -> Challenge:
        """See ``Office``."""
        return await self.office.challenge()

    async def order(self, role: str, verb: str, **arguments: object) -> dict[str, Any]:
        """See ``Office``."""
        return await self.office.order(role, verb, **arguments)

    # ── The usual course ──────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Start, and open the séance in the usual way."""
        if not self.starts:
            await self.start()
        await self.let_pass(8)  # the wheel starts up and is heard
        if self.config.roulette.conduct == "croupier":
            self.inputs.turn("croupier", on=True)
            await self.until(lambda: "croupier" in self.state.seance.keys_on)
            await self.press("mise-en-service", lambda: self.state.seance.in_service)
        opened = await self.order("director", "seance.open")
        assert opened["ok"], opened

    async def press(self, button: str, until: Callable[[], bool]) -> None:
        """Press a button of the panel and wait for what it does."""
        self.inputs.press(button)
        await self.until(until)
        await self.let_pass(0.5)  # the finger leaves

    async def seat(self, number: int, cents: int) -> Post:
        """A player sits down and the desk loads the post."""
        post = self.post(number)
        sat = await post.ask("sit", player=f"carte-{number:04d}")
        assert sat["ok"], sat
        credited = await self.order("cashier", "post.credit", post=number, cents=cents)
        assert credited["ok"], credited
        return post

    async def begin_round(self) -> None:
        """ "Faites vos jeux", by the device or by the croupier's button."""
        if self.config.roulette.conduct == "croupier":
            await self.press("faites-vos-jeux", lambda: self.state.coup.phase == "betting")
        else:
            await self.until_phase("betting")

    async def reach(self, stage: str) -> None:
        """Go from open bets to a later stage: "launched", "no_more_bets", "verifying" or "idle"."""
        croupier = self.config.roulette.conduct == "croupier"
        while croupier and not self.cable.spin():
            await self.let_pass(1)  # the ball of the last spin is taken out
        await self.until(lambda: self.state.coup.spin is not None)
        if stage == "launched":
            return
        await self.until_phase("no_more_bets")
        if stage == "no_more_bets":
            return
        if croupier:
            await self.until_phase("verifying")
            if stage == "verifying":
                return
            self.inputs.press("confirmer")
        await self.until_phase("idle")

    async def settle_incident(self) -> None:
        """Two persons resolve the round, and a director lets play go on."""
        incident = self.state.coup.incident
        by = "croupier" if self.config.roulette.conduct == "croupier" else "director"
        if incident is not None and self.state.coup.phase == "manual":
            if incident.number_allowed and incident.hint:
                await self.order(by, "number.enter", pocket=incident.hint)
            else:
                await self.order("director", "round.void", reason="essai")
            if self.state.coup.phase == "manual":
                await self.order("director", "presence.attest")
        restarted = await self.order("director", "game.restart")
        assert restarted["ok"], restarted


def read_fact(leaf: bytes) -> tuple[str, dict[str, Any]]:
    """A leaf as its short kind and its data without the input."""
    entry = json.loads(leaf)
    data = {name: value for name, value in entry["data"].items() if name not in ("input", "input_at")}
    return entry["type"].removeprefix("fr.").rpartition(".v")[0], data


async def ended(task: asyncio.Task[Any]) -> list[BaseException]:
    """Wait for a daemon that ends by itself; the exceptions that ended it, without their groups."""
    with suppress(BaseExceptionGroup):
        await task
    return list(_flat(task.exception()))


def _flat(error: BaseException | None) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for below in error.exceptions:
            yield from _flat(below)
    elif error is not None:
        yield error
