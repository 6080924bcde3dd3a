"""Hierarchical studentised bootstrap: seeds, then tasks within seeds.

A sensitivity analysis of the paired t interval (protocol section 5). Studentised, because
percentile intervals of a handful of seeds are far too short.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rail.errors import DataError
from rail.stats.intervals import Interval

DRAWS = 2000


def studentised_bootstrap(
    differences: Mapping[str, NDArray[np.float64]],
    rng: np.random.Generator,
    weights: Mapping[str, float] | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
) -> Interval:
    """Return the interval of the mean over seeds of the weighted mean over strata.

    Equal `rng` states give equal intervals. NaN limits for fewer than two seeds; a limit may be
    infinite where so few seeds are resampled that some resamples have no spread.

    Args:
        differences: For each stratum the task differences, shape (seeds, tasks of the stratum);
            the same seeds in the same order everywhere.
        rng: Source of all resampling.
        weights: Weight of each stratum, sum 1; equal weights if None.
        level: Nominal coverage.
        draws: Number of resamples.

    Raises:
        DataError: If the strata disagree about the number of seeds, or one has no task.
    """
    seeds = {len(matrix) for matrix in differences.values()}
    if len(seeds) != 1 or any(matrix.shape[1] == 0 for matrix in differences.values()):
        shapes = {name: matrix.shape for name, matrix in differences.items()}
        raise DataError(f"strata must have equal seeds and at least one task, got {shapes}")
    n = seeds.pop()
    if n < 2:
        return Interval(float("nan"), float("nan"), level)
    share = weights or dict.fromkeys(differences, 1 / len(differences))

    def per_seed(matrix_of: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        parts = [share[name] * matrix.mean(axis=-1) for name, matrix in matrix_of.items()]
        return np.sum(parts, axis=0)

    values = per_seed(differences)
    estimate, error = values.mean(), values.std(ddof=1) / n**0.5
    picked = rng.integers(0, n, size=(draws, n))
    resampled = np.zeros((draws, n))
    for name, matrix in differences.items():
        resampled += share[name] * _resampled_means(matrix, picked, rng)
    shift = resampled.mean(axis=1) - estimate
    spread = resampled.std(axis=1, ddof=1) / n**0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = np.where(spread > 0, shift / spread, np.where(shift == 0, 0.0, shift * np.inf))
    # `inverted_cdf` takes a pivot that occurred: interpolating beside an infinite one gives NaN.
    low, high = np.quantile(pivots, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    if error == 0.0:
        return Interval(float(estimate), float(estimate), level)
    return Interval(float(estimate - high * error), float(estimate - low * error), level)


def _resampled_means(
    matrix: NDArray[np.float64], picked: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the means of tasks resampled within the picked seeds, shape of `picked`."""
    tasks = matrix.shape[1]
    flat = picked.ravel()
    means = np.empty(len(flat))
    chunk = max(1, 4_000_000 // tasks)  # bounds the index matrix to 32 MB
    for start in range(0, len(flat), chunk):
        rows = flat[start : start + chunk]
        drawn = rng.integers(0, tasks, size=(len(rows), tasks))
        means[start : start + chunk] = matrix[rows[:, None], drawn].mean(axis=1)
    return means.reshape(picked.shape)
