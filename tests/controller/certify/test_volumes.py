"""A journal of several volumes is one journal: every entry, proof and check goes through all of them."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from controller.certify.faults import JournalFault
from controller.certify.leaf import leaf_hash, parse_leaf
from controller.certify.log_keys import LogKeys
from controller.certify.note import format_note, open_note
from controller.certify.reader import Reader
from controller.certify.tree import root_of, verify_consistency, verify_inclusion
from controller.certify.turning import CARRIED_ENTRIES, due, turn
from controller.certify.verify import Outcome, verify
from controller.certify.volumes import volumes
from drivers.clock import ManualClock
from tests.controller.certify.workshop import MIRROR, SIGNER, build, forgery, open_journal, stakes, stored

KEYS = LogKeys.of(SIGNER.verifier)
VOLUME = 3_000
BATCH = 500
WALL_MS = ManualClock().wall_ms()


def grow(path: Path, count: int) -> None:
    """More entries, with a snapshot and a cosigned checkpoint in the end."""
    with closing(open_journal(path)) as journal:
        for _ in range(0, count, BATCH):
            journal.append(stakes(BATCH, journal.size), snapshot=b"state")
        text = open_note(journal.checkpoint, [SIGNER.verifier]).text
        journal.add_cosignature(
            format_note(text, [SIGNER.sign(text), MIRROR.sign(text, 1_796_000_000)]), MIRROR.verifier
        )


def bound(path: Path) -> list[Path]:
    """The files of the journal ``path``, the live one last."""
    return [volume.path for volume in volumes(path)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of 10,000 entries in three volumes and a live file, and its twin that was never turned."""
    path = tmp_path_factory.mktemp("volumes") / "journal.sqlite"
    build(path, [])
    twin = build(path.with_name("twin.sqlite"), [])
    for count in (3_000, 3_000, 3_500):
        grow(path, count)
        grow(twin, count)
        assert turn(path, KEYS, WALL_MS, VOLUME) is not None
    grow(path, 500)
    grow(twin, 500)
    return path


@pytest.fixture
def chain(whole: Path, tmp_path: Path) -> Path:
    """A copy to be altered."""
    for file in bound(whole):
        shutil.copy(file, tmp_path)
        (tmp_path / file.name).chmod(0o600)
    return tmp_path / whole.name


def test_turned_journal_has_the_bytes_root_and_proofs_of_one_that_never_was(whole: Path) -> None:
    with Reader(whole) as turned, Reader(whole.with_name("twin.sqlite")) as never:
        size = never.size
        leaves = list(never.leaves(0, size))
        assert list(turned.leaves(0, size)) == leaves
        assert (turned.size, turned.root(size)) == (10_000, root_of([leaf_hash(leaf) for leaf in leaves]))
        assert turned.notes(0)[-1] == never.notes(0)[-1]
        for index in [*range(0, size, 487), size - 1]:
            proof = turned.inclusion_proof(index, size)
            assert verify_inclusion(leaf_hash(leaves[index]), index, size, proof, never.root(size))
            assert list(turned.leaves(index, index + 700)) == leaves[index : index + 700]
        for old in range(1, size, 611):
            assert verify_consistency(old, size, never.root(old), never.root(size), turned.consistency_proof(old, size))


def test_turned_journal_verifies_and_each_volume_verifies_as_it_was(whole: Path) -> None:
    verdict = verify(whole, KEYS, processes=1)
    assert (verdict.outcome, verdict.size, verdict.problem) == (Outcome.OK, 10_000, None)
    assert verdict.unknown_cosignatures == 4
    assert [one.base for one in volumes(whole)] == sorted({one.base for one in volumes(whole)})
    assert len(volumes(whole)) == 4


def test_live_file_is_small_and_volumes_are_read_only(whole: Path) -> None:
    *earlier, live = volumes(whole)
    ((count,),) = stored(whole, "SELECT count(*) FROM log")
    assert count <= CARRIED_ENTRIES + 3 * 256 + 500 + BATCH
    assert all(volume.path.stat().st_mode & 0o777 == 0o440 for volume in earlier)
    assert live.path.stat().st_mode & 0o200


