"""The driver of a SlingShot 2 wheel: keeps its port open, feeds the decoder, and gives the orders.

    run:  open ─► read when readable, tick every half period ─► the port vanishes ─► LinkLost, close, wait, open …
    ask:  command ─► the reply with its letter, whatever comes between ─► CommandResult     (slingshot_commands)

What an order achieved is seen on the status lines, never inferred from its reply.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from drivers.clock import Clock
from drivers.ports import ByteLine, DeviceFault
from drivers.slingshot import LineCounters, SlingshotDecoder, WheelSettings
from drivers.slingshot_checks import Check, checks
from drivers.slingshot_commands import COMMAND_TIMEOUT_MS, WORDS, CommandResult, Conversation, Outcome, Question
from games.rules import Input
from games.signals import Direction, WheelVerified

SELF_TEST_TIMEOUT_MS = 310_000
"""The maker's test lasts up to 5 minutes."""

SELF_TEST_QUIET_MS = 10_000
"""After a fault code the test may tell another one; after so long without, it told all."""

REOPEN_FIRST_MS = 250
REOPEN_LAST_MS = 2_000
"""A port that can't be opened is tried again after this long, doubling from the first to the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTestReport:
    """What the wheel's own test found: codes other than 0 are faults (guide V2.10, self-test codes)."""

    result: CommandResult
    codes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelHealth:
    """The wheel's link as a technician sees it. ``fault`` is why the port is not open, empty when it is."""

    port_is_open: bool
    link_is_up: bool
    fault: str
    firmware: str
    last_line_age_ms: int | None
    opened: int
    unasked_replies: int
    counters: LineCounters
    last_command: CommandResult | None


