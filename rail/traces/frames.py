"""The grid of finished runs as data frames.

A run is the folder `<results>/runs/<benchmark>/<method>/seed<k>` with its tables and `run.json`.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rail.errors import DataError, TraceError
from rail.traces.schema import EVALUATION_TABLE, EVALUATIONS, TABLES, Schema
from rail.traces.store import read_table

if TYPE_CHECKING:
    import pandas as pd

DESCRIPTOR = "run.json"
ALL_TABLES: dict[str, Schema] = {**TABLES, EVALUATION_TABLE: EVALUATIONS}
"""Tables of a run folder: those of training and the evaluation."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run.

    Attributes:
        folder: Where its tables are.
        info: Content of run.json: configuration, versions, promotion.
    """

    benchmark: str
    method: str
    seed: int
    folder: Path
    info: dict[str, Any]

    @property
    def name(self) -> str:
        """Return `<benchmark>/<method>/seed<k>`."""
        return f"{self.benchmark}/{self.method}/seed{self.seed}"

    def table(self, name: str) -> Path:
        """Return the path of a table."""
        return self.folder / f"{name}.parquet"


def run_folder(results: Path, benchmark: str, method: str, seed: int) -> Path:
    """Return the folder of a run."""
    return results / "runs" / benchmark / method / f"seed{seed}"


def runs(results: Path, benchmark: str | None = None, method: str | None = None) -> list[Run]:
    """Return the finished runs (those with a run.json), by benchmark, method and seed.

    Raises:
        TraceError: If a run.json is not a JSON object.
    """
    found = []
    for path in (results / "runs").glob(f"{benchmark or '*'}/{method or '*'}/seed*/{DESCRIPTOR}"):
        match = re.fullmatch(r"seed(\d+)", path.parent.name)
        if match:
            names = path.parent.parent
            found.append(
                Run(names.parent.name, names.name, int(match[1]), path.parent, _info(path))
            )
    return sorted(found, key=lambda run: (run.benchmark, run.method, run.seed))


def load(
    results: Path,
    table: str,
    benchmarks: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> "pd.DataFrame":
    """Return one table of many runs, columns `benchmark`, `method`, `seed` first.

    None takes whatever is there; a named benchmark, method or seed must be there in full.

    Raises:
        TraceError: If the table is unknown, or a named run or its table is missing (says which).
        DataError: If runs of one benchmark were sampled by different backends.
    """
    import pandas as pd

    if table not in ALL_TABLES:
        raise TraceError(f"no table {table!r}; known: {', '.join(ALL_TABLES)}")
    chosen = select(results, benchmarks, methods, seeds)
    check_backends(chosen)
    frames = []
    for run in chosen:
        frame = read_table(run.table(table), ALL_TABLES[table])
        keys = {"benchmark": run.benchmark, "method": run.method, "seed": run.seed}
        for position, (name, value) in enumerate(keys.items()):
            frame.insert(position, name, value)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def select(
    results: Path,
    benchmarks: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[Run]:
    """Return the runs of a grid; see `load` for what None means.

    Raises:
        TraceError: If there is no such run at all, or one of the named grid is missing.
    """
    chosen = [
        run
        for run in runs(results)
        if (benchmarks is None or run.benchmark in benchmarks)
        and (methods is None or run.method in methods)
        and (seeds is None or run.seed in seeds)
    ]
    there = {(run.benchmark, run.method, run.seed) for run in chosen}
    wanted = {
        (b, m, s)
        for b in (benchmarks if benchmarks is not None else {run.benchmark for run in chosen})
        for m in (methods if methods is not None else {run.method for run in chosen})
        for s in (seeds if seeds is not None else {run.seed for run in chosen})
    }
    named = (benchmarks, methods, seeds) != (None, None, None)
    missing = sorted(wanted - there) if named else []
    if missing or not chosen:
        first = "/".join(map(str, missing[0])) if missing else "any"
        exists = sorted({f"{run.benchmark}/{run.method}" for run in runs(results)}) or ["none"]
        raise TraceError(
            f"{results}/runs: {len(missing) or 'no'} runs missing, first: {first} "
            f"(finished: {', '.join(exists)}); run `snakemake --cores all` to make them"
        )
    return chosen


def check_backends(compared: Iterable[Run]) -> None:
    """Refuse runs of one benchmark that different sampler backends drew: rounding sets them apart.

    Raises:
        DataError: Naming the backends as run.json records them, and the runs of each.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for run in compared:
        backend = str(run.info.get("backend", "not recorded"))
        found.setdefault(run.benchmark, {}).setdefault(backend, []).append(run.name)
    for backends in found.values():
        if len(backends) > 1:
            named = "; ".join(f"{name}: {', '.join(backends[name])}" for name in sorted(backends))
            raise DataError(
                f"runs of one comparison were sampled by different backends ({named}): make all of "
                "them with one, set by `policy.backend` in the configuration"
            )


def _info(path: Path) -> dict[str, Any]:
    try:
        info = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: not valid JSON ({error}); delete the run's folder") from error
    if not isinstance(info, dict):
        raise TraceError(f"{path}: expected a JSON object, got {type(info).__name__}")
    return info
