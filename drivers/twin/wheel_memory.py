"""What a simulated wheel remembers and answers: identity, mode, parameters, counts (guide V2.10, as real wheels do it).

The printed replies are uneven and so are these: ``*T OK``, ``T OK``, ``*Z OK``, ``*T m 1.5``. Undocumented answers are
those of a recorded wheel: ``*o BUSY`` while it plays, ``*? NO`` to a letter that it does not know. Only what was saved
with ``*T f`` outlives a power cut; the mode always does.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

FACTORY: Mapping[str, str] = MappingProxyType(
    {
        "n": "2920",  # no more bets: ball-turn time × 2048
        "s": "14.0 17.5",  # range of the rotor's speed, rpm
        "m": "1.5",  # change of it after no more bets
        "h": "60",  # games an hour
        "z": "38",  # pockets: the factory's own default
        "k": "1900",  # keep in rim
        "i": "10",  # blind-sensor time in state 4, half seconds
        "g": "0",  # 8 stop after a misfire, 16 direction control, 32 state 7
    }
)

DECIMAL = re.compile(r"\d{1,9}(\.\d{1,9})?")
SHAPES = {"s": re.compile(rf"{DECIMAL.pattern} {DECIMAL.pattern}"), "g": re.compile(r"\d{1,9}")}

UNEVEN = {"n": "T OK", "z": "*Z OK"}
IDLE, LANDED = 6, 5


class WheelMemory:
    """Registers and their commands. ``stored`` overrides the factory's parameters."""

    def __init__(self, *, firmware: str, mode: int, stored: Mapping[str, str]) -> None:
        self.firmware = firmware
        self.mode = mode
        self.muted = False
        self.wins: dict[str, int] = {}
        self.misfires = 0
        self.parameters = {**FACTORY, **stored}
        self._saved = dict(self.parameters)

    def power_cut(self) -> None:
        """Forget what was not saved."""
        self.parameters = dict(self._saved)
        self.muted = False

    @property
    def rotor_range(self) -> tuple[float, float]:
        """Slowest and fastest speed that a spin may have, in rpm."""
        slowest, fastest = self.parameters["s"].split()
        return float(slowest), float(fastest)

    @property
    def rotor_change(self) -> float:
        """How far the speed may change after no more bets: nothing unless mode bit 4 asks for it."""
        return float(self.parameters["m"]) if self.mode & 4 else 0.0

    def has_option(self, bit: int) -> bool:
        """Whether ``*T g`` has this bit."""
        return bool(int(self.parameters["g"]) & bit)

    def answer(self, letter: str, words: list[str], state: int) -> str | None:
        """The reply to a command that does not touch the game; None when the letter is unknown here."""
        match letter:
            case "S":
                return f"*S {self.firmware}"
            case "V":
                return "*V SLINGSHOT 2 FPGA 1.12"
            case "v":
                return "*v COPROCESSOR 1.04"
            case "o":
                return self._set_mode(words, state)
            case "O":
                return f"*O {state} 1 {self.parameters['h']} {self.mode}"
            case "q":
                self.muted = words == ["1"]
                return "*q OK"
            case "w":
                return "*w 35.20 50" if state in (LANDED, IDLE) else "*w BUSY"
            case "W":
                counts = " ".join(f"{pocket}:{count}" for pocket, count in self.wins.items())
                return "*W BUSY" if state < LANDED else f"*W {counts}"[:120].rstrip()
            case "M":
                return "*M BUSY" if state < LANDED else f"*M {self.misfires}"
            case "T":
                return self._parameter(words)
            case _:
                return None

    def _set_mode(self, words: list[str], state: int) -> str:
        if state != IDLE:
            return "*o BUSY"
        if len(words) != 1 or not words[0].isdecimal():
            return "*o NO"
        self.mode = int(words[0])
        return f"*o {self.mode}"

    def _parameter(self, words: list[str]) -> str:
        """Ask with an upper-case item, set with a lower-case one; ``*T f`` saves."""
        item = words[0] if words else ""
        if item == "f":
            self._saved = dict(self.parameters)
            return "*T OK"
        if item.lower() not in self.parameters:
            return "*T NO"
        if item.isupper():
            return f"*T {item.lower()} {self.parameters[item.lower()]}"
        if not SHAPES.get(item, DECIMAL).fullmatch(value := " ".join(words[1:])):
            return "*T NO"
        self.parameters[item] = value
        return f"*T m {self.parameters['m']}" if item == "m" else UNEVEN.get(item, "*T OK")
