"""How hard the generated tasks are: bands of the demonstrator as policy, headroom, baselines.

Nothing here trains. A policy trained on the demonstrations is measured elsewhere and lies near
these figures: its slips lower the all-pass share, its lucky mistakes raise the mixed one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rail.envs.agentbench_db.competence import Competence, success_probability
from rail.envs.agentbench_db.demonstrator import Episode, demonstrate
from rail.envs.agentbench_db.draws import Draws
from rail.envs.base import Task

if TYPE_CHECKING:
    from rail.envs.agentbench_db import AgentBenchDb

RECOVERABLE = 0.1
"""Success probability from which a boundary counts as recoverable (protocol section 2)."""


@dataclass(frozen=True, slots=True)
class Bands:
    """Figures of groups of rollouts; shares are of groups unless said otherwise.

    Attributes:
        mean: Mean success of rollouts.
        mixed: Groups with both outcomes.
        all_fail: Groups without success.
        all_pass: Groups without failure.
        kinds: Kind -> mean success.
        turns: Kind -> mean turns.
        boundaries: Mean boundaries t >= 1 with a turn left, per rollout.
        recoverable: Failed rollouts with a boundary of success probability >= RECOVERABLE.
        recoverable_all_fail: The same among all-fail groups' rollouts; NaN without such groups.
        within: Variance of the success probability over two random boundaries of one rollout.
        noise: Variance of its estimate from `branches` rollouts, mean over boundaries.
        errors: Actions answered with an error, per rollout.
    """

    mean: float
    mixed: float
    all_fail: float
    all_pass: float
    kinds: Mapping[str, float]
    turns: Mapping[str, float]
    boundaries: float
    recoverable: float
    recoverable_all_fail: float
    within: float
    noise: float
    errors: float


@dataclass(frozen=True, slots=True)
class Expected:
    """Exact expectations of what `Bands` counts, without a rollout."""

    mean: float
    mixed: float
    all_fail: float
    all_pass: float
    kinds: Mapping[str, float]


def expected(
    competence: Competence, rows: Sequence[Mapping[str, Any]], rollouts: int = 8
) -> Expected:
    """Return the demonstrator's expected bands on generated rows; for turning the dial.

    Args:
        competence: Map of a warm start.
        rows: Rows of generated tasks.
        rollouts: Size of a group.
    """
    success = np.array([success_probability(competence, row) for row in rows])
    kinds: dict[str, list[float]] = defaultdict(list)
    for row, chance in zip(rows, success, strict=True):
        kinds[row["type"][0]].append(float(chance))
    fail, full = (1.0 - success) ** rollouts, success**rollouts
    return Expected(
        mean=float(success.mean()),
        mixed=float((1.0 - fail - full).mean()),
        all_fail=float(fail.mean()),
        all_pass=float(full.mean()),
        kinds={kind: float(np.mean(values)) for kind, values in sorted(kinds.items())},
    )


def bands(
    benchmark: "AgentBenchDb",
    tasks: Sequence[Task],
    competence: Competence | None,
    draws: Draws,
    rollouts: int = 8,
    branches: int = 32,
) -> Bands:
    """Let the demonstrator play every task `rollouts` times.

    Args:
        benchmark: Makes the environments.
        tasks: Generated tasks.
        competence: Map of a warm start; None: no mistakes.
        draws: Stream of the demonstrator's doing.
        rollouts: Size of a group.
        branches: Rollouts by which a headroom report would estimate a boundary's success.
    """
    groups = [
        [demonstrate(benchmark, task, competence, draws) for _ in range(rollouts)] for task in tasks
    ]
    wins = np.array([[episode.reward for episode in group] for group in groups])
    share = wins.mean(axis=1)
    episodes = [episode for group in groups for episode in group]
    lost = [e for e in episodes if e.reward < 1.0]
    hopeless = [e for g, s in zip(groups, share, strict=True) if s == 0.0 for e in g]
    kinds: dict[str, list[float]] = defaultdict(list)
    turns: dict[str, list[int]] = defaultdict(list)
    for task, group, mean in zip(tasks, groups, share, strict=True):
        kinds[task.kind].append(float(mean))
        turns[task.kind] += [len(e.boundaries) + 1 for e in group]
    values = np.concatenate([np.array(e.boundaries) for e in episodes])
    return Bands(
        mean=float(share.mean()),
        mixed=float(((share > 0) & (share < 1)).mean()),
        all_fail=float((share == 0).mean()),
        all_pass=float((share == 1).mean()),
        kinds={kind: float(np.mean(means)) for kind, means in sorted(kinds.items())},
        turns={kind: float(np.mean(counts)) for kind, counts in sorted(turns.items())},
        boundaries=float(np.mean([len(e.boundaries) for e in episodes])),
        recoverable=_recoverable(lost),
        recoverable_all_fail=_recoverable(hopeless),
        within=float(np.mean([_spread(e) for e in episodes if len(e.boundaries) > 1])),
        noise=float((values * (1 - values)).mean() / branches),
        errors=float(np.mean([e.errors for e in episodes])),
    )


def _recoverable(episodes: Sequence[Episode]) -> float:
    if not episodes:
        return float("nan")
    return float(np.mean([max(e.boundaries, default=0.0) >= RECOVERABLE for e in episodes]))


def _spread(episode: Episode) -> float:
    """Half the mean squared difference of two different boundaries: their unbiased variance."""
    return float(np.var(episode.boundaries, ddof=1))
