"""Money: no split loses or makes a cent, and amounts read as a French cashier writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.money import Cents, euros, split

totals = st.integers(min_value=0, max_value=10**12).map(Cents)
weights = st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=40).filter(any)


def largest_remainder(total: int, claims: list[int]) -> tuple[int, ...]:
    """The method by the book, in fractions: hand out one cent at a time to the greatest claim that is left."""
    exact = [Fraction(total * claim, sum(claims)) for claim in claims]
    shares = [share.numerator // share.denominator for share in exact]
    waiting = list(range(len(claims)))
    while sum(shares) < total:
        first = waiting[0]
        for candidate in waiting[1:]:
            remainder, best = exact[candidate] - shares[candidate], exact[first] - shares[first]
            if remainder > best or (remainder == best and claims[candidate] > claims[first]):
                first = candidate
        shares[first] += 1
        waiting.remove(first)
    return tuple(shares)


@given(totals, weights)
def test_split_of_any_total_hands_out_every_cent(total: Cents, claims: list[int]) -> None:
    assert sum(split(total, claims)) == total


@given(totals, weights)
def test_split_of_any_total_keeps_each_share_within_a_cent_of_the_exact_one(total: Cents, claims: list[int]) -> None:
    for share, claim in zip(split(total, claims), claims, strict=True):
        assert abs(share - Fraction(total * claim, sum(claims))) < 1


@given(totals, weights)
def test_split_of_any_total_is_the_largest_remainder_method(total: Cents, claims: list[int]) -> None:
    assert split(total, claims) == largest_remainder(total, claims)


@given(st.integers(min_value=0, max_value=60), st.lists(st.integers(0, 3), min_size=1, max_size=8).filter(any))
def test_split_with_many_equal_claims_breaks_ties_as_the_rule_says(total: int, claims: list[int]) -> None:
    assert split(Cents(total), claims) == largest_remainder(total, claims)


@given(totals, weights)
def test_split_without_a_claim_gives_nothing(total: Cents, claims: list[int]) -> None:
    shares = split(total, [*claims, 0])
    assert shares[-1] == 0
    assert shares[:-1] == split(total, claims)


@pytest.mark.parametrize(
    ("total", "claims", "shares"),
    [
        (100, [1, 1, 1], (34, 33, 33)),  # equal claims: the lowest position takes the odd cent
        (101, [1, 1, 1], (34, 34, 33)),
        (1, [1, 3, 2], (0, 1, 0)),  # the largest fraction takes it
        (1, [1, 1, 2], (0, 0, 1)),
        (2, [1, 3], (0, 2)),  # halves tie: the larger claim comes first
        (2, [3, 1], (2, 0)),
        (0, [5, 7], (0, 0)),
        (7, [9], (7,)),
    ],
)
def test_split_of_a_worked_example_gives_the_known_shares(
    total: int, claims: list[int], shares: tuple[int, ...]
) -> None:
    assert split(Cents(total), claims) == shares


@pytest.mark.parametrize(
    ("total", "claims"), [(-1, [1]), (5, []), (5, [0, 0]), (5, [2, -1]), (0, [0])], ids=lambda value: str(value)
)
def test_split_of_the_impossible_is_refused_with_what_it_was_given(total: int, claims: list[int]) -> None:
    with pytest.raises(ValueError, match=f"cannot share {total} cents"):
        split(Cents(total), claims)


@pytest.mark.parametrize(
    ("cents", "text"),
    [
        (0, "0,00\u202f€"),
        (5, "0,05\u202f€"),
        (-5, "-0,05\u202f€"),
        (100, "1,00\u202f€"),
        (123_456, "1\u202f234,56\u202f€"),
        (-123_456_789, "-1\u202f234\u202f567,89\u202f€"),
    ],
)
def test_euros_are_written_the_french_way(cents: int, text: str) -> None:
    assert euros(cents) == text


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_euros_of_any_amount_read_back_as_the_same_cents(cents: int) -> None:
    digits = euros(cents).removesuffix("\u202f€").replace("\u202f", "").replace(",", "")
    assert int(digits) == cents
