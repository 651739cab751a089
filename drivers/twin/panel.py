"""The panel's twin: buttons, keys and lamps in memory, with contacts that bounce and fail like real ones.

It stands in for ``gpio.py`` at the ports, so debounce, panel and all above are the production code. Everything it does
is scheduled on the event loop and drawn from one seed: in virtual time the same seed gives the same edges.

``PanelSocket`` lets another process press the buttons of a running daemon whose panel is a twin. It takes one command a
line, ``press NAME`` or ``turn KEY on|off``, and answers each with ``ok`` or ``error E-PANEL-COMMAND: why``.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Self

from drivers.clock import Clock
from drivers.ports import DeviceFault, Edge

PRESS_US = 120_000
"""How long a finger stays on a button."""

COMMAND_BYTES_BOUND = 256
"""The longest command line. A longer one is answered with an error and the connection ends."""

CALLERS_BOUND = 8
"""Connections to a panel socket at one time. One more is answered with an error and closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactModel:
    """How the contacts bounce: up to ``bounces`` flickers at each change, the gaps between edges within bounds."""

    bounces: int = 5
    shortest_gap_us: int = 50
    longest_gap_us: int = 1_500


class PanelRefusedError(ValueError):
    """The hand can't do that: no such button or key, or it is held already."""


class TwinInputs:
    """The panel's inputs in memory. Call it in the event loop: movements take their time there.

    Faults: ``stick`` and ``release``, ``disturb`` (one interference pulse), ``storm``, ``lose_edges`` (levels change
    and nobody is told), ``unplug`` and ``replug`` (levels cannot be read).
    """

    def __init__(
        self,
        *,
        buttons: tuple[str, ...],
        keys: tuple[str, ...],
        clock: Clock,
        seed: int,
        contacts: ContactModel | None = None,
    ) -> None:
        self._buttons = frozenset(buttons)
        self._keys = frozenset(keys)
        self._levels = dict.fromkeys((*buttons, *keys), False)
        self._clock = clock
        self._random = random.Random(seed)
        self._contacts = contacts or ContactModel()
        self._callback: Callable[[Edge], None] | None = None
        self._moving: dict[str, int] = {}
        self._edges_to_lose = 0
        self._unplugged = False

    def level(self, line: str) -> bool:
        """See ``EdgeInput``."""
        if self._unplugged:
            raise DeviceFault("E-GPIO-GONE", line, "the twin's chip was unplugged")
        return self._levels[line]

    def on_edge(self, callback: Callable[[Edge], None] | None) -> None:
        """See ``EdgeInput``."""
        self._callback = callback

    def close(self) -> None:
        """See ``EdgeInput``. Movements that were begun go on, unseen."""
        self._callback = None

    def press(self, button: str, held_us: int = PRESS_US) -> None:
        """Press a button and let it go after ``held_us``. Raises PanelRefusedError when it is unknown or held."""
        self.stick(button)
        self._after(held_us, button, lambda: self.release(button))

    def is_free(self, button: str) -> bool:
        """Whether a button can be pressed: neither held nor still moving. Raises PanelRefusedError when unknown."""
        self._known(button, self._buttons, "button")
        return not self._levels[button] and button not in self._moving

    def turn(self, key: str, on: bool) -> None:
        """Turn a key switch; where it stands already nothing moves. Raises PanelRefusedError when it is unknown."""
        self._known(key, self._keys, "key")
        if self._levels[key] != on:
            self._flicker(key, on)

    def stick(self, button: str) -> None:
        """Press a button and keep it. Raises PanelRefusedError when it is unknown or held."""
        if not self.is_free(button):
            raise PanelRefusedError(f"the button {button!r} is held already")
        self._flicker(button, True)

    def release(self, button: str) -> None:
        """Let a button go."""
        self._known(button, self._buttons, "button")
        self._flicker(button, False)

    def disturb(self, line: str, width_us: int) -> None:
        """One pulse on the cable, ``width_us`` long, away from the present level and back."""
        level = self._levels[line]
        self._drive(line, not level)
        self._after(width_us, line, lambda: self._drive(line, level))

    def storm(self, line: str, edges: int, gap_us: int) -> None:
        """Flicker ``edges`` times, one edge each ``gap_us``; an even number ends where it began."""
        level = self._levels[line]
        for number in range(edges):
            target = level if number % 2 else not level
            self._after(number * gap_us, line, self._driver(line, target))

    def lose_edges(self, count: int) -> None:
        """Change levels without telling of the next ``count`` edges."""
        self._edges_to_lose = count

    def unplug(self) -> None:
        """The chip is gone: levels raise DeviceFault and edges stop."""
        self._unplugged = True

    def replug(self) -> None:
        """The chip is back."""
        self._unplugged = False

    def _known(self, name: str, names: frozenset[str], kind: str) -> None:
        if name not in names:
            raise PanelRefusedError(f"there is no {kind} {name!r}; there are {', '.join(sorted(names)) or 'none'}")

    def _flicker(self, line: str, target: bool) -> None:
        """Drive a line to ``target`` with bounces: an odd number of edges, the last of which stays."""
        contacts = self._contacts
        gaps = [
            self._random.randint(contacts.shortest_gap_us, contacts.longest_gap_us)
            for _ in range(2 * self._random.randint(0, contacts.bounces))
        ]
        for number, delay_us in enumerate(accumulate(gaps, initial=0)):
            self._after(delay_us, line, self._driver(line, target if number % 2 == 0 else not target))

    def _driver(self, line: str, level: bool) -> Callable[[], None]:
        return lambda: self._drive(line, level)

    def _after(self, delay_us: int, line: str, act: Callable[[], None]) -> None:
        self._moving[line] = self._moving.get(line, 0) + 1

        def move() -> None:
            self._moving[line] -= 1
            if not self._moving[line]:
                del self._moving[line]
            act()

        asyncio.get_running_loop().call_later(delay_us / 1_000_000, move)

    def _drive(self, line: str, level: bool) -> None:
        if self._levels[line] == level:
            return
        self._levels[line] = level
        if self._edges_to_lose:
            self._edges_to_lose -= 1
        elif self._callback is not None and not self._unplugged:
            self._callback(Edge(line=line, active=level, at_us=self._clock.mono_us()))


