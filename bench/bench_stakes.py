"""Certified stakes a second, from the inbox to the commit: ten stakes in each message, all messages waiting.

python -m bench stakes
"""

import asyncio
import statistics
import time
from collections.abc import Iterator

from bench.figures import Figure, rate
from bench.stage import open_table
from bench.stage import stakes as message_of_stakes

MESSAGES = 4_000
PER_MESSAGE = 10
REPEATS = 3


async def stakes_per_second(per_message: int) -> float:
    """Certified stakes a second, ``per_message`` in each message, all messages waiting at once."""
    async with open_table() as table:
        done, left = asyncio.Event(), MESSAGES

        def certified(_: object) -> None:
            nonlocal left
            left -= 1
            if not left:
                done.set()

        began_s = time.perf_counter()
        for number in range(MESSAGES):
            table.inbox.put(message_of_stakes(number, per_message), certified)
        await done.wait()
        return MESSAGES * per_message / (time.perf_counter() - began_s)


def stakes() -> Iterator[Figure]:
    """The median of a few runs."""
    per_second = statistics.median(asyncio.run(stakes_per_second(PER_MESSAGE)) for _ in range(REPEATS))
    yield rate("stakes, inbox to commit", per_second, 20_000, "stakes", f"{PER_MESSAGE} a message, {REPEATS} runs")
