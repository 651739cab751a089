"""Virtual time: an hour passes at once, always in the same order, and a story that can never go on says so."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.rehearsal.virtual_time import START_S, WALL_AT_START_MS, DeadlockError, LoopClock, VirtualTimeLoop


def run(story: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(story)


async def passes(seconds: float) -> None:
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, passed.set)
    await passed.wait()


def test_virtual_time_an_hour_passes_and_both_clocks_show_it() -> None:
    async def story() -> None:
        clock = LoopClock(asyncio.get_running_loop())
        assert clock.mono_us() == START_S * 1_000_000
        assert clock.wall_ms() == WALL_AT_START_MS
        await passes(3_600)
        assert clock.mono_us() == (START_S + 3_600) * 1_000_000
        assert clock.wall_ms() == WALL_AT_START_MS + 3_600_000

    run(story())


def test_virtual_time_stands_still_while_there_is_work() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert loop.time() == START_S

    run(story())


@given(st.lists(st.integers(0, 1_000), max_size=20))
def test_virtual_time_timers_fire_at_their_instants_and_in_the_same_order_each_time(delays_ms: list[int]) -> None:
    async def story() -> list[tuple[float, int]]:
        loop, fired = asyncio.get_running_loop(), list[tuple[float, int]]()
        for number, delay_ms in enumerate(delays_ms):
            loop.call_later(delay_ms / 1_000, lambda number=number: fired.append((loop.time(), number)))
        await passes(2)
        return fired

    fired = run(story())
    assert sorted(number for _, number in fired) == list(range(len(delays_ms)))
    assert [at_s for at_s, _ in fired] == sorted(at_s for at_s, _ in fired)
    assert all(at_s == pytest.approx(START_S + delays_ms[number] / 1_000) for at_s, number in fired)
    assert run(story()) == fired


def test_virtual_time_timeout_comes_at_once_in_real_time() -> None:
    async def story() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86_400):
                await asyncio.Event().wait()

    run(story())


def test_virtual_time_story_that_waits_for_nothing_says_so() -> None:
    with pytest.raises(DeadlockError, match="can never go on"):
        run(asyncio.Event().wait())


def test_virtual_time_socket_that_is_ready_is_served_before_time_goes_on() -> None:
    def read(end: socket.socket, got: Callable[[bytes], None]) -> Callable[[], None]:
        return lambda: got(end.recv(16))

    async def story() -> None:
        loop, got = asyncio.get_running_loop(), list[bytes]()
        one, other = socket.socketpair()
        with one, other:
            loop.add_reader(other, read(other, got.append))
            one.send(b"*X")
            await passes(5)
            loop.remove_reader(other)
        assert got == [b"*X"]

    run(story())
