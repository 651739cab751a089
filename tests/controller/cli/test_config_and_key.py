"""``tablectl config`` and ``tablectl key``."""

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from controller.certify.keys import load_key
from controller.certify.note import Verifier
from controller.options import Config
from controller.options_french import FRENCH
from tests.controller.cli.conftest import Run

# ── config ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_check_of_good_configurations_says_ok_for_each(run: Run, launcher: Path, croupier: Path) -> None:
    result = run("config", "check", launcher, croupier)
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["ok", "ok"]


def test_check_of_a_bad_configuration_names_every_mistake_with_its_place_and_value(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('game = "roulette"\n[table]\nsite = "x"\nname = "t1"\nposts = 500\npost = 1\n', encoding="utf-8")
    result = run("config", "check", bad)
    assert result.exit_code == 2
    assert "E-CONFIG" in result.stdout
    assert "table.posts = 500: " in result.stdout
    assert "at most 250" in result.stdout
    assert "table.post = 1: unknown option; did you mean posts?" in result.stdout
    assert "wheel: is missing" in result.stdout


def test_check_in_french_says_each_mistake_in_french(run: Run, tmp_path: Path, launcher: Path) -> None:
    bad = tmp_path / "bad.toml"
    source = launcher.read_text(encoding="utf-8")
    bad.write_text(source.replace("posts = 6", 'posts = "six"\npost = 1').replace("t07", "T 7", 1), encoding="utf-8")
    shown = run("config", "check", bad, "--lang", "fr").stdout.replace("\u00a0", " ")
    assert "table.posts = 'six' : doit être un nombre entier, écrit sans guillemets" in shown
    assert "table.post = 1 : option inconnue ; vouliez-vous dire posts ?" in shown
    assert "table.name = 'T 7' : attend 1 à 32 minuscules sans accent" in shown


def test_options_are_explained_in_french_each_by_its_own_sentence(run: Run) -> None:
    english = json.loads(run("config", "options", "--json").stdout)
    french = json.loads(run("config", "options", "--json", "--lang", "fr").stdout)
    options = {f"{name}.{one['option']}".removeprefix(".") for name, told in french.items() for one in told}
    assert set(FRENCH) == options | set(french), "no option without a French sentence, and none without an option"
    same = [
        one["option"]
        for name, told in french.items()
        for one, other in zip(told, english[name], strict=True)
        if one["description"] == other["description"]
    ]
    assert same == []


def test_check_of_several_configurations_judges_each_and_fails_for_one(
    run: Run, launcher: Path, tmp_path: Path
) -> None:
    result = run("config", "check", launcher, tmp_path / "none.toml", "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == 2
    assert [one["usable"] for one in told] == [True, False]
    assert "No such file" in told[1]["faults"][0]["wrong"]


def test_options_explain_every_option_of_every_section(run: Run) -> None:
    told: dict[str, Any] = json.loads(run("config", "options", "--json").stdout)
    sections = {"", "table", "journal", "roulette", "wheel", "wheel.parameters", "panel", "mqtt", "mirror", "person"}
    assert sections <= set(told)
    assert [(name, one["option"]) for name, options in told.items() for one in options if not one["description"]] == []
    assert {one["option"] for one in told["roulette"]} == set(Config.model_fields["roulette"].annotation.model_fields)


def test_options_of_one_section_show_type_default_bounds_and_meaning(run: Run) -> None:
    shown = run("config", "options", "roulette")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    at = next(at for at, line in enumerate(lines) if line.strip().startswith("betting_ms"))
    assert lines[at].split() == ["betting_ms", "integer,", "≥", "100,", "≤", "3600000", "=", "15000"]
    assert "faites vos jeux" in lines[at + 1]
    assert "required" in next(line for line in lines if line.strip().startswith("wheel "))


def test_options_of_an_unknown_section_name_the_known_ones(run: Run) -> None:
    result = run("config", "options", "wheels")
    assert result.exit_code == 2
    assert "wheel.parameters" in result.stderr


# ── key ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def simulated(launcher: Path, folder: Path) -> Path:
    """A configuration whose key and journal lie in ``folder``."""
    text = launcher.read_text(encoding="utf-8")
    text = text.replace('key = "credential:table-key"', f'key = "{folder / "table.key"}"\nvolatile = true')
    text = text.replace("/var/lib/table-controller/t07/journal.sqlite", str(folder / "journal.sqlite"))
    config = folder / "table.toml"
    config.write_text(text.replace("posts = 6", "posts = 6\nsimulation = true"), encoding="utf-8")
    return config


def test_key_of_a_table_is_made_where_its_configuration_looks_for_it(run: Run, launcher: Path, tmp_path: Path) -> None:
    result = run("key", "create", "--config", simulated(launcher, tmp_path), "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert load_key(tmp_path / "table.key").verifier.vkey == told["vkey"]
    assert told["name"] == "casino.example.simulation/table/t07/1"
    assert stat.S_IMODE((tmp_path / "table.key").stat().st_mode) == 0o600


def test_key_of_a_person_is_made_with_its_badge_and_site(run: Run, tmp_path: Path) -> None:
    words = ("key", "create", "--person", "A17", "--site", "casino.example", "--out", tmp_path / "a17.key")
    assert run(*words).exit_code == 0
    shown = run("key", "show", tmp_path / "a17.key", "--json")
    verifier = Verifier.parse(json.loads(shown.stdout)["vkey"])
    assert verifier.name == "casino.example/personne/A17"


def test_key_that_exists_is_never_replaced(run: Run, tmp_path: Path) -> None:
    words = ("key", "create", "--person", "A17", "--site", "casino.example", "--out", tmp_path / "a17.key")
    run(*words)
    before = (tmp_path / "a17.key").read_bytes()
    again = run(*words)
    assert (again.exit_code, "E-KEY-EXISTS" in again.stderr) == (2, True)
    assert (tmp_path / "a17.key").read_bytes() == before


def test_key_given_by_systemd_asks_for_the_file_to_write(run: Run, launcher: Path) -> None:
    result = run("key", "create", "--config", launcher)
    assert result.exit_code == 64
    assert "--out" in result.stderr


def test_key_create_without_enough_words_says_which_go_together(run: Run, tmp_path: Path) -> None:
    for words in ((), ("--person", "A17"), ("--person", "A17", "--out", tmp_path / "k"), ("--site", "casino.example")):
        result = run("key", "create", *words)
        assert (result.exit_code, "--person BADGE --site SITE --out FILE" in result.stderr) == (64, True)
    assert list(tmp_path.iterdir()) == []


def test_key_shown_never_has_its_private_half(run: Run, tmp_path: Path) -> None:
    run("key", "create", "--person", "A17", "--site", "casino.example", "--out", tmp_path / "a17.key")
    private = (tmp_path / "a17.key").read_text(encoding="ascii").split("+", 4)[-1].strip()
    for words in (("key", "show", tmp_path / "a17.key"), ("key", "show", tmp_path / "a17.key", "--json")):
        shown = run(*words)
        assert shown.exit_code == 0
        assert private not in shown.output
        assert "PRIVATE" not in shown.output


def test_key_shown_of_a_public_key_file_is_that_key(run: Run, evening: Path) -> None:
    vkey = (evening / "table.vkey").read_text(encoding="ascii").strip()
    assert json.loads(run("key", "show", evening / "table.vkey", "--json").stdout)["vkey"] == vkey


def test_key_shown_of_something_else_is_refused(run: Run, launcher: Path) -> None:
    result = run("key", "show", launcher)
    assert (result.exit_code, "E-KEY-MALFORMED" in result.stderr) == (2, True)


def test_key_that_others_may_read_is_refused(run: Run, tmp_path: Path) -> None:
    run("key", "create", "--person", "A17", "--site", "casino.example", "--out", tmp_path / "a17.key")
    (tmp_path / "a17.key").chmod(0o644)
    result = run("key", "show", tmp_path / "a17.key")
    assert (result.exit_code, "E-KEY-EXPOSED" in result.stderr) == (2, True)


@pytest.mark.parametrize("example", ["launcher", "croupier"])
def test_options_that_an_example_uses_are_all_explained(run: Run, root: Path, example: str) -> None:
    told = json.loads(run("config", "options", "--json").stdout)
    document = tomllib.loads((root / "config" / f"roulette-{example}.toml").read_text(encoding="utf-8"))
    for section, options in document.items():
        if isinstance(options, dict):
            assert set(options) <= {one["option"] for one in told[section]}
