"""The evaluation rules: the final policy of a run, and the warm start that it began from."""

import logging
from pathlib import Path
from typing import Any

from rail.atomic import write_json
from rail.config import Config
from rail.envs.base import panel_hash
from rail.errors import ConfigError
from rail.policy.actor import open_actor
from rail.provenance import digest_of
from rail.rollout.engine import Engine
from rail.rollout.evaluation import EVALUATION_SEED, evaluate_policy
from rail.runs import benchmark_config, load_benchmark, resolve
from rail.traces.schema import EVALUATIONS
from rail.traces.store import read_rows, write_table

LOGGER = logging.getLogger(__name__)


def evaluate(
    config: Config,
    benchmark: str,
    method: str,
    seed: int,
    run: Path,
    out: Path,
    initial: Path | None = None,
) -> None:
    """Evaluate a run's final policy on the test panel and write its evaluation table.

    Beside the table, a JSON file of the same name says which panel it was, with its content hash.

    Args:
        config: The scale; names panel, number of tasks and modes.
        benchmark: Benchmark of the run.
        method: Method of the run.
        seed: Seed of the run.
        run: Folder with `policy/`.
        out: Table to write.
        initial: Table of the warm start (see `evaluate_initial`); its rows come first, as step 0.
    """
    steps = resolve(config, benchmark, method, seed).train.steps
    before = [] if initial is None else read_rows(initial, EVALUATIONS)
    write_table(out, before + _rows(config, benchmark, run / "policy", steps, out), EVALUATIONS)


def evaluate_initial(config: Config, benchmark: str, policy: Path, out: Path) -> None:
    """Evaluate a warm start like a final policy, as step 0."""
    write_table(out, _rows(config, benchmark, policy, 0, out), EVALUATIONS)


def _rows(
    config: Config, benchmark: str, policy: Path, step: int, out: Path
) -> list[dict[str, Any]]:
    settings = benchmark_config(config, benchmark)
    name = f"test_{config.test_panel}"
    if name not in settings.pools:
        raise ConfigError(
            f"benchmark {benchmark} has no panel {name!r}; it has {', '.join(settings.pools)}"
        )
    source = load_benchmark(benchmark, settings)
    panel = source.panel(name)
    tasks = panel[: config.evaluation.tasks]
    actor = open_actor(policy, config.policy)
    engine = Engine(actor.sampler, actor.chat, source, EVALUATION_SEED)
    rows: list[dict[str, Any]] = []
    for mode in config.evaluation.modes:
        found = evaluate_policy(engine, tasks, mode, step)
        share = sum(row["reward"] for row in found) / len(found)
        LOGGER.info("%s: %s success %.3f on %d tasks of %s", policy, mode, share, len(found), name)
        rows += found
    write_json(
        out.with_suffix(".json"),
        {
            "panel": name,
            "hash": panel_hash(panel),
            "tasks": len(tasks),
            "backend": actor.backend,
            "policy": digest_of(policy / "model.safetensors"),
        },
    )
    return rows
