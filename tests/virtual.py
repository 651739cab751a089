"""Time in tests whose loop's clock jumps: nobody waits for it."""

import asyncio


async def time_passes(seconds: float) -> None:
    """Let so much of the loop's own time pass."""
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_later(seconds, passed.set_result, None)
    await passed
