"""Where every run of the grid stands, read from files alone: nothing is asked of running jobs.

A run is `done` when its run.json exists, `running` while its progress log is fresh, `stopped` when
the log went silent before the end, `failed` when the job's log ends with an error, and `waiting`
when nothing was written yet.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rail.config import Config
from rail.runs import grid_methods

SILENCE_S = 60.0
"""Seconds without a line, plus five mean steps, until a run counts as stopped; `our choice`."""

ERROR = "rail: "
"""How the command line starts the one line that explains an error."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """One run of the grid.

    Attributes:
        state: done | running | stopped | failed | waiting.
        step: Finished steps.
        steps: Steps of the whole run, 0 while unknown.
        eta: Seconds left, None when unknown or done.
        note: The last message, or the last error.
    """

    benchmark: str
    method: str
    seed: int
    state: str
    step: int
    steps: int
    eta: float | None
    note: str


def statuses(config: Config, now: float) -> list[RunStatus]:
    """Return the state of every run of the grid, in grid order.

    Args:
        config: The scale; its methods, those that others read included.
        now: Seconds since the epoch.
    """
    return [
        _status(Path(config.results), benchmark, method, seed, now)
        for benchmark in config.benchmarks
        for method in grid_methods(config)
        for seed in config.seeds
    ]


def _status(results: Path, benchmark: str, method: str, seed: int, now: float) -> RunStatus:
    run = Path(benchmark, method, f"seed{seed}")
    last = last_progress(results / "state" / run / "progress.jsonl")
    step, steps = int(last.get("step", 0)), int(last.get("steps", 0))
    eta: float | None = None
    note = str(last.get("message", ""))
    log = results / "logs" / "train" / run.with_suffix(".log")
    if (results / "runs" / run / "run.json").is_file():
        state, step = "done", max(step, steps)
    elif error := last_error(log, float(last.get("time", 0.0))):
        state, note = "failed", error
    elif not last:
        state = "waiting"
    elif now - float(last["time"]) < SILENCE_S + 5 * float(last["eta"]) / max(1, steps - step):
        state, eta = "running", float(last["eta"])
    else:
        state = "stopped"
    return RunStatus(benchmark, method, seed, state, step, steps, eta, note)


def last_progress(path: Path) -> Mapping[str, Any]:
    """Return the last whole line of a progress log; empty when there is none.

    A line that is being written, or was cut by a kill, is passed over.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    for line in reversed(lines):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(entry, dict):
            return entry
    return {}


def last_error(log: Path, since: float) -> str:
    """Return the error that ends a job's log, empty when there is none newer than `since`."""
    try:
        written = log.stat().st_mtime
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    errors = [line for line in lines if line.startswith(ERROR)]
    return errors[-1].removeprefix(ERROR) if errors and written >= since else ""
