"""A writer that dies, and a disk that fails: what was certified is there, and nothing else is believed."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from controller.certify.log_keys import LogKeys
from controller.certify.verify import verify
from tests.controller.certify.workshop import SIGNER, open_journal, stakes

CHILD = [sys.executable, "-m", "tests.controller.certify.crashing_writer"]


def checked_size(path: Path) -> int:
    """How many entries the next start finds, after a verification of them all; and it can go on."""
    with closing(open_journal(path)) as journal:
        found = journal.size
        assert journal.append(stakes(1)).size == found + 1
    assert verify(path, LogKeys.of(SIGNER.verifier)).size == found + 1
    return found


@pytest.mark.parametrize("lines", [1, 2, 60, 150])
def test_writer_killed_at_any_instant_has_lost_nothing_that_was_certified(path: Path, root: Path, lines: int) -> None:
    for _ in range(2):
        with subprocess.Popen([*CHILD, str(path)], cwd=root, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            certified = [child.stdout.readline() for _ in range(lines)]
            child.kill()
            certified += child.stdout.read().splitlines()
        assert checked_size(path) >= int([line for line in certified if line.strip()][-1])


@pytest.mark.parametrize(
    ("call", "error", "when"),
    [("fdatasync", "EIO", 9), ("pwrite64", "ENOSPC", 60), ("pwrite64", "EIO", 61), ("fdatasync", "ENOSPC", 10)],
)
def test_system_call_that_fails_ends_the_writer_and_loses_nothing_certified(
    path: Path, root: Path, program: Callable[[str], str], call: str, error: str, when: int
) -> None:
    strace = [program("strace"), "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}"]
    inject = ["-e", f"inject={call}:error={error}:when={when}+"]
    result = subprocess.run(
        [*strace, *inject, *CHILD, str(path)], cwd=root, capture_output=True, text=True, check=False
    )
    *certified, code = result.stdout.split()
    assert (result.returncode, code) == (3, "E-JOURNAL-WRITE"), result.stderr
    # The failed commit may be on the disk or not: its frames were perhaps written, and only the sync failed.
    assert int(certified[-1]) <= checked_size(path) <= int(certified[-1]) + 3
