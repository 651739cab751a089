"""Entries that the disk lost come back from the mirror: exactly those that our own key signed, or none."""

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller.certify.checkpoint import Checkpoint
from controller.certify.faults import CertifyFault
from controller.certify.journal import Journal
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signature, format_note, open_note
from controller.certify.verify import verify
from tests.controller.certify.workshop import (
    MIRROR,
    OTHER_SIGNER,
    SIGNER,
    Saboteur,
    build,
    open_journal,
    stakes,
    stored,
)

COPIED, LOST = 300, 400
KEYS = LogKeys.of(SIGNER.verifier)


@dataclass
class Loss:
    """A journal that went back to ``COPIED`` entries, and what the mirror still has of the ``LOST`` ones."""

    path: Path
    leaves: list[bytes]
    note: str


def by_mirror(checkpoint: Checkpoint, *signatures: Signature) -> str:
    """The checkpoint as the mirror sends it back."""
    return format_note(checkpoint.text, [*signatures, MIRROR.sign(checkpoint.text, 1_796_000_000)])


@pytest.fixture
def loss(tmp_path: Path) -> Loss:
    whole = build(tmp_path / "whole.db", [COPIED])
    copied = tmp_path / "journal.db"
    shutil.copy(whole, copied)
    with closing(open_journal(whole)) as journal:
        for at in range(COPIED, COPIED + LOST, 100):
            journal.append(stakes(100, at))
        text = open_note(journal.checkpoint, [SIGNER.verifier]).text
        note = format_note(text, [SIGNER.sign(text), MIRROR.sign(text, 1_796_000_000)])
        return Loss(copied, list(journal.leaves(COPIED, journal.size)), note)


def refused(journal: Journal, leaves: list[bytes], note: str) -> CertifyFault:
    """The fault that a restoration ends with; it must have changed nothing."""
    before = (journal.size, journal.root, journal.checkpoint)
    with pytest.raises(CertifyFault) as fault:
        journal.restore_entries(leaves, note, MIRROR.verifier)
    assert (journal.size, journal.root, journal.checkpoint) == before
    return fault.value


def test_lost_entries_come_back_and_the_journal_goes_on_after_them(loss: Loss) -> None:
    with closing(open_journal(loss.path)) as journal:
        assert journal.restore_entries(loss.leaves, loss.note, MIRROR.verifier).size == COPIED + LOST
        assert list(journal.leaves(COPIED, journal.size)) == loss.leaves
        assert journal.append(stakes(1, 700)).first_index == COPIED + LOST
    verdict = verify(loss.path, KEYS)
    assert (verdict.ok, verdict.size) == (True, COPIED + LOST + 1)
    assert stored(loss.path, "SELECT size, name FROM cosignature") == [(COPIED + LOST, MIRROR.name)]


def test_journal_that_lost_everything_takes_everything_back(tmp_path: Path, loss: Loss) -> None:
    whole, empty = tmp_path / "whole.db", tmp_path / "empty.db"
    Journal.create(empty, SIGNER, allow_volatile=True)
    with closing(open_journal(whole)) as journal:
        leaves = list(journal.leaves(0, journal.size))
    with closing(open_journal(empty)) as journal:
        journal.restore_entries(leaves, loss.note, MIRROR.verifier)
    assert verify(empty, KEYS, remembered=loss.note).ok


Spoil = Callable[[list[bytes]], list[bytes]]


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda leaves: leaves[:-1], "E-JOURNAL-INCOMPLETE"),
        (lambda leaves: leaves[1:], "E-JOURNAL-INCOMPLETE"),
        (lambda leaves: [], "E-JOURNAL-INCOMPLETE"),
        (lambda leaves: [*leaves, leaves[-1]], "E-JOURNAL-INCOMPLETE"),
        (lambda leaves: [*leaves[1:], leaves[0]], "E-JOURNAL-FORKED"),
        (lambda leaves: [leaves[0].replace(b'"cents":800', b'"cents":801'), *leaves[1:]], "E-JOURNAL-FORKED"),
        (lambda leaves: [*leaves[:-1], b""], "E-JOURNAL-FORKED"),
        (lambda leaves: [b"{" * 9_000] * len(leaves), "E-JOURNAL-FORKED"),
    ],
)
def test_entries_that_are_not_exactly_those_signed_are_refused_and_nothing_is_changed(
    loss: Loss, spoil: Spoil, code: str
) -> None:
    with closing(open_journal(loss.path)) as journal:
        spoiled = spoil(loss.leaves)
        assert refused(journal, spoiled, loss.note).code == code
        journal.restore_entries(loss.leaves, loss.note, MIRROR.verifier)
    assert verify(loss.path, KEYS).ok


