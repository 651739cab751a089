"""A table, its mirror and their broker in bad weather: processes die, networks tear, and all is compared afterwards.

    posts ──────────────────────────► mosquitto ◄── Crossing ◄── tabled   ── journal
                                          ▲
                                          └──────── Crossing ◄── mirror   ── its store

One ``Storm`` plays many runs one after the other, without ever starting afresh. A run lets some faults loose while
stakes flow, lets the weather clear, and waits until the mirror acknowledged everything. Then both databases must hold
the same bytes, and every stake that was answered must have been decided once.
"""

import asyncio
import random
import signal
import sqlite3
import sys
import tomllib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import tomli_w

from controller.certify.keys import create_cosigner_key
from controller.certify.note import parse_note
from controller.certify.reader import Reader
from tests.controller.rehearsal.house import read_fact
from tests.controller.rehearsal.people import Ear, Office
from tests.system.crossing import Crossing, Weather
from tests.system.gambler import Gambler
from tests.system.rig import Rig

CREDIT = 10_000_000
STAKES_AFTER = 3
"""Stakes that are answered after the storm: play goes on."""

CALM_WITHIN_S = 60.0
"""When the weather is clear, everything is delivered within this, or never."""

LOOK_S = 1.0
"""How often it is looked whether something has to be done meanwhile."""

LONGEST_S = 0.6
"""The longest that one fault lasts before the next one comes, or calm."""


