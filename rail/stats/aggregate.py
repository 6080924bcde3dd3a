"""From tables of many runs to one number per run.

All functions take frames as `rail.traces.frames.load` returns them: columns benchmark, method, seed
in front.
"""

from typing import TYPE_CHECKING

from rail.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

RUN = ["benchmark", "method", "seed"]


def final(evaluation: "pd.DataFrame", mode: str = "sampled") -> "pd.DataFrame":
    """Return the rows of each run's last evaluated step in one mode.

    Raises:
        DataError: If a run has no row in this mode.
    """
    rows = evaluation.loc[evaluation["mode"] == mode]
    _needs_all(evaluation, rows, f"mode {mode!r}")
    return rows.loc[rows["step"] == rows.groupby(RUN)["step"].transform("max")]


def initial(evaluation: "pd.DataFrame", mode: str = "sampled") -> "pd.DataFrame":
    """Return the rows evaluated before the first training step (step 0) in one mode.

    Raises:
        DataError: If a run has none.
    """
    rows = evaluation.loc[(evaluation["mode"] == mode) & (evaluation["step"] == 0)]
    _needs_all(evaluation, rows, f"mode {mode!r} at step 0")
    return rows


def success(rows: "pd.DataFrame", column: str = "reward") -> "pd.DataFrame":
    """Return success per run: mean over kinds of the mean over tasks, every kind weighs the same.

    Source: protocol section 5. Returns columns benchmark, method, seed, success.
    """
    kinds = success_by_kind(rows, column)
    return kinds.groupby(RUN, as_index=False).agg(success=("success", "mean"))


def success_by_kind(rows: "pd.DataFrame", column: str = "reward") -> "pd.DataFrame":
    """Return columns benchmark, method, seed, kind, success."""
    return rows.groupby([*RUN, "kind"], as_index=False).agg(success=(column, "mean"))


def curve(validation: "pd.DataFrame", mode: str = "sampled") -> "pd.DataFrame":
    """Return success per run and evaluated step: columns benchmark, method, seed, step, success."""
    rows = validation.loc[validation["mode"] == mode]
    _needs_all(validation, rows, f"mode {mode!r}")
    keys = [*RUN, "step"]
    kinds = rows.groupby([*keys, "kind"], as_index=False).agg(success=("reward", "mean"))
    return kinds.groupby(keys, as_index=False).agg(success=("success", "mean"))


def rollouts(steps: "pd.DataFrame") -> "pd.DataFrame":
    """Return rollouts per run and per task, by what they were used for.

    Columns: benchmark, method, seed; billed, live, retained: totals of the run; the same with
    suffix `_per_task`: divided by the number of task groups.
    """
    used = ("billed", "live", "retained")
    totals = steps.groupby(RUN, as_index=False).agg(
        **{name: (name, "sum") for name in (*used, "groups")}
    )
    per_task = {f"{name}_per_task": totals[name] / totals["groups"] for name in used}
    return totals.assign(**per_task).drop(columns="groups")


def _needs_all(everything: "pd.DataFrame", rows: "pd.DataFrame", what: str) -> None:
    runs = set(zip(*(everything[name] for name in RUN), strict=True))
    there = set(zip(*(rows[name] for name in RUN), strict=True))
    if runs - there or not runs:
        missing = sorted(runs - there)
        first = "/".join(map(str, missing[0])) if missing else "any run"
        raise DataError(f"evaluation of {first} has no rows of {what}")
