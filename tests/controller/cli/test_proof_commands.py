"""``tablectl journal`` prove and check-proof."""

import json
from pathlib import Path

import pytest

from controller.certify.checkpoint import Checkpoint
from controller.certify.leaf import leaf_hash
from controller.certify.note import sign_note
from controller.certify.proof import Proof
from docs.samples import make_samples
from docs.samples.make_samples import MIRROR, STRANGER, TABLE
from tests.controller.certify.archives import play
from tests.controller.certify.workshop import SIGNER, forgery
from tests.controller.cli.conftest import Run
from tests.controller.cli.forgery import flip_byte

SAYS_ELEVEN = b'"id":"11"'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The folder of a table with one séance of 24 entries, certified and cosigned, and a policy that asks for that."""
    make_samples.play(tmp_path / "journal.sqlite")
    (tmp_path / "table.vkey").write_text(f"{TABLE.verifier.vkey}\n")
    centre = f"log {TABLE.verifier.vkey}\nwitness centre {MIRROR.verifier.vkey}\n"
    (tmp_path / "policy").write_text(f"{centre}quorum centre\n")
    return tmp_path


@pytest.fixture
def proof(run: Run, table: Path) -> Path:
    """The cosigned proof of entry 11."""
    out = table / "11.tlog-proof"
    assert run("journal", "prove", table, 11, "--cosigned", "--out", out).exit_code == 0
    return out


def leaf_of(proof: Path) -> Path:
    return proof.with_name(f"{proof.name}.leaf")


# ── prove ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_prove_writes_the_proof_to_the_terminal_as_it_would_to_a_file(run: Run, table: Path) -> None:
    told = run("journal", "prove", table, 11)
    assert told.exit_code == 0
    parsed = Proof.parse(told.stdout)
    assert (parsed.index, parsed.text) == (11, told.stdout)
    run("journal", "prove", table, 11, "--out", table / "p")
    assert (table / "p").read_text() == told.stdout


def test_prove_writes_the_exact_entry_beside_the_proof(run: Run, table: Path, proof: Path) -> None:
    line = run("journal", "export", table, "--from", 11, "--to", 11).stdout_bytes
    assert leaf_of(proof).read_bytes() + b"\n" == line
    assert SAYS_ELEVEN in line


def test_prove_cosigned_carries_the_witness_and_otherwise_the_newest_checkpoint_of_all(
    run: Run, tmp_path: Path
) -> None:
    play(tmp_path / "journal.sqlite", cosigned=[1])
    (tmp_path / "table.vkey").write_text(f"{SIGNER.verifier.vkey}\n")
    newest = json.loads(run("journal", "prove", tmp_path, 11, "--json").stdout)
    cosigned = json.loads(run("journal", "prove", tmp_path, 11, "--cosigned", "--json").stdout)
    assert (newest["size"], cosigned["size"]) == (550, 340)
    assert (MIRROR.name in newest["proof"], MIRROR.name in cosigned["proof"]) == (False, True)
    too_new = run("journal", "prove", tmp_path, 340, "--cosigned")
    assert (too_new.exit_code, "E-PROOF-UNCOSIGNED" in too_new.stderr, "340" in too_new.stderr) == (2, True, True)
    assert run("journal", "prove", tmp_path, 340).exit_code == 0


def test_prove_tells_a_program_all_that_it_needs(run: Run, table: Path) -> None:
    told = json.loads(run("journal", "prove", table, 11, "--out", table / "p", "--json").stdout)
    assert (told["index"], told["size"], told["origin"]) == (11, 24, TABLE.name)
    assert (told["file"], told["leaf_file"]) == (str(table / "p"), str(table / "p.leaf"))
    assert (table / "p").read_text() == told["proof"]
    assert (table / "p.leaf").read_text() == told["leaf"]


def test_prove_of_an_entry_that_is_not_there_says_which_is_the_last(run: Run, table: Path) -> None:
    told = run("journal", "prove", table, 24)
    assert (told.exit_code, "E-JOURNAL-ENTRY" in told.stderr, "23" in told.stderr) == (2, True, True)
    assert run("journal", "prove", table, "-1").exit_code == 64


@pytest.mark.parametrize("name", ["p", "p.leaf"])
def test_prove_never_replaces_a_file(run: Run, table: Path, name: str) -> None:
    (table / name).write_text("mine")
    told = run("journal", "prove", table, 11, "--out", table / "p")
    assert (told.exit_code, "E-OUT-EXISTS" in told.stderr, (table / name).read_text()) == (2, True, "mine")
    assert [file.name for file in table.glob("p*") if file.name != "policy"] == [name]


def test_prove_of_an_altered_entry_writes_no_proof(run: Run, table: Path) -> None:
    flip_byte(table / "journal.sqlite", 9, b'"credit":48500', b'"credit":98500')
    told = run("journal", "prove", table, 9, "--out", table / "p")
    assert (told.exit_code, "E-JOURNAL-ALTERED" in told.stderr, (table / "p").exists()) == (1, True, False)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("DELETE FROM log WHERE idx = 342", "these 0 bytes"),
        (
            "UPDATE checkpoint SET note = (SELECT note FROM checkpoint WHERE size = 40) WHERE size = 345",
            "a checkpoint of 40 entries does not reach entry 342",
        ),
        ("UPDATE checkpoint SET note = 'nothing' WHERE size = 345", "the note has no empty line"),
    ],
)
def test_prove_from_a_journal_that_does_not_agree_writes_no_proof_and_says_why(
    run: Run, tmp_path: Path, damage: str, says: str
) -> None:
    file = play(tmp_path / "journal.sqlite", cosigned=[2])
    (tmp_path / "table.vkey").write_text(f"{SIGNER.verifier.vkey}\n")
    assert run("journal", "prove", tmp_path, 342, "--cosigned").exit_code == 0
    with forgery(file) as connection:
        connection.execute(damage)
    told = run("journal", "prove", tmp_path, 342, "--cosigned", "--out", tmp_path / "p")
    assert (told.exit_code, "E-JOURNAL-ALTERED" in told.stderr, says in told.stderr) == (1, True, True), told.stderr
    assert not (tmp_path / "p").exists()


def test_prove_with_another_key_makes_no_proof(run: Run, table: Path) -> None:
    told = run("journal", "prove", table, 11, "--vkey", STRANGER.verifier.vkey)
    assert (told.exit_code, "E-JOURNAL-KEY" in told.stderr) == (3, True)
    (table / "table.vkey").unlink()
    without = run("journal", "prove", table, 11)
    assert (without.exit_code, "E-VKEY-MISSING" in without.stderr) == (3, True)


def test_prove_without_a_journal_is_unreadable(run: Run, tmp_path: Path) -> None:
    told = run("journal", "prove", tmp_path, 0)
    assert (told.exit_code, "E-JOURNAL-MISSING" in told.stderr) == (5, True)


# ── check-proof ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_check_proof_says_what_is_proven_and_who_cosigned_it(run: Run, table: Path, proof: Path) -> None:
    told = run("journal", "check-proof", proof, leaf_of(proof), "--policy", table / "policy")
    assert told.exit_code == 0
    assert f"proven: entry 11 of the 24 of {TABLE.name}" in told.stdout
    assert "centre" in told.stdout
    french = run("journal", "check-proof", proof, leaf_of(proof), "--vkey", table / "table.vkey", "--lang", "fr")
    assert (french.exit_code, "écriture 11 des 24 de" in french.stdout) == (0, True)
    assert "personne de connu" in french.stdout


def test_check_proof_answers_a_program(run: Run, table: Path, proof: Path) -> None:
    told = json.loads(
        run("journal", "check-proof", proof, leaf_of(proof), "--policy", table / "policy", "--json").stdout
    )
    assert (told["proven"], told["index"], told["size"], told["cosigned_by"]) == (True, 11, 24, ["centre"])


def test_check_proof_of_bytes_that_are_no_entry_of_a_table_is_as_good(run: Run, tmp_path: Path) -> None:
    note = sign_note(Checkpoint(SIGNER.name, 1, leaf_hash(b"anything")).text, SIGNER)
    (tmp_path / "p").write_text(Proof(0, (), note).text)
    (tmp_path / "p.leaf").write_bytes(b"anything")
    told = run("journal", "check-proof", tmp_path / "p", tmp_path / "p.leaf", "--vkey", SIGNER.verifier.vkey)
    assert (told.exit_code, "proven: entry 0 of the 1" in told.stdout) == (0, True)


def test_check_proof_of_another_entry_or_one_byte_more_is_wrong(run: Run, table: Path, proof: Path) -> None:
    leaf = leaf_of(proof)
    right = leaf.read_bytes()
    for wrong in (right + b"\n", right.replace(SAYS_ELEVEN, b'"id":"12"'), right + b" " * 70_000, b""):
        leaf.write_bytes(wrong)
        told = run("journal", "check-proof", proof, leaf, "--vkey", TABLE.verifier.vkey)
        assert (told.exit_code, told.stderr.startswith("E-PROOF-WRONG"), ".leaf" in told.stderr) == (1, True, True)


def test_check_proof_with_an_altered_checkpoint_is_wrong(run: Run, table: Path, proof: Path) -> None:
    proof.write_text(proof.read_text().replace("\n24\n", "\n25\n"))
    told = run("journal", "check-proof", proof, leaf_of(proof), "--vkey", TABLE.verifier.vkey)
    assert (told.exit_code, told.stderr.startswith("E-NOTE-SIGNATURE")) == (1, True)


def test_check_proof_by_another_key_or_without_enough_witnesses_is_not_believed(
    run: Run, table: Path, proof: Path
) -> None:
    told = run("journal", "check-proof", proof, leaf_of(proof), "--vkey", STRANGER.verifier.vkey)
    assert (told.exit_code, told.stderr.startswith("E-NOTE-UNSIGNED")) == (3, True)
    bare = table / "bare"
    bare.write_text("".join(line for line in proof.open(encoding="utf-8") if MIRROR.name not in line))
    few = run("journal", "check-proof", bare, leaf_of(proof), "--policy", table / "policy")
    assert (few.exit_code, few.stderr.startswith("E-POLICY-QUORUM")) == (3, True)
    (table / "policy").write_text("quorum none\n")
    nobody = run("journal", "check-proof", proof, leaf_of(proof), "--policy", table / "policy")
    assert (nobody.exit_code, nobody.stderr.startswith("E-POLICY-LOG")) == (3, True)


def test_check_proof_needs_one_key_or_one_policy(run: Run, table: Path, proof: Path) -> None:
    none = run("journal", "check-proof", proof, leaf_of(proof))
    assert (none.exit_code, none.stderr.startswith("E-VKEY-MISSING")) == (3, True)
    both = run(
        "journal", "check-proof", proof, leaf_of(proof), "--vkey", TABLE.verifier.vkey, "--policy", table / "policy"
    )
    assert both.exit_code == 64


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"c2sp.org/tlog-proof@v1\n", b"x" * 200_000])
def test_check_proof_of_a_file_that_is_no_proof_is_unreadable(
    run: Run, table: Path, proof: Path, content: bytes
) -> None:
    proof.write_bytes(content)
    told = run("journal", "check-proof", proof, leaf_of(proof), "--vkey", TABLE.verifier.vkey)
    assert (told.exit_code, told.stderr.startswith("E-PROOF-MALFORMED")) == (5, True)


def test_check_proof_of_a_file_that_is_not_there_is_unreadable(run: Run, table: Path, proof: Path) -> None:
    for words in ([table / "none", leaf_of(proof)], [proof, table / "none"], [proof, table]):
        told = run("journal", "check-proof", *words, "--vkey", TABLE.verifier.vkey)
        assert (told.exit_code, told.stderr.startswith("E-FILE")) == (5, True)
    policy = run("journal", "check-proof", proof, leaf_of(proof), "--policy", table / "none")
    assert (policy.exit_code, policy.stderr.startswith("E-FILE")) == (5, True)
