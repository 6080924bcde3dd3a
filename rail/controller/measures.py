"""How well predicted gains match realised ones, on predictions made before learning.

Protocol section 6: act = f > threshold, worth = y > threshold. Agreement needs its base rate beside
it: "no gain" alone is right most of the time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of a window of (prediction, gain) pairs; NaN where undefined.

    Attributes:
        count: Pairs.
        correlation: Pearson r.
        error: Mean absolute error.
        constant_error: The same for the window's mean gain as the only prediction.
        agreement: Share of pairs with act = worth.
        base_rate: Agreement of the better of "always act" and "never act".
        worth: Share of pairs with gain above the threshold.
    """

    count: int
    correlation: float
    error: float
    constant_error: float
    agreement: float
    base_rate: float
    worth: float


def measure(
    predicted: ArrayLike,
    gained: ArrayLike,
    threshold: float,
    weights: NDArray[np.float64] | None = None,
) -> Measures:
    """Measure pairs, both (n,); `weights` (n,) weigh the constant's mean gain only."""
    f = np.asarray(predicted, dtype=np.float64)
    y = np.asarray(gained, dtype=np.float64)
    if not len(y):
        return Measures(0, *[float("nan")] * 6)
    worth = float((y > threshold).mean())
    return Measures(
        count=len(y),
        correlation=correlation(f, y),
        error=float(np.abs(f - y).mean()),
        constant_error=float(np.abs(np.average(y, weights=weights) - y).mean()),
        agreement=float(((f > threshold) == (y > threshold)).mean()),
        base_rate=max(worth, 1 - worth),
        worth=worth,
    )


def correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return Pearson's r; NaN if either side is constant."""
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0.0 else float("nan")
