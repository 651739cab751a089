"""Changing the table's key: the statement, the overlap, and who believes what before, during and after it."""

from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.certify.checkpoint import parse_checkpoint
from controller.certify.faults import JournalFault, KeyFault, NoteFault
from controller.certify.journal import Journal
from controller.certify.leaf import Record, canonical
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, open_note, parse_note, sign_note
from controller.certify.recovery import recover
from controller.certify.rotation import (
    ROTATED_KIND,
    ROTATION_HEADER,
    open_rotation,
    pending_rotation,
    sign_rotation,
    trusting,
)
from controller.certify.storage import connect_reader
from controller.certify.verify import Outcome, verify
from drivers.clock import ManualClock
from games.custody import KeyRotated
from tests.controller.certify.workshop import BOOT, MIRROR, ORIGIN, build, forgery, stakes, stored

OLD, NEW, THIRD = (Signer(ORIGIN, bytes([at]) * 32) for at in (10, 11, 12))
STRANGER = Signer("casino.example/table/t08/1", bytes([13]) * 32)


def keys(*signers: Signer) -> LogKeys:
    return LogKeys.of(*(signer.verifier for signer in signers))


def code_of(note: str) -> str:
    with pytest.raises(KeyFault) as caught:
        open_rotation(note)
    return caught.value.code


def opened(path: Path, signer: Signer, previous: Signer | None = None) -> Journal:
    return Journal.open(path, signer, ManualClock(), BOOT, lambda: "ntp", previous=previous, allow_volatile=True)


def rotated(statement: str) -> Record:
    """The entry with which a daemon certifies a change of key."""
    return Record(ROTATED_KIND, canonical({"new_vkey": "", "old_vkey": "", "statement": statement}), None)


def with_rotation(path: Path, statement: str, *, snapshots: bool = False) -> Path:
    """300 entries by the old key, the change, 20 by both keys, 30 by the new one; checkpoints of each age are kept."""
    Journal.create(path, OLD, allow_volatile=True)
    with closing(opened(path, OLD)) as journal:
        journal.append(stakes(200), keep_checkpoint=True)
        journal.append(stakes(100, 200), keep_checkpoint=True, snapshot=b"at 300" if snapshots else None)
    with closing(opened(path, NEW, OLD)) as journal:
        journal.append([rotated(statement)], keep_checkpoint=True)
        journal.append(stakes(19, 301), keep_checkpoint=True)
    with closing(opened(path, NEW)) as journal:
        journal.append(stakes(30, 320), keep_checkpoint=True)
    return path


# ── The statement ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_statement_names_both_keys_and_bears_both_signatures() -> None:
    note = sign_rotation(OLD, NEW)
    rotation = open_rotation(note)
    assert (rotation.old.vkey, rotation.new.vkey) == (OLD.verifier.vkey, NEW.verifier.vkey)
    assert parse_note(note).text == f"{ROTATION_HEADER}\n{ORIGIN}\n{OLD.verifier.vkey}\n{NEW.verifier.vkey}\n"
    assert len(open_note(note, keys(OLD, NEW).verifiers).signatures) == 2
    assert ROTATED_KIND == KeyRotated.KIND


def test_statement_never_passes_for_a_checkpoint() -> None:
    with pytest.raises(NoteFault):
        parse_checkpoint(parse_note(sign_rotation(OLD, NEW)).text)


def test_statement_with_one_signature_or_another_text_is_refused() -> None:
    text = parse_note(sign_rotation(OLD, NEW)).text
    assert code_of(sign_note(text, OLD)) == "E-KEY-ROTATION"
    assert code_of(sign_note(text, NEW)) == "E-KEY-ROTATION"
    assert code_of(sign_note(text, OLD, THIRD)) == "E-KEY-ROTATION"
    assert code_of(sign_note(text.replace(ORIGIN, "casino.example/table/t08/1", 1), OLD, NEW)) == "E-KEY-ROTATION"
    assert code_of(sign_note(f"{text}more\n", OLD, NEW)) == "E-KEY-ROTATION"
    assert code_of(sign_note(text.replace("/v1", "/v2", 1), OLD, NEW)) == "E-KEY-ROTATION"
    assert code_of(sign_note(text.replace(NEW.verifier.vkey, OLD.verifier.vkey), OLD, NEW)) == "E-KEY-ROTATION"
    assert code_of("nonsense") == "E-KEY-ROTATION"


