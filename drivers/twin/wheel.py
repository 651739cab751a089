"""A simulated SlingShot 2: it speaks the protocol byte for byte, keeps a real wheel's time, and fails when told to.

    commands ─► feed ─┐                                        ┌─► advance ─► bytes
                      ├─ script of stretches (wheel_spin) ─────┤
    spin() (croupier)─┘  memory (wheel_memory), faults         └─► next_due_us: when something happens again

It has no clock: whoever holds it says what time it is. The bytes depend on the seed and on the instants of the
commands, never on how often it is asked. It shares no code with the decoder, so that both can't be wrong alike.

``python -m drivers.twin.wheel --link wheel.tty`` puts it on a pseudo-terminal (wheel_terminal).
"""

import heapq
import random
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from drivers.twin.wheel_faults import DAMAGING, STRIKING, Fault, FaultKind, FaultPlan, damage
from drivers.twin.wheel_memory import WheelMemory
from drivers.twin.wheel_spin import Rotor, Stretch, plan_spin

BEFORE_GAME, PLACE_BETS, LANDED, IDLE, NOT_IN_TRACK = 1, 2, 5, 6, 7
REVERSE, WAIT_FOR_START, NO_BARE_NUMBER, AUTO_STATUS, TEST_IN_PLAY, PASS_STATE_1 = 1, 2, 16, 128, 256, 1_024

STATUS_SECONDS, REPLY_SECONDS, BOOT_SECONDS, PAUSE_SECONDS, TEST_SECONDS = 0.5, 0.06, 3, 5, 2
"""Wheel time between status lines, to a reply, from power to the first line, in state 1 unasked, and of a test."""

COMMAND_BOUND = 256
"""Bytes of a command that is not ended yet; older ones are dropped."""

HELD_BOUND = 65_536
"""Bytes that a burst holds back; what comes after is lost, as in a full buffer."""

HISTORY_BOUND = 1_024
"""Spins whose truth is kept."""

_NEVER = 1 << 62
"""An instant that does not come: the end of a stretch that somebody else must end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinSettings:
    """Which wheel it is. ``speed`` is how many times faster than a real one; ``stored`` are its parameters (``*T``)."""

    pockets: int = 37
    speed: float = 1.0
    mode: int = 1_159
    firmware: str = "V2.52"
    croupier: bool = False
    stored: Mapping[str, str] = field(default_factory=dict)
    self_test: tuple[int, ...] = (0,)

    @property
    def status_period_ms(self) -> int:
        """The interval of its status lines."""
        return max(1, round(STATUS_SECONDS * 1_000 / self.speed))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpinTruth:
    """What really happened in a spin: the wheel's number for it, where the ball fell (None: nowhere), the direction."""

    count: int
    spin: int
    pocket: str | None
    clockwise: bool
    faults: tuple[FaultKind, ...]


@dataclass(slots=True)
class Quiet:
    """A time in which nothing reaches the listener."""

    fault: FaultKind
    until_us: int
    held: bytearray = field(default_factory=bytearray)


