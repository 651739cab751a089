"""``tablectl demo`` (``make run``): a table that a newcomer can watch, made of real parts in processes of their own.

    broker (iotcore, or a mosquitto) ◄──MQTT 5──► tabled ◄──pseudo-terminal──► wheel twin
       ▲    ▲                                        ▲
       │    └── players, director, cashier           └── croupier's buttons (a local socket)
       └── mirror, which keeps and cosigns what the table certifies

``tabled`` is the daemon that a casino runs, unchanged. Only its configuration says that this is a rehearsal: its own
site name, keys made for the evening, a journal of its own under the folder of the demonstration.
"""

import asyncio
import random
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from controller.certify.journal import Journal
from controller.certify.keys import create_key, person_key_name
from controller.certify.note import Signer
from controller.certify.reader import Reader
from controller.config import load
from controller.delivery.broker import BrokerBus
from controller.delivery.broker_settings import BrokerSettings
from controller.delivery.bus import Message
from controller.delivery.embedded import Embedded
from controller.delivery.topics import Topics
from controller.options import Config
from controller.rehearsal import centre
from controller.rehearsal.evening import Evening, Hands, PostClient, Seen
from controller.rehearsal.players import PlayerTwin
from controller.rehearsal.staff import StaffTwin

MARK = "rehearsal"
"""This file in a folder says that a demonstration made it, and may make it anew."""

STARTED_WITHIN_S = 20.0
"""Patience for the wheel's pseudo-terminal and the daemon's socket."""

STOPPED_WITHIN_S = 15.0
"""Patience for a process that was asked to stop."""

ACKNOWLEDGED_WITHIN_S = 10.0
"""Patience for the mirror's last acknowledgement."""

_LOGS = {"controller.app": "tabled.log", "controller.cli": "mirror.log", "drivers.twin.wheel": "wheel.log"}
"""Where each of our programs logs."""

ROLES = ("director", "cashier", "croupier")


class DemoError(Exception):
    """The demonstration cannot go on. ``code`` is explained by ``tablectl explain``."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code} {detail}")
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where the demonstration lives."""

    folder: Path
    config: Config
    config_file: Path
    staff: Mapping[str, Signer]
    seed: int
    speed: int
    faults: str
    mirrored: bool = False

    @property
    def wheel(self) -> Path:
        """The link to the wheel's pseudo-terminal."""
        return self.folder / "wheel"

    @property
    def vkey_file(self) -> Path:
        """The table's public key."""
        return self.folder / "table.vkey"

    @property
    def panel(self) -> Path:
        """The socket of the panel's twin."""
        return self.folder / "panel.sock"

    @property
    def free_post(self) -> int:
        """The last post, which no twin takes: for whoever writes a post of his own (docs/post-protocol.md)."""
        return self.config.table.posts


