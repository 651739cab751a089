"""Proofs that travel: made from a journal, read strictly, and right for one entry, one number and one policy only."""

from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.certify.checkpoint import Checkpoint
from controller.certify.faults import CertifyFault, JournalFault, NoteFault
from controller.certify.leaf import leaf_hash
from controller.certify.log_keys import LogKeys
from controller.certify.note import KeyType, Signer, format_note, sign_note
from controller.certify.policy import Policy
from controller.certify.proof import HASHES_BOUND, HEADER, PROOF_BOUND, Proof, check, newest_cosigned, prove
from controller.certify.reader import Reader
from controller.certify.tree import inclusion_proof, root_of, subtrees_of
from controller.certify.turning import turn
from controller.certify.volumes import volumes
from drivers.clock import ManualClock
from tests.controller.certify.archives import KEYS, cosign, go_on, play
from tests.controller.certify.workshop import MIRROR, ORIGIN, OTHER_SIGNER, SIGNER, build, forgery, open_journal

WITNESS = Signer("caisse.example/witness", bytes(range(5, 37)), KeyType.COSIGNATURE)
TIME_S = 1_796_000_000

TABLE_ONLY = Policy((KEYS,))
BOTH = Policy.parse(
    f"log {SIGNER.verifier.vkey}\nwitness centre {MIRROR.verifier.vkey}\nwitness caisse {WITNESS.verifier.vkey}\n"
    "group both all centre caisse\nquorum both\n"
)

SIZE = 300
ENTRIES = [b"entry %d" % at for at in range(SIZE + 1)]
HASHES = [leaf_hash(entry) for entry in ENTRIES]
ROOT = root_of(HASHES[:SIZE])
TEXT = Checkpoint(ORIGIN, SIZE, ROOT).text
COSIGNED = format_note(TEXT, [SIGNER.sign(TEXT), MIRROR.sign(TEXT, TIME_S), WITNESS.sign(TEXT, TIME_S)])


def proof_of(index: int, note: str = COSIGNED) -> Proof:
    return Proof(index, tuple(inclusion_proof(index, SIZE, subtrees_of(HASHES))), note)


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(CertifyFault) as caught:
        action()
    return caught.value.code


# ── Right and wrong ───────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(0, SIZE - 1))
def test_proof_of_an_entry_shows_it_under_the_cosigned_checkpoint(index: int) -> None:
    proven = check(proof_of(index).text, ENTRIES[index], BOTH)
    assert (proven.index, proven.by) == (index, {"centre", "caisse"})
    assert proven.checkpoint == Checkpoint(ORIGIN, SIZE, ROOT)
    assert code_of(lambda: check(proof_of(index).text, ENTRIES[index + 1], BOTH)) == "E-PROOF-WRONG"


def test_proof_with_another_number_or_path_is_wrong() -> None:
    right = proof_of(42)
    first, second, *rest = right.hashes
    for wrong in (
        Proof(43, right.hashes, COSIGNED),
        Proof(SIZE, right.hashes, COSIGNED),
        Proof(42, right.hashes[:-1], COSIGNED),
        Proof(42, (*right.hashes, first), COSIGNED),
        Proof(42, (second, first, *rest), COSIGNED),
        Proof(42, (), COSIGNED),
    ):
        assert code_of(lambda wrong=wrong: check(wrong.text, ENTRIES[42], BOTH)) == "E-PROOF-WRONG"


def test_proof_under_a_checkpoint_that_was_altered_or_is_of_another_key_is_not_believed() -> None:
    def verdict(note: str, policy: Policy = TABLE_ONLY) -> str:
        return code_of(lambda: check(proof_of(42, note).text, ENTRIES[42], policy))

    assert verdict(COSIGNED.replace("\n300\n", "\n301\n")) == "E-NOTE-SIGNATURE"
    assert verdict(sign_note(TEXT, OTHER_SIGNER)) == "E-NOTE-UNSIGNED"
    assert (
        verdict(format_note(TEXT, [MIRROR.sign(TEXT, TIME_S), WITNESS.sign(TEXT, TIME_S)]), BOTH) == "E-NOTE-UNSIGNED"
    )
    stranger = Policy((LogKeys.of(Signer("casino.example/table/t08/1", bytes(32)).verifier),))
    assert verdict(COSIGNED, stranger) == "E-POLICY-LOG"


def test_proof_needs_the_quorum_of_the_policy_and_cosignatures_that_are_right() -> None:
    without = format_note(TEXT, [SIGNER.sign(TEXT), MIRROR.sign(TEXT, TIME_S)])
    with pytest.raises(NoteFault, match=r"E-POLICY-QUORUM .* cosigned by centre, which is not both"):
        check(proof_of(42, without).text, ENTRIES[42], BOTH)
    with pytest.raises(NoteFault, match=r"E-POLICY-QUORUM .* cosigned by nobody"):
        check(proof_of(42, sign_note(TEXT, SIGNER)).text, ENTRIES[42], BOTH)
    assert check(proof_of(42, without).text, ENTRIES[42], TABLE_ONLY).by == set()
    elsewhere = MIRROR.sign(TEXT.replace("300", "299"), TIME_S)
    forged = format_note(TEXT, [SIGNER.sign(TEXT), elsewhere, WITNESS.sign(TEXT, TIME_S)])
    assert code_of(lambda: check(proof_of(42, forged).text, ENTRIES[42], BOTH)) == "E-NOTE-SIGNATURE"


