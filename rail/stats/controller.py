"""Is the controller right? Measures of its recorded predictions (protocol section 6).

Act = f > gate, worth = y > gate, with y net of cost and f predicted before the label was learned.
Executed actions were chosen because f is high, so they cannot show what the controller misses; the
exploration draws can, and the two are never pooled.
"""

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rail.errors import DataError
from rail.stats.replay import COMPARATORS, replay

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Draws = Literal["explore", "executed", "shadow"]

GATE = 0.02
"""Utility gate eta, in units of the gain (paper)."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Measures of one set of draws; NaN where the draws do not define them.

    Attributes:
        n: Draws.
        agreement: Share of act = worth.
        majority: Agreement of the better constant answer on the same draws.
        balanced_accuracy: Mean of the agreement among worth and among not worth.
        auroc: Chance that a draw worth it is predicted above one that is not; ties count half.
        r: Pearson correlation of f and y.
        mae: Mean |f - y|, in units of the gain.
    """

    n: int
    agreement: float
    majority: float
    balanced_accuracy: float
    auroc: float
    r: float
    mae: float


def measures(predicted: Floats, gain: Floats, weight: Floats, gate: float = GATE) -> Measures:
    """Return the weighted measures of predictions against realised gains, all shape (n,).

    Raises:
        DataError: If shapes differ, or a weight is not positive and finite.
    """
    if not predicted.shape == gain.shape == weight.shape or predicted.ndim != 1:
        raise DataError(f"shapes differ: {predicted.shape}, {gain.shape}, {weight.shape}")
    if not (np.isfinite(weight).all() and (weight > 0).all()):
        raise DataError("weights must be positive and finite: a recorded propensity is not")
    nan = float("nan")
    if not len(gain) or not np.isfinite(predicted).all():
        return Measures(len(gain), nan, nan, nan, nan, nan, nan)
    act, worth = predicted > gate, gain > gate
    share = weight / weight.sum()
    base = float(share[worth].sum())
    both = worth.any() and not worth.all()
    right = act == worth
    return Measures(
        n=len(gain),
        agreement=float(share[right].sum()),
        majority=max(base, 1 - base),
        balanced_accuracy=float(
            np.mean([share[right & at].sum() / share[at].sum() for at in (worth, ~worth)])
        )
        if both
        else nan,
        auroc=_auroc(predicted, worth, share) if both else nan,
        r=correlation(predicted, gain, share),
        mae=float((share * np.abs(predicted - gain)).sum()),
    )


def correlation(a: Floats, b: Floats, weight: Floats) -> float:
    """Return the weighted Pearson correlation; NaN without spread."""
    share = weight / weight.sum()
    da, db = a - (share * a).sum(), b - (share * b).sum()
    scale = float(np.sqrt((share * da**2).sum() * (share * db**2).sum()))
    return float((share * da * db).sum() / scale) if scale > 0 else float("nan")


def partial_correlation(a: Floats, b: Floats, given: Floats, weight: Floats) -> float:
    """Return the weighted correlation of `a` and `b`, `given` held fixed; NaN without spread."""
    ab, ag, bg = (correlation(*pair, weight) for pair in ((a, b), (a, given), (b, given)))
    scale = (1 - ag**2) * (1 - bg**2)
    return float((ab - ag * bg) / np.sqrt(scale)) if scale > 0 else float("nan")


def chosen(trace: "pd.DataFrame", draws: Draws) -> "pd.DataFrame":
    """Return the labelled rows of one kind of draw, with their `weight`.

    `explore`: live draws of the exploration coin; weight 1 / P(exploring draws this cell), so that
    every eligible cell counts the same. The recorded propensity is of the choice by either side of
    the coin; where the greedy side would have made the same choice its part 1 - rho is taken off,
    else the controller's favourite cells would all but vanish. `executed`: every live action,
    weight 1. `shadow`: the last label of each sweep, weight 1.

    Raises:
        DataError: If `draws` is unknown, or a propensity is outside (0, 1].
    """
    labelled = trace["executed"] & np.isfinite(trace["gain"])
    match draws:
        case "explore":
            rows = trace.loc[labelled & (trace["draw"] == "explore")]
            weight = 1.0 / _exploring(rows)
        case "executed":
            rows = trace.loc[labelled & (trace["mode"] == "live")]
            weight = np.ones(len(rows))
        case "shadow":
            rows = trace.loc[labelled & (trace["mode"] == "shadow") & trace["last_of_sweep"]]
            weight = np.ones(len(rows))
        case _:
            raise DataError(f"no draws {draws!r}; known: explore, executed, shadow")
    return rows.assign(weight=weight)


