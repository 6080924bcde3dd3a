"""How the time of a step and the memory of a run grow.

    python benchmarks/growth.py results/warmstarts/agentbench_db/warm0 --plot growth.svg

Run it where `config/` lies; a trial: `--size 1 --rounds 1 --steps 30`. Real engine and environment,
one thread. Each part has four points, 1, 2, 4 and 8 times the smallest; each round times every
point once, and medians count:

- rollouts: drawing, against rollouts per task;
- tasks: drawing, against the number of tasks;
- branches: drawing, against the branches of each anchor, a middle turn of a long root;
- model: a whole step (drawing and update), against the weights of a random policy, whose every
  turn is drawn to the token limit, so that all sizes do the same work;
- memory: resident memory of this process over the training steps of a toy run.

The exponent is the least-squares slope of log CPU seconds over log size: 1 is linear; less means a
fixed cost that the larger points share.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from rail.config import PolicyConfig, TrainConfig, UpdateConfig
from rail.envs.base import Benchmark, Task
from rail.grpo.update import Updater
from rail.policy.actor import Actor, open_actor
from rail.policy.loading import load_policy, save_policy
from rail.policy.tiny import build_model
from rail.policy.warmstart import build_warm_start
from rail.rollout.engine import Engine, Expansion, Forest
from rail.runs import benchmark_config, load_benchmark, load_config, resolve
from rail.seeding import generator
from rail.trainer import Trainer

FACTORS = (1, 2, 4, 8)
WIDTHS = (128, 192, 256, 384)  # hidden; 0.6, 1.2, 2.1 and 4.7 million weights; feed-forward twice
LINEAR = 0.15  # an exponent this close to 1 is called linear
SHOWN = (50, 100, 200, 300)
TOY = """
scale: toy
benchmarks: [toy]
policy: {hidden: 32, layers: 1, heads: 2, feed_forward: 32, vocabulary: 400, max_tokens: 64,
  max_turn_tokens: 4, slots: 16}
warm_start: {count: 1, demonstrations: 200, steps: 40, batch: 16, warmup: 4}
train: {tasks_per_step: 2, rollouts_per_task: 16, validate_every: 50, validation_tasks: 8,
  learning_rate: 0.003, steps: STEPS}
