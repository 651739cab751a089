"""What is asked of the wheel before a séance opens, how its answers are read, and what must be in them.

The guide prints the answers of ``*T`` unevenly, so each is read tolerantly and compared as a person would: value by
value, in one notation. An answer that can't be read is a difference, as is one that never comes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from drivers.slingshot import WheelSettings
from drivers.slingshot_lines import Reply

Reading = Callable[[str], str | None]
"""From the text of an answer to the value as people write it; None when it can't be read."""

NUMBER = r"\d{1,9}"
DECIMAL = r"\d{1,9}(?:\.\d{1,9})?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question: its name for people, its command, the answers that it takes, and the values that are registered."""

    name: str
    command: str
    letter: str
    item: str  # of *T; empty for another command
    read: Reading
    must: tuple[str, ...]

    def text(self, reply: Reply) -> str | None:
        """The value's text in ``reply``, or None when it answers something else. BUSY and NO are texts too."""
        if reply.letter == self.letter and reply.text in ("BUSY", "NO"):
            return reply.text
        if not self.item:
            return reply.text if reply.letter == self.letter else None
        if reply.letter.lower() == self.item:  # "*Z 37" for "*T z 37"
            return reply.text
        item, _, text = reply.text.partition(" ")
        return text if reply.letter == self.letter and item.lower() == self.item else None

    def differences(self, text: str) -> tuple[str, ...]:
        """What is wrong with an answer, as ``name: is …, must be …``; nothing when it is registered."""
        value = self.read(text)
        if value in self.must:
            return ()
        found = f"not told, the wheel says {text}" if text in ("BUSY", "NO") else f"not readable ({text!r})"
        return (self._line(value if value is not None else found),)

    def unanswered(self, why: str) -> str:
        """The difference of a question without an answer."""
        return self._line(f"not told, {why}")

    def _line(self, found: str) -> str:
        return f"{self.name}: is {found}, must be {' or '.join(self.must)}"


def checks(settings: WheelSettings) -> tuple[Check, ...]:
    """Every question, firmware first."""
    must = settings.parameters
    modes = tuple(map(str, settings.modes))
    rotor = f"{_rpm(must.rotor_low_mrpm)} to {_rpm(must.rotor_high_mrpm)} rpm"
    return (
        Check(name="firmware", command="*S", letter="S", item="", read=_words, must=(must.firmware,)),
        Check(name="pockets", command="*T Z", letter="T", item="z", read=_number, must=(str(settings.pockets),)),
        Check(name="mode", command="*O", letter="O", item="", read=_mode, must=modes),
        _item("n", "no-more-bets threshold", _number, str(must.no_more_bets_threshold)),
        _item("s", "rotor speed range", _rpm_range, rotor),
        _item("m", "rotor speed change", _rpm_value, f"{_rpm(must.rotor_change_mrpm)} rpm"),
        _item("h", "games an hour", _number, str(must.games_per_hour)),
        _item("k", "keep in rim", _number, str(must.keep_in_rim)),
        _item("i", "blind sensor time", _number, str(must.blind_half_seconds)),
        _item("g", "options", _number, str(must.options)),
    )


def _item(item: str, name: str, read: Reading, must: str) -> Check:
    return Check(name=name, command=f"*T {item.upper()}", letter="T", item=item, read=read, must=(must,))


def _words(text: str) -> str | None:
    return text.strip() or None


def _number(text: str) -> str | None:
    return str(int(text)) if re.fullmatch(NUMBER, text) else None


def _mode(text: str) -> str | None:
    """``*O state protocol games/h mode``: the mode is the last word."""
    return _number(text.rpartition(" ")[2])


def _rpm_value(text: str) -> str | None:
    return f"{_rpm(_mrpm(text))} rpm" if re.fullmatch(DECIMAL, text) else None


def _rpm_range(text: str) -> str | None:
    match = re.fullmatch(f"({DECIMAL}) +({DECIMAL})", text)
    return f"{_rpm(_mrpm(match[1]))} to {_rpm(_mrpm(match[2]))} rpm" if match else None


def _mrpm(text: str) -> int:
    return int(Decimal(text) * 1_000)


def _rpm(mrpm: int) -> str:
    """14 000 is ``14.0``, 1 250 is ``1.25``."""
    whole, rest = divmod(mrpm, 1_000)
    return f"{whole}.{f'{rest:03d}'.rstrip('0') or '0'}"
