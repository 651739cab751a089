"""Real brokers on free loopback ports, an ear on a bus, a journal in memory, and time that costs nothing."""

import asyncio
import json
import os
import selectors
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from controller.certify.checkpoint import Checkpoint
from controller.certify.leaf import leaf_hash
from controller.certify.note import KeyType, Signer, sign_note
from controller.certify.tree import EMPTY_ROOT, root_of
from controller.delivery.broker import BrokerBus
from controller.delivery.broker_settings import BrokerSettings
from controller.delivery.bus import BusFault, Message
from controller.delivery.embedded import Embedded
from controller.delivery.topics import Topics

PATIENCE_S = 15.0
"""A condition that has not come true by then never will."""

MOSQUITTO = """\
listener {port} 127.0.0.1
allow_anonymous true
set_tcp_nodelay true
max_inflight_messages 500
max_queued_messages 10000
persistence false
log_dest stderr
"""


class Ear:
    """Hears everything on a bus, and lets a test wait for what it expects."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.faults: list[BusFault] = []
        self.connections = 0
        self.losses = 0
        self.attempts = 0
        self._changed = asyncio.Event()

    def on_message(self, message: Message) -> None:
        self.messages.append(message)
        self._changed.set()

    def on_connected(self) -> None:
        self.connections += 1
        self._changed.set()

    def on_disconnected(self) -> None:
        self.losses += 1
        self._changed.set()

    def on_fault(self, fault: BusFault) -> None:
        self.faults.append(fault)
        self._changed.set()

    def on_attempt(self, session: int) -> None:
        """A connection is tried: its will was asked for."""
        self.attempts = session
        self._changed.set()

    @property
    def codes(self) -> list[str]:
        return [fault.code for fault in self.faults]

    @property
    def payloads(self) -> list[bytes]:
        return [message.payload for message in self.messages]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds; it is looked at whenever something is heard."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class Station:
    """A ``BrokerBus`` that runs, with an ear on it."""

    def __init__(
        self, port: int, client_id: str, filters: Sequence[str], topics: Topics, options: dict[str, Any]
    ) -> None:
        fast = {"retry_first_s": 0.02, "retry_last_s": 0.1}
        self.settings = BrokerSettings(**{"host": "127.0.0.1", "port": port, "client_id": client_id, **fast, **options})
        self.ear = Ear()
        self.bus = BrokerBus(
            self.settings,
            will=self._will,
            random=lambda: 0.5,
            on_fault=self.ear.on_fault,
        )
        self.bus.attach(self.ear, filters)
        self._topics = topics
        self.task: asyncio.Task[None] | None = None

    def _will(self, session: int) -> Message:
        self.ear.on_attempt(session)
        return Message(self._topics.state, b"lost %d" % session, retain=True)

    def run(self) -> "Station":
        self.task = asyncio.get_running_loop().create_task(self.bus.run())
        return self

    async def connected(self) -> "Station":
        await self.ear.until(lambda: self.bus.connected)
        return self

    async def stop(self) -> None:
        """Cancel ``run`` and wait: it must end by the cancellation and by nothing else."""
        if self.task is not None:
            async with asyncio.timeout(PATIENCE_S):
                while not self.task.done():
                    self.task.cancel()
                    await asyncio.wait({self.task}, timeout=PATIENCE_S / 4)
            assert self.task.cancelled(), self.task.exception()


@pytest.fixture
async def station(topics: Topics) -> AsyncIterator[Callable[..., Station]]:
    """``station(port, client_id, filters, **settings)`` makes a running bus; all are stopped at the end."""
    made: list[Station] = []

    def make(port: int, client_id: str = "t07", filters: Sequence[str] = (), **options: Any) -> Station:
        made.append(Station(port, client_id, filters, topics, options).run())
        return made[-1]

    yield make
    for one in made:
        if one.task is not None and not one.task.done():
            await one.stop()


@pytest.fixture
def station_of(topics: Topics) -> Callable[..., Station]:
    """``station_of(port, client_id, filters, **settings)`` makes a bus that does not run yet; stop it yourself."""

    def make(port: int, client_id: str, filters: Sequence[str], **options: Any) -> Station:
        return Station(port, client_id, filters, topics, options)

    return make


@pytest.fixture
def topics() -> Topics:
    return Topics("casino.example", "t07")


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


# ── Real brokers ──────────────────────────────────────────────────────────────────────────────────────────────────────


class RealBroker:
    """A broker process that can be killed, frozen and started again on the same port. ``up`` is set while it runs."""

    def __init__(self, kind: str, port: int, folder: Path, program: Callable[[str], str]) -> None:
        self.kind = kind
        self.port = port
        self.up = asyncio.Event()
        self._folder = folder
        self._program = program
        self._mosquitto: Mosquitto | None = None
        self._iotcore: Embedded | None = None

    async def start(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            if self.kind == "iotcore":
                self._iotcore = await Embedded.iotcore(self.port, self._folder).__aenter__()
            else:
                configuration = self._folder / "plain.conf"
                configuration.write_text(MOSQUITTO.format(port=self.port))
                self._mosquitto = await Mosquitto(self._program("mosquitto"), configuration).start()
        self.up.set()

    async def kill(self) -> None:
        """End it as a power cut does."""
        self.up.clear()
        os.kill(self._pid, signal.SIGKILL)
        await self._gone()

    async def stop(self) -> None:
        if self.up.is_set():
            await self.kill()

    def freeze(self) -> None:
        """Let it hang: its connections stay open, and it does nothing."""
        os.kill(self._pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    @property
    def _pid(self) -> int:
        if self._iotcore is not None:
            return self._iotcore.pid
        assert self._mosquitto is not None
        return self._mosquitto.pid

    async def _gone(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            if self._iotcore is not None:
                await self._iotcore.__aexit__(None, None, None)
            if self._mosquitto is not None:
                await self._mosquitto.gone()


class Mosquitto:
    """A mosquitto process. Raises AssertionError, with what it said, when it does not come up."""

    def __init__(self, program: str, configuration: Path) -> None:
        self.said = b""
        self._command = (program, "-v", "-c", str(configuration))
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> "Mosquitto":
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*self._command, stderr=pipe)
        running = asyncio.Event()
        self._reading = asyncio.get_running_loop().create_task(self._read(self._process, running))
        await running.wait()
        if b" running\n" not in self.said:
            await self.gone()
            raise AssertionError(f"mosquitto did not start: {self.said.decode()}")
        return self

    async def _read(self, process: asyncio.subprocess.Process, running: asyncio.Event) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            self.said += line
            if line.endswith(b" running\n"):
                running.set()
        running.set()

    def reload(self) -> None:
        """Let it read its access list again."""
        os.kill(self.pid, signal.SIGHUP)

    async def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        await self.gone()

    async def gone(self) -> None:
        assert self._process is not None
        assert self._reading is not None
        await self._process.wait()
        await self._reading


@pytest.fixture(params=["mosquitto", "iotcore"])
async def broker(
    request: pytest.FixtureRequest, tmp_path: Path, free_port: int, program: Callable[[str], str]
) -> AsyncIterator[RealBroker]:
    """The same tests for both brokers."""
    if request.param == "iotcore":
        pytest.importorskip("iotcore")
    made = RealBroker(request.param, free_port, tmp_path, program)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def mosquitto_of() -> type[Mosquitto]:
    return Mosquitto


# ── A journal in memory, and its mirror's signature ───────────────────────────────────────────────────────────────────

ORIGIN = "casino.example/table/t07/1"


def seeded(name: str, kind: KeyType = KeyType.ED25519) -> Signer:
    return Signer(name, sha256(name.encode()).digest(), kind)


class MemoryJournal:
    """What the publisher reads: certified entries, a signed checkpoint, roots."""

    def __init__(self, entries: int = 0, flavour: str = "") -> None:
        self.signer = seeded(ORIGIN)
        self.all: list[bytes] = []
        self._hashes: list[bytes] = []
        self.flavour = flavour
        self.grow(entries)

    @property
    def size(self) -> int:
        return len(self.all)

    def grow(self, count: int) -> int:
        """Certify ``count`` entries more; returns the new size."""
        for _ in range(count):
            leaf = {"data": {"cents": 250, "flavour": self.flavour}, "id": str(self.size), "source": ORIGIN}
            self.all.append(json.dumps(leaf, separators=(",", ":")).encode())
            self._hashes.append(leaf_hash(self.all[-1]))
        return self.size

    def leaf(self, index: int) -> bytes:
        return self.all[index]

    def leaves(self, start: int, stop: int) -> Iterator[bytes]:
        yield from self.all[start:stop]

    def root(self, size: int) -> bytes:
        return root_of(self._hashes[:size]) if size else EMPTY_ROOT

    def checkpoint(self) -> str:
        return sign_note(Checkpoint(ORIGIN, self.size, self.root(self.size)).text, self.signer)


def cosign(checkpoint: str, mirror: Signer) -> bytes:
    """The mirror's acknowledgement: the checkpoint as it came, and one signature line more."""
    text = checkpoint.rpartition("\n\n")[0] + "\n"
    return f"{checkpoint}{mirror.sign(text, 1_800_000_000).line}\n".encode()


