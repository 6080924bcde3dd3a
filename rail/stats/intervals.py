"""Intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval; NaN limits where the data allow none.

    Attributes:
        level: Nominal coverage, 0 to 1.
    """

    low: float
    high: float
    level: float

    def shifted(self, by: float) -> "Interval":
        """Return the interval moved by `by`."""
        return Interval(self.low + by, self.high + by, self.level)


def t_interval(values: NDArray[np.float64], level: float) -> Interval:
    """Return the Student t interval of the mean of `values`, shape (n,).

    With one value the limits are NaN; values without spread give a point.
    """
    from scipy import stats

    n = len(values)
    if n < 2:
        return Interval(float("nan"), float("nan"), level)
    mean, error = float(values.mean()), float(values.std(ddof=1)) / n**0.5
    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * error
    return Interval(mean - half, mean + half, level)


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Return Wilson's score interval of a share.

    Raises:
        ValueError: If not 0 <= successes <= trials with at least one trial.
    """
    from scipy import stats

    found = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    return Interval(float(found.low), float(found.high), level)
