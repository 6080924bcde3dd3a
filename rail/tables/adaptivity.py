"""Is the controller right, and does it stay right while the policy moves? (Figure 3)."""

from typing import TYPE_CHECKING, Any

from rail.stats.controller import Draws, chosen, measures_by_seed, measures_by_window
from rail.stats.intervals import t_interval
from rail.stats.replay import replay

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
DRAWS: tuple[Draws, ...] = ("explore", "executed")
"""Exploration draws show what the controller would miss; executed ones what it chose."""
ROLLING = ("agreement", "majority", "r", "mae")
CONTROLLER = "controller"
CONSTANT = "constant"
"""The better constant answer, act or skip: the base rate of agreement."""
COMPARATOR = "pool_mean"
"""The predictor that sees the mean of Y_before and m alone (protocol section 6)."""


COLUMNS = (
    "draws", "predictor", "measure", "window", "step", "mean", "low", "high", "seeds", "n",
)  # fmt: skip


def adaptivity_table(
    traces: "pd.DataFrame", window: int, gate: float, half_life: float
) -> "pd.DataFrame":
    """Return the measures of the controller and of its comparators, mean and interval over seeds.

    Args:
        traces: Exported traces of one method on one benchmark.
        window: Policy steps that a rolling value looks back on, its own included.
        gate: Utility gate, in units of the gain.
        half_life: Recency weighting of the comparators, in policy steps.

    Returns:
        draws (explore | executed | shadow), predictor (controller, a comparator of
        `rail.stats.replay`, or constant), measure, window, step (the window's last), mean, low,
        high, seeds, n (draws of all these seeds). Rows of the whole run have window 0 and step -1.
        A seed that leaves a measure undefined is left out of it.
    """
    import pandas as pd

    rows = _whole(traces, gate, half_life) + _rolling(traces, window, gate, half_life)
    table = pd.DataFrame(rows, columns=pd.Index(COLUMNS))
    return table.dropna(subset=["mean"], ignore_index=True)


def _whole(traces: "pd.DataFrame", gate: float, half_life: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    kinds: tuple[Draws, ...] = (*DRAWS, "shadow")
    for draws in kinds:
        by_seed = measures_by_seed(traces, draws, gate, half_life)
        for name in [name for name in by_seed if name not in ("seed", "n")]:
            measure, predictor = _named(str(name))
            keys = {"draws": draws, "predictor": predictor, "measure": measure}
            rows.append(keys | {"window": 0, "step": -1} | _summary(by_seed, name))
    return rows


def _named(column: str) -> tuple[str, str]:
    """Return measure and predictor of a column of measures."""
    if column == "majority":
        return "agreement", CONSTANT
    measure, _, predictor = column.partition("_")
    if measure in ("mae", "r") and predictor:
        return measure, predictor
    return column, CONTROLLER


def _rolling(
    traces: "pd.DataFrame", window: int, gate: float, half_life: float
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for predictor, trace in _predictors(traces, half_life).items():
        for draws in DRAWS:
            windows = measures_by_window(trace, draws, window, gate)
            for step in sorted(set(windows["step"])):
                at = windows.loc[windows["step"] == step]
                for name in ROLLING:
                    measure, who = _named(name)
                    if who == CONSTANT and predictor != CONTROLLER:
                        continue  # the same for every predictor
                    who = predictor if who == CONTROLLER else who
                    keys = {"draws": draws, "predictor": who, "measure": measure}
                    rows.append(keys | {"window": window, "step": step} | _summary(at, name))
    return rows


def labelled(traces: "pd.DataFrame", draws: Draws) -> "pd.DataFrame":
    """Return the rows that the measures of these draws are about (prediction and label known)."""
    rows = chosen(traces, draws)
    return rows.loc[rows["predicted"].notna()]


def _predictors(traces: "pd.DataFrame", half_life: float) -> "dict[str, pd.DataFrame]":
    """Return the traces as the controller predicted them, and as the comparator would have."""
    import pandas as pd

    runs = [traces.loc[traces["seed"] == seed] for seed in sorted(set(traces["seed"]))]
    replayed = [run.assign(predicted=replay(run, COMPARATOR, half_life)) for run in runs]
    return {CONTROLLER: traces, COMPARATOR: pd.concat([traces.head(0), *replayed])}


def _summary(by_seed: "pd.DataFrame", measure: str) -> dict[str, float]:
    import numpy as np

    defined = by_seed.loc[by_seed[measure].notna()]
    values = np.asarray(defined[measure], dtype=np.float64)
    interval = t_interval(values, LEVEL)
    return {
        "mean": float(values.mean()) if len(values) else float("nan"),
        "low": interval.low,
        "high": interval.high,
        "seeds": len(values),
        "n": int(np.asarray(defined["n"]).sum()),
    }