def test_start_and_play_need_only_the_live_file_and_the_rest_is_missed_by_name(chain: Path) -> None:
    lost = volumes(chain)[1]
    for volume in volumes(chain)[:-1]:
        volume.path.unlink()
    with closing(open_journal(chain)) as journal:
        size = journal.size
        journal.append(stakes(3, size), snapshot=b"next")
        tail = list(journal.leaves(size - CARRIED_ENTRIES, size + 3))
        assert [parse_leaf(leaf).index for leaf in tail] == list(range(size - CARRIED_ENTRIES, size + 3))
        with pytest.raises(JournalFault, match=lost.path.name) as caught:
            journal.leaf(lost.base)
        assert (caught.value.code, caught.value.index) == ("E-JOURNAL-INCOMPLETE", lost.base)
    assert verify(chain, KEYS, processes=1).outcome is Outcome.INCOMPLETE


@pytest.mark.parametrize("at", [0, 1, 2])
def test_volume_that_is_missing_is_named_by_the_verification(chain: Path, at: int) -> None:
    lost = volumes(chain)[at]
    lost.path.unlink()
    verdict = verify(chain, KEYS, processes=1)
    assert (verdict.outcome, verdict.index) == (Outcome.INCOMPLETE, lost.base)
    assert lost.path.name in (verdict.problem or "")


def at_volume(at: int) -> Callable[[Path], Path]:
    """The file number ``at`` of the journal."""
    return lambda path: bound(path)[at]


def test_altered_entry_is_named_in_whichever_volume_and_copy_it_is(chain: Path) -> None:
    for at, volume in enumerate(volumes(chain)):
        ((first, last),) = stored(volume.path, "SELECT min(idx), max(idx) FROM log")
        for index in (first, last - 300, last):
            ((leaf,),) = stored(volume.path, "SELECT leaf FROM log WHERE idx = ?", index)
            with forgery(volume.path) as connection:
                connection.execute("UPDATE log SET leaf = ? WHERE idx = ?", (leaf.replace(b"plein", b"PLEIN"), index))
            verdict = verify(chain, KEYS, processes=1)
            assert (verdict.outcome, verdict.index) == (Outcome.ALTERED, index), (at, index, verdict)
            with forgery(volume.path) as connection:
                connection.execute("UPDATE log SET leaf = ? WHERE idx = ?", (leaf, index))
    assert verify(chain, KEYS, processes=1).ok


@pytest.mark.parametrize(
    ("at", "statement", "outcome"),
    [
        (0, "DELETE FROM log WHERE idx = 17", Outcome.INCOMPLETE),
        (0, "DELETE FROM log WHERE idx >= 2990", Outcome.ROLLED_BACK_OR_FORKED),
        (1, "DELETE FROM log WHERE idx = (SELECT min(idx) FROM log)", Outcome.INCOMPLETE),
        (1, "DELETE FROM tile WHERE n = 15", Outcome.INCOMPLETE),
        (1, "DELETE FROM checkpoint WHERE size = (SELECT max(size) FROM checkpoint)", None),
        (1, "UPDATE checkpoint SET note = replace(note, '1', '2')", Outcome.UNSIGNED_OR_UNKNOWN_KEY),
        (1, "UPDATE snapshot SET body = x'00'", Outcome.ALTERED),
        (1, "UPDATE tile SET root = zeroblob(32) WHERE n = 2", Outcome.ALTERED),
        (1, "UPDATE volume SET size = size + 1 WHERE base > 0", Outcome.ALTERED),
        (1, "UPDATE meta SET value = 'x' WHERE name = 'origin'", Outcome.ALTERED),
        (-1, "UPDATE volume SET base = base + 256 WHERE base = (SELECT max(base) FROM volume)", Outcome.ALTERED),
        (-1, "UPDATE volume SET base = base - 256 WHERE base = (SELECT max(base) FROM volume)", Outcome.INCOMPLETE),
        (-1, "UPDATE volume SET size = size + 1 WHERE base = (SELECT max(base) FROM volume)", Outcome.ALTERED),
        (-1, "DELETE FROM volume WHERE base = 0", Outcome.ALTERED),
        (-1, "DELETE FROM volume WHERE base > 0", Outcome.INCOMPLETE),
        (-1, "DELETE FROM volume", Outcome.ALTERED),
        (-1, "INSERT INTO volume VALUES (256, 300)", Outcome.INCOMPLETE),
        (-1, "UPDATE volume SET size = -1 WHERE base = 0", Outcome.ALTERED),
    ],
)
def test_volume_with_a_hole_or_a_lie_is_found(chain: Path, at: int, statement: str, outcome: Outcome | None) -> None:
    with forgery(bound(chain)[at]) as connection:
        connection.execute(statement)
    verdict = verify(chain, KEYS, processes=1)
    assert not verdict.ok
    assert outcome is None or verdict.outcome is outcome, verdict


