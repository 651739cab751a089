"""What commands print: lines for people or one JSON document for programs, questions, and progress.

Lines are plain text with ANSI colours; click takes these out where there is no terminal, or where NO_COLOR is set.
"""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import Any

import click

from controller.cli.failure import JSON, Failure, advice_lines, title_of
from controller.cli.language import colon, here
from games.money import euros

Step = Callable[[int, int], None]
"""Called with how much is done, and how much there is."""

RESET = "\x1b[0m"

_ANSI = re.compile(r"(\x1b\[[0-9;]*m)")

YES = {"o", "oui", "y", "yes"}


def wants_json() -> bool:
    """Whether the running command was asked for JSON."""
    return bool(click.get_current_context().meta.get(JSON))


def tell(document: Any, lines: Iterable[str]) -> None:
    """Print the document where JSON was asked for, else the lines."""
    if wants_json():
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    for line in lines:
        click.echo(line)


# ── Shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def heading(text: str) -> str:
    """A title line."""
    return click.style(text, bold=True)


def dim(text: str) -> str:
    """Less important than the rest."""
    return click.style(text, dim=True)


def width_of(text: str) -> int:
    """Columns that a text takes, colours left out."""
    return len(click.unstyle(text))


def cut(text: str, width: int) -> str:
    """A line that fits: what is beyond ``width`` columns becomes ``…``; colours are kept, and ended."""
    if width_of(text) <= width:
        return text
    kept, left = [], width - 1
    for piece in _ANSI.split(text):
        if _ANSI.fullmatch(piece):
            kept.append(piece)
        else:
            kept.append(piece[:left])
            left -= len(piece[:left])
    return "".join(kept) + "…" + RESET


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is, None when it is none."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def columns(rows: Iterable[Sequence[str]], right: Collection[int] = (), indent: str = "") -> list[str]:
    """Rows as lines with aligned columns; those in ``right`` are aligned to the right."""
    table = [list(row) for row in rows]
    widths = [max(map(width_of, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = [
            " " * (width - width_of(cell)) + cell if at in right else cell + " " * (width - width_of(cell))
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def fields(pairs: Iterable[tuple[str, str]], indent: str = "") -> list[str]:
    """Labels and their values, one pair a line; pairs without a value are left out."""
    return columns(([dim(label), value] for label, value in pairs if value), indent=indent)


def money(cents: int) -> str:
    """``12,50 €`` in French, ``€12.50`` in English."""
    if here("fr", "en") == "fr":
        return euros(cents)
    units, rest = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}€{units:,}.{rest:02d}"


def percent(part: int, whole: int) -> str:
    """``97,30 %``: a share, to the nearest hundredth."""
    if not whole:
        return "–"
    units, hundredths = divmod((part * 20_000 + whole) // (2 * whole), 100)
    return here(f"{units},{hundredths:02d}\u202f%", f"{units}.{hundredths:02d}%")


def trouble(code: str, detail: str = "", indent: str = "  ") -> list[str]:
    """A code with what it means, what was found, and what to do."""
    title = title_of(code)
    meaning = "" if title == code else f" {title}"
    found = f"{colon()}{detail}" if detail else ""
    return [f"{indent}{click.style(code, fg='red')}{meaning}{found}", *advice_lines(code, indent + "  ")]


# ── Questions and progress ────────────────────────────────────────────────────────────────────────────────────────────


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone. Raises Failure when the answer is no, or nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure("E-CONFIRM", here(f"{question} Répondre par --yes.", f"{question} Answer with --yes."))
    asked = here(f"{question} [o/N]", f"{question} [y/N]")
    answer = click.prompt(asked, default="", show_default=False, err=True, prompt_suffix=" ")
    if answer.strip().lower() not in YES:
        raise Failure("E-CONFIRM", here("Rien n'a été changé.", "Nothing was changed."), status=1)


@contextmanager
def progress(label: str) -> Iterator[Step]:
    """A bar on standard error while something long goes on, where that is a terminal."""
    if wants_json() or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    shape = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*shape, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """A sign on standard error that something goes on whose end is unknown, where that is a terminal."""
    if wants_json() or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(label):
        yield


def plain_json(document: Mapping[str, Any]) -> str:
    """One document on one line."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
