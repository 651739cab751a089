"""``tablectl simulate`` and ``tablectl replay``."""

import json
from pathlib import Path
from typing import Any

import pytest

from controller.rehearsal import simulate as rehearsal
from drivers.twin.wheel_faults import FaultKind
from tests.controller.cli.conftest import Run
from tests.controller.cli.forgery import alter, find_entry, flip_byte

# ── simulate ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def simulate(run: Run, config: Path, out: Path, *words: object) -> dict[str, Any]:
    result = run("simulate", "--config", config, "--out", out, "--json", *words)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_simulations_with_one_seed_have_one_root_and_another_seed_another(
    run: Run, launcher: Path, tmp_path: Path
) -> None:
    first = simulate(run, launcher, tmp_path / "a", "--coups", 4, "--seed", 7)
    second = simulate(run, launcher, tmp_path / "b", "--coups", 4, "--seed", 7)
    other = simulate(run, launcher, tmp_path / "c", "--coups", 4, "--seed", 8)
    assert first["root"] == second["root"]
    assert other["root"] != first["root"]


def test_simulation_sums_up_the_evening_and_its_money(run: Run, launcher: Path, tmp_path: Path) -> None:
    told = simulate(run, launcher, tmp_path / "a", "--coups", 6, "--seed", 7)
    assert (told["rounds"], told["voids"], told["incidents"], told["closed"]) == (6, 0, {}, True)
    assert told["staked_cents"] == told["returned_cents"] + told["won_cents"] + told["kept_cents"]
    assert told["staked_cents"] > 0


def test_simulation_told_to_a_person_names_the_root_and_the_return(run: Run, launcher: Path, tmp_path: Path) -> None:
    result = run("simulate", "--config", launcher, "--coups", "3", "--out", tmp_path / "a", locale="fr_FR.UTF-8")
    assert result.exit_code == 0
    for told in ("SIMULATION", "coups valables", "retour aux joueurs", "racine", "journal verify"):
        assert told in result.stdout
    assert "\u202f€" in result.stdout


def test_simulation_with_faults_counts_incidents_by_cause(run: Run, launcher: Path, tmp_path: Path) -> None:
    words = ("--coups", 4, "--seed", 7, "--faults", "contradicted@2,no-result@4")
    told = simulate(run, launcher, tmp_path / "a", *words)
    assert told["incidents"] == {"number_contradicted": 1, "number_undetected": 1}
    assert (told["rounds"], told["voids"]) == (4, 2)


def test_simulation_with_unknown_faults_names_those_that_exist(run: Run, launcher: Path, tmp_path: Path) -> None:
    result = run("simulate", "--config", launcher, "--coups", "3", "--out", tmp_path / "a", "--faults", "misfire@x")
    assert (result.exit_code, "E-FAULT-PLAN" in result.stderr) == (2, True)
    assert "KIND@SPIN[:SECONDS[:STATE]]" in result.stderr
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("locale", ["en_GB.UTF-8", "fr_FR.UTF-8"])
@pytest.mark.parametrize("command", ["simulate", "demo"])
def test_help_explains_every_fault_that_can_be_injected(run: Run, command: str, locale: str) -> None:
    page = run(command, "--help", locale=locale).stdout
    assert [kind for kind in FaultKind if f"  {kind} " not in page] == []
    assert "misfire@3,silence@5:8:4,bit-noise%2" in " ".join(page.split())


