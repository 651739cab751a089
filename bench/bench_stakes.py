"""Certified stakes a second, from the inbox to the commit: ten stakes in each message, all messages waiting.

python -m bench stakes
"""

import asyncio
import statistics
from collections.abc import Iterator

from bench.bench_table import stakes_per_second
from bench.figures import Figure, rate

PER_MESSAGE = 10
REPEATS = 3


def stakes() -> Iterator[Figure]:
    """The median of a few runs."""
    per_second = statistics.median(asyncio.run(stakes_per_second(PER_MESSAGE)) for _ in range(REPEATS))
    yield rate("stakes, inbox to commit", per_second, 20_000, "stakes", f"{PER_MESSAGE} a message, {REPEATS} runs")
