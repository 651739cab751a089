"""The enumeration of crash states, in small: it finds nothing in the real writer, and would find what there is."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from proof.crash_states import Recording, enumerate_states, record, states, try_share
from proof.disk import Call, Disk

COMMITS = 24


def call(name: str, *words: str, strings: tuple[bytes, ...] = (), result: int = 0) -> Call:
    return Call(name, strings, words, result)


def opened(path: str, descriptor: int, flags: str = "O_RDWR|O_CREAT") -> Call:
    return call("openat", "AT_FDCWD", '""', flags, strings=(path.encode(),), result=descriptor)


def written(descriptor: int, data: bytes, at: int) -> Call:
    words = (str(descriptor), '""', str(len(data)), str(at))
    return call("pwrite64", *words, strings=(data,), result=len(data))


def disk_after(*calls: Call) -> Disk:
    disk = Disk(Path("folder"))
    for one in calls:
        disk.take(one)
    return disk


def test_file_whose_folder_was_not_synced_may_be_gone_although_its_content_was_synced() -> None:
    disk = disk_after(opened("folder/a", 3), written(3, b"x" * 10, 0), call("fdatasync", "3"))
    assert disk.killed() == {"a": b"x" * 10}
    assert disk.synced() == {}
    found = [disk.torn(random.Random(seed)) for seed in range(20)]
    assert {} in found
    assert {"a": b"x" * 10} in found


def test_bytes_that_were_not_synced_survive_by_sectors_and_synced_ones_always() -> None:
    made = (opened("folder/a", 3), opened("folder", 4, "O_RDONLY"), call("fsync", "4"))
    disk = disk_after(*made, written(3, b"s" * 1024, 0), call("fsync", "3"), written(3, b"w" * 1024, 256))
    assert disk.synced() == {"a": b"s" * 1024}
    assert disk.killed() == {"a": b"s" * 256 + b"w" * 1024}
    for seed in range(20):
        found = disk.torn(random.Random(seed))["a"]
        assert found[:256] == b"s" * 256
        assert found[256:512] in (b"s" * 256, b"w" * 256)
        assert found[512:1024] in (b"s" * 512, b"w" * 512)


def test_name_that_was_removed_or_linked_lasts_until_the_folder_is_synced() -> None:
    made = (opened("folder/a", 3), written(3, b"x", 0), call("fsync", "3"), opened("folder", 4, "O_RDONLY"))
    linked = call("link", strings=(b"folder/a", b"folder/b"))
    removed = call("unlink", strings=(b"folder/a",))
    disk = disk_after(*made, call("fsync", "4"), linked, removed)
    assert (disk.killed(), disk.synced()) == ({"b": b"x"}, {"a": b"x"})
    disk.take(call("fsync", "4"))
    assert disk.synced() == {"b": b"x"}


@pytest.fixture
def recording(tmp_path: Path, program: Callable[[str], str]) -> Recording:
    program("strace")
    return record(tmp_path, COMMITS)


def test_real_writer_loses_nothing_that_it_promised_in_any_state_of_the_disk(recording: Recording) -> None:
    found = try_share(recording, 0, 5, ("killed", "synced", "torn"), lies=False)
    assert (found["lost"], found["damaged"]) == (0, 0)
    assert found["sound"] == found["tried"] > 150


def test_last_state_of_the_model_is_what_is_really_on_the_disk(recording: Recording) -> None:
    *_, (_, disk, promised) = states(recording)
    there = {file.name: file.read_bytes() for file in recording.folder.glob("*.sqlite")}
    assert len(there) > 1, "the journal was turned"
    assert disk.killed() == there
    assert promised.certified == max(recording.roots)


def test_writer_on_a_disk_that_lies_about_syncing_is_found_to_lose_entries(recording: Recording) -> None:
    assert try_share(recording, 0, 5, ("synced",), lies=True)["lost"] > 0


def test_writer_that_syncs_less_is_found_to_lose_entries(tmp_path: Path, program: Callable[[str], str]) -> None:
    program("strace")
    found = enumerate_states(record(tmp_path, COMMITS, "--careless"), variants=["synced"])
    assert found["lost"] > 0
