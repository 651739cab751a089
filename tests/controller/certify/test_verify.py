"""The full verification: every flipped byte is found and its entry named, every attack gets its own verdict."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copyfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.certify import leaf as leaf_module
from controller.certify import verify as verify_module
from controller.certify.faults import NoteFault
from controller.certify.journal import Journal
from controller.certify.leaf import Record, Stamp, build_leaves, canonical, leaf_hash, parse_leaf
from controller.certify.log_keys import LogKeys
from controller.certify.storage import check_layout, connect_reader
from controller.certify.tiles import Edge
from controller.certify.verify import Outcome, Verdict, verify
from drivers.clock import ManualClock
from tests.controller.certify.workshop import BOOT, OTHER_SIGNER, SIGNER, build, forgery, open_journal, stakes, stored

KEYS = LogKeys.of(SIGNER.verifier)


def outcome(path: Path, remembered: str | None = None) -> tuple[Outcome, int | None]:
    verdict = verify(path, KEYS, remembered=remembered)
    assert verdict.ok is (verdict.outcome is Outcome.OK)
    assert (verdict.code is None) is (verdict.problem is None) is verdict.ok
    return verdict.outcome, verdict.index


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal without a full tile."""
    return build(tmp_path_factory.mktemp("short") / "journal.db", [1, 2, 2])


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of two full tiles and a tail, with kept checkpoints inside and outside tiles, and snapshots."""
    path = tmp_path_factory.mktemp("long") / "journal.db"
    Journal.create(path, SIGNER, allow_volatile=True)
    with closing(open_journal(path)) as journal:
        for count in (100, 156, 150, 130, 20):
            journal.append(stakes(count, journal.size), snapshot=b"state %d" % count, keep_checkpoint=True)
    return path


@pytest.fixture
def copy(long: Path, tmp_path: Path) -> Path:
    """A copy of the long journal that may be spoiled."""
    path = tmp_path / "copy.db"
    copyfile(long, path)
    return path


def flips(path: Path, index: int, positions: range) -> Iterator[tuple[int, Verdict]]:
    """The verdicts on the journal with one byte of one entry flipped, and then restored."""
    with closing(sqlite3.connect(path)) as connection:
        ((leaf,),) = connection.execute("SELECT leaf FROM log WHERE idx = ?", (index,)).fetchall()
    for at in positions:
        altered = bytearray(leaf)
        altered[at % len(leaf)] ^= 1 << at % 8
        with forgery(path) as connection:
            connection.execute("UPDATE log SET leaf = ? WHERE idx = ?", (bytes(altered), index))
        yield at, verify(path, KEYS, processes=1)
    with forgery(path) as connection:
        connection.execute("UPDATE log SET leaf = ? WHERE idx = ?", (leaf, index))


def test_journal_as_it_was_written_is_ok_with_its_size_root_and_checkpoints(long: Path) -> None:
    verdict = verify(long, KEYS)
    with closing(open_journal(long)) as journal:
        assert (verdict.outcome, verdict.size, verdict.root) == (Outcome.OK, 556, journal.root)
    assert verdict.checkpoints == 6
    assert (verdict.code, verdict.problem, verdict.index) == (None, None, None)


def test_journal_without_entries_is_ok(path: Path) -> None:
    assert verify(path, KEYS) == Verdict(outcome=Outcome.OK, size=0, root=Edge().root(), checkpoints=1)


def test_journal_in_use_is_verified_as_it_was_at_one_moment(path: Path, journal: Journal) -> None:
    journal.append(stakes(300))
    seen: list[int] = []

    def write_more(done: int, size: int) -> None:
        seen.append(size)
        journal.append(stakes(300))

    assert verify(path, KEYS, write_more).size == 300
    assert (seen, journal.size) == ([300], 600)


@pytest.mark.parametrize("index", range(5))
def test_flip_of_each_byte_of_each_entry_of_a_short_journal_is_found_and_the_entry_named(
    short: Path, index: int
) -> None:
    length = len(stored(short, "SELECT leaf FROM log WHERE idx = ?", index)[0][0])
    found = {at: (verdict.outcome, verdict.index) for at, verdict in flips(short, index, range(length))}
    assert len(found) == length
    assert {at: what for at, what in found.items() if what != (Outcome.ALTERED, index)} == {}
    assert verify(short, KEYS).ok


@pytest.mark.parametrize("index", [0, 255, 256, 511, 512, 555])
def test_flip_in_an_entry_at_any_border_of_a_long_journal_is_found_and_the_entry_named(long: Path, index: int) -> None:
    for at, verdict in flips(long, index, range(0, 330, 11)):
        assert (verdict.outcome, verdict.index) == (Outcome.ALTERED, index), at
    assert verify(long, KEYS).ok


@settings(max_examples=60)
@given(st.integers(0, 555), st.integers(0, 10_000))
def test_flip_of_any_byte_of_any_entry_is_found_and_the_entry_named(long: Path, index: int, at: int) -> None:
    for _, verdict in flips(long, index, range(at, at + 1)):
        assert (verdict.outcome, verdict.index) == (Outcome.ALTERED, index)
        assert f"entry {index}" in str(verdict.problem)


@pytest.mark.parametrize(
    ("select", "update", "permitted"),
    [
        (
            "SELECT note FROM checkpoint WHERE size = 406",
            "UPDATE checkpoint SET note = ? WHERE size = 406",
            {Outcome.ALTERED, Outcome.UNSIGNED_OR_UNKNOWN_KEY},
        ),
        (
            "SELECT note FROM checkpoint WHERE size = 556",
            "UPDATE checkpoint SET note = ? WHERE size = 556",
            {Outcome.ALTERED, Outcome.UNSIGNED_OR_UNKNOWN_KEY},
        ),
        ("SELECT root FROM tile WHERE n = 1", "UPDATE tile SET root = ? WHERE n = 1", {Outcome.ALTERED}),
        ("SELECT hashes FROM tile WHERE n = 0", "UPDATE tile SET hashes = ? WHERE n = 0", {Outcome.ALTERED}),
        (
            "SELECT note FROM snapshot WHERE size = 536",
            "UPDATE snapshot SET note = ? WHERE size = 536",
            {Outcome.ALTERED, Outcome.UNSIGNED_OR_UNKNOWN_KEY},
        ),
        (
            "SELECT body FROM snapshot WHERE size = 556",
            "UPDATE snapshot SET body = ? WHERE size = 556",
            {Outcome.ALTERED},
        ),
    ],
)
def test_flip_in_anything_that_is_not_an_entry_is_found_and_no_entry_blamed(
    copy: Path, select: str, update: str, permitted: set[Outcome]
) -> None:
    ((value,),) = stored(copy, select)
    content = value.encode() if isinstance(value, str) else value
    for at in range(0, len(content), max(1, len(content) // 60)):
        altered = bytearray(content)
        altered[at] ^= 2
        spoilt: object = bytes(altered)
        if isinstance(value, str):
            spoilt = altered.decode(errors="replace")
        with forgery(copy) as connection:
            connection.execute(update, (spoilt,))
        found, index = outcome(copy)
        assert (found in permitted, index) == (True, None), at


# ── Attacks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def rewrite(path: Path, start: int, *, tiles: bool) -> None:
    """What a forger without the key can do best: other entries from ``start`` on, well formed and linked anew."""
    leaves = [leaf for (leaf,) in stored(path, "SELECT leaf FROM log ORDER BY idx")]
    kept = leaves[:start]
    records = [Record("fr.a.b.v1", canonical({"forged": at}), None) for at in range(len(leaves) - start)]
    stamp = Stamp(source=SIGNER.name, boot=BOOT, mono_ms=1, wall_ms=1, quality="ntp")
    forged, _ = build_leaves(start, leaf_hash(kept[-1]), records, stamp)
    full = Edge().extend(map(leaf_hash, kept + forged))
    with forgery(path) as connection:
        connection.executemany(
            "UPDATE log SET leaf = ? WHERE idx = ?", zip(forged, range(start, len(leaves)), strict=True)
        )
        if tiles:
            rows = [(tile.root, tile.hashes, tile.level, tile.n) for tile in full]
            connection.executemany("UPDATE tile SET root = ?, hashes = ? WHERE level = ? AND n = ?", rows)


def test_rewritten_entries_with_their_chain_are_named_from_the_first_by_the_tiles(copy: Path) -> None:
    rewrite(copy, 300, tiles=False)
    assert outcome(copy) == (Outcome.ALTERED, 300)


def test_rewritten_entries_with_their_chain_and_tiles_are_fenced_in_by_the_checkpoints(copy: Path) -> None:
    rewrite(copy, 300, tiles=True)
    assert outcome(copy) == (Outcome.ALTERED, 256)  # the last checkpoint that still fits
    assert "entries 256 to 405" in str(verify(copy, KEYS).problem)


def test_rewritten_entries_after_the_last_but_one_checkpoint_are_fenced_in(copy: Path) -> None:
    rewrite(copy, 540, tiles=True)
    verdict = verify(copy, KEYS)
    assert (verdict.outcome, verdict.index) == (Outcome.ALTERED, 555)
    assert "a run of entries after 535" in str(verdict.problem)


def test_entry_altered_together_with_its_tile_is_named_by_the_chain(copy: Path) -> None:
    ((leaf,),) = stored(copy, "SELECT leaf FROM log WHERE idx = 40")
    altered = leaf.replace(b'"cents":540', b'"cents":941')
    assert altered != leaf
    with forgery(copy) as connection:
        connection.execute("UPDATE log SET leaf = ? WHERE idx = 40", (altered,))
        leaves = [leaf for (leaf,) in connection.execute("SELECT leaf FROM log ORDER BY idx")]
        tile = Edge().extend(map(leaf_hash, leaves))[0]
        connection.execute("UPDATE tile SET root = ?, hashes = ? WHERE n = 0", (tile.root, tile.hashes))
    assert outcome(copy) == (Outcome.ALTERED, 40)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("DELETE FROM log WHERE idx >= 540", (Outcome.ROLLED_BACK_OR_FORKED, 540)),
        ("DELETE FROM log", (Outcome.ROLLED_BACK_OR_FORKED, 0)),
        ("DELETE FROM log WHERE idx = 17", (Outcome.INCOMPLETE, 17)),
        ("DELETE FROM log WHERE idx = 530", (Outcome.INCOMPLETE, 530)),
        ("DELETE FROM log WHERE idx = 0", (Outcome.INCOMPLETE, 0)),
        ("DELETE FROM tile WHERE n = 1", (Outcome.INCOMPLETE, None)),
        ("INSERT INTO tile SELECT 0, 2, root, hashes FROM tile WHERE n = 1", (Outcome.ALTERED, None)),
        ("INSERT INTO tile SELECT 1, 0, root, hashes FROM tile WHERE n = 1", (Outcome.ALTERED, None)),
        ("INSERT INTO log SELECT 556, leaf FROM log WHERE idx = 555", (Outcome.UNSIGNED_OR_UNKNOWN_KEY, 556)),
        ("INSERT INTO log VALUES (-1, x'00')", (Outcome.ALTERED, -1)),
        ("DELETE FROM checkpoint", (Outcome.UNSIGNED_OR_UNKNOWN_KEY, None)),
        ("DELETE FROM checkpoint WHERE size = 556", (Outcome.UNSIGNED_OR_UNKNOWN_KEY, 536)),
        ("UPDATE log SET leaf = (SELECT leaf FROM log WHERE idx = 8) WHERE idx = 9", (Outcome.ALTERED, 9)),
        ("UPDATE log SET leaf = zeroblob(9000) WHERE idx = 9", (Outcome.ALTERED, 9)),
        ("UPDATE log SET leaf = zeroblob(0) WHERE idx = 555", (Outcome.ALTERED, 555)),
        ("UPDATE checkpoint SET size = 407 WHERE size = 406", (Outcome.ALTERED, None)),
        ("INSERT INTO cursor VALUES ('mirror', 557)", (Outcome.ROLLED_BACK_OR_FORKED, 556)),
        ("DROP TABLE cosignature", (Outcome.ALTERED, None)),
    ],
)
def test_attack_with_plain_sql_gets_its_own_verdict(
    copy: Path, change: str, expected: tuple[Outcome, int | None]
) -> None:
    with forgery(copy) as connection:
        connection.execute(change)
    assert outcome(copy) == expected


def test_two_entries_that_changed_places_are_found_at_the_first(copy: Path) -> None:
    (first,), (second,) = stored(copy, "SELECT leaf FROM log WHERE idx IN (100, 101) ORDER BY idx")
    with forgery(copy) as connection:
        connection.execute("UPDATE log SET leaf = ? WHERE idx = 100", (second,))
        connection.execute("UPDATE log SET leaf = ? WHERE idx = 101", (first,))
    assert outcome(copy) == (Outcome.ALTERED, 100)


def test_journal_cut_back_to_a_kept_checkpoint_shows_only_to_who_remembers_the_later_one(copy: Path) -> None:
    ((later,),) = stored(copy, "SELECT note FROM checkpoint WHERE size = 556")
    ((earlier,),) = stored(copy, "SELECT note FROM checkpoint WHERE size = 100")
    with forgery(copy) as connection:
        connection.execute("DELETE FROM log WHERE idx >= 406")
        connection.execute("DELETE FROM checkpoint WHERE size > 406")
        connection.execute("DELETE FROM snapshot WHERE size > 406")
        connection.execute("DELETE FROM tile WHERE n > 0")
    assert outcome(copy) == (Outcome.OK, None)
    assert outcome(copy, remembered=earlier) == (Outcome.OK, None)
    assert outcome(copy, remembered=later) == (Outcome.ROLLED_BACK_OR_FORKED, 406)


def test_second_history_by_the_same_key_shows_to_who_remembers_the_first(copy: Path, tmp_path: Path) -> None:
    other = build(tmp_path / "other.db", [90, 10, 50])
    with closing(open_journal(other)) as fork:
        common = fork.checkpoint
        forked = fork.append(stakes(1, 999)).note
    assert outcome(copy, remembered=common) == (Outcome.OK, None)
    assert outcome(copy, remembered=forked) == (Outcome.ROLLED_BACK_OR_FORKED, None)
    assert verify(copy, KEYS, remembered=forked).code == "E-JOURNAL-FORKED"


def test_checkpoint_of_a_second_history_among_the_kept_ones_is_a_fork(copy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    Journal.create(other, SIGNER, allow_volatile=True)
    with closing(open_journal(other)) as fork:
        note = fork.append(stakes(406, 7)).note
    with forgery(copy) as connection:
        connection.execute("UPDATE checkpoint SET note = ? WHERE size = 406", (note,))
    verdict = verify(copy, KEYS)
    assert (verdict.outcome, verdict.code, verdict.index) == (
        Outcome.ROLLED_BACK_OR_FORKED,
        "E-JOURNAL-FORKED",
        256,
    )


def test_remembered_note_that_the_key_did_not_sign_is_refused(copy: Path, tmp_path: Path) -> None:
    foreign = build(tmp_path / "foreign.db", [3], OTHER_SIGNER)
    ((note,),) = stored(foreign, "SELECT note FROM checkpoint WHERE size = 3")
    for bad in (str(note), "nonsense"):
        with pytest.raises(NoteFault):
            verify(copy, KEYS, remembered=bad)


def test_journal_of_another_key_is_not_verified(copy: Path) -> None:
    assert verify(copy, LogKeys.of(OTHER_SIGNER.verifier)).outcome is Outcome.UNSIGNED_OR_UNKNOWN_KEY


@pytest.mark.parametrize("content", [b"", b"not a journal" * 100])
def test_file_that_is_no_journal_is_unreadable(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    assert outcome(path) == (Outcome.UNREADABLE, None)
    path.write_bytes(content)
    assert outcome(path) == (Outcome.UNREADABLE, None)


def test_journal_with_damaged_pages_is_unreadable(copy: Path) -> None:
    content = bytearray(copy.read_bytes())
    for page in range(12, len(content) // 4_096):
        content[page * 4_096 : page * 4_096 + 64] = b"\xff" * 64
    copy.write_bytes(content)
    assert outcome(copy)[0] is Outcome.UNREADABLE


def test_entry_that_was_signed_in_a_spelling_that_is_not_canonical_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build(tmp_path / "journal.db", [200])
    monkeypatch.setattr(leaf_module, "check_data", lambda texts: None)
    with closing(open_journal(path)) as journal:
        journal.append([*stakes(3), Record("fr.a.b.v1", '{"b":1,"a":2}', None), *stakes(100)])
    monkeypatch.undo()
    assert outcome(path) == (Outcome.ALTERED, 203)


# ── Several processes ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes even for a short journal."""
    monkeypatch.setattr(verify_module, "ALONE_BOUND", 0)
    monkeypatch.setattr(verify_module, "RUN_TILES", 1)


