"""The decoder of a SlingShot 2 wheel: bytes and instants in, observations out. It owns no port, no clock and no task.

    bytes ─► framer ─► grammar ─┬─ status ─► link: late? ─► spin ─► BallLaunched, BallSlowed, PocketDetected/Missed
             (slingshot_lines)  │            (…_link)   └─► faults ─► WheelFaultSeen, WheelFaultCleared
                                ├─ bare number ─► spin (…_spin)  (…_faults)
                                └─ reply ─► the driver, by letter (take_replies)

What holds whatever the bytes are (each is a property of the tests): the observations do not depend on how the stream
was cut into reads; garbage is counted and never becomes a pocket; an attempt has at most one launch and one "no more
bets", and a spin number one pocket; what landed while the link was down is a hint and never a result.
"""

from collections import deque
from dataclasses import dataclass, field

from drivers.slingshot_faults import FaultWatch
from drivers.slingshot_lines import LineFramer, NumberLine, Reply, StatusLine, from_last_star, parse_line
from drivers.slingshot_link import LinkWatch
from drivers.slingshot_spin import SpinWatch
from games.rules import Input

REPLY_BOUND = 64
"""Replies that wait for the driver. The oldest is dropped, and counted, when another one comes."""

DIRECTION_CONTROL = 16
"""Option bit (``*T g``) that lets ``*u 3`` start a game anti-clockwise; firmware 2.52 and later."""

