"""The full verification of what stands beside the entries: cosignatures, quorum, what the file says of itself."""

from contextlib import closing
from pathlib import Path
from shutil import copyfile

import pytest

from controller.certify.journal import Journal
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, parse_note
from controller.certify.policy import Policy
from controller.certify.verify import Outcome, Verdict, verify
from tests.controller.certify.workshop import (
    MIRROR,
    OTHER_SIGNER,
    SIGNER,
    build,
    forgery,
    open_journal,
    stakes,
    stored,
)

KEYS = LogKeys.of(SIGNER.verifier)
CASHIER = Signer("caisse.example/witness", bytes(range(3, 35)), KeyType.COSIGNATURE)
LOG = f"log {SIGNER.verifier.vkey}\nwitness mirror {MIRROR.verifier.vkey}\nwitness caisse {CASHIER.verifier.vkey}\n"
NOBODY, MIRROR_ONLY = Policy.parse(f"{LOG}quorum none\n"), Policy.parse(f"{LOG}quorum mirror\n")
BOTH = Policy.parse(f"{LOG}group both all mirror caisse\nquorum both\n")


def cosign(journal: Journal, note: str, cosigner: Signer, time_s: int = 1_764_547_200) -> None:
    journal.add_cosignature(f"{note}{cosigner.sign(parse_note(note).text, time_s).line}\n", cosigner.verifier)


@pytest.fixture(scope="module")
def cosigned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 entries; the mirror cosigned 100, 300 and 560, the cashier's desk 300."""
    path = build(tmp_path_factory.mktemp("cosigned") / "journal.db", [1])
    with closing(open_journal(path)) as journal:
        for size, cosigners in ((100, [MIRROR]), (300, [MIRROR, CASHIER]), (560, [MIRROR]), (600, [])):
            note = journal.append(stakes(size - journal.size, journal.size), snapshot=b"%d" % size).note
            for cosigner in cosigners:
                cosign(journal, note, cosigner)
    return path


@pytest.fixture
def copy(cosigned: Path, tmp_path: Path) -> Path:
    """A copy that may be spoiled."""
    path = tmp_path / "copy.db"
    copyfile(cosigned, path)
    return path


def spoilt(path: Path, *changes: str, policy: Policy | None = MIRROR_ONLY) -> Verdict:
    with forgery(path) as connection:
        for change in changes:
            connection.execute(change)
    return verify(path, KEYS, policy=policy)


# ── Cosignatures ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("policy", "verified", "unknown", "witnessed"),
    [
        (None, 0, 4, None),
        (NOBODY, 4, 0, 560),
        (MIRROR_ONLY, 4, 0, 560),
        (BOTH, 4, 0, 300),
        (Policy.parse(f"witness mirror {MIRROR.verifier.vkey}\nquorum mirror\n"), 3, 1, 560),
    ],
)
def test_cosignatures_of_known_witnesses_are_verified_and_others_are_counted(
    cosigned: Path, policy: Policy | None, verified: int, unknown: int, witnessed: int | None
) -> None:
    verdict = verify(cosigned, KEYS, policy=policy)
    assert verdict.ok
    assert (verdict.cosignatures, verdict.unknown_cosignatures, verdict.witnessed) == (verified, unknown, witnessed)


def test_journal_that_no_witness_of_the_quorum_cosigned_is_unsigned(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [300])
    verdict = verify(path, KEYS, policy=MIRROR_ONLY)
    assert (verdict.outcome, verdict.code) == (Outcome.UNSIGNED_OR_UNKNOWN_KEY, "E-POLICY-QUORUM")
    with closing(open_journal(path)) as journal:
        cosign(journal, journal.checkpoint, MIRROR)
    assert verify(path, KEYS, policy=MIRROR_ONLY).witnessed == 300
    assert verify(path, KEYS, policy=BOTH).code == "E-POLICY-QUORUM"  # one of two is not enough


def test_two_witnesses_of_two_checkpoints_are_no_quorum_of_either(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [1])
    with closing(open_journal(path)) as journal:
        cosign(journal, journal.append(stakes(1)).note, MIRROR)
        cosign(journal, journal.append(stakes(1)).note, CASHIER)
    assert verify(path, KEYS, policy=BOTH).code == "E-POLICY-QUORUM"


