"""The past of a table: decided again (``tablectl replay``) and verified (``tablectl journal verify``).

python -m bench replay verify
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, rate
from bench.past import Evening, fill, play_evening
from bench.stage import BUILD
from controller import history
from controller.certify.journal import Journal
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer
from controller.certify.verify import verify

REPLAYS = 15
VERIFICATIONS = 3
VERIFIED = 1_000_000
"""Entries of the journal that is verified: about seven hundred evenings."""


def replay() -> Iterator[Figure]:
    """Facts of a simulated evening of six players, decided again each second, in one process."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        evening = play_evening(Path(folder))
    per_second = max(_replayed_per_second(evening) for _ in range(REPLAYS))
    yield rate("replay", per_second, 20_000, "facts", f"{len(evening.leaves):,} facts, best of {REPLAYS}")


def _replayed_per_second(evening: Evening) -> float:
    began_s = time.perf_counter()
    state, replayed = history.replay(evening.game, evening.leaves)
    took_s = time.perf_counter() - began_s
    assert state == evening.state
    return replayed.entries / took_s


def verification() -> Iterator[Figure]:
    """Entries of a journal of a million that are verified each second, on all processors."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        evening = play_evening(Path(folder) / "evening")
        file, signer = Path(folder) / "journal.sqlite", Signer.generate("bench.example/table/t00/1")
        Journal.create(file, signer, allow_volatile=True)
        size = fill(file, signer, evening, VERIFIED)
        per_second = max(_verified_per_second(file, signer) for _ in range(VERIFICATIONS))
    yield rate("verify", per_second, 200_000, "facts", f"{size:,} facts, best of {VERIFICATIONS}")


def _verified_per_second(file: Path, signer: Signer) -> float:
    began_s = time.perf_counter()
    verdict = verify(file, LogKeys.of(signer.verifier))
    took_s = time.perf_counter() - began_s
    assert verdict.ok, verdict.problem
    return verdict.size / took_s
