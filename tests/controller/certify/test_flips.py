"""One bit changed in any byte of a journal or of an archive is found, or lies where the file holds nothing.

Here a sample of the bytes; ``make proof`` takes them all.
"""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.certify.verify import Outcome, Verdict
from docs.samples import make_samples
from proof import flips
from proof.flips import Flips, flip_archive, flip_journal, make_journal

HEADER_BYTES = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample journal, and the sample archive."""
    folder = tmp_path_factory.mktemp("flips")
    make_journal(folder / "journal.sqlite")
    (folder / "good.tar").write_bytes((Path(make_samples.__file__).parent / "good.tar").read_bytes())
    return folder


def test_bytes_of_a_journal_changed_one_by_one_are_found_or_hold_nothing(folder: Path) -> None:
    journal = folder / "journal.sqlite"
    told = flip_journal(journal, range(0, journal.stat().st_size, 131))
    assert (told.unnoticed, told.misnamed) == ([], [])
    assert (
        told.found_in_all + told.nothing_there + len(told.cursor_only)
        == told.bytes
        == -(-journal.stat().st_size // 131)
    )
    assert told.in_entries > told.bytes // 3
    assert told.nothing_there < told.bytes // 3


def test_bytes_of_the_schema_of_a_journal_changed_one_by_one_are_found_or_hold_nothing(folder: Path) -> None:
    told = flip_journal(folder / "journal.sqlite", range(HEADER_BYTES, 4_096, 3))
    assert told.unnoticed == []
    assert told.found_in_all > 400


def test_bytes_of_an_archive_changed_one_by_one_are_all_found_and_entries_named(folder: Path) -> None:
    archive = folder / "good.tar"
    told = flip_archive(archive, range(0, archive.stat().st_size, 41))
    assert (told.unnoticed, told.misnamed, told.found_in_all) == ([], [], told.bytes)
    assert told.in_entries > told.bytes // 3


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_byte_of_a_journal_changed_anywhere_is_found_or_holds_nothing(folder: Path, data: st.DataObject) -> None:
    journal = folder / "journal.sqlite"
    told = flip_journal(journal, [data.draw(st.integers(0, journal.stat().st_size - 1))])
    assert (told.unnoticed, told.misnamed) == ([], [])


# ── That the count itself can tell ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verification that finds nothing."""
    monkeypatch.setattr(flips, "verify", lambda *_, **__: Verdict(outcome=Outcome.OK))
    monkeypatch.setattr(flips, "verify_archive", lambda *_: (Verdict(outcome=Outcome.OK), None))


def test_change_that_the_verification_misses_is_counted_as_unnoticed(folder: Path, blind: None) -> None:
    journal = folder / "journal.sqlite"
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
        (leaf,) = connection.execute("SELECT leaf FROM log WHERE idx = 100").fetchone()
    at = journal.read_bytes().find(leaf) + 5
    told = flip_journal(journal, [at])
    assert (told.unnoticed, told.misnamed, told.found_in_all, told.nothing_there) == ([at], [at], 0, 0)


def test_change_where_a_journal_holds_nothing_is_counted_by_itself(folder: Path, blind: None) -> None:
    journal = folder / "journal.sqlite"
    empty = journal.read_bytes().find(bytes(200)) + 100
    assert flip_journal(journal, [empty]) == Flips(bytes=1, found=Counter(), nothing_there=1)