class Mosquitto:
    """A broker that can be killed and refuse."""

    def __init__(self, program: str, port: int, folder: Path, refused: str) -> None:
        self._program, self._port = program, port
        self._refused = refused
        self._access, self._file = folder / "access", folder / "storm.conf"
        lines = [
            f"listener {port} 127.0.0.1",
            "allow_anonymous true",
            f"acl_file {self._access}",
            "set_tcp_nodelay true",
        ]
        lines += ["max_inflight_messages 500", "max_queued_messages 10000", "persistence false", "user root", ""]
        self._file.write_text("\n".join(lines), encoding="utf-8")
        self.process: asyncio.subprocess.Process | None = None
        self._write_access(refuses=False)

    def _write_access(self, *, refuses: bool) -> None:
        refused = f"topic deny {self._refused}\n" if refuses else ""
        self._access.write_text(f"{refused}topic readwrite #\n", encoding="utf-8")

    async def start(self) -> None:
        """Run it, and wait until it listens."""
        self.process = await asyncio.create_subprocess_exec(
            *(self._program, "-c", str(self._file)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        while not await self._listens():
            assert self.process.returncode is None, f"mosquitto ended with {self.process.returncode}"

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True

    async def kill(self) -> None:
        """As a power cut does: nothing is saved."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def refuse(self, *, refuses: bool) -> None:
        """Let it refuse the table's entries from now on, or not."""
        self._write_access(refuses=refuses)
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Compared:
    """A run: the faults it had, entries compared, and what was wrong: lost, different, or decided twice."""

    faults: tuple[str, ...]
    entries: int
    lost: int
    different: int
    twice: int

    @property
    def sound(self) -> bool:
        """Whether nothing was lost or doubled."""
        return not (self.lost or self.different or self.twice)


class Storm(Rig):
    """See above. ``run`` plays one run."""

    async def __aenter__(self) -> Self:
        config, folder = self.stage.config, self.stage.folder
        self.mosquitto = Mosquitto(self._program("mosquitto"), config.mqtt.port, folder, self.topics.event)
        await self.mosquitto.start()
        self._stack.push_async_callback(self.mosquitto.kill)
        self.table_way = await self._stack.enter_async_context(Crossing(config.mqtt.port))
        self.mirror_way = await self._stack.enter_async_context(Crossing(config.mqtt.port))
        self._configure()
        await self._start_wheel()
        self.office = Office(self, self.stage.staff)
        self._acks = Ear(self, "acks", [self.topics.ack])
        self.mirror: asyncio.subprocess.Process | None = None
        self._stack.push_async_callback(self._kill_mirror)
        self._compared = 0
        self._decided: Counter[tuple[int, str]] = Counter()
        return self

    def _configure(self) -> None:
        """The table and the mirror each speak through a crossing."""
        folder, site = self.stage.folder, self.stage.config.site
        signer = create_cosigner_key(folder / "mirror.key", f"{site}/mirror")
        document = tomllib.loads(self.stage.config_file.read_text(encoding="utf-8"))
        document["mqtt"] |= {"port": self.table_way.port, "keepalive_s": 5}
        document["mirror"] = {"vkey": signer.verifier.vkey, "start_wait_s": 1}
        self.stage.config_file.write_text(tomli_w.dumps(document), encoding="utf-8")
        vkey = self.stage.vkey_file.read_text(encoding="ascii").strip()
        (folder / "policy").write_text(f"log {vkey}\nquorum none\n", encoding="utf-8")
        service = {"mode": "mirror", "name": "mirror", "key": "mirror.key", "policy": "policy", "volatile": True}
        mirror = {"service": {**service, "store": "mirror/store.sqlite"}, "mqtt": {**document["mqtt"]}}
        mirror["mqtt"]["port"] = self.mirror_way.port
        (folder / "mirror").mkdir()
        (folder / "mirror.toml").write_text(tomli_w.dumps(mirror), encoding="utf-8")

    async def start_mirror(self) -> None:
        """Run the central service; it is ready when it is."""
        with (self.stage.folder / "mirror.log").open("ab") as log:
            self.mirror = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "controller.cli", "mirror", "run", "--config", "mirror.toml"),
                cwd=self.stage.folder,
                env={"PYTHONPATH": str(Path(__file__).parents[2])},
                stdout=log,
                stderr=log,
            )

    async def _kill_mirror(self) -> None:
        if self.mirror is not None and self.mirror.returncode is None:
            self.mirror.kill()
            await self.mirror.wait()

    # ── Faults ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def faults(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Each fault by its name: it happens, and lasts until calm, or until another one ends it."""
        weathers = (Weather.CUT, Weather.STILL, Weather.SLOW)
        ways = {"table": self.table_way, "mirror": self.mirror_way}
        network = {f"{name} {weather}": (way, weather) for name, way in ways.items() for weather in weathers}

        def change(way: Crossing, weather: Weather) -> Callable[[], Awaitable[None]]:
            async def changed() -> None:
                way.become(weather)

            return changed

        async def refuse() -> None:
            self.mosquitto.refuse(refuses=True)

        return {
            **{name: change(*one) for name, one in network.items()},
            "broker killed": self.mosquitto.kill,
            "broker restarted": self._restart_broker,
            "broker refuses": refuse,
            "table killed": self._kill_table,
            "mirror killed": self._kill_mirror,
            "mirror restarted": self._restart_mirror,
        }

    async def _restart_broker(self) -> None:
        await self.mosquitto.kill()
        await self.mosquitto.start()

    async def _restart_mirror(self) -> None:
        await self._kill_mirror()
        await self.start_mirror()

    async def _kill_table(self) -> None:
        assert self.running.process is not None
        if self.running.process.returncode is None:
            self.running.process.kill()
            await self.running.process.wait()

    async def _calm(self) -> None:
        """Clear weather: whatever is dead starts again."""
        for way in (self.table_way, self.mirror_way):
            way.become(Weather.CLEAR)
        if self.mosquitto.process is None or self.mosquitto.process.returncode is not None:
            await self.mosquitto.start()
        self.mosquitto.refuse(refuses=False)
        if self.mirror is None or self.mirror.returncode is not None:
            await self.start_mirror()
        assert self.running.process is not None
        if self.running.process.returncode is not None:
            await self.running.close()
            await self.start()

    # ── A run ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self, chance: random.Random, gamblers: list[Gambler]) -> Compared:
        """Some faults in random order, then calm, then the comparison."""
        faults = self.faults()
        chosen = tuple(chance.choice(sorted(faults)) for _ in range(chance.randint(2, 5)))
        playing = [asyncio.create_task(gambler.plays()) for gambler in gamblers]
        for name in chosen:
            await faults[name]()
            await self._while(chance.random() * LONGEST_S)
        await self._calm()
        answered = sum(len(gambler.answered) for gambler in gamblers) + STAKES_AFTER
        await self._within(lambda: sum(len(gambler.answered) for gambler in gamblers) >= answered, self._resume)
        for task in playing:
            task.cancel()
        await asyncio.wait(playing)
        size = await self._all_acknowledged()
        compared = self._compare(chosen, size, gamblers)
        self._forget()
        return compared

    async def _while(self, seconds: float) -> None:
        """Let the storm rage."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.Event().wait()

    async def _within(self, condition: Callable[[], bool], meanwhile: Callable[[], Awaitable[None]]) -> None:
        """Like ``until``, with more patience; ``meanwhile`` is done now and then."""
        try:
            async with asyncio.timeout(CALM_WITHIN_S):
                while not condition():
                    await meanwhile()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await self.until(condition)
        except TimeoutError:
            raise AssertionError(f"not within {CALM_WITHIN_S} s: {self.running.log}") from None

    async def _look(self) -> None:
        """Nothing but look again."""

    async def _resume(self) -> None:
        """What the table's death interrupted is settled by persons, and play goes on."""
        assert self.running.process is not None
        assert self.running.process.returncode is None, self.running.log
        status = await self.status()
        while status["table"]["board"]["phase"] in ("manual", "halted"):
            incident = status["table"]["incident"]
            if status["table"]["board"]["phase"] == "halted":
                await self.office.order("director", "game.restart")
            elif incident["number_allowed"] and incident.get("hint"):
                await self.office.order("director", "number.enter", pocket=incident["hint"])
            else:
                await self.office.order("director", "round.void", reason="essai")
            status = await self.status()

    async def _all_acknowledged(self) -> int:
        """Wait until the mirror acknowledged what is in the journal now; returns how many entries that is."""
        with Reader(self.journal) as reader:
            size = reader.size
        await self._within(lambda: self._acknowledged >= size, self._look)
        return size

    @property
    def _acknowledged(self) -> int:
        notes = [message.payload.decode() for message in self._acks.heard]
        return max((int(parse_note(note).text.split("\n")[1]) for note in notes), default=0)

    def _compare(self, faults: tuple[str, ...], size: int, gamblers: list[Gambler]) -> Compared:
        """The journal's entries since the last run beside the mirror's, and each stake that was answered."""
        with Reader(self.journal) as reader:
            ours = list(reader.leaves(self._compared, size))
        theirs = self._mirrored(self._compared, size)
        for _, data in map(read_fact, ours):
            if "-stake-" in data.get("request", ""):
                self._decided[data["post"], data["request"]] += 1
        answered = [(gambler.post.number, request) for gambler in gamblers for request in gambler.answered]
        lost = size - self._compared - len(theirs) + sum(self._decided[one] == 0 for one in answered)
        different = sum(a != b for a, b in zip(ours, theirs, strict=False))
        twice = sum(count > 1 for count in self._decided.values())
        entries, self._compared = size - self._compared, size
        return Compared(faults, entries, lost, different, twice)

    def _mirrored(self, start: int, stop: int) -> list[bytes]:
        file = self.stage.folder / "mirror" / "store.sqlite"
        query = "SELECT leaf FROM entry WHERE idx >= ? AND idx < ? ORDER BY idx"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            return [leaf for (leaf,) in connection.execute(query, (start, stop))]

    def _forget(self) -> None:
        """Keep the last message of each topic: a long storm is not remembered whole."""
        for ear in (self.office.ear, self._acks):
            ear.heard = list({message.topic: message for message in ear.heard}.values())


async def storm(folder: Path, program: Callable[[str], str], runs: int, seed: int) -> AsyncIterator[Compared]:
    """So many runs of one storm, one after the other, each compared; at the end the whole journal is verified."""
    chance = random.Random(seed)
    async with Storm(folder, "mosquitto", program) as rig:
        await rig.start_mirror()
        await rig.start()
        await rig.open()
        gamblers = [Gambler(rig, await rig.seat(number, CREDIT)) for number in (1, 2)]
        for _ in range(runs):
            yield await rig.run(chance, gamblers)
        assert rig.verified().ok
        rig.replayed()
