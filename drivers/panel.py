"""The croupier's panel: buttons, key switches and lamps.

    edges ──► one debouncer per input ──► ButtonPressed (on the press only), KeyTurned (on each change, and at start)
    lamps ◄── show(what each lamp should be) ── steady ones are set at once, blinking ones follow the panel's own beat

One task, ``run``, sleeps until the next instant at which something becomes certain or a lamp toggles. An edge is judged
when it comes; time alone is judged by the task. Before time is believed, the level of the line is read: when it is not
the one that the last edge told, either the edge is still on its way (then it has ``EDGE_GRACE_US`` to arrive, with its
true time) or it was lost (then the level is taken as found, and counted).

Nothing that happens here ends a game: a line that can't be read or a lamp that can't be lit is told once, as
InputFaultSeen, and tried again at each audit.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

from drivers.clock import Clock
from drivers.debounce import (
    BounceStatistics,
    Debouncer,
    DebounceSettings,
    Finding,
    LevelChanged,
    Trouble,
    TroubleBegan,
    TroubleEnded,
)
from drivers.ports import DeviceFault, Edge, EdgeInput, Output
from games.rules import Input, Lamp
from games.signals import ButtonPressed, InputFaultSeen, KeyTurned

BLINK_HALF_PERIOD_US = 500_000
"""A blinking lamp is lit for this long and dark for this long; all blinking lamps go together."""

AUDIT_PERIOD_US = 1_000_000
"""How often levels are read and lamps set again although nothing happened, to find an edge that was lost."""

EDGE_GRACE_US = 50_000
"""How long an edge may be on its way after its level can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSettings:
    """What the cabinet has, by the names on its labels, and how contacts are judged (microseconds)."""

    buttons: tuple[str, ...]
    keys: tuple[str, ...] = ()
    lamps: tuple[str, ...] = ()
    settle_us: int = 5_000
    minimum_us: int = 20_000
    stuck_us: int = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class InputHealth:
    """One button or key as a technician sees it. ``raw`` is the level now, None when it cannot be read."""

    name: str
    kind: str
    raw: bool | None
    stable: bool
    troubles: tuple[str, ...]
    statistics: BounceStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class LampHealth:
    """One lamp: what it should show, whether it is lit now, and what is wrong (empty when nothing is)."""

    name: str
    shows: Lamp
    lit: bool | None
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelHealth:
    """The whole panel at one instant."""

    inputs: tuple[InputHealth, ...]
    lamps: tuple[LampHealth, ...]


class _Line:
    """One input and what is known of it."""

    def __init__(self, name: str, kind: str, debounce: DebounceSettings) -> None:
        self.name = name
        self.kind = kind
        self.debounce = debounce
        self.debouncer = Debouncer(debounce, active=False, now_us=0)
        self.doubted_since_us: int | None = None
        self.fault = ""

    def due_us(self) -> int | None:
        """When time is to be judged; in doubt, when the doubt ends."""
        if self.doubted_since_us is not None:
            return self.doubted_since_us + EDGE_GRACE_US
        return self.debouncer.due_us()


