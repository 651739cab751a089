"""The serial line on a real pseudo-terminal: bytes pass unchanged, and every way to lose the line has its code."""

import asyncio
import errno
import os
import random
import select
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import serial

from drivers import serial_line
from drivers.ports import DeviceFault
from drivers.serial_line import SerialLine
from drivers.slingshot import SlingshotDecoder, WheelSettings
from drivers.twin.wheel import TwinSettings, WheelTwin
from games.rules import Input
from tests.drivers.slingshot_stage import START_US, names

ALL_BYTES = bytes(range(256))
PATIENCE_S = 10


class Far:
    """The far end of a serial cable: the master of a pseudo-terminal. ``unplug`` pulls it out."""

    def __init__(self) -> None:
        self.master, slave = os.openpty()
        self.path = os.ttyname(slave)
        # Nobody holds the near end here, as nobody but the driver holds a real port.
        os.close(slave)

    def write(self, data: bytes) -> None:
        assert os.write(self.master, data) == len(data)

    def unplug(self) -> None:
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


@pytest.fixture
def far() -> Iterator[Far]:
    end = Far()
    yield end
    end.unplug()


@pytest.fixture
def line(far: Far) -> Iterator[SerialLine]:
    near = SerialLine(far.path)
    yield near
    near.close()


def wait_readable(descriptor: int) -> None:
    ready, _, _ = select.select([descriptor], [], [], PATIENCE_S)
    assert ready, "nothing came"


def read_all(line: SerialLine, size: int) -> bytes:
    data = b""
    while len(data) < size:
        wait_readable(line._descriptor)
        data += line.read()
    return data


def wait_closed() -> None:
    """Until the threads that close lines are done."""
    for thread in threading.enumerate():
        if thread.name == "serial-close":
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def code_of(call: Any, *arguments: Any) -> str:
    with pytest.raises(DeviceFault) as caught:
        call(*arguments)
    return caught.value.code


def test_line_with_nothing_to_read_gives_no_bytes_and_does_not_wait(line: SerialLine) -> None:
    assert line.read() == b""


def test_bytes_of_every_value_pass_unchanged_both_ways(far: Far, line: SerialLine) -> None:
    far.write(ALL_BYTES)
    assert read_all(line, 256) == ALL_BYTES
    line.write(ALL_BYTES)
    received = b""
    while len(received) < 256:
        wait_readable(far.master)
        received += os.read(far.master, 4_096)
    assert received == ALL_BYTES


def test_line_is_set_to_9600_baud_8n1_without_flow_control(line: SerialLine) -> None:
    iflag, oflag, cflag, lflag, ispeed, ospeed, _ = termios.tcgetattr(line._descriptor)
    assert (ispeed, ospeed) == (termios.B9600, termios.B9600)
    assert cflag & termios.CSIZE == termios.CS8
    assert not cflag & (termios.PARENB | termios.CSTOPB | termios.CRTSCTS)
    assert not iflag & (termios.IXON | termios.IXOFF | termios.ICRNL)
    assert not lflag & (termios.ECHO | termios.ICANON)
    assert not oflag & termios.OPOST


async def test_reader_is_called_by_the_loop_when_bytes_come(far: Far, line: SerialLine) -> None:
    arrived: asyncio.Queue[bytes] = asyncio.Queue()
    line.on_readable(lambda: arrived.put_nowait(line.read()))
    far.write(b"27\r\n")
    async with asyncio.timeout(PATIENCE_S):
        assert await arrived.get() == b"27\r\n"


async def test_reader_that_was_taken_off_is_not_called(far: Far, line: SerialLine) -> None:
    called: list[str] = []
    other = asyncio.Event()
    line.on_readable(lambda: called.append("first"))
    line.on_readable(None)
    far.write(b"27\r\n")
    wait_readable(line._descriptor)
    line.on_readable(other.set)
    async with asyncio.timeout(PATIENCE_S):
        await other.wait()
    assert called == []


async def test_reader_of_an_unplugged_line_is_called_and_finds_the_line_lost(far: Far, line: SerialLine) -> None:
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def read() -> None:
        line.on_readable(None)
        found.set_result(code_of(line.read))

    line.on_readable(read)
    far.unplug()
    async with asyncio.timeout(PATIENCE_S):
        assert await found == "E-SERIAL-LOST"


