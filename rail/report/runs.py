"""Which runs the page rests on, what they were made from, and what they took."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rail.config import Config
from rail.provenance import digest_of
from rail.report.sheets import Links, Source
from rail.traces.frames import DESCRIPTOR, Run, run_folder, runs
from rail.traces.schema import CLOCK
from rail.traces.store import read_rows

EVALUATION = "evaluation"


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run of the grid.

    Attributes:
        state: done, trained (not evaluated) or not run.
        promoted: When and how the controller went live; empty for other methods.
        wall: Seconds; None when not run.
        cpu: Seconds; None when not run.
    """

    benchmark: str
    method: str
    label: str
    seed: int
    state: str
    promoted: str
    warm_start: str
    wall: float | None
    cpu: float | None
    source: Source


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of provenance: what, value(s), where from."""

    name: str
    values: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Runs:
    """The grid and its provenance."""

    lines: tuple[RunLine, ...]
    facts: tuple[Fact, ...]

    @property
    def done(self) -> int:
        """Return how many runs are trained and evaluated."""
        return sum(line.state == "done" for line in self.lines)

    @property
    def by_method(self) -> list[tuple[str, int, int, float, float]]:
        """Return label, runs done, runs planned, wall and CPU seconds per method."""
        rows = []
        for label in dict.fromkeys(line.label for line in self.lines):
            own = [line for line in self.lines if line.label == label]
            done = sum(line.state == "done" for line in own)
            wall, cpu = sum(line.wall or 0 for line in own), sum(line.cpu or 0 for line in own)
            rows.append((label, done, len(own), wall, cpu))
        return rows


def read_runs(config: Config, labels: Mapping[str, str], links: Links) -> Runs:
    """Read run.json and the clock of every run of the grid."""
    found = {(run.benchmark, run.method, run.seed): run for run in runs(links.results)}
    lines, used = [], []
    for benchmark in config.benchmarks:
        for method, label in labels.items():
            for seed in config.seeds:
                run = found.get((benchmark, method, seed))
                folder = run_folder(links.results, benchmark, method, seed)
                source = links.source(folder / DESCRIPTOR)
                if run is None:
                    lines.append(
                        RunLine(
                            benchmark, method, label, seed, "not run", "", "", None, None, source
                        )
                    )
                    continue
                used.append(run)
                lines.append(_line(run, label, source))
    return Runs(tuple(lines), tuple(_facts(config, used, links)))


def _line(run: Run, label: str, source: Source) -> RunLine:
    clock = read_rows(run.table("clock"), CLOCK) if run.table("clock").is_file() else None
    by, step = run.info.get("promoted_by"), run.info.get("promoted_step")
    return RunLine(
        run.benchmark,
        run.method,
        label,
        run.seed,
        "done" if run.table(EVALUATION).is_file() else "trained",
        f"step {step}, {by}" if by else "",
        str(run.info.get("run", {}).get("warm_start", "")),
        sum(row["total"] for row in clock) if clock is not None else None,
        sum(row["cpu"] for row in clock) if clock is not None else None,
        source,
    )


def _facts(config: Config, used: list[Run], links: Links) -> list[Fact]:
    resolved = json.dumps(config.model_dump(mode="json"), sort_keys=True)
    facts = [
        Fact("configuration", (f"scale {config.scale}, digest {digest_of(resolved)}",), "config"),
        Fact("seeds", (", ".join(map(str, config.seeds)),), "config"),
        Fact("test panel", (config.test_panel.upper(),), "config"),
    ]
    infos = [run.info for run in used]
    facts += [Fact("Python", _distinct(infos, "python"), "run.json of every run")]
    for library in sorted({name for info in infos for name in info.get("versions", {})}):
        values = tuple(sorted({str(info.get("versions", {}).get(library)) for info in infos}))
        facts.append(Fact(library, values, "run.json of every run"))
    for benchmark in config.benchmarks:
        path = links.results / "panels" / benchmark / "hashes.json"
        for panel, digest in _panels(path, infos).items():
            facts.append(Fact(f"panel {panel} of {benchmark}", (digest,), path.as_posix()))
    return facts


def _panels(path: Path, infos: list[dict[str, Any]]) -> dict[str, str]:
    if path.is_file():
        return {str(k): str(v) for k, v in json.loads(path.read_text(encoding="utf-8")).items()}
    return {str(k): str(v) for info in infos[:1] for k, v in info.get("panels", {}).items()}


def _distinct(infos: list[dict[str, Any]], key: str) -> tuple[str, ...]:
    return tuple(sorted({str(info[key]) for info in infos if key in info})) or ("not run",)
