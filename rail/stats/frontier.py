"""The GRPO-n frontier: what uniform groups reach with as many rollouts."""

from collections.abc import Sequence

import numpy as np

from rail.errors import DataError


def frontier_value(
    billed: Sequence[float], success: Sequence[float], at: float
) -> tuple[float, bool]:
    """Return the success of the frontier at a budget, and whether the budget lies on it.

    Linear between neighbouring budgets; outside, the nearest end (and False): the frontier is not
    extrapolated.

    Args:
        billed: Rollouts of each point, any order.
        success: Success of each point.
        at: Budget in the unit of `billed`.

    Raises:
        DataError: If there are fewer than two points, or two of one budget.
    """
    order = np.argsort(billed)
    x, y = np.asarray(billed, float)[order], np.asarray(success, float)[order]
    if len(x) < 2 or (np.diff(x) <= 0).any():
        raise DataError(f"a frontier needs two or more different budgets, got {list(billed)}")
    return float(np.interp(at, x, y)), bool(x[0] <= at <= x[-1])