def test_unplugged_line_fails_reads_and_writes_and_still_closes(far: Far, line: SerialLine) -> None:
    far.unplug()
    assert code_of(line.read) == "E-SERIAL-LOST"
    assert code_of(line.write, b"*X\r\n") == "E-SERIAL-LOST"
    line.close()
    line.close()


def test_line_that_gives_no_byte_though_it_is_readable_is_lost(
    line: SerialLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serial_line.os, "read", lambda *_: b"")
    assert code_of(line.read) == "E-SERIAL-LOST"


def test_line_whose_far_end_takes_nothing_stalls_and_does_not_hang(line: SerialLine) -> None:
    def fill() -> None:
        for _ in range(10_000):
            line.write(b"*X\r\n" * 100)

    assert code_of(fill) == "E-SERIAL-STALLED"


def test_path_without_a_device_is_absent(tmp_path: Path) -> None:
    with pytest.raises(DeviceFault) as caught:
        SerialLine(str(tmp_path / "table-wheel"))
    assert (caught.value.code, caught.value.device) == ("E-SERIAL-ABSENT", str(tmp_path / "table-wheel"))
    assert caught.value.detail == os.strerror(errno.ENOENT), "the path is named once"


def test_file_that_is_no_serial_line_is_absent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert code_of(SerialLine, str(tmp_path / "file")) == "E-SERIAL-ABSENT"


def test_line_that_is_open_already_is_busy(far: Far, line: SerialLine) -> None:
    assert code_of(SerialLine, far.path) == "E-SERIAL-BUSY"
    line.close()
    wait_closed()
    SerialLine(far.path).close()


def test_line_closed_twice_closes_no_file_that_took_its_number(line: SerialLine) -> None:
    number = line._descriptor
    line.close()
    wait_closed()
    other = os.open(os.devnull, os.O_RDWR)
    if other != number:
        os.dup2(other, number)
        os.close(other)
    line.close()
    wait_closed()
    assert code_of(line.read) == "E-SERIAL-LOST"
    assert code_of(line.write, b"*X\r\n") == "E-SERIAL-LOST"
    os.close(number)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (serial.SerialException(errno.EACCES, "could not open port"), "E-SERIAL-DENIED"),
        (serial.SerialException(errno.EBUSY, "could not open port"), "E-SERIAL-BUSY"),
        (serial.SerialException(errno.ENXIO, "could not open port"), "E-SERIAL-ABSENT"),
        (serial.SerialException("Could not configure port"), "E-SERIAL-ABSENT"),
        (termios.error(errno.EIO, "Input/output error"), "E-SERIAL-ABSENT"),
    ],
)
def test_every_error_of_opening_has_a_code(error: Exception, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(serial, "Serial", fail)
    assert code_of(SerialLine, "wheel.tty") == code


@pytest.mark.parametrize("pockets", [37, 38])
def test_whole_spin_of_a_believable_wheel_over_a_real_terminal_is_decoded_as_it_happened(
    far: Far, line: SerialLine, pockets: int
) -> None:
    twin = WheelTwin(TwinSettings(pockets=pockets), random.Random(11), now_us=START_US)
    decoder = SlingshotDecoder(WheelSettings(pockets=pockets))
    told: list[Input] = []
    now_us = START_US

    def play(until_us: int) -> None:
        nonlocal now_us
        while now_us < until_us:
            now_us = min(until_us, twin.next_due_us())
            sent = twin.advance(now_us)
            if sent:
                far.write(sent)
                told.extend(decoder.feed(read_all(line, len(sent)), now_us))
            told.extend(decoder.tick(now_us))

    def command(text: bytes) -> None:
        line.write(text)
        wait_readable(far.master)
        twin.feed(os.read(far.master, 4_096), now_us)

    play(START_US + 5_000_000)
    command(b"*P 1\r\n")
    for nth in range(1, 4):
        command(b"*K\r\n")
        play(START_US + (5 + nth * 70) * 1_000_000)
    assert names(told) == ["LinkRestored", *["BallLaunched", "BallSlowed", "PocketDetected"] * 3]
    assert [signal.pocket for signal in told[3::3]] == [truth.pocket for truth in twin.truths]
    assert [signal.direction == "clockwise" for signal in told[1::3]] == [truth.clockwise for truth in twin.truths]
    assert (decoder.counters.rejected, decoder.counters.implausible, decoder.counters.strays) == (0, 0, 0)
