"""Small groups and a tiny policy for the tests of the update."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from rail.config import UpdateConfig
from rail.envs.base import Task
from rail.grpo.batch import training_rows
from rail.grpo.forward import packing, token_logprobs
from rail.rollout.tree import Trajectory, Tree, Turn
from rail.seeding import generator

VOCABULARY = 40


def turn(index: int, action: Sequence[int], observation: Sequence[int] = ()) -> Turn:
    """A turn whose sampling-time figures are minus the token over 10, 20 and 5."""
    tokens = np.array(action, dtype=np.int64)
    plain = (-tokens / 10).astype(np.float32)
    return Turn(
        index=index,
        action=tokens,
        observation=np.array(observation, dtype=np.int64),
        logprob=plain,
        logprob_sampled=(plain / 2).astype(np.float32),
        entropy=(plain * -2).astype(np.float32),
        hidden=np.zeros(2, dtype=np.float32),
        state=np.zeros(2, dtype=np.float32),
        text="",
        error=False,
    )


def branched_tree(rewards: Sequence[float] = (1.0, 0.0, 0.0), name: str = "t0") -> Tree:
    """Prompt 1 2; roots 0 = [3 4|5][6 7], 1 = [9 3]; branch 2 of 0 at turn 1 = [3 4|5][8]."""
    tree = Tree(Task(name, "kind", "", {}), np.array([1, 2]))
    tree.turns = [turn(0, [3, 4], [5]), turn(1, [6, 7]), turn(0, [9, 3]), turn(1, [8])]
    tree.trajectories = [
        Trajectory([0, 1], reward=rewards[0]),
        Trajectory([2], reward=rewards[1]),
        Trajectory([0, 3], parent=0, branch_turn=1, origin="live", reward=rewards[2]),
    ]
    return tree


def random_tree(seed: int, roots: int, branches: int, rewards: Sequence[float] = ()) -> Tree:
    """Roots that often repeat each other's turns, then branches at random boundaries."""
    rng = generator(seed, "random_tree")
    tree = Tree(Task(f"t{seed}", "kind", "", {}), rng.integers(1, VOCABULARY, size=4))
    menu = [
        [rng.integers(1, VOCABULARY, size=int(n)) for n in rng.integers(1, 6, size=2)]
        for _ in range(3)
    ]

    def grow(first: int, last: int) -> list[int]:
        for index in range(first, last):
            action, observation = menu[int(rng.integers(len(menu)))]
            tree.turns.append(turn(index, action.tolist(), observation.tolist()))
        return list(range(len(tree.turns) - (last - first), len(tree.turns)))

    for _ in range(roots):
        tree.trajectories.append(Trajectory(grow(0, int(rng.integers(1, 5)))))
    for _ in range(branches):
        parent = int(rng.integers(len(tree.trajectories)))
        shared = tree.trajectories[parent].turns
        boundary = int(rng.integers(len(shared))) if len(shared) > 1 else 0
        own = grow(boundary, boundary + int(rng.integers(1, 3)))
        tree.trajectories.append(
            Trajectory(shared[:boundary] + own, parent=parent, branch_turn=boundary, origin="live")
        )
    for i, trajectory in enumerate(tree.trajectories):
        trajectory.reward = rewards[i] if i < len(rewards) else float(rng.integers(2))
    return tree


def tiny_policy(kind: str = "qwen3", key_value_heads: int = 4, seed: int = 0) -> PreTrainedModel:
    """A random Qwen3 or Llama; weights large enough for log-probabilities to differ."""
    shape: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": key_value_heads,
        "head_dim": 16,
        "intermediate_size": 48,
        "max_position_embeddings": 128,
    }
    if kind == "qwen3":
        model: PreTrainedModel = Qwen3ForCausalLM(Qwen3Config(**shape, tie_word_embeddings=True))
    else:
        model = LlamaForCausalLM(LlamaConfig(**shape, tie_word_embeddings=False))
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.2, generator=noise)
    return model.eval()


def record(model: nn.Module, tree: Tree) -> Tree:
    """Write the model's own log-probabilities into the tree, as if it had sampled the turns."""
    config = UpdateConfig(packing="padded")
    for rollout, trajectory in enumerate(tree.trajectories):
        rows = training_rows(0, tree, [rollout], np.ones(1), config)
        with torch.no_grad(), packing(model, config):
            logprob = token_logprobs(model, rows, config).logprob.numpy()
        for index in trajectory.turns:
            length = len(tree.turns[index].action)
            tree.turns[index].logprob, logprob = logprob[:length].copy(), logprob[length:]
    return tree
