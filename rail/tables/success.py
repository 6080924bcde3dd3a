"""Table 1 and the learning curves: success over seeds, with intervals."""

from typing import TYPE_CHECKING, Any

from rail.errors import DataError
from rail.stats import aggregate
from rail.stats.intervals import t_interval

if TYPE_CHECKING:
    import pandas as pd

NAN = float("nan")
LEVEL = 0.95
"""Nominal coverage of every interval here (paired t over seeds, protocol section 5)."""
GRID = 8
"""Learning curves are read at this many equal parts of the largest budget (our choice)."""


def success_by_run(evaluation: "pd.DataFrame") -> "pd.DataFrame":
    """Return held-out success at the last step, every kind weighing the same.

    Args:
        evaluation: Evaluations of many runs, as `rail.traces.frames.load` returns them.

    Returns:
        One row per run: benchmark, method, seed, sampled (T = 1, the primary endpoint), greedy,
        upstream (sampled, judged by the benchmark's published rule).
    """
    sampled = aggregate.final(evaluation)
    return (
        aggregate.success(sampled)
        .rename(columns={"success": "sampled"})
        .merge(_success(aggregate.final(evaluation, "greedy"), "greedy"), on=aggregate.RUN)
        .merge(_success(sampled, "upstream", "reward_upstream"), on=aggregate.RUN)
    )


def success_table(
    by_run: "pd.DataFrame", steps: "pd.DataFrame", reference: str = "rail"
) -> "pd.DataFrame":
    """Return Table 1: one row per benchmark and method.

    Args:
        by_run: From `success_by_run`.
        steps: Step tables of the same runs.
        reference: Method that every other is compared with.

    Returns:
        benchmark, method, seeds (number), the means of sampled, greedy and upstream success with
        intervals, `minus_reference`: reference minus this method, paired by seed, with interval
        (NaN for the reference itself and where no seed is shared), rollouts per task as billed,
        live and retained, per_seed: each seed's sampled success in words.
    """
    import pandas as pd

    runs = by_run.merge(aggregate.rollouts(steps), on=aggregate.RUN)
    rows: list[dict[str, Any]] = []
    for benchmark, method in sorted(set(zip(runs["benchmark"], runs["method"], strict=True))):
        own = runs.loc[(runs["benchmark"] == benchmark) & (runs["method"] == method)]
        own = own.sort_values(by="seed")
        row: dict[str, Any] = {"benchmark": benchmark, "method": method, "seeds": len(own)}
        for name in ("sampled", "greedy", "upstream"):
            row |= _mean(name, own[name])
        other = runs[(runs["benchmark"] == benchmark) & (runs["method"] == reference)]
        pairs = other.merge(own, on="seed", suffixes=("", "_own"))
        differences = pairs["sampled"] - pairs["sampled_own"]
        row |= _mean("minus_reference", differences[:0] if method == reference else differences)
        for name in ("billed", "live", "retained"):
            row[f"{name}_per_task"] = own[f"{name}_per_task"].mean()
        said = zip(own["seed"], own["sampled"], strict=True)
        row["per_seed"] = "; ".join(f"{seed}: {value:.4f}" for seed, value in said)
        rows.append(row)
    return pd.DataFrame(rows)


def curve_table(validation: "pd.DataFrame", steps: "pd.DataFrame") -> "pd.DataFrame":
    """Return validation success at equal budgets, mean and interval over seeds.

    Every run's curve is interpolated (linear between evaluated steps) at common budgets: `GRID`
    equal parts of the largest budget of any run of the benchmark, as far as all runs of the method
    reach, and at the end of the method's shortest run.

    Returns:
        benchmark, unit (rollouts | tokens), method, budget, success, success_low, success_high,
        seeds.
    """
    import numpy as np
    import pandas as pd

    runs = _budgets(aggregate.curve(validation), steps)
    rows: list[dict[str, Any]] = []
    for benchmark, of_benchmark in runs.groupby("benchmark"):
        for unit in ("rollouts", "tokens"):
            grid = np.linspace(0, of_benchmark[unit].max(), GRID + 1)
            for method, own in of_benchmark.groupby("method"):
                curves = [run.sort_values(unit) for _, run in own.groupby("seed")]
                end = min(run[unit].max() for run in curves)
                start = max(run[unit].min() for run in curves)
                at = np.unique([*grid[(grid >= start) & (grid < end)], end])
                values = np.array([np.interp(at, run[unit], run["success"]) for run in curves])
                rows += [
                    {"benchmark": benchmark, "unit": unit, "method": method, "budget": budget}
                    | _mean("success", column)
                    | {"seeds": len(curves)}
                    for budget, column in zip(at, values.T, strict=True)
                ]
    return pd.DataFrame(rows)


def _budgets(curve: "pd.DataFrame", steps: "pd.DataFrame") -> "pd.DataFrame":
    """Return `curve` with what had been spent when each of its steps was evaluated."""
    spent = steps.rename(columns={"cum_billed": "rollouts", "cum_tokens": "tokens"})
    spent = spent[[*aggregate.RUN, "step", "rollouts", "tokens"]].copy()
    # Step s of the curve has s steps behind it; row s - 1 of the step table is the last of them.
    spent["step"] += 1
    joined = curve.merge(spent, on=[*aggregate.RUN, "step"], how="left")
    lost = joined[joined["rollouts"].isna() & (joined["step"] > 0)]
    if len(lost):
        run = "/".join(str(lost.iloc[0][name]) for name in aggregate.RUN)
        raise DataError(f"{run}: validated after step {lost.iloc[0]['step']}, which has no row")
    return joined.fillna({"rollouts": 0, "tokens": 0})


def _success(rows: "pd.DataFrame", name: str, column: str = "reward") -> "pd.DataFrame":
    return aggregate.success(rows, column).rename(columns={"success": name})


def _mean(name: str, values: Any) -> dict[str, float]:
    import numpy as np

    array = np.asarray(values, dtype=np.float64)
    interval = t_interval(array, LEVEL)
    mean = float(array.mean()) if len(array) else NAN
    return {name: mean, f"{name}_low": interval.low, f"{name}_high": interval.high}
