"""The broker of one's own: it comes up on loopback, says why when it does not, and never outlives its program."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.delivery import embedded as embedded_module
from controller.delivery.bus import Message
from controller.delivery.embedded import BrokerAbsentError, Embedded

Make = Callable[..., Any]

HOLDER = """
import asyncio, pathlib, sys
from controller.delivery.embedded import Embedded

async def main():
    kind, port, folder, program = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
    made = Embedded.iotcore(port, folder) if kind == "iotcore" else Embedded.mosquitto(program, port, folder)
    async with made:
        print("up", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture(params=["iotcore", "mosquitto"])
def made(request: pytest.FixtureRequest, free_port: int, tmp_path: Path, program: Callable[[str], str]) -> Embedded:
    """An embedded broker that is not started yet, of either kind."""
    if request.param == "iotcore":
        pytest.importorskip("iotcore")
        return Embedded.iotcore(free_port, tmp_path)
    return Embedded.mosquitto(Path(program("mosquitto")), free_port, tmp_path)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def listening_addresses(port: int) -> set[str]:
    """The addresses on which somebody listens on ``port``, as the kernel writes them."""
    rows = Path("/proc/net/tcp").read_text().splitlines() + Path("/proc/net/tcp6").read_text().splitlines()
    listening = [row.split()[1].split(":") for row in rows if row.split()[3] == "0A"]
    return {address for address, number in listening if int(number, 16) == port}


async def test_embedded_broker_serves_inside_the_block_and_is_gone_after_it(made: Embedded, station: Make) -> None:
    async with made:
        table = await station(made.port, filters=["t"]).connected()
        await table.bus.publish(Message("t", b"x"))
        await table.ear.until(lambda: table.ear.payloads == [b"x"])
        await table.stop()
    assert not listens(made.port)
    async with made:  # the port is free again
        assert listens(made.port)


async def test_embedded_broker_listens_on_loopback_only(made: Embedded) -> None:
    async with made:
        assert listening_addresses(made.port) == {"0100007F"}  # 127.0.0.1


async def test_embedded_port_that_is_taken_is_named(made: Embedded) -> None:
    with socket.create_server(("127.0.0.1", made.port)), pytest.raises(BrokerAbsentError, match=str(made.port)) as told:
        await made.__aenter__()
    assert told.value.code == "E-BROKER-PORT"


async def test_embedded_broker_that_ends_at_once_is_told_with_what_it_said(free_port: int, tmp_path: Path) -> None:
    liar = tmp_path / "mosquitto"
    liar.write_text("#!/bin/sh\necho out of order\nexit 3\n")
    liar.chmod(0o755)
    with pytest.raises(BrokerAbsentError, match="ended with 3: out of order") as told:
        await Embedded.mosquitto(liar, free_port, tmp_path).__aenter__()
    assert told.value.code == "E-BROKER-START"


async def test_embedded_broker_that_never_listens_is_ended_and_told(
    free_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_module, "START_WITHIN_S", 0.3)
    idler = tmp_path / "mosquitto"
    idler.write_text("#!/bin/sh\nexec sleep 60\n")
    idler.chmod(0o755)
    made = Embedded.mosquitto(idler, free_port, tmp_path)
    with pytest.raises(BrokerAbsentError, match="did not listen") as told:
        await made.__aenter__()
    assert told.value.code == "E-BROKER-START"
    with pytest.raises(ProcessLookupError):  # the guard, which ends after the program that it started
        os.kill(made.pid, 0)


def test_embedded_mosquitto_that_is_not_there_is_absent(free_port: int, tmp_path: Path) -> None:
    with pytest.raises(BrokerAbsentError, match="not a program") as told:
        Embedded.mosquitto(tmp_path / "none", free_port, tmp_path)
    assert told.value.code == "E-BROKER-ABSENT"


def test_embedded_iotcore_that_is_not_installed_is_absent_and_says_how_to_get_it(
    free_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_module, "find_spec", lambda name: None)
    with pytest.raises(BrokerAbsentError, match=r"pip install 'table-controller\[demo\]'") as told:
        Embedded.iotcore(free_port, tmp_path)
    assert told.value.code == "E-BROKER-ABSENT"


@pytest.mark.parametrize("kind", ["iotcore", "mosquitto"])
async def test_embedded_broker_ends_when_its_program_is_killed(
    kind: str, free_port: int, tmp_path: Path, program: Callable[[str], str], root: Path
) -> None:
    mosquitto = program("mosquitto") if kind == "mosquitto" else "-"
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, kind, str(free_port), str(tmp_path), mosquitto),
        stdout=asyncio.subprocess.PIPE,
        cwd=root,
    )
    assert holder.stdout is not None
    async with asyncio.timeout(15):
        assert await holder.stdout.readline() == b"up\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", free_port)
        os.kill(holder.pid, 9)
        await holder.wait()
        with contextlib.suppress(ConnectionResetError):  # the broker ended, with or without a goodbye
            assert await reader.read() == b""
        writer.close()
        await holder.stdout.read()
