"""A whole table in processes of its own, as in a casino: mosquitto, a wheel on a pseudo-terminal, and ``tabled``.

mosquitto ◄──MQTT 5──► tabled ◄──pseudo-terminal──► wheel twin, a status line every 500 ms
                         │
                         └── NOTIFY_SOCKET: READY=1, by which the start is timed
"""

import asyncio
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from bench.stage import BUILD
from controller.delivery.broker import BrokerBus
from controller.delivery.broker_settings import BrokerSettings
from controller.delivery.bus import Bus, Message
from controller.delivery.topics import Topics
from controller.rehearsal.demo import Stage, prepare
from controller.rehearsal.evening import Evening
from controller.rehearsal.staff import StaffTwin

SOURCE = Path("config/roulette-launcher.toml")
READY_WITHIN_S = 60.0
STAFF_SPEED = 20
"""The staff of a benchmark thinks faster than people."""

TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def cabinet(posts: int, *, betting_ms: int = 3_600_000) -> Iterator["Cabinet"]:
    """A table of ``posts`` posts, at life's pace, whose first round takes bets for an hour; nothing runs yet."""
    document: dict[str, Any] = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    document["table"]["posts"] = posts
    document["roulette"] |= {"betting_ms": betting_ms, "between_ms": 100}
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        source = Path(folder) / "source.toml"
        source.write_text(tomli_w.dumps(document), encoding="utf-8")
        yield Cabinet(prepare(source, Path(folder) / "table", speed=1, seed=7, faults=""))


@dataclass(frozen=True, slots=True)
class Cabinet:
    """The folder of a table, and how to start what belongs to it."""

    stage: Stage

    @property
    def topics(self) -> Topics:
        """The topics of this table."""
        return Topics(self.stage.config.site, self.stage.config.table.name)

    @contextmanager
    def broker(self) -> Iterator[int]:
        """A mosquitto on loopback; gives its port."""
        program = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            sys.exit("mosquitto is not installed, and this figure needs it: apt install mosquitto")
        port, configuration = self.stage.config.mqtt.port, self.stage.folder / "mosquitto.conf"
        lines = [f"listener {port} 127.0.0.1", "allow_anonymous true", "set_tcp_nodelay true", "log_type error"]
        lines += ["max_inflight_messages 500", "max_queued_messages 10000", ""]
        configuration.write_text("\n".join(lines), encoding="utf-8")
        with _process(program, "-c", str(configuration)):
            _until(lambda: _listens(port), "mosquitto")
            yield port

    @contextmanager
    def wheel(self) -> Iterator[None]:
        """The wheel's twin on its pseudo-terminal."""
        config = self.stage.config
        words = ["--link", config.wheel.port, "--speed", "1", "--seed", "7"]
        words += ["--pockets", str(config.roulette.wheel)]
        with _process(sys.executable, "-m", "drivers.twin.wheel", *words):
            _until(Path(config.wheel.port).exists, "the wheel")
            yield

    @contextmanager
    def tabled(self, **environment: str) -> Iterator["Tabled"]:
        """The daemon, from its start to its orderly stop. ``environment`` is added to its own."""
        address = str(self.stage.folder / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(address)
            notify.settimeout(READY_WITHIN_S)
            words = ["-m", "controller.app", "--config", str(self.stage.config_file)]
            began_s = time.perf_counter()
            with (self.stage.folder / "tabled.log").open("ab") as log:
                added = {**environment, "NOTIFY_SOCKET": address}
                with _process(sys.executable, *words, log=log.fileno(), environment=added) as process:
                    while b"READY=1" not in notify.recv(4_096):
                        continue
                    yield Tabled(process.pid, time.perf_counter() - began_s)
        Path(address).unlink(missing_ok=True)

    async def open(self, credited: int) -> None:
        """Let the staff open the séance and seat players at the first ``credited`` posts; return when bets are open."""
        bus, topics = self.bus("staff"), self.topics
        done = asyncio.Event()
        waiting = credited

        def witness(entry: Mapping[str, Any]) -> None:
            nonlocal waiting
            if entry["type"] == "fr.table.seance.opened.v1":
                for post in range(1, credited + 1):
                    sit = f'{{"id":"sit-{post}","do":"sit","player":"carte-{post}"}}'
                    bus.publish(Message(topics.post_in(post), sit.encode()))
            waiting -= entry["type"] in ("fr.table.credit.added.v1", "fr.roulette.betting.opened.v1")
            if waiting < 0:
                done.set()

        Evening(bus, topics, StaffTwin(self.stage.staff), coups=0, hands=None, speed=STAFF_SPEED, on_event=witness)
        running = asyncio.create_task(_run(bus))
        async with asyncio.timeout(READY_WITHIN_S):
            await done.wait()
        running.cancel()
        await asyncio.wait({running})

    def bus(self, name: str) -> BrokerBus:
        """Another client of the broker."""
        settings = BrokerSettings(host="127.0.0.1", port=self.stage.config.mqtt.port, client_id=name)

        def will(_: int) -> Message:
            return Message(f"bench/{name}", b"gone")

        return BrokerBus(settings, will=will, random=random.random, on_fault=lambda _: None)


@dataclass(frozen=True, slots=True)
class Tabled:
    """A daemon that is running, and how long it took from its execution to READY=1."""

    pid: int
    ready_s: float

    def processor_s(self) -> float:
        """Processor time of all its threads so far (proc(5): utime and stime)."""
        fields = self._read("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_mb(self) -> float:
        """Its peak resident memory, in millions of bytes."""
        return self._memory_mb("VmHWM")

    def private_mb(self) -> float:
        """How much of its resident memory no other program could share."""
        return self._memory_mb("RssAnon")

    def _memory_mb(self, name: str) -> float:
        (line,) = (line for line in self._read("status").splitlines() if line.startswith(f"{name}:"))
        return int(line.split()[1]) * 1_024 / 1e6

    def _read(self, name: str) -> str:
        return Path(f"/proc/{self.pid}/{name}").read_text(encoding="ascii")


async def _run(bus: Bus) -> None:
    await bus.run()


@contextmanager
def _process(
    *words: str, log: int = subprocess.DEVNULL, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(READY_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


def _until(ready: Any, what: str) -> None:
    deadline_s = time.perf_counter() + READY_WITHIN_S
    while not ready():
        if time.perf_counter() > deadline_s:
            sys.exit(f"{what} did not come up within {READY_WITHIN_S:g} s")
        time.sleep(0.01)
