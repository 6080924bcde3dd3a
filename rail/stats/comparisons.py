"""The kinds of comparison that a claim may name.

Each takes a claim's arms on one benchmark and returns one value per seed. What is common to all
kinds (interval, tests, verdict) is in `rail.stats.summary` and `rail.claims`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rail.errors import DataError
from rail.stats.aggregate import final, initial
from rail.stats.controller import GATE, Draws, measures_by_seed
from rail.stats.evidence import Evidence, NotRun
from rail.stats.frontier import frontier_value
from rail.stats.replay import HALF_LIFE
from rail.stats.verdict import is_void

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Tasks = dict[str, Floats]
"""Rewards (or differences) of the tasks of each kind, tasks in a fixed order."""

ENDPOINTS = {
    "success": ("sampled", "reward"),
    "success_greedy": ("greedy", "reward"),
    "success_upstream": ("sampled", "reward_upstream"),
}
"""Endpoint -> mode and column of the evaluation table."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of one benchmark.

    Attributes:
        arms: Methods, the one that the claim is about first.
        endpoint: One of the kind's endpoints.
        yoked: The arms must have spent the same; pairs that did not are void.
        draws: Controller kinds: which interventions count.
    """

    benchmark: str
    arms: tuple[str, ...]
    endpoint: str
    yoked: bool = False
    draws: Draws = "explore"


@dataclass(slots=True)
class Sample:
    """One value per seed, on one benchmark.

    Attributes:
        values: Seed -> value; positive favours the claim.
        tasks: Seed -> task differences by kind, where the value is a mean over tasks.
        void: Seeds whose pair spent unequal totals; not in `values`.
        budget_ratio: Mean over seeds of billed rollouts, first arm over second.
        notes: What must be said with the value.
    """

    values: dict[int, float]
    tasks: dict[int, Tasks] = field(default_factory=dict)
    void: list[int] = field(default_factory=list)
    budget_ratio: float = float("nan")
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of comparison.

    Attributes:
        compare: Computes the sample.
        arms: Fewest and most arms.
        endpoints: What it can be asked about.
        statistic: The value in words.
        rule: Which verdict rule applies.
    """

    compare: Callable[[Question, Evidence], Sample]
    arms: tuple[int, int]
    endpoints: tuple[str, ...]
    statistic: str
    rule: Literal["superiority", "non_inferiority"] = "superiority"


def difference(question: Question, evidence: Evidence) -> Sample:
    """Return first arm minus second, paired by seed and task.

    Raises:
        NotRun: If an arm is missing or no seed has both.
        DataError: If the arms were not evaluated on the same tasks.
    """
    first, second = question.arms
    column = ENDPOINTS[question.endpoint][1]
    seeds, notes = _common_seeds(question, evidence, ["evaluation", "steps"])
    sample = Sample({}, notes=notes)
    ratios = []
    for seed in seeds:
        billed = [_billed(question.benchmark, arm, seed, evidence) for arm in question.arms]
        if question.yoked and is_void(billed[1], billed[0]):
            sample.void.append(seed)
            continue
        a, b = (_final_rows(question, arm, seed, evidence) for arm in (first, second))
        what = f"{question.benchmark} seed {seed}: {first} and {second}"
        sample.tasks[seed] = _minus(a, b, column, what)
        sample.values[seed] = _mean(sample.tasks[seed])
        ratios.append(billed[0] / billed[1])
    if ratios:
        sample.budget_ratio = float(np.mean(ratios))
    return sample


def frontier(question: Question, evidence: Evidence) -> Sample:
    """Return first arm minus the success that the other arms reach with as many billed rollouts.

    The others are interpolated linearly, seed by seed; beyond their ends the nearest end counts.

    Raises:
        NotRun: If an arm is missing or no seed has all.
    """
    column = ENDPOINTS[question.endpoint][1]
    seeds, notes = _common_seeds(question, evidence, ["evaluation", "steps"])
    sample = Sample({}, notes=notes)
    outside = []
    for seed in seeds:
        finals = [_final_rows(question, arm, seed, evidence) for arm in question.arms]
        success = [_mean(_by_kind(rows, column)) for rows in finals]
        billed = [_billed(question.benchmark, arm, seed, evidence) for arm in question.arms]
        at, inside = frontier_value(billed[1:], success[1:], billed[0])
        sample.values[seed] = success[0] - at
        if not inside:
            outside.append(seed)
    if outside:
        named = ", ".join(map(str, outside))
        sample.notes.append(f"budget beyond the frontier's ends, nearest end taken: seeds {named}")
    return sample


def rise(question: Question, evidence: Evidence) -> Sample:
    """Return success after the last step minus success before the first, same tasks.

    Read from the evaluation table where it has rows of step 0, else from validation.

    Raises:
        NotRun: If the arm or its rows of step 0 are missing.
    """
    arm = question.arms[0]
    mode, column = ENDPOINTS[question.endpoint]
    sample = Sample({})
    for seed in evidence.seeds(question.benchmark, arm, ["evaluation", "validation"]):
        what = f"{question.benchmark} seed {seed}: {arm} before and after"
        rows = evidence.table(question.benchmark, arm, seed, "evaluation")
        if 0 not in set(rows["step"]):
            rows = evidence.table(question.benchmark, arm, seed, "validation")
        if mode not in set(rows.loc[rows["step"] == 0, "mode"]):
            raise NotRun(f"{what}: nothing was evaluated before the first step in mode {mode}")
        sample.tasks[seed] = _minus(final(rows, mode), initial(rows, mode), column, what)
        sample.values[seed] = _mean(sample.tasks[seed])
    return sample


