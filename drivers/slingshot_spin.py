"""What one spin is: from lines that are believed to launched, slowed, and a pocket that two readings agree on.

    BEFORE_GAME ─► PLACE_BETS ─► BALL_IN_RIM ─► NO_MORE_BETS ─► WINNING_NUMBER ─► BEFORE_GAME or PLACE_BETS
        (1)           (2)            (3)             (4)              (5)
                               BallLaunched     BallSlowed    PocketDetected

- A state is entered once however many lines repeat it. A step of the picture is believed at once, because no more bets
  must not wait; any other step, or a spin number that jumps, is believed when a second line repeats it.
- In states 1 to 4 field WW is the number of the spin *before*. A pocket needs two state 5 lines that agree, or one and
  the bare number. Readings that disagree, or a number that is not on the wheel, give a fault and never a pocket.
- Only a spin whose ball was seen in flight, and that landed while somebody listened, has a result. What landed in a gap
  is told as PocketMissed: a hint for the persons who resolve the incident (wheel notes, 2.3 item 2).
- Two copies of one line that arrive together are one reading: agreement needs a quarter of a period between them.
"""

from dataclasses import dataclass, replace

from drivers.slingshot_lines import SPINS, NumberLine, StatusLine, WheelState, next_spin, previous_spin
from games.rules import Input
from games.signals import (
    BallLaunched,
    BallSlowed,
    PocketDetected,
    PocketMissed,
    WheelFaultCleared,
    WheelFaultKind,
    WheelFaultSeen,
)

BEFORE, BETS, RIM = WheelState.BEFORE_GAME, WheelState.PLACE_BETS, WheelState.BALL_IN_RIM
SLOWED, LANDED, IDLE, LOST = (
    WheelState.NO_MORE_BETS,
    WheelState.WINNING_NUMBER,
    WheelState.IDLE,
    WheelState.NOT_IN_TRACK,
)

STEPS = {
    BEFORE: {BEFORE, BETS},
    BETS: {BETS, RIM, SLOWED},
    RIM: {RIM, SLOWED},
    SLOWED: {SLOWED, LANDED},
    LANDED: {LANDED, BEFORE},
    IDLE: {IDLE, BEFORE},
    LOST: {LOST, BEFORE},
}
"""Within one spin number: the states that may follow a state without being repeated first."""

NO_NUMBER = "  "
"""Field WW before the first number since power-on."""

IN_PLAY = (BETS, RIM, SLOWED)
"""The states of a spin that has no number so far."""


@dataclass(slots=True)
class Attempt:
    """One try of the wheel to play a spin; after a reset it may try again under the same spin number."""

    launched: bool = False
    slowed: bool = False
    landed_unseen: bool = False
    settled: bool = False  # a pocket was told, or never will be
    reading: str | None = None
    reading_us: int = 0
    confirmed: bool = False
    bare: str | None = None


