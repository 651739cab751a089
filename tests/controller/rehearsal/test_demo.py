"""Preparing a demonstration: a folder of its own, keys of its own, and nothing of a real table or of anybody else."""

import stat
from pathlib import Path

import pytest

from controller.certify.journal import Journal
from controller.certify.keys import load_key
from controller.certify.log_keys import LogKeys
from controller.certify.verify import verify
from controller.config import load
from controller.rehearsal.demo import MARK, ROLES, DemoError, prepare
from drivers.clock import ManualClock
from tests.controller.rehearsal.house import ROOT

EXAMPLES = sorted((ROOT / "config").glob("*.toml"))
LAUNCHER = ROOT / "config" / "roulette-launcher.toml"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_demo_of_every_example_is_prepared_with_a_configuration_that_tabled_takes(
    tmp_path: Path, example: Path
) -> None:
    stage = prepare(example, tmp_path / "demo", speed=10, seed=7, faults="")
    config = load(stage.config_file)
    assert config == stage.config
    assert config.table.simulation
    assert config.origin.partition("/")[0].endswith(".simulation")
    assert load_key(Path(config.journal.key)).name == config.origin
    assert {person.badge for person in config.person} == set(ROLES)
    assert stat.S_IMODE(Path(config.journal.key).stat().st_mode) == 0o600


def test_demo_journal_is_empty_and_verifies(tmp_path: Path) -> None:
    stage = prepare(LAUNCHER, tmp_path / "demo", speed=10, seed=7, faults="")
    verdict = verify(stage.config.journal.file, LogKeys.parse(stage.vkey_file.read_text(encoding="ascii")), processes=1)
    assert (verdict.ok, verdict.size) == (True, 0)
    signer = load_key(Path(stage.config.journal.key))
    Journal.open(
        stage.config.journal.file, signer, ManualClock(), "0" * 16, lambda: "free", allow_volatile=True
    ).close()


def test_demo_is_as_many_times_faster_as_was_asked_and_its_pauses_are_never_too_short(tmp_path: Path) -> None:
    plain = load(LAUNCHER)
    for speed in (1, 10, 60):
        stage = prepare(LAUNCHER, tmp_path / "demo", speed=speed, seed=7, faults="")
        assert stage.config.roulette.betting_ms == max(100, plain.roulette.betting_ms // speed)
        assert stage.config.wheel.status_period_ms == max(5, 500 // speed)
    assert prepare(LAUNCHER, tmp_path / "demo", speed=None, seed=7, faults="").speed == plain.rehearsal.speed


def test_demo_folder_of_an_earlier_one_is_made_anew_with_other_keys(tmp_path: Path) -> None:
    first = prepare(LAUNCHER, tmp_path / "demo", speed=10, seed=7, faults="").vkey_file.read_text(encoding="ascii")
    (tmp_path / "demo" / "tabled.log").write_text("old", encoding="utf-8")
    second = prepare(LAUNCHER, tmp_path / "demo", speed=10, seed=7, faults="").vkey_file.read_text(encoding="ascii")
    assert first != second
    assert not (tmp_path / "demo" / "tabled.log").exists()


def test_demo_folder_that_holds_anything_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "demo" / "letters.txt"
    mine.parent.mkdir()
    mine.write_text("dear", encoding="utf-8")
    with pytest.raises(DemoError, match=r"E-DEMO-FOLDER .*choose another --out"):
        prepare(LAUNCHER, mine.parent, speed=10, seed=7, faults="")
    assert mine.read_text(encoding="utf-8") == "dear"
    assert not (mine.parent / MARK).exists()
