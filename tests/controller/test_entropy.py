"""Chance is unbiased, and a seed always gives the same draws."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.entropy import ByteEntropy, Entropy, KernelEntropy, SeededEntropy

POCKETS = 37

CHI_SQUARE_36_ONE_IN_100_000 = 85.6
"""With 36 degrees of freedom a fair source exceeds this once in about 100,000 trials (Wilson and Hilferty)."""


class ScriptEndedError(Exception):
    """The scripted source has no more bytes."""


def scripted(script: Iterable[int]) -> Callable[[int], bytes]:
    """A source that gives these bytes, once, in this order."""
    left: Iterator[int] = iter(script)

    def take(size_bytes: int) -> bytes:
        taken = bytes(byte for _, byte in zip(range(size_bytes), left, strict=False))
        if len(taken) < size_bytes:
            raise ScriptEndedError
        return taken

    return take


def all_draws(entropy: ByteEntropy, bound: int) -> Counter[int]:
    """Draw below ``bound`` until the script ends."""
    drawn: Counter[int] = Counter()
    while True:
        try:
            drawn[entropy.below(bound)] += 1
        except ScriptEndedError:
            return drawn


def chi_square(counts: Counter[int], cells: int) -> float:
    """Pearson's statistic of the counts against equal chances."""
    expected = counts.total() / cells
    return sum((counts[cell] - expected) ** 2 / expected for cell in range(cells))


@given(st.integers(min_value=2, max_value=256))
def test_below_over_every_byte_gives_each_number_equally_often(bound: int) -> None:
    drawn = all_draws(ByteEntropy(scripted(range(256))), bound)
    assert set(drawn) == set(range(bound))
    assert len(set(drawn.values())) == 1, "a number is favoured"


@pytest.mark.parametrize("bound", [257, 1_000, 40_000, 65_536])
def test_below_over_every_pair_of_bytes_gives_each_number_equally_often(bound: int) -> None:
    script = (byte for pair in product(range(256), repeat=2) for byte in pair)
    drawn = all_draws(ByteEntropy(scripted(script)), bound)
    assert set(drawn) == set(range(bound))
    assert len(set(drawn.values())) == 1, "a number is favoured"


def test_below_of_a_draw_out_of_range_draws_again() -> None:
    entropy = ByteEntropy(scripted([63, 37, 255, 36]))
    assert entropy.below(37) == 36


def test_below_one_takes_no_byte_and_is_zero() -> None:
    assert ByteEntropy(scripted([])).below(1) == 0


@pytest.mark.parametrize("bound", [0, -1])
def test_below_nothing_raises(bound: int) -> None:
    with pytest.raises(ValueError, match="cannot draw a number below"):
        KernelEntropy().below(bound)


@pytest.mark.law("67-15")
def test_distinct_over_every_script_gives_each_ordered_pair_equally_often() -> None:
    drawn: Counter[tuple[int, ...]] = Counter()
    for script in product(range(4), repeat=2):  # below(4), then below(3): two bits each
        try:
            drawn[ByteEntropy(scripted(script)).distinct(4, 2)] += 1
        except ScriptEndedError:
            continue  # the second draw was 3 and was thrown away
    assert set(drawn) == {(first, second) for first in range(4) for second in range(4) if first != second}
    assert set(drawn.values()) == {1}


@given(st.integers(0, 60).flatmap(lambda bound: st.tuples(st.just(bound), st.integers(0, bound))), st.integers())
def test_distinct_never_repeats_a_number(sizes: tuple[int, int], seed: int) -> None:
    bound, count = sizes
    drawn = SeededEntropy(seed).distinct(bound, count)
    assert len(drawn) == len(set(drawn)) == count
    assert all(0 <= number < bound for number in drawn)


@pytest.mark.parametrize(("bound", "count"), [(3, 4), (3, -1), (-1, 0)])
def test_distinct_of_more_than_there_are_raises(bound: int, count: int) -> None:
    with pytest.raises(ValueError, match="different numbers"):
        KernelEntropy().distinct(bound, count)


def test_seeded_draws_pass_the_chi_square_and_a_remainder_does_not() -> None:
    draws = 37_000
    fair, biased = SeededEntropy(7), SeededEntropy(7)
    by_rejection = Counter(fair.below(POCKETS) for _ in range(draws))
    by_remainder = Counter(biased.below(256) % POCKETS for _ in range(draws))
    assert chi_square(by_rejection, POCKETS) < CHI_SQUARE_36_ONE_IN_100_000
    assert chi_square(by_remainder, POCKETS) > CHI_SQUARE_36_ONE_IN_100_000


def test_seeded_draws_of_a_seed_are_always_the_same() -> None:
    entropy = SeededEntropy(7)
    assert [entropy.below(POCKETS) for _ in range(8)] == [2, 24, 23, 3, 5, 33, 26, 20]
    assert SeededEntropy(7).hex(4) != SeededEntropy(8).hex(4)


def test_seeded_stream_does_not_depend_on_how_it_is_cut() -> None:
    whole, cut = SeededEntropy(3), SeededEntropy(3)
    assert whole.hex(100) == cut.hex(1) + cut.hex(31) + cut.hex(33) + cut.hex(35)


def test_kernel_draws_are_all_possible_and_differ() -> None:
    entropy: Entropy = KernelEntropy()
    assert {entropy.below(2) for _ in range(200)} == {0, 1}
    assert len(entropy.hex(16)) == 32
    assert entropy.hex(16) != entropy.hex(16)