def test_acknowledgement_that_our_key_or_the_mirrors_did_not_sign_restores_nothing(loss: Loss) -> None:
    opened = open_note(loss.note, [SIGNER.verifier, MIRROR.verifier])
    own, by = opened.signatures
    notes = {
        format_note(opened.text, [by]): "E-NOTE-UNSIGNED",
        format_note(opened.text, [own]): "E-NOTE-UNSIGNED",
        format_note(opened.text, [OTHER_SIGNER.sign(opened.text), by]): "E-NOTE-UNSIGNED",
        format_note(opened.text, [own, MIRROR.sign("x\n", 1_796_000_000)]): "E-NOTE-SIGNATURE",
    }
    with closing(open_journal(loss.path)) as journal:
        for note, code in notes.items():
            assert refused(journal, loss.leaves, note).code == code


def test_entries_after_a_tail_of_our_own_that_the_mirror_does_not_know_are_a_fork(loss: Loss) -> None:
    with closing(open_journal(loss.path)) as journal:
        journal.append(stakes(1, 9_000))  # played on, after the disk went back
        assert refused(journal, loss.leaves[1:], loss.note).code == "E-JOURNAL-FORKED"


@pytest.mark.parametrize("stores", [False, True])
def test_restoration_whose_commit_fails_is_all_there_or_not_at_all_at_the_next_start(
    loss: Loss, monkeypatch: pytest.MonkeyPatch, stores: bool
) -> None:
    with closing(open_journal(loss.path)) as journal:
        monkeypatch.setattr(journal, "_connection", Saboteur(journal._connection, stores=stores))
        assert refused(journal, loss.leaves, loss.note).code == "E-JOURNAL-WRITE"
        assert refused(journal, loss.leaves, loss.note).code == "E-JOURNAL-WRITE"
    with closing(open_journal(loss.path)) as journal:
        assert journal.size == (COPIED + LOST if stores else COPIED)
        if not stores:
            journal.restore_entries(loss.leaves, loss.note, MIRROR.verifier)
    assert verify(loss.path, KEYS).size == COPIED + LOST


def test_checkpoint_of_the_restoration_is_kept_beside_the_next_one(loss: Loss) -> None:
    with closing(open_journal(loss.path)) as journal:
        journal.restore_entries(loss.leaves, loss.note, MIRROR.verifier)
        journal.append(stakes(1, 700))
        journal.append(stakes(1, 701))
    sizes = [size for (size,) in stored(loss.path, "SELECT size FROM checkpoint ORDER BY size")]
    assert COPIED + LOST in sizes


def test_restoration_that_is_short_says_which_entries_are_missing(loss: Loss) -> None:
    with closing(open_journal(loss.path)) as journal:
        assert (
            "entries 300 to 699 are missing, and 399 were given back"
            in refused(journal, loss.leaves[1:], loss.note).detail
        )


def test_acknowledgement_that_lacks_a_signature_says_whose(loss: Loss) -> None:
    opened = open_note(loss.note, [SIGNER.verifier, MIRROR.verifier])
    own, by = opened.signatures
    with closing(open_journal(loss.path)) as journal:
        assert refused(journal, loss.leaves, format_note(opened.text, [by])).detail.endswith(f"by {SIGNER.name}")
        assert refused(journal, loss.leaves, format_note(opened.text, [own])).detail.endswith(f"by {MIRROR.name}")
