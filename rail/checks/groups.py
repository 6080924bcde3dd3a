"""Base groups of a warm start on training-distribution tasks, drawn by the product's own engine."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rail.config import Config
from rail.envs.base import Task, panel_hash
from rail.policy.actor import open_actor
from rail.provenance import digest_of
from rail.rollout.engine import Engine, Expansion, Forest
from rail.runs import benchmark_config, load_benchmark

CHECK_SEED = 0
PANEL = "bands"
_TOGETHER = 32  # tasks drawn together


def provenance(tasks: Sequence[Task], policy: Path) -> dict[str, str]:
    """Return what a check was made on: digests of the panel and of the policy's weights."""
    return {"panel": panel_hash(tasks), "policy": digest_of(policy / "model.safetensors")}


def open_engine(config: Config, benchmark: str, policy: Path) -> tuple[Engine, list[Task]]:
    """Return an engine for the policy and the tasks of the bands panel."""
    source = load_benchmark(benchmark, benchmark_config(config, benchmark))
    actor = open_actor(policy, config.policy)
    return Engine(actor.sampler, actor.chat, source, CHECK_SEED), source.panel(PANEL)


def base_groups(
    engine: Engine, tasks: Sequence[Task], rollouts: int, stream: str, keep: bool
) -> Iterator[Forest]:
    """Yield forests of up to 32 tasks with `rollouts` on-policy roots each; closed afterwards."""
    for start in range(0, len(tasks), _TOGETHER):
        part = tasks[start : start + _TOGETHER]
        forest = Forest()
        engine.plant(forest, part)
        engine.expand(
            forest,
            [
                Expansion(i, [(stream, task.id, child) for child in range(rollouts)], keep=keep)
                for i, task in enumerate(part)
            ],
        )
        yield forest
        forest.close()
