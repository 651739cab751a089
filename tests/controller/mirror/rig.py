"""A mirror as a process, and tables that deliver to it with the product's own publisher, over a real broker."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from controller.certify.note import Signer
from controller.delivery.broker import BrokerBus
from controller.delivery.broker_settings import BrokerSettings
from controller.delivery.bus import BusFault, Message
from controller.delivery.centre import Acknowledgement
from controller.delivery.publisher import Publisher
from tests.controller.mirror.casino import CENTRE, Table

PATIENCE_S = 60.0

MOSQUITTO = """\
listener {port} 127.0.0.1
allow_anonymous true
set_tcp_nodelay true
max_inflight_messages 500
max_queued_messages 10000
persistence false
log_dest stderr
log_type error
log_type information
connection_messages false
"""


class Broker:
    """A mosquitto that says little, so that nobody has to read much."""

    def __init__(self, program: str, folder: Path, port: int) -> None:
        self._program = program
        self._configuration = folder / "mosquitto.conf"
        self._configuration.write_text(MOSQUITTO.format(port=port))
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        command = (self._program, "-c", str(self._configuration))
        self._process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        assert self._process.stderr is not None
        said = b""
        async with asyncio.timeout(PATIENCE_S):
            while b" running\n" not in said:
                line = await self._process.stderr.readline()
                assert line, said.decode()
                said += line

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.communicate()


class Signs:
    """Something happened, to whichever: all who wait look again."""

    _waiting: ClassVar[set[asyncio.Event]] = set()

    def stir(self) -> None:
        for event in self._waiting:
            event.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not condition():
                    event.clear()
                    await event.wait()
        finally:
            self._waiting.remove(event)


class Delivery(Signs):
    """A table's outgoing side: the product's publisher, reading ``table``."""

    def __init__(self, table: Table, port: int, mirror: Signer = CENTRE, name: str = "") -> None:
        self.table = table
        self.acks: list[Acknowledgement] = []
        self.faults: list[BusFault] = []
        settings = BrokerSettings(
            host="127.0.0.1",
            port=port,
            client_id=name or table.topics.table,
            retry_first_s=0.02,
            retry_last_s=0.1,
        )
        self.bus = BrokerBus(settings, random=lambda: 0.5, on_fault=self._on_fault)
        self.publisher = Publisher(
            reader=self,
            bus=self.bus,
            topics=table.topics,
            own=table.keys,
            mirror=mirror.verifier,
            witnesses={},
            cursor=0,
            save_cursor=lambda name, size: None,
            keep_acknowledgement=self._keep,
            on_fault=self._on_fault,
        )
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self.bus.run()), loop.create_task(self.publisher.run())]

    @property
    def size(self) -> int:
        return len(self.table.all)

    def leaves(self, start: int, stop: int) -> Iterable[bytes]:
        return self.table.all[start:stop]

    def checkpoint(self) -> str:
        return self.table.note()

    def root(self, size: int) -> bytes:
        return self.table.root(size)

    def certify(self, count: int) -> None:
        self.table.grow(count)
        self.publisher.certified(self.size)

    @property
    def acknowledged(self) -> int:
        return max((ack.size for ack in self.acks), default=0)

    def _keep(self, ack: Acknowledgement) -> None:
        assert self.root(ack.size) == ack.root
        self.acks.append(ack)
        self.stir()

    def _on_fault(self, fault: BusFault) -> None:
        self.faults.append(fault)
        self.stir()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)


class Listening(Signs):
    """A client that hears ``filters`` and publishes what a test says."""

    def __init__(self, port: int, filters: Sequence[str], name: str) -> None:
        self.messages: list[Message] = []
        settings = BrokerSettings(host="127.0.0.1", port=port, client_id=name, retry_first_s=0.02, retry_last_s=0.1)
        self.bus = BrokerBus(settings, random=lambda: 0.5, on_fault=lambda fault: None)
        self.bus.attach(self, filters)
        self._task = asyncio.get_running_loop().create_task(self.bus.run())

    def on_message(self, message: Message) -> None:
        self.messages.append(message)
        self.stir()

    def on_connected(self) -> None:
        self.stir()

    def on_disconnected(self) -> None:
        self.stir()

    async def connected(self) -> "Listening":
        await self.until(lambda: self.bus.connected)
        return self

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


class MirrorProcess(Signs):
    """``tablectl mirror run``, which may be killed and started again."""

    def __init__(self, config: Path) -> None:
        self.config = config
        self.codes: list[str] = []
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> "MirrorProcess":
        command = (sys.executable, "-m", "controller.cli", "mirror", "run", "--config", str(self.config))
        pipe = asyncio.subprocess.PIPE
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        self._process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=environment)
        begun = asyncio.Event()
        self._reading = asyncio.get_running_loop().create_task(self._read(self._process, begun))
        async with asyncio.timeout(PATIENCE_S):
            await begun.wait()
        return self

    async def _read(self, process: asyncio.subprocess.Process, begun: asyncio.Event) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            event = json.loads(line)["event"] if line.startswith(b"{") else line.decode()
            self.codes.append(event)
            if event == "starting":
                begun.set()
            self.stir()
        begun.set()

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._gone()

    async def stop(self) -> int:
        """Ask it to stop; its exit code."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.terminate()
        return await self._gone()

    async def _gone(self) -> int:
        assert self._process is not None
        assert self._reading is not None
        async with asyncio.timeout(PATIENCE_S):
            await self._reading
            return await self._process.wait()
