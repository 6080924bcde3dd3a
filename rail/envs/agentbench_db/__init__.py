"""AgentBench-DB: questions about and edits of one SQL table, in AgentBench DBBench's row format.

Source: AgentBench (arXiv 2308.03688), DBBench, function-calling version. Tasks come from the
generator (the embedded default) or from the upstream files.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from rail.config import Positive, Strict
from rail.envs.agentbench_db.calls import PRESETS
from rail.envs.agentbench_db.env import DbEnv
from rail.envs.agentbench_db.rows import load, spec_of
from rail.envs.agentbench_db.verdict import Gold
from rail.envs.base import Message, Task
from rail.errors import ConfigError
from rail.tools.sql import Connections, Limits
from rail.tools.sql_tokens import identifier

__all__ = ["AgentBenchDb", "Settings", "build"]

Seconds = Annotated[float, Field(gt=0.0)]


class Settings(Strict):
    """Settings of the benchmark; values are `our choice` unless marked upstream.

    Attributes:
        tools: Names of the two tools: `sql_query`/`answer_action` or `execute_sql`/
            `commit_final_answer` (upstream).
        max_turns: Turn limit; upstream 15.
        statement_timeout_s: Wall-clock limit of a statement, the safety net; upstream 60.
        max_operations: Limit in sqlite instructions, the same on every machine.
        output_limit: Characters of a result that are shown (upstream: 800).
        reward: Which rule trains.
        source: `generated`, or panel -> upstream file; panels that are not listed are generated.
        clean_only: Of an upstream file, take only tasks whose gold statement gives their label.
        typed: Give number columns their declared type; upstream makes every column TEXT.
        instructions: Text before every prompt, for policies that need to be told the tools.
        generator: Settings of `generator.generate`.
    """

    tools: Literal["sql_query", "execute_sql"] = "sql_query"
    max_turns: Positive = 8
    statement_timeout_s: Seconds = 5.0
    max_operations: Positive = 5_000_000
    output_limit: Positive = 800
    reward: Literal["strict", "upstream"] = "strict"
    source: Literal["generated"] | dict[str, Path] = "generated"
    clean_only: bool = True
    typed: bool = False
    instructions: str = ""
    generator: dict[str, Any] = Field(default_factory=dict)


class AgentBenchDb:
    """See `rail.envs.base.Benchmark`.

    Attributes:
        tools: Writes and reads tool calls.
        pools: Panel -> number of tasks.
    """

    name = "agentbench_db"

    def __init__(self, settings: Settings, pools: dict[str, int]) -> None:
        """Make the benchmark; tasks are made when a panel is asked for."""
        self.settings = settings
        self.pools = dict(pools)
        self.max_turns = settings.max_turns
        self.tools = PRESETS[settings.tools]
        self.pieces: Sequence[str] = self.tools.pieces()
        self._connections = Connections(
            Limits(
                timeout_s=settings.statement_timeout_s,
                max_operations=settings.max_operations,
                output=settings.output_limit,
            )
        )
        self._panels: dict[str, list[Task]] = {}
        self._panel_ids: set[str] = set()
        self._gold: dict[str, Gold] = {}

    def panel(self, name: str) -> list[Task]:
        """Return the tasks of a panel, in their fixed order.

        Raises:
            ConfigError: If the panel is not in `pools`, or its file holds fewer tasks.
            DataError: If the file has an unreadable row; names row and field.
        """
        if name not in self._panels:
            if name not in self.pools:
                raise ConfigError(
                    f"agentbench_db has no panel '{name}'; pools: {sorted(self.pools)}"
                )
            tasks = self._make_panel(name, self.pools[name])
            self._panels[name] = tasks
            self._panel_ids.update(task.id for task in tasks)
        return list(self._panels[name])

    def make(self, task: Task) -> DbEnv:
        """Return a fresh environment of `task`.

        Raises:
            DataError: If the task's row is not what its format promises.
        """
        gold = self._gold.get(task.id)
        if gold is None or gold.row is not task.row:  # a task from elsewhere may reuse an id
            gold = self._gold_of(task)
            if task.id in self._panel_ids:
                self._gold[task.id] = gold
        return DbEnv(task, gold, self.tools, self.max_turns, self.settings.reward == "upstream")

    def demonstrations(self, warm_start: int) -> Iterator[list[Message]]:
        """Yield scripted dialogues without end, from warm start's own streams."""
        from rail.envs.agentbench_db.demonstrator import demonstrations

        return demonstrations(self, self.settings.generator, warm_start)

    def probes(self, task: Task) -> list[str]:
        """Return valid actions of every sort, for the contract test; the last one answers."""
        table = spec_of(task.row, task.id).tables[0]
        name, column = identifier(table.name), identifier(table.columns[0])
        call = self.tools.call_query
        return [
            "Let me look. " + call("SHOW TABLES"),
            call(f"DESCRIBE {name}"),
            call(f"SELECT * FROM {name}"),
            call(f"UPDATE {name} SET {column} = 'changed'"),
            call(f"SELECT {column} FROM {name}"),
            call("SELECT nonsense FROM nowhere"),
            self.tools.call_answer("none"),
        ]

    def _gold_of(self, task: Task) -> Gold:
        return Gold(task.row, self._connections, self.settings.typed, f"task {task.id}")

    def _make_panel(self, name: str, size: int) -> list[Task]:
        source = self.settings.source
        if isinstance(source, dict) and name in source:
            found = load(source[name])
        else:
            from rail.envs.agentbench_db.generator import generate

            rows = generate(self.settings.generator, name, size)
            return [self._task(f"{name}-{i:04d}", row) for i, row in enumerate(rows)]
        tasks: list[Task] = []
        for number, (given, row) in enumerate(found):
            task = self._task(f"{name}-{given or f'{number:04d}'}", row)
            if not self.settings.clean_only or self._gold_of(task).reproduced():
                tasks.append(task)
        if len(tasks) < size:
            what = "usable tasks (clean_only)" if self.settings.clean_only else "tasks"
            raise ConfigError(
                f"panel '{name}' of agentbench_db asks for {size} tasks, but {source[name]} holds"
                f" {len(tasks)} {what}; lower pools.{name}"
            )
        return tasks[:size]

    def _task(self, task_id: str, row: dict[str, Any]) -> Task:
        spec = spec_of(row, f"task {task_id}")
        prompt = f"{self.settings.instructions}\n{spec.prompt}".strip()
        return Task(task_id, spec.kind, prompt, row)


def build(settings: Settings | dict[str, Any], pools: dict[str, int]) -> AgentBenchDb:
    """Return the benchmark.

    Args:
        settings: A `Settings`, or its values.
        pools: Panel name -> number of tasks.

    Raises:
        ConfigError: If a setting is unknown or out of range.
    """
    try:
        return AgentBenchDb(Settings.model_validate(settings), pools)
    except ValidationError as error:
        raise ConfigError(f"settings of benchmark agentbench_db: {error}") from error
