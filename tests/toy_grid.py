"""A whole run in about a second: the toy benchmark, a tiny policy, real code throughout."""

from pathlib import Path
from typing import Any

import yaml

from rail.config import Config
from rail.policy.warmstart import build_warm_start
from rail.runs import benchmark_config, load_benchmark, load_config, resolve
from rail.train import train

OVERLAY: dict[str, Any] = {
    "scale": "toy",
    "benchmarks": ["toy"],
    "seeds": [1000],
    "policy": {
        "hidden": 32,
        "layers": 1,
        "heads": 2,
        "feed_forward": 32,
        "vocabulary": 400,
        "max_tokens": 64,
        "max_turn_tokens": 4,
        "slots": 16,
    },
    "warm_start": {"count": 1, "demonstrations": 200, "steps": 40, "batch": 16, "warmup": 4},
    "train": {
        "steps": 6,
        "tasks_per_step": 2,
        "rollouts_per_task": 16,
        "checkpoint_every": 2,
        "validate_every": 3,
        "validation_tasks": 8,
        "learning_rate": 0.003,
    },
    "methods": {
        "grpo_wide": {"settings": {"tasks": 4}},
        "rail": {
            "settings": {
                "controller": {"shadow_min": 1, "shadow_max": 3, "window": 4, "fit_steps": 3}
            }
        },
    },
}


def toy_config(folder: Path, **train_options: object) -> Config:
    """Return the toy scale, results in `folder`, with options laid over its training section."""
    overlay = OVERLAY | {
        "results": str(folder / "results"),
        "train": {**OVERLAY["train"], **train_options},
    }
    path = folder / "toy.yaml"
    path.write_text(yaml.safe_dump(overlay))
    return load_config(["config/default.yaml", path])


def toy_policy(config: Config, out: Path) -> Path:
    """Build the toy's warm start."""
    benchmark = load_benchmark("toy", benchmark_config(config, "toy"))
    build_warm_start(benchmark, config.policy, config.warm_start, 0, out, lambda line: None)
    return out


def run_method(
    config: Config, policy: Path, method: str, folder: Path, reads: Path | None = None
) -> Path:
    """Train seed 1000 of a method; return its results."""
    out = folder / method
    train(resolve(config, "toy", method, 1000), policy, folder / "state" / method, out, reads)
    return out