def measures_by_seed(
    trace: "pd.DataFrame", draws: Draws, gate: float = GATE, half_life: float = 8.0
) -> "pd.DataFrame":
    """Return one row per seed: `seed`, the fields of `Measures`, and the comparators.

    For each comparator of `rail.stats.replay`: `mae_<name>`; for `pool_mean` also `r_pool_mean` and
    `partial_r`, the correlation of f and y with that prediction held fixed.

    Args:
        trace: Exported traces of one method on one benchmark (`rail.traces.export.load_traces`).
        draws: Which draws.
        gate: Utility gate.
        half_life: Recency weighting of the comparators, policy steps: the controller's own.
    """
    import pandas as pd

    out = []
    for seed in sorted(set(trace["seed"])):
        run = trace.loc[trace["seed"] == seed]
        replayed = run.assign(**{name: replay(run, name, half_life) for name in COMPARATORS})
        rows = chosen(replayed, draws)
        f, y, w = (rows[name].to_numpy(float) for name in ("predicted", "gain", "weight"))
        row: dict[str, float] = {"seed": seed, **asdict(measures(f, y, w, gate))}
        for name in COMPARATORS:
            row[f"mae_{name}"] = measures(rows[name].to_numpy(float), y, w, gate).mae
        if len(rows):
            pool = rows["pool_mean"].to_numpy(float)
            row["r_pool_mean"] = correlation(pool, y, w)
            row["partial_r"] = partial_correlation(f, y, pool, w)
        out.append(row)
    return pd.DataFrame(out)


def measures_by_window(
    trace: "pd.DataFrame", draws: Draws, window: int, gate: float = GATE
) -> "pd.DataFrame":
    """Return the measures over the last `window` policy steps, for each seed and step with draws.

    Columns: seed, step (the window's last step), the fields of `Measures`.
    """
    import pandas as pd

    rows = chosen(trace, draws)
    out = []
    for seed in sorted(set(rows["seed"])):
        run = rows.loc[rows["seed"] == seed]
        for step in sorted(set(run["step"])):
            part = run.loc[(run["step"] <= step) & (run["step"] > step - window)]
            f, y, w = (part[name].to_numpy(float) for name in ("predicted", "gain", "weight"))
            out.append({"seed": seed, "step": step, **asdict(measures(f, y, w, gate))})
    names = ["seed", "step", *(field.name for field in fields(Measures))]
    return pd.DataFrame(out, columns=names)


def _exploring(rows: "pd.DataFrame") -> Floats:
    """Return P(exploring draws the recorded cell): rho * q."""
    propensity = rows["propensity"].to_numpy(float)
    greedy = 1.0 - rows["exploration_rate"].to_numpy(float)
    # rho q stays below 1 - rho for rho < 1/2, so only a choice of both sides reaches 1 - rho.
    probability = np.where(propensity > greedy, propensity - greedy, propensity)
    if not ((probability > 0) & (propensity <= 1 + 1e-9)).all():
        raise DataError("an exploration draw has a propensity outside (0, 1]: the trace is corrupt")
    return probability


def _auroc(score: Floats, worth: NDArray[np.bool_], weight: Floats) -> float:
    negatives = np.sort(score[~worth])
    order = np.argsort(score[~worth], kind="stable")
    mass = np.concatenate([[0.0], np.cumsum(weight[~worth][order])])
    below = mass[np.searchsorted(negatives, score[worth], side="left")]
    not_above = mass[np.searchsorted(negatives, score[worth], side="right")]
    wins = (weight[worth] * (below + not_above) / 2).sum()
    return float(wins / (weight[worth].sum() * mass[-1]))
