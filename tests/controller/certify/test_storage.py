"""The file: what is taken for a journal, and which file systems may hold one."""

import os
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from controller.certify import storage
from controller.certify.faults import JournalFault
from controller.certify.journal import Journal
from controller.certify.storage import connect_writer, faults_of, file_system, lock, refuse_volatile
from tests.controller.certify.workshop import SIGNER, build, forgery, open_journal


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(JournalFault) as caught:
        action()
    return caught.value.code


def test_file_that_is_missing_is_never_made_by_opening(tmp_path: Path) -> None:
    assert code_of(lambda: open_journal(tmp_path / "journal.db")) == "E-JOURNAL-MISSING"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"short", b"not a database at all " * 100])
def test_file_that_is_no_database_is_foreign_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(content)
    assert code_of(lambda: open_journal(path)) == "E-JOURNAL-FOREIGN"
    assert path.read_bytes() == content


def test_database_of_something_else_is_foreign_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE log (idx INTEGER)")
    before = path.read_bytes()
    assert code_of(lambda: open_journal(path)) == "E-JOURNAL-FOREIGN"
    assert path.read_bytes() == before


def test_journal_of_another_layout_is_refused_by_its_version(path: Path) -> None:
    with forgery(path) as connection:
        connection.execute("PRAGMA user_version = 3")
    assert code_of(lambda: open_journal(path)) == "E-JOURNAL-VERSION"


@pytest.mark.parametrize(
    "change",
    ["CREATE TABLE extra (x)", "CREATE TRIGGER t AFTER INSERT ON log BEGIN SELECT 1; END", "DROP TABLE meta"],
)
def test_journal_with_tables_or_guards_changed_is_refused(path: Path, change: str) -> None:
    with forgery(path) as connection:
        connection.execute(change)
    assert code_of(lambda: open_journal(path)) == "E-JOURNAL-ALTERED"


def test_journal_without_its_guards_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER log_no_delete")
    assert code_of(lambda: open_journal(path)) == "E-JOURNAL-ALTERED"


def test_journal_with_damaged_pages_is_refused_without_being_repaired(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [2_000])
    content = bytearray(path.read_bytes())
    for page in range(1, len(content) // 4_096):
        content[page * 4_096 : page * 4_096 + 64] = b"\xff" * 64
    path.write_bytes(content)
    assert code_of(lambda: open_journal(path)) == "E-JOURNAL-DAMAGED"
    assert path.read_bytes()[4_096:] == bytes(content[4_096:])


def test_folder_in_place_of_the_journal_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.mkdir()
    assert code_of(lambda: open_journal(path)) == "E-JOURNAL-UNREADABLE"


def test_lock_of_a_folder_that_cannot_be_opened_is_unreadable(tmp_path: Path) -> None:
    assert code_of(lambda: lock(tmp_path / "nowhere" / "journal.db")) == "E-JOURNAL-UNREADABLE"


def test_second_daemon_is_refused_even_when_everything_beside_the_journal_was_removed(path: Path) -> None:
    with closing(open_journal(path)):
        for beside in path.parent.iterdir():
            if beside != path and not beside.name.endswith(("-wal", "-shm")):
                beside.unlink()
        assert code_of(lambda: open_journal(path)) == "E-JOURNAL-BUSY"


def test_second_daemon_that_comes_by_another_name_of_the_file_is_refused(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    alias = folder / "alias.db"
    alias.symlink_to(path)
    with closing(open_journal(path)):
        assert code_of(lambda: open_journal(alias)) == "E-JOURNAL-BUSY"


def test_second_journal_in_the_folder_of_an_open_one_is_refused_and_says_why(path: Path) -> None:
    other = path.with_name("other.db")
    Journal.create(other, SIGNER, allow_volatile=True)
    with closing(open_journal(path)), pytest.raises(JournalFault, match=f"another journal in {path.parent}") as caught:
        open_journal(other)
    assert caught.value.code == "E-JOURNAL-BUSY"


# ── A full disk ───────────────────────────────────────────────────────────────────────────────────────────────────────


def space(**changed: int) -> os.statvfs_result:
    fields = {"bsize": 4_096, "frsize": 4_096, "blocks": 9_999, "bfree": 9_999, "bavail": 9_999}
    fields |= {"files": 99, "ffree": 99, "favail": 99, "flag": 0, "namemax": 255, **changed}
    return os.statvfs_result(tuple(fields.values()))


@contextmanager
def files_no_longer_than(length: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("left", "code"),
    [
        (space(bavail=0), "E-JOURNAL-WRITE"),
        (space(bavail=255), "E-JOURNAL-WRITE"),
        (space(favail=0), "E-JOURNAL-WRITE"),
        (space(bavail=256), "E-JOURNAL-UNREADABLE"),
        (space(files=0, favail=0), "E-JOURNAL-UNREADABLE"),  # some file systems do not count files
    ],
)
def test_start_on_a_disk_that_takes_nothing_tells_a_full_one_from_a_failing_one(
    path: Path, monkeypatch: pytest.MonkeyPatch, left: os.statvfs_result, code: str
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: left)
    with files_no_longer_than(1_000), pytest.raises(JournalFault) as caught:
        open_journal(path)
    assert caught.value.code == code
    assert ("is full" in caught.value.detail) == (code == "E-JOURNAL-WRITE")
    monkeypatch.undo()
    open_journal(path).close()


def test_database_that_says_that_it_is_full_is_a_full_disk(path: Path) -> None:
    with closing(connect_writer(path)) as connection:
        connection.execute("PRAGMA max_page_count = 1")

        def write() -> None:
            with faults_of(path):
                connection.execute("INSERT INTO snapshot VALUES (1, zeroblob(100000), '')")

        assert code_of(write) == "E-JOURNAL-WRITE"


def test_database_that_another_program_is_writing_is_busy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "BUSY_TIMEOUT_S", 0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert code_of(lambda: open_journal(path)) == "E-JOURNAL-BUSY"


MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/root rw
23 22 0:5 / /dev rw - devtmpfs udev rw
24 23 0:22 / /dev/shm rw - tmpfs tmpfs rw
25 22 8:2 / /srv/with\\040space rw - 9p share rw
26 22 0:9 / /data rw shared:1 - ext4 /dev/sda1 rw
27 22 0:9 / /data rw shared:1 - overlay overlay rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib", "ext4"),
        ("/dev/shm/x", "tmpfs"),
        ("/dev/shmx", "devtmpfs"),
        ("/srv/with space/deep/er", "9p"),
        ("/srv/with", "ext4"),
        ("/data", "overlay"),
    ],
)
def test_file_system_of_a_folder_is_that_of_the_innermost_and_newest_mount(
    monkeypatch: pytest.MonkeyPatch, folder: str, kind: str
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda self, **_: MOUNTS)
    monkeypatch.setattr(Path, "resolve", lambda self: self)
    assert file_system(Path(folder)) == kind
    if kind in {"tmpfs", "9p", "overlay"}:
        assert code_of(lambda: refuse_volatile(Path(folder) / "journal.db")) == "E-JOURNAL-VOLATILE"
    else:
        refuse_volatile(Path(folder) / "journal.db")


def test_file_system_of_shared_memory_is_seen_on_the_real_machine() -> None:
    if not os.path.ismount("/dev/shm"):
        pytest.skip("this machine has no shared memory mount")
    assert file_system(Path("/dev/shm")) == "tmpfs"
