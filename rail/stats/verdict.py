"""What may be said about "A beats B" (protocol section 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rail.stats.intervals import Interval
from rail.stats.paired import Estimate

Word = Literal[
    "supported",
    "contradicted",
    "equivalent",
    "undecided",
    "void",
    "descriptive",
    "not run",
]

BUDGET_RATIO = 0.9
"""Paper view: billed rollouts at most this share of the reference's."""
YOKE_TOLERANCE = 0.01
"""A yoked pair whose cumulative billed totals differ by more is void."""
STRATA = 4
STRATA_NEEDED = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word and what must be said with it."""

    word: Word
    qualifiers: tuple[str, ...] = ()


def superiority(estimate: float, ci95: Interval, ci90: Interval, delta: float) -> Verdict:
    """Return the verdict on "A beats B by something that matters", rules in the protocol's order.

    `supported` if the 95 % lower bound is above 0 and the estimate at least `delta`;
    `contradicted` if the 95 % upper bound is below 0; `equivalent` if the 90 % interval lies
    within +-delta, "detectable, below delta" if it excludes 0; else `undecided`. NaN limits (one
    seed) are undecided.
    """
    if ci95.low > 0 and estimate >= delta:
        return Verdict("supported")
    if ci95.high < 0:
        return Verdict("contradicted")
    if -delta <= ci90.low and ci90.high <= delta:
        detectable = ci90.low > 0 or ci90.high < 0
        return Verdict("equivalent", ("detectable, below delta",) if detectable else ())
    return Verdict("undecided")


def non_inferiority(ci95: Interval, delta: float, budget_ratio: float) -> Verdict:
    """Return the verdict on "A is not worse than B and cheaper" (paper view, both needed).

    `supported` if the 95 % lower bound is above -delta and the budget at most `BUDGET_RATIO` of
    B's; `contradicted` if the 95 % upper bound is below -delta or the budget is larger; else
    `undecided`. The budget is counted, not estimated: it has no interval.
    """
    said = f"billed rollouts {budget_ratio:.3f} of the reference"
    if budget_ratio > BUDGET_RATIO:
        return Verdict("contradicted", (f"{said}, above {BUDGET_RATIO}",))
    if ci95.low > -delta:
        return Verdict("supported", (said,))
    if ci95.high < -delta:
        return Verdict("contradicted", (said,))
    return Verdict("undecided", (said,))


def initial_policy(estimate: Estimate, strata: Mapping[int, Sequence[float]]) -> tuple[str, ...]:
    """Return "depends on the initial policy" when it does.

    It does when the mean's sign agrees with the estimate's in fewer than 3 of 4 warm-start strata.
    With fewer strata there is nothing to count: the qualifier says how many were sampled.

    Args:
        estimate: Over all seeds.
        strata: Per-seed values by warm start.
    """
    if len(strata) < STRATA:
        return (f"{len(strata)} of {STRATA} initial policies sampled",)
    means = [sum(values) / len(values) for values in strata.values()]
    agree = sum(mean * estimate.mean > 0 for mean in means)
    return ("depends on the initial policy",) if agree < STRATA_NEEDED else ()


def is_void(billed: float, reference: float) -> bool:
    """Return whether a yoked pair's cumulative billed totals differ by more than 1 %."""
    return abs(billed - reference) > YOKE_TOLERANCE * reference
