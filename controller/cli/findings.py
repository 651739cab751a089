"""What a check of ``tablectl doctor`` found."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Status = Mapping[str, Any]
"""What the running daemon answered."""


class Level(StrEnum):
    """How a check ended: well, well enough to open, or not."""

    OK = "ok"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; ``code`` is empty when all is well."""

    level: Level
    subject: str
    detail: str
    code: str = ""


def well(subject: str, detail: str) -> Finding:
    """All is well."""
    return Finding(Level.OK, subject, detail)


def warn(subject: str, code: str, detail: str) -> Finding:
    """Well enough to open."""
    return Finding(Level.WARN, subject, detail, code)


def error(subject: str, code: str, detail: str) -> Finding:
    """A reason not to open."""
    return Finding(Level.ERROR, subject, detail, code)
