"""Mistakes in a configuration, all told at once."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One mistake in a configuration: where, what stands there, and what is permitted."""

    key: str
    value: str
    wrong: str

    def __str__(self) -> str:
        return f"{self.key}{f' = {self.value}' if self.value else ''}: {self.wrong}"


class ConfigError(Exception):
    """The configuration cannot be used. ``faults`` has all its mistakes."""

    def __init__(self, path: Path, faults: list[ConfigFault]) -> None:
        super().__init__(f"E-CONFIG {path}: " + "; ".join(map(str, faults)))
        self.path = path
        self.faults = faults


def short(value: object) -> str:
    """A value as it stands, cut for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