def prepare(source: Path, folder: Path, *, speed: int | None, seed: int, faults: str, mirrored: bool = False) -> Stage:
    """Make the folder: keys, an empty journal, the rehearsal's configuration, and a mirror's if it is ``mirrored``.

    Raises ConfigError, DemoError.
    """
    plain = load(source, {"table": {"simulation": True, "epoch": 1}})
    if folder.exists():
        if any(folder.iterdir()) and not (folder / MARK).exists():
            raise DemoError(
                "E-DEMO-FOLDER", f"{folder} holds something else than a demonstration; choose another --out"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    folder = folder.resolve()
    (folder / MARK).write_text(f"made by tablectl demo from {source.name}\n", encoding="utf-8")
    staff = {role: Signer.generate(person_key_name(plain.site, role)) for role in ROLES}
    signer = create_key(folder / "table.key", plain.origin)
    speed = speed or plain.rehearsal.speed
    overrides = _overrides(plain, folder, staff, speed)
    if mirrored:
        mirror = centre.lay_out(folder, plain.site, signer.verifier, _plain(overrides["mqtt"]))
        overrides["mirror"] = {"vkey": mirror, "start_wait_s": 1}
    config = load(source, overrides)
    config_file = folder / "table.toml"
    document = config.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    config_file.write_text(tomli_w.dumps(document), encoding="utf-8")
    Journal.create(config.journal.file, signer, allow_volatile=True)
    (folder / "table.vkey").write_text(f"{signer.verifier.vkey}\n", encoding="ascii")
    return Stage(
        folder=folder,
        config=config,
        config_file=config_file,
        staff=staff,
        seed=seed,
        speed=speed,
        faults=faults,
        mirrored=mirrored,
    )


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Without the options that are not given."""
    return {name: value for name, value in options.items() if value is not None}


def _overrides(plain: Config, folder: Path, staff: Mapping[str, Signer], speed: int) -> dict[str, Any]:
    """The same table, N times faster, with twins at its ports."""
    rules = plain.roulette
    waits = ("betting_ms", "between_ms") if rules.conduct == "launcher" else ()
    return {
        "table": {"simulation": True, "epoch": 1},  # another epoch would need its statement
        "journal": {"file": str(folder / "journal.sqlite"), "key": str(folder / "table.key"), "volatile": True},
        "roulette": {
            **{wait: max(100, getattr(rules, wait) // speed) for wait in waits},
            "no_more_bets_after_ms": rules.no_more_bets_after_ms // speed,
        },
        "wheel": {"port": str(folder / "wheel"), "status_period_ms": max(5, plain.wheel.status_period_ms // speed)},
        "panel": {"device": f"twin:{folder / 'panel.sock'}"},
        "mqtt": {"host": "127.0.0.1", "port": _free_port(), "ca": None, "certificate": None, "key": None},
        "person": [{"badge": role, "role": role, "vkey": signer.verifier.vkey} for role, signer in staff.items()],
    }


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


async def play(stage: Stage, *, coups: int, on_event: Callable[[Mapping[str, Any]], None]) -> Seen:
    """Start everything, play ``coups`` valid rounds (0: until interrupted), and stop everything. Raises DemoError."""
    config, loop = stage.config, asyncio.get_running_loop()
    topics = Topics(config.site, config.table.name)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(_broker(stage))
        wheel = await _start(stack, stage, "drivers.twin.wheel", *_wheel_words(stage), feed=True)
        await _appears(stage.wheel, wheel, "the wheel's pseudo-terminal")
        if stage.mirrored:
            await _start(stack, stage, "controller.cli", "mirror", "run", "--config", str(stage.folder / centre.CONFIG))
        tabled = await _start(stack, stage, "controller.app", "--config", str(stage.config_file))
        await _appears(stage.folder / "status.sock", tabled, "the daemon")
        hands = None
        if config.roulette.conduct == "croupier":
            _, panel = await asyncio.open_unix_connection(stage.panel)
            stack.callback(panel.close)
            hands = ProcessHands(panel, wheel)
        bus = _bus(config, "staff")
        staff = StaffTwin(stage.staff)
        evening = Evening(bus, topics, staff, coups=coups, hands=hands, speed=stage.speed, on_event=on_event)
        buses = [bus]
        for post in range(1, stage.free_post):
            buses.append(_bus(config, f"post-{post}"))
            PostClient(PlayerTwin(post, stage.seed), buses[-1], topics)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, evening.finished.set)
        clients = [loop.create_task(client.run()) for client in buses]
        watch = loop.create_task(_ends(tabled))
        finished = loop.create_task(evening.finished.wait())
        await asyncio.wait((watch, finished), return_when=asyncio.FIRST_COMPLETED)
        if not finished.done():
            raise DemoError("E-DEMO-ENDED", f"the daemon ended by itself; see {stage.folder / 'tabled.log'}")
        await _stop(tabled)
        for task in (watch, *clients):
            task.cancel()
        await asyncio.gather(watch, *clients, return_exceptions=True)
        if stage.mirrored:
            with Reader(config.journal.file) as reader:
                size = reader.size
            await centre.acknowledged(stage.folder, config.origin, size, ACKNOWLEDGED_WITHIN_S)
        return evening.seen


def _broker(stage: Stage) -> Embedded:
    port, broker = stage.config.mqtt.port, stage.config.rehearsal.broker
    if broker == "iotcore":
        return Embedded.iotcore(port, stage.folder)
    return Embedded.mosquitto(Path(broker), port, stage.folder)


def _wheel_words(stage: Stage) -> list[str]:
    words = ["--link", str(stage.wheel), "--speed", str(stage.speed), "--seed", str(stage.seed)]
    words += ["--pockets", str(stage.config.roulette.wheel)]
    words += ["--faults", stage.faults] if stage.faults else []
    return words + (["--croupier"] if stage.config.roulette.conduct == "croupier" else [])


async def _start(
    stack: AsyncExitStack, stage: Stage, module: str, *words: str, feed: bool = False
) -> asyncio.subprocess.Process:
    """Start one of our own programs; its log goes to a file of the folder, and it ends with us."""
    log = stack.enter_context((stage.folder / _LOGS[module]).open("wb"))
    stdin = asyncio.subprocess.PIPE if feed else asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *words, stdin=stdin, stdout=log, stderr=log, start_new_session=True
    )
    stack.push_async_callback(_stop, process)
    return process


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(STOPPED_WITHIN_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _ends(process: asyncio.subprocess.Process) -> None:
    await process.wait()


async def _appears(path: Path, process: asyncio.subprocess.Process, what: str) -> None:
    deadline_s = asyncio.get_running_loop().time() + STARTED_WITHIN_S
    while not await asyncio.to_thread(path.exists):
        if process.returncode is not None or asyncio.get_running_loop().time() > deadline_s:
            raise DemoError("E-DEMO-START", f"{what} did not come up; see the logs in {path.parent}")
        await asyncio.sleep(0.05)


def _bus(config: Config, name: str) -> BrokerBus:
    settings = BrokerSettings(host=config.mqtt.host, port=config.mqtt.port, client_id=name)

    def will(_: int) -> Message:
        return Message(f"rehearsal/{name}", b"gone")

    return BrokerBus(settings, will=will, random=random.random, on_fault=lambda _: None)


class ProcessHands(Hands):
    """A croupier whose hands reach the daemon's panel by its socket and the wheel by its standard input."""

    def __init__(self, panel: asyncio.StreamWriter, wheel: asyncio.subprocess.Process) -> None:
        self._panel = panel
        self._wheel = wheel

    def press(self, button: str) -> None:
        """See ``Hands``."""
        self._panel.write(f"press {button}\n".encode())

    def turn(self, key: str, on: bool) -> None:
        """See ``Hands``."""
        self._panel.write(f"turn {key} {'on' if on else 'off'}\n".encode())

    def spin(self) -> None:
        """See ``Hands``."""
        if self._wheel.stdin is not None:
            self._wheel.stdin.write(b"spin\n")

    def mend(self) -> None:
        """See ``Hands``."""
        if self._wheel.stdin is not None:
            self._wheel.stdin.write(b"power\n")
