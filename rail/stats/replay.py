"""What simpler predictors would have said, replayed on a recorded trace.

Prequential, as the controller itself: a step's rows are predicted from earlier steps alone, then
learned with the same recency weights and the same buffer. The predictor is a ridge regression on
few columns (`our choice`): it needs no torch and its columns cannot overfit 512 traces. For a
comparison at equal capacity hand `replay` another regressor.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from rail.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

HALF_LIFE = 8.0
"""Policy steps (protocol section 3)."""
BUFFER = 512
"""Traces that are remembered; the controller's own buffer."""
TASK_EMA = 17
"""Position of the task's running success in the recorded features."""


class Regressor(Protocol):
    """Anything that is fitted anew on weighted rows and predicts."""

    def fit(self, x: Floats, y: Floats, weight: Floats) -> None:
        """Fit on x (n, columns), y (n,), weight (n,)."""
        ...

    def predict(self, x: Floats) -> Floats:
        """Return predictions for x (n, columns), shape (n,)."""
        ...


class Ridge:
    """Weighted linear regression with an unpenalised intercept and a small penalty.

    Columns are standardised, then slopes minimise sum w (y - b - x s)^2 + penalty |s|^2; the
    penalty of 1 (`our choice`) weighs as much as one recent trace.
    """

    def __init__(self, penalty: float = 1.0) -> None:
        self._penalty = penalty

    def fit(self, x: Floats, y: Floats, weight: Floats) -> None:
        """Fit on x (n, columns), y (n,), weight (n,)."""
        share = weight / weight.sum()
        self._centre = share @ x
        spread = np.sqrt(share @ (x - self._centre) ** 2)
        self._scale = np.where(spread > 1e-9, spread, 1.0)
        self._mean = float(share @ y)
        z = (x - self._centre) / self._scale
        gram = (z * weight[:, None]).T @ z + self._penalty * np.eye(x.shape[1])
        self._slopes = np.linalg.solve(gram, z.T @ (weight * (y - self._mean)))

    def predict(self, x: Floats) -> Floats:
        """Return predictions, shape (n,)."""
        return self._mean + ((x - self._centre) / self._scale) @ self._slopes


def _with_budget(trace: "pd.DataFrame", *columns: Floats) -> Floats:
    """Return the columns, m, and their products with m, shape (n, 2 * columns + 1)."""
    budget = trace["branches"].to_numpy(float)
    base = np.stack(columns, axis=1)
    return np.concatenate([base, budget[:, None], base * budget[:, None]], axis=1)


def _pool_mean(trace: "pd.DataFrame") -> Floats:
    mean = trace["k_before"].to_numpy(float) / trace["n_before"].to_numpy(float)
    distance = np.abs(mean - 0.5)
    return _with_budget(trace, mean, distance, distance**2)


def _entropy(trace: "pd.DataFrame") -> Floats:
    return _with_budget(trace, trace["anchor_entropy"].to_numpy(float))


def _task_ema(trace: "pd.DataFrame") -> Floats:
    states = np.stack([np.asarray(state, float) for state in trace["features"]])
    return _with_budget(trace, states[:, TASK_EMA], np.abs(states[:, TASK_EMA] - 0.5))


def _base_rate(trace: "pd.DataFrame") -> Floats:
    return np.empty((len(trace), 0))


COMPARATORS: dict[str, Callable[["pd.DataFrame"], Floats]] = {
    "base_rate": _base_rate,  # the recency-weighted mean gain
    "pool_mean": _pool_mean,  # mean of Y_before and m
    "entropy": _entropy,  # the anchor's entropy and m
    "task_ema": _task_ema,  # the task's running success and m
}
"""Columns that a predictor may read, by name; shape (rows, columns)."""


def replay(
    trace: "pd.DataFrame",
    comparator: str,
    half_life: float = HALF_LIFE,
    regressor: Callable[[], Regressor] = Ridge,
    buffer: int = BUFFER,
) -> Floats:
    """Return the predictions that a simpler predictor would have made, shape (rows,).

    0 until there is a label, as the controller before its first refit; NaN where m or a column is
    undefined (skips).

    Args:
        trace: Rows of one run, in the order they were written.
        comparator: Name in `COMPARATORS`.
        half_life: A label's weight halves in as many policy steps.
        regressor: Makes a predictor; fitted anew for every step.
        buffer: Number of newest labels that are used.

    Raises:
        DataError: If the comparator is unknown or steps go backwards.
    """
    if comparator not in COMPARATORS:
        raise DataError(f"no comparator {comparator!r}; known: {', '.join(COMPARATORS)}")
    step = trace["step"].to_numpy(np.int64)
    if (np.diff(step) < 0).any():
        raise DataError("the trace's steps go backwards: replay one run at a time, unsorted")
    predicted = np.zeros(len(step))
    if not len(step):
        return predicted
    gain = trace["gain"].to_numpy(float)
    usable = trace["executed"].to_numpy(bool)
    columns = COMPARATORS[comparator](trace)
    labelled = np.flatnonzero(usable & np.isfinite(gain))
    for now in np.unique(step):
        rows = np.flatnonzero((step == now) & usable)
        known = labelled[step[labelled] < now][-buffer:]
        if len(rows) and len(known):
            model = regressor()
            weight = np.exp2((step[known] - now) / half_life)
            model.fit(columns[known], gain[known], weight)
            predicted[rows] = model.predict(columns[rows])
    return np.where(usable, predicted, np.nan)
