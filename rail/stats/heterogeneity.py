"""Do benchmarks agree?"""

from collections.abc import Sequence

import numpy as np


def i_squared(estimates: Sequence[float], errors: Sequence[float]) -> float:
    """Return I2 = max(0, (Q - df) / Q): share of the variation between estimates beyond chance.

    NaN for fewer than two estimates, or without standard errors above 0.

    Args:
        estimates: One per benchmark.
        errors: Their standard errors.
    """
    values, spread = np.asarray(estimates, float), np.asarray(errors, float)
    if len(values) < 2 or not (np.isfinite(spread).all() and (spread > 0).all()):
        return float("nan")
    weights = spread**-2
    centre = (weights * values).sum() / weights.sum()
    q = float((weights * (values - centre) ** 2).sum())
    return max(0.0, (q - (len(values) - 1)) / q) if q > 0 else 0.0
