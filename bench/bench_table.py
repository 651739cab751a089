"""The table from the inbox to the commit: stakes a second, and whether a burst delays "rien ne va plus"."""

import asyncio
import statistics
import time

from bench.stage import OpenTable, open_table, stakes
from controller.inbox import POST_LANE_BOUND
from games.signals import ClockStepped

MESSAGES = 4_000
CUTOFFS = 200


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
            table.inbox.put(stakes(number, per_message), certified)
        await done.wait()
        return MESSAGES * per_message / (time.perf_counter() - began_s)


async def cut_off_ms(*, burst: bool) -> list[float]:
    """How long an observation takes from the inbox to its commit, alone or while posts keep the inbox full.

    A step of the clock stands for the cut-off: it goes through the same lane, and can be repeated in one round.
    """
    async with open_table() as table:
        stop = asyncio.Event()
        feeding = asyncio.create_task(_feed(table, stop)) if burst else None
        took = []
        for _ in range(CUTOFFS):
            await asyncio.sleep(0.003)
            began_s = time.perf_counter()
            await table.ask(ClockStepped(at_us=0, by_ms=1_000, quality="free"))
            took.append((time.perf_counter() - began_s) * 1_000)
        stop.set()
        if feeding:
            await feeding
        return took


async def _feed(table: OpenTable, stop: asyncio.Event) -> None:
    number = 0
    while not stop.is_set():
        while len(table.inbox) < min(500, POST_LANE_BOUND):
            table.inbox.put(stakes(number, 10))
            number += 1
        await asyncio.sleep(0)


def main() -> None:
    """Print the figures."""
    for per_message in (1, 10):
        rate = asyncio.run(stakes_per_second(per_message))
        goal = "goal 20,000" if per_message > 1 else "no goal"
        print(f"stakes, {per_message:>2} a message: {rate:>10,.0f} certified stakes/s   ({goal}; {MESSAGES} messages)")
    idle, loaded = asyncio.run(cut_off_ms(burst=False)), asyncio.run(cut_off_ms(burst=True))
    ratio = statistics.median(loaded) / statistics.median(idle)
    worst = statistics.quantiles(loaded, n=100)[98] / statistics.quantiles(idle, n=100)[98]
    print(
        f"cut-off in a burst: {ratio:.2f} x idle in the median, {worst:.2f} x at p99   (goal 2; {CUTOFFS} of each;"
        f" idle median {statistics.median(idle):.2f} ms)"
    )


if __name__ == "__main__":
    main()
