"""A policy under training by one method: all state that the next step needs.

Randomness is a function of (seed, stream, step, ...), so there is no generator to save: weights,
optimizer, method, the place in the task order and the running bill are the whole state.
"""

from pathlib import Path
from typing import Any

from rail.envs.base import Benchmark, Task, panel_hash
from rail.errors import ConfigError
from rail.grpo.update import Updater
from rail.methods.base import Method, MethodContext, Record
from rail.policy.actor import open_actor
from rail.policy.loading import publishing, save_policy
from rail.rollout.engine import Engine
from rail.rollout.evaluation import EVALUATION_SEED, evaluate_policy
from rail.rollout.ledger import Bill
from rail.rollout.order import TaskOrder
from rail.runs import RunConfig, build_method, open_benchmark
from rail.step import Rows, Step
from rail.traces.schema import TABLES
from rail.traces.store import read_rows


class Trainer:
    """A policy under training by one method.

    Attributes:
        method: The method.
        headline: One line about the last step.
        panel_hashes: Content hash of each panel that the run reads.
    """

    def __init__(self, run: RunConfig, policy: Path, reads: Path | None) -> None:
        """Load the policy, the benchmark and the method.

        Raises:
            ConfigError: If the method follows another run and `reads` is missing, or the reverse.
        """
        if (run.reads is None) != (reads is None):
            raise ConfigError(
                f"method {run.method} reads {run.reads or 'no other run'}, got the folder {reads}"
            )
        self.run, self.train = run, run.train
        self._benchmark: Benchmark = open_benchmark(run)
        pool = self._benchmark.panel("train")
        self._validation = self._benchmark.panel("validation")[: run.train.validation_tasks]
        self.panel_hashes = {
            "train": panel_hash(pool),
            "validation": panel_hash(self._benchmark.panel("validation")),
        }
        self.actor = open_actor(policy, run.policy)
        self._policy_folder = policy
        sampler, chat = self.actor.sampler, self.actor.chat
        self.engine = Engine(sampler, chat, self._benchmark, run.seed)
        self._evaluation = Engine(sampler, chat, self._benchmark, EVALUATION_SEED)
        self._order = TaskOrder(pool, run.seed)
        self._fill_order = TaskOrder(pool, run.seed, "fill")
        self.pool_size = len(pool)
        self.method: Method = build_method(
            run,
            MethodContext(
                seed=run.seed,
                train=run.train,
                pool=pool,
                max_turns=self._benchmark.max_turns,
                hidden=self.actor.model.config.hidden_size,
                record=None if reads is None else _read_record(reads),
            ),
        )
        native = self.actor.backend == "native"
        self.updater = Updater(self.actor.model, run.train, run.update, native)
        self._place, self._fill_place, self.visited = 0, 0, 0
        self.total = Bill()
        self.headline = ""

    def step(self, step: int) -> Rows:
        """Make one step; return the rows that it adds to each table."""
        return Step(self, step).run()

    def take_tasks(self, step: int) -> list[Task]:
        """Take the step's tasks from the common order."""
        wanted = self.method.tasks_wanted(step)
        count = self.train.tasks_per_step if wanted is None else wanted
        tasks = self._order.take(self._place, count)
        self._place += count
        return tasks

    def take_fill_task(self) -> Task:
        """Take the next task of the fill order."""
        self._fill_place += 1
        return self._fill_order.take(self._fill_place - 1, 1)[0]

    def validate(self, step: int) -> list[dict[str, Any]]:
        """Return validation rows after `step` finished steps, at T = 1."""
        return evaluate_policy(self._evaluation, self._validation, "sampled", step)

    def totals(self) -> dict[str, int]:
        """Return the running bill and the tasks met."""
        total = self.total
        return {
            "billed": total.billed,
            "live": total.live,
            "retained": total.retained,
            "gen_tokens": total.gen_tokens,
            "env_steps": total.env_steps,
            "tasks": self.visited,
        }

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next step needs."""
        weights = self.actor.model.state_dict()
        return {
            "model": {name: tensor.clone() for name, tensor in weights.items()},
            "updater": self.updater.state_dict(),
            "method": self.method.state_dict(),
            "place": self._place,
            "fill_place": self._fill_place,
            "visited": self.visited,
            "total": self.total,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self.adopt(state)
        self.method.load_state_dict(state["method"])

    def adopt(self, state: dict[str, Any]) -> None:
        """Restore all but the method: how a yoked twin starts from RAIL's promotion."""
        self.actor.model.load_state_dict(state["model"])
        self.actor.sampler.decoder.load_weights()
        self.updater.load_state_dict(state["updater"])
        self._place, self._fill_place = state["place"], state["fill_place"]
        self.visited, self.total = state["visited"], state["total"]

    def shared_rows(self, reads: Path, steps: int) -> Rows:
        """Return the recorded run's rows of its first `steps` steps, validation included."""
        found: Rows = {}
        for table, schema in TABLES.items():
            last = steps if table == "validation" else steps - 1
            rows = read_rows(reads / f"{table}.parquet", schema)
            found[table] = [row for row in rows if row["step"] <= last]
        return found

    def save_policy(self, folder: Path) -> None:
        """Write weights and tokenizer as a policy folder."""
        with publishing(folder) as temporary:
            save_policy(self.actor.model, self.actor.chat.tokenizer, temporary)


def _read_record(folder: Path) -> Record:
    interventions = read_rows(folder / "interventions.parquet", TABLES["interventions"])
    steps = read_rows(folder / "steps.parquet", TABLES["steps"])
    live = [int(row["step"]) for row in steps if row["phase"] == "live"]
    return Record(interventions, steps, min(live, default=-1))
