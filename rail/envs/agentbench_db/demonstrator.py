"""The scripted demonstrator: the right queries, with structured mistakes, executed for real.

It acts on an environment like a policy and reads what the environment answers. Mistakes are never
random values (those would teach the policy not to copy) but wrong queries of known form. After one
it goes on wrongly to the end, unless it tries again. A demonstrator without a competence map
makes no mistake; it shows that every task can be solved.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rail.envs.agentbench_db.competence import Chain, Competence, draw_competence
from rail.envs.agentbench_db.draws import Draws
from rail.envs.agentbench_db.generator import draw_row, settings_of
from rail.envs.agentbench_db.kinds import KINDS, Kind
from rail.envs.agentbench_db.schemas import NUMBERS
from rail.envs.base import Env, Message, Task
from rail.seeding import generator as stream

if TYPE_CHECKING:
    from rail.envs.agentbench_db import AgentBenchDb

LOOK_UPS = {
    "columns": "SELECT column_name FROM information_schema.columns",
    "concat": "SELECT GROUP_CONCAT(column_name) FROM information_schema.columns",
    "describe": "DESCRIBE `{t}`",
}
"""Ways to look the schema up; each prints the columns in its own form."""

_ONE_VALUE = re.compile(r"\[\('?([^',()]+)'?,\)\]")


@dataclass(slots=True)
class Episode:
    """What one scripted rollout did.

    Attributes:
        messages: The dialogue, prompt included.
        reward: Strict reward.
        boundaries: Exact success probability at each turn boundary t >= 1 that has a turn left.
        errors: Actions answered with an error.
    """

    messages: list[Message]
    reward: float = 0.0
    boundaries: list[float] = field(default_factory=list)
    errors: int = 0


def demonstrations(
    benchmark: "AgentBenchDb", settings: dict[str, Any], warm_start: int
) -> Iterator[list[Message]]:
    """Yield scripted dialogues without end, on tables drawn afresh from the demonstrations' names.

    Args:
        benchmark: Makes the environments and says how a tool call is written.
        settings: See `settings.GeneratorSettings`.
        warm_start: Names the streams of tasks, mistakes and competence map.

    Raises:
        ConfigError: If the settings are not valid.
    """
    checked = settings_of(settings)
    competence = draw_competence(checked, warm_start, benchmark.max_turns)
    tasks = Draws(stream(checked.seed, "agentbench_db", "demonstrations", warm_start))
    deeds = Draws(stream(checked.seed, "agentbench_db", "deeds", warm_start))
    kinds, concepts = list(KINDS), list(NUMBERS)
    while True:
        kind, concept = tasks.choice(kinds), tasks.choice(concepts)
        row = draw_row(tasks, kind, concept, "demonstrations", checked.rows, None)
        parts = (benchmark.settings.instructions, f"{row['description']} {row['add_description']}")
        task = Task("demonstration", kind, "\n".join(filter(None, parts)), row)
        yield demonstrate(benchmark, task, competence, deeds, judged=False).messages


def demonstrate(
    benchmark: "AgentBenchDb",
    task: Task,
    competence: Competence | None,
    draws: Draws,
    judged: bool = True,
) -> Episode:
    """Play one task to its end.

    Args:
        benchmark: Makes the environment.
        task: A generated task.
        competence: Map of a warm start; None: no mistakes.
        draws: Stream of the demonstrator's own doing.
        judged: Send the answer to the environment; else it is only written down, reward stays 0.
    """
    env = benchmark.make(task)
    try:
        return _Player(benchmark, env, competence, draws, judged).play()
    finally:
        env.close()


class _Player:
    """One episode in the making."""

    def __init__(
        self,
        benchmark: "AgentBenchDb",
        env: Env,
        competence: Competence | None,
        draws: Draws,
        judged: bool,
    ) -> None:
        row = env.task.row
        self._tools = benchmark.tools
        self._env = env
        self._draws = draws
        self._judged = judged
        self._fields: dict[str, str] = dict(row["fields"])
        self._form: Kind = KINDS[row["type"][0]]
        self._chain: Chain | None = competence.chain(row) if competence else None
        self._episode = Episode([Message("user", env.task.prompt)])
        self._turns = 0
        self._last: str | None = self._fields.get("x")  # what an answer would be now

    def play(self) -> Episode:
        """Play to the end."""
        chain, stages = self._chain, self._form.stages
        route = None if chain and self._draws.happens(chain.dial.skip) else self._look_up(0)
        for query in range(len(stages)):
            if route is None and chain and not self._draws.happens(chain.guess(query)):
                self._ask(self._misnamed(query), chain.looked_up(query, self._turns + 2))
                route = self._look_up(query)
            if not self._attempt(query, route):
                return self._carry_on(query + 1)
        if chain is None or self._draws.happens(chain.eventually(len(stages), route)):
            return self._finish(self._last)
        return self._finish((self._form.slip or "").format_map(self._fields))

    def _look_up(self, query: int) -> str:
        """Look the schema up; return the way taken."""
        chain = self._chain
        if chain is None:
            route, value = "columns", 1.0
        else:
            first, second = chain.dial.routes
            route = first if self._draws.happens(chain.bias(first)) else second
            value = chain.value(query, route, self._turns + 1)
        self._ask(LOOK_UPS[route], value)
        return route

    def _attempt(self, query: int, route: str | None) -> bool:
        """Do one query, rightly or by a mistake that may be mended; return if all is well."""
        chain, draws = self._chain, self._draws
        stage = self._form.stages[query]
        if chain is None or draws.happens(chain.at_once(query, route)):
            value = chain.value(query + 1, route, self._turns + 1) if chain else 1.0
            self._do(query, stage.sql, value)
            return True
        mistake = draws.choice(stage.mistakes)
        self._do(query, mistake.sql, chain.rescue(mistake, query, route, self._turns + 1))
        if not (chain.room(query, self._turns) and draws.happens(chain.retry(mistake))):
            return False
        if draws.happens(chain.eventually(query, route)):
            self._do(query, stage.sql, chain.value(query + 1, route, self._turns + 1))
            return True
        hidden = [m.sql for m in stage.mistakes if m.after != "error"]
        self._do(query, draws.choice(hidden), 0.0)
        return False

    def _carry_on(self, query: int) -> Episode:
        """Finish after a mistake, wrongly to the end, as far as there is a value.

        Right queries on a wrong value would teach the policy to ask rightly where it should not:
        whether the value is wrong shows only in the query before, which a small policy overlooks.
        """
        for later in range(query, len(self._form.stages)):
            if self._last is None:
                break
            hidden = [m.sql for m in self._form.stages[later].mistakes if m.after != "error"]
            self._do(later, self._draws.choice(hidden), 0.0)
        return self._finish(self._last)

    def _misnamed(self, query: int) -> str:
        """Return the right query with at least one column called by its other name."""
        new = self._chain.new_columns(query) if self._chain else []
        wrong = 1 + self._draws.below(2 ** len(new) - 1)
        other = {c: self._fields[c + "s"] for i, c in enumerate(new) if wrong >> i & 1}
        return self._form.stages[query].sql.format_map({**self._fields, **other})

    def _do(self, query: int, sql: str, value: float) -> None:
        """Send a query of the way to the answer and keep the value it shows, if any."""
        match = _ONE_VALUE.fullmatch(self._ask(sql, value))
        self._last = match[1] if match and match[1] != "None" else None
        if self._last is not None:
            self._fields[f"o{query + 1}"] = self._last

    def _ask(self, sql: str, value: float) -> str:
        """Send a query; `value` is the exact success probability once it is answered."""
        action = self._tools.call_query(sql.format_map(self._fields))
        result = self._env.step(action)
        self._episode.messages += [
            Message("assistant", action),
            Message("tool", result.observation),
        ]
        self._episode.boundaries.append(value)
        self._episode.errors += result.error
        self._turns += 1
        return result.observation

    def _finish(self, answer: str | None) -> Episode:
        action = self._tools.call_answer("done" if self._form.mutates else answer or "none")
        self._episode.messages.append(Message("assistant", action))
        if self._judged:
            self._episode.reward = self._env.step(action).reward
        return self._episode