def test_keys_of_two_tables_or_of_another_type_or_twice_the_same_cannot_follow_each_other() -> None:
    cosigner = Signer(ORIGIN, bytes(32), KeyType.COSIGNATURE)
    for old, new in ((OLD, STRANGER), (OLD, cosigner), (cosigner, NEW), (OLD, OLD)):
        with pytest.raises(KeyFault) as caught:
            sign_rotation(old, new)
        assert caught.value.code == "E-KEY-ROTATION"


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_statement_with_any_flipped_bit_is_refused(at: int, bit: int) -> None:
    content = bytearray(sign_rotation(OLD, NEW).encode())
    content[at % len(content)] ^= 1 << bit
    with pytest.raises(KeyFault):
        open_rotation(content.decode(errors="replace"))


def test_statement_is_pending_until_the_journal_knows_the_new_key() -> None:
    assert pending_rotation(None, NEW, "") is None
    assert pending_rotation(OLD, NEW, "") == sign_rotation(OLD, NEW)
    assert pending_rotation(OLD, NEW, OLD.verifier.vkey) == sign_rotation(OLD, NEW)
    assert pending_rotation(OLD, NEW, NEW.verifier.vkey) is None


# ── Trust passes back, from a known key only ─────────────────────────────────────────────────────────────────────────


def test_trust_passes_back_through_every_change_and_never_forward() -> None:
    chain = [sign_rotation(OLD, NEW), sign_rotation(NEW, THIRD)]
    assert [one.vkey for one in trusting(keys(THIRD), chain).verifiers] == [
        one.verifier.vkey for one in (OLD, NEW, THIRD)
    ]
    assert [one.vkey for one in trusting(keys(OLD), chain).verifiers] == [OLD.verifier.vkey]


def test_trust_does_not_pass_through_statements_that_do_not_hold_or_are_of_others() -> None:
    text = parse_note(sign_rotation(OLD, NEW)).text
    for statement in (sign_note(text, NEW), sign_note(text, OLD), "nonsense", "", sign_rotation(OLD, THIRD)):
        assert len(trusting(keys(NEW), [statement]).verifiers) == 1


def test_trust_passes_back_to_sixteen_keys_at_the_most() -> None:
    signers = [Signer(ORIGIN, bytes([at]) * 32) for at in range(40, 60)]
    chain = [sign_rotation(old, new) for old, new in pairwise(signers)]
    assert len(trusting(keys(signers[-1]), chain).verifiers) == 16


# ── The journal ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_overlap_has_both_signatures_on_every_checkpoint_and_snapshot(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [5], OLD)
    with closing(opened(path, NEW, OLD)) as journal:
        note = journal.append(stakes(1), snapshot=b"state", keep_checkpoint=True).note
    ((snapshot,),) = stored(path, "SELECT note FROM snapshot")
    for one in (note, snapshot):
        for key in (OLD, NEW):
            assert len(open_note(one, [key.verifier]).signatures) == 1


def test_each_key_opens_the_journal_as_long_as_it_signed_its_end(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [5], OLD)
    with pytest.raises(JournalFault) as early:
        opened(path, NEW)
    assert early.value.code == "E-JOURNAL-KEY"  # the new key alone, before any overlap
    with closing(opened(path, NEW, OLD)) as journal:
        journal.append(stakes(1))
    opened(path, OLD).close()  # the change may still be called off
    with closing(opened(path, NEW)) as journal:
        journal.append(stakes(1))
    with pytest.raises(JournalFault) as late:
        opened(path, OLD)
    assert late.value.code == "E-JOURNAL-KEY"


def test_journal_is_not_opened_with_the_keys_of_two_tables(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [5], OLD)
    with pytest.raises(KeyFault):
        opened(path, STRANGER, OLD)
    opened(path, OLD).close()


