"""``tablectl explain``."""

import json

from controller.faults import catalogue
from tests.controller.cli.conftest import Run


def test_explain_a_code_tells_what_it_means_and_what_to_do(run: Run) -> None:
    result = run("explain", "E-WHEEL-SILENT")
    assert result.exit_code == 0
    for part in ("The wheel is silent", "What it means for the table", "What to do"):
        assert part in result.stdout


def test_explain_a_code_typed_carelessly_finds_it(run: Run) -> None:
    assert run("explain", "wheel-silent").stdout == run("explain", "e-Wheel-Silent").stdout


def test_explain_an_unknown_code_suggests_near_ones_with_status_1(run: Run) -> None:
    result = run("explain", "E-WHEEL-SIENT")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean E-WHEEL-SILENT" in result.stderr


def test_explain_all_lists_every_code_on_a_line_of_its_own(run: Run) -> None:
    lines = run("explain", "--all").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(catalogue())


def test_explain_for_a_program_gives_every_part(run: Run) -> None:
    told = json.loads(run("explain", "journal-altered", "--json").stdout)
    assert (told["code"], told["exit"]) == ("E-JOURNAL-ALTERED", 1)
    assert told["title"]
    assert told["means"]
    assert told["do"]
    assert len(json.loads(run("explain", "--all", "--json").stdout)) == len(catalogue())
