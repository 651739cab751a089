"""The proof of one entry among a million (``tablectl journal prove`` and ``check-proof``): made, and checked.

python -m bench proof
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.figures import Figure
from bench.past import fill, play_evening
from bench.stage import BUILD
from controller.certify.journal import Journal
from controller.certify.log_keys import LogKeys
from controller.certify.note import Signer
from controller.certify.policy import Policy
from controller.certify.proof import check, prove
from controller.certify.reader import Reader

FACTS = 1_000_000
PROOFS = 1_000
STRIDE = 618_033
"""From one entry to the next one that is proven: far apart, all over the journal, and never the same one twice."""

GOAL_MS = 10.0


def proof() -> Iterator[Figure]:
    """How long the slowest hundredth of the proofs takes, the journal opened anew for each, as a command does."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        evening = play_evening(Path(folder) / "evening")
        file, signer = Path(folder) / "journal.sqlite", Signer.generate("bench.example/table/t00/1")
        Journal.create(file, signer, allow_volatile=True)
        size = fill(file, signer, evening, FACTS)
        policy = Policy((LogKeys.of(signer.verifier),))
        timed = [_timed(file, at * STRIDE % size, policy) for at in range(PROOFS)]
    for name, took_ms in (("proof made", [made for made, _ in timed]), ("proof checked", [told for _, told in timed])):
        took_ms.sort()
        late_ms = took_ms[PROOFS * 99 // 100]
        yield Figure(
            name=name,
            measured=f"p99 {late_ms:.2f} ms, p50 {took_ms[PROOFS // 2]:.2f}",
            beside=f"goal of {GOAL_MS:g} ms ({PROOFS:,} of {size:,} facts)",
            ratio=late_ms / GOAL_MS,
            bound=1,
        )


def _timed(file: Path, index: int, policy: Policy) -> tuple[float, float]:
    """Milliseconds to make the proof of one entry, and to check it."""
    began_s = time.perf_counter()
    with closing(Reader(file)) as reader:
        leaf, text = reader.leaf(index), prove(reader, index, reader.checkpoint()).text
    made_s = time.perf_counter()
    proven = check(text, leaf, policy)
    checked_s = time.perf_counter()
    assert proven.index == index
    return (made_s - began_s) * 1_000, (checked_s - made_s) * 1_000
