"""The page of evidence: each proof rewrites its own section and leaves the others as they are."""

from pathlib import Path

from proof.__main__ import PROOFS
from proof.evidence import record
from proof.results import all_of, none_of, share_of


def test_proof_rewrites_its_own_section_and_no_other(tmp_path: Path) -> None:
    page = tmp_path / "evidence.md"
    record("flips", "Bytes.", [all_of("flips found", 7, 7, "bytes", at_least=5)], PROOFS, page)
    record("crash-states", "Crashes.", [none_of("lost", 0, 9, "states", at_least=9)], PROOFS, page)
    first = page.read_text(encoding="utf-8")
    assert first.index("## crash-states") < first.index("## flips"), "in the order of the proofs"
    record("flips", "Bytes.", [all_of("flips found", 6, 7, "bytes", at_least=5)], PROOFS, page)
    second = page.read_text(encoding="utf-8")
    assert "| flips found | 6 of 7 bytes | all of at least 5 | **no** |" in second
    assert "7 of 7" not in second
    assert "| lost | 0 of 9 states | 0 of at least 9 | yes |" in second


def test_goal_is_met_only_with_enough_tries_and_nothing_bad() -> None:
    assert none_of("lost", 0, 15_000, "states", at_least=15_000).met
    assert not none_of("lost", 0, 14_999, "states", at_least=15_000).met
    assert not none_of("lost", 1, 15_000, "states", at_least=15_000).met
    assert not all_of("found", 9, 10, "flips", at_least=1).met
    assert share_of("killed", 90, 100, "mutants", percent=90).met
    assert not share_of("killed", 89, 100, "mutants", percent=90).met
    assert not share_of("killed", 0, 0, "mutants", percent=90).met
