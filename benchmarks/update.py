"""Seconds, memory and gradient of one policy update: prefix tree against padded rows.

Run: python benchmarks/update.py [--threads 1] [--rounds 5]

The batch resembles a step on the embedded benchmark: 8 groups of 8 roots and 8 branches whose
siblings often repeat each other's turns. CPU seconds of this process, both layouts alternating, the
best round counts. Memory is what one update adds to the resident memory at its peak (Linux only).
"""

import argparse
import logging
import math
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from rail.config import PolicyConfig, TrainConfig, UpdateConfig
from rail.envs.base import Task
from rail.grpo.batch import training_rows
from rail.grpo.forward import plan_microbatches
from rail.grpo.update import Updater
from rail.policy.prefix_tree import prefix_tree
from rail.rollout.tree import Trajectory, Tree, Turn
from rail.seeding import generator, seed_of

VOCABULARY = 600
Layout = Literal["tree", "padded"]


def group(index: int, roots: int, branches: int) -> Tree:
    """One task: about 85 tokens a trajectory, 3 to 5 turns, each turn one of a few likely ones."""
    rng = generator(0, "benchmark", index)
    tree = Tree(Task(f"t{index}", "kind", "", {}), rng.integers(10, VOCABULARY, size=22))
    known: dict[tuple[tuple[int, ...], int], tuple[np.ndarray, np.ndarray]] = {}

    def grow(prefix: tuple[int, ...], first: int, last: int) -> list[int]:
        for turn in range(first, last):
            choice = min(int(rng.geometric(0.5)) - 1, 5)
            if (prefix, choice) not in known:
                action = rng.integers(10, VOCABULARY, size=int(rng.integers(7, 14)))
                observation = rng.integers(10, VOCABULARY, size=int(rng.integers(4, 10)))
                known[prefix, choice] = (action, observation)
            action, observation = known[prefix, choice]
            plain = np.full(len(action), -math.log(VOCABULARY), dtype=np.float32)
            nothing = np.zeros(1, dtype=np.float32)
            end = observation[:0] if turn == last - 1 else observation
            tree.turns.append(
                Turn(turn, action, end, plain, plain, plain, nothing, nothing, "", False)
            )
            prefix = (*prefix, choice)
        return list(range(len(tree.turns) - (last - first), len(tree.turns)))

    def reward() -> float:
        return float(rng.random() < 0.4)

    for _ in range(roots):
        tree.trajectories.append(Trajectory(grow((), 0, int(rng.integers(3, 6))), reward=reward()))
    for child in range(branches):
        parent = int(rng.integers(roots))
        turns = tree.trajectories[parent].turns
        boundary = int(rng.integers(1, len(turns)))
        own = grow((-1 - child, boundary), boundary, max(boundary + 1, int(rng.integers(3, 6))))
        tree.trajectories.append(
            Trajectory(turns[:boundary] + own, parent, boundary, "live", reward=reward())
        )
    return tree


def policy() -> Qwen3ForCausalLM:
    """The embedded architecture with random weights."""
    shape = PolicyConfig()
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=VOCABULARY,
            hidden_size=shape.hidden,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.heads,
            head_dim=shape.hidden // shape.heads,
            intermediate_size=shape.feed_forward,
            tie_word_embeddings=True,
        )
    )
    noise = torch.Generator().manual_seed(seed_of(0, "benchmark", "weights"))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.02, generator=noise)
    return model


def timed(trees: list[Tree], update: UpdateConfig) -> tuple[float, torch.Tensor]:
    """Return the CPU seconds of one update and its last gradient (Adam's moment at beta1 = 0)."""
    updater = Updater(policy(), TrainConfig(betas=(0.0, 0.95)), update)
    started = time.process_time()
    updater.step(trees, [None] * len(trees), generator(0, "order"))
    seconds = time.process_time() - started
    moments = updater.state_dict()["optimizer"]["state"].values()
    return seconds, torch.cat([moment["exp_avg"].flatten() for moment in moments])


def peak(layout: Layout, microbatch: int) -> float:
    """Return the MiB that one update adds to the peak of this process."""
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # the made-up rollouts are not the random policy's
    trees = [group(index, 8, 8) for index in range(8)]
    config = UpdateConfig(packing=layout, microbatch_tokens=microbatch)
    timed(trees[:1], config.model_copy(update={"microbatch_tokens": 1}))  # imports, moments
    Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to the present
    before = resident_peak()
    timed(trees, config)
    return resident_peak() - before


def resident_peak() -> float:
    """Return the highest resident memory of this process so far, MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def describe(trees: list[Tree]) -> int:
    """Print what the batch is made of; return its tokens."""
    rows = []
    for task, tree in enumerate(trees):
        rollouts = tree.retained()
        rows += training_rows(task, tree, rollouts, np.ones(len(rollouts)), UpdateConfig())
    tokens = sum(len(row.tokens) for row in rows)
    nodes = 0
    for part in plan_microbatches(rows, UpdateConfig()):
        nodes += len(prefix_tree([rows[i].tokens for i in part]).tokens)
    trained = sum(int(row.trained.sum()) for row in rows)
    print(
        f"{len(rows)} rows, {tokens} tokens ({tokens / len(rows):.0f} a row), {trained} trained, "
        f"{nodes} nodes ({nodes / tokens:.2f} a token)"
    )
    return tokens


def main() -> None:
    """Print one line per layout and microbatch size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    logging.disable(logging.WARNING)
    trees = [group(index, 8, 8) for index in range(8)]
    tokens = describe(trees)
    layouts: tuple[Layout, ...] = ("padded", "tree")
    best: dict[tuple[Layout, int], float] = {
        (layout, size): math.inf for layout in layouts for size in (1500, 3000, 6000)
    }
    for _ in range(arguments.rounds):
        for layout, size in best:
            config = UpdateConfig(packing=layout, microbatch_tokens=size)
            best[layout, size] = min(best[layout, size], timed(trees, config)[0])
    base = min(seconds for (layout, _), seconds in best.items() if layout == "padded")
    for (layout, size), seconds in best.items():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
            memory = child.submit(peak, layout, size).result()
        print(
            f"{layout:7s} {size:5d}  {seconds:.3f} s  {tokens / seconds:7.0f} tok/s  "
            f"{base / seconds:.2f} x best padded  {memory:4.0f} MiB"
        )
    one = UpdateConfig(minibatches=1, packing="padded")
    want = timed(trees, one)[1]
    got = timed(trees, one.model_copy(update={"packing": "tree"}))[1]
    print(f"relative difference of the gradients {((got - want).norm() / want.norm()).item():.1e}")


if __name__ == "__main__":
    main()
