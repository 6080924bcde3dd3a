"""The learning-rate sweep: validation success per rate, for the one choice that holds for all."""

import csv
import io
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from rail import atomic
from rail.config import Config
from rail.runs import method_config, methods_of
from rail.stats.intervals import t_interval
from rail.traces.frames import run_folder
from rail.traces.schema import EVALUATIONS
from rail.traces.store import read_rows


def last_success(table: Path) -> float:
    """Return success at T = 1 of the last validation in `table`, equal weight per kind.

    Raises:
        TraceError: If the table cannot be read.
    """
    rows = [row for row in read_rows(table, EVALUATIONS) if row["mode"] == "sampled"]
    last = max(row["step"] for row in rows)
    kinds: dict[str, list[float]] = {}
    for row in rows:
        if row["step"] == last:
            kinds.setdefault(row["kind"], []).append(row["reward"])
    return fmean(fmean(rewards) for rewards in kinds.values())


def write_sweep(config: Config, out: Path) -> list[dict[str, Any]]:
    """Write one row per benchmark and method of the sweep to `out`, best first; return the rows.

    The interval is a 95 % t interval over seeds.

    Raises:
        TraceError: If a run's validation table is missing or cannot be read.
    """
    rows = [
        _row(config, benchmark, method)
        for benchmark in config.benchmarks
        for method in methods_of(config)
    ]
    rows.sort(key=lambda row: (row["benchmark"], -row["success"]))
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic.write_text(out, text.getvalue())
    return rows


def _row(config: Config, benchmark: str, method: str) -> dict[str, Any]:
    values = np.array(
        [
            last_success(
                run_folder(Path(config.results), benchmark, method, seed) / "validation.parquet"
            )
            for seed in config.seeds
        ]
    )
    interval = t_interval(values, 0.95)
    rate = method_config(config, method).train.get("learning_rate", config.train.learning_rate)
    return {
        "benchmark": benchmark,
        "method": method,
        "learning_rate": float(rate),
        "success": round(float(values.mean()), 4),
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
        "seeds": len(values),
    }
