"""The status socket: answers a question with one line, and holds whoever asks wrongly, too much or for ever at bay."""

import asyncio
import json
import socket
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from controller.status import CALLERS_BOUND, QUESTION_BOUND, StatusServer, ask

PATIENCE_S = 15.0


class Answers:
    """What a daemon would answer; ``gate`` holds an answer back."""

    def __init__(self) -> None:
        self.asked = 0
        self.was_asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def status(self) -> Mapping[str, Any]:
        self.asked += 1
        self.was_asked.set()
        await self.gate.wait()
        return {"phase": "betting", "text": "Rien ne va plus — é", "asked": self.asked}


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
async def listening(tmp_path: Path, answers: Answers) -> AsyncIterator[Path]:
    path = tmp_path / "run" / "status.sock"
    async with StatusServer(path, {"status": answers.status}):
        yield path
    assert not path.exists()


class Caller:
    """A connection of one's own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, path: Path) -> "Caller":
        return cls(*await asyncio.open_unix_connection(path))

    async def says(self, data: bytes) -> dict[str, Any]:
        self.writer.write(data)
        return await self.hears()

    async def hears(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            found: dict[str, Any] = json.loads(await self.reader.readline())
        return found

    async def hangs_up(self) -> None:
        self.writer.close()
        async with asyncio.timeout(PATIENCE_S):
            await self.reader.read()


async def test_status_asked_is_answered_as_it_is(listening: Path) -> None:
    assert await ask(listening, "status") == {"phase": "betting", "text": "Rien ne va plus — é", "asked": 1}


async def test_status_caller_may_ask_again_on_the_same_connection(listening: Path) -> None:
    caller = await Caller.to(listening)
    assert [(await caller.says(b'{"ask":"status"}\n'))["asked"] for _ in range(3)] == [1, 2, 3]
    await caller.hangs_up()


@pytest.mark.parametrize(
    "question",
    [
        b"\n",
        b"status\n",
        b"{}\n",
        b'{"ask":"money"}\n',
        b'{"ask":["status"]}\n',
        b"[]\n",
        b"5\n",
        b"\xff\xfe\n",
        b"null\n",
    ],
)
def test_status_question_that_is_none_is_told_what_may_be_asked(tmp_path: Path, question: bytes) -> None:
    async def story() -> dict[str, Any]:
        answers = Answers()
        async with StatusServer(tmp_path / "s", {"status": answers.status}):
            caller = await Caller.to(tmp_path / "s")
            said = await caller.says(question)
            assert (await caller.says(b'{"ask":"status"}\n'))["asked"] == 1, "the next question is answered"
            await caller.hangs_up()
            return said

    said = asyncio.run(story())
    assert said["code"] == "E-STATUS-QUESTION"
    assert '{"ask":"status"}' in said["message"]


async def test_status_question_longer_than_its_bound_is_told_so_and_hung_up_on(
    listening: Path, answers: Answers
) -> None:
    caller = await Caller.to(listening)
    said = await caller.says(b"x" * (4 * QUESTION_BOUND))
    assert said == {"code": "E-STATUS-QUESTION", "message": f"at most {QUESTION_BOUND} bytes"}
    assert answers.asked == 0
    caller.writer.close()


async def test_status_one_caller_too_many_is_told_so_and_there_is_room_when_one_leaves(
    listening: Path, answers: Answers
) -> None:
    callers = [await Caller.to(listening) for _ in range(CALLERS_BOUND)]
    for caller in callers:
        await caller.says(b'{"ask":"status"}\n')
    late = await Caller.to(listening)
    assert (await late.hears())["code"] == "E-STATUS-BUSY"
    await late.hangs_up()
    await callers[0].hangs_up()
    assert (await ask(listening, "status"))["asked"] == CALLERS_BOUND + 1
    for caller in callers[1:]:
        await caller.hangs_up()


async def test_status_caller_that_says_nothing_keeps_nobody_waiting(listening: Path) -> None:
    silent = await Caller.to(listening)
    assert (await ask(listening, "status"))["asked"] == 1
    await silent.hangs_up()


async def test_status_caller_that_hangs_up_in_the_middle_harms_nobody(listening: Path, answers: Answers) -> None:
    answers.gate.clear()
    caller = await Caller.to(listening)
    caller.writer.write(b'{"ask":"status"}\n{"ask"')
    caller.writer.close()
    answers.gate.set()
    assert (await ask(listening, "status"))["phase"] == "betting"


async def test_status_server_that_ends_hangs_up_and_the_caller_is_told(tmp_path: Path) -> None:
    answers = Answers()
    answers.gate.clear()
    server = StatusServer(tmp_path / "s", {"status": answers.status})
    async with server:
        asking = asyncio.create_task(ask(tmp_path / "s", "status"))
        async with asyncio.timeout(PATIENCE_S):
            await answers.was_asked.wait()
    with pytest.raises(ConnectionError):
        await asking


async def test_status_of_a_daemon_that_does_not_answer_times_out(listening: Path, answers: Answers) -> None:
    answers.gate.clear()
    with pytest.raises(TimeoutError):
        await ask(listening, "status", timeout_s=0.01)
    answers.gate.set()


async def test_status_where_nobody_listens_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await ask(tmp_path / "status.sock", "status")


def test_status_socket_left_by_a_daemon_that_was_killed_is_replaced(tmp_path: Path) -> None:
    path, answers = tmp_path / "s", Answers()
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(path))
    assert path.is_socket()

    async def story() -> dict[str, Any]:
        async with StatusServer(path, {"status": answers.status}):
            return await ask(path, "status")

    assert asyncio.run(story())["asked"] == 1


def test_status_socket_is_for_its_owner_and_group_only(tmp_path: Path) -> None:
    async def story() -> int:
        async with StatusServer(tmp_path / "s", {}):
            return await asyncio.to_thread(lambda: stat.S_IMODE((tmp_path / "s").stat().st_mode))

    assert asyncio.run(story()) == 0o660
