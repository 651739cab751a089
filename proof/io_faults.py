"""A write or sync that fails never has an effect that is not certified: the error comes at each call in turn.

The real writer runs again and again, and each time another one of its calls fails as on a dying disk (EIO) or a full
one (ENOSPC), by strace's fault injection. Whatever it had promised before it ended must be in the journal at the next
start, and a failed sync of a file must be the end of it: a sync that is tried again may say "well" about what is lost.
Two kinds of sync do not count as ends: that of the folder, which SQLite passes over and the journal therefore makes
once more by itself, and the first ones of a draft, of a new journal or a new volume, while SQLite changes its mode: it
tries again there, but nothing was promised yet, and all of it is written and synced once more before the draft takes
its place.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from controller.certify.faults import CertifyFault
from controller.certify.journal import Journal
from controller.certify.verify import verify
from drivers.clock import ManualClock
from proof.crash_states import KEYS, Promised
from proof.recorded_writer import FILE, TABLE
from proof.results import Result, none_of

COMMITS = 12
AT_LEAST = 500

FAILING = ("pwrite64", "fdatasync", "fsync", "ftruncate", "link")
ERRORS = ("EIO", "ENOSPC")
SYNCS = ("fdatasync", "fsync")
FOLDER = "disk"
DRAFTS = (f"{FILE}.new", f"{FILE}.turning")
"""A new journal and a new volume before they take their place."""

_CALL = re.compile(r"\d+ +(?P<name>\w+)\((?:\d+<(?P<file>[^>]*)>)?")


@dataclass(frozen=True, slots=True)
class Injection:
    """The ``at``-th call of a name fails with an error; it is the ``of_file``-th of that name on ``file``."""

    call: str
    error: str
    at: int
    file: str
    of_file: int

    @property
    def is_sync_of_what_was_promised(self) -> bool:
        """Whether it is a sync after whose failure nobody may go on."""
        is_first_of_draft = self.file.endswith("-journal") or (self.file in DRAFTS and self.of_file == 1)
        return self.call in SYNCS and self.file != FOLDER and not is_first_of_draft


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What became of a run: ``broken`` if a promise is not in the journal, ``went_on`` if the program saw no error."""

    injection: Injection
    broken: bool
    went_on: bool


def injections(commits: int) -> list[Injection]:
    """Each call of each name that a run makes, with each error."""
    with tempfile.TemporaryDirectory() as work:
        trace = Path(work) / "trace"
        _run(Path(work) / FOLDER, commits, "-y", "-e", f"trace={','.join(FAILING)}", "-o", str(trace))
        calls = [found for line in trace.read_text(encoding="utf-8").splitlines() if (found := _CALL.match(line))]
    counted: Counter[str] = Counter()
    made = []
    for call in calls:
        name, file = call["name"], Path(call["file"] or "").name
        counted.update([name, f"{name} {file}"])
        made += [Injection(name, error, counted[name], file, counted[f"{name} {file}"]) for error in ERRORS]
    return made


def inject(injection: Injection, commits: int) -> Aftermath:
    """Let the call fail, and look at the journal afterwards as a start would."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / FOLDER
        what = f"{injection.call}:error={injection.error}:when={injection.at}"
        ended = _run(folder, commits, "-e", f"trace={injection.call}", "-e", f"inject={what}", "-o", os.devnull)
        promised = Promised()
        for line in ended.stdout.splitlines():
            promised.hear(line)
        return Aftermath(injection, _is_broken(folder / FILE, promised), ended.returncode == 0)


def _run(folder: Path, commits: int, *words: str) -> subprocess.CompletedProcess[bytes]:
    folder.mkdir()
    writer = [sys.executable, "-m", "proof.recorded_writer", str(folder), str(commits)]
    return subprocess.run(["strace", "-f", *words, *writer], check=False, capture_output=True)


def _is_broken(path: Path, promised: Promised) -> bool:
    if not path.exists():
        return promised.created
    try:
        with closing(Journal.open(path, TABLE, ManualClock(), "f" * 16, lambda: "ntp", allow_volatile=True)) as journal:
            return journal.size < promised.certified or not verify(path, KEYS, processes=1).ok
    except CertifyFault:
        return True


def inject_all(commits: int, every: int = 1) -> list[Aftermath]:
    """Every ``every``-th injection."""
    chosen = injections(commits)[::every]
    found = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for one in pool.map(lambda injection: inject(injection, commits), chosen):
            found.append(one)
            print(f"    {len(found):>5,} of {len(chosen):,} injections", end="\r", flush=True)
    print()
    return found


def prove() -> Iterator[Result]:
    """Each call fails once with each error."""
    found = inject_all(COMMITS)
    broken = sum(one.broken for one in found)
    claim = "promises that are not kept after a call failed"
    yield none_of(claim, broken, len(found), "calls failed", at_least=AT_LEAST)
    syncs = [one for one in found if one.injection.is_sync_of_what_was_promised]
    went_on = sum(one.went_on for one in syncs)
    yield none_of("runs that went on after a failed sync of a file", went_on, len(syncs), "syncs failed", at_least=60)
