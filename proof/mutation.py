"""Each small mistake in what certifies and delivers is found by a test, or it is listed in mutants.md with the reason.

    python -m proof.mutation NAME ...      some modules only, for whoever works on their tests

A mutant is a module with one mistake in it (``mutants``). It is killed when one of the module's tests fails, takes
twenty times as long as it should, or crashes (``mutant_runner``). The survivors are written to docs/mutants.md with the
reasons in survivors.toml: mostly that the mistake changes nothing that anybody could see.
"""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from proof.mutants import Mutant, mutants, sample
from proof.results import Result, none_of, share_of

ROOT = Path(__file__).resolve().parents[1]
LISTED = ROOT / "proof" / "survivors.toml"
DOCUMENT = ROOT / "docs" / "mutants.md"

PERCENT = 90
AT_MOST = 400
"""Mutants of one module; of those that have more, so many are taken at even distances."""

SHOWN_EVERY = 10

CERTIFY = "controller/certify"
DELIVERY = "controller/delivery"

TESTS: Mapping[str, tuple[str, ...]] = {
    f"{CERTIFY}/tree.py": ("certify/test_tree.py", "certify/test_limits.py"),
    f"{CERTIFY}/note.py": ("certify/test_note.py", "certify/test_keys.py", "certify/test_limits.py"),
    f"{CERTIFY}/checkpoint.py": ("certify/test_checkpoint.py", "certify/test_limits.py"),
    f"{CERTIFY}/leaf.py": ("certify/test_limits.py", "certify/test_leaf.py", "certify/test_shapes.py"),
    f"{CERTIFY}/log_keys.py": ("certify/test_log_keys.py", "certify/test_limits.py"),
    f"{CERTIFY}/policy.py": ("certify/test_policy.py", "certify/test_limits.py"),
    f"{CERTIFY}/tiles.py": (
        "certify/test_limits.py",
        "certify/test_tiles.py",
        "certify/test_journal.py",
        "certify/test_volumes.py",
    ),
    f"{CERTIFY}/trust.py": (
        "certify/test_trust.py",
        "certify/test_verify_witnesses.py",
        "certify/test_recovery.py",
        "certify/test_verify.py",
        "certify/test_reader.py",
    ),
    f"{CERTIFY}/journal.py": (
        "certify/test_journal.py",
        "certify/test_restored_entries.py",
        "certify/test_storage.py",
        "certify/test_volumes.py",
    ),
    f"{CERTIFY}/reader.py": ("certify/test_start_edges.py", "certify/test_reader.py", "certify/test_volumes.py"),
    f"{CERTIFY}/bound.py": (
        "certify/test_start_edges.py",
        "certify/test_bound.py",
    ),
    f"{CERTIFY}/recovery.py": (
        "certify/test_start_edges.py",
        "certify/test_recovery.py",
        "certify/test_recovery_files.py",
    ),
    f"{CERTIFY}/verify.py": (
        "certify/test_verify.py",
        "certify/test_verify_witnesses.py",
        "certify/test_volumes.py",
        "certify/test_rotation.py",
    ),
    f"{CERTIFY}/blocks.py": (
        "certify/test_blocks.py",
        "certify/test_verify.py",
        "certify/test_verify_witnesses.py",
        "certify/test_rotation.py",
        "certify/test_archive_check.py",
    ),
    f"{DELIVERY}/centre.py": (
        "delivery/test_centre.py",
        "delivery/test_publisher.py",
        "delivery/test_publisher_answers.py",
    ),
    f"{DELIVERY}/topics.py": ("delivery/test_topics.py", "delivery/test_limits.py"),
    f"{DELIVERY}/nonces.py": ("delivery/test_nonces.py", "delivery/test_orders.py"),
    f"{DELIVERY}/completion.py": ("delivery/test_completion.py",),
    f"{DELIVERY}/publisher.py": (
        "delivery/test_publisher.py",
        "delivery/test_publisher_answers.py",
        "delivery/test_publisher_delivery.py",
    ),
    f"{DELIVERY}/orders.py": (
        "delivery/test_limits.py",
        "delivery/test_orders.py",
        "delivery/test_order_attacks.py",
        "delivery/test_order_client.py",
        "delivery/test_enrolment.py",
    ),
    f"{DELIVERY}/posts.py": (
        "delivery/test_limits.py",
        "delivery/test_posts.py",
    ),
    f"{DELIVERY}/retained.py": (
        "delivery/test_retained.py",
        "delivery/test_publisher.py",
        "delivery/test_publisher_answers.py",
    ),
    f"{DELIVERY}/wire.py": ("delivery/test_limits.py", "delivery/test_wire.py", "delivery/test_posts.py"),
}
"""The tests that are to kill the mutants of each module, under tests/controller."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of the mutants of one module: of ``total``, ``mutants`` were tried, and ``survivors`` survived."""

    file: str
    total: int
    mutants: tuple[Mutant, ...]
    survivors: tuple[Mutant, ...]

    @property
    def what(self) -> str:
        """What the figure counts."""
        count = len(self.mutants)
        return "mutants killed" if count == self.total else f"mutants killed, sampled of {self.total:,}"


