"""``tablectl journal``: verify, tail, show, export, create, unpack."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from controller.certify.leaf import leaf_hash, parse_leaf
from controller.certify.reader import Reader
from controller.certify.tree import root_of, verify_inclusion
from tests.controller.cli.conftest import Run
from tests.controller.cli.forgery import alter, find_entry, flip_byte
from tests.controller.cli.test_config_and_key import simulated


def leaves_of(folder: Path) -> list[bytes]:
    with closing(Reader(folder / "journal.sqlite")) as reader:
        return list(reader.leaves(0, reader.size))


# ── verify ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_verify_of_an_intact_journal_tells_size_root_and_verdict(run: Run, evening: Path) -> None:
    leaves = leaves_of(evening)
    result = run("journal", "verify", evening)
    assert result.exit_code == 0
    assert str(len(leaves)) in result.stdout
    assert root_of([leaf_hash(leaf) for leaf in leaves]).hex() in result.stdout
    assert "nothing changed since it was signed" in result.stdout


def test_verify_by_file_and_by_folder_is_the_same(run: Run, evening: Path) -> None:
    by_folder = run("journal", "verify", evening, "--json").stdout
    assert run("journal", "verify", evening / "journal.sqlite", "--json").stdout == by_folder
    told = json.loads(by_folder)
    assert (told["outcome"], told["code"], told["entry"]) == ("ok", None, None)


def test_verify_of_one_flipped_byte_names_the_entry_with_status_1(run: Run, own_evening: Path) -> None:
    journal = own_evening / "journal.sqlite"
    index = find_entry(journal, "fr.table.post.settled.v1")
    flip_byte(journal, index, b'"credit":4', b'"credit":5')
    result = run("journal", "verify", own_evening)
    assert result.exit_code == 1
    assert "E-JOURNAL-ALTERED" in result.stdout
    assert f"first entry concerned: {index}" in result.stdout
    assert json.loads(run("journal", "verify", own_evening, "--json").stdout)["entry"] == index


@pytest.mark.parametrize("index", [0, 1, 57, -2, -1])
def test_verify_of_a_byte_flipped_anywhere_names_that_entry(run: Run, own_evening: Path, index: int) -> None:
    at = range(len(leaves_of(own_evening)))[index]
    flip_byte(own_evening / "journal.sqlite", at, b'"specversion":"1.0"', b'"specversion":"1.1"')
    told = json.loads(run("journal", "verify", own_evening, "--json").stdout)
    assert (told["outcome"], told["entry"]) == ("altered", at)


def test_verify_of_a_shortened_journal_ends_with_status_2(run: Run, own_evening: Path) -> None:
    last = len(leaves_of(own_evening)) - 1
    alter(own_evening / "journal.sqlite", "DELETE FROM log WHERE idx = ?", last)
    result = run("journal", "verify", own_evening)
    assert (result.exit_code, "E-JOURNAL-ROLLED-BACK" in result.stdout) == (2, True)


def test_verify_against_a_remembered_checkpoint_finds_a_journal_that_went_back(
    run: Run, evening: Path, launcher: Path, tmp_path: Path
) -> None:
    with closing(Reader(evening / "journal.sqlite")) as reader:
        (tmp_path / "note").write_text(reader.checkpoint(), encoding="utf-8")
    good = run("journal", "verify", evening, "--remembered", tmp_path / "note")
    assert good.exit_code == 0
    other = tmp_path / "other"
    run("simulate", "--config", launcher, "--coups", "3", "--seed", "7", "--out", other)
    back = run("journal", "verify", other, "--remembered", tmp_path / "note")
    assert (back.exit_code, "E-JOURNAL-ROLLED-BACK" in back.stdout) == (2, True)


def test_verify_by_another_key_ends_with_status_3(run: Run, evening: Path, launcher: Path, tmp_path: Path) -> None:
    run("simulate", "--config", launcher, "--coups", "3", "--seed", "8", "--out", tmp_path / "other")
    vkey = (tmp_path / "other" / "table.vkey").read_text(encoding="ascii").strip()
    for given in (vkey, tmp_path / "other" / "table.vkey"):
        result = run("journal", "verify", evening, "--vkey", given)
        assert (result.exit_code, "E-JOURNAL-KEY" in result.stdout) == (3, True)


def test_verify_without_any_key_says_how_to_give_one(run: Run, own_evening: Path) -> None:
    vkey = (own_evening / "table.vkey").read_text(encoding="ascii").strip()
    (own_evening / "table.vkey").unlink()
    without = run("journal", "verify", own_evening)
    assert (without.exit_code, "E-VKEY-MISSING" in without.stderr, "--vkey" in without.stderr) == (3, True, True)
    assert run("journal", "verify", own_evening, "--vkey", vkey).exit_code == 0


@pytest.mark.parametrize("vkey", ["nonsense", "a+b+c", "no/such/file"])
def test_verify_by_something_that_is_no_key_ends_with_status_3(run: Run, evening: Path, vkey: str) -> None:
    result = run("journal", "verify", evening, "--vkey", vkey)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith(("E-KEY-MALFORMED", "E-VKEY-MISSING"))


def test_verify_of_what_is_no_journal_ends_with_status_5(run: Run, evening: Path, tmp_path: Path) -> None:
    shutil.copy(evening / "table.vkey", tmp_path)
    assert run("journal", "verify", tmp_path).exit_code == 5
    (tmp_path / "journal.sqlite").write_text("not a database", encoding="ascii")
    assert run("journal", "verify", tmp_path).exit_code == 5
    (tmp_path / "journal.sqlite").unlink()
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as other:
        other.execute("CREATE TABLE log (idx)")
    result = run("journal", "verify", tmp_path)
    assert (result.exit_code, "E-JOURNAL-FOREIGN" in result.stdout) == (5, True)


# ── tail, export ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tail_shows_the_last_entries_with_their_index(run: Run, evening: Path) -> None:
    size = len(leaves_of(evening))
    lines = run("journal", "tail", evening, "-n", "3").stdout.splitlines()
    assert [int(line.split()[0]) for line in lines] == [size - 3, size - 2, size - 1]
    assert lines[-1].endswith("The table stops in good order")


def test_tail_of_more_entries_than_there_are_shows_all(run: Run, evening: Path) -> None:
    assert len(run("journal", "tail", evening, "-n", "100000").stdout.splitlines()) == len(leaves_of(evening))


def test_tail_tells_the_story_in_the_language_of_the_reader(run: Run, evening: Path) -> None:
    french = run("journal", "tail", evening, "-n", "500", locale="fr_FR.UTF-8").stdout
    for told in ("faites vos jeux", "Rien ne va plus", "annoncé par l'appareil", "Séance 2026-11-30-1 ouverte par"):
        assert told in french


def test_tail_for_a_program_gives_the_leaves_themselves(run: Run, evening: Path) -> None:
    shown = run("journal", "tail", evening, "-n", "4", "--json").stdout
    assert shown.encode().splitlines() == leaves_of(evening)[-4:]


def test_tail_with_an_unreadable_entry_shows_the_others_with_status_1(run: Run, own_evening: Path) -> None:
    last = len(leaves_of(own_evening)) - 1
    flip_byte(own_evening / "journal.sqlite", last - 1, b'"specversion"', b'"specversioN"')
    result = run("journal", "tail", own_evening, "-n", "3")
    assert result.exit_code == 1
    assert [line.split()[0] for line in result.stdout.splitlines()] == [str(last - 2), str(last - 1), str(last)]
    assert "E-LEAF-FORM" in result.stdout.splitlines()[1]


def test_export_writes_every_leaf_byte_for_byte(run: Run, evening: Path, tmp_path: Path) -> None:
    leaves = leaves_of(evening)
    assert run("journal", "export", evening).stdout_bytes.splitlines() == leaves
    assert run("journal", "export", evening, "--from", "3", "--to", "5").stdout_bytes.splitlines() == leaves[3:6]
    assert run("journal", "export", evening, "--out", tmp_path / "events.jsonl").exit_code == 0
    assert (tmp_path / "events.jsonl").read_bytes() == b"".join(leaf + b"\n" for leaf in leaves)


def test_export_into_a_file_that_exists_leaves_it_alone(run: Run, evening: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine", encoding="ascii")
    result = run("journal", "export", evening, "--out", tmp_path / "mine")
    assert (result.exit_code, "E-OUT-EXISTS" in result.stderr) == (2, True)
    assert (tmp_path / "mine").read_text(encoding="ascii") == "mine"


def test_unpack_lays_every_entry_out_once(run: Run, evening: Path, tmp_path: Path) -> None:
    rows: dict[str, int] = json.loads(
        run("journal", "unpack", evening, "--out", tmp_path / "facts.sqlite", "--json").stdout
    )
    assert sum(rows.values()) == len(leaves_of(evening))
    again = run("journal", "unpack", evening, "--out", tmp_path / "facts.sqlite")
    assert (again.exit_code, "E-OUT-EXISTS" in again.stderr) == (2, True)


# ── show ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def shown(run: Run, folder: Path, index: int) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run("journal", "show", folder, index, "--json").stdout)
    return document


def test_show_gives_the_entry_with_a_proof_that_others_can_check(run: Run, evening: Path) -> None:
    leaves = leaves_of(evening)
    told = shown(run, evening, 30)
    assert told["entry"] == json.loads(leaves[30])
    proof = [bytes.fromhex(node) for node in told["proof"]]
    root = root_of([leaf_hash(leaf) for leaf in leaves])
    assert verify_inclusion(leaf_hash(leaves[30]), 30, len(leaves), proof, root)
    assert (told["proven"], told["root"], told["size"]) == (True, root.hex(), len(leaves))


def test_show_tells_a_person_what_happened_and_that_it_is_proven(run: Run, evening: Path) -> None:
    index = find_entry(evening / "journal.sqlite", "fr.table.seance.opened.v1")
    result = run("journal", "show", evening, index)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Entry {index}")
    assert "opened by director" in result.stdout
    assert '"rules_sha256"' in result.stdout
    assert "proven: it is in the signed tree" in result.stdout


def test_show_of_an_altered_entry_says_that_it_was_not_signed(run: Run, own_evening: Path) -> None:
    journal = own_evening / "journal.sqlite"
    index = find_entry(journal, "fr.table.credit.added.v1")
    flip_byte(journal, index, b'"cents":50000', b'"cents":90000')
    result = run("journal", "show", own_evening, index)
    assert (result.exit_code, "E-JOURNAL-ALTERED" in result.stdout) == (1, True)
    assert shown(run, own_evening, index)["proven"] is False


def test_show_of_an_entry_beyond_the_end_names_the_last_one(run: Run, evening: Path) -> None:
    size = len(leaves_of(evening))
    result = run("journal", "show", evening, size)
    assert (result.exit_code, f"the last one is {size - 1}" in result.stderr) == (2, True)


# ── create ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_create_makes_an_empty_journal_that_verifies(run: Run, launcher: Path, tmp_path: Path) -> None:
    config = simulated(launcher, tmp_path)
    run("key", "create", "--config", config)
    result = run("journal", "create", "--config", config, "--yes")
    assert result.exit_code == 0, result.stderr
    verified = json.loads(run("journal", "verify", tmp_path, "--json").stdout)
    assert (verified["outcome"], verified["size"]) == ("ok", 0)


def test_create_without_a_yes_changes_nothing(run: Run, launcher: Path, tmp_path: Path) -> None:
    config = simulated(launcher, tmp_path)
    run("key", "create", "--config", config)
    before = sorted(tmp_path.iterdir())
    result = run("journal", "create", "--config", config)
    assert (result.exit_code, "--yes" in result.stderr) == (2, True)
    assert sorted(tmp_path.iterdir()) == before


def test_create_never_replaces_a_journal(run: Run, launcher: Path, tmp_path: Path) -> None:
    config = simulated(launcher, tmp_path)
    run("key", "create", "--config", config)
    run("journal", "create", "--config", config, "--yes")
    before = (tmp_path / "journal.sqlite").read_bytes()
    again = run("journal", "create", "--config", config, "--yes")
    assert (again.exit_code, "E-JOURNAL-EXISTS" in again.stderr) == (2, True)
    assert (tmp_path / "journal.sqlite").read_bytes() == before


def test_create_without_the_key_says_that_it_is_missing(run: Run, launcher: Path, tmp_path: Path) -> None:
    config = simulated(launcher, tmp_path)
    result = run("journal", "create", "--config", config, "--yes")
    assert (result.exit_code, "E-KEY-MISSING" in result.stderr) == (2, True)
    assert not (tmp_path / "journal.sqlite").exists()


def test_create_with_a_key_kept_elsewhere_takes_that_one(run: Run, launcher: Path, tmp_path: Path) -> None:
    config = simulated(launcher, tmp_path)
    run("key", "create", "--config", config, "--out", tmp_path / "kept.key")
    assert run("journal", "create", "--config", config, "--key", tmp_path / "kept.key", "--yes").exit_code == 0
    assert run("journal", "verify", tmp_path).exit_code == 0


def test_entries_of_the_evening_are_read_back_by_their_own_index(evening: Path) -> None:
    assert [parse_leaf(leaf).index for leaf in leaves_of(evening)] == list(range(len(leaves_of(evening))))
