"""Ending the tasks of an event loop, all of them and for certain."""

import asyncio
from collections.abc import Iterable

ASKED_TO_END_S = 7.0
"""A part that did not end within this when it is to stop is asked again; saying goodbye to a broker may take 5 s."""


async def end_all(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel every task and wait until all have ended.

    A library may swallow a cancellation that comes in the very instant in which it waits for an answer: ask again.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=ASKED_TO_END_S)
