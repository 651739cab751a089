"""A journal unpacked for an auditor says what the journal says."""

import json
from pathlib import Path

import pytest
import sqlite_utils

from controller.certify.reader import Reader
from controller.rehearsal.simulate import JOURNAL, simulate
from controller.unpack import table_of, unpack


@pytest.fixture(scope="module")
def leaves(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    out = tmp_path_factory.mktemp("unpack") / "out"
    simulate(Path("config/roulette-launcher.toml"), out, coups=4, seed=5)
    with Reader(out / JOURNAL) as reader:
        return list(reader.leaves(0, reader.size))


def test_unpacked_journal_has_a_row_for_every_entry(leaves: list[bytes], tmp_path: Path) -> None:
    rows = unpack(leaves, tmp_path / "facts.sqlite")
    assert sum(rows.values()) == len(leaves)
    assert set(rows) == {table_of(json.loads(leaf)["type"]) for leaf in leaves}


def test_unpacked_stakes_add_up_to_what_the_rounds_took(leaves: list[bytes], tmp_path: Path) -> None:
    unpack(leaves, tmp_path / "facts.sqlite")
    database = sqlite_utils.Database(tmp_path / "facts.sqlite")
    by_round = "SELECT round, SUM(cents) FROM stakes_placed_v1 GROUP BY round"
    staked = dict(database.execute(by_round).fetchall())
    closed = dict(database.execute("SELECT round, staked FROM round_closed_v1").fetchall())
    database.close()
    assert staked == closed


def test_journal_is_never_unpacked_over_a_file_that_exists(leaves: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "facts.sqlite").write_text("something dear")
    with pytest.raises(FileExistsError):
        unpack(leaves, tmp_path / "facts.sqlite")
    assert (tmp_path / "facts.sqlite").read_text() == "something dear"
