"""A broker of one's own, as a child process: for ``make run``, demonstrations and tests. A casino runs its own broker.

    this program ──starts──► guard (``python -m controller.delivery.embedded``) ──is, or starts──► the broker
                 ──its standard input──►     ends when the pipe closes, however this program ended

The default is iotcore, which pip installs; a mosquitto that is on the machine is used when it is named. Both listen on
loopback only, speak MQTT 5, and let anybody in: that is why they have no place in a casino.
"""

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

START_WITHIN_S = 10.0
"""Patience for the broker to accept connections."""

STOP_WITHIN_S = 5.0
"""Patience for it to end when asked; then it is killed."""

_LOOPBACK = "127.0.0.1"
_POLL_S = 0.02
_OUTPUT_SHOWN = 1_000

_IOTCORE = """\
id = 0

[router]
id = 0
max_connections = 1000
max_outgoing_packet_count = 200
max_segment_size = 104857600
max_segment_count = 10

[v5.1]
name = "v5"
listen = "{host}:{port}"
next_connection_delay_ms = 1

[v5.1.connections]
connection_timeout_ms = 5000
max_payload_size = 262144
max_inflight_count = 500
dynamic_filters = true
"""

_MOSQUITTO = """\
listener {port} {host}
allow_anonymous true
set_tcp_nodelay true
max_inflight_messages 500
max_queued_messages 10000
persistence false
"""


class BrokerAbsentError(Exception):
    """The broker cannot be started. ``code`` is explained by ``tablectl explain``."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code} {detail}")
        self.code = code
        self.detail = detail


class Embedded:
    """A broker for as long as the ``async with`` lasts. Raises BrokerAbsentError when it does not come up.

    Codes: E-BROKER-ABSENT, the program is not installed; E-BROKER-PORT, the port is taken; E-BROKER-START, it ended at
    once or never listened.
    """

    def __init__(self, kind: str, port: int, configuration: Path, program: str) -> None:
        self.host = _LOOPBACK
        self.port = port
        self._kind = kind
        self._configuration = configuration
        self._program = program
        self._log = configuration.with_suffix(".log")
        self._guard: asyncio.subprocess.Process | None = None

    @classmethod
    def iotcore(cls, port: int, folder: Path) -> Self:
        """rumqttd, by pip. Its configuration is written into ``folder``."""
        if find_spec("iotcore") is None:
            install = "pip install 'table-controller[demo]', or name a mosquitto"
            raise BrokerAbsentError("E-BROKER-ABSENT", f"the embedded broker is not installed: {install}")
        configuration = folder / "iotcore.toml"
        configuration.write_text(_IOTCORE.format(host=_LOOPBACK, port=port), encoding="utf-8")
        return cls("iotcore", port, configuration, "")

    @classmethod
    def mosquitto(cls, program: Path, port: int, folder: Path) -> Self:
        """The mosquitto at ``program``. Its configuration is written into ``folder``."""
        if not os.access(program, os.X_OK):
            raise BrokerAbsentError("E-BROKER-ABSENT", f"{program} is not a program that can be run")
        configuration = folder / "mosquitto.conf"
        configuration.write_text(_MOSQUITTO.format(host=_LOOPBACK, port=port), encoding="utf-8")
        return cls("mosquitto", port, configuration, str(program))

    async def __aenter__(self) -> Self:
        self._check_port()
        command = [sys.executable, "-m", __name__, self._kind, str(self._configuration), self._program]
        up = False
        with self._log.open("wb") as log:
            self._guard = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=log, stderr=asyncio.subprocess.STDOUT
            )
        try:
            async with asyncio.timeout(START_WITHIN_S):
                await self._until_listening(self._guard)
            up = True
        except TimeoutError:
            detail = f"{self._kind} did not listen on port {self.port} within {START_WITHIN_S:g} s"
            raise BrokerAbsentError("E-BROKER-START", detail) from None
        finally:
            if not up:
                await self._end(self._guard)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._guard is not None:
            await self._end(self._guard)

    @property
    def pid(self) -> int:
        """The process that ends when this program does: iotcore itself, or mosquitto's guard; 0 before the start."""
        return self._guard.pid if self._guard else 0

    def _check_port(self) -> None:
        try:
            socket.create_server((_LOOPBACK, self.port)).close()
        except OSError as error:
            detail = f"port {self.port} of {_LOOPBACK} cannot be used: {error.strerror}"
            raise BrokerAbsentError("E-BROKER-PORT", detail) from error

    async def _until_listening(self, guard: asyncio.subprocess.Process) -> None:
        while not await self._listens():
            if guard.returncode is not None:
                said = self._log.read_text(encoding="utf-8", errors="replace")[-_OUTPUT_SHOWN:].strip()
                raise BrokerAbsentError("E-BROKER-START", f"{self._kind} ended with {guard.returncode}: {said}")
            await asyncio.sleep(_POLL_S)

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(_LOOPBACK, self.port)
        except OSError:
            return False
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return True

    async def _end(self, guard: asyncio.subprocess.Process) -> None:
        if guard.stdin is not None:
            guard.stdin.close()
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await guard.wait()
        except TimeoutError:
            guard.kill()
            await guard.wait()


def guard(kind: str, configuration: str, program: str) -> int:
    """The child: be the broker, or start it, and end when standard input does. Returns its exit status."""
    if kind == "iotcore":
        from iotcore import IotCoreBroker  # an extra, which a table in service does not have

        logging.basicConfig(level=logging.CRITICAL)  # rumqttd reports every packet as an error
        _when_parent_ends(lambda: os._exit(0))
        IotCoreBroker(config_path=configuration).run_forever()
        return 1
    broker = subprocess.Popen([program, "-c", configuration], stdin=subprocess.DEVNULL)
    _when_parent_ends(lambda: _end_broker(broker))
    return broker.wait()


def _end_broker(broker: subprocess.Popen[bytes]) -> None:
    """Ask it to end; mosquitto overhears that in the first moment of its life."""
    broker.terminate()
    try:
        broker.wait(STOP_WITHIN_S / 2)
    except subprocess.TimeoutExpired:
        broker.kill()


def _when_parent_ends(end: Callable[[], None]) -> None:
    def watch() -> None:
        while os.read(0, 1):  # not sys.stdin, whose lock would be in the way at the interpreter's end
            continue
        end()

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    sys.exit(guard(*sys.argv[1:]))