@pytest.mark.parametrize("size", [100, 300, 560])
def test_flip_of_any_byte_of_a_cosignature_of_a_known_witness_is_found(copy: Path, size: int) -> None:
    where = f"WHERE size = {size} AND name = '{MIRROR.name}'"
    ((line,),) = stored(copy, f"SELECT line FROM cosignature {where}")
    content = str(line).encode()
    for at in range(0, len(content), 7):
        altered = bytearray(content)
        altered[at] ^= 1
        with forgery(copy) as connection:
            connection.execute(f"UPDATE cosignature SET line = ? {where}", (altered.decode(errors="replace"),))
        verdict = verify(copy, KEYS, policy=MIRROR_ONLY)
        unknown_key = verdict.ok and verdict.unknown_cosignatures == 1  # the four bytes that say whose it is
        assert verdict.outcome is Outcome.ALTERED or unknown_key, (at, verdict)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE cosignature SET size = 301 WHERE size = 300",
        "UPDATE OR REPLACE cosignature SET size = 100 WHERE size = 560",
        "UPDATE cosignature SET name = 'somebody' WHERE size = 560",
        "UPDATE cosignature SET line = (SELECT line FROM cosignature WHERE size = 100) WHERE size = 560",
        "UPDATE cosignature SET line = line || char(10) || line WHERE size = 560",
        "UPDATE cosignature SET line = '' WHERE size = 560",
        "DELETE FROM checkpoint WHERE size = 300",
    ],
)
def test_cosignature_that_was_moved_renamed_or_cut_loose_is_found(copy: Path, change: str) -> None:
    verdict = spoilt(copy, change)
    assert (verdict.outcome, verdict.index) == (Outcome.ALTERED, None), verdict


# ── Beside the entries ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ("UPDATE meta SET value = 'casino.example/table/t08/1' WHERE name = 'origin'", Outcome.ALTERED),
        ("UPDATE meta SET value = value || 'x' WHERE name = 'vkey'", Outcome.UNSIGNED_OR_UNKNOWN_KEY),
        ("DELETE FROM meta WHERE name = 'vkey'", Outcome.ALTERED),
        ("INSERT INTO meta VALUES ('remark', 'nothing')", Outcome.ALTERED),
        ("CREATE TABLE more (a INTEGER)", Outcome.ALTERED),
        ("CREATE VIEW more AS SELECT 1", Outcome.ALTERED),
        ("DROP INDEX tile_root", Outcome.ALTERED),
        ("INSERT INTO checkpoint SELECT -1, note FROM checkpoint WHERE size = 0", Outcome.ALTERED),
        ("INSERT INTO cursor VALUES ('mirror', -1)", Outcome.ALTERED),
        ("UPDATE checkpoint SET note = (SELECT note FROM checkpoint WHERE size = 1) WHERE size = 0", Outcome.ALTERED),
        ("UPDATE snapshot SET note = (SELECT note FROM snapshot WHERE size = 560) WHERE size = 600", Outcome.ALTERED),
    ],
)
def test_anything_changed_beside_the_entries_is_found(copy: Path, change: str, outcome: Outcome) -> None:
    verdict = spoilt(copy, change)
    assert (verdict.outcome, verdict.index) == (outcome, None), verdict


def test_vkey_of_another_key_in_the_file_is_found(copy: Path) -> None:
    verdict = spoilt(copy, f"UPDATE meta SET value = '{OTHER_SIGNER.verifier.vkey}' WHERE name = 'vkey'")
    assert verdict.code == "E-JOURNAL-KEY"


@pytest.mark.parametrize(
    "beside",
    [
        "CREATE TRIGGER more AFTER INSERT ON cursor BEGIN SELECT 1; END",
        "CREATE TABLE more (a INTEGER)",
        "INSERT INTO tile SELECT 0, 2, root, hashes FROM tile WHERE n = 1",
    ],
)
@pytest.mark.parametrize("index", [7, 599])
def test_entry_that_was_altered_together_with_something_beside_it_is_named_and_both_are_told(
    copy: Path, beside: str, index: int
) -> None:
    with forgery(copy) as connection:
        ((leaf,),) = connection.execute("SELECT leaf FROM log WHERE idx = ?", (index,)).fetchall()
        connection.execute("UPDATE log SET leaf = ? WHERE idx = ?", (leaf.replace(b"cents", b"cenTs"), index))
    verdict = spoilt(copy, beside)
    assert (verdict.outcome, verdict.index) == (Outcome.ALTERED, index)
    assert f"entry {index}" in str(verdict.problem)
    assert len(verdict.others) == 1


def test_two_changes_beside_the_entries_are_both_told(copy: Path) -> None:
    verdict = spoilt(copy, "CREATE TABLE more (a INTEGER)", "INSERT INTO meta VALUES ('remark', 'nothing')")
    assert (verdict.outcome, verdict.code, len(verdict.others)) == (Outcome.ALTERED, "E-JOURNAL-ALTERED", 1)


def test_snapshot_of_another_history_by_the_same_key_is_found(copy: Path, tmp_path: Path) -> None:
    other = build(tmp_path / "other.db", [50])
    with closing(open_journal(other)) as fork:
        fork.append(stakes(550, 7_000), snapshot=b"richer")
    ((body, note),) = stored(other, "SELECT body, note FROM snapshot")
    with forgery(copy) as connection:
        connection.execute("UPDATE snapshot SET body = ?, note = ? WHERE size = 600", (body, note))
    verdict = verify(copy, KEYS)
    assert (verdict.outcome, verdict.problem) == (
        Outcome.ALTERED,
        "the snapshot at 600 entries is not the one that was signed",
    )