class Panel:
    """The panel on its ports. ``emit`` is called from the event loop, in order of the instants at which things became
    certain; ``outputs`` is None for a cabinet without lamps. ``at_us`` of what is emitted is that instant.
    """

    def __init__(
        self,
        inputs: EdgeInput,
        outputs: Output | None,
        clock: Clock,
        emit: Callable[[Input], None],
        settings: PanelSettings,
    ) -> None:
        self._inputs = inputs
        self._outputs = outputs
        self._clock = clock
        self._emit = emit
        button = DebounceSettings(
            settle_us=settings.settle_us, minimum_us=settings.minimum_us, stuck_us=settings.stuck_us
        )
        key = DebounceSettings(settle_us=settings.settle_us, minimum_us=settings.minimum_us)
        self._lines = {name: _Line(name, "button", button) for name in settings.buttons}
        self._lines |= {name: _Line(name, "key", key) for name in settings.keys}
        self._wake = asyncio.Event()
        self._sleeps_until_us = 0
        self._audit_due_us = 0
        self._shown = dict.fromkeys(settings.lamps, Lamp.OFF)
        self._lit: dict[str, bool] = {}
        self._lamp_faults: dict[str, str] = {}
        self._blink_began_us: int | None = None

    async def run(self) -> None:
        """Serve the panel until cancelled."""
        self._inputs.on_edge(self._on_edge)
        try:
            self._begin(self._clock.mono_us())
            while True:
                await self._sleep_until(self._next_due_us())
                self._judge(self._clock.mono_us())
        finally:
            self._inputs.on_edge(None)

    def show(self, lamps: Mapping[str, Lamp]) -> None:
        """Make each fitted lamp show this; a lamp that is not named is off, and one that is not fitted is left out."""
        now_us = self._clock.mono_us()
        self._shown = {name: lamps.get(name, Lamp.OFF) for name in self._shown}
        if Lamp.BLINKING not in self._shown.values():
            self._blink_began_us = None
        elif self._blink_began_us is None:
            self._blink_began_us = now_us
        self._drive_lamps(now_us)
        self._wake.set()

    def health(self) -> PanelHealth:
        """What ``tablectl devices`` shows: the raw level beside the stable one, counts, bounces, faults."""
        return PanelHealth(
            inputs=tuple(self._input_health(line) for line in self._lines.values()),
            lamps=tuple(
                LampHealth(name=name, shows=shows, lit=self._lit.get(name), fault=self._lamp_faults.get(name, ""))
                for name, shows in self._shown.items()
            ),
        )

    # ── Inputs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, now_us: int) -> None:
        """Take the levels as they are: a button that is held at start is no press, and each key tells how it stands."""
        for line in self._lines.values():
            active = self._read(line, now_us)
            line.debouncer = Debouncer(line.debounce, active=bool(active), now_us=now_us)
            if line.kind == "key" and active is not None:
                self._emit(KeyTurned(at_us=now_us, key=line.name, on=active))
        self._audit_due_us = now_us + AUDIT_PERIOD_US
        self._drive_lamps(now_us)

    def _on_edge(self, edge: Edge) -> None:
        """Judge an edge; first whatever became certain on any line before it, so that order is kept across lines."""
        found = [
            (line, finding)
            for line in self._lines.values()
            if line.doubted_since_us is None or line.name == edge.line
            for finding in line.debouncer.tick(edge.at_us)
        ]
        line = self._lines[edge.line]
        line.doubted_since_us = None
        found.extend((line, finding) for finding in line.debouncer.feed(edge))
        if found:
            self._tell(found)
        due_us = line.due_us()
        if due_us is not None and due_us < self._sleeps_until_us:
            self._wake.set()

    def _judge(self, now_us: int) -> None:
        """Let time pass on every line whose level is the one that its last edge told, and toggle the lamps."""
        found: list[tuple[_Line, Finding]] = []
        for line in self._lines.values():
            active = self._read(line, now_us)
            if active is None or active == line.debouncer.raw:
                line.doubted_since_us = None
                found.extend((line, finding) for finding in line.debouncer.tick(now_us))
            elif line.doubted_since_us is None:
                line.doubted_since_us = now_us
            elif now_us - line.doubted_since_us >= EDGE_GRACE_US:
                line.doubted_since_us = None
                found.extend((line, finding) for finding in line.debouncer.correct(active=active, now_us=now_us))
        self._tell(found)
        if now_us >= self._audit_due_us:
            self._audit_due_us = now_us + AUDIT_PERIOD_US
        self._drive_lamps(now_us)

    def _read(self, line: _Line, now_us: int) -> bool | None:
        try:
            active = self._inputs.level(line.name)
        except DeviceFault as fault:
            if not line.fault:
                line.fault = f"{fault.code}: {fault.detail}"
                self._emit(InputFaultSeen(at_us=now_us, name=line.name, detail=line.fault))
            return None
        line.fault = ""
        return active

    def _tell(self, found: list[tuple[_Line, Finding]]) -> None:
        for line, finding in sorted(found, key=lambda pair: pair[1].at_us):
            signal = _signal(line, finding)
            if signal is not None:
                self._emit(signal)

    def _input_health(self, line: _Line) -> InputHealth:
        try:
            raw: bool | None = self._inputs.level(line.name)
        except DeviceFault:
            raw = None
        return InputHealth(
            name=line.name,
            kind=line.kind,
            raw=raw,
            stable=line.debouncer.stable,
            troubles=(*sorted(line.debouncer.troubles), *filter(None, [line.fault])),
            statistics=line.debouncer.statistics(),
        )

    # ── Lamps ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _drive_lamps(self, now_us: int) -> None:
        if self._outputs is None:
            return
        for name, shows in self._shown.items():
            lit = shows is Lamp.ON or (shows is Lamp.BLINKING and self._blink_is_lit(now_us))
            if self._lit.get(name) != lit:
                self._set_lamp(self._outputs, name, lit, now_us)

    def _set_lamp(self, outputs: Output, name: str, lit: bool, now_us: int) -> None:
        try:
            outputs.set(name, lit)
        except DeviceFault as fault:
            self._lit.pop(name, None)
            if name not in self._lamp_faults:
                self._lamp_faults[name] = f"{fault.code}: {fault.detail}"
                self._emit(InputFaultSeen(at_us=now_us, name=name, detail=self._lamp_faults[name]))
            return
        self._lit[name] = lit
        self._lamp_faults.pop(name, None)

    def _blink_is_lit(self, now_us: int) -> bool:
        began_us = now_us if self._blink_began_us is None else self._blink_began_us
        return (now_us - began_us) // BLINK_HALF_PERIOD_US % 2 == 0

    # ── Time ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _next_due_us(self) -> int:
        dues = [due for line in self._lines.values() if (due := line.due_us()) is not None]
        if self._outputs is not None and self._blink_began_us is not None:
            halves = (self._clock.mono_us() - self._blink_began_us) // BLINK_HALF_PERIOD_US
            dues.append(self._blink_began_us + (halves + 1) * BLINK_HALF_PERIOD_US)
        return min([self._audit_due_us, *dues])

    async def _sleep_until(self, due_us: int) -> None:
        """Return at ``due_us``, or earlier when something came that is due before it."""
        self._wake.clear()
        self._sleeps_until_us = due_us
        delay_us = max(due_us - self._clock.mono_us(), 0)
        try:
            async with asyncio.timeout(delay_us / 1_000_000):
                await self._wake.wait()
        except TimeoutError:
            return


def _signal(line: _Line, finding: Finding) -> Input | None:
    """What a finding means for the game; None when it means nothing."""
    match finding:
        case LevelChanged() if line.kind == "key":
            return KeyTurned(at_us=finding.at_us, key=line.name, on=finding.active)
        case LevelChanged():
            pressed = finding.active and finding.clean  # a button found down after a storm was not pressed by anyone
            return ButtonPressed(at_us=finding.at_us, button=line.name) if pressed else None
        case TroubleBegan():
            return InputFaultSeen(at_us=finding.at_us, name=line.name, detail=_DETAILS[finding.trouble])
        case TroubleEnded():
            return None
        case _:
            assert_never(finding)


_DETAILS = {
    Trouble.STUCK: "E-INPUT-STUCK: held down for longer than a person holds it",
    Trouble.STORM: "E-INPUT-STORM: it flickers faster than a hand can; held at its last level until it calms",
}
