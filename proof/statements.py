"""The report of a séance against its journal: two makers that share no computation must give the same bytes.

One is the product's, which folds the entries one by one. The other asks a database in SQL, over the tables into which
``tablectl journal unpack`` puts a journal. Evenings are simulated with croupiers and launchers, both wheels, and with
wheels that fail in many ways. The séance's totals are counted a third time, by adding up what the evening's witnesses
saw happen.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from controller.certify.reader import Reader
from controller.registers.source import at_once, find_seance, state_from
from controller.rehearsal.simulate import JOURNAL, simulate
from controller.unpack import unpack
from drivers.twin.wheel_faults import read_plan
from proof.results import Result, all_of
from proof.sql_report import sql_report

EVENINGS = 120
COUPS = 6

CONFIGS = ("roulette-croupier", "roulette-launcher-38", "roulette-launcher", "roulette-croupier-38")
FAULTS = (
    "",
    "silence@2:8:4,misfire%10",
    "ball-removed%20,sensor-fault@3,same-direction%10",
    "no-number-line%15,contradicted@4,power-cycle@2",
    "no-more-bets-skipped%15,no-result@3,bit-noise%2",
)
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Evening:
    """What came of one evening: whether the reports were the same, and the totals what was seen."""

    same: bool
    counted: bool
    rounds: int
    lines: int


def evening(number: int, folder: Path) -> Evening:
    """Play one evening and compare."""
    config = ROOT / "config" / f"{CONFIGS[number % len(CONFIGS)]}.toml"
    plan = FAULTS[number % len(FAULTS)]
    played = simulate(config, folder, coups=COUPS, seed=number, faults=read_plan(plan) if plan else None)
    with Reader(folder / JOURNAL) as reader:
        unpack(reader.leaves(0, reader.size), folder / "unpacked.db")
        found = at_once(find_seance(reader))
        statement = at_once(state_from(reader))
        origin = json.loads(reader.leaf(0))["source"]
        theirs = sql_report(folder / "unpacked.db", statement.seance, reader.root(found.stop), origin)
    seen = played.seen
    counted = f"coups {seen.rounds}\n" in statement.text and f"gagne-cents {seen.won}\n" in statement.text
    return Evening(statement.report == theirs, counted, seen.rounds + seen.voids, len(theirs.splitlines()))


def prove() -> Iterator[Result]:
    """The comparison over ``EVENINGS`` evenings."""
    evenings = []
    for number in range(EVENINGS):
        with tempfile.TemporaryDirectory() as folder:
            evenings.append(evening(number, Path(folder)))
    lines = sum(one.lines for one in evenings)
    claim = f"report of a séance from Python and from SQL ({lines:,} lines): same bytes"
    yield all_of(claim, sum(one.same for one in evenings), EVENINGS, "evenings", at_least=EVENINGS)
    rounds = sum(one.rounds for one in evenings)
    claim = f"rounds and winnings of the statement as the witnesses saw them ({rounds:,})"
    yield all_of(claim, sum(one.counted for one in evenings), EVENINGS, "evenings", at_least=EVENINGS)
