"""Headroom of one warm start: what a perfect map from state to intervention could find.

On random trajectories of as many tasks, every boundary is continued many times under every regime.
Half of the branches choose (the best boundary, the best cell), the other half judge, so that
choosing the luckiest does not count as headroom. Source: protocol section 2.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rail.atomic import write_json
from rail.checks.groups import CHECK_SEED, base_groups, open_engine, provenance
from rail.config import Config, SpaceConfig
from rail.interventions import InterventionSpace
from rail.recoverability import expected_gain
from rail.rollout.engine import Engine, Expansion, Forest
from rail.seeding import generator

LOGGER = logging.getLogger(__name__)
RECOVERABLE = 0.1
MILD = 1  # place of T = 1 in the space's regimes


@dataclass(frozen=True, slots=True)
class Probe:
    """One trajectory with all its boundaries continued.

    Attributes:
        failed: The trajectory itself failed.
        successes: Base successes of its group of `size`.
        size: Rollouts of the group.
        outcomes: Rewards of the branches, shape (boundaries, regimes, branches).
    """

    failed: bool
    successes: int
    size: int
    outcomes: NDArray[np.float64]


def headroom(config: Config, benchmark: str, policy: Path, out: Path) -> None:
    """Measure the headroom of the warm start in `policy` and write it as JSON.

    The anchors of the configuration are shared by the benchmark's warm starts.
    """
    engine, tasks = open_engine(config, benchmark, policy)
    checks = config.checks
    wanted = -(-checks.headroom_anchors // config.warm_start.count)
    space = SpaceConfig().build()
    probes: list[Probe] = []
    anchors = 0
    for forest in base_groups(engine, tasks, checks.band_rollouts, "headroom", keep=True):
        for index in range(len(forest.trees)):
            if anchors >= wanted:
                break
            probe = _probe(engine, forest, index, space, checks.headroom_branches)
            if probe is not None:
                probes.append(probe)
                anchors += len(probe.outcomes)
        LOGGER.info("%d of %d anchors", anchors, wanted)
        if anchors >= wanted:
            break
    found = summarise(probes, space)
    write_json(out, found | provenance(tasks, policy))


def _probe(
    engine: Engine, forest: Forest, index: int, space: InterventionSpace, branches: int
) -> Probe | None:
    tree = forest.trees[index]
    base = tree.base()
    rollout = int(generator(CHECK_SEED, "headroom", tree.task.id).choice(base))
    trajectory = tree.trajectories[rollout]
    count = len(trajectory.turns) - 1
    if count < 1:
        return None
    rewards = tree.rewards(base)
    expansions = [
        Expansion(
            index,
            [("headroom", tree.task.id, turn, regime.name, child) for child in range(branches)],
            rollout=rollout,
            turn=turn,
            decoding=regime.decoding,
            regime=regime.name,
            origin="live",
        )
        for turn in range(1, count + 1)
        for regime in space.regimes
    ]
    drawn = [tree.rewards(rollouts) for rollouts in engine.expand(forest, expansions)]
    return Probe(
        failed=trajectory.reward < 1.0,
        successes=sum(reward >= 1.0 for reward in rewards),
        size=len(base),
        outcomes=np.array(drawn).reshape(count, len(space.regimes), branches),
    )


def summarise(probes: Sequence[Probe], space: InterventionSpace) -> dict[str, Any]:
    """Return the figures of a warm start's probes; None where there was nothing to judge."""
    failed = [probe for probe in probes if probe.failed]
    lost = [probe for probe in failed if probe.successes == 0]
    cells = [np.concatenate([_cell_gains(p, space, half) for p in probes]) for half in (0, 1)]
    best = cells[0].argmax(axis=1)
    constant = int(cells[0].mean(axis=0).argmax())
    judged = cells[1][np.arange(len(best)), best].mean()
    spread, noise = _within_task(probes)
    return {
        "boundaries_per_trajectory": float(np.mean([len(p.outcomes) for p in probes])),
        "recoverable_failed": _share(failed, _recoverable),
        "recoverable_failed_all_fail": _share(lost, _recoverable),
        "recoverable_failed_raw": _share(failed, _recoverable_raw),
        "failed": len(failed),
        "failed_all_fail": len(lost),
        "within_task_variance": spread,
        "sampling_noise": noise,
        "best_cell": float(judged),
        "best_cell_vs_mean": float(judged - cells[1].mean()),
        "best_cell_vs_best_constant": float(judged - cells[1][:, constant].mean()),
        "best_constant": f"{space[constant].branches} {space[constant].regime.name}",
        "regimes": {
            regime.name: float(np.mean([p.outcomes[:, i].mean() for p in probes]))
            for i, regime in enumerate(space.regimes)
        },
        "anchors": sum(len(p.outcomes) for p in probes),
        "branches": probes[0].outcomes.shape[2] if probes else 0,
    }


def _share(probes: Sequence[Probe], holds: Any) -> float | None:
    return float(np.mean([holds(probe) for probe in probes])) if probes else None


def _recoverable(probe: Probe) -> bool:
    """Boundary chosen on half of the T = 1 branches, judged on the other half."""
    first, second = np.array_split(probe.outcomes[:, MILD], 2, axis=1)
    return bool(second[first.mean(axis=1).argmax()].mean() >= RECOVERABLE)


def _recoverable_raw(probe: Probe) -> bool:
    return bool(probe.outcomes[:, MILD].mean(axis=1).max() >= RECOVERABLE)


def _within_task(probes: Sequence[Probe]) -> tuple[float, float]:
    """Return the variance of success within a trajectory, and its sampling noise.

    The variance is over boundaries and regimes, with the noise taken off: it is an estimate of the
    true one and may be below 0.
    """
    raw = [p.outcomes.mean(axis=2).var(ddof=1) for p in probes if p.outcomes.shape[0] > 1]
    noise = [
        (p.outcomes.var(axis=2, ddof=1) / p.outcomes.shape[2]).mean()
        for p in probes
        if p.outcomes.shape[0] > 1
    ]
    return float(np.mean(raw) - np.mean(noise)), float(np.mean(noise))


def _cell_gains(probe: Probe, space: InterventionSpace, half: int) -> NDArray[np.float64]:
    """Return the expected gain of each cell at each boundary by one half: (boundaries, cells)."""
    values = np.array_split(probe.outcomes, 2, axis=2)[half].mean(axis=2)
    rows = [
        [
            expected_gain(
                probe.successes,
                probe.size,
                space[cell].branches,
                float(row[cell // len(space.budgets)]),
                space.cost(space[cell].branches),
            )
            for cell in range(len(space))
        ]
        for row in values
    ]
    return np.array(rows)
