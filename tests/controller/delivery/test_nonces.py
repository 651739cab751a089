"""Nonces: exactly the published layout, good for exactly their life, and never of another key."""

import hashlib
import hmac
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controller.delivery.nonces import KEY_BYTES, Nonces, order_of

KEY = bytes(range(32))
LIFE_US = 120_000_000


def by_definition(now_us: int, number: int) -> str:
    said = now_us.to_bytes(8, "big") + number.to_bytes(4, "big")
    return (said + hmac.new(KEY, said, hashlib.sha256).digest()[:12]).hex()


def test_nonce_is_its_instant_its_number_and_their_proof() -> None:
    assert len(KEY) == KEY_BYTES
    nonces = Nonces(KEY, LIFE_US)
    given = [nonces.give(now_us) for now_us in (0, 7, 7, 2**40)]
    assert given == [by_definition(0, 1), by_definition(7, 2), by_definition(7, 3), by_definition(2**40, 4)]


def test_nonce_after_the_last_number_begins_again_with_none() -> None:
    nonces = Nonces(KEY, LIFE_US)
    nonces._given = 2**32 - 2
    assert [nonces.give(9) for _ in range(3)] == [by_definition(9, at) for at in (2**32 - 1, 0, 1)]


@given(st.integers(0, 2**62))
def test_nonce_is_good_until_its_life_is_over(now_us: int) -> None:
    nonces = Nonces(KEY, LIFE_US)
    nonce = nonces.give(now_us)
    assert nonces.good(nonce, now_us)
    assert nonces.good(nonce, now_us + LIFE_US - 1)
    assert not nonces.good(nonce, now_us + LIFE_US)


@given(st.integers(0, 23), st.integers(1, 255))
def test_nonce_with_any_flipped_byte_is_good_for_nothing(at: int, flip: int) -> None:
    nonces = Nonces(KEY, LIFE_US)
    altered = bytearray.fromhex(nonces.give(5))
    altered[at] ^= flip
    assert not nonces.good(altered.hex(), 5)
    assert not Nonces(bytes(32), LIFE_US).good(nonces.give(5), 5)


@given(st.lists(st.integers(0, 2**40), min_size=2, max_size=8))
def test_order_of_nonces_is_that_in_which_they_were_given(instants: list[int]) -> None:
    nonces = Nonces(KEY, LIFE_US)
    orders = [order_of(nonces.give(at)) for at in sorted(instants)]
    assert [len(order) for order in orders] == [24] * len(orders)
    assert all(earlier < later for earlier, later in pairwise(orders))