CONTROLLER_ENDPOINTS = (
    "agreement_over_majority",
    "mae_share_below_base_rate",
    "mae_share_below_pool_mean",
    "partial_r",
)


def controller(question: Question, evidence: Evidence) -> Sample:
    """Return a measure of the controller's predictions, per seed (protocol section 6).

    `agreement_over_majority`: agreement minus that of the better constant answer.
    `mae_share_below_<predictor>`: 1 - MAE / MAE of the predictor. `partial_r`: correlation of
    prediction and gain, the pool-mean prediction held fixed.

    Raises:
        NotRun: If the arm is missing, or no seed has enough draws to define the measure.
    """
    arm = question.arms[0]
    sample = Sample({})
    counts = []
    for seed in evidence.seeds(question.benchmark, arm, ["interventions"]):
        trace = evidence.table(question.benchmark, arm, seed, "interventions")
        gate, half_life = _served(evidence.run(question.benchmark, arm, seed).info)
        row = measures_by_seed(trace, question.draws, gate, half_life).to_dict("records")
        value = _controller_value(question.endpoint, row[0]) if row else float("nan")
        if np.isfinite(value):
            sample.values[seed] = value
            counts.append(row[0]["n"])
        else:
            sample.notes.append(f"seed {seed}: undefined on its {question.draws} draws")
    if not sample.values:
        raise NotRun(f"no {question.draws} draws of {question.benchmark}/{arm} define the measure")
    sample.notes.insert(0, f"{question.draws} draws per seed: {min(counts)} to {max(counts)}")
    return sample


_SUCCESS = tuple(ENDPOINTS)

KINDS: dict[str, Kind] = {
    "difference": Kind(difference, (2, 2), _SUCCESS, "paired difference"),
    "non_inferiority": Kind(
        difference, (2, 2), _SUCCESS, "paired difference", rule="non_inferiority"
    ),
    "frontier": Kind(frontier, (3, 9), _SUCCESS, "difference from the interpolated frontier"),
    "rise": Kind(rise, (1, 1), _SUCCESS, "last step minus step 0"),
    "controller": Kind(controller, (1, 1), CONTROLLER_ENDPOINTS, "measure per seed"),
}
"""A claim's `kind`."""


def _common_seeds(
    question: Question, evidence: Evidence, tables: Sequence[str]
) -> tuple[list[int], list[str]]:
    sets = [set(evidence.seeds(question.benchmark, arm, tables)) for arm in question.arms]
    common = set.intersection(*sets)
    dropped = sorted(set.union(*sets) - common)
    if not common:
        raise NotRun(f"{' and '.join(question.arms)} have no seed in common")
    notes = [f"seeds without all arms left out: {', '.join(map(str, dropped))}"] if dropped else []
    return sorted(common), notes


def _billed(benchmark: str, arm: str, seed: int, evidence: Evidence) -> float:
    return float(evidence.table(benchmark, arm, seed, "steps")["cum_billed"].iloc[-1])


def _final_rows(question: Question, arm: str, seed: int, evidence: Evidence) -> "pd.DataFrame":
    rows = evidence.table(question.benchmark, arm, seed, "evaluation")
    return final(rows, ENDPOINTS[question.endpoint][0])


def _by_kind(rows: "pd.DataFrame", column: str) -> Tasks:
    tasks: dict[str, list[float]] = {}
    for kind, value in zip(rows["kind"], rows[column], strict=True):
        tasks.setdefault(str(kind), []).append(float(value))
    return {kind: np.array(tasks[kind]) for kind in sorted(tasks)}


def _minus(a: "pd.DataFrame", b: "pd.DataFrame", column: str, what: str) -> Tasks:
    """Return the differences task by task."""
    first, second = (rows.sort_values("task_id", ignore_index=True) for rows in (a, b))
    if first["task_id"].tolist() != second["task_id"].tolist():
        differ = set(first["task_id"]) ^ set(second["task_id"])
        raise DataError(
            f"{what} were judged on different tasks ({len(differ)} in one alone): evaluate again"
        )
    return _by_kind(first.assign(**{column: first[column] - second[column]}), column)


def _mean(tasks: Tasks) -> float:
    return float(np.mean([values.mean() for values in tasks.values()]))


def _served(info: dict[str, Any]) -> tuple[float, float]:
    """Return the gate and half-life that the run was served with."""
    settings = info.get("run", {}).get("settings", {}).get("controller", {})
    return float(settings.get("gate", GATE)), float(settings.get("half_life", HALF_LIFE))


def _controller_value(endpoint: str, row: dict[Any, Any]) -> float:
    if endpoint == "agreement_over_majority":
        return float(row["agreement"] - row["majority"])
    if endpoint == "partial_r":
        return float(row.get("partial_r", np.nan))
    reference = row[f"mae_{endpoint.removeprefix('mae_share_below_')}"]
    return float(1 - row["mae"] / reference) if reference > 0 else float("nan")
