"""The files that people take away, proofs and archives, made by ``tablectl`` and judged by the Go packages."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from controller.cli import main
from docs.samples import make_samples
from docs.samples.make_samples import MIRROR, SEANCE, TABLE
from tests.controller.certify.archives import archive, play
from tests.controller.certify.workshop import SIGNER
from tests.interop.conftest import Judge, base64

TABLE_KEY, MIRROR_KEY = TABLE.verifier.vkey, MIRROR.verifier.vkey
REFUSED = "refused: invalid transparency proof"


def tablectl(*words: object) -> None:
    """A command that does what it is asked."""
    told = CliRunner().invoke(main, [str(word) for word in words])
    assert told.exit_code == 0, told.output


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The folder of a table with one séance, certified and cosigned."""
    make_samples.play(tmp_path / "journal.sqlite")
    (tmp_path / "table.vkey").write_text(f"{TABLE_KEY}\n")
    return tmp_path


def proof(text: bytes, leaf: bytes, *keys: str) -> str:
    return f"proof {base64(text)} {base64(leaf)} {' '.join(keys)}"


def test_proof_of_every_entry_made_by_tablectl_is_accepted_by_go(judge: Judge, table: Path) -> None:
    cases = []
    for index in range(24):
        out = table / f"{index}.tlog-proof"
        tablectl("journal", "prove", table, index, "--cosigned", "--out", out)
        cases.append(proof(out.read_bytes(), (table / f"{out.name}.leaf").read_bytes(), TABLE_KEY, MIRROR_KEY))
    assert set(judge(cases)) == {f"ok {TABLE.name} {MIRROR.name}"}


def test_proof_made_by_tablectl_is_refused_by_go_for_another_entry_or_number(judge: Judge, table: Path) -> None:
    out = table / "7.tlog-proof"
    tablectl("journal", "prove", table, 7, "--out", out)
    text, leaf = out.read_bytes(), (table / "7.tlog-proof.leaf").read_bytes()
    assert json.loads(leaf)["id"] == "7"
    wrong = [proof(text, leaf + b" ", TABLE_KEY), proof(text.replace(b"index 7", b"index 6"), leaf, TABLE_KEY)]
    assert judge([proof(text, leaf, TABLE_KEY), *wrong]) == [f"ok {TABLE.name}", REFUSED, REFUSED]


def test_archive_of_a_seance_exported_by_tablectl_is_accepted_by_go_entry_by_entry(judge: Judge, table: Path) -> None:
    policy, out = table / "policy", table / "seance.tar"
    policy.write_text(f"log {TABLE_KEY}\nwitness centre {MIRROR_KEY}\nquorum centre\n")
    tablectl("journal", "export", table, "--seance", SEANCE, "--out", out, "--policy", policy)
    assert judge([f"archive {out} {TABLE_KEY} {MIRROR_KEY}"]) == [f"ok 22 of 24 {TABLE.name} {MIRROR.name}"]


@pytest.mark.parametrize(("seance", "entries", "size"), [("s-1", 300, 340), ("s-2", 200, 545)])
def test_archive_with_full_and_partial_tiles_is_accepted_by_go(
    judge: Judge, tmp_path: Path, seance: str, entries: int, size: int
) -> None:
    out = tmp_path / "archive.tar"
    archive(play(tmp_path / "journal.sqlite"), out, seance)
    assert judge([f"archive {out} {SIGNER.verifier.vkey}"]) == [f"ok {entries} of {size} {SIGNER.name}"]


def test_archive_with_an_altered_entry_or_line_or_another_key_is_refused_by_go(judge: Judge, root: Path) -> None:
    samples = root / "docs" / "samples"
    key = (samples / "table.vkey").read_text().strip()
    says = {
        "good": "ok 22 of 24",
        "altered-line": "refused: line 8 is not what the tree has",
        "altered-entry": "refused: downloaded inconsistent tile",
        "other-key": "refused: note has no verifiable signatures",
        "missing-tile": "refused: there is no tile tile/8/0/000.p/24",
        "cut-tail": "refused: unexpected EOF",
    }
    for name, verdict in zip(says, judge(f"archive {samples / name}.tar {key}" for name in says), strict=True):
        assert verdict.startswith(says[name]), (name, verdict)
