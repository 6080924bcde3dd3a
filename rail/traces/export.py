"""Controller traces for readers: one self-contained file per run, and a sheet that explains it.

`<results>/traces/<benchmark>/<method>/seed<k>.parquet` is the run's interventions table with the
run's name in front; `<results>/traces/schema.csv` has one row per column. Every figure about
adaptivity reads these files and nothing else.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rail import atomic
from rail.errors import TraceError
from rail.traces.frames import Run, run_folder, runs
from rail.traces.schema import INTERVENTIONS, Column, Schema
from rail.traces.store import read_table, write_table

if TYPE_CHECKING:
    import pandas as pd

TRACES: Schema = {
    "benchmark": Column("string", "", "benchmark of the run"),
    "method": Column("string", "", "configured method of the run"),
    "seed": Column(
        "int64", "", "seed of the run; its warm start is seed mod number of warm starts"
    ),
    **INTERVENTIONS,
}
"""Columns of an exported trace."""


def trace_path(results: Path, benchmark: str, method: str, seed: int) -> Path:
    """Return where the trace of a run is exported to."""
    return results / "traces" / benchmark / method / f"seed{seed}.parquet"


def sheet_path(results: Path) -> Path:
    """Return where the schema sheet is."""
    return results / "traces" / "schema.csv"


def export_run(results: Path, benchmark: str, method: str, seed: int) -> Path:
    """Export the trace of one run; return its path.

    Raises:
        TraceError: If the run has no interventions table or it cannot be read.
    """
    source = run_folder(results, benchmark, method, seed) / "interventions.parquet"
    frame = read_table(source, INTERVENTIONS)
    frame.insert(0, "benchmark", benchmark)
    frame.insert(1, "method", method)
    frame.insert(2, "seed", seed)
    path = trace_path(results, benchmark, method, seed)
    write_table(path, frame, TRACES)
    return path


def export_sheet(results: Path) -> Path:
    """Write the schema sheet: column, dtype, unit, meaning; return its path."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("column", "dtype", "unit", "meaning"))
    writer.writerows((n, c.dtype, c.unit, c.meaning) for n, c in TRACES.items())
    path = sheet_path(results)
    atomic.write_text(path, text.getvalue())
    return path


def export_all(results: Path) -> list[Path]:
    """Export every run that intervened, and the sheet; return the paths, the sheet last."""
    chosen = [run for run in runs(results) if _intervened(run)]
    paths = [export_run(results, run.benchmark, run.method, run.seed) for run in chosen]
    return [*paths, export_sheet(results)]


def load_traces(
    results: Path, benchmark: str, method: str, seeds: Sequence[int] | None = None
) -> "pd.DataFrame":
    """Return the exported traces of a method, columns as in `TRACES`, seeds ascending.

    Raises:
        TraceError: If none is exported, or one of `seeds` is not.
    """
    import pandas as pd

    if seeds is None:
        folder = trace_path(results, benchmark, method, 0).parent
        paths = sorted(folder.glob("seed*.parquet"), key=lambda p: int(p.stem.removeprefix("seed")))
    else:
        paths = [trace_path(results, benchmark, method, seed) for seed in sorted(seeds)]
    if not paths:
        raise TraceError(
            f"{results}/traces: no trace of {benchmark}/{method}; run `snakemake traces`"
        )
    return pd.concat([read_table(path, TRACES) for path in paths], ignore_index=True)


def _intervened(run: Run) -> bool:
    import pyarrow.parquet as pq

    path = run.table("interventions")
    return path.is_file() and pq.ParquetFile(path).metadata.num_rows > 0