class SpinWatch:
    """The spin's state machine. ``pockets`` are those of the wheel; ``echo_us`` parts two readings from one."""

    def __init__(self, pockets: frozenset[str], echo_us: int) -> None:
        self.implausible = 0
        self.strays = 0
        self._pockets = pockets
        self._echo_us = echo_us
        self._last: StatusLine | None = None
        self._last_us = 0
        self._odd: StatusLine | None = None
        self._odd_us = 0
        self._attempt = Attempt()
        self._told_spin: int | None = None
        self._contradicted_us: int | None = None

    def line(self, line: StatusLine, at_us: int) -> list[Input]:
        """A status line on a link that is up."""
        assert self._last is not None, "the first line of a link comes by rejoin"
        if _is_a_step(self._last, line):
            self._drop_odd()
            return self._step(line, at_us)
        odd = self._odd
        if odd is None or (odd.state, odd.spin) != (line.state, line.spin):
            self._drop_odd()
            self._odd, self._odd_us = line, at_us
            return []
        if at_us - self._odd_us < self._echo_us:
            return []
        self._odd = None
        if line.spin != self._last.spin:
            return self.rejoin(line, at_us, sure=odd.number == line.number)
        # Both lines count, each with its own instant as a reading; what they mean is told now.
        told_now = [replace(signal, at_us=at_us) for signal in self._step(odd, self._odd_us)]
        return told_now + self._step(line, at_us)

    def bare(self, line: NumberLine, at_us: int) -> list[Input]:
        """The bare number. It comes about when state 5 is entered; at any other time it belongs to nothing."""
        attempt, last = self._attempt, self._last
        if last is None or last.state not in (RIM, SLOWED, LANDED):
            self.strays += 1
            return []
        if attempt.settled:
            return self._agree(line.number, last.spin, at_us)
        if attempt.bare is not None and attempt.bare != line.number:
            return self._contradict(at_us, f"spin {last.spin:03d}: the wheel said {attempt.bare}, then {line.number}")
        attempt.bare = line.number
        return self._verdict(last.spin, at_us)

    def rejoin(self, line: StatusLine, at_us: int, *, sure: bool) -> list[Input]:
        """Take up the thread after a gap. ``sure`` when two lines agree on spin and number."""
        last, signals = self._last, list[Input]()
        if last is not None:
            signals += self._discontinuity(last, line, at_us)
            if sure and (missed := self._missed(last, line)) is not None:
                signals.append(PocketMissed(at_us=at_us, spin=missed, pocket=line.number.strip()))
        same = last is not None and line.spin == last.spin and BETS <= last.state <= line.state <= LANDED
        if not same:
            signals += self._begin(at_us)
        if line.state is LANDED:
            self._attempt.landed_unseen = True
        self._odd = None
        self._last, self._last_us = line, at_us
        return signals + self._enter(line, at_us)

    def _drop_odd(self) -> None:
        self.implausible += self._odd is not None
        self._odd = None

    def _step(self, line: StatusLine, at_us: int) -> list[Input]:
        last, signals = self._last, list[Input]()
        assert last is not None
        is_over = last.state >= RIM and line.state in (BEFORE, BETS, IDLE) and line.state is not last.state
        if line.spin != last.spin or is_over:
            signals += self._begin(at_us)
        self._last, self._last_us = line, at_us
        return signals + self._enter(line, at_us)

    def _enter(self, line: StatusLine, at_us: int) -> list[Input]:
        attempt = self._attempt
        if line.state is RIM and not attempt.launched:
            attempt.launched = True
            return [_ball_launched(line, at_us)]
        if line.state is SLOWED:
            return self._slow(line, at_us)
        if line.state is LANDED:
            return self._read(line, at_us)
        return []

    def _slow(self, line: StatusLine, at_us: int) -> list[Input]:
        attempt = self._attempt
        if attempt.reading is not None and not attempt.settled:
            if attempt.reading != line.number:
                return self._contradict(at_us, f"spin {line.spin:03d}: {attempt.reading} was told and taken back")
            # A state 4 line that one wrong bit made a state 5 line shows the number of the spin before: no reading.
            attempt.reading, attempt.confirmed = None, False
            self.implausible += 1
        if attempt.slowed:
            return []
        attempt.slowed = True
        return [_ball_slowed(line, at_us)]

    def _read(self, line: StatusLine, at_us: int) -> list[Input]:
        attempt = self._attempt
        if attempt.settled:
            return self._agree(line.number, line.spin, at_us)
        if attempt.reading is None:
            attempt.reading, attempt.reading_us = line.number, at_us
        elif attempt.reading != line.number:
            return self._contradict(at_us, f"spin {line.spin:03d}: {attempt.reading} was told, then {line.number}")
        elif at_us - attempt.reading_us >= self._echo_us:
            attempt.confirmed = True
        return self._verdict(line.spin, at_us)

    def _verdict(self, spin: int, at_us: int) -> list[Input]:
        """The pocket, when there is enough to name it."""
        attempt = self._attempt
        if attempt.reading is None or not (attempt.confirmed or attempt.bare is not None):
            return []
        if attempt.bare is not None and attempt.bare != attempt.reading:
            return self._contradict(
                at_us, f"spin {spin:03d}: the number line says {attempt.bare}, the status line {attempt.reading}"
            )
        pocket = attempt.reading.strip()
        if pocket not in self._pockets:
            return self._contradict(
                at_us, f"spin {spin:03d}: {attempt.reading!r} is no pocket of a wheel of {len(self._pockets)}"
            )
        if attempt.landed_unseen or not (attempt.launched or attempt.slowed):
            attempt.settled = True
            return [PocketMissed(at_us=at_us, spin=spin, pocket=pocket)]
        if spin == self._told_spin:
            return self._contradict(at_us, f"spin {spin:03d} has a number already, and now {pocket}")
        attempt.settled = True
        self._told_spin = spin
        return [PocketDetected(at_us=at_us, spin=spin, pocket=pocket)]

    def _agree(self, number: str, spin: int, at_us: int) -> list[Input]:
        """A reading after the spin was settled can only be the same one."""
        if number == self._attempt.reading:
            return []
        return self._contradict(at_us, f"spin {spin:03d}: {self._attempt.reading} was told, now {number}")

    def _contradict(self, at_us: int, detail: str) -> list[Input]:
        self._attempt.settled = True
        if self._contradicted_us is not None:
            return []
        self._contradicted_us = at_us
        return [WheelFaultSeen(at_us=at_us, fault=WheelFaultKind.NUMBER_CONTRADICTED, detail=detail)]

    def _begin(self, at_us: int) -> list[Input]:
        """Another attempt begins, so nothing that was read before counts any more."""
        self._attempt = Attempt()
        if self._contradicted_us is None:
            return []
        lasted_ms = (at_us - self._contradicted_us) // 1_000
        self._contradicted_us = None
        return [WheelFaultCleared(at_us=at_us, fault=WheelFaultKind.NUMBER_CONTRADICTED, lasted_ms=lasted_ms)]

    def _missed(self, last: StatusLine, line: StatusLine) -> int | None:
        """The spin whose number WW tells, when exactly one number fell while nobody listened."""
        if line.state not in (BEFORE, *IN_PLAY) or not _is_near(last, line):
            return None
        owner = line.spin if line.state is BEFORE else previous_spin(line.spin)
        unread = last.state is LANDED and not self._attempt.settled
        if unread or last.state in IN_PLAY:
            awaited = {last.spin}
        else:
            awaited = {last.spin, next_spin(last.spin)} - {self._told_spin}
        fell = unread or line.number != last.number
        return owner if fell and owner in awaited and line.number.strip() in self._pockets else None

    def _discontinuity(self, last: StatusLine, line: StatusLine, at_us: int) -> list[Input]:
        """A spin number that neither stayed nor went on by one, or a number forgotten: it was off, or played unseen."""
        forgot = line.number == NO_NUMBER and last.number != NO_NUMBER
        if _is_near(last, line) and not forgot:
            return []
        self._told_spin = None  # after a power cut spin numbers begin again, and this one may come again
        went = "was switched off and on" if forgot or line.spin < last.spin else "played unseen"
        detail = f"the wheel {went}: spin {last.spin:03d} was the last one heard, now it is {line.spin:03d}"
        kind, lasted_ms = WheelFaultKind.STOPPED, (at_us - self._last_us) // 1_000
        return [
            WheelFaultSeen(at_us=at_us, fault=kind, detail=detail),
            WheelFaultCleared(at_us=at_us, fault=kind, lasted_ms=lasted_ms),
        ]


def _is_near(last: StatusLine, line: StatusLine) -> bool:
    return (line.spin - last.spin) % SPINS in (0, 1)


def _is_a_step(last: StatusLine, line: StatusLine) -> bool:
    if line.spin == last.spin:
        return line.state in STEPS[last.state]
    return line.spin == next_spin(last.spin) and last.state in (LANDED, BEFORE) and line.state in (BEFORE, BETS)


def _ball_launched(line: StatusLine, at_us: int) -> BallLaunched:
    return BallLaunched(at_us=at_us, spin=line.spin, direction=line.direction, rotor_mrpm=line.rotor_mrpm)


def _ball_slowed(line: StatusLine, at_us: int) -> BallSlowed:
    return BallSlowed(at_us=at_us, spin=line.spin, direction=line.direction, rotor_mrpm=line.rotor_mrpm)
