"""``tablectl watch``: the table, live: its state from the daemon, its certified entries from the journal itself."""

import asyncio
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from controller.certify.faults import JournalFault
from controller.certify.reader import Reader
from controller.cli.board import board_lines
from controller.cli.commands import Command
from controller.cli.entries import Entry, entry_of
from controller.cli.failure import DONE, Failure, report
from controller.cli.language import Phrase
from controller.cli.link import SILENT_EXIT, Link, link_to, table_options
from controller.cli.output import wants_json
from controller.cli.target import JOURNAL
from controller.config import load
from controller.config_faults import ConfigError

PERIOD_S = 0.25
"""How often the daemon and the journal are asked."""

ENTRIES_BOUND = 200
"""Entries kept for the board: more than any terminal has lines."""


def journal_of(link: Link, status: Mapping[str, Any]) -> Path | None:
    """Where the journal of a running table is: by its configuration, else beside its socket."""
    if link.config is not None:
        return link.config.journal.file
    named, beside = Path(status.get("config", "")), link.socket.parent / JOURNAL
    if named.is_absolute():
        try:
            return load(named).journal.file
        except ConfigError:
            pass  # not readable from this account
    return beside if beside.exists() else None


class Feed:
    """The entries of a journal as they are certified. A journal that cannot be read gives none."""

    def __init__(self, file: Path | None, start_before: int) -> None:
        """``start_before``: how many of the entries that are there already are wanted."""
        self._stack = ExitStack()
        self._reader: Reader | None = None
        self._next = 0
        if file is None:
            return
        try:
            self._reader = self._stack.enter_context(Reader(file))
            self._next = max(0, self._reader.size - start_before)
        except JournalFault:
            self._reader = None

    def close(self) -> None:
        """Let the journal go."""
        self._stack.close()

    def fresh(self) -> list[bytes]:
        """The leaves since the last call."""
        if self._reader is None:
            return []
        leaves = list(self._reader.leaves(self._next, self._reader.size))
        self._next += len(leaves)
        return leaves


async def draw(link: Link, status: Mapping[str, Any], feed: Feed) -> None:
    """Draw the board until cancelled; a table that answers no more is waited for."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console, entries = Console(), deque[Entry](maxlen=ENTRIES_BOUND)
    lost: Failure | None = None
    with Live(console=console, auto_refresh=False, screen=True) as live:
        while True:
            entries.extend(map(entry_of, feed.fresh()))
            lines = board_lines(status, tuple(entries), console.width, console.height, lost)
            live.update(Text.from_ansi("\n".join(lines), no_wrap=True, overflow="crop"), refresh=True)
            await asyncio.sleep(PERIOD_S)
            try:
                status, lost = await link.asked(), None
            except Failure as failure:
                lost = failure


async def follow(link: Link, feed: Feed) -> None:
    """Print one line for each new entry until cancelled; say it once when the table answers no more."""
    answers = True
    while True:
        for leaf in feed.fresh():
            click.echo(leaf.decode() if wants_json() else entry_of(leaf).line)
        try:
            await link.asked()
            answers = True
        except Failure as failure:
            if answers:
                report(failure)
            answers = False
        await asyncio.sleep(PERIOD_S)


@click.command(
    "watch",
    cls=Command,
    phrase=Phrase(
        "La table en direct, jusqu'à Ctrl-C.\n\n"
        "Phase, numéros, postes, dernières écritures certifiées, livraison. Sans terminal, ou avec --json : une ligne "
        "par nouvelle écriture.",
        "The table, live, until Ctrl-C.\n\n"
        "Phase, numbers, posts, last certified entries, delivery. Without a terminal, or with --json: one line for "
        "each new entry.",
    ),
    exits={
        0: Phrase("interrompu", "interrupted"),
        2: Phrase("configuration inutilisable", "configuration cannot be used"),
        3: SILENT_EXIT,
    },
)
@table_options
def command(config: Path | None, socket: Path | None) -> int:
    """Watch the table."""
    link = link_to(config, socket)
    status = link.ask()
    drawn = sys.stdout.isatty() and not wants_json()
    feed = Feed(journal_of(link, status), ENTRIES_BOUND if drawn else 0)
    try:
        asyncio.run(draw(link, status, feed) if drawn else follow(link, feed))
    except KeyboardInterrupt:
        return DONE
    finally:
        feed.close()
    return DONE