SELF_TEST_FAULTS = 256
"""Mode bit that may be set beside the required mode: ``*F code`` is sent during play too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelParameters:
    """What the wheel must hold in its memory, item by item of ``*T`` (guide V2.10; the defaults are the maker's).

    A wheel that held a speed change of 20000 rpm ran away eleven times: every item is read back at each opening.
    """

    firmware: str = "V2.52"
    no_more_bets_threshold: int = 2_920  # n: ball-turn time × 2048
    rotor_low_mrpm: int = 14_000  # s: the range the rotor's speed is drawn from
    rotor_high_mrpm: int = 17_500
    rotor_change_mrpm: int = 1_500  # m: random change after no more bets
    games_per_hour: int = 60  # h
    keep_in_rim: int = 1_900  # k
    blind_half_seconds: int = 10  # i: blind-sensor time in state 4
    options: int = 0  # g: 8 stop after a misfire, 16 direction control, 32 state 7


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSettings:
    """One wheel of one table. Raises ValueError when the values contradict each other.

    ``rotor_min_mrpm`` and ``rotor_max_mrpm`` are the limits of the alarm: they include the change after no more bets.
    ``commands`` is false for a wheel that a croupier spins and that only speaks (in the way of a Mercury reader).
    """

    pockets: int = 37
    status_period_ms: int = 500
    silence_ms: int = 2_500
    rotor_min_mrpm: int = 12_000
    rotor_max_mrpm: int = 20_000
    commands: bool = True
    direction_control: bool = False
    required_mode: int = 1_159
    parameters: WheelParameters = field(default_factory=WheelParameters)

    def __post_init__(self) -> None:
        """Refuse what can't be meant."""
        if self.pockets not in (37, 38):
            raise ValueError(f"pockets: is {self.pockets}, must be 37 (article 51) or 38 (article 55-1)")
        if not 0 < 2 * self.status_period_ms <= self.silence_ms:
            raise ValueError(f"silence_ms: is {self.silence_ms}, must be two status periods or more")
        if not 0 <= self.rotor_min_mrpm < self.rotor_max_mrpm:
            raise ValueError(f"rotor_max_mrpm: is {self.rotor_max_mrpm}, must be above {self.rotor_min_mrpm}")
        if self.direction_control and not self.parameters.options & DIRECTION_CONTROL:
            raise ValueError(f"direction_control: needs option bit 16, parameters.options is {self.parameters.options}")
        if self.direction_control and not self.commands:
            raise ValueError("direction_control: needs commands")

    @property
    def pocket_names(self) -> frozenset[str]:
        """The pockets by name: "0" to "36", and "00" on a wheel of 38."""
        return frozenset(map(str, range(37))) | ({"00"} if self.pockets == 38 else frozenset())

    @property
    def modes(self) -> tuple[int, int]:
        """The modes under which a table may open: the required one, and the same with self-test faults in play."""
        return (self.required_mode, self.required_mode | SELF_TEST_FAULTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCounters:
    """What came over the line since the start."""

    status: int = 0
    numbers: int = 0
    replies: int = 0
    rejected: int = 0  # no line of the protocol
    glued: int = 0  # lines of which only the part from the last star was read
    late: int = 0  # status and number lines while the link was down
    bursts: int = 0  # runs of late lines faster than a wheel speaks
    implausible: int = 0  # status lines that no second line bore out
    strays: int = 0  # bare numbers outside a spin
    replies_dropped: int = 0


class SlingshotDecoder:
    """One wheel's decoder. Instants must not go backwards."""

    def __init__(self, settings: WheelSettings) -> None:
        period_us = settings.status_period_ms * 1_000
        self._framer = LineFramer()
        self._link = LinkWatch(period_us, settings.silence_ms * 1_000)
        self._spin = SpinWatch(settings.pocket_names, self._link.pace_us)
        self._faults = FaultWatch(period_us, settings.rotor_min_mrpm, settings.rotor_max_mrpm)
        self._replies: deque[Reply] = deque()
        self._late_line: StatusLine | None = None
        counted = ("status", "numbers", "replies", "rejected", "glued", "late", "replies_dropped")
        self._counts = dict.fromkeys(counted, 0)

    def feed(self, data: bytes, at_us: int) -> list[Input]:
        """Bytes that arrived by ``at_us``."""
        signals = list[Input]()
        for line in self._framer.feed(data):
            if line:
                signals += self._line(line, at_us)
        return signals

    def tick(self, at_us: int) -> list[Input]:
        """Time went by: a silence is noticed here. Due every half period."""
        return self._link.tick(at_us)

    def unplugged(self, at_us: int) -> list[Input]:
        """The port vanished: the link is lost at once, and the rest of a line with it."""
        self._framer.reset()
        return self._link.lose(at_us)

    def ask_stop(self, asked: bool) -> None:
        """Whether somebody asked the wheel to be idle; an idle state that nobody asked for is a fault."""
        self._faults.ask_stop(asked)

    def take_replies(self) -> list[Reply]:
        """The replies that came since the last call, oldest first. Status lines may have come between them."""
        replies = list(self._replies)
        self._replies.clear()
        return replies

    @property
    def link_is_up(self) -> bool:
        """Whether the wheel is heard at its natural pace."""
        return self._link.is_up

    @property
    def last_line_us(self) -> int | None:
        """When the last valid status line came."""
        return self._link.last_us

    @property
    def counters(self) -> LineCounters:
        """What came over the line so far."""
        spin, link = self._spin, self._link
        return LineCounters(**self._counts, bursts=link.bursts, implausible=spin.implausible, strays=spin.strays)

    def _line(self, raw: bytes, at_us: int) -> list[Input]:
        tail = from_last_star(raw)
        self._counts["glued"] += len(tail) < len(raw)
        match parse_line(tail, at_us):
            case StatusLine() as line:
                self._counts["status"] += 1
                return self._status(line, at_us)
            case NumberLine() as line:
                self._counts["numbers"] += 1
                if self._link.is_up:
                    return self._spin.bare(line, at_us)
                self._counts["late"] += 1
                return []
            case Reply() as reply:
                return self._reply(reply)
            case None:
                self._counts["rejected"] += 1
                return []

    def _status(self, line: StatusLine, at_us: int) -> list[Input]:
        was_up = self._link.is_up
        signals = self._link.heard(at_us)
        if not self._link.is_up:
            self._counts["late"] += 1
            self._late_line = line
            return signals
        if was_up:
            signals += self._spin.line(line, at_us)
        else:
            before = self._late_line
            sure = before is not None and (before.spin, before.number) == (line.spin, line.number)
            signals += self._spin.rejoin(line, at_us, sure=sure)
        return signals + self._faults.line(line, at_us)

    def _reply(self, reply: Reply) -> list[Input]:
        self._counts["replies"] += 1
        if len(self._replies) >= REPLY_BOUND:
            self._replies.popleft()
            self._counts["replies_dropped"] += 1
        self._replies.append(reply)
        if reply.letter == "F" and reply.text.isdecimal():
            return self._faults.self_test(int(reply.text), reply.at_us)
        return []
