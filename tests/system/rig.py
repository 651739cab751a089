"""A table of real processes: a broker, a wheel on a pseudo-terminal, and ``tabled`` as a casino runs it.

    async with Rig(folder, broker) as rig:      broker and wheel run; ``tabled`` when ``start`` says so

What the supervisor would hear from ``tabled`` (READY, WATCHDOG, STOPPING) is heard here. Nothing is waited for longer
than PATIENCE_S, and nothing is waited for by the clock: each wait ends with a message, a line or the end of a process.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Self

from controller.certify.log_keys import LogKeys
from controller.certify.reader import Reader
from controller.certify.verify import Verdict, verify
from controller.delivery.broker import BrokerBus
from controller.delivery.broker_settings import BrokerSettings
from controller.delivery.bus import Message
from controller.delivery.embedded import Embedded
from controller.delivery.topics import Topics
from controller.history import replay
from controller.rehearsal.demo import Stage, prepare
from controller.status import ask
from games.roulette.coup import RouletteState
from games.roulette.game import Roulette
from tests.controller.rehearsal.house import ROOT, read_fact
from tests.controller.rehearsal.people import Office, Post

PATIENCE_S = 20.0
"""What has not come true by then never will."""

SPEED = 60
LAUNCHER = ROOT / "config" / "roulette-launcher.toml"


class Tabled:
    """One run of the daemon: its process, what it logged and what it told its supervisor."""

    def __init__(self, config_file: Path, log: Path) -> None:
        self._config_file = config_file
        self._log = log
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._line.bind(f"\0table-{os.getpid()}-{id(self)}")
        self.told: list[str] = []
        self.process: asyncio.subprocess.Process | None = None

    async def run(self, *, prefix: Sequence[str] = (), watchdog_us: int = 0, **environment: str) -> Self:
        """Start it; ``prefix`` is a program to start it with."""
        address = self._line.getsockname()
        known = {**os.environ, "NOTIFY_SOCKET": "@" + address[1:].decode(), **environment}
        if watchdog_us:
            known["WATCHDOG_USEC"] = str(watchdog_us)
        with self._log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                *prefix,
                *(sys.executable, "-m", "controller.app", "--config", str(self._config_file)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=known,
            )
        return self

    @property
    def log(self) -> list[dict[str, Any]]:
        """What it logged, line by line."""
        return [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]

    @property
    def codes(self) -> list[str]:
        """The codes that it logged."""
        return [line["event"] for line in self.log if line["event"].startswith("E-")]

    async def hears(self, word: str) -> None:
        """Wait until it told its supervisor ``word``; fails when it ends before."""
        assert self.process is not None
        loop, ended = asyncio.get_running_loop(), asyncio.create_task(self.process.wait())
        async with asyncio.timeout(PATIENCE_S):
            while not any(word in told for told in self.told):
                heard = asyncio.create_task(loop.sock_recv(self._line, 4_096))
                await asyncio.wait((heard, ended), return_when=asyncio.FIRST_COMPLETED)
                if not heard.done():
                    heard.cancel()
                    raise AssertionError(f"tabled ended with {self.process.returncode}: {self.log}")
                self.told.append(heard.result().decode())
        ended.cancel()

    def heard(self) -> list[str]:
        """Everything that it has told its supervisor, without waiting."""
        with suppress(BlockingIOError):
            while True:
                self.told.append(self._line.recv(4_096).decode())
        return self.told

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def ends(self) -> int:
        """Wait for its end; returns its status."""
        assert self.process is not None
        async with asyncio.timeout(PATIENCE_S):
            return await self.process.wait()

    async def close(self) -> None:
        """Kill what is left of it. It may be called again."""
        if self._line.fileno() < 0:
            return
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        self.heard()
        self._line.close()


class Rig:
    """Everything around ``tabled``. ``program`` finds mosquitto."""

    def __init__(self, folder: Path, broker: str, program: Callable[[str], str]) -> None:
        self.stage: Stage = prepare(LAUNCHER, folder / "demo", speed=SPEED, seed=7, faults="")
        self.topics = Topics(self.stage.config.site, self.stage.config.table.name)
        self._broker, self._program = broker, program
        self._stack = AsyncExitStack()
        self._stirred = asyncio.Event()
        self._runs = 0
        self.office: Office
        self.running: Tabled

    async def __aenter__(self) -> Self:
        port, folder = self.stage.config.mqtt.port, self.stage.folder
        if self._broker == "mosquitto":
            broker = Embedded.mosquitto(Path(self._program("mosquitto")), port, folder)
        else:
            broker = Embedded.iotcore(port, folder)
        await self._stack.enter_async_context(broker)
        await self._start_wheel()
        self.office = Office(self, self.stage.staff)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _start_wheel(self) -> None:
        words = ("--link", str(self.stage.wheel), "--speed", str(SPEED), "--seed", "7")
        wheel = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "drivers.twin.wheel", *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )

        async def end() -> None:
            assert wheel.stdin is not None
            wheel.stdin.close()
            await wheel.wait()

        self._stack.push_async_callback(end)

    # ── Around, for the people ────────────────────────────────────────────────────────────────────────────────────────

    def client(self, name: str) -> BrokerBus:
        """A client on the broker, running."""
        settings = BrokerSettings(
            host="127.0.0.1", port=self.stage.config.mqtt.port, client_id=name, retry_first_s=0.05, retry_last_s=0.2
        )
        bus = BrokerBus(
            settings,
            will=lambda _: Message(f"rehearsal/{name}", b"gone"),
            random=lambda: 0.5,
            on_fault=lambda _: None,
        )
        task = asyncio.get_running_loop().create_task(bus.run())

        async def end() -> None:
            task.cancel()
            await asyncio.wait({task})

        self._stack.push_async_callback(end)
        return bus

    def stir(self) -> None:
        """Something was heard: whoever waits looks again."""
        self._stirred.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what must come true; it is looked at after each message."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._stirred.clear()
                await self._stirred.wait()

    # ── The table ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def tabled(self) -> Tabled:
        """A daemon on this table's configuration, not started."""
        self._runs += 1
        made = Tabled(self.stage.config_file, self.stage.folder / f"tabled-{self._runs}.log")
        self._stack.push_async_callback(made.close)
        return made

    async def start(self, **environment: str) -> Tabled:
        """Run a daemon, and wait until it is ready and hears what is sent to it."""
        made = self.running = await self.tabled().run(**environment)
        await made.hears("READY=1")
        boot = (await self.status())["boot"]
        await self.until(lambda: boot in [state["boot"] for state in self.states if state["state"] != "lost"])
        return made

    @property
    def states(self) -> list[dict[str, Any]]:
        """The states that were published, in order."""
        return self.office.ear.documents(self.topics.state)

    async def open(self) -> None:
        """The director opens the séance, as soon as the wheel is heard."""
        while not (opened := await self.office.order("director", "seance.open"))["ok"]:
            assert opened["code"] in ("E-WHEEL-SILENT", "E-WHEEL-NOT-VERIFIED"), opened
            await self.until_fact("table.wheel.parameters.read", len(self.every("table.wheel.parameters.read")))

    async def until_fact(self, kind: str, more_than: int = 0) -> None:
        """Wait until more facts of a kind were published."""
        await self.until(lambda: len(self.every(kind)) > more_than)

    def every(self, kind: str) -> list[dict[str, Any]]:
        """The facts of a kind that were published, in order, each once."""
        events = [message.payload for message in self.office.ear.heard if message.topic == self.topics.event]
        return [data for found, data in map(read_fact, dict.fromkeys(events)) if found == kind]

    @property
    def board(self) -> dict[str, Any]:
        """The board as it was last heard."""
        boards = self.office.ear.documents(self.topics.display)
        return boards[-1] if boards else {"phase": "", "round": 0}

    async def bets_open(self) -> int:
        """Wait until bets are open; returns the round."""
        await self.until(lambda: self.board["phase"] == "betting")
        return int(self.board["round"])

    async def seat(self, number: int, cents: int) -> Post:
        """A player sits down and the desk loads the post."""
        post = Post(self, number)
        assert (await post.ask("sit", player=f"card-{number}"))["ok"]
        assert (await self.office.order("cashier", "post.credit", post=number, cents=cents))["ok"]
        return post

    async def status(self) -> dict[str, Any]:
        """What the daemon says of itself."""
        return await ask(self.stage.folder / "status.sock", "status")

    # ── The journal, when nobody writes it ────────────────────────────────────────────────────────────────────────────

    @property
    def journal(self) -> Path:
        return self.stage.config.journal.file

    @property
    def leaves(self) -> list[bytes]:
        with Reader(self.journal) as reader:
            return list(reader.leaves(0, reader.size))

    @property
    def facts(self) -> list[tuple[str, dict[str, Any]]]:
        return [read_fact(leaf) for leaf in self.leaves]

    def verified(self) -> Verdict:
        """The verdict over the whole journal."""
        return verify(self.journal, LogKeys.parse(self.stage.vkey_file.read_text(encoding="ascii")), processes=1)

    def replayed(self) -> RouletteState:
        """The state at which deciding everything again arrives."""
        state, _ = replay(Roulette(self.stage.config.rules), self.leaves)
        return state
