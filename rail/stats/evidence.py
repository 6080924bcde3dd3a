"""What the analysis reads of a result folder, and a record of every file that it read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rail.errors import DataError
from rail.traces.frames import ALL_TABLES, Run, check_backends, runs
from rail.traces.store import read_table

if TYPE_CHECKING:
    import pandas as pd


WARM_STARTS = 4


class NotRun(DataError):
    """What a comparison needs is not in the results (yet)."""


class Evidence:
    """Tables of finished runs, each read once.

    Attributes:
        used: Files read since the last `forget`: what a number traces to.
    """

    def __init__(self, results: Path, seeds: Sequence[int] | None = None) -> None:
        """Look at `results`; `seeds` limits what is seen, None sees all."""
        self.results = results
        self.used: set[Path] = set()
        self._compared: dict[Path, Run] = {}  # by folder, since the last `forget`
        self._wanted = seeds
        self._runs = {(run.benchmark, run.method, run.seed): run for run in runs(results)}
        self._tables: dict[Path, pd.DataFrame] = {}

    def forget(self) -> None:
        """Start a new record of the files used; what was read stays in memory."""
        self.used = set()
        self._compared = {}

    def seeds(self, benchmark: str, method: str, tables: Sequence[str]) -> list[int]:
        """Return the seeds whose finished run has all of `tables`, ascending.

        Raises:
            NotRun: If there is none; says what is missing.
        """
        mine = [s for b, m, s in self._runs if (b, m) == (benchmark, method)]
        finished = [s for s in mine if self._wanted is None or s in self._wanted]
        found = [
            seed
            for seed in sorted(finished)
            if all(self.run(benchmark, method, seed).table(name).is_file() for name in tables)
        ]
        if not found:
            lacks = f"{' or '.join(tables)} table" if finished else "finished run"
            of = "" if self._wanted is None else f" of seeds {', '.join(map(str, self._wanted))}"
            raise NotRun(f"no {lacks} of {benchmark}/{method}{of}")
        return found

    def run(self, benchmark: str, method: str, seed: int) -> Run:
        """Return a run's descriptor."""
        return self._runs[benchmark, method, seed]

    def warm_start(self, benchmark: str, method: str, seed: int) -> int:
        """Return the warm start of a run: as recorded, else seed mod 4 (protocol section 1)."""
        recorded = self.run(benchmark, method, seed).info.get("run", {}).get("warm_start")
        return seed % WARM_STARTS if recorded is None else int(recorded)

    def table(self, benchmark: str, method: str, seed: int, name: str) -> "pd.DataFrame":
        """Return a table of a run, its name in columns benchmark, method, seed.

        Raises:
            TraceError: If the file is damaged.
            DataError: If the run and one read since `forget` were sampled by different backends.
        """
        run = self.run(benchmark, method, seed)
        if run.folder not in self._compared:
            self._compared[run.folder] = run
            check_backends(self._compared.values())
        path = run.table(name)
        if path not in self._tables:
            frame = read_table(path, ALL_TABLES[name])
            keys = {"benchmark": benchmark, "method": method, "seed": seed}
            self._tables[path] = frame.assign(**keys)
        self.used.add(path)
        return self._tables[path]
