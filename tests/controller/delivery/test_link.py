"""The connection's socket in the event loop: watched while it is the present one, and never after."""

import asyncio
import socket

from controller.delivery.link import OwnSocketOnly


async def test_present_socket_is_watched() -> None:
    near, far = socket.socketpair()
    with near, far:
        loop, readable, writable = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        own = OwnSocketOnly(loop, lambda: near)
        own.add_reader(near.fileno(), readable.set)
        own.add_writer(near.fileno(), writable.set)
        far.send(b"x")
        await asyncio.gather(readable.wait(), writable.wait())
        loop.remove_reader(near)
        loop.remove_writer(near)


async def test_number_of_a_socket_that_was_closed_meanwhile_is_not_watched() -> None:
    near, far = socket.socketpair()
    number = near.fileno()
    near.close()
    far.close()
    for present in (lambda: near, lambda: None):
        own = OwnSocketOnly(asyncio.get_running_loop(), present)
        own.add_reader(number, _fail)
        own.add_writer(number, _fail)
        own.add_writer(-1, _fail)


async def test_number_that_is_somebody_elses_now_is_not_watched() -> None:
    near, other = socket.socketpair()
    with near, other:
        loop = asyncio.get_running_loop()
        own = OwnSocketOnly(loop, lambda: near)
        own.add_writer(other.fileno(), _fail)
        assert not loop.remove_writer(other)


async def test_all_else_is_the_loop_itself() -> None:
    loop = asyncio.get_running_loop()
    assert OwnSocketOnly(loop, lambda: None).time == loop.time


def _fail() -> None:
    raise AssertionError("a socket that is not ours was watched")
