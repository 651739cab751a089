"""Every example of a configuration starts: it loads, plays an evening, verifies, and is decided again alike."""

import json
from pathlib import Path

import pytest

from controller.config import load
from games.roulette.game import BUTTONS
from tests.controller.cli.conftest import Run

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "config").glob("*.toml"))


def name(path: Path) -> str:
    return path.stem


def test_examples_cover_both_wheels_and_both_conducts() -> None:
    kinds = {(load(path).roulette.wheel, load(path).roulette.conduct) for path in EXAMPLES}
    assert kinds == {(37, "launcher"), (37, "croupier"), (38, "launcher"), (38, "croupier")}
    assert len({load(path).table.name for path in EXAMPLES}) == len(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_example_plays_six_rounds_verifies_and_replays(run: Run, example: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    played = run("simulate", "--config", example, "--coups", "6", "--seed", "7", "--out", out, "--json")
    assert played.exit_code == 0, played.output
    told = json.loads(played.stdout)
    assert (told["rounds"], told["voids"], told["closed"]) == (6, 0, True)
    assert run("journal", "verify", out).exit_code == 0
    assert run("replay", out).exit_code == 0


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
@pytest.mark.parametrize("fault", ["misfire", "sensor-fault", "no-result", "unplug", "same-direction"])
def test_example_with_an_ailing_wheel_still_plays_its_evening(
    run: Run, example: Path, fault: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("--coups", "3", "--seed", "7", "--faults", f"{fault}@2", "--out", out, "--json")
    played = run("simulate", "--config", example, *words)
    assert played.exit_code == 0, played.output
    told = json.loads(played.stdout)
    assert (told["rounds"], told["closed"]) == (3, True)
    assert run("replay", out).exit_code == 0


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_example_wires_what_its_conduct_needs_and_no_reserved_pin(example: Path) -> None:
    config = load(example)
    assert set(config.panel.buttons) <= set(BUTTONS)
    if config.roulette.conduct == "croupier":
        assert set(config.panel.buttons) == set(BUTTONS)
        assert set(config.panel.keys) == {"croupier", "director"}
    pins = {*config.panel.buttons.values(), *config.panel.keys.values(), *config.panel.lamps.values()}
    assert not pins & {0, 1, 2, 3, 14, 15}, "board identity, I2C and the serial line"
