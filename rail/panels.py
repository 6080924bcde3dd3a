"""Panels as files: what a benchmark's tasks are, to look at and to compare between machines."""

import json
from collections.abc import Sequence
from pathlib import Path

from rail import atomic
from rail.envs.base import Benchmark, panel_hash


def write_panels(benchmark: Benchmark, names: Sequence[str], out: Path) -> dict[str, str]:
    """Write `<name>.jsonl` for each panel and `hashes.json` into `out`; return the hashes.

    Jobs do not read these files: a panel is a function of the benchmark's code and settings.

    Raises:
        StorageError: If the disk refuses.
    """
    hashes = {}
    for name in names:
        tasks = benchmark.panel(name)
        rows = [
            {"id": task.id, "kind": task.kind, "prompt": task.prompt, "row": dict(task.row)}
            for task in tasks
        ]
        lines = [json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows]
        atomic.write_text(out / f"{name}.jsonl", "".join(lines))
        hashes[name] = panel_hash(tasks)
    atomic.write_json(out / "hashes.json", hashes)
    return hashes
