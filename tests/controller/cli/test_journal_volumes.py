"""``tablectl journal volumes``: which files a journal has, and until when each must be kept."""

import json
from pathlib import Path

import pytest

from controller.certify.log_keys import LogKeys
from controller.certify.turning import turn
from controller.certify.volumes import volumes
from controller.retention import kept_until
from tests.controller.certify.test_volumes import VOLUME, WALL_MS, grow
from tests.controller.certify.workshop import SIGNER, build
from tests.controller.cli.conftest import Run


@pytest.fixture
def turned(tmp_path: Path) -> Path:
    path = build(tmp_path / "journal.sqlite", [])
    grow(path, VOLUME)
    assert turn(path, LogKeys.of(SIGNER.verifier), WALL_MS, VOLUME) is not None
    return path


def test_volumes_are_listed_with_their_entries_and_the_day_until_which_they_are_kept(run: Run, turned: Path) -> None:
    result = run("journal", "volumes", turned, "--years", "12", "--json")
    first, live = json.loads(result.stdout)["volumes"]
    assert result.exit_code == 0
    assert (first["first"], live["first"], live["last"]) == (0, first["last"] + 1, VOLUME - 1)
    assert (first["live"], live["live"], first["cosigned"], live["cosigned"]) == (False, True, VOLUME, VOLUME)
    assert first["keep_until"] == kept_until(first["last_time"], 12)
    assert first["keep_until"][:4] == str(int(first["last_time"][:4]) + 12)
    text = run("journal", "volumes", turned).stdout
    assert "journal.0000000000.sqlite" in text
    assert str(live["first"]) in text


def test_volume_that_is_missing_is_shown_with_status_4(run: Run, turned: Path) -> None:
    volumes(turned)[0].path.unlink()
    result = run("journal", "volumes", turned)
    assert result.exit_code == 4
    assert "MISSING" in result.stdout


def test_journal_without_entries_is_one_empty_file(run: Run, tmp_path: Path) -> None:
    path = build(tmp_path / "journal.sqlite", [])
    assert run("journal", "volumes", path).exit_code == 0
    assert json.loads(run("journal", "volumes", path, "--json").stdout)["volumes"] == [
        {"file": str(path), "first": 0, "last": -1, "live": True, "present": True}
    ]


@pytest.mark.parametrize(
    ("last", "years", "day"),
    [
        ("2026-11-30T20:00:00.000Z", 10, "2036-11-30"),
        ("2028-02-29T20:00:00.000Z", 10, "2038-03-01"),
        ("2026-12-31T23:59:59.999Z", 1, "2027-12-31"),
    ],
)
def test_volume_is_kept_for_whole_years_after_its_last_entry(last: str, years: int, day: str) -> None:
    assert kept_until(last, years) == day
