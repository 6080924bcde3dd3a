"""The GRPO-n frontier."""

import pytest

from rail.errors import DataError
from rail.stats.frontier import frontier_value


def test_between_two_points_it_is_linear() -> None:
    assert frontier_value([128, 64], [0.6, 0.4], 96) == (pytest.approx(0.5), True)
    assert frontier_value([128, 64], [0.6, 0.4], 64) == (pytest.approx(0.4), True)


def test_beyond_the_ends_the_nearest_end_counts() -> None:
    assert frontier_value([64, 128], [0.4, 0.6], 150) == (pytest.approx(0.6), False)
    assert frontier_value([64, 128], [0.4, 0.6], 50) == (pytest.approx(0.4), False)


@pytest.mark.parametrize("billed", [[64], [64, 64]])
def test_fewer_than_two_budgets_are_no_frontier(billed: list[float]) -> None:
    with pytest.raises(DataError, match="two or more different budgets"):
        frontier_value(billed, [0.4] * len(billed), 64)
