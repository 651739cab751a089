"""What a start does with a journal that is wrong: the status, and the files that are kept aside as evidence."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller import app, evidence
from controller.certify.faults import JournalFault
from controller.config import load
from controller.evidence import EVIDENCE, keep_evidence
from controller.faults import advice

CONFIGURATION = Path("config/roulette-launcher.toml").resolve()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """The files of a journal, and what else lies beside it."""
    file = tmp_path / "journal.sqlite"
    for name in ("journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "table.key", "player-salt"):
        (tmp_path / name).write_bytes(name.encode() * 100)
    return file


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_evidence_is_a_copy_of_the_journal_and_of_no_secret(journal: Path) -> None:
    before = contents(journal.parent)
    folder = keep_evidence(journal, "E-JOURNAL-FORKED")
    assert folder is not None
    assert folder.parent == journal.parent / "evidence"
    assert folder.name.startswith("journal-forked-")
    assert contents(folder) == {name: data for name, data in before.items() if name.startswith("journal.sqlite")}
    assert contents(journal.parent) == before
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o440}


def test_evidence_of_one_state_is_kept_once_and_of_another_state_beside_it(journal: Path) -> None:
    first = keep_evidence(journal, "E-JOURNAL-FORKED")
    assert keep_evidence(journal, "E-JOURNAL-FORKED") == first
    journal.write_bytes(b"changed")
    second = keep_evidence(journal, "E-JOURNAL-FORKED")
    assert len(list((journal.parent / "evidence").iterdir())) == 2
    assert second is not None and (second / journal.name).read_bytes() == b"changed"


def test_evidence_whose_copy_was_cut_short_is_copied_again(journal: Path) -> None:
    folder = keep_evidence(journal, "E-JOURNAL-FORKED")
    assert folder is not None
    draft = folder.with_suffix(".new")
    folder.rename(draft)
    (draft / journal.name).chmod(0o600)
    (draft / journal.name).write_bytes(b"half")
    assert keep_evidence(journal, "E-JOURNAL-FORKED") == folder
    assert (folder / journal.name).read_bytes() == journal.read_bytes()
    assert not draft.exists()


def test_evidence_never_fills_the_disk(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = evidence.SPARE_BYTES + sum(len(data) for name, data in contents(journal.parent).items() if "sqlite" in name)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free - 1))
    with capture_logs() as logged:
        assert keep_evidence(journal, "E-JOURNAL-FORKED") is None
    assert [line["event"] for line in logged] == ["E-EVIDENCE-SPACE"]
    assert not (journal.parent / "evidence").exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    assert keep_evidence(journal, "E-JOURNAL-FORKED") is not None


def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> tuple[int, list[str]]:
    """The status of a daemon whose start fails, and the codes that it logged."""
    monkeypatch.setattr(
        app, "load", lambda path: load(CONFIGURATION, {"journal": {"file": str(tmp_path / "j.sqlite")}})
    )
    (tmp_path / "j.sqlite").write_bytes(b"journal")

    async def fail(*_: Any) -> None:
        raise JournalFault(code, "what was found")

    monkeypatch.setattr(app, "_serve", fail)
    with capture_logs() as logged:
        status = app.serve(CONFIGURATION)
    return status, [line["event"] for line in logged if line["event"].startswith("E-")]


@pytest.mark.parametrize("code", ["E-HEAL-SILENT", "E-HEAL-BEHIND", "E-JOURNAL-BUSY", "E-JOURNAL-WRITE"])
def test_start_that_may_succeed_later_ends_with_the_status_that_systemd_tries_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str
) -> None:
    status, logged = serve(monkeypatch, tmp_path, code)
    assert status == app.EXIT_FAILED
    assert code in logged


@pytest.mark.parametrize("code", ["E-JOURNAL-FORKED", "E-JOURNAL-ALTERED", "E-HEAL-TOO-MANY", "E-JOURNAL-ROLLED-BACK"])
def test_start_on_a_journal_that_is_wrong_keeps_evidence_and_waits_for_a_person(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str
) -> None:
    status, logged = serve(monkeypatch, tmp_path, code)
    assert status == app.EXIT_CONFIG
    assert code in logged
    (kept,) = (tmp_path / "evidence").iterdir()
    assert (kept / "j.sqlite").read_bytes() == b"journal"


def test_fault_that_is_no_evidence_copies_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    serve(monkeypatch, tmp_path, "E-JOURNAL-VERSION")
    assert [file.name for file in tmp_path.iterdir()] == ["j.sqlite"]


def test_every_fault_that_is_evidence_is_explained() -> None:
    assert [advice(code).code for code in sorted(EVIDENCE)] == sorted(EVIDENCE)
