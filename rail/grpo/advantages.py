"""Group-relative advantages: how much better a rollout did than its task's group.

Source: GRPO (arXiv 2402.03300); without the division by the standard deviation it is the baseline
of Dr.GRPO (arXiv 2503.20783).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rail.config import UpdateConfig
from rail.errors import DataError

CONSTANT = 1e-6
"""Groups whose rewards differ by less carry no signal; `our choice`, far under any real
difference."""


def is_mixed(rewards: ArrayLike) -> bool:
    """Return whether a group's rewards, shape (n,), differ at all."""
    values = np.asarray(rewards, dtype=np.float64)
    return values.size > 1 and float(values.max() - values.min()) >= CONSTANT


def group_advantages(
    rewards: ArrayLike, config: UpdateConfig, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the advantages of one group.

    A_i = (R_i - m) / (s + eps) with the group's mean m and its standard deviation s (Bessel's
    correction); `advantage_std = false` leaves out the division. A group of one and a group of
    equal rewards give exactly 0: there a tiny s would only amplify rounding.

    Args:
        rewards: Terminal rewards, shape (n,).
        config: Reads `advantage_std` and `advantage_eps`.
        weights: Mass of each rollout, shape (n,), any positive scale; None: equal. With w
            normalised to sum 1, m = sum w R and s^2 = sum w (R - m)^2 / (1 - sum w^2), which is
            Bessel's correction at equal weights.

    Returns:
        Advantages, shape (n,).

    Raises:
        DataError: A reward is not finite, or the weights do not fit.
    """
    values = np.asarray(rewards, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise DataError(f"group rewards: got {values.tolist()}, expected a row of finite numbers")
    mass = np.ones_like(values) if weights is None else np.asarray(weights, dtype=np.float64)
    if mass.shape != values.shape or not (np.isfinite(mass).all() and (mass > 0).all()):
        raise DataError(
            f"group weights: got {mass.tolist()} for {values.size} rewards, "
            "expected one positive number each"
        )
    if not is_mixed(values):
        return np.zeros_like(values)
    mass = mass / mass.sum()
    centred = values - mass @ values
    if not config.advantage_std:
        return centred
    deviation = np.sqrt(mass @ centred**2 / (1.0 - mass @ mass))
    return centred / (deviation + config.advantage_eps)
