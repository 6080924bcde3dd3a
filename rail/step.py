"""One training step of any method: roots, branches, fill, selection, update, learning."""

import resource
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rail.errors import EnvError
from rail.grpo.update import UpdateResult
from rail.methods.base import Allocation, Branch, StepContext
from rail.rollout.engine import Expansion, Forest
from rail.rollout.ledger import Bill, Budget, bill
from rail.rollout.rows import group_shares, on_policy_entropy, rollout_rows, turn_rows
from rail.seeding import generator
from rail.traces.schema import TABLES

if TYPE_CHECKING:
    from rail.trainer import Trainer

Rows = dict[str, list[dict[str, Any]]]


class Step:
    """One step of `trainer`."""

    def __init__(self, trainer: "Trainer", step: int) -> None:
        """Take the step's tasks and open its budget."""
        self._t, self._step = trainer, step
        self._method, self._config = trainer.method, trainer.train
        budget = self._method.budget(step)
        whole = self._config.tasks_per_step * self._config.rollouts_per_task
        self._budget = Budget(whole if budget is None else budget)
        self._forest = Forest()
        tasks = trainer.take_tasks(step)
        self._context = StepContext(step, self._config.steps, tasks, self._budget.left)
        self._context.trees = self._forest.trees
        self._drawn_tasks: Counter[str] = Counter()
        self._seconds = dict.fromkeys(("decide", "fit", "update"), 0.0)

    def run(self) -> Rows:
        """Make the step; return the rows that it adds to each table."""
        trainer, method, context = self._t, self._method, self._context
        wall, cpu = time.perf_counter(), time.process_time()
        engine = trainer.engine
        sampled, environment = engine.seconds, engine.seconds_environment
        rows: Rows = {name: [] for name in TABLES}
        if self._step == 0:
            rows["validation"] += trainer.validate(0)
        self._draw_roots()
        self._draw_branches()
        self._draw_fill()
        for index in range(len(context.trees)):
            method.select(context, index)
        phase = method.phase
        result = self._update()
        found = bill(context.trees)
        self._guard(found)
        started = time.perf_counter()
        method.learn(context)
        self._seconds["fit"] += time.perf_counter() - started
        trainer.visited += sum(1 for tree in context.trees if tree.base())
        trainer.total.add(found)
        rows["rollouts"] = rollout_rows(self._step, context.trees, result.advantages)
        rows["turns"] = turn_rows(self._step, context.trees)
        rows["interventions"] = context.interventions
        rows["steps"] = [self._step_row(found, result, phase)]
        self._forest.close()
        if (self._step + 1) % self._config.validate_every == 0:
            rows["validation"] += trainer.validate(self._step + 1)
        spent = engine.seconds - sampled
        outside = engine.seconds_environment - environment
        rows["clock"] = [self._clock_row(wall, cpu, spent, outside)]
        trainer.headline = self._headline(rows)
        return rows

    def _draw_roots(self) -> None:
        context, method = self._context, self._method
        started = time.perf_counter()
        allocations = method.plan(context)
        self._seconds["decide"] += time.perf_counter() - started
        self._t.engine.plant(self._forest, [a.task for a in allocations])
        for allocation in allocations:
            self._budget.take(allocation.rollouts, f"{method}: roots of {allocation.task.id}")
        self._roots(range(len(allocations)), [a.rollouts for a in allocations], allocations)
        while True:
            wanted = [method.more_roots(context, i) for i in range(len(allocations))]
            if not any(wanted):
                break
            self._budget.take(sum(wanted), f"{method}: further roots")
            self._roots(range(len(allocations)), wanted, allocations)

    def _roots(
        self, trees: Sequence[int], counts: list[int], allocations: list[Allocation]
    ) -> None:
        expansions = []
        for tree, count, allocation in zip(trees, counts, allocations, strict=True):
            task = allocation.task
            streams = []
            for _ in range(count):
                streams.append(("base", self._step, task.id, self._drawn_tasks[task.id]))
                self._drawn_tasks[task.id] += 1
            expansions.append(
                Expansion(
                    tree,
                    streams,
                    decoding=allocation.decoding,
                    regime=allocation.regime,
                    origin=allocation.origin,
                    keep=self._method.branches_from_base and allocation.origin == "base",
                )
            )
        self._t.engine.expand(self._forest, expansions)
        self._context.budget_left = self._budget.left

    def _draw_branches(self) -> None:
        context = self._context
        while True:
            started = time.perf_counter()
            wanted = self._method.branches(context)
            self._seconds["decide"] += time.perf_counter() - started
            if not wanted:
                return
            self._budget.take(sum(b.rollouts for b in wanted), f"{self._method}: branches")
            context.drawn = self._t.engine.expand(
                self._forest, [self._expansion(b) for b in wanted]
            )
            context.budget_left = self._budget.left

    def _expansion(self, branch: Branch) -> Expansion:
        task = self._forest.trees[branch.tree].task
        path = ("interventions", self._step, task.id, *branch.stream)
        return Expansion(
            tree=branch.tree,
            streams=[(*path, child) for child in range(branch.rollouts)],
            rollout=branch.rollout,
            turn=branch.turn,
            decoding=branch.decoding,
            regime=branch.regime,
            origin=branch.origin,
        )

    def _draw_fill(self) -> None:
        """Spend what is left on on-policy roots, in `matched` mode."""
        if self._config.budget_mode != "matched":
            return
        size = self._method.base_rollouts
        if self._config.fill == "new_groups":
            tasks = [self._t.take_fill_task() for _ in range(self._budget.left // size)]
            first = len(self._forest.trees)
            self._t.engine.plant(self._forest, tasks)
            trees, counts = range(first, first + len(tasks)), [size] * len(tasks)
        else:
            trees = range(len(self._forest.trees))
            tasks = [tree.task for tree in self._forest.trees]
            left = self._budget.left
            counts = [left // len(trees) + (i < left % len(trees)) for i in trees]
        self._budget.take(sum(counts), "fill")
        allocations = [Allocation(task, 0, origin="fill") for task in tasks]
        self._roots(trees, counts, allocations)

    def _update(self) -> UpdateResult:
        started = time.perf_counter()
        trees = self._context.trees
        advantages = [self._method.advantages(tree, tree.retained()) for tree in trees]
        rng = generator(self._t.run.seed, "minibatches", self._step)
        result = self._t.updater.step(trees, advantages, rng)
        self._t.actor.sampler.decoder.load_weights()
        self._seconds["update"] += time.perf_counter() - started
        return result

    def _guard(self, found: Bill) -> None:
        if found.env_errors > self._config.max_error_share * max(1, found.billed):
            names = {t.error_type for tree in self._context.trees for t in tree.trajectories}
            raise EnvError(
                f"step {self._step}: {found.env_errors} of {found.billed} rollouts have no verdict "
                f"({', '.join(sorted(names - {''}))}); at most a share of "
                f"{self._config.max_error_share} is accepted: mend the environment and run again"
            )

    def _step_row(self, found: Bill, result: UpdateResult, phase: str) -> dict[str, Any]:
        total = self._t.total
        return {
            "step": self._step,
            "phase": phase,
            "groups": len(self._context.trees),
            "billed": found.billed,
            "live": found.live,
            "retained": found.retained,
            "gen_tokens": found.gen_tokens,
            "env_steps": found.env_steps,
            "cum_billed": total.billed,
            "cum_live": total.live,
            "cum_tokens": total.gen_tokens,
            "cum_env_steps": total.env_steps,
            "branches": found.branches,
            "fill": found.fill,
            "carry": self._method.carry,
            **group_shares(self._context.trees),
            "mixed_share_update": result.mixed_share_update,
            "entropy": on_policy_entropy(self._context.trees),
            "loss": result.loss,
            "grad_norm": result.grad_norm,
            "clip_share": result.clip_share,
            "trained_tokens": result.trained_tokens,
            "trained_leaves_per_task": result.trained_leaves_per_task,
            "visits": self._t.visited / self._t.pool_size,
            "env_errors": found.env_errors,
        }

    def _clock_row(self, wall: float, cpu: float, spent: float, outside: float) -> dict[str, Any]:
        return {
            "step": self._step,
            "total": time.perf_counter() - wall,
            "cpu": time.process_time() - cpu,
            "sampling": spent - outside,
            "environment": outside,
            "update": self._seconds["update"],
            "decide": self._seconds["decide"],
            "fit": self._seconds["fit"],
            "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }

    def _headline(self, rows: Rows) -> str:
        row, clock = rows["steps"][0], rows["clock"][0]
        return (
            f"{row['phase']} reward {row['reward']:.3f} mixed {row['mixed_share']:.2f} entropy "
            f"{row['entropy']:.3f} grad {row['grad_norm']:.2f} billed {row['cum_billed']} "
            f"({clock['total']:.2f} s)"
        )
