"""One number per seed, two arms: the paired estimate.

The seed is the unit: tasks, kinds and benchmarks are averaged inside it first (protocol section 5).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rail.stats.intervals import Interval, t_interval

EXACT_UP_TO = 16
"""Pairs up to which the sign-flip test counts every sign pattern (2^16 = 65,536)."""
MONTE_CARLO_DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of per-seed values.

    Attributes:
        mean: Mean over seeds.
        sd: Standard deviation over seeds, n - 1 in the divisor; NaN for one seed.
        n: Number of seeds.
        ci95: Paired t interval, 95 %.
        ci90: Paired t interval, 90 %: the equivalence test at level .05.
        p: Two-sided p of the t test against 0; NaN for one seed.
        p_sign_flip: Two-sided p of the sign-flip test.
    """

    mean: float
    sd: float
    n: int
    ci95: Interval
    ci90: Interval
    p: float
    p_sign_flip: float

    @property
    def error(self) -> float:
        """Return the standard error of the mean."""
        return self.sd / self.n**0.5


def paired(values: Sequence[float] | NDArray[np.float64], rng: np.random.Generator) -> Estimate:
    """Estimate the mean of per-seed differences.

    Args:
        values: One difference per seed, shape (n,), n >= 1.
        rng: Used by the sign-flip test alone, and only above `EXACT_UP_TO` seeds.

    Raises:
        ValueError: If there is no value or one is not finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise ValueError(f"paired values must be finite, shape (n,), n >= 1; got {array!r}")
    return Estimate(
        mean=float(array.mean()),
        sd=float(array.std(ddof=1)) if len(array) > 1 else float("nan"),
        n=len(array),
        ci95=t_interval(array, 0.95),
        ci90=t_interval(array, 0.90),
        p=t_test(array),
        p_sign_flip=sign_flip_test(array, rng),
    )


def t_test(values: NDArray[np.float64], null: float = 0.0, upper: bool = False) -> float:
    """Return the p of mean(values) = null: two-sided, or against a larger mean if `upper`.

    NaN for one value. Without spread the answer is certain: 0, or 1 when the mean does not exceed
    (two-sided: equals) the null.
    """
    from scipy import stats

    if len(values) < 2:
        return float("nan")
    if np.ptp(values) == 0.0:
        beyond = values[0] > null if upper else values[0] != null
        return 0.0 if beyond else 1.0
    t = (values.mean() - null) / (values.std(ddof=1) / len(values) ** 0.5)
    return float(
        stats.t.sf(t, len(values) - 1) if upper else 2 * stats.t.sf(abs(t), len(values) - 1)
    )


def sign_flip_test(values: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Return the two-sided p of the mean under random signs.

    Every pattern is counted up to `EXACT_UP_TO` values, so the smallest p is 2 / 2^n; beyond that
    `MONTE_CARLO_DRAWS` patterns are drawn from `rng`.
    """
    from scipy import stats

    if len(values) < 2:
        return 1.0
    patterns = 2 ** len(values)
    found = stats.permutation_test(
        (values,),
        lambda sample, axis: np.abs(np.mean(sample, axis=axis)),
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=patterns if len(values) <= EXACT_UP_TO else MONTE_CARLO_DRAWS,
        batch=1 << 14,
        rng=rng,
    )
    return float(found.pvalue)
