"""Chance: drawn from the kernel, unbiased, and by one rule for all uses.

To draw a number below ``bound`` we take the fewest bits that can hold it and throw the draw away when it is not below
``bound``. Every number that remains is then equally likely. A remainder (``% bound``) would favour the low numbers:
256 bytes modulo 37 give the pockets 0 to 33 seven chances and 34 to 36 only six.

Games never draw: what was drawn is an input, and stands in the certified fact that it led to.
"""

import hashlib
import os
from collections.abc import Callable
from typing import Protocol


class Entropy(Protocol):
    """Where chance comes from."""

    def below(self, bound: int) -> int:
        """A number from 0 to ``bound - 1``, each equally likely. Raises ValueError when ``bound`` is not positive."""
        ...

    def distinct(self, bound: int, count: int) -> tuple[int, ...]:
        """``count`` different numbers below ``bound``, in the order drawn; every such sequence is equally likely.

        Raises ValueError when there are not that many.
        """
        ...

    def hex(self, size_bytes: int) -> str:
        """``size_bytes`` random bytes as lower-case hexadecimal digits."""
        ...


class ByteEntropy:
    """Chance from a source of bytes: ``source(n)`` gives ``n`` bytes, each of the 256 values equally likely."""

    def __init__(self, source: Callable[[int], bytes]) -> None:
        self._source = source

    def below(self, bound: int) -> int:
        """See ``Entropy``."""
        if bound < 1:
            raise ValueError(f"cannot draw a number below {bound}")
        bits = (bound - 1).bit_length()
        size_bytes, mask = (bits + 7) // 8, (1 << bits) - 1
        while (drawn := int.from_bytes(self._source(size_bytes), "big") & mask) >= bound:
            pass
        return drawn

    def distinct(self, bound: int, count: int) -> tuple[int, ...]:
        """See ``Entropy``."""
        if not 0 <= count <= bound:
            raise ValueError(f"cannot draw {count} different numbers below {bound}")
        numbers = list(range(bound))
        for at in range(count):  # Fisher and Yates, stopped after ``count`` places
            taken = at + self.below(bound - at)
            numbers[at], numbers[taken] = numbers[taken], numbers[at]
        return tuple(numbers[:count])

    def hex(self, size_bytes: int) -> str:
        """See ``Entropy``."""
        return self._source(size_bytes).hex()


class KernelEntropy(ByteEntropy):
    """The kernel's generator: the only one that a table in service may use."""

    def __init__(self) -> None:
        super().__init__(os.urandom)


class SeededEntropy(ByteEntropy):
    """The same draws for the same seed, on every machine and Python version: simulation and tests only.

    Block ``n`` of the stream is SHA-256 of the seed and ``n``.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(self._take)
        self._seed = seed
        self._block = 0
        self._ready = b""

    def _take(self, size_bytes: int) -> bytes:
        while len(self._ready) < size_bytes:
            self._ready += hashlib.sha256(f"table-controller/entropy/v1 {self._seed} {self._block}".encode()).digest()
            self._block += 1
        taken, self._ready = self._ready[:size_bytes], self._ready[size_bytes:]
        return taken