def test_simulation_never_writes_into_a_folder_of_something_else(run: Run, launcher: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine", encoding="ascii")
    result = run("simulate", "--config", launcher, "--coups", "3", "--out", tmp_path, "--yes")
    assert (result.exit_code, "E-SIMULATION-FOLDER" in result.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_simulation_in_the_place_of_another_needs_a_yes(run: Run, launcher: Path, tmp_path: Path) -> None:
    out = tmp_path / "a"
    before = simulate(run, launcher, out, "--coups", 3, "--seed", 1)
    refused = run("simulate", "--config", launcher, "--coups", "3", "--seed", "2", "--out", out)
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    assert json.loads(run("journal", "verify", out, "--json").stdout)["root"] == before["root"]
    after = simulate(run, launcher, out, "--coups", 3, "--seed", 2, "--yes")
    assert json.loads(run("journal", "verify", out, "--json").stdout)["root"] == after["root"] != before["root"]


def test_simulation_of_a_bad_configuration_writes_nothing(run: Run, tmp_path: Path) -> None:
    result = run("simulate", "--config", tmp_path / "none.toml", "--coups", "3", "--out", tmp_path / "a")
    assert (result.exit_code, "E-CONFIG" in result.stderr) == (2, True)
    assert not (tmp_path / "a").exists()


def test_simulation_that_cannot_end_is_given_up_and_says_so(
    run: Run, launcher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "PATIENCE_S", 600)
    monkeypatch.setattr(rehearsal, "PATIENCE_PER_ROUND_S", 0)
    words = ("--coups", "3", "--faults", "no-result%100", "--out", tmp_path / "a")
    result = run("simulate", "--config", launcher, *words)
    assert (result.exit_code, "E-SIMULATION-STUCK" in result.stderr) == (1, True)
    assert run("journal", "verify", tmp_path / "a").exit_code == 0


# ── replay ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_replay_of_an_evening_decides_everything_alike(run: Run, evening: Path) -> None:
    result = run("replay", evening)
    assert result.exit_code == 0
    assert "byte for byte" in result.stdout
    assert "facts/s" in result.stdout
    told = json.loads(run("replay", evening, "--json").stdout)
    assert (told["agrees"], told["seances"]) == (True, 1)
    assert told["entries"] == json.loads(run("journal", "verify", evening, "--json").stdout)["size"]


def test_replay_of_a_changed_pay_out_names_the_entry_with_status_1(run: Run, own_evening: Path) -> None:
    journal = own_evening / "journal.sqlite"
    index = find_entry(journal, "fr.table.post.settled.v1")
    flip_byte(journal, index, b'"credit":4', b'"credit":5')
    result = run("replay", own_evening)
    assert result.exit_code == 1
    assert f"entry {index}" in result.stderr
    assert "E-REPLAY-DIFFERS" in result.stderr


def test_replay_under_other_house_rules_is_refused_at_the_opening(run: Run, own_evening: Path, launcher: Path) -> None:
    rules = launcher.read_text(encoding="utf-8").replace("minimum_cents = 50", "minimum_cents = 100")
    (own_evening / "table.toml").write_text(rules, encoding="utf-8")
    opening = find_entry(own_evening / "journal.sqlite", "fr.table.seance.opened.v1")
    result = run("replay", own_evening)
    assert (result.exit_code, "E-REPLAY-RULES" in result.stderr) == (2, True)
    assert f"entry {opening}" in result.stderr
    assert run("replay", own_evening, "--config", launcher).exit_code == 0


def test_replay_without_the_rules_says_which_file_is_missing(run: Run, own_evening: Path) -> None:
    (own_evening / "table.toml").unlink()
    result = run("replay", own_evening)
    assert (result.exit_code, str(own_evening / "table.toml") in result.stderr) == (2, True)


def test_replay_of_a_journal_with_an_unknown_fact_says_that_it_is_newer(run: Run, own_evening: Path) -> None:
    journal = own_evening / "journal.sqlite"
    flip_byte(journal, find_entry(journal, "fr.table.player.sat.v1"), b"player.sat.v1", b"player.sat.v9")
    result = run("replay", own_evening)
    assert result.exit_code in (1, 2)
    assert result.stderr.startswith("E-REPLAY-")


def test_replay_of_a_journal_with_a_damaged_entry_is_one_sentence(run: Run, own_evening: Path) -> None:
    flip_byte(own_evening / "journal.sqlite", 20, b'"specversion"', b'"specversioN"')
    result = run("replay", own_evening)
    assert result.exit_code == 1
    assert result.stderr.startswith("E-REPLAY-DIFFERS entry 20: it does not have the form of an entry")


def test_replay_compares_its_end_with_the_snapshot_that_a_start_would_use(
    run: Run, launcher: Path, tmp_path: Path
) -> None:
    long = tmp_path / "long"
    simulate(run, launcher, long, "--coups", 20, "--seed", 7)
    assert json.loads(run("replay", long, "--json").stdout)["restored_from"] > 0
    changed = "CAST(replace(CAST(body AS TEXT), '\"sittings\":6', '\"sittings\":9') AS BLOB)"
    alter(long / "journal.sqlite", f"UPDATE snapshot SET body = {changed}")
    result = run("replay", long)
    assert (result.exit_code, "E-REPLAY-STATE" in result.stderr) == (1, True)
