"""The verification of archives: whatever is done to one is found, with the right outcome, and the entry is named."""

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.certify.archive_check import verify_archive
from controller.certify.checkpoint import Checkpoint
from controller.certify.faults import NoteFault
from controller.certify.journal import Journal
from controller.certify.leaf import leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, format_note, parse_note, sign_note
from controller.certify.policy import Policy
from controller.certify.tar import TarReader
from controller.certify.tree import root_of
from controller.certify.verify import Outcome
from docs.samples.make_samples import Archive
from drivers.clock import ManualClock
from tests.controller.certify.archives import KEYS, archive, contents_of, judge, play, taken_apart
from tests.controller.certify.workshop import BOOT, MIRROR, OTHER_SIGNER, SIGNER, stakes

ALTERED, FORKED = Outcome.ALTERED, Outcome.ROLLED_BACK_OR_FORKED
UNSIGNED, INCOMPLETE, UNREADABLE = Outcome.UNSIGNED_OR_UNKNOWN_KEY, Outcome.INCOMPLETE, Outcome.UNREADABLE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with two séances, and the archives of both and of all of it."""
    folder = tmp_path_factory.mktemp("archives")
    journal = play(folder / "journal.db", cosigned=[1, 3])
    for name, seance in (("s-1", "s-1"), ("s-2", "s-2"), ("all", None)):
        archive(journal, folder / f"{name}.tar", seance)
    return folder


@pytest.fixture
def good(folder: Path) -> Archive:
    """The second séance, entries 345 to 544 of 545, taken apart."""
    return taken_apart(folder / "s-2.tar")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.tar"


def found(bad: Archive, out: Path) -> tuple[Outcome, str | None, int | None]:
    verdict = judge(bad.write(out))
    return verdict.outcome, verdict.code, verdict.index


# ── Every byte ────────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_bit_flipped_anywhere_in_an_archive_is_found_and_its_entry_named(folder: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["s-1.tar", "s-2.tar"]))
    content = (folder / name).read_bytes()
    at, bit = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 7))
    bad = folder / "flipped.tar"
    bad.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
    verdict = judge(bad)
    assert verdict.outcome is not Outcome.OK
    index = entry_at(folder / name, at)
    if index is not None:
        assert (verdict.outcome, verdict.index) == (Outcome.ALTERED, index)


def entry_at(path: Path, at: int) -> int | None:
    """The entry to which byte ``at`` of an archive belongs, its line or its place in a bundle."""
    with path.open("rb") as file:
        tar = TarReader.open(file)
        for name, member in tar.members.items():
            if not member.offset <= at < member.offset + member.length:
                continue
            if name == "events.jsonl":
                return contents_of(path).span.start + tar.read(name, 1 << 30)[: at - member.offset].count(b"\n")
            if name.startswith("tile/entries/"):
                return _entry_in_bundle(tar.read(name, 1 << 30), int(name[13:16]) * 256, at - member.offset)
    return None


def _entry_in_bundle(content: bytes, first: int, at: int) -> int:
    index, begin = first, 0
    while begin + 2 + int.from_bytes(content[begin : begin + 2]) <= at:
        begin += 2 + int.from_bytes(content[begin : begin + 2])
        index += 1
    return index


# ── What is not what was signed ───────────────────────────────────────────────────────────────────────────────────────


def test_entry_changed_in_its_bundle_is_named(good: Archive, out: Path) -> None:
    name = "tile/entries/001"
    bad = good.with_member(name, good.contents[name].replace(b'"cents":900,', b'"cents":901,', 1))
    assert found(bad, out) == (ALTERED, "E-JOURNAL-ALTERED", 400)


def test_entry_changed_with_its_line_and_its_tile_is_named(tmp_path: Path, out: Path) -> None:
    parts = [(40, None), (100, "s-1"), (5, None)]
    archive(play(tmp_path / "journal.db", parts), out, "s-1")
    small = taken_apart(out)
    for index in (40, 41, 99, 138, 139):
        leaves = small.leaves
        leaves[index] = leaves[index].replace(b'"cents":', b'"cents":1', 1)
        assert found(small.with_leaves(leaves), out) == (ALTERED, "E-JOURNAL-ALTERED", index)


def test_tile_changed_alone_is_told_from_its_entries(good: Archive, out: Path) -> None:
    for name in ("tile/0/001", "tile/0/002.p/33"):
        bad = good.with_member(name, good.contents[name][:-1] + bytes([good.contents[name][-1] ^ 1]))
        verdict = judge(bad.write(out))
        assert (verdict.outcome, verdict.index) == (ALTERED, None)
        assert "the entries under it were not" in str(verdict.problem)


def test_tile_of_an_upper_level_changed_is_found(good: Archive, out: Path) -> None:
    bad = good.with_member("tile/1/000.p/2", bytes(64))
    assert found(bad, out) == (ALTERED, "E-JOURNAL-ALTERED", None)


@pytest.mark.parametrize("name", ["tile/0/001", "tile/0/002.p/33", "tile/1/000.p/2"])
def test_tile_too_short_or_too_long_is_found(good: Archive, out: Path, name: str) -> None:
    assert found(good.with_member(name, good.contents[name][:-1]), out)[:2] == (ALTERED, "E-ARCHIVE-FORM")
    assert found(good.with_member(name, good.contents[name] + b"\0"), out)[:2] == (UNREADABLE, "E-ARCHIVE-LARGE")


def test_bundle_with_a_wrong_length_names_the_entry(good: Archive, out: Path) -> None:
    content = bytearray(good.contents["tile/entries/002.p/33"])
    content[0:2] = (65_535).to_bytes(2)
    assert found(good.with_member("tile/entries/002.p/33", bytes(content)), out)[::2] == (ALTERED, 512)


def test_bundle_that_goes_on_after_its_last_entry_is_found(good: Archive, out: Path) -> None:
    name = "tile/entries/002.p/33"
    assert found(good.with_member(name, good.contents[name] + b"\0\1x"), out)[0] is ALTERED


def test_line_left_out_is_found_where_it_is_missing(good: Archive, out: Path) -> None:
    lines = good.contents["events.jsonl"].splitlines(keepends=True)
    bad = good.with_member("events.jsonl", b"".join(lines[:10] + lines[11:]))
    assert found(bad, out) == (ALTERED, "E-JOURNAL-ALTERED", 355)
    assert found(good.with_member("events.jsonl", b"".join(lines[:-1])), out) == (
        INCOMPLETE,
        "E-ARCHIVE-INCOMPLETE",
        544,
    )
    assert found(good.with_member("events.jsonl", b"".join([*lines, lines[0]])), out)[0] is ALTERED


@pytest.mark.parametrize("name", ["README", "policy"])
def test_text_changed_by_one_word_is_found(good: Archive, out: Path, name: str) -> None:
    content = good.contents[name]
    assert found(good.with_member(name, content.replace(b"w", b"v", 1)), out)[0] is ALTERED
    assert found(good.with_member(name, content + b"\n"), out)[0] in {ALTERED, UNREADABLE}


def test_policy_with_another_quorum_is_found(good: Archive, out: Path) -> None:
    policy = good.contents["policy"].replace(b"witnesses 1", b"witnesses all")
    assert found(good.with_member("policy", policy), out) == (ALTERED, "E-ARCHIVE-FORM", None)


def test_policy_with_a_key_that_signed_nothing_is_found(good: Archive, out: Path) -> None:
    policy = f"log {OTHER_SIGNER.verifier.vkey}\n".encode() + good.contents["policy"]
    assert found(good.with_member("policy", policy), out) == (ALTERED, "E-ARCHIVE-FORM", None)


def test_policy_that_is_no_policy_is_found(good: Archive, out: Path) -> None:
    for policy in (b"", b"log x\n", b"\xff", b"log " + SIGNER.verifier.vkey.encode()[:-4] + b"\n"):
        assert found(good.with_member("policy", policy), out)[:2] == (ALTERED, "E-ARCHIVE-FORM")


def test_time_of_the_members_other_than_that_of_the_last_entry_is_found(good: Archive, out: Path) -> None:
    assert found(replace(good, time_s=good.time_s + 1), out) == (ALTERED, "E-ARCHIVE-FORM", None)


# ── What is missing, and what is too much ─────────────────────────────────────────────────────────────────────────────


def test_member_left_out_is_incomplete_whichever_it_is(folder: Path, out: Path) -> None:
    for archive_name in ("s-2", "all"):
        whole = taken_apart(folder / f"{archive_name}.tar")
        needed = [name for name in whole.contents if not name.startswith("checkpoints/")]
        assert len(needed) >= 9
        for name in needed:
            assert found(whole.without(name), out)[0] in {INCOMPLETE, UNREADABLE}, name


def test_member_too_much_is_found(good: Archive, out: Path) -> None:
    for name in ("tile/0/000", "zzz", "seance.txt", "tile/entries/002", "tile/entries/x001/000"):
        assert found(good.with_member(name, b"x"), out)[0] is not Outcome.OK, name


def test_archive_of_a_seance_under_another_name_is_incomplete(good: Archive, out: Path) -> None:
    assert found(replace(good, folder="seance-s-9"), out)[:2] == (INCOMPLETE, "E-ARCHIVE-INCOMPLETE")
    assert found(replace(good, folder="elsewhere"), out)[:2] == (ALTERED, "E-ARCHIVE-FORM")


def test_archive_of_a_seance_as_one_of_a_whole_journal_is_incomplete(good: Archive, out: Path) -> None:
    assert found(replace(good, folder="journal"), out)[:2] == (INCOMPLETE, "E-ARCHIVE-INCOMPLETE")


# ── Keys and signatures ───────────────────────────────────────────────────────────────────────────────────────────────


def test_archive_signed_by_another_key_of_the_same_name_is_of_an_unknown_key(tmp_path: Path, out: Path) -> None:
    other = LogKeys.of(OTHER_SIGNER.verifier)
    archive(play(tmp_path / "journal.db", signer=OTHER_SIGNER), out, "s-1", other)
    assert judge(out, keys=other).ok
    verdict = judge(out)
    assert (verdict.outcome, verdict.code) == (UNSIGNED, "E-JOURNAL-KEY")


def test_archive_judged_by_the_keys_of_an_overlap_verifies_with_either(folder: Path) -> None:
    assert judge(folder / "s-1.tar", keys=LogKeys.of(OTHER_SIGNER.verifier, SIGNER.verifier)).ok


def test_checkpoint_with_the_mirrors_line_alone_is_unsigned(good: Archive, out: Path) -> None:
    parsed = parse_note(good.contents["checkpoint"].decode())
    alone = format_note(parsed.text, [one for one in parsed.signatures if one.name == MIRROR.name])
    assert found(good.with_member("checkpoint", alone.encode()), out)[:2] == (UNSIGNED, "E-JOURNAL-KEY")


def test_checkpoint_with_a_line_by_an_unnamed_key_or_in_another_order_is_found(good: Archive, out: Path) -> None:
    parsed = parse_note(good.contents["checkpoint"].decode())
    more = format_note(parsed.text, [*parsed.signatures, OTHER_SIGNER.sign(parsed.text)])
    turned = format_note(parsed.text, parsed.signatures[::-1])
    for note in (more, turned):
        assert found(good.with_member("checkpoint", note.encode()), out) == (ALTERED, "E-ARCHIVE-FORM", None)


def test_cosignature_that_is_wrong_is_found(good: Archive, out: Path) -> None:
    parsed = parse_note(good.contents["checkpoint"].decode())
    own, other = parsed.signatures
    wrong = format_note(parsed.text, [own, replace(other, value=other.value[:-1] + bytes([other.value[-1] ^ 1]))])
    assert found(good.with_member("checkpoint", wrong.encode()), out)[:2] == (ALTERED, "E-JOURNAL-ALTERED")


def test_second_history_that_the_key_signed_is_a_fork(good: Archive, out: Path) -> None:
    forged = sign_note(Checkpoint(SIGNER.name, 345, bytes(32)).text, SIGNER)
    assert found(good.with_member("checkpoints/345", forged.encode()), out)[:2] == (FORKED, "E-JOURNAL-FORKED")


def test_checkpoint_kept_under_another_size_is_found(good: Archive, out: Path) -> None:
    kept = good.contents["checkpoints/345"]
    assert found(good.without("checkpoints/345").with_member("checkpoints/346", kept), out)[0] is ALTERED
    before = sign_note(Checkpoint(SIGNER.name, 7, bytes(32)).text, SIGNER).encode()
    assert found(good.with_member("checkpoints/7", before), out)[:2] == (ALTERED, "E-ARCHIVE-FORM")


def test_entry_that_was_signed_with_a_time_of_no_calendar_is_refused(tmp_path: Path, out: Path) -> None:
    archive(play(tmp_path / "journal.db", [(3, "s-1")]), out, "s-1")
    small = taken_apart(out)
    leaves = small.leaves
    leaves[2] = re.sub(rb'"time":"(\d{4})-\d\d-', rb'"time":"\1-13-', leaves[2])
    checkpoint = Checkpoint(SIGNER.name, 3, root_of([leaf_hash(leaf) for leaf in leaves]))
    signed = small.with_leaves(leaves).with_member("checkpoint", sign_note(checkpoint.text, SIGNER).encode())
    assert found(signed, out)[:2] == (ALTERED, "E-LEAF-FORM")


def test_archive_of_a_table_that_changes_its_key_verifies_with_both_keys_or_the_older(
    tmp_path: Path, out: Path
) -> None:
    journal = play(tmp_path / "journal.db", [(5, None)])
    old, new = SIGNER, OTHER_SIGNER
    both = LogKeys.of(old.verifier, new.verifier)
    rotating = Journal.open(journal, new, ManualClock(), BOOT, lambda: "ntp", previous=old, allow_volatile=True)
    with closing(rotating) as table:
        table.append([replace(record, seance="s-1") for record in stakes(300, 5)], keep_checkpoint=True)
    archive(journal, out, "s-1", both)
    assert taken_apart(out).contents["policy"].count(b"log ") == 2
    assert judge(out, keys=both).ok
    assert judge(out, keys=LogKeys.of(old.verifier)).ok
    # The checkpoint from before the change bears the old key alone: whoever knows the new one only cannot judge it.
    assert judge(out, keys=LogKeys.of(new.verifier)).outcome is UNSIGNED


def test_checkpoint_or_cosignature_taken_out_whole_leaves_an_archive_with_less_evidence(
    folder: Path, good: Archive, out: Path
) -> None:
    assert judge(good.without("checkpoints/345").write(out)).ok
    parsed = parse_note(good.contents["checkpoint"].decode())
    alone = format_note(parsed.text, parsed.signatures[:1]).encode()
    table = b"".join(line + b"\n" for line in (good.contents["policy"].split(b"\n")[0], b"quorum none"))
    bare = good.with_member("checkpoint", alone).with_member("policy", table)
    verdict, contents = verify_archive(bare.write(out), KEYS)
    assert contents is not None and (verdict.ok, contents.signed.cosigners) == (True, ())
    assert verify_archive(out, KEYS, policy=policy_of("centre"))[0].code == "E-POLICY-QUORUM"


# ── Witnesses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


CAISSE = Signer("caisse.example/witness", bytes(range(7, 39)), KeyType.COSIGNATURE)


def policy_of(quorum: str) -> Policy:
    """A policy that knows the mirror and the cashier's office, whoever of them is asked for."""
    lines = [f"log {SIGNER.verifier.vkey}", f"witness centre {MIRROR.verifier.vkey}"]
    lines += [f"witness caisse {CAISSE.verifier.vkey}", "group both all centre caisse", f"quorum {quorum}", ""]
    return Policy.parse("\n".join(lines))


