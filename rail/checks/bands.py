"""Difficulty bands of one warm start: success, and how groups of rollouts come out.

Limits (protocol section 2): mean success 0.30 to 0.45; 40 to 60 % of groups of 8 mixed, at least 20
% all-fail, at least 10 % all-pass; every kind at least 0.10.
"""

import logging
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rail.atomic import write_json
from rail.checks.groups import base_groups, open_engine, provenance
from rail.config import Config
from rail.stats.intervals import Interval, wilson

LOGGER = logging.getLogger(__name__)


def bands(config: Config, benchmark: str, policy: Path, out: Path) -> None:
    """Measure the bands of the warm start in `policy` and write them as JSON."""
    engine, tasks = open_engine(config, benchmark, policy)
    checks = config.checks
    groups: list[tuple[str, list[float]]] = []
    boundaries: list[int] = []
    for forest in base_groups(
        engine, tasks[: checks.band_tasks], checks.band_rollouts, "bands", keep=False
    ):
        for tree in forest.trees:
            groups.append((tree.task.kind, tree.rewards(tree.base())))
            boundaries += [len(t.turns) - 1 for t in tree.trajectories]
        LOGGER.info("%d of %d tasks", len(groups), checks.band_tasks)
    found = {
        **summarise(groups),
        "boundaries": fmean(boundaries),
        "rollouts": checks.band_rollouts,
        **provenance(tasks, policy),
    }
    LOGGER.info("bands: %s", {k: found[k] for k in ("mean", "mixed", "all_fail", "all_pass")})
    write_json(out, found)


def summarise(groups: list[tuple[str, list[float]]]) -> dict[str, Any]:
    """Return the bands of (kind, rewards) groups; reward 1 is success, anything below is not.

    Intervals are 95 %: normal over task means for `mean`, Wilson over tasks for the shares.
    """
    passed = [[reward >= 1.0 for reward in rewards] for _, rewards in groups]
    means = [fmean(rewards) for _, rewards in groups]
    count = len(groups)
    shares = {
        "mixed": sum(any(g) and not all(g) for g in passed),
        "all_fail": sum(not any(g) for g in passed),
        "all_pass": sum(all(g) for g in passed),
    }
    half = 1.96 * stdev(means) / count**0.5 if count > 1 else float("inf")
    kinds: dict[str, list[float]] = {}
    for (kind, _), mean in zip(groups, means, strict=True):
        kinds.setdefault(kind, []).append(mean)
    return {
        "mean": fmean(means),
        **{name: share / count for name, share in shares.items()},
        "intervals": {
            "mean": [max(0.0, fmean(means) - half), min(1.0, fmean(means) + half)],
            **{name: _pair(wilson(share, count)) for name, share in shares.items()},
        },
        "kinds": {kind: fmean(values) for kind, values in sorted(kinds.items())},
        "tasks": count,
    }


def _pair(interval: Interval) -> list[float]:
    return [interval.low, interval.high]