def test_start_after_the_overlap_passes_over_a_snapshot_of_the_old_key_and_reads_everything(tmp_path: Path) -> None:
    path = with_rotation(tmp_path / "journal.db", sign_rotation(OLD, NEW), snapshots=True)
    with closing(opened(path, NEW)) as journal:
        assert journal.latest_snapshot() is None
        assert journal.size == 350
    with closing(connect_reader(path)) as connection:
        assert recover(connection, path, keys(OLD, NEW)).edge.size == 350


def test_cosignature_in_the_overlap_is_kept_under_a_checkpoint_of_both_keys(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [5], OLD)
    with closing(opened(path, NEW, OLD)) as journal:
        note = journal.append(stakes(1)).note
        cosigned = f"{note}{MIRROR.sign(parse_note(note).text, 7).line}\n"
        assert journal.add_cosignature(cosigned, MIRROR.verifier).size == 6
        journal.append(stakes(1))
    ((kept,),) = stored(path, "SELECT note FROM checkpoint WHERE size = 6")
    assert kept == note


# ── Verification ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_verification_with_both_keys_or_with_the_new_one_alone_is_ok(tmp_path: Path) -> None:
    path = with_rotation(tmp_path / "journal.db", sign_rotation(OLD, NEW), snapshots=True)
    for given_keys in (keys(OLD, NEW), keys(NEW)):
        verdict = verify(path, given_keys)
        assert (verdict.outcome, verdict.size, verdict.checkpoints) == (Outcome.OK, 350, 6), verdict


def test_verification_with_the_old_key_is_ok_up_to_the_end_of_the_overlap(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [300], OLD)
    with closing(opened(path, NEW, OLD)) as journal:
        journal.append([rotated(sign_rotation(OLD, NEW)), *stakes(3)])
    assert verify(path, keys(OLD)).ok
    with closing(opened(path, NEW)) as journal:
        journal.append(stakes(1))
    assert verify(path, keys(OLD)).code == "E-JOURNAL-KEY"


@pytest.mark.parametrize(
    "statement",
    [
        "",
        sign_rotation(OLD, THIRD),
        sign_rotation(THIRD, NEW),
        sign_note(parse_note(sign_rotation(OLD, NEW)).text, NEW),
        sign_note(parse_note(sign_rotation(OLD, NEW)).text, OLD),
    ],
)
def test_verification_with_the_new_key_alone_needs_a_statement_that_both_signed(tmp_path: Path, statement: str) -> None:
    path = with_rotation(tmp_path / "journal.db", statement)
    verdict = verify(path, keys(NEW))
    assert (verdict.outcome, verdict.code) == (Outcome.UNSIGNED_OR_UNKNOWN_KEY, "E-JOURNAL-KEY")
    assert verify(path, keys(OLD, NEW)).ok


def test_checkpoint_of_another_history_by_the_old_key_is_found_with_the_new_key_alone(tmp_path: Path) -> None:
    path = with_rotation(tmp_path / "journal.db", sign_rotation(OLD, NEW))
    other = build(tmp_path / "other.db", [10, 190], OLD)
    with closing(opened(other, OLD)) as fork:
        forked = fork.append(stakes(100, 7)).note
    with forgery(path) as connection:
        connection.execute("UPDATE checkpoint SET note = ? WHERE size = 300", (forked,))
    verdict = verify(path, keys(NEW))
    assert (verdict.outcome, verdict.code) == (Outcome.ROLLED_BACK_OR_FORKED, "E-JOURNAL-FORKED")


def test_unknown_signature_lines_by_the_name_of_the_table_break_nothing(tmp_path: Path) -> None:
    path = build(tmp_path / "journal.db", [5, 5], OLD)
    for extra in (THIRD, Signer(ORIGIN, bytes(32), KeyType.COSIGNATURE)):
        with forgery(path) as connection:
            for size, note in connection.execute("SELECT size, note FROM checkpoint").fetchall():
                line = extra.sign(parse_note(note).text, 5).line
                connection.execute("UPDATE checkpoint SET note = ? WHERE size = ?", (f"{note}{line}\n", size))
        assert verify(path, keys(OLD)).ok
        with closing(opened(path, OLD)) as journal:
            assert journal.size == 10