@pytest.mark.parametrize(("name", "size"), [("s-1", 340), ("s-2", 545), ("all", 545)])
def test_archive_that_the_mirror_cosigned_satisfies_a_policy_that_asks_for_it(
    folder: Path, name: str, size: int
) -> None:
    verdict, _ = verify_archive(folder / f"{name}.tar", KEYS, policy=policy_of("centre"))
    assert (verdict.outcome, verdict.witnessed, verdict.unknown_cosignatures) == (Outcome.OK, size, 0)
    alone, _ = verify_archive(folder / f"{name}.tar", KEYS, policy=policy_of("none"))
    assert (alone.outcome, alone.witnessed) == (Outcome.OK, None)


@pytest.mark.parametrize("quorum", ["caisse", "both"])
def test_archive_with_too_few_cosignatures_is_unsigned_and_told_how_far_it_is_witnessed(
    folder: Path, quorum: str
) -> None:
    verdict, contents = verify_archive(folder / "s-1.tar", KEYS, policy=policy_of(quorum))
    assert (verdict.outcome, verdict.code, contents) == (UNSIGNED, "E-POLICY-QUORUM", None)
    assert "enough witnesses cosigned none of its checkpoints" in str(verdict.problem)
    assert "340 entries is cosigned by centre" in str(verdict.problem)


