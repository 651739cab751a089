"""Nonces that need not be remembered: each says when it was given, and proves that this run of the table gave it.

    8 bytes       4 bytes   12 bytes
    µs of boot  │ number  │ HMAC-SHA256 of both, cut; its key was drawn at the start and never leaves the memory

The number tells apart those of one instant. Who has no key guesses a proof once in 2^96, so however many nonces are
asked for, none has to be kept, and none crowds out another.
"""

import hmac

KEY_BYTES = 32

_INSTANT_BYTES = 8
_NUMBER_BYTES = 4
_PROOF_BYTES = 12


class Nonces:
    """Gives nonces and knows them again. ``key`` is KEY_BYTES random bytes; a nonce is good for ``life_us``."""

    def __init__(self, key: bytes, life_us: int) -> None:
        self._key = key
        self._life_us = life_us
        self._given = 0

    def give(self, now_us: int) -> str:
        """A nonce of 48 hexadecimal digits that was never given before."""
        self._given += 1
        number = self._given % (1 << 8 * _NUMBER_BYTES)
        said = now_us.to_bytes(_INSTANT_BYTES, "big") + number.to_bytes(_NUMBER_BYTES, "big")
        return (said + self._proof(said)).hex()

    def good(self, nonce: str, now_us: int) -> bool:
        """Whether ``nonce``, 48 hexadecimal digits, was given with this key less than ``life_us`` ago."""
        given = bytes.fromhex(nonce)
        said, proof = given[:-_PROOF_BYTES], given[-_PROOF_BYTES:]
        if not hmac.compare_digest(proof, self._proof(said)):
            return False
        return now_us < int.from_bytes(said[:_INSTANT_BYTES], "big") + self._life_us

    def _proof(self, said: bytes) -> bytes:
        return hmac.digest(self._key, said, "sha256")[:_PROOF_BYTES]


def order_of(nonce: str) -> str:
    """What sorts the good nonces of one run in the order in which they were given."""
    return nonce[: 2 * (_INSTANT_BYTES + _NUMBER_BYTES)]
