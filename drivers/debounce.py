"""From raw edges to one press: the debouncer of one panel input. Pure; time comes in with every call.

A contact that closes or opens flickers for some milliseconds, and a long cable picks up short pulses. The rule:

    raw     ─────┐ ┌┐ ┌────────────────────────┐ ┌─┐ ┌──────────────────      ─────┐ ┌──────────
                 └─┘└─┘                        └─┘ └─┘                              └─┘
                 │first edge  │                │first edge   │                interference:
    stable  ──────────────────┐ one press ────────────────── ┌── released     ignored and counted

An *episode* begins with the edge that leaves the stable level. It ends in one of two ways: the stable level is back and
has held for ``settle_us`` (that was interference), or the new level has held for ``settle_us`` and ``minimum_us`` have
gone by since the first edge (that is one change). So nothing shorter than ``minimum_us`` ever counts, however often it
comes, and two changes in a row never have the same level: one press is one press.

Edges carry the kernel's time, so a late event loop changes nothing: an edge that comes after the episode was due proves
that the level had held, and the change is given with the instant at which it became certain.

More than ``storm_edges`` edges within a second are a *storm* (a broken wire, a failing supply). The input is then held
at its last stable level until one second passes without an edge; a press never comes out of a storm.
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

from drivers.ports import Edge

SECOND_US = 1_000_000

STORM_EDGES = 200
"""Edges in one second that a hand can't make: ten presses a second with ten bounces on each side."""