@dataclass(frozen=True, slots=True)
class Listed:
    """Why a mutant may survive, told by the module it is in, the function and the change."""

    file: str
    function: str
    change: str
    reason: str

    def explains(self, file: str, mutant: Mutant) -> bool:
        """Whether this is about ``mutant`` of ``file``."""
        return (file, mutant.function, mutant.change) == (self.file, self.function, self.change)


def listed(path: Path = LISTED) -> list[Listed]:
    """The survivors that are explained."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", [])
    return [Listed(one["file"], one["function"], one["change"], one["reason"]) for one in entries]


def attempt(path: Path, name: str, tests: Sequence[Path], at_most: int = AT_MOST, shares: int | None = None) -> Tried:
    """Run ``tests`` against the mutants of the module ``name`` in the file ``path``, with a process for each share."""
    found = mutants(path.read_text(encoding="utf-8"))
    chosen = sample(found, at_most)
    shares = shares or len(os.sched_getaffinity(0))
    files = [str(test) for test in tests]
    task = {"path": str(path), "name": name, "tests": files, "shares": shares, "at_most": at_most}
    killed: dict[int, bool] = {}

    def run(share: int) -> int:
        command = [sys.executable, "-m", "proof.mutant_runner", json.dumps({**task, "share": share})]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as runner:
            assert runner.stdout is not None
            for line in runner.stdout:
                said = json.loads(line)
                killed[said["number"]] = said["killed"]
                if not len(killed) % SHOWN_EVERY:
                    print(f"    {len(killed):>5,} of {len(chosen):,} mutants of {name}", end="\r", flush=True)
        return runner.returncode

    with ThreadPoolExecutor(shares) as pool:
        statuses = list(pool.map(run, range(shares)))
    print()
    if any(statuses) or len(killed) != len(chosen):
        raise RuntimeError(f"only {len(killed)} of {len(chosen)} mutants of {name} were tried")
    survivors = tuple(mutant for number, mutant in enumerate(chosen) if not killed[number])
    return Tried(path.name, len(found), tuple(chosen), survivors)


def attempt_module(file: str) -> Tried:
    """The mutants of one of the modules listed here."""
    tests = [ROOT / "tests" / "controller" / test for test in TESTS[file]]
    tried = attempt(ROOT / file, file.removesuffix(".py").replace("/", "."), tests)
    return Tried(file, tried.total, tried.mutants, tried.survivors)


def killed_after_all(tried: Tried, reasons: Sequence[Listed]) -> list[Listed]:
    """What is listed as a survivor of a module of which every mutant was tried, and is none."""
    about = [one for one in reasons if one.file == tried.file]
    if len(tried.mutants) < tried.total:
        about = [one for one in about if any(one.explains(tried.file, mutant) for mutant in tried.mutants)]
    return [one for one in about if not any(one.explains(tried.file, mutant) for mutant in tried.survivors)]


def prove() -> Iterator[Result]:
    """Every module; then what the list of survivors has too many."""
    reasons = listed()
    outcomes = []
    for file in TESTS:
        tried = attempt_module(file)
        outcomes.append(tried)
        yield _result(tried)
    stale = [one for tried in outcomes for one in killed_after_all(tried, reasons)]
    for one in stale:
        print(f"    killed after all: {one.file} {one.function}: {one.change}")
    yield none_of("listed as a survivor, and killed after all", len(stale), len(reasons), "reasons", at_least=1)
    DOCUMENT.write_text(_document(outcomes, reasons), encoding="utf-8")


def _result(tried: Tried) -> Result:
    count = len(tried.mutants)
    return share_of(tried.file, count - len(tried.survivors), count, tried.what, percent=PERCENT)


def _document(outcomes: Sequence[Tried], reasons: Sequence[Listed]) -> str:
    """The survivors of every module, with line, change and reason."""
    parts = [
        "# Mutants that survive\n",
        "`make proof ARGS=mutation` puts one small mistake after another into the modules below and runs their tests;",
        "[evidence.md](evidence.md) has the figures. These mistakes no test finds. The reasons are those of",
        "`proof/survivors.toml`; a survivor without one is work to be done.\n",
    ]
    for tried in outcomes:
        count = len(tried.mutants)
        parts.append(f"## {tried.file}\n\n{count - len(tried.survivors):,} of {count:,} {tried.what}.\n")
        if tried.survivors:
            rows = [_row(tried.file, mutant, reasons) for mutant in tried.survivors]
            parts.append("\n".join(["| line | function | change | reason |", "|---|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _row(file: str, mutant: Mutant, reasons: Sequence[Listed]) -> str:
    reason = next((one.reason for one in reasons if one.explains(file, mutant)), "**none yet**")
    change = mutant.change.replace("|", "\\|").replace("\n", " ")
    return f"| {mutant.first} | {mutant.function or '(module)'} | `{change}` | {reason} |"


def main() -> int:
    """Try the named modules and print their survivors; returns the exit status."""
    reasons = listed()
    missed = 0
    for file in (file for file in TESTS if not sys.argv[1:] or Path(file).stem in sys.argv[1:]):
        tried = attempt_module(file)
        for mutant in tried.survivors:
            reason = next((one.reason for one in reasons if one.explains(file, mutant)), "")
            print(f"    {file}:{mutant.first} {mutant.function}: {mutant.change}  {reason and f'({reason})'}")
        for one in killed_after_all(tried, reasons):
            print(f"    killed after all: {one.function}: {one.change}")
        result = _result(tried)
        print(result.line)
        missed += not result.met
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
