"""One policy update by prefix tree against the padded path, alternated in one run.

    python benchmarks/update.py
    python benchmarks/update.py --memory                       # MiB of every layout and size too
    python benchmarks/update.py --rounds 1 --tasks 2 --sizes 1000 3000             # a trial

Three layouts: padded rows, the prefix tree with torch's attention, and the tree walked by the
compiled kernel. Two made-up batches: `uniform`, 16 groups of 8 roots, and `branched`, 8 groups of 8
roots and 8 branches; siblings often repeat each other's turns, as on the embedded benchmark.

Each round times every layout at every microbatch size once, in CPU seconds of this process on one
thread. A ratio is padded over tree within a round: median over the rounds, lowest and highest in
brackets. Memory is what one update adds to the resident memory at its peak (Linux only).
"""

import argparse
import logging
import math
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from rail.config import PolicyConfig, TrainConfig, UpdateConfig
from rail.envs.base import Task
from rail.grpo.batch import training_rows
from rail.grpo.forward import plan_microbatches
from rail.grpo.update import Updater
from rail.policy.kernel.build import unsupported
from rail.policy.prefix_tree import prefix_tree
from rail.rollout.tree import Trajectory, Tree, Turn
from rail.seeding import generator, seed_of

VOCABULARY = 600
EQUAL, EQUAL_TARGET = 3000, 1.8
"""Microbatch tokens at which layouts are compared like for like; ratio wanted on `uniform`."""

BEST_TARGET = 1.6
"""Ratio wanted with each layout at its own best microbatch size."""

Packing = Literal["tree", "padded"]
LAYOUTS: dict[str, tuple[Packing, bool]] = {
    "padded": ("padded", False),
    "tree": ("tree", False),
    "tree, kernel": ("tree", True),
}
"""Packing, and whether the compiled kernel attends."""

WORKLOADS = {"uniform": (16, 8, 0), "branched": (8, 8, 8)}
"""Tasks, roots and branches of each batch."""

Seconds = dict[tuple[str, int], list[float]]
"""Of each layout and microbatch size, one figure a round."""


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


def batch(tasks: int, roots: int, branches: int) -> list[Tree]:
    """Return the groups of one batch."""
    return [group(index, roots, branches) for index in range(tasks)]


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


def timed(
    trees: list[Tree], layout: str, microbatch: int, minibatches: int = 2
) -> tuple[float, torch.Tensor]:
    """Return the CPU seconds of one update and its last gradient (Adam's moment at beta1 = 0)."""
    packing, native = LAYOUTS[layout]
    config = UpdateConfig(
        packing=packing, microbatch_tokens=microbatch, minibatches=minibatches, max_grad_norm=1e9
    )
    updater = Updater(policy(), TrainConfig(betas=(0.0, 0.95)), config, native)
    started = time.process_time()
    updater.step(trees, [None] * len(trees), generator(0, "order"))
    seconds = time.process_time() - started
    moments = updater.state_dict()["optimizer"]["state"].values()
    return seconds, torch.cat([moment["exp_avg"].flatten() for moment in moments])


def peak(workload: tuple[int, int, int], layout: str, microbatch: int) -> float:
    """Return the MiB that one update adds to the peak of this process."""
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # the made-up rollouts are not the random policy's
    trees = batch(*workload)
    timed(trees[:1], layout, 1)  # imports, moments
    Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to the present
    before = resident_peak()
    timed(trees, layout, microbatch)
    return resident_peak() - before


def memory(workload: tuple[int, int, int], layout: str, microbatch: int) -> str:
    """Return `peak` of a process of its own, as text."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
        return f"  {child.submit(peak, workload, layout, microbatch).result():5.0f} MiB"


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
        f"  {len(rows)} rows, {tokens} tokens ({tokens / len(rows):.0f} a row), {trained} trained, "
        f"{nodes} nodes ({nodes / tokens:.2f} a token)"
    )
    return tokens


def rounds(trees: list[Tree], layouts: list[str], sizes: list[int], count: int) -> Seconds:
    """Time every layout at every size once a round, layouts in turn."""
    seconds: Seconds = {(layout, size): [] for size in sizes for layout in layouts}
    for layout in layouts:
        timed(trees[:1], layout, EQUAL)  # first use of each path
    for _ in range(count):
        for (layout, size), values in seconds.items():
            values.append(timed(trees, layout, size)[0])
    return seconds


def ratio(padded: list[float], other: list[float], target: float | None) -> str:
    """Return padded over other, round by round, as text."""
    found = [a / b for a, b in zip(padded, other, strict=True)]
    middle = statistics.median(found)
    text = f"{middle:.2f} x ({min(found):.2f}-{max(found):.2f})"
    if target is None:
        return text
    return f"{text}, target {target} x {'met' if middle >= target else 'missed'}"


def compare(name: str, seconds: Seconds, layouts: list[str], sizes: list[int]) -> None:
    """Print both ratios of each tree layout."""
    best = {
        layout: min(sizes, key=lambda size: statistics.median(seconds[layout, size]))
        for layout in layouts
    }
    base = seconds["padded", best["padded"]]
    for layout in layouts[1:]:
        if EQUAL in sizes:
            target = EQUAL_TARGET if name == "uniform" else None
            text = ratio(seconds["padded", EQUAL], seconds[layout, EQUAL], target)
            print(f"  {layout:12s} at {EQUAL} tokens, like padded: {text}")
        text = ratio(base, seconds[layout, best[layout]], BEST_TARGET)
        chosen = f"{best[layout]}, padded at {best['padded']}"
        print(f"  {layout:12s} each at its own best, {chosen}: {text}")


def gradients(trees: list[Tree], layouts: list[str]) -> None:
    """Print how far the gradients of the whole batch are from those of the padded path."""
    want = timed(trees, layouts[0], EQUAL, minibatches=1)[1]
    for layout in layouts[1:]:
        got = timed(trees, layout, EQUAL, minibatches=1)[1]
        gap = ((got - want).norm() / want.norm()).item()
        print(f"  {layout:12s} relative difference of the gradient {gap:.1e}")


def workload(name: str, shape: tuple[int, int, int], layouts: list[str], arguments: Any) -> None:
    """Print all figures of one batch."""
    trees = batch(*shape)
    print(f"{name}: {shape[0]} tasks, each {shape[1]} roots and {shape[2]} branches")
    tokens = describe(trees)
    seconds = rounds(trees, layouts, arguments.sizes, arguments.rounds)
    for (layout, size), values in seconds.items():
        middle = statistics.median(values)
        print(
            f"  {layout:12s} {size:5d}  {middle:.3f} s ({min(values):.3f}-{max(values):.3f})"
            f"  {tokens / middle:7.0f} tok/s"
            + (memory(shape, layout, size) if arguments.memory else "")
        )
    compare(name, seconds, layouts, arguments.sizes)
    gradients(trees, layouts)


def main() -> None:
    """Print both batches."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 1500, 3000, 6000])
    parser.add_argument("--tasks", type=int, help="groups of each batch, for a trial")
    parser.add_argument("--memory", action="store_true", help="measure memory too")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # the made-up rollouts are not the random policy's
    layouts = list(LAYOUTS)
    if reason := unsupported():
        print(f"without the compiled kernel: {reason}")
        layouts.remove("tree, kernel")
    for name, (tasks, roots, branches) in WORKLOADS.items():
        workload(name, (arguments.tasks or tasks, roots, branches), layouts, arguments)


if __name__ == "__main__":
    main()