def test_archive_cosigned_before_its_seance_ended_is_unsigned(tmp_path: Path, out: Path) -> None:
    journal = play(tmp_path / "journal.db", [(5, None), (20, "s-1"), (20, "s-1"), (5, None)], cosigned=[1])
    archive(journal, out, "s-1")
    verdict, _ = verify_archive(out, KEYS, policy=policy_of("centre"))
    assert (verdict.outcome, verdict.code) == (UNSIGNED, "E-POLICY-QUORUM")
    assert "only its first 25 entries" in str(verdict.problem)
    archive(journal, out)
    assert verify_archive(out, KEYS, policy=policy_of("centre"))[0].witnessed == 25


# ── What somebody else remembers ──────────────────────────────────────────────────────────────────────────────────────


def checkpoint_in(path: Path, name: str = "checkpoint") -> str:
    return taken_apart(path).contents[name].decode()


def test_remembered_checkpoint_of_the_same_history_agrees(folder: Path) -> None:
    assert judge(folder / "s-2.tar", checkpoint_in(folder / "s-2.tar")).ok
    assert judge(folder / "s-2.tar", checkpoint_in(folder / "s-2.tar", "checkpoints/345")).ok
    assert judge(folder / "all.tar", checkpoint_in(folder / "s-1.tar")).ok


