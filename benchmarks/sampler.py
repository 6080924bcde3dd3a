"""Sampling against `generate()` of the same model, alternated in one process on one thread.

    python benchmarks/sampler.py results/warmstarts/agentbench_db/warm0

Every round runs each candidate once; a ratio is taken within a round, median over the rounds,
lowest and highest in brackets. Parts: multi-turn rollouts in the real environment, pure decoding
from equal prompts, the kernel's decode step against the matrix products in it alone, and the
tokens that a branch of m = 8 at a middle anchor computes.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from rail.config import PolicyConfig
from rail.envs.base import Benchmark, Task
from rail.policy.actor import open_actor
from rail.policy.decoder import Decoder, Entries
from rail.policy.kernel.decoder import NativeDecoder
from rail.policy.torch_decoder import TorchDecoder
from rail.rollout.engine import Engine, Expansion, Forest
from rail.runs import benchmark_config, load_benchmark, load_config

GROUP, NEW_TOKENS = 8, 32


def ours(engine: Engine, tasks: list[Task]) -> Forest:
    """Draw groups of 8 with the product's engine."""
    forest = Forest()
    engine.plant(forest, tasks)
    engine.expand(
        forest,
        [
            Expansion(i, [("bench", task.id, child) for child in range(GROUP)], keep=True)
            for i, task in enumerate(tasks)
        ],
    )
    return forest


@torch.no_grad()
def generate_per_turn(model: Any, engine: Engine, tasks: list[Task]) -> None:
    """Draw the same groups with one `generate()` per turn over all that are still running."""
    chat, benchmark = engine.chat, engine.benchmark
    running = [
        (benchmark.make(task), chat.encode_prompt(task.prompt).tolist())
        for task in tasks
        for _ in range(GROUP)
    ]
    limit = engine.sampler.max_turn_tokens
    while running:
        width = max(len(ids) for _, ids in running)
        ids = torch.full((len(running), width), chat.end_id)
        mask = torch.zeros_like(ids)
        for row, (_, tokens) in enumerate(running):
            ids[row, width - len(tokens) :] = torch.tensor(tokens)
            mask[row, width - len(tokens) :] = 1
        out = model.generate(
            ids,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            top_p=1.0,
            max_new_tokens=limit,
            eos_token_id=chat.end_id,
            pad_token_id=chat.end_id,
        )
        running = [
            kept for row, at in enumerate(running) if (kept := _act(chat, at, out[row, width:]))
        ]


def _act(chat: Any, at: tuple[Any, list[int]], new: torch.Tensor) -> tuple[Any, list[int]] | None:
    env, tokens = at
    action = new.tolist()
    if chat.end_id in action:
        action = action[: action.index(chat.end_id) + 1]
    result = env.step(chat.decode_action(action))
    following = [*tokens, *action, *chat.encode_observation(result.observation).tolist()]
    if result.done or len(following) > 200:
        env.close()
        return None
    return env, following


def decode(kind: type[Decoder], model: Any, batch: int, prompt: list[int]) -> None:
    """Decode NEW_TOKENS greedily for `batch` rows from one prompt each."""
    decoder = kind(model, batch, 256)
    rows = list(range(batch))
    hidden = decoder.step(Entries.of([(row, 0, prompt) for row in rows]))
    for position in range(len(prompt), len(prompt) + NEW_TOKENS):
        tokens = decoder.logits(hidden).argmax(-1).tolist()
        hidden = decoder.step(Entries.of([(r, position, tokens[r : r + 1]) for r in rows]))


@torch.no_grad()
def decode_generate(model: Any, batch: int, prompt: list[int]) -> None:
    """Decode the same with `generate()`."""
    ids = torch.tensor([prompt] * batch)
    model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        min_new_tokens=NEW_TOKENS,
        max_new_tokens=NEW_TOKENS,
        pad_token_id=0,
    )


