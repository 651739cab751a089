"""The command line as a whole: help, languages, JSON, exit statuses, and what a terminal or a pipe makes of it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result

from controller.cli import COMMANDS, main
from controller.cli.commands import Argument, Command, Group, Option
from tests.controller.cli.conftest import Run


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below, groups included, with the words that lead to it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*path, name))


EVERY = list(commands(main))
LEAVES = [(path, command) for path, command in EVERY if not isinstance(command, click.Group)]


def name(case: object) -> str:
    return " ".join(case) if isinstance(case, tuple) else ""


def tablectl(*words: object, input_text: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program itself."""
    settings = {"PATH": os.environ["PATH"], "LC_ALL": "en_GB.UTF-8", "PYTHONUTF8": "1", **environment}
    command = [sys.executable, "-m", "controller.cli", *map(str, words)]
    return subprocess.run(
        command, input=input_text, capture_output=True, text=True, encoding="utf-8", env=settings, check=False
    )


@pytest.mark.parametrize(("path", "command"), EVERY, ids=name)
def test_help_of_every_command_explains_it_in_english_and_in_french(
    run: Run, path: tuple[str, ...], command: click.Command
) -> None:
    assert isinstance(command, Command | Group)
    english, french = run(*path, "--help"), run(*path, "--help", locale="fr_FR.UTF-8")
    assert (english.exit_code, french.exit_code) == (0, 0)
    assert english.stdout.startswith("Usage: tablectl")
    assert french.stdout.startswith("Usage\u00a0: tablectl")
    assert command.phrase.en.split()[0] in english.stdout
    assert command.phrase.fr.split()[0] in french.stdout
    assert english.stdout != french.stdout


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=name)
def test_every_command_has_json_and_documents_its_exit_statuses(
    run: Run, path: tuple[str, ...], command: click.Command
) -> None:
    page = run(*path, "--help").stdout
    assert "--json" in page
    assert "Exit status:" in page
    assert isinstance(command, Command)
    assert 0 in command.exits


@pytest.mark.parametrize(("path", "command"), EVERY, ids=name)
def test_every_option_and_argument_is_explained_in_both_languages(
    path: tuple[str, ...], command: click.Command
) -> None:
    for parameter in command.params:
        assert isinstance(parameter, Option | Argument), parameter.name
        assert parameter.phrase.fr
        assert parameter.phrase.en


def test_program_without_a_command_lists_them_all(run: Run) -> None:
    result = run()
    assert result.exit_code == 0
    assert [command for command in COMMANDS if f"\n  {command} " not in result.stdout] == []


def test_language_option_beats_the_locale(run: Run) -> None:
    assert "What it means for the table" in run("explain", "wheel-silent", "--lang", "en", locale="fr_FR.UTF-8").stdout
    assert "Ce que cela signifie" in run("--lang", "fr", "explain", "wheel-silent").stdout


@pytest.mark.parametrize(
    ("variables", "french"),
    [
        ({"LC_ALL": "fr_FR.UTF-8"}, True),
        ({"LC_ALL": None, "LC_MESSAGES": "fr_CH.UTF-8", "LANG": "de_CH.UTF-8"}, True),
        ({"LC_ALL": None, "LC_MESSAGES": None, "LANG": "fr"}, True),
        ({"LC_ALL": "C", "LANG": "fr_FR.UTF-8"}, False),
        ({"LC_ALL": None, "LC_MESSAGES": None, "LANG": None}, False),
    ],
)
def test_language_follows_the_locale_variables_in_their_order(variables: dict[str, str | None], french: bool) -> None:
    from click.testing import CliRunner

    answer = CliRunner().invoke(main, ["explain", "wheel-silent"], env=variables).stdout
    assert ("Ce qu'il faut faire" in answer) is french


def test_command_misspelt_is_refused_with_the_nearest_one(run: Run) -> None:
    result = run("jurnal")
    assert (result.exit_code, result.stdout) == (64, "")
    assert "'jurnal' is not a command; there are: journal" in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("explain", "--bogus"), "there is no option --bogus"),
        (("rules",), "--config is missing"),
        (("journal", "show", "folder"), "INDEX is missing"),
        (("journal", "tail", "folder", "-n", "many"), "'many' must be a whole number, 0 or more"),
        (("simulate", "--config", "x", "--out", "y", "--coups", "2"), "'2' must be a whole number, 3 or more"),
        (("explain",), "give a code, or --all"),
    ],
)
def test_command_line_that_is_wrong_is_refused_in_one_sentence_with_status_64(
    run: Run, words: tuple[str, ...], told: str
) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (64, "")
    assert result.stderr.startswith("E-USAGE ")
    assert told in result.stderr


def test_command_line_that_is_wrong_is_refused_in_french_to_the_french(run: Run) -> None:
    assert "il manque --config" in run("rules", locale="fr_FR.UTF-8").stderr


def test_failure_told_to_a_program_is_a_json_document(run: Run, tmp_path: Path) -> None:
    result: Result = run("rules", "--config", tmp_path / "nowhere.toml", "--json")
    error = json.loads(result.stdout)["error"]
    assert (result.exit_code, error["code"]) == (2, "E-CONFIG")
    assert "No such file" in error["message"]
    assert error["advice"]


@pytest.mark.parametrize(
    "words",
    [
        ("rules", "--config"),
        ("config", "check"),
        ("key", "show"),
        ("journal", "verify"),
        ("journal", "tail"),
        ("replay",),
        ("doctor", "--config"),
        ("status", "--config"),
    ],
    ids=name,
)
def test_file_that_does_not_exist_is_told_in_one_sentence_without_a_traceback(
    run: Run, words: tuple[str, ...], tmp_path: Path
) -> None:
    missing = tmp_path / "nowhere"
    result = run(*words, missing)
    assert result.exit_code in (2, 5)
    told = result.stdout + result.stderr
    assert told.count(str(missing)) >= 1
    assert "Traceback" not in told


def test_module_run_by_python_is_the_same_program() -> None:
    shown = tablectl("--version")
    assert (shown.returncode, shown.stdout.split()[0]) == (0, "tablectl")


def test_program_installed_under_its_name_runs() -> None:
    program = Path(sys.executable).with_name("tablectl")
    shown = subprocess.run([program, "explain", "E-CONFIG"], capture_output=True, text=True, check=False)
    assert (shown.returncode, "E-CONFIG" in shown.stdout) == (0, True)


def test_help_of_the_program_imports_no_command() -> None:
    loaded = "import sys; from controller.cli import main; main(['--help'], standalone_mode=False)"
    ends = "\nexcept SystemExit: print([m for m in sys.modules if m in ('pydantic', 'rich', 'asyncio', 'sqlite3')])"
    script = "try:\n " + loaded.replace("; ", "\n ") + ends
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert shown.stdout.splitlines()[-1] == "[]", shown.stderr


def test_output_to_a_pipe_has_no_colours() -> None:
    assert "\x1b" not in tablectl("explain", "wheel-silent").stdout
    assert "\x1b" not in tablectl("explain", "wheel-sillent").stderr


def test_output_in_an_encoding_without_our_letters_is_still_given() -> None:
    shown = tablectl("explain", "wheel-silent", "--lang", "fr", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert shown.returncode == 0
    assert "Ce qu'il faut faire" in shown.stdout


def test_output_whose_reader_went_away_ends_quietly(evening: Path) -> None:
    command = [sys.executable, "-m", "controller.cli", "journal", "export", str(evening)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
