"""The live board: everything that ``tablectl watch`` shows, as lines that fit the terminal, whatever its size.

┌ banner of a simulation ────────────────────┐
│ table and séance                           │
│ phase, round, number to be confirmed       │
│ last numbers                               │
│ posts, several in a row                    │
│ last certified entries        (what is left)│
│ what is wrong, then how to leave           │
└────────────────────────────────────────────┘
"""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from controller.cli.entries import Entry
from controller.cli.failure import Failure, title_of
from controller.cli.language import here
from controller.cli.output import cut, dim, heading, money, width_of
from controller.cli.status import delivery_text, reasons
from controller.cli.words import CAUSES, PHASE_COLOURS, PHASES, SEANCES, chip, word

Document = Mapping[str, Any]

ENTRIES_LEAST = 3
"""Entries that are shown however small the terminal is."""

TROUBLES_MOST = 3
"""Faults and reasons that are named; ``tablectl status`` has them all, with what to do."""


def board_lines(
    status: Document, entries: Sequence[Entry], width: int, height: int, lost: Failure | None = None
) -> list[str]:
    """The board, at most ``height`` lines of at most ``width`` columns. ``lost``: the table answers no more."""
    top = _top(status, width)
    bottom = [*_troubles(status, lost), dim(here("Ctrl-C pour quitter", "Ctrl-C to leave"))]
    middle = [heading(here("Écritures certifiées", "Certified entries")) + "  " + _journal(status)]
    room = height - len(top) - len(middle) - len(bottom)
    posts = _posts(status["table"]["posts"], width, max(1, room - ENTRIES_LEAST - 2))
    left = max(ENTRIES_LEAST, room - len(posts) - 1)
    told = [entry.line for entry in entries[-left:]]
    lines = [*top, *posts, "", *middle, *told, *[""] * (left - len(told)), *bottom]
    return [cut(line, width) for line in lines[:height]]


def _top(status: Document, width: int) -> list[str]:
    board, incident = status["table"]["board"], status["table"]["incident"]
    seance = f"{board['seance']} {word(SEANCES, board['seance_phase'])}".strip()
    left = f", {here('encore', 'left:')} {board['last_left']}" if board["seance_phase"] == "last" else ""
    phase = f" {sign(board)}   {here('coup', 'round')} {board['round']}"
    phase += f"   {click.style(word(CAUSES, incident['cause']), fg='magenta')}" if incident else ""
    lines = [_beside(heading(status["origin"]), seance + left, width), "", phase, " " + _numbers(board, width - 1), ""]
    return [banner(width), *lines] if status["simulation"] else lines


def banner(width: int) -> str:
    """What nobody may overlook: this is not a table where money is played."""
    return click.style("SIMULATION".center(width), fg="black", bg="yellow", bold=True)


def sign(board: Document) -> str:
    """The phase as a lit sign, and the number that is to be confirmed."""
    phase = board["phase"]
    text = f"  {word(PHASES, phase).upper()}  "
    number = board["detected"] or board["dialled"]
    lit = click.style(text, fg="black", bg=PHASE_COLOURS.get(phase, "white"), bold=True)
    return f"{lit} {chip(number)}" if number else lit


def _beside(left: str, right: str, width: int) -> str:
    return left + " " * max(2, width - width_of(left) - width_of(right)) + right


def _numbers(board: Document, width: int) -> str:
    numbers = board["last_numbers"][: max(1, width // 5)]
    return " ".join(map(chip, numbers)) if numbers else dim(here("aucun numéro encore", "no number so far"))


def _posts(posts: Document, width: int, rows: int) -> list[str]:
    """The occupied posts, in as many columns as fit, in at most ``rows`` rows below their heading."""
    if not posts:
        return [heading(here("Postes", "Posts")) + "  " + here("aucun joueur", "no player")]
    staked, credit = (sum(post[what] for post in posts.values()) for what in ("staked", "credit"))
    title = here(
        f"{len(posts)} occupés, crédit {money(credit)}, en jeu {money(staked)}",
        f"{len(posts)} occupied, credit {money(credit)}, in play {money(staked)}",
    )
    cells = [_cell(number, post) for number, post in posts.items()]
    cell_width = max(map(width_of, cells)) + 2
    columns = max(1, width // cell_width)
    shown = cells if len(cells) <= columns * rows else cells[: columns * rows - 1]
    if len(shown) < len(cells):
        shown = [*shown, dim(here(f"… et {len(cells) - len(shown)} autres", f"… and {len(cells) - len(shown)} more"))]
    lines = [
        "".join(cell + " " * (cell_width - width_of(cell)) for cell in shown[first : first + columns])
        for first in range(0, len(shown), columns)
    ]
    return [heading(here("Postes", "Posts")) + "  " + title, *lines]


def _cell(number: str, post: Document) -> str:
    """``  3   490,00 €   7,00 €``"""
    staked = f"{money(post['staked']):>9}" if post["staked"] else " " * 9
    away = here(" absent", " away") if post["away"] else ""
    return f"{number:>3} {money(post['credit']):>10} {click.style(staked, fg='yellow')}{away}"


def _journal(status: Document) -> str:
    size = here(f"{status['journal_size']} en tout", f"{status['journal_size']} in all")
    return f"{size}, {here('livraison', 'delivery')} {delivery_text(status['delivery'])}"


def _troubles(status: Document, lost: Failure | None) -> list[str]:
    if lost is not None:
        return [click.style(f" {lost.code} {lost.detail} ", fg="white", bg="red")]
    codes = [*status["faults"], *reasons(status["table"])]
    shown = [f" {click.style(code, fg='red')} {title_of(code)}" for code in codes[:TROUBLES_MOST]]
    more = len(codes) - len(shown)
    return [*shown, dim(f" … +{more}, tablectl status")] if more > 0 else shown