def alternate(runs: dict[str, Callable[[], Any]], rounds: int, amount: float, unit: str) -> None:
    """Time the runs in turn; print rates, and ratios of each earlier run's time to this one's."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    names = list(seconds)
    for place, name in enumerate(names):
        ratios = "".join(
            f"  x{ratio(seconds[other], seconds[name])} of {other}" for other in names[:place]
        )
        print(f"  {name:22s} {amount / statistics.median(seconds[name]):8.0f} {unit}/s{ratios}")


def ratio(slow: list[float], fast: list[float]) -> str:
    """Return the median ratio of times of equal rounds, lowest and highest in brackets."""
    found = [a / b for a, b in zip(slow, fast, strict=True)]
    return f"{statistics.median(found):.2f} ({min(found):.2f}-{max(found):.2f})"


def against_products(model: Any, prompt: list[int], rounds: int) -> None:
    """Print which share of a decode step, keys 32 to 63 long, its matrix products alone take."""
    config = model.config
    hidden, inner = config.hidden_size, config.intermediate_size
    heads = config.head_dim * config.num_attention_heads
    rows_of = [(3 * heads, hidden), (hidden, heads), (2 * inner, hidden), (hidden, inner)]
    weights = [torch.randn(shape) for shape in rows_of] * config.num_hidden_layers
    weights.append(torch.randn(config.vocab_size, hidden))
    for slots in (16, 32, 48, 64):
        decoder = NativeDecoder(model, slots, 64)
        decoder.step(Entries.of([(row, 0, (prompt * 2)[:31]) for row in range(slots)]))
        inputs = [torch.randn(slots, weight.shape[1]) for weight in weights]
        shares = []
        for _ in range(rounds):
            steps, floors = [], []
            for position in range(31, 63):
                entries = Entries.of([(row, position, [5]) for row in range(slots)])
                started = time.perf_counter()
                decoder.logits(decoder.step(entries))
                between = time.perf_counter()
                for x, weight in zip(inputs, weights, strict=True):
                    torch.mm(x, weight.T)
                steps.append(between - started)
                floors.append(time.perf_counter() - between)
            shares.append(statistics.median(floors) / statistics.median(steps))
        share = f"{statistics.median(shares):.0%} ({min(shares):.0%}-{max(shares):.0%})"
        print(f"  {slots} slots: torch's products alone take {share} of the kernel's step")


def branch_tokens(engine: Engine, forest: Forest) -> None:
    """Print what a branch of m = 8 at a middle anchor computes."""
    tree = forest.trees[0]
    rollout = max(range(GROUP), key=lambda i: len(tree.trajectories[i].turns))
    turn = len(tree.trajectories[rollout].turns) // 2
    before = engine.sampler.decoder.tokens_computed
    streams = [("branch", child) for child in range(8)]
    (drawn,) = engine.expand(forest, [Expansion(0, streams, rollout=rollout, turn=turn)])
    computed = engine.sampler.decoder.tokens_computed - before
    own, shared = 0, 0
    for index in drawn:
        turns = [tree.turns[i] for i in tree.trajectories[index].turns]
        own += sum(len(t.action) + len(t.observation) for t in turns[turn:]) - 1
        shared += len(tree.prompt) + sum(len(t.action) + len(t.observation) for t in turns[:turn])
    print(f"branch of m = 8 at boundary {turn}: {computed} tokens computed, {own} of its own")
    print(f"  {shared} prefix tokens were laid into rows and not computed again")


def main() -> None:
    """Parse arguments and print the three parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rollouts", type=int, default=512)
    arguments = parser.parse_args()
    config = load_config(["config/default.yaml"])
    benchmark: Benchmark = load_benchmark(
        "agentbench_db", benchmark_config(config, "agentbench_db")
    )
    tasks = benchmark.panel("train")[: arguments.rollouts // GROUP]
    engines = {}
    for backend in ("torch", "native"):
        policy = PolicyConfig(backend=backend, slots=config.policy.slots)
        actor = open_actor(arguments.policy, policy)
        engines[actor.backend] = Engine(actor.sampler, actor.chat, benchmark, 0)
        model = actor.model
    print(f"{arguments.rollouts} multi-turn rollouts, one thread")
    runs: dict[str, Callable[[], Any]] = {
        "generate() per turn": lambda: generate_per_turn(model, engines["torch"], tasks)
    }
    for name, engine in engines.items():
        runs[f"rail, {name}"] = lambda engine=engine: ours(engine, tasks)
    alternate(runs, arguments.rounds, arguments.rollouts, "rollouts")
    prompt = engines["torch"].chat.encode_prompt(tasks[0].prompt).tolist()
    for batch in (16, 64):
        print(f"pure decoding, {NEW_TOKENS} new tokens, batch {batch}")
        runs = {
            "generate()": lambda batch=batch: decode_generate(model, batch, prompt),
            "rail, torch": lambda batch=batch: decode(TorchDecoder, model, batch, prompt),
        }
        if "native" in engines:
            runs["rail, native"] = lambda batch=batch: decode(NativeDecoder, model, batch, prompt)
        alternate(runs, arguments.rounds, batch * NEW_TOKENS, "tokens")
    if "native" in engines:
        print("a decode step of the kernel against its matrix products")
        against_products(model, prompt, arguments.rounds)
    engine = engines[min(engines)]
    branch_tokens(engine, ours(engine, tasks))


if __name__ == "__main__":
    main()