def test_remembered_checkpoint_of_another_history_is_a_fork(folder: Path, tmp_path: Path) -> None:
    other = play(tmp_path / "other.db", [(41, None), (299, "s-1"), (5, None), (200, "s-2"), (5, None)])
    archive(other, tmp_path / "other.tar", "s-2")
    verdict = judge(folder / "s-2.tar", checkpoint_in(tmp_path / "other.tar"))
    assert (verdict.outcome, verdict.code) == (FORKED, "E-JOURNAL-FORKED")


def test_remembered_checkpoint_beyond_the_whole_journal_is_a_rollback(folder: Path, tmp_path: Path) -> None:
    longer = play(tmp_path / "longer.db", [(40, None), (900, "s-1")])
    archive(longer, tmp_path / "longer.tar")
    verdict = judge(folder / "all.tar", checkpoint_in(tmp_path / "longer.tar"))
    assert (verdict.outcome, verdict.code, verdict.index) == (FORKED, "E-JOURNAL-ROLLED-BACK", 550)


def test_remembered_checkpoint_out_of_reach_of_a_seance_is_said_to_be(folder: Path) -> None:
    for name in ("checkpoints/40", "checkpoints/550"):
        remembered = taken_apart(folder / "all.tar").contents.get(name) or checkpoint_in(folder / "all.tar").encode()
        verdict = judge(folder / "s-2.tar", remembered.decode())
        assert (verdict.outcome, verdict.code) == (INCOMPLETE, "E-ARCHIVE-NARROW")


def test_remembered_note_of_a_stranger_is_refused(folder: Path) -> None:
    with pytest.raises(NoteFault, match="E-NOTE-UNSIGNED"):
        judge(folder / "s-1.tar", sign_note(Checkpoint(SIGNER.name, 1, bytes(32)).text, OTHER_SIGNER))


def test_verification_of_an_archive_tells_how_far_it_is(folder: Path) -> None:
    told: list[tuple[int, int]] = []
    verify_archive(folder / "all.tar", KEYS, lambda done, size: told.append((done, size)))
    assert told == [(0, 768), (256, 768), (512, 768)]