def test_volumes_that_changed_places_are_found(chain: Path) -> None:
    first, second, *_ = bound(chain)
    other = chain.with_name("other")
    first.rename(other)
    second.rename(first)
    other.rename(second)
    assert verify(chain, KEYS, processes=1).outcome in (Outcome.INCOMPLETE, Outcome.ALTERED)


def test_journal_is_turned_when_it_is_full_or_the_month_is_over_and_never_without_new_entries(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.sqlite", [])
    month_ms = 31 * 86_400_000
    assert not due(path, WALL_MS + month_ms, VOLUME)
    grow(path, 3_500)
    assert due(path, WALL_MS, 3_500)
    assert not due(path, WALL_MS, 3_501)
    assert not due(path, WALL_MS - month_ms, 3_501)
    assert due(path, WALL_MS + month_ms, 3_501)
    assert turn(path, KEYS, WALL_MS, 3_501) is None
    turned = turn(path, KEYS, WALL_MS + month_ms, 3_501)
    assert turned is not None
    assert (turned.size, turned.volume) == (3_500, tmp_path / "journal.0000000000.sqlite")
    assert turn(path, KEYS, WALL_MS + 2 * month_ms, 1) is None


def test_small_journal_is_not_turned_because_a_start_reads_all_of_it(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.sqlite", [CARRIED_ENTRIES])
    assert not due(path, WALL_MS, 100)


def test_journal_that_is_read_is_turned_another_time(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.sqlite", [])
    grow(path, 3_000)
    with Reader(path) as reader:
        assert reader.leaf(0)
        assert turn(path, KEYS, WALL_MS, 3_000) is None
    with closing(open_journal(path)), pytest.raises(JournalFault) as caught:
        turn(path, KEYS, WALL_MS, 3_000)
    assert caught.value.code == "E-JOURNAL-BUSY"
    assert turn(path, KEYS, WALL_MS, 3_000) is not None
    assert verify(path, KEYS, processes=1).ok


@pytest.mark.parametrize("step", ["link", "fsync", "replace"])
def test_turning_that_stops_at_any_step_leaves_a_whole_journal_and_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = build(tmp_path / "journal.sqlite", [])
    grow(path, 3_000)

    def stop(*_: object, **__: object) -> None:
        raise OSError(5, "the power is gone")

    with monkeypatch.context() as broken:
        broken.setattr(Path if step == "replace" else os, step, stop)
        with pytest.raises(JournalFault) as caught:
            turn(path, KEYS, WALL_MS, 3_000)
    assert caught.value.code == "E-JOURNAL-WRITE"
    assert verify(path, KEYS, processes=1).ok
    with closing(open_journal(path)) as journal:
        journal.append(stakes(1, journal.size), snapshot=b"meanwhile")
    turned = turn(path, KEYS, WALL_MS, 3_000)
    assert turned is not None
    assert turned.size == 3_001
    assert verify(path, KEYS, processes=1).ok
    names = {file.name.removesuffix("-wal").removesuffix("-shm") for file in tmp_path.iterdir()}
    assert names == {"journal.0000000000.sqlite", "journal.sqlite"}


def test_altered_journal_is_not_turned_and_stays_as_it_is(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.sqlite", [])
    grow(path, 3_000)
    with forgery(path) as connection:
        connection.execute("UPDATE log SET leaf = (SELECT leaf FROM log WHERE idx = 5) WHERE idx = 2999")
    with pytest.raises(JournalFault) as caught:
        turn(path, KEYS, WALL_MS, 3_000)
    assert caught.value.code == "E-JOURNAL-ALTERED"
    assert [file.name for file in tmp_path.iterdir()] == ["journal.sqlite"]


def test_foreign_file_in_the_place_of_a_volume_is_left_alone(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.sqlite", [])
    grow(path, 3_000)
    foreign = tmp_path / "journal.0000000000.sqlite"
    foreign.write_bytes(b"evidence of something else")
    with pytest.raises(JournalFault, match="another file") as caught:
        turn(path, KEYS, WALL_MS, 3_000)
    assert caught.value.code == "E-VOLUME-FOREIGN"
    assert foreign.read_bytes() == b"evidence of something else"
    assert verify(path, KEYS, processes=1).ok
