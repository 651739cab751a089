"""Retention goes up only: a lower number of years than the certified one stops the start."""

import pytest

from controller.certify.faults import JournalFault
from controller.retention import refuse_lowered


@pytest.mark.parametrize(("years", "certified"), [(10, 0), (10, 10), (11, 10)])
def test_retention_that_is_kept_or_raised_is_accepted(years: int, certified: int) -> None:
    refuse_lowered(years, certified)


def test_retention_that_is_lowered_by_a_year_is_refused() -> None:
    with pytest.raises(JournalFault, match="10 years, and 11 were certified") as caught:
        refuse_lowered(10, 11)
    assert caught.value.code == "E-RETENTION-LOWERED"