class SlingshotWheel:
    """One wheel. ``open_line`` opens its port anew at each call; ``emit`` takes the observations in order."""

    def __init__(
        self, open_line: Callable[[], ByteLine], clock: Clock, emit: Callable[[Input], None], settings: WheelSettings
    ) -> None:
        self._open_line = open_line
        self._clock = clock
        self._emit = emit
        self._settings = settings
        self._decoder = SlingshotDecoder(settings)
        self._conversation = Conversation(self._send, clock)
        self._line: ByteLine | None = None
        self._self_test_runs = False
        self._fault = ""
        self._firmware = ""
        self._opened = 0

    async def run(self) -> None:
        """Keep the port open until cancelled."""
        wait_ms = REOPEN_FIRST_MS
        try:
            while True:
                if self._open():
                    wait_ms = REOPEN_FIRST_MS
                    await self._tick_while_open()
                await asyncio.sleep(wait_ms / 1_000)
                wait_ms = min(2 * wait_ms, REOPEN_LAST_MS)
        finally:
            self._close("the driver ended")

    async def start(self, direction: Direction | None = None) -> CommandResult:
        """Start a game. Only a wheel with direction control can be told which way; another alternates by itself
        (mode bit 1), and the spin's direction is then known from BallLaunched."""
        if direction is None or not self._settings.direction_control:
            return await self._order("*K", "K")
        return await self._order("*u 1" if direction is Direction.CLOCKWISE else "*u 3", "u")

    async def stop(self) -> CommandResult:
        """Switch the wheel off: state 6, which is then no fault. A wheel that is off already says NO."""
        self._decoder.ask_stop(True)
        result = await self._order("*P 0", "P", already_so="NO")
        self._decoder.ask_stop(result.outcome is Outcome.DONE)
        return result

    async def power_on(self) -> CommandResult:
        """Switch the wheel on: state 1. A wheel that is on already says NO."""
        result = await self._order("*P 1", "P", already_so="NO")
        if result.outcome is Outcome.DONE:
            self._decoder.ask_stop(False)
        return result

    async def reset(self) -> CommandResult:
        """Back to state 1: the wheel's acknowledgement of a void spin."""
        return await self._order("*R", "R")

    async def self_test(self) -> SelfTestReport:
        """Run the wheel's own test, up to 5 minutes and only while it is idle. Its faults are emitted as they come."""
        command, codes = "*F", list[int]()
        if refusal := self._refusal(command):
            return SelfTestReport(result=refusal)
        self._self_test_runs = True
        try:
            async with self._conversation.ask(command, lambda reply: reply.letter == "F") as question:
                result = await self._collect_codes(question, codes)
        finally:
            self._self_test_runs = False
        return SelfTestReport(result=self._conversation.remember(result), codes=tuple(codes))

    async def verify(self) -> WheelVerified:
        """Read back everything that is registered and emit what differs. A difference is asked twice before it is
        told, because no checksum protects an answer; a question without an answer is a difference."""
        if not self._settings.commands:
            heard, period_ms = self._decoder.link_is_up, self._settings.status_period_ms
            difference = f"link: is silent, must be a status line every {period_ms} ms"
            return self._verified({"pockets": str(self._settings.pockets)}, [] if heard else [difference])
        values, differences = dict[str, str](), list[str]()
        for check in checks(self._settings):
            answer = await self._check(check)
            if isinstance(answer, CommandResult):
                differences.append(check.unanswered(answer.text))
                if answer.outcome is Outcome.ABSENT or check.name == "firmware":
                    break  # a wheel that does not even say who it is will not say more
                continue
            values[check.name] = check.read(answer) or ""
            differences += check.differences(answer)
        self._firmware = values.get("firmware", "")
        return self._verified(values, differences)

    def health(self) -> WheelHealth:
        """The link's state now."""
        last_us = self._decoder.last_line_us
        return WheelHealth(
            port_is_open=self._line is not None,
            link_is_up=self._decoder.link_is_up,
            fault=self._fault,
            firmware=self._firmware,
            last_line_age_ms=None if last_us is None else (self._clock.mono_us() - last_us) // 1_000,
            opened=self._opened,
            unasked_replies=self._conversation.unasked,
            counters=self._decoder.counters,
            last_command=self._conversation.last,
        )

    # ── The port ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self) -> bool:
        try:
            line = self._open_line()
        except DeviceFault as fault:
            self._lose(fault)
            return False
        self._line, self._fault = line, ""
        self._opened += 1
        line.on_readable(self._read)
        return True

    async def _tick_while_open(self) -> None:
        while self._line is not None:
            self._tell(self._decoder.tick(self._clock.mono_us()))
            await asyncio.sleep(self._settings.status_period_ms / 2_000)

    def _read(self) -> None:
        if self._line is None:
            return
        try:
            data = self._line.read()
        except DeviceFault as fault:
            self._lose(fault)
            return
        self._tell(self._decoder.feed(data, self._clock.mono_us()))
        for reply in self._decoder.take_replies():
            self._conversation.deliver(reply)

    def _send(self, command: str) -> None:
        if self._line is None:
            self._conversation.hang_up(self._fault or "the port is not open")
            return
        try:
            self._line.write(command.encode("ascii") + b"\r\n")
        except DeviceFault as fault:
            self._lose(fault)

    def _lose(self, fault: DeviceFault) -> None:
        """The port is gone: it is closed before anything waits for its return, or it comes back under another name."""
        self._fault = str(fault)
        self._close(self._fault)
        self._tell(self._decoder.unplugged(self._clock.mono_us()))

    def _close(self, why: str) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()
        self._conversation.hang_up(why)

    def _tell(self, signals: list[Input]) -> None:
        for signal in signals:
            self._emit(signal)

    # ── Orders and questions ──────────────────────────────────────────────────────────────────────────────────────────

    def _refusal(self, command: str) -> CommandResult | None:
        """Why a command is not even sent."""
        if not self._settings.commands:
            refusal = CommandResult(command=command, outcome=Outcome.LISTEN_ONLY, text="the wheel takes no commands")
        elif self._self_test_runs:
            refusal = CommandResult(command=command, outcome=Outcome.BUSY, text="a self-test runs")
        else:
            return None
        return self._conversation.remember(refusal)

    async def _order(self, command: str, letter: str, already_so: str = "") -> CommandResult:
        return self._refusal(command) or await self._conversation.order(command, letter, already_so)

    async def _check(self, check: Check) -> str | CommandResult:
        """The text that answers a question: the second one when the first differs from what is registered."""
        answer: str | CommandResult = ""
        for _ in range(2):
            if refusal := self._refusal(check.command):
                return refusal
            async with self._conversation.ask(check.command, lambda reply: check.text(reply) is not None) as question:
                reply = await question.answer(COMMAND_TIMEOUT_MS)
            if isinstance(reply, CommandResult):
                answer = self._conversation.remember(reply)
            else:
                answer = check.text(reply) or ""
                if not check.differences(answer):
                    break
        return answer

    async def _collect_codes(self, question: Question, codes: list[int]) -> CommandResult:
        """Codes until 0, or until no other one comes; ``codes`` holds them whatever the result is."""
        deadline_us = self._clock.mono_us() + SELF_TEST_TIMEOUT_MS * 1_000
        done = CommandResult(command=question.command, outcome=Outcome.DONE)
        while 0 not in codes:
            left_ms = (deadline_us - self._clock.mono_us()) // 1_000
            reply = await question.answer(min(left_ms, SELF_TEST_QUIET_MS) if codes else left_ms)
            if isinstance(reply, CommandResult):
                return done if codes and reply.outcome is Outcome.SILENT else reply
            if not reply.text.isdecimal():
                outcome = WORDS.get(reply.text, Outcome.UNKNOWN)
                return CommandResult(command=question.command, outcome=outcome, text=reply.text)
            codes.append(int(reply.text))
        return done

    def _verified(self, values: dict[str, str], differences: list[str]) -> WheelVerified:
        verified = WheelVerified(
            at_us=self._clock.mono_us(),
            firmware=values.get("firmware", ""),
            pockets=int(values.get("pockets") or 0),
            mode=int(values.get("mode") or 0),
            differences=tuple(differences),
        )
        self._emit(verified)
        return verified
