"""``tablectl journal``: archives exported and verified, and the samples that are published."""

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from controller.certify.note import KeyType, Signer
from controller.certify.reader import Reader
from controller.cli import journal_archive
from controller.codec import CodecError
from docs.samples import make_samples
from docs.samples.make_samples import JUDGED, MIRROR, SEANCE, STRANGER, TABLE
from proof.attacks import judge_sample
from tests.controller.cli.conftest import Run
from tests.controller.cli.forgery import find_entry, flip_byte

SAMPLES = Path(make_samples.__file__).parent
SAYS = {
    "good": "all agrees",
    "altered-entry": "first entry concerned: 11",
    "altered-line": "first entry concerned: 9",
    "altered-report": "seance.txt is not the report",
    "other-history": "E-JOURNAL-FORKED",
    "other-key": "E-JOURNAL-KEY",
    "missing-tile": "tile/0/000.p/24 is missing",
    "cut-tail": "the file ends inside events.jsonl",
    "hostile": "E-ARCHIVE-FOREIGN",
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The folder of a table with one séance, certified and cosigned."""
    make_samples.play(tmp_path / "journal.sqlite")
    (tmp_path / "table.vkey").write_text(f"{TABLE.verifier.vkey}\n")
    return tmp_path


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A policy that asks for the mirror."""
    file = tmp_path / "policy"
    file.write_text(f"log {TABLE.verifier.vkey}\nwitness centre {MIRROR.verifier.vkey}\nquorum centre\n")
    return file


# ── The samples ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", JUDGED)
def test_sample_is_judged_as_its_table_says(run: Run, name: str) -> None:
    told = run(
        "journal", "verify", SAMPLES / f"{name}.tar", "--vkey", SAMPLES / "table.vkey",
        "--remembered", SAMPLES / "remembered.note",
    )  # fmt: skip
    assert (told.exit_code, SAYS[name] in told.stdout) == (JUDGED[name][0], True), told.output
    assert judge_sample(name) == JUDGED[name]


def test_table_of_the_samples_names_each_of_them_with_its_status() -> None:
    rows = re.findall(
        r"^\| `([a-z-]+)\.tar` \| .* \| (\d) \|", (SAMPLES / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert {name: int(status) for name, status in rows} == {name: status for name, (status, _) in JUDGED.items()}
    assert {file.stem for file in SAMPLES.glob("*.tar")} == JUDGED.keys()


def test_samples_made_again_are_the_same(tmp_path: Path) -> None:
    make_samples.make(tmp_path)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert made.keys() == {file.name for file in SAMPLES.iterdir() if file.suffix in {".tar", ".note", ".vkey"}}
    assert [name for name, content in made.items() if (SAMPLES / name).read_bytes() != content] == []


# ── export ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_export_of_a_seance_is_an_archive_that_verifies(run: Run, table: Path, policy: Path) -> None:
    out = table / "s.tar"
    exported = json.loads(
        run("journal", "export", table, "--seance", SEANCE, "--out", out, "--policy", policy, "--json").stdout
    )
    assert out.read_bytes() == (SAMPLES / "good.tar").read_bytes()
    assert (exported["seance"], exported["first"], exported["entries"], exported["size"]) == (SEANCE, 1, 22, 24)
    assert (exported["cosigners"], exported["closed"], exported["certified_by_entry"]) == ([MIRROR.name], True, 23)
    verified = run("journal", "verify", out, "--policy", policy)
    assert (verified.exit_code, "certified by entry 23" in verified.stdout) == (0, True)


def test_export_takes_the_policy_that_lies_beside_the_journal(run: Run, table: Path, policy: Path) -> None:
    out = table / "s.tar"
    assert MIRROR.name in run("journal", "export", table, "--seance", SEANCE, "--out", out).stdout
    assert run("journal", "verify", out, "--policy", policy).exit_code == 0


def test_export_without_a_policy_keeps_no_cosignature_and_says_so(run: Run, table: Path, policy: Path) -> None:
    out = table / "s.tar"
    policy = policy.rename(table / "elsewhere")
    told = run("journal", "export", table, "--seance", SEANCE, "--out", out)
    assert (told.exit_code, "nobody" in told.stdout, "without --policy" in told.stdout) == (0, True, True)
    judged = run("journal", "verify", out, "--policy", policy)
    assert (judged.exit_code, "E-POLICY-QUORUM" in judged.stdout) == (3, True)
    assert run("journal", "verify", out).exit_code == 0


def test_export_of_the_whole_journal_has_every_entry(run: Run, table: Path) -> None:
    told = json.loads(run("journal", "export", table, "--archive", "--out", table / "all.tar", "--json").stdout)
    assert (told["seance"], told["first"], told["entries"]) == (None, 0, 24)
    assert run("journal", "verify", table / "all.tar").exit_code == 0


def test_export_of_a_journal_that_does_not_agree_leaves_no_archive(run: Run, table: Path) -> None:
    for index, old, new, code in (
        (0, b"d-012", b"d-013", "E-ARCHIVE-REFUSED"),  # beside the séance, and in the archive
        (9, b'"credit":48500', b'"credit":98500', "E-SEANCE-ENTRIES"),  # the report cannot be made from it
    ):
        flip_byte(table / "journal.sqlite", index, old, new)
        told = run("journal", "export", table, "--seance", SEANCE, "--out", table / "s.tar")
        assert (told.exit_code, code in told.stderr) == (1, True)
        assert not (table / "s.tar").exists()


def test_export_of_a_seance_that_is_not_there_leaves_no_archive(run: Run, table: Path) -> None:
    told = run("journal", "export", table, "--seance", "2026-12-24-1", "--out", table / "s.tar")
    assert (told.exit_code, "E-ARCHIVE-SEANCE" in told.stderr, (table / "s.tar").exists()) == (2, True, False)


def test_export_never_replaces_an_archive(run: Run, table: Path) -> None:
    (table / "s.tar").write_text("mine")
    told = run("journal", "export", table, "--seance", SEANCE, "--out", table / "s.tar")
    assert (told.exit_code, "E-OUT-EXISTS" in told.stderr, (table / "s.tar").read_text()) == (2, True, "mine")


@pytest.mark.parametrize(
    "words",
    [
        ["--seance", SEANCE],
        ["--archive"],
        ["--seance", SEANCE, "--archive", "--out", "x.tar"],
        ["--seance", SEANCE, "--from", "0", "--out", "x.tar"],
        ["--archive", "--to", "3", "--out", "x.tar"],
    ],
)
def test_export_with_words_that_contradict_each_other_is_refused(run: Run, table: Path, words: list[str]) -> None:
    told = run("journal", "export", table, *words)
    assert (told.exit_code, "E-USAGE" in told.stderr) == (64, True)
    assert not Path("x.tar").exists()


def test_export_of_lines_is_as_it_was(run: Run, table: Path) -> None:
    with closing(Reader(table / "journal.sqlite")) as reader:
        leaves = list(reader.leaves(0, reader.size))
    assert run("journal", "export", table).stdout_bytes == b"".join(leaf + b"\n" for leaf in leaves)
    assert run("journal", "export", table, "--from", 3, "--to", 4).stdout_bytes == b"".join(
        leaf + b"\n" for leaf in leaves[3:5]
    )


def test_export_of_a_played_evening_is_verified_by_the_key_alone(run: Run, evening: Path, tmp_path: Path) -> None:
    index = find_entry(evening / "journal.sqlite", "fr.table.seance.opened.v1")
    with closing(Reader(evening / "journal.sqlite")) as reader:
        seance = json.loads(reader.leaf(index))["data"]["seance"]
    told = run("journal", "export", evening, "--seance", seance, "--out", tmp_path / "s.tar", "--json")
    exported = json.loads(told.stdout)
    assert (exported["first"], exported["closed"]) == (index, True)
    vkey = (evening / "table.vkey").read_text().strip()
    judged = run("journal", "verify", tmp_path / "s.tar", "--vkey", vkey)
    assert (judged.exit_code, "closed, not certified yet" in judged.stdout) == (0, True)


# ── verify ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_verify_of_an_archive_without_a_key_asks_for_one(run: Run, tmp_path: Path) -> None:
    alone = tmp_path / "good.tar"
    alone.write_bytes((SAMPLES / "good.tar").read_bytes())
    told = run("journal", "verify", alone)
    assert (told.exit_code, "E-VKEY-MISSING" in told.stderr) == (3, True)


def test_verify_by_a_policy_without_this_table_says_so(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    other = Signer("casino.example/table/t08/1", bytes(32)).verifier.vkey
    policy.write_text(f"log {other}\nquorum none\n")
    told = run("journal", "verify", SAMPLES / "good.tar", "--policy", policy)
    assert (told.exit_code, "E-POLICY-LOG" in told.stderr) == (3, True)
    policy.write_text(f"log {STRANGER.verifier.vkey}\nquorum none\n")
    told = run("journal", "verify", SAMPLES / "good.tar", "--policy", policy)
    assert (told.exit_code, "E-JOURNAL-KEY" in told.stdout) == (3, True)


def test_verify_of_a_journal_by_a_policy_asks_for_its_quorum(run: Run, table: Path, policy: Path) -> None:
    assert run("journal", "verify", table, "--policy", policy).exit_code == 0
    caisse = Signer("caisse.example/witness", bytes(32), KeyType.COSIGNATURE).verifier.vkey
    policy.write_text(policy.read_text().replace("quorum centre", f"witness caisse {caisse}\nquorum caisse"))
    told = run("journal", "verify", table, "--policy", policy)
    assert (told.exit_code, "E-POLICY-QUORUM" in told.stdout) == (3, True)


def test_verify_says_how_many_cosignatures_were_verified_and_how_far_they_reach(
    run: Run, table: Path, policy: Path
) -> None:
    assert "2, up to 24 entries" in run("journal", "verify", table, "--policy", policy).stdout
    assert "2 by keys not given (--policy)" in run("journal", "verify", table).stdout
    assert "2, up to 24 entries" in run("journal", "verify", SAMPLES / "good.tar", "--policy", policy).stdout
    told = json.loads(run("journal", "verify", table, "--policy", policy, "--json").stdout)
    assert (told["cosignatures"], told["unknown_cosignatures"], told["witnessed"]) == (2, 0, 24)


def test_verify_by_a_file_that_is_no_policy_names_the_line(run: Run, table: Path, policy: Path) -> None:
    policy.write_text("log nothing\n")
    for target in (table, SAMPLES / "good.tar"):
        told = run("journal", "verify", target, "--policy", policy)
        assert (told.exit_code, "E-POLICY-MALFORMED" in told.stderr, "line 1" in told.stderr) == (3, True, True)
        assert run("journal", "verify", target, "--policy", table / "no-such-file").exit_code == 5


def test_verify_of_an_archive_makes_the_report_again_from_its_entries(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other:
        report = "another text\n"

    monkeypatch.setattr(journal_archive, "state_seance", lambda leaves, root: Other())
    told = run("journal", "verify", SAMPLES / "good.tar")
    assert (told.exit_code, "E-ARCHIVE-REPORT" in told.stdout) == (1, True)

    def unknown(leaves: object, root: bytes) -> None:
        raise CodecError("no such kind")

    monkeypatch.setattr(journal_archive, "state_seance", unknown)
    told = run("journal", "verify", SAMPLES / "good.tar")
    assert (told.exit_code, "no such kind" in told.stdout) == (1, True)


def test_verify_of_an_archive_in_french_says_what_is_in_it(run: Run) -> None:
    told = run("journal", "verify", SAMPLES / "good.tar", locale="fr_FR.UTF-8")
    assert "contresigné par" in told.stdout
    assert "certifié par l'écriture 23" in told.stdout
