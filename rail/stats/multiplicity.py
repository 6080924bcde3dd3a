"""p-values of a family, adjusted."""

from collections.abc import Sequence

import numpy as np


def holm(p: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p in the order given; controls the chance of any false claim.

    NaN (a claim of the family that could not be tested) counts as 1, so that a family keeps the
    size it was declared with, and stays NaN.
    """
    filled = np.where(np.isnan(p), 1.0, np.asarray(p, dtype=np.float64))
    order = np.argsort(filled, kind="stable")
    factors = np.arange(len(filled), 0, -1)
    stepped = np.minimum(np.maximum.accumulate(filled[order] * factors), 1.0)
    adjusted = np.empty(len(filled))
    adjusted[order] = stepped
    return [
        float(a) if np.isfinite(raw) else float("nan") for a, raw in zip(adjusted, p, strict=True)
    ]


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Return Benjamini-Hochberg's adjusted p in the order given; controls the false discovery rate.

    NaN counts as 1 and stays NaN, as in `holm`.
    """
    from scipy import stats

    if not len(p):
        return []
    filled = np.where(np.isnan(p), 1.0, np.asarray(p, dtype=np.float64))
    adjusted = stats.false_discovery_control(filled, method="bh")
    return [
        float(a) if np.isfinite(raw) else float("nan") for a, raw in zip(adjusted, p, strict=True)
    ]
