"""Standing conditions of the wheel: one alarm when it begins, one word when it is over, and for how long it stood.

A recorded wheel that failed five launches was logged as 194 warnings. Here a condition is

    absent ── seen on lines for its grace ──► standing (WheelFaultSeen) ── two periods without it ──► WheelFaultCleared

The maker tells when a flag counts (guide V2.10, exception rules): flag 8 not in the first 3 s of state 3, flag 1 in
state 4 only after 5 s or 10 lines. All graces are counted in periods of the status line (500 ms on a real wheel), so a
simulated wheel that runs faster is judged by the same rule. The least grace is one period, that is two lines: the
format has no checksum, and one wrong bit must not stop a table.
"""

from dataclasses import dataclass

from drivers.slingshot_lines import StatusLine, WheelFlag, WheelState
from games.rules import Input
from games.signals import WheelFaultCleared, WheelFaultKind, WheelFaultSeen

CONFIRM_PERIODS = 1
CLEAR_PERIODS = 2
BALL_MISSING_PERIODS = 10
RELAUNCH_PERIODS = 6
ROTOR_PERIODS = 4
"""The rotor may be out of its range for 2 s. Far out of it, above 1.5 times the range, one period is enough."""

RIM, SLOWED, BETS, IDLE = (
    WheelState.BALL_IN_RIM,
    WheelState.NO_MORE_BETS,
    WheelState.PLACE_BETS,
    WheelState.IDLE,
)

SELF_TEST_CODES = {
    0: "no fault",
    1: "hardware",
    2: "no ball",
    3: "no ball position",
    4: "ball direction",
    5: "motor",
    6: "encoder, or not calibrated",
    7: "cannot play clockwise",
    8: "cannot play anti-clockwise",
    11: "sensor 1 stuck on",
    12: "sensor 2 stuck on",
    13: "sensor 3 stuck on",
    21: "sensor 1 blind",
    22: "sensor 2 blind",
    23: "sensor 3 blind",
    100: "timed out",
}
"""What ``*F`` answers (guide V2.10, self-test codes)."""


@dataclass(slots=True)
class Condition:
    """A condition that was seen: since when, when last, and whether it was told."""

    since_us: int
    last_us: int
    told: bool = False


