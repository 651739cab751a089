"""The reserve, on a real file system that is really full: without it nothing is certified any more, with it the séance
can be closed.
"""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controller.certify.faults import JournalFault
from controller.certify.log_keys import LogKeys
from controller.certify.storage import is_full
from controller.certify.verify import verify
from controller.storage_reserve import Reserve
from controller.storage_watch import StorageWatch
from drivers.clock import ManualClock
from games.signals import StorageRunsLow
from tests.controller.certify.workshop import SIGNER, build, open_journal, stakes

MIB = 1 << 20
KEYS = LogKeys.of(SIGNER.verifier)


@pytest.fixture
def small_disk(tmp_path: Path, program: Callable[[str], str]) -> Iterator[Path]:
    """A file system of 24 MiB of its own."""
    if os.geteuid():
        pytest.skip("only root may mount a file system")
    image, folder = tmp_path / "disk.img", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(24 * MIB)
    subprocess.run([program("mkfs.ext4"), "-q", "-m", "0", image], check=True)
    subprocess.run([program("mount"), "-o", "loop", image, folder], check=True)
    yield folder
    subprocess.run([program("umount"), folder], check=True)


def fill(folder: Path) -> None:
    """Take all the room there is."""
    with (folder / "others").open("ab", buffering=0) as file:
        for size in (MIB, 4_096, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def test_full_disk_lets_the_seance_be_closed_from_the_reserve_and_not_without_it(small_disk: Path) -> None:
    (small_disk / "with").mkdir()
    path = build(small_disk / "with" / "journal.sqlite", [10])
    (small_disk / "without").mkdir()
    other = build(small_disk / "without" / "journal.sqlite", [10])
    told: list[StorageRunsLow] = []
    watch = StorageWatch(small_disk / "with", ManualClock(), told.append, reserve=Reserve(small_disk / "with", 4 * MIB))
    watch.check()
    assert Reserve(small_disk / "with", 4 * MIB).held_bytes == 4 * MIB
    with closing(open_journal(path)) as journal, closing(open_journal(other)) as doomed:
        fill(small_disk)
        with pytest.raises(JournalFault) as caught:
            doomed.append(stakes(2_000, doomed.size))
        assert caught.value.code == "E-JOURNAL-WRITE"
        watch.check()
        assert [signal.level for signal in told] == ["ok", "close"]
        journal.append(stakes(2_000, journal.size), snapshot=b"closed")
        watch.check()
        assert len(told) == 2, "the room of the reserve is for the closing alone"
    assert verify(path, KEYS, processes=1).size == 2_010
    assert verify(other, KEYS, processes=1).size == 10
    (small_disk / "others").unlink()
    watch.check()
    assert told[-1].level == "ok"
    assert Reserve(small_disk / "with", 4 * MIB).held_bytes == 4 * MIB


def test_disk_full_at_a_start_is_relieved_by_the_reserve(small_disk: Path) -> None:
    path = build(small_disk / "journal.sqlite", [10])
    reserve = Reserve(small_disk, 4 * MIB)
    assert reserve.hold()
    assert not is_full(path)
    fill(small_disk)
    assert is_full(path)
    with pytest.raises(JournalFault), closing(open_journal(path)) as journal:
        journal.append(stakes(2_000, journal.size))
    assert reserve.give_back() == 4 * MIB
    with closing(open_journal(path)) as journal:
        assert journal.append(stakes(2_000, 10)).size == 2_010


def test_reserve_that_finds_no_room_changes_nothing(small_disk: Path) -> None:
    assert not Reserve(small_disk, 64 * MIB).hold()
    assert sorted(file.name for file in small_disk.iterdir()) == ["lost+found"]


def test_reserve_takes_real_room_once_and_gives_it_back_once(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, MIB)
    assert (reserve.held_bytes, reserve.missing_bytes) == (0, MIB)
    assert reserve.hold()
    assert reserve.hold()
    assert (tmp_path / "reserve").stat().st_blocks * 512 >= MIB
    assert (reserve.held_bytes, reserve.missing_bytes) == (MIB, 0)
    assert (reserve.give_back(), reserve.give_back()) == (MIB, 0)
    assert list(tmp_path.iterdir()) == []


def test_reserve_of_nothing_is_no_file(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, 0)
    assert reserve.hold()
    assert (reserve.give_back(), list(tmp_path.iterdir())) == (0, [])


def test_reserve_is_held_again_only_when_its_own_room_is_not_what_is_free(tmp_path: Path) -> None:
    free = [100]
    reserve = Reserve(tmp_path, 10)
    told: list[StorageRunsLow] = []
    watch = StorageWatch(tmp_path, ManualClock(), told.append, lambda _: (free[0], 100), reserve=reserve)
    found = []
    for free[0] in (50, 4, 14, 15, 18, 29, 4, 40):
        watch.check()
        found.append((told[-1].level, reserve.held_bytes))
    assert found == [
        ("ok", 10),
        ("close", 0),
        ("close", 0),  # 4 of these 14 are free, 10 are the reserve's
        ("close", 0),
        ("no_new_round", 0),
        ("warn", 10),
        ("close", 0),
        ("ok", 10),
    ]


def test_storage_watch_asks_every_ten_minutes_whether_the_journal_is_to_be_turned(tmp_path: Path) -> None:
    asked: list[int] = []
    watch = StorageWatch(tmp_path, ManualClock(), lambda _: None, turn=lambda: asked.append(1))
    for _ in range(60):
        watch.check()
    assert len(asked) == 3
