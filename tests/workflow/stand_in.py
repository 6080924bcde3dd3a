"""A command line that at once writes what each verb's rule declares; copied over rail/cli.py.

Rules, configuration and fingerprints are the real ones; only the work inside the jobs is left out.
"""

import os
import sys
from pathlib import Path

from rail.runs import benchmark_config, load_config
from rail.traces.schema import TABLES


def write(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)


def written(verb: str, options: dict[str, str], repeated: dict[str, list[str]]) -> list[Path]:
    config = load_config(os.environ["RAIL_CONFIG"].split(os.pathsep))
    results, out = Path(config.results), Path(options.get("--out", ""))
    if verb == "panels":
        pools = benchmark_config(config, options["--benchmark"]).pools
        return [out / "hashes.json", *(out / f"{name}.jsonl" for name in pools)]
    if verb == "warmstart":
        return [out / "model.safetensors"]
    if verb == "train":
        names = ["run.json", "policy/model.safetensors", *(f"{t}.parquet" for t in TABLES)]
        return [
            out / name for name in [*names, *["promotion.pt"] * (options["--method"] == "rail")]
        ]
    if verb == "traces":
        folders = [
            results / "traces" / b / m for b in config.benchmarks for m in repeated["--method"]
        ]
        files = [folder / f"seed{seed}.parquet" for folder in folders for seed in config.seeds]
        return [results / "traces/schema.csv", *files]
    if verb == "claims":
        return [results / "claims.json", results / "tables/claims.csv"]
    if verb == "notebook":
        values = dict(value.split("=", 1) for value in repeated["-p"])
        drawn = [".svg", ".pdf", ".caption.txt"] if "figure" in values else []
        return [out, Path(values["table"]), *(Path(values["figure"] + end) for end in drawn)]
    return [out]


def main() -> None:
    verb, *rest = sys.argv[1:]
    named = [i for i, word in enumerate(rest) if word.startswith("-")]
    repeated: dict[str, list[str]] = {}
    for i in named:
        repeated.setdefault(rest[i], []).append(rest[i + 1])
    write(*written(verb, {name: values[-1] for name, values in repeated.items()}, repeated))
