"""From drawn branches to a label, and from a decision to a row of the interventions table."""

from dataclasses import dataclass
from typing import Any

from rail.interventions import InterventionSpace
from rail.recoverability import gain, imbalance
from rail.rollout.anchors import Anchor
from rail.rollout.tree import Tree

NAN = float("nan")
SKIP = -1


@dataclass(frozen=True, slots=True)
class Label:
    """What an intervention led to.

    Attributes:
        gain: y, net of cost.
        gross: y before cost.
        d_after: Imbalance with the branches.
        branch_reward: Mean reward of the branches.
        branches: Branches with a verdict, the m that the label refers to.
    """

    gain: float
    gross: float
    d_after: float
    branch_reward: float
    branches: int


def label(space: InterventionSpace, before: list[float], drawn: list[float]) -> Label | None:
    """Return the label of branches with rewards `drawn`; None where no branch has a verdict."""
    if not before or not drawn:
        return None
    net = gain(before, drawn, space.cost(len(drawn)))
    return Label(
        gain=net,
        gross=gain(before, drawn, 0.0),
        d_after=imbalance([*before, *drawn]),
        branch_reward=sum(drawn) / len(drawn),
        branches=len(drawn),
    )


def verdicts(tree: Tree, rollouts: list[int]) -> list[float]:
    """Return the rewards of the rollouts that have a verdict."""
    return tree.rewards([i for i in rollouts if not tree.trajectories[i].error_type])


def decision_row(
    step: int, round_: int, anchor: Anchor, tree: Tree, mode: str, draw: str
) -> dict[str, Any]:
    """Return the row of a decision before anything is drawn: a skip, until `fill_in`."""
    before = tree.rewards(tree.retained())
    return {
        "step": step,
        "task_id": tree.task.id,
        "kind": tree.task.kind,
        "round": round_,
        "anchor_rollout": anchor.rollout,
        "anchor_turn": anchor.turn,
        "anchor_entropy": anchor.entropy,
        "mode": mode,
        "draw": draw,
        "sweep": -1,
        "last_of_sweep": True,
        "executed": False,
        "cell": SKIP,
        "branches": 0,
        "regime": "",
        "cut": False,
        "propensity": NAN,
        "eligible": 0,
        "exploration_rate": NAN,
        "predicted": NAN,
        "predicted_cells": [],
        "prediction_spread": NAN,
        "gain": NAN,
        "gain_gross": NAN,
        "d_before": imbalance(before) if before else NAN,
        "d_after": NAN,
        "n_before": len(before),
        "k_before": float(sum(before)),
        "branch_reward": NAN,
        "accepted": False,
        "features": [],
    }


def fill_in(row: dict[str, Any], found: Label | None, accepted: bool) -> None:
    """Enter an executed intervention's label into its row."""
    row["executed"] = True
    row["accepted"] = accepted
    if found is not None:
        row["gain"], row["gain_gross"] = found.gain, found.gross
        row["d_after"], row["branch_reward"] = found.d_after, found.branch_reward