@pytest.fixture(scope="session")
def journal_of() -> Callable[..., MemoryJournal]:
    return MemoryJournal


@pytest.fixture(scope="session")
def mirror() -> Signer:
    return seeded("caisse.example/mirror", KeyType.COSIGNATURE)


@pytest.fixture(scope="session")
def acknowledge() -> Callable[[str, Signer], bytes]:
    return cosign


# ── Time that costs nothing ───────────────────────────────────────────────────────────────────────────────────────────


class _InstantSelector(selectors.DefaultSelector):
    """Never waits: what would be waited for is added to the loop's clock."""

    waited_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits for something that nobody will do")
        if not ready and timeout:
            self.waited_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer."""

    def __init__(self) -> None:
        self._instant = _InstantSelector()
        super().__init__(self._instant)

    def time(self) -> float:
        return self._instant.waited_s


@pytest.fixture(scope="session")
def in_virtual_time() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """``in_virtual_time(coroutine)`` runs it on a loop whose clock jumps; an exception in a callback fails the test."""

    def run(main: Coroutine[Any, Any, Any]) -> Any:
        failed: list[dict[str, Any]] = []
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.get_loop().set_exception_handler(lambda loop, context: failed.append(context))
            result = runner.run(main)
        assert not failed
        return result

    return run
