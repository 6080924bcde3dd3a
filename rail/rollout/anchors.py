"""Anchors: boundaries that are proposed for branching. Entropy only proposes, it never decides.

Score (paper arm, `our choice` of scale): mean T = 1 entropy of the parent's next action, the one
that a branch samples again. One anchor per task and round; a trajectory gives at most one anchor.
"""

from dataclasses import dataclass

import numpy as np

from rail.rollout.tree import Tree


@dataclass(frozen=True, slots=True)
class Anchor:
    """Boundary `turn` of `rollout` in tree `tree`, with its score in nats."""

    tree: int
    rollout: int
    turn: int
    entropy: float


def propose(tree: Tree, index: int, rounds: int, rng: np.random.Generator) -> list[Anchor]:
    """Return the anchors of a tree, at most one per base trajectory and `rounds` in all.

    Candidates are boundaries t >= 1 of base rollouts at which a turn follows; the root is left out.
    Highest entropy first, ties in random order.
    """
    best: list[Anchor] = []
    for rollout in tree.base():
        turns = [tree.turns[i] for i in tree.trajectories[rollout].turns]
        scores = [(float(turn.entropy.mean()), turn.index) for turn in turns[1:]]
        if scores:
            entropy, turn = max(scores, key=lambda score: (score[0], -score[1]))
            best.append(Anchor(index, rollout, turn, entropy))
    order = rng.permutation(len(best))
    ranked = sorted((best[i] for i in order), key=lambda anchor: -anchor.entropy)
    return ranked[:rounds]