@given(st.data())
def test_proof_with_any_character_altered_proves_nothing_else(data: st.DataObject) -> None:
    text = proof_of(42, format_note(TEXT, [SIGNER.sign(TEXT)])).text
    at = data.draw(st.integers(0, len(text) - 1))
    altered = text[:at] + data.draw(st.characters().filter(lambda c: c != text[at])) + text[at + 1 :]
    assert code_of(lambda: check(altered, ENTRIES[42], TABLE_ONLY)) in {
        "E-PROOF-MALFORMED",
        "E-PROOF-WRONG",
        "E-NOTE-SIGNATURE",
        "E-NOTE-UNSIGNED",
        "E-POLICY-LOG",
    }


# ── The form ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(0, SIZE - 1), st.binary(max_size=200))
def test_proof_reads_back_as_it_was_written(index: int, extra: bytes) -> None:
    one = proof_of(index)
    proof = Proof(one.index, one.hashes, one.note, extra)
    assert Proof.parse(proof.text) == Proof.parse(proof.text.encode()) == proof


def test_extra_data_changes_nothing_about_what_is_proven() -> None:
    right = proof_of(42)
    extra = Proof(42, right.hashes, right.note, b"nobody signed this")
    assert extra.text.split("\n")[1] == "extra bm9ib2R5IHNpZ25lZCB0aGlz"
    assert check(extra.text, ENTRIES[42], BOTH) == check(right.text, ENTRIES[42], BOTH)


RIGHT = proof_of(42).text
LINE = b64encode(HASHES[0]).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEADER,
        f"{HEADER}\n",
        f"{HEADER}\n\n{COSIGNED}",
        f"{HEADER}\nindex 0\n",
        f"{HEADER}\nindex 0\n\n",
        f"\n{RIGHT}",
        f"\ufeff{RIGHT}",
        f"{RIGHT}\n",
        RIGHT[:-1],
        RIGHT.replace("@v1", "@v2"),
        RIGHT.replace("\n", "\r\n"),
        RIGHT.replace("index 42", "index 042"),
        RIGHT.replace("index 42", "index -42"),
        RIGHT.replace("index 42", "index +42"),
        RIGHT.replace("index 42", "index 4_2"),
        RIGHT.replace("index 42", "index ٤٢"),
        RIGHT.replace("index 42", "index  42"),
        RIGHT.replace("index 42", "index 42 "),
        RIGHT.replace("index 42", "index "),
        RIGHT.replace("index 42", "index 10000000000000000000"),
        RIGHT.replace("index 42", "Index 42"),
        RIGHT.replace("index 42\n", ""),
        RIGHT.replace("index 42", "index 42\nindex 42"),
        RIGHT.replace("index 42", "index 42\nextra YWdl"),
        RIGHT.replace("index 42", "extra \nindex 42"),
        RIGHT.replace("index 42", "extra\nindex 42"),
        RIGHT.replace("index 42", "extra YWdl \nindex 42"),
        RIGHT.replace("index 42", "extra YWd\nindex 42"),
        RIGHT.replace("index 42", "extra YWdl\nextra YWdl\nindex 42"),
        RIGHT.replace("index 42", f"index 42\n{LINE[:-1]}"),
        RIGHT.replace("index 42", f"index 42\n {LINE}"),
        RIGHT.replace("index 42", f"index 42\n{LINE}="),
        RIGHT.replace("index 42", f"index 42\n{LINE[:40]}"),
        RIGHT.replace("index 42", f"index 42\n{b64encode(bytes(33)).decode()}"),
        RIGHT.replace("index 42", "index 42\n\n"),
        RIGHT.replace("index 42", "index 42" + f"\n{LINE}" * HASHES_BOUND),
        RIGHT.replace("\n300\n", "\n0300\n"),
        RIGHT.replace("\n300\n", "\n300\nextension\n"),
        f"{HEADER}\nindex 0\n\n" + sign_note("no checkpoint\n", SIGNER),
    ],
)
def test_proof_in_a_form_that_is_only_nearly_right_is_malformed(text: str) -> None:
    assert code_of(lambda: check(text, ENTRIES[42], TABLE_ONLY)) == "E-PROOF-MALFORMED"