CALM_US = SECOND_US
"""How long a line must be silent before it is believed again after a storm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DebounceSettings:
    """How one input is judged. ``stuck_us`` is None for a key switch, which may stay turned for hours."""

    settle_us: int = 5_000
    minimum_us: int = 20_000
    stuck_us: int | None = None
    storm_edges: int = STORM_EDGES


class Trouble(StrEnum):
    """What may be wrong with an input."""

    STUCK = "stuck"  # held longer than a person holds it
    STORM = "storm"  # more edges than a person can make


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChanged:
    """The stable level changed: it began at ``since_us`` and was certain at ``at_us``.

    ``clean`` is false when the level was only found after a storm: nobody saw a press begin.
    """

    active: bool
    since_us: int
    at_us: int
    clean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleBegan:
    """A fault condition began. It is told once, however long it lasts."""

    trouble: Trouble
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleEnded:
    """The condition is gone."""

    trouble: Trouble
    at_us: int
    lasted_us: int


Finding = LevelChanged | TroubleBegan | TroubleEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class BounceStatistics:
    """What a technician reads to judge a contact. A bounce lasts from the first to the last edge of one change.

    ``repeated`` edges have the level that was known already and ``missed`` ones were found by reading the level: both
    mean that an edge between was lost.
    """

    edges: int = 0
    changes: int = 0
    interference: int = 0
    repeated: int = 0
    missed: int = 0
    storms: int = 0
    shortest_bounce_us: int | None = None
    longest_bounce_us: int | None = None


class Debouncer:
    """One input. Feed it every edge, and call ``tick`` when ``due_us`` has come.

    ``active`` is the level at the start, taken as stable. Time never runs backwards here: an edge that is reported late
    counts as of now.
    """

    def __init__(self, settings: DebounceSettings, *, active: bool, now_us: int) -> None:
        self._settings = settings
        self._now_us = now_us
        self._raw = active
        self._stable = active
        self._held_since_us = now_us
        self._first_edge_us: int | None = None
        self._last_edge_us = now_us
        self._recent_us: deque[int] = deque(maxlen=settings.storm_edges + 1)
        self._troubles: dict[Trouble, int] = {}
        self._edges = self._changes = self._interference = self._repeated = self._missed = self._storms = 0
        self._shortest_bounce_us: int | None = None
        self._longest_bounce_us: int | None = None

    @property
    def raw(self) -> bool:
        """The level after the last edge."""
        return self._raw

    @property
    def stable(self) -> bool:
        """The level that counts."""
        return self._stable

    @property
    def troubles(self) -> frozenset[Trouble]:
        """The conditions that stand now."""
        return frozenset(self._troubles)

    def statistics(self) -> BounceStatistics:
        """The figures so far."""
        return BounceStatistics(
            edges=self._edges,
            changes=self._changes,
            interference=self._interference,
            repeated=self._repeated,
            missed=self._missed,
            storms=self._storms,
            shortest_bounce_us=self._shortest_bounce_us,
            longest_bounce_us=self._longest_bounce_us,
        )

    def feed(self, edge: Edge) -> tuple[Finding, ...]:
        """Take one edge. Whatever had become certain before its instant comes out first."""
        at_us = max(edge.at_us, self._now_us)
        found = self.tick(at_us)
        self._edges += 1
        if edge.active == self._raw:
            self._repeated += 1
        return found + self._take(edge.active, at_us)

    def correct(self, *, active: bool, now_us: int) -> tuple[Finding, ...]:
        """Take a level that was read and that no edge had told. Nothing becomes certain by it: the wait begins anew."""
        self._now_us = max(now_us, self._now_us)
        if active == self._raw:
            return ()
        self._missed += 1
        return self._take(active, self._now_us)

    def due_us(self) -> int | None:
        """When ``tick`` will next have something to say, if no edge comes; None when nothing is awaited."""
        dues = [due for due in (self._settle_due_us(), self._stuck_due_us()) if due is not None]
        return min(dues, default=None)

    def tick(self, now_us: int) -> tuple[Finding, ...]:
        """Let time pass until ``now_us``."""
        found: list[Finding] = []
        while (due := self.due_us()) is not None and due <= now_us:
            found.extend(self._settle(due) if due == self._settle_due_us() else self._call_stuck(due))
        self._now_us = max(now_us, self._now_us)
        return tuple(found)

    def _settle_due_us(self) -> int | None:
        if self._first_edge_us is None:
            return None
        if Trouble.STORM in self._troubles:
            return self._last_edge_us + CALM_US
        held_us = self._last_edge_us + self._settings.settle_us
        return held_us if self._raw == self._stable else max(held_us, self._first_edge_us + self._settings.minimum_us)

    def _stuck_due_us(self) -> int | None:
        """Nothing is called stuck twice, nor in a storm, when nobody knows the level."""
        if self._settings.stuck_us is None or not self._stable or self._troubles:
            return None
        return self._held_since_us + self._settings.stuck_us

    def _take(self, active: bool, at_us: int) -> tuple[Finding, ...]:
        self._raw = active
        self._last_edge_us = at_us
        if self._first_edge_us is None:
            self._first_edge_us = at_us
        self._recent_us.append(at_us)
        crowded = len(self._recent_us) == self._recent_us.maxlen and at_us - self._recent_us[0] < SECOND_US
        if not crowded or Trouble.STORM in self._troubles:
            return ()
        self._storms += 1
        self._troubles[Trouble.STORM] = at_us
        return (TroubleBegan(trouble=Trouble.STORM, at_us=at_us),)

    def _settle(self, at_us: int) -> list[Finding]:
        first_us = at_us if self._first_edge_us is None else self._first_edge_us
        self._first_edge_us = None
        found: list[Finding] = list(self._end(Trouble.STORM, at_us))
        clean = not found
        if not clean:
            self._recent_us.clear()
            self._held_since_us = at_us  # how long it had really been held is unknown
        if self._raw == self._stable:
            self._interference += clean
            return found
        if clean:
            self._count_bounce(self._last_edge_us - first_us)
        self._changes += 1
        self._stable = self._raw
        self._held_since_us = first_us if clean else at_us
        found.append(LevelChanged(active=self._stable, since_us=self._held_since_us, at_us=at_us, clean=clean))
        found.extend(self._end(Trouble.STUCK, at_us))
        return found

    def _call_stuck(self, at_us: int) -> list[Finding]:
        self._troubles[Trouble.STUCK] = at_us
        return [TroubleBegan(trouble=Trouble.STUCK, at_us=at_us)]

    def _end(self, trouble: Trouble, at_us: int) -> tuple[Finding, ...]:
        began_us = self._troubles.pop(trouble, None)
        return () if began_us is None else (TroubleEnded(trouble=trouble, at_us=at_us, lasted_us=at_us - began_us),)

    def _count_bounce(self, bounce_us: int) -> None:
        shortest, longest = self._shortest_bounce_us, self._longest_bounce_us
        self._shortest_bounce_us = bounce_us if shortest is None else min(shortest, bounce_us)
        self._longest_bounce_us = bounce_us if longest is None else max(longest, bounce_us)