def test_verification_by_two_processes_agrees_and_tells_its_progress(copy: Path, eager: None) -> None:
    steps: list[tuple[int, int]] = []
    verdict = verify(copy, KEYS, lambda done, size: steps.append((done, size)), processes=2)
    assert verdict == verify(copy, KEYS, processes=1)
    assert (verdict.ok, steps) == (True, [(256, 556), (512, 556)])


def test_verification_by_two_processes_names_the_first_of_two_altered_entries(copy: Path, eager: None) -> None:
    with forgery(copy) as connection:
        for index in (300, 20):
            ((leaf,),) = connection.execute("SELECT leaf FROM log WHERE idx = ?", (index,))
            connection.execute("UPDATE log SET leaf = ? WHERE idx = ?", (leaf.replace(b"cents", b"cenTs"), index))
    verdict = verify(copy, KEYS, processes=2)
    assert (verdict.outcome, verdict.index, verdict.code) == (Outcome.ALTERED, 20, "E-JOURNAL-ALTERED")


def test_verification_leaves_the_journal_to_its_writer(path: Path) -> None:
    with closing(open_journal(path, ManualClock(7))) as journal:
        journal.append(stakes(3))
        assert verify(path, KEYS).ok
        journal.append(stakes(3))
        assert parse_leaf(journal.leaf(5)).mono_ms == 0
    with closing(connect_reader(path)) as connection:
        check_layout(connection, path)
