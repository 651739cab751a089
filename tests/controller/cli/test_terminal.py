"""What only a terminal shows: questions, bars of progress, colours, and boards that fit."""

import json
from pathlib import Path

from tests.controller.cli.conftest import Run, Serve, Status
from tests.controller.cli.terminal import Terminal


def test_question_answered_no_changes_nothing_and_yes_goes_on(run: Run, launcher: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("simulate", "--config", launcher, "--coups", "3", "--out", out)
    run(*words, "--seed", "1")
    before = json.loads(run("journal", "verify", out, "--json").stdout)["root"]
    with Terminal(*words, "--seed", "2") as terminal:
        terminal.see("[y/N]")
        terminal.type("n\n")
        assert terminal.status() == 1
        assert "Nothing was changed" in terminal.shown
    assert json.loads(run("journal", "verify", out, "--json").stdout)["root"] == before
    with Terminal(*words, "--seed", "2", locale="fr_FR.UTF-8") as terminal:
        terminal.see("[o/N]")
        terminal.type("o\n")
        assert terminal.status() == 0
        assert "Coups" in terminal.shown, "progress, by rounds"
    assert json.loads(run("journal", "verify", out, "--json").stdout)["root"] != before


def test_colours_are_for_terminals_that_want_them(evening: Path) -> None:
    with Terminal("journal", "tail", evening) as terminal:
        assert terminal.status() == 0
        assert "\x1b[36m" in terminal.shown


def test_watch_draws_the_board_of_a_simulation_and_ends_cleanly_on_control_c(serve: Serve, betting: Status) -> None:
    with Terminal("watch", "--socket", serve(betting)) as terminal:
        shown = terminal.see("Ctrl-C")
        assert "SIMULATION" in shown
        assert "PLACE YOUR BETS" in shown
        terminal.type("\x03")
        assert terminal.status() == 0
        assert "Traceback" not in terminal.shown


def test_devices_watch_draws_the_panel_and_ends_cleanly_on_control_c(serve: Serve, betting: Status) -> None:
    with Terminal("devices", "watch", "--socket", serve(betting), lines=40, locale="fr_FR.UTF-8") as terminal:
        terminal.see("faites-vos-jeux")
        terminal.type("\x03")
        assert terminal.status() == 0


def test_progress_of_a_verification_is_drawn_and_taken_away(evening: Path) -> None:
    with Terminal("journal", "verify", evening) as terminal:
        assert terminal.status() == 0
        assert "Verifying" in terminal.shown
        assert "nothing changed since it was signed" in terminal.shown