class WheelTwin:
    """One simulated wheel. Instants must not go backwards; ``pockets`` scripts the first numbers."""

    def __init__(
        self,
        settings: TwinSettings,
        rng: random.Random,
        *,
        faults: FaultPlan | None = None,
        pockets: Iterable[str] = (),
        now_us: int = 0,
    ) -> None:
        self.settings = settings
        self.truths: deque[SpinTruth] = deque(maxlen=HISTORY_BOUND)
        stored = {"z": str(settings.pockets), **settings.stored}
        self.memory = WheelMemory(firmware=settings.firmware, mode=settings.mode, stored=stored)
        self._rng = rng
        self._plan = faults or FaultPlan()
        self._scripted = deque(pockets)
        self._names = [str(number) for number in range(37)] + (["00"] if settings.pockets == 38 else [])
        self._outbox: list[tuple[int, int, bytes]] = []
        self._sent = bytearray()
        self._typed = b""
        self._written = 0
        self._count = 0
        self._faults: tuple[Fault, ...] = ()
        self._pocket = ""
        self._is_playing = False
        self._number, self._spin, self._has_played = "  ", 1, False
        self._script = deque[Stretch]()
        self._since_us, self._until_us = now_us, _NEVER
        self._quiet: Quiet | None = None
        self._clockwise = rng.random() < 0.5
        self._stretch = _still(IDLE, clockwise=self._clockwise)
        self._booted_us = self._status_us = now_us
        self._power_on(now_us)

    # ── The outside ───────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def plugged(self) -> bool:
        """Whether the adapter is plugged in."""
        return self._quiet is None or self._quiet.fault is not FaultKind.UNPLUG

    @property
    def state(self) -> int:
        """Field S."""
        return self._stretch.state

    def feed(self, data: bytes, now_us: int) -> None:
        """Bytes from the listener. A croupier's wheel takes no commands; nor does one that starts up."""
        self._run_to(now_us)
        *commands, rest = re.split(rb"[\r\n]", self._typed + data)
        self._typed = rest[-COMMAND_BOUND:]
        if self.settings.croupier or not self.plugged or now_us < self._booted_us:
            return
        for command in commands:
            if command.startswith(b"*") and len(command) > 1:
                text = command.decode("latin-1")
                self._command(text[1], text[2:].split(), now_us)

    def advance(self, now_us: int) -> bytes:
        """Everything that was sent since the last call, up to and including ``now_us``."""
        self._run_to(now_us)
        sent, self._sent = bytes(self._sent), bytearray()
        return sent

    def next_due_us(self) -> int:
        """When something happens next: call ``advance`` then, not before."""
        dues = [self._status_us, self._until_us]
        if self._outbox:
            dues.append(self._outbox[0][0])
        if self._quiet is not None:
            dues.append(self._quiet.until_us)
        return min(dues)

    def spin(self, now_us: int) -> bool:
        """The croupier reverses the rotor and launches the ball; False while the last spin is not over."""
        self._run_to(now_us)
        if self.state != BEFORE_GAME:
            return False
        self._begin_spin(now_us)
        return True

    def power_cycle(self, now_us: int) -> None:
        """Switch the mains off and on."""
        self._run_to(now_us)
        self._power_on(now_us)

    # ── The course of events ──────────────────────────────────────────────────────────────────────────────────────────

    def _wheel_us(self, seconds: float) -> int:
        return round(seconds * 1_000_000 / self.settings.speed)

    def _run_to(self, now_us: int) -> None:
        while (due_us := self.next_due_us()) <= now_us:
            self._happen(due_us)

    def _happen(self, at_us: int) -> None:
        if self._quiet is not None and self._quiet.until_us <= at_us:
            self._sent += self._quiet.held
            self._quiet = None
        elif self._until_us <= at_us:
            self._go_on(at_us)
        elif self._outbox and self._outbox[0][0] <= at_us:
            self._send(heapq.heappop(self._outbox)[2], at_us)
        else:
            self._status_us += self._wheel_us(STATUS_SECONDS)
            if self.memory.mode & AUTO_STATUS and not self.memory.muted:
                self._send(self._status(at_us), at_us)

    def _power_on(self, at_us: int) -> None:
        """The mains come on: what was not saved is forgotten, and the wheel is silent while it starts up."""
        self.memory.power_cut()
        self._booted_us = self._status_us = at_us + self._wheel_us(BOOT_SECONDS)
        self._number, self._spin, self._has_played = "  ", 1, False
        self._outbox.clear()
        self._idle(at_us)
        if self.settings.croupier or not self._waits:
            self._rest(at_us)

    def _go_on(self, at_us: int) -> None:
        if self._script:
            self._enter(self._script.popleft(), at_us)
        elif self.state == LANDED and (self.memory.mode & PASS_STATE_1 or self._waits):
            self._rest(at_us)
        else:
            self._begin_spin(at_us)

    @property
    def _waits(self) -> bool:
        return self.settings.croupier or bool(self.memory.mode & WAIT_FOR_START)

    def _rest(self, at_us: int) -> None:
        """Back to state 1: whatever the rotor did, the motor holds it within its set range again."""
        speed = min(self._rpm(at_us), self.memory.rotor_range[1])
        seconds = None if self._waits else PAUSE_SECONDS
        rest = replace(_still(BEFORE_GAME, clockwise=self._clockwise), seconds=seconds, rotor=(speed, speed))
        self._script.clear()
        self._enter(rest, at_us)
        self._faults = ()

    def _idle(self, at_us: int) -> None:
        self._script.clear()
        self._enter(_still(IDLE, clockwise=self._clockwise), at_us)
        self._faults = ()

    def _begin_spin(self, at_us: int, clockwise: bool | None = None) -> None:
        self._count += 1
        self._faults = self._plan.of_spin(self._count, self._rng)
        kinds = {fault.kind for fault in self._faults}
        if clockwise is None:
            turns_over = self.memory.mode & REVERSE and FaultKind.SAME_DIRECTION not in kinds
            clockwise = not self._clockwise if turns_over else self._clockwise
        slowest, fastest = self.memory.rotor_range
        rotor = Rotor(
            clockwise=self._clockwise,
            rpm=self._rpm(at_us),
            slowest=slowest,
            fastest=fastest,
            change=self.memory.rotor_change,
        )
        script = plan_spin(self._rng, rotor, kinds, clockwise=clockwise, by_hand=self.settings.croupier)
        self._script = deque(script)
        self._clockwise = script[-1].clockwise
        self._pocket = self._scripted.popleft() if self._scripted else self._rng.choice(self._names)
        self._is_playing = True
        self.memory.misfires += FaultKind.MISFIRE in kinds
        self._enter(self._script.popleft(), at_us)

    def _note_truth(self, pocket: str | None) -> None:
        """The spin is over, with a number or without."""
        if self._is_playing:
            kinds = tuple(sorted({fault.kind for fault in self._faults}))
            truth = SpinTruth(
                count=self._count, spin=self._spin, pocket=pocket, clockwise=self._clockwise, faults=kinds
            )
            self.truths.append(truth)
            self._is_playing = False

    def _enter(self, stretch: Stretch, at_us: int) -> None:
        before, self._stretch = self._stretch.state, stretch
        self._since_us = at_us
        self._until_us = _NEVER if stretch.seconds is None else at_us + self._wheel_us(stretch.seconds)
        if before == stretch.state:
            return
        if stretch.state == PLACE_BETS and self._has_played:
            self._spin, self._has_played = self._spin % 256 + 1, False
        elif stretch.state == LANDED:
            self._land(at_us)
        elif stretch.state in (BEFORE_GAME, IDLE, NOT_IN_TRACK):
            self._note_truth(None)
        if stretch.state == IDLE and stretch.flags and self.memory.mode & TEST_IN_PLAY:
            self._write("*F 21", at_us)
        for fault in self._faults:
            if fault.kind in STRIKING and fault.state == stretch.state:
                self._strike(fault, at_us)

    def _land(self, at_us: int) -> None:
        """The ball rests: the bare number comes at once, before the first status line that shows it."""
        self._has_played = True
        self._note_truth(self._pocket)
        self._number = f"{self._pocket:>2}"
        self.memory.wins[self._pocket] = self.memory.wins.get(self._pocket, 0) + 1
        kinds = {fault.kind for fault in self._faults}
        if FaultKind.NO_NUMBER_LINE in kinds or self.memory.mode & NO_BARE_NUMBER:
            return
        others = [name for name in self._names if name != self._pocket]
        told = self._rng.choice(others) if FaultKind.CONTRADICTED in kinds else self._pocket
        self._write(f"{told:>2}", at_us)

    def _strike(self, fault: Fault, at_us: int) -> None:
        self._quiet = Quiet(fault.kind, at_us + fault.seconds * 1_000_000)
        if fault.kind is FaultKind.POWER_CYCLE:
            self._power_on(at_us)

    # ── Commands ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _command(self, letter: str, words: list[str], at_us: int) -> None:
        match letter, words:
            case "X", []:
                self._outbox_put(self._status(at_us), at_us + self._wheel_us(REPLY_SECONDS))
                return
            case "F", []:
                self._self_test(at_us)
                return
            case "P", ["0" | "1" as on]:
                reply = self._power(on == "1", at_us)
            case "u", ["1" | "3" as way]:
                reply = self._user_start(way, at_us)
            case "K", []:
                reply = self._code_or_start(at_us)
            case "R", []:
                reply = "*R NO" if self.state == IDLE else "*R OK"
                if self.state != IDLE:
                    self._rest(at_us)
            case _:
                reply = self.memory.answer(letter, words, self.state) or f"*{letter} NO"
        self._write(reply, at_us + self._wheel_us(REPLY_SECONDS))

    def _power(self, on: bool, at_us: int) -> str:
        if on is (self.state != IDLE):
            return "*P NO"
        if on:
            self._rest(at_us)
        else:
            self._idle(at_us)
        return "*P OK"

    def _user_start(self, way: str, at_us: int) -> str:
        has_control = self.memory.has_option(16)
        if self.state == IDLE or (way == "3" and not has_control):
            return "*u NO"
        if self.state != BEFORE_GAME:
            return "*u BUSY"
        self._begin_spin(at_us, clockwise=(way == "1") if has_control else None)
        return "*u OK"

    def _code_or_start(self, at_us: int) -> str:
        if self.state == IDLE:
            return "*K CAM"
        if self.state != BEFORE_GAME:
            return "*K BUSY"
        self._begin_spin(at_us)
        return "*K OK"

    def _self_test(self, at_us: int) -> None:
        if self.state != IDLE:
            self._write("*F BUSY", at_us + self._wheel_us(REPLY_SECONDS))
            return
        for nth, code in enumerate(self.settings.self_test, 1):
            self._write(f"*F {code}", at_us + self._wheel_us(nth * TEST_SECONDS))

    # ── Lines ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _rpm(self, at_us: int) -> float:
        first, last = self._stretch.rotor
        return first + (last - first) * (at_us - self._since_us) / (self._until_us - self._since_us)

    def _status(self, at_us: int) -> bytes:
        now, tenths = self._stretch, min(999, max(0, round(self._rpm(at_us) * 10)))
        fields = f"{now.state};{self._spin:03d};{self._number};{now.flags:X};{tenths:03d};{0 if now.clockwise else 1}"
        return f"*X;{fields}\r\n".encode("ascii")

    def _write(self, text: str, due_us: int) -> None:
        self._outbox_put(text.encode("latin-1") + b"\r\n", due_us)

    def _outbox_put(self, line: bytes, due_us: int) -> None:
        self._written += 1
        heapq.heappush(self._outbox, (due_us, self._written, line))

    def _send(self, line: bytes, at_us: int) -> None:
        for fault in self._faults:
            if fault.kind in DAMAGING and self._rng.random() < 1 / 3:
                line = damage(fault.kind, line, self._rng)
        if self._quiet is None:
            self._sent += line
        elif self._quiet.fault is FaultKind.BURST and len(self._quiet.held) + len(line) <= HELD_BOUND:
            self._quiet.held += line


def _still(state: int, *, clockwise: bool) -> Stretch:
    return Stretch(state=state, seconds=None, clockwise=clockwise, rotor=(0, 0))


if __name__ == "__main__":
    from drivers.twin.wheel_terminal import main

    raise SystemExit(main())
