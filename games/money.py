"""Money is an integer number of euro cents, and no split ever loses or makes one.

A remainder follows the largest-remainder method: each share is floored, then the cents that are left go one by one to
the largest fractional parts; ties go to the larger weight, then to the lowest position (regulation notes, 10.12).
"""

from collections.abc import Sequence
from typing import NewType

Cents = NewType("Cents", int)
"""An amount of money in euro cents."""


def split(total: Cents, weights: Sequence[int]) -> tuple[Cents, ...]:
    """Share ``total`` cents in proportion to ``weights``; the shares add up to ``total`` exactly.

    Raises ValueError when the total or a weight is negative, or when no weight is positive.
    """
    whole = sum(weights)
    if total < 0 or whole <= 0 or min(weights) < 0:
        raise ValueError(f"cannot share {total} cents by {list(weights)}: none may be negative, one must be positive")
    floors = [total * weight // whole for weight in weights]
    by_claim = sorted(range(len(weights)), key=lambda at: (-(total * weights[at] % whole), -weights[at], at))
    for at in by_claim[: total - sum(floors)]:
        floors[at] += 1
    return tuple(Cents(share) for share in floors)


def euros(cents: int) -> str:
    """French notation: 1 234 567 cents is ``12 345,67 €`` (with narrow no-break spaces)."""
    sign = "-" if cents < 0 else ""
    units, rest = divmod(abs(cents), 100)
    return f"{sign}{units:,}".replace(",", "\u202f") + f",{rest:02d}\u202f€"