"""
"""The run of the memory part: some 50 ms a step."""


class Point(NamedTuple):
    """One size of one part: `run` is timed and returns the tokens it made."""

    size: float
    prepare: Callable[[], Any]
    run: Callable[[Any], int]


Curve = tuple[str, list[float], list[float], float]  # name, sizes, median CPU seconds, exponent


def measure(name: str, unit: str, points: list[Point], rounds: int) -> Curve:
    """Time the points in turn; print each, and the exponent."""
    times, tokens = np.zeros((len(points), rounds, 2)), [0] * len(points)
    points[0].run(points[0].prepare())  # first use of each path
    for number in range(rounds):
        for index, point in enumerate(points):
            ready = point.prepare()
            wall, cpu = time.perf_counter(), time.process_time()
            tokens[index] = point.run(ready)
            times[index, number] = time.perf_counter() - wall, time.process_time() - cpu
    walls, cpus = np.median(times, axis=1).T.tolist()
    print(f"{name}: against {unit}")
    for index, point in enumerate(points):
        spread = times[index, :, 1]
        print(
            f"  {point.size:10.0f}  {walls[index]:8.3f} s wall  {cpus[index]:8.3f} s CPU "
            f"({spread.min():.3f}-{spread.max():.3f})  {tokens[index]:8d} tokens"
        )
    sizes = [point.size for point in points]
    exponent = float(np.polyfit(np.log(sizes), np.log(cpus), 1)[0])
    side = "less than" if exponent < 1.0 else "more than"
    linear = "about" if abs(exponent - 1.0) <= LINEAR else side
    print(f"  exponent {exponent:.2f}: {linear} linear")
    return name, sizes, cpus, exponent


def draw(engine: Engine, tasks: list[Task], rollouts: int, keep: bool = False) -> Forest:
    """Draw one group per task."""
    forest = Forest()
    engine.plant(forest, tasks)
    streams = [[("growth", task.id, child) for child in range(rollouts)] for task in tasks]
    engine.expand(forest, [Expansion(i, s, keep=keep) for i, s in enumerate(streams)])
    return forest


def generated(forest: Forest) -> int:
    """Return the tokens that the policy drew."""
    return sum(len(turn.action) for tree in forest.trees for turn in tree.turns)


def drawing(engine: Engine, tasks: list[Task], rollouts: int, size: float) -> Point:
    """Return a point that draws groups."""
    return Point(size, lambda: None, lambda _: generated(draw(engine, tasks, rollouts)))


def branching(engine: Engine, tasks: list[Task], rollouts: int, branches: int) -> Point:
    """Return a point that draws branches at one middle anchor per task."""

    def prepare() -> tuple[Forest, list[Expansion]]:
        forest, expansions = draw(engine, tasks, rollouts, keep=True), []
        for index, tree in enumerate(forest.trees):
            turns = [len(rollout.turns) for rollout in tree.trajectories]
            longest = turns.index(max(turns))
            if turns[longest] > 1:
                streams = [("branch", tree.task.id, child) for child in range(branches)]
                middle = turns[longest] // 2
                expansions.append(Expansion(index, streams, rollout=longest, turn=middle))
        return forest, expansions

    def run(ready: tuple[Forest, list[Expansion]]) -> int:
        forest, expansions = ready
        before = generated(forest)
        engine.expand(forest, expansions)
        forest.close()
        return generated(forest) - before

    return Point(branches, prepare, run)


def whole_step(actor: Actor, benchmark: Benchmark, tasks: list[Task], rollouts: int) -> Point:
    """Return a point that draws groups and updates on them, at a learning rate of 0.

    A random policy never wins, so every other rollout is said to be better than its group.
    """
    engine = Engine(actor.sampler, actor.chat, benchmark, 0)
    native = actor.backend == "native"
    updater = Updater(actor.model, TrainConfig(learning_rate=0.0), UpdateConfig(), native)

    def run(_: None) -> int:
        forest = draw(engine, tasks, rollouts)
        signs = [np.resize([1.0, -1.0], len(tree.retained())) for tree in forest.trees]
        updater.step(forest.trees, signs, generator(0, "growth"))
        actor.sampler.decoder.load_weights()
        return generated(forest)

    return Point(actor.model.num_parameters(), lambda: None, run)


def models(policy: Path, base: PolicyConfig, folder: Path) -> list[Actor]:
    """Return actors of random policies, eight times as many weights from first to last."""
    tokenizer: Any = load_policy(policy)[1].tokenizer
    actors = []
    for width in WIDTHS:
        sizes = base.model_copy(update={"hidden": width, "feed_forward": 2 * width})
        target = folder / str(width)
        save_policy(build_model(sizes, tokenizer, 0), tokenizer, target)
        actors.append(open_actor(target, sizes))
        actors[-1].sampler.end_id = -1  # no token ends a turn
    return actors


def memory(steps: int, folder: Path) -> None:
    """Print the resident memory over a toy run, and its slope after the first sixth."""
    path = folder / "toy.yaml"
    path.write_text(TOY.replace("STEPS", str(steps)))
    config = load_config(["config/default.yaml", path])
    toy = load_benchmark("toy", benchmark_config(config, "toy"))
    build_warm_start(toy, config.policy, config.warm_start, 0, folder / "warm", lambda line: None)
    trainer = Trainer(resolve(config, "toy", "rail", 1000), folder / "warm", None)
    process, kib = psutil.Process(), []
    print(f"memory: resident, {steps} training steps of the toy benchmark, method rail")
    for step in range(steps):
        trainer.step(step)
        kib.append(process.memory_info().rss / 1024)
        if step + 1 in SHOWN or step + 1 == steps:
            print(f"  step {step + 1:4d}  {kib[-1] / 1024:8.1f} MiB  {trainer.method.phase}")
    first = steps // 6
    found = np.polyfit(np.arange(first, steps), kib[first:], 1)[0]
    print(f"  slope from step {first} on: {found:.2f} KiB per step")


def plot(curves: list[Curve], out: Path) -> None:
    """Draw one log-log panel per part, with a linear one for the eye."""
    from rail.plotting.theme import MUTED, look, new_figure, save_figure, style

    with style():
        figure, axes = new_figure(columns=len(curves), height=2.6, width=2.4 * len(curves))
        mark = look("rail")
        for axis, (name, sizes, cpu, exponent) in zip(axes, curves, strict=True):
            linear = [cpu[0] * size / sizes[0] for size in sizes]
            axis.loglog(sizes, linear, color=MUTED, ls=":", lw=1.0)
            axis.loglog(sizes, cpu, color=mark.color, marker=mark.marker)
            axis.set_title(f"{name}: {exponent:.2f}")
            axis.minorticks_off()
            axis.set_xticks(sizes, [f"{s / 1e6:.1f} M" if s > 1e5 else f"{s}" for s in sizes])
            axis.set_yticks(cpu, [f"{seconds:.2g}" for seconds in cpu])
            axis.set_xlabel("weights" if name == "model" else name)
        axes[0].set_ylabel("CPU seconds")
        save_figure(figure, out.with_suffix(""))


def main() -> None:
    """Measure the parts asked for."""
    parts = ("rollouts", "tasks", "branches", "model", "memory")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", type=Path)
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=8, help="smallest number, at most 16")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--plot", type=Path, help="writes this .svg, and a .pdf beside it")
    arguments = parser.parse_args()
    size, rounds = arguments.size, arguments.rounds
    config = load_config(["config/default.yaml"])
    benchmark = load_benchmark("agentbench_db", benchmark_config(config, "agentbench_db"))
    pool, curves = benchmark.panel("train"), []
    actor = open_actor(arguments.policy, config.policy)
    engine, tasks = Engine(actor.sampler, actor.chat, benchmark, 0), pool[:size]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "memory" in arguments.parts:  # first, before the others have grown the heap
            memory(arguments.steps, folder)
        if "rollouts" in arguments.parts:
            points = [drawing(engine, tasks, size * f, size * f) for f in FACTORS]
            curves.append(measure("rollouts", f"rollouts of {size} tasks each", points, rounds))
        if "tasks" in arguments.parts:
            points = [drawing(engine, pool[: size * f], size, size * f) for f in FACTORS]
            curves.append(measure("tasks", f"tasks, {size} rollouts each", points, rounds))
        if "branches" in arguments.parts:
            points = [branching(engine, tasks, 8, size * f) for f in FACTORS]
            curves.append(measure("branches", f"branches of {size} anchors", points, rounds))
        if "model" in arguments.parts:
            actors = models(arguments.policy, config.policy, folder)
            points = [whole_step(actor, benchmark, tasks, size) for actor in actors]
            curves.append(measure("model", f"weights, {size} x {size} rollouts", points, rounds))
    if arguments.plot and curves:
        plot(curves, arguments.plot)


if __name__ == "__main__":
    main()
