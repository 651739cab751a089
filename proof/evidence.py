"""``docs/evidence.md``: what the proofs found when they last ran, a section for each, rewritten by its own proof."""

import os
import platform
import re
import sqlite3
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from drivers.clock import SystemClock
from proof.results import Result

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "evidence.md"

HEAD = """\
# Evidence

What this program claims of itself, and how often each claim was tried. Every figure has its denominator; `make proof`
tries all of it again and writes this page. [performance.md](performance.md) has the speeds,
[compliance.md](compliance.md) the articles of the law.
"""

_SECTION = re.compile(r"^## (?P<name>[a-z-]+)\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def record(name: str, about: str, results: Sequence[Result], order: Sequence[str], document: Path = DOCUMENT) -> None:
    """Rewrite the section ``name``; ``order`` is that of all sections."""
    text = document.read_text(encoding="utf-8") if document.exists() else ""
    sections = {match["name"]: match["body"] for match in _SECTION.finditer(text)}
    sections[name] = _body(name, about, results)
    kept = [f"## {one}\n{sections[one].rstrip()}\n" for one in order if one in sections]
    document.write_text("\n".join([HEAD, *kept]), encoding="utf-8")


def _body(name: str, about: str, results: Sequence[Result]) -> str:
    rows = [f"| {one.claim} | {one.figure} | {one.goal} | {'yes' if one.met else '**no**'} |" for one in results]
    when = datetime.fromtimestamp(SystemClock().wall_ms() // 1_000, UTC).date().isoformat()
    table = ["| claim | found | wanted | met |", "|---|---|---|---|", *rows]
    return "\n".join(["", about, "", *table, "", f"`make proof ARGS={name}` on {when}; {_machine()}", ""])


def _machine() -> str:
    """Where it ran, as far as it may matter."""
    cores = len(os.sched_getaffinity(0))
    python = sys.version.split()[0]
    kernel = f"Linux {platform.release()}"
    return f"{cores} processors ({platform.machine()}), {kernel}, Python {python}, SQLite {sqlite3.sqlite_version}"
