"""Journals with a past: a simulated evening, certified again and again until there are as many facts as are wanted.

The entries are real ones, snapshots are taken as a table takes them, and everything verifies. Only the first evening
can be replayed: the later ones repeat its rounds under the same numbers.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from controller import codec
from controller.certify.journal import Journal
from controller.certify.leaf import Record, parse_leaf
from controller.certify.note import Signer
from controller.certify.reader import Reader
from controller.config import load
from controller.delivery.publisher import BROKER_CURSOR
from controller.rehearsal.simulate import JOURNAL, simulate
from controller.table import encode_snapshot
from drivers.clock import SystemClock
from games.roulette.coup import RouletteState
from games.roulette.game import Roulette
from games.rules import Fact

CONFIG = Path("config/roulette-launcher.toml")
COUPS = 50
"""Rounds of the evening: about a thousand facts, with six players."""

BATCH = 2_048
"""Entries in one commit. A table never waits for so many, but an old journal does not show how it came to be."""


@dataclass(frozen=True, slots=True)
class Evening:
    """One evening from the first start to the last stop."""

    game: Roulette
    leaves: list[bytes]
    records: list[Record]
    state: RouletteState
    """What the evening leaves behind."""


def play_evening(folder: Path) -> Evening:
    """Simulate an evening in ``folder``."""
    played = simulate(CONFIG, folder, coups=COUPS, seed=7)
    game = Roulette(load(CONFIG, {"table": {"simulation": True}}).rules)
    with Reader(folder / JOURNAL) as reader:
        leaves = list(reader.leaves(0, played.size))
    records, state = [], game.initial()
    for leaf in leaves:
        entry = parse_leaf(leaf)
        records.append(Record(entry.kind, entry.data, entry.seance))
        state = game.evolve(state, _fact(entry.kind, leaf))
    return Evening(game, leaves, records, state)


def _fact(kind: str, leaf: bytes) -> Fact:
    return codec.decode_fact(kind, json.loads(leaf)["data"])


def fill(file: Path, signer: Signer, evening: Evening, facts: int) -> int:
    """Certify the evening in the empty journal ``file`` until it has about ``facts`` entries; returns how many.

    The end is delivered, so that a table that starts on it has no past to send.
    """
    journal = Journal.open(file, signer, SystemClock(), "0" * 16, lambda: "free", allow_volatile=True)
    try:
        for records in _batches(evening, max(1, round(facts / len(evening.records)))):
            journal.append(records, snapshot=encode_snapshot(evening.state))
        journal.set_cursor(BROKER_CURSOR, journal.size)
        return journal.size
    finally:
        journal.close()


def _batches(evening: Evening, evenings: int) -> Iterator[list[Record]]:
    """Whole evenings, because a snapshot of what one leaves behind is taken with each batch."""
    at_once = max(1, BATCH // len(evening.records))
    for done in range(0, evenings, at_once):
        yield evening.records * min(at_once, evenings - done)
