"""Recoverability: how far an intervention moves a group's rewards towards balance.

Source: RAIL (arXiv 2608.05080), Appendix C.1 and section 3.
"""

from collections.abc import Sequence
from math import comb


def imbalance(rewards: Sequence[float]) -> float:
    """Return d(Y) = |mean(Y) - 0.5|: 0 when balanced, 0.5 when one-sided.

    Raises:
        ValueError: If `rewards` is empty or leaves [0, 1].
    """
    if not rewards:
        raise ValueError("imbalance needs at least one reward")
    if not all(0.0 <= reward <= 1.0 for reward in rewards):
        raise ValueError(f"rewards must lie in [0, 1], got {list(rewards)}")
    return abs(sum(rewards) / len(rewards) - 0.5)


def gain(before: Sequence[float], drawn: Sequence[float], cost: float) -> float:
    """Return y = [d(Y_before) - d(Y_after)] - cost, with Y_after = Y_before plus the drawn rewards.

    `cost` is lambda * C(b), in units of d. The label is symmetric: lowering the success of a solved
    group earns as much as raising that of an unsolved one.
    """
    return imbalance(before) - imbalance([*before, *drawn]) - cost


def expected_gain(successes: int, size: int, branches: int, value: float, cost: float) -> float:
    """Return E[y] given k = `successes` of n = `size`, for m branches that succeed with `value`.

    Exact enumeration: sum over s of Binom(s; m, value) * (|k/n - 1/2| - |(k + s)/(n + m) - 1/2|),
    less the cost.
    """
    before = abs(successes / size - 0.5)
    after = sum(
        comb(branches, s)
        * value**s
        * (1.0 - value) ** (branches - s)
        * abs((successes + s) / (size + branches) - 0.5)
        for s in range(branches + 1)
    )
    return before - after - cost
