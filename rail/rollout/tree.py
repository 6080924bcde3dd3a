"""A task's group of trajectories as a tree in which each turn is stored once.

A trajectory is a path of turns; a branch shares its parent's turns up to `branch_turn` and owns the
rest. Turn boundary t lies before turn t of a trajectory (boundary 0 is the prompt).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rail.envs.base import StopReason, Task
from rail.interventions import ON_POLICY, Decoding

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

ROOT_REGIME = "ON_POLICY"


@dataclass(slots=True)
class Turn:
    """The tokens that one turn adds: the policy's action, then what the environment said.

    Attributes:
        index: 0-based turn of the trajectory.
        action: Generated token ids, shape (A,).
        observation: Token ids appended after the action, up to the next boundary, shape (O,).
        logprob: Log-probability of each action token under the plain policy, T = 1, nats, shape
            (A,).
        logprob_sampled: The same under the decoding that sampled it, shape (A,).
        entropy: Entropy of the plain policy at each action token, T = 1, nats, shape (A,).
        hidden: Mean last-layer hidden state over the positions that predict the action, shape (D,).
        state: Last-layer hidden state at the boundary before the turn, shape (D,).
        text: The action as text.
        error: The action was answered with an error.
    """

    index: int
    action: Ints
    observation: Ints
    logprob: Floats
    logprob_sampled: Floats
    entropy: Floats
    hidden: Floats
    state: Floats
    text: str
    error: bool


@dataclass(slots=True)
class Trajectory:
    """One rollout: a path from the prompt to a terminal turn.

    Attributes:
        turns: Indices into `Tree.turns`, root to leaf.
        parent: Rollout it was branched from, -1 for roots.
        branch_turn: Boundary it was branched at; it generated `turns[branch_turn:]` itself.
        origin: base | shadow | live | fill.
        retained: It takes part in the update.
        error_type: Our failure; such a rollout has no verdict and never enters a group.
    """

    turns: list[int]
    parent: int = -1
    branch_turn: int = 0
    origin: str = "base"
    regime: str = ROOT_REGIME
    decoding: Decoding = ON_POLICY
    reward: float = 0.0
    reward_upstream: float = 0.0
    stop: StopReason | None = None
    retained: bool = True
    error_type: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """A trajectory laid out as tokens; all arrays have shape (T,).

    Attributes:
        tokens: Prompt, then action and observation of each turn.
        sampled: True where the policy generated the token (in this trajectory or in its parents).
        own: True where this rollout generated the token itself.
        node: Turn that holds the token (index into `Tree.turns`), -1 for the prompt.
        logprob: Plain policy, T = 1, at sampling time; 0 where not sampled.
        logprob_sampled: Decoding that sampled the token; 0 where not sampled.
        entropy: T = 1; 0 where not sampled.
    """

    tokens: Ints
    sampled: Bools
    own: Bools
    node: Ints
    logprob: Floats
    logprob_sampled: Floats
    entropy: Floats


@dataclass(slots=True)
class Tree:
    """The group of one task in one step."""

    task: Task
    prompt: Ints
    turns: list[Turn] = field(default_factory=list)
    trajectories: list[Trajectory] = field(default_factory=list)

    def retained(self) -> list[int]:
        """Return the rollouts that take part in the update and have a verdict."""
        return [i for i, t in enumerate(self.trajectories) if t.retained and not t.error_type]

    def base(self) -> list[int]:
        """Return the base rollouts that have a verdict."""
        return [
            i for i, t in enumerate(self.trajectories) if t.origin == "base" and not t.error_type
        ]

    def rewards(self, rollouts: list[int]) -> list[float]:
        """Return the strict rewards of `rollouts`."""
        return [self.trajectories[i].reward for i in rollouts]

    def path(self, rollout: int) -> Path:
        """Lay a trajectory out as tokens."""
        trajectory = self.trajectories[rollout]
        tokens: list[Ints] = [self.prompt]
        sampled: list[Bools] = []
        own: list[Bools] = []
        node: list[Ints] = []
        logprob: list[Floats] = []
        logprob_sampled: list[Floats] = []
        entropy: list[Floats] = []

        def span(length: int, is_action: bool, is_own: bool, index: int) -> None:
            sampled.append(np.full(length, is_action))
            own.append(np.full(length, is_own))
            node.append(np.full(length, index, dtype=np.int64))

        def zeros(length: int) -> None:
            for column in (logprob, logprob_sampled, entropy):
                column.append(np.zeros(length, dtype=np.float32))

        span(len(self.prompt), False, False, -1)
        zeros(len(self.prompt))
        for depth, index in enumerate(trajectory.turns):
            turn = self.turns[index]
            tokens += [turn.action, turn.observation]
            span(len(turn.action), True, depth >= trajectory.branch_turn, index)
            span(len(turn.observation), False, False, index)
            logprob.append(turn.logprob)
            logprob_sampled.append(turn.logprob_sampled)
            entropy.append(turn.entropy)
            zeros(len(turn.observation))
        return Path(
            tokens=np.concatenate(tokens),
            sampled=np.concatenate(sampled),
            own=np.concatenate(own),
            node=np.concatenate(node),
            logprob=np.concatenate(logprob),
            logprob_sampled=np.concatenate(logprob_sampled),
            entropy=np.concatenate(entropy),
        )