class FaultWatch:
    """Judges the flags, the state and the rotor of each status line."""

    def __init__(self, period_us: int, rotor_min_mrpm: int, rotor_max_mrpm: int) -> None:
        self._period_us = period_us
        self._rotor_min_mrpm = rotor_min_mrpm
        self._rotor_max_mrpm = rotor_max_mrpm
        self._standing: dict[WheelFaultKind, Condition] = {}
        self._state: WheelState | None = None
        self._state_since_us = 0
        self._has_run = False
        self._stop_was_asked = False
        self._codes: dict[int, int] = {}

    def ask_stop(self, asked: bool) -> None:
        """Whether somebody asked the wheel to be idle; an idle state that nobody asked for is a fault."""
        self._stop_was_asked = asked

    def line(self, line: StatusLine, at_us: int) -> list[Input]:
        """Judge one status line of a link that is up."""
        if line.state is not self._state:
            self._state, self._state_since_us = line.state, at_us
        self._has_run = self._has_run or line.state is not IDLE
        flags, kind = line.flags, WheelFaultKind
        in_flight = line.state in (RIM, SLOWED)
        in_play = in_flight or line.state is BETS
        lingering = line.state is RIM and at_us - self._state_since_us < RELAUNCH_PERIODS * self._period_us
        idle = line.state is IDLE and self._has_run and not self._stop_was_asked
        judged = (
            (kind.BALL_MISSING, WheelFlag.BALL_MISSING in flags and in_flight, BALL_MISSING_PERIODS),
            (kind.BALL_WITH_ROTOR, WheelFlag.BALL_WITH_ROTOR in flags and in_play, CONFIRM_PERIODS),
            (kind.SENSOR_FAULT, WheelFlag.DEVICE_FAULT in flags, CONFIRM_PERIODS),
            (kind.LAUNCH_FAILED, WheelFlag.LAUNCH_FAILED in flags and not lingering, CONFIRM_PERIODS),
            (kind.ROTOR_SPEED, self._rotor_is_out(line), self._rotor_grace(line)),
            (kind.BALL_NOT_IN_TRACK, line.state is WheelState.NOT_IN_TRACK, CONFIRM_PERIODS),
            (kind.STOPPED, idle, CONFIRM_PERIODS),
        )
        signals = list[Input]()
        for fault, present, periods in judged:
            if present:
                signals += self._present(fault, line, periods, at_us)
            elif fault in self._standing:
                signals += self._absent(fault, at_us)
        return signals

    def self_test(self, code: int, at_us: int) -> list[Input]:
        """A code of the wheel's own test, asked for or (mode bit 256) not; 0 says that nothing is wrong any more."""
        fault = WheelFaultKind.SELF_TEST
        if code in self._codes:
            return []
        if code:
            self._codes[code] = at_us
            detail = f"code {code}: {SELF_TEST_CODES.get(code, 'unknown')}"
            return [WheelFaultSeen(at_us=at_us, fault=fault, detail=detail)]
        if not self._codes:
            return []
        lasted_ms = (at_us - min(self._codes.values())) // 1_000
        self._codes.clear()
        return [WheelFaultCleared(at_us=at_us, fault=fault, lasted_ms=lasted_ms)]

    def _rotor_is_out(self, line: StatusLine) -> bool:
        """In state 2 the rotor brakes and turns over, so only in flight is its range judged; its excess always is."""
        in_range = self._rotor_min_mrpm <= line.rotor_mrpm <= self._rotor_max_mrpm
        return self._is_runaway(line) or (line.state in (RIM, SLOWED) and not in_range)

    def _rotor_grace(self, line: StatusLine) -> int:
        return CONFIRM_PERIODS if self._is_runaway(line) else ROTOR_PERIODS

    def _is_runaway(self, line: StatusLine) -> bool:
        return 2 * line.rotor_mrpm > 3 * self._rotor_max_mrpm

    def _present(self, fault: WheelFaultKind, line: StatusLine, periods: int, at_us: int) -> list[Input]:
        condition = self._standing.setdefault(fault, Condition(since_us=at_us, last_us=at_us))
        condition.last_us = at_us
        if condition.told or at_us - condition.since_us < self._after(periods):
            return []
        condition.told = True
        return [WheelFaultSeen(at_us=at_us, fault=fault, detail=self._detail(fault, line))]

    def _absent(self, fault: WheelFaultKind, at_us: int) -> list[Input]:
        condition = self._standing[fault]
        if condition.told and at_us - condition.last_us < self._after(CLEAR_PERIODS):
            return []
        del self._standing[fault]
        lasted_ms = (condition.last_us - condition.since_us) // 1_000
        return [WheelFaultCleared(at_us=at_us, fault=fault, lasted_ms=lasted_ms)] if condition.told else []

    def _after(self, periods: int) -> int:
        """Microseconds of so many periods, with a quarter of slack: lines come every 500 ms, not to the microsecond."""
        return periods * self._period_us - self._period_us // 4

    def _detail(self, fault: WheelFaultKind, line: StatusLine) -> str:
        where = f"spin {line.spin:03d}, state {line.state:d}, flags {line.flags:X}, rotor {_rpm(line.rotor_mrpm)}"
        if fault is WheelFaultKind.ROTOR_SPEED:
            return f"{where}, must be {_rpm(self._rotor_min_mrpm)} to {_rpm(self._rotor_max_mrpm)}"
        return where


def _rpm(mrpm: int) -> str:
    return f"{mrpm // 1_000}.{mrpm % 1_000 // 100} rpm"