def test_proof_at_each_bound_is_read_and_beyond_it_refused() -> None:
    most = Proof(10**19 - 1, tuple(HASHES[:HASHES_BOUND]), COSIGNED)
    assert Proof.parse(most.text) == most
    room = PROOF_BOUND - len(most.text.encode()) - len("extra \n")
    longest = Proof(most.index, most.hashes, most.note, bytes(room // 4 * 3))
    assert PROOF_BOUND - 3 <= len(longest.text.encode()) <= PROOF_BOUND
    assert Proof.parse(longest.text.encode()) == longest
    with pytest.raises(NoteFault, match=f"longer than {PROOF_BOUND}"):
        Proof.parse(longest.text.encode() + b"\n" * 4)
    with pytest.raises(NoteFault, match="not UTF-8"):
        Proof.parse(RIGHT.encode().replace("—".encode(), b"\x97"))


@given(st.one_of(st.binary(max_size=400), st.text(max_size=400)))
def test_garbage_is_refused_by_a_code_and_never_by_an_accident(garbage: str | bytes) -> None:
    for head in ("", f"{HEADER}\n", f"{HEADER}\nindex 0\n"):
        text = head + garbage if isinstance(garbage, str) else head.encode() + garbage
        assert code_of(lambda text=text: check(text, b"", TABLE_ONLY)) == "E-PROOF-MALFORMED"


# ── From a journal ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """550 entries in five commits: cosigned at 340, and not since."""
    return play(tmp_path / "journal.sqlite", cosigned=[1])


def test_every_entry_of_a_journal_is_proven_under_its_newest_checkpoint(journal: Path) -> None:
    with closing(Reader(journal)) as reader:
        for index, leaf in enumerate(reader.leaves(0, 550)):
            proven = check(prove(reader, index, reader.checkpoint()).text, leaf, TABLE_ONLY)
            assert (proven.index, proven.checkpoint.size, proven.by) == (index, 550, frozenset())


def test_newest_cosigned_checkpoint_serves_the_entries_that_it_reaches_and_no_others(journal: Path) -> None:
    centre = Policy.parse(f"log {SIGNER.verifier.vkey}\nwitness centre {MIRROR.verifier.vkey}\nquorum centre\n")
    with closing(Reader(journal)) as reader:
        note = newest_cosigned(reader, KEYS, 339)
        assert note is not None
        assert check(prove(reader, 339, note).text, reader.leaf(339), centre).checkpoint.size == 340
        assert newest_cosigned(reader, KEYS, 0) == note
        assert newest_cosigned(reader, KEYS, 340) is None
        assert code_of(lambda: prove(reader, 340, note)) == "E-PROOF-WRONG"


def test_checkpoint_with_two_lines_of_the_tables_own_keys_is_not_cosigned(tmp_path: Path) -> None:
    file = play(tmp_path / "journal.sqlite", [(3, None)])
    with closing(Reader(file)) as reader:
        text = reader.checkpoint().partition("\n\n")[0] + "\n"
    with forgery(file) as connection:
        connection.execute("UPDATE checkpoint SET note = ? WHERE size = 3", (sign_note(text, SIGNER, OTHER_SIGNER),))
    with closing(Reader(file)) as reader:
        assert newest_cosigned(reader, LogKeys.of(SIGNER.verifier, OTHER_SIGNER.verifier), 0) is None
        assert newest_cosigned(reader, KEYS, 0) == reader.checkpoint()


def test_proof_of_an_entry_that_was_altered_in_the_file_is_wrong(journal: Path) -> None:
    with forgery(journal) as connection:
        connection.execute("UPDATE log SET leaf = CAST(replace(leaf, ':542,', ':942,') AS BLOB) WHERE idx = 42")
    with closing(Reader(journal)) as reader:
        text = prove(reader, 42, reader.checkpoint()).text
        assert b'"cents":942' in reader.leaf(42)
        assert code_of(lambda: check(text, reader.leaf(42), TABLE_ONLY)) == "E-PROOF-WRONG"
        assert check(prove(reader, 300, reader.checkpoint()).text, reader.leaf(300), TABLE_ONLY).index == 300


def test_proof_from_a_journal_that_lost_entries_is_not_made(journal: Path) -> None:
    with forgery(journal) as connection:
        connection.execute("DELETE FROM log WHERE idx >= 520")
    with closing(Reader(journal)) as reader, pytest.raises(JournalFault):
        prove(reader, 42, reader.checkpoint())


def test_entries_of_a_journal_in_several_volumes_are_proven_alike(tmp_path: Path) -> None:
    file = build(tmp_path / "journal.sqlite", [500] * 6)
    with closing(open_journal(file)) as writer:
        cosign(writer)
    assert turn(file, KEYS, ManualClock().wall_ms(), 3_000) is not None
    go_on(file, [(300, None)])
    assert len(volumes(file)) == 2
    with closing(Reader(file)) as reader:
        for index in (0, 255, 256, 2_999, 3_000, reader.size - 1):
            text = prove(reader, index, reader.checkpoint()).text
            assert check(text, reader.leaf(index), TABLE_ONLY).checkpoint.size == reader.size
        note = newest_cosigned(reader, KEYS, 2_999)
        assert note is not None
        assert check(prove(reader, 17, note).text, reader.leaf(17), TABLE_ONLY).checkpoint.size == 3_000