class TwinOutputs:
    """The panel's lamps in memory."""

    def __init__(self, lamps: tuple[str, ...]) -> None:
        self._lit = dict.fromkeys(lamps, False)
        self._unplugged = False

    def set(self, line: str, on: bool) -> None:
        """See ``Output``."""
        if self._unplugged:
            raise DeviceFault("E-GPIO-GONE", line, "the twin's chip was unplugged")
        self._lit[line] = on

    def close(self) -> None:
        """See ``Output``."""
        self._lit = dict.fromkeys(self._lit, False)

    def lit(self, lamp: str) -> bool:
        """Whether a lamp is lit now."""
        return self._lit[lamp]

    def unplug(self) -> None:
        """The chip is gone: lamps stay as they are and setting one raises DeviceFault."""
        self._unplugged = True

    def replug(self) -> None:
        """The chip is back."""
        self._unplugged = False


class PanelSocket:
    """A local socket whose callers press the twin's buttons: ``async with PanelSocket(path, inputs):``."""

    def __init__(self, path: Path, inputs: TwinInputs) -> None:
        self._path = path
        self._inputs = inputs
        self._server: asyncio.Server | None = None
        self._callers: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        """Listen; only this user may connect. A socket left by a daemon that was killed is replaced."""
        self._server = await asyncio.start_unix_server(self._welcome, self._path, limit=COMMAND_BYTES_BOUND)
        self._path.chmod(0o600)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up on every caller and remove the socket."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._callers.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        self._path.unlink(missing_ok=True)

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._callers[writer] = asyncio.get_running_loop().create_task(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._callers) > CALLERS_BOUND:
                writer.write(_error(f"{CALLERS_BOUND} callers are connected already"))
            else:
                await self._listen(reader, writer)
        except ConnectionError:
            return  # the caller hung up: nothing is owed to it
        finally:
            del self._callers[writer]
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                line = await reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return  # a command without its end is not a command
            except asyncio.LimitOverrunError:
                writer.write(_error(f"a command has at most {COMMAND_BYTES_BOUND} bytes"))
                return
            writer.write(self._obey(line.decode("utf-8", errors="replace")))
            await writer.drain()

    def _obey(self, command: str) -> bytes:
        try:
            match command.split():
                case ["press", button]:
                    self._inputs.press(button)
                case ["turn", key, "on" | "off" as way]:
                    self._inputs.turn(key, way == "on")
                case _:
                    return _error(f"{command.strip()!r} is neither 'press NAME' nor 'turn KEY on|off'")
        except PanelRefusedError as error:
            return _error(str(error))
        return b"ok\n"


def _error(why: str) -> bytes:
    return f"error E-PANEL-COMMAND: {why}\n".encode()
