"""The status of a running daemon, told over a local socket: one JSON line asked, one JSON line answered.

    {"ask":"status"}      ──► everything that the daemon knows of itself, as one immutable snapshot
    {"ask":"self-test"}   ──► the wheel's own test; refused while a séance is open

State is shown, not dug out: ``tablectl`` reads this and the journal, and nothing else. Nothing here can move money.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

QUESTION_BOUND = 1_024
"""Bytes of a question."""

CALLERS_BOUND = 16
"""Callers at one time."""

Answer = Callable[[], Awaitable[Mapping[str, Any]]]


class StatusServer:
    """``async with StatusServer(path, {"status": …}):`` answers questions until it is left."""

    def __init__(self, path: Path, answers: Mapping[str, Answer]) -> None:
        self._path = path
        self._answers = answers
        self._server: asyncio.Server | None = None
        self._callers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Listen. A socket left by a daemon that was killed is replaced; the group may connect."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._server = await asyncio.start_unix_server(self._welcome, self._path, limit=QUESTION_BOUND)
        self._path.chmod(0o660)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up on every caller and remove the socket."""
        if self._server is not None:
            self._server.close()
        for caller in self._callers:
            caller.cancel()
        await asyncio.gather(*self._callers, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        self._path.unlink(missing_ok=True)

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._callers.add(caller)
        caller.add_done_callback(self._callers.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._callers) > CALLERS_BOUND:
                writer.write(_line({"code": "E-STATUS-BUSY", "message": f"{CALLERS_BOUND} callers already ask"}))
                return
            while question := await reader.readuntil(b"\n"):
                writer.write(_line(await self._answer(question)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # the caller hung up: nothing is owed to it
        except asyncio.LimitOverrunError:
            writer.write(_line({"code": "E-STATUS-QUESTION", "message": f"at most {QUESTION_BOUND} bytes"}))
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, question: bytes) -> Mapping[str, Any]:
        try:
            asked = json.loads(question)
            answer = self._answers[asked["ask"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            permitted = ", ".join(f'{{"ask":"{name}"}}' for name in self._answers)
            return {"code": "E-STATUS-QUESTION", "message": f"asked {question[:80]!r}; permitted: {permitted}"}
        return await answer()


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


async def ask(path: Path, question: str, timeout_s: float = 5.0) -> dict[str, Any]:
    """Ask a running daemon. Raises OSError when none listens there, TimeoutError when it does not answer."""
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_unix_connection(path, limit=16 * 1024 * 1024)
        try:
            writer.write(_line({"ask": question}))
            line = await reader.readline()
            if not line.endswith(b"\n"):
                raise ConnectionResetError(f"the daemon at {path} hung up")
            answer: dict[str, Any] = json.loads(line)
            return answer
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
