"""The conversation with a SlingShot 2 wheel: one command at a time, answered by letter, and never without an end.

A wheel may answer with another word than the guide prints, with BUSY, with NO, or not at all, and status lines fall
between a command and its answer (wheel notes, 2.3 items 6 and 8). So no command waits for "the next line", none waits
for ever, and none raises: each ends in a CommandResult.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum

from drivers.clock import Clock
from drivers.slingshot_lines import Reply

COMMAND_TIMEOUT_MS = 3_000
"""A wheel that plays may hold its line back for 2.4 s (99th percentile of the recorded intervals)."""

COMMAND_GAP_MS = 100
"""The least time between two commands (guide V2.10, ``*X``)."""

ANSWERS_BOUND = 32
"""Answers to one command that wait to be read. More than that is babble: it is counted as not asked for."""


class Outcome(StrEnum):
    """How a command ended."""

    DONE = "done"
    REFUSED = "refused"  # the wheel says NO, or CAM: it is idle
    BUSY = "busy"  # not in this state, or a self-test runs
    UNKNOWN = "unknown"  # a word that the guide does not know
    SILENT = "silent"  # no answer in time
    ABSENT = "absent"  # the port is not open, or vanished
    LISTEN_ONLY = "listen_only"  # this wheel takes no commands


CODES = {
    Outcome.DONE: "",
    Outcome.REFUSED: "E-WHEEL-REFUSED",
    Outcome.BUSY: "E-WHEEL-BUSY",
    Outcome.UNKNOWN: "E-WHEEL-ANSWER-UNKNOWN",
    Outcome.SILENT: "E-WHEEL-NO-ANSWER",
    Outcome.ABSENT: "E-WHEEL-ABSENT",
    Outcome.LISTEN_ONLY: "E-WHEEL-LISTEN-ONLY",
}
WORDS = {"OK": Outcome.DONE, "NO": Outcome.REFUSED, "BUSY": Outcome.BUSY, "CAM": Outcome.REFUSED}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What became of a command. ``text`` is what the wheel said, or why nothing was heard."""

    command: str
    outcome: Outcome
    text: str = ""

    @property
    def code(self) -> str:
        """The code of a command that was not done, empty otherwise."""
        return CODES[self.outcome]


class Question:
    """A command that was sent and may be answered, once or several times."""

    def __init__(self, command: str, answers: Callable[[Reply], bool]) -> None:
        self.command = command
        self._answers = answers
        self._replies: asyncio.Queue[Reply | str] = asyncio.Queue(ANSWERS_BOUND)

    def take(self, reply: Reply) -> bool:
        """Whether ``reply`` is an answer to this question; it then waits to be read."""
        if not self._answers(reply) or self._replies.full():
            return False
        self._replies.put_nowait(reply)
        return True

    def give_up(self, why: str) -> None:
        """Nobody will answer."""
        if not self._replies.full():
            self._replies.put_nowait(why)

    async def answer(self, timeout_ms: int) -> Reply | CommandResult:
        """The next answer, or how it ended without one."""
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                reply = await self._replies.get()
        except TimeoutError:
            return CommandResult(command=self.command, outcome=Outcome.SILENT, text=f"no answer in {timeout_ms} ms")
        if isinstance(reply, str):
            return CommandResult(command=self.command, outcome=Outcome.ABSENT, text=reply)
        return reply


class Conversation:
    """Whose turn it is. ``send`` writes one command; when it can't, it must call ``hang_up``."""

    def __init__(self, send: Callable[[str], None], clock: Clock) -> None:
        self.unasked = 0
        self.last: CommandResult | None = None
        self._send = send
        self._clock = clock
        self._turn = asyncio.Lock()
        self._open: Question | None = None
        self._next_us = 0

    @asynccontextmanager
    async def ask(self, command: str, answers: Callable[[Reply], bool]) -> AsyncIterator[Question]:
        """Send a command when it is its turn; within the block its answers may be read."""
        async with self._turn:
            await asyncio.sleep(max(0, self._next_us - self._clock.mono_us()) / 1_000_000)
            question = self._open = Question(command, answers)
            self._send(command)
            try:
                yield question
            finally:
                self._open = None
                self._next_us = self._clock.mono_us() + COMMAND_GAP_MS * 1_000

    async def order(self, command: str, letter: str, already_so: str = "") -> CommandResult:
        """A command that does something: its answer is one word. ``already_so`` is a word that is as good as OK."""
        async with self.ask(command, lambda reply: reply.letter == letter) as question:
            reply = await question.answer(COMMAND_TIMEOUT_MS)
        if isinstance(reply, CommandResult):
            return self.remember(reply)
        outcome = Outcome.DONE if reply.text == already_so else WORDS.get(reply.text, Outcome.UNKNOWN)
        return self.remember(CommandResult(command=command, outcome=outcome, text=reply.text))

    def deliver(self, reply: Reply) -> None:
        """A reply goes to the question that it answers. The rest was not asked: late, or said by the wheel itself."""
        if self._open is None or not self._open.take(reply):
            self.unasked += 1

    def hang_up(self, why: str) -> None:
        """The port vanished: who waits for an answer is told so."""
        if self._open is not None:
            self._open.give_up(why)

    def remember(self, result: CommandResult) -> CommandResult:
        """Keep a result for the technician's eyes."""
        self.last = result
        return result
