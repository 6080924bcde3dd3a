"""Difficulty bands and headroom of the warm starts, measured before any method was compared."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rail.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

NAN = float("nan")
BANDS = {
    "mean": ("mean success", 0.30, 0.45),
    "mixed": ("mixed groups of 8", 0.40, 0.60),
    "all_fail": ("all-fail groups", 0.20, NAN),
    "all_pass": ("all-pass groups", 0.10, NAN),
}
"""Key of bands.json -> words, lower and upper limit (protocol section 2)."""
KIND_AT_LEAST = 0.10
HEADROOM = {
    "boundaries_per_trajectory": ("boundaries per trajectory", 3.0),
    "recoverable_failed": ("recoverable share of failed trajectories", 0.30),
    "recoverable_failed_all_fail": ("recoverable share within all-fail groups", 0.30),
    "within_task_variance": ("within-task variance of success", NAN),
    "sampling_noise": ("its sampling noise", NAN),
    "variance_over_noise": ("within-task variance over its noise", 3.0),
    "best_cell_vs_mean": ("best cell minus mean cell, cross-fitted", NAN),
    "best_cell_vs_best_constant": ("best cell minus best constant, cross-fitted", NAN),
}
"""Key of headroom.json -> words and lower limit (protocol section 2)."""
COLUMNS = (
    "warm", "section", "measure", "label", "estimate", "low", "high", "at_least", "at_most",
    "inside", "source",
)  # fmt: skip


def headroom_table(results: Path, benchmark: str) -> "pd.DataFrame":
    """Return what was measured about difficulty and headroom before any method was compared.

    Returns:
        One row per warm start and measure: warm, section (bands | kinds | headroom | regimes),
        measure, label, estimate, low, high, at_least, at_most, inside ("yes", "no", or "" where
        nothing is asked or nothing could be measured), source (file, relative to `results`).

    Raises:
        DataError: If there is no file of the kind, or one is not as written by `rail bands` and
            `rail headroom`.
    """
    import numpy as np
    import pandas as pd

    folder = results / "checks" / benchmark
    files = sorted(folder.glob("warm*/bands.json")) + sorted(folder.glob("warm*/headroom.json"))
    if not files:
        raise DataError(f"{folder}: no warm*/bands.json; run `snakemake checks --cores all`")
    rows: list[dict[str, Any]] = []
    for file in files:
        content = _object(file)
        measure = _band_rows if file.stem == "bands" else _headroom_rows
        try:
            found = list(measure(content))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{file}: {error!r}; delete it and run its rule again") from error
        about = {
            "warm": int(file.parent.name.removeprefix("warm")),
            "source": str(file.relative_to(results)),
        }
        rows += [about | row for row in found]
    table = pd.DataFrame(rows)
    below, above = table["estimate"] < table["at_least"], table["estimate"] > table["at_most"]
    asked = (table["at_least"].notna() | table["at_most"].notna()) & table["estimate"].notna()
    table["inside"] = np.select([below | above, asked], ["no", "yes"], "")
    by_warm = table.sort_values(by="warm", kind="stable", ignore_index=True)
    return by_warm.reindex(columns=COLUMNS)


def _band_rows(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key, (label, at_least, at_most) in BANDS.items():
        low, high = content["intervals"].get(key, (NAN, NAN))
        yield _row("bands", key, label, content[key], low, high, at_least, at_most)
    for kind, value in sorted(content["kinds"].items()):
        yield _row("kinds", kind, kind.replace("_", " "), value, at_least=KIND_AT_LEAST)


def _headroom_rows(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    spread, noise = _or_nan(content["within_task_variance"]), _or_nan(content["sampling_noise"])
    ratio = spread / noise if noise > 0 else NAN
    values = {**content, "variance_over_noise": ratio}
    for key, (label, at_least) in HEADROOM.items():
        low, high = content.get("intervals", {}).get(key, (NAN, NAN))
        yield _row("headroom", key, label, values[key], low, high, at_least)
    for regime, value in content["regimes"].items():
        yield _row("regimes", regime, regime, value)


def _row(
    section: str,
    measure: str,
    label: str,
    estimate: float | None,
    low: float = NAN,
    high: float = NAN,
    at_least: float = NAN,
    at_most: float = NAN,
) -> dict[str, Any]:
    return {
        "section": section,
        "measure": measure,
        "label": label,
        "estimate": _or_nan(estimate),
        "low": float(low),
        "high": float(high),
        "at_least": at_least,
        "at_most": at_most,
    }


def _or_nan(value: float | None) -> float:
    """Return NaN for None: nothing to measure, such as no failed trajectory."""
    return NAN if value is None else float(value)


def _object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not valid JSON ({error}); run its rule again") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content
