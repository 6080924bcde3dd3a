"""The environment: one sqlite database, two tools, a turn limit."""

import hashlib

from rail.envs.agentbench_db.calls import CallError, Tools
from rail.envs.agentbench_db.verdict import Gold
from rail.envs.base import StepResult, StopReason, Task
from rail.errors import EnvError
from rail.tools.sql import Database


class DbEnv:
    """One episode of AgentBench-DB; see `rail.envs.base.Env`.

    The first tool call of an action is executed, text around it is ignored; an action without a
    usable call costs a turn. A mutation is judged by the state at the final answer, whatever its
    text; without a final answer the reward is 0.
    """

    def __init__(
        self,
        task: Task,
        gold: Gold,
        tools: Tools,
        max_turns: int,
        train_upstream: bool = False,
        database: Database | None = None,
    ) -> None:
        """Start an episode.

        Args:
            task: The task.
            gold: Its gold side.
            tools: Tool names.
            max_turns: Actions until the episode ends unanswered.
            train_upstream: `StepResult.reward` carries the upstream reward, not the strict one.
            database: State to start from; None: the task's start state.
        """
        self.task = task
        self.turn = 0
        self.max_turns = max_turns
        self._gold = gold
        self._tools = tools
        self._train_upstream = train_upstream
        self._database = database or gold.database()
        self._done = False
        self._closed = False

    def step(self, action: str) -> StepResult:
        """Act with the text of one assistant turn.

        Raises:
            EnvError: If the episode is over or closed (a caller's mistake), or the database fails
                by no doing of the policy.
        """
        if self._done or self._closed:
            state = "closed" if self._closed else "over"
            raise EnvError(f"task {self.task.id}: step on an episode that is {state}")
        self.turn += 1
        try:
            is_answer, value = self._tools.parse(action)
        except CallError as error:
            return self._observe(f"Error: {error}", error=True)
        if not is_answer:
            output = self._database.execute(value)
            return self._observe(output.text, error=output.error)
        self._done = True
        strict, upstream = self._gold.judge(self._database, value)
        return StepResult(
            observation="",
            done=True,
            reward=upstream if self._train_upstream else strict,
            reward_upstream=upstream,
            stop=StopReason.ANSWERED,
        )

    def _observe(self, text: str, error: bool) -> StepResult:
        if self.turn < self.max_turns:
            return StepResult(text, error=error)
        self._done = True
        return StepResult("", done=True, stop=StopReason.TURN_LIMIT, error=error)

    def fork(self) -> "DbEnv":
        """Return an independent copy, turn counter included.

        Raises:
            EnvError: If the episode is closed.
        """
        copy = DbEnv(
            self.task,
            self._gold,
            self._tools,
            self.max_turns,
            self._train_upstream,
            self._database.fork(),
        )
        copy.turn = self.turn
        copy._done = self._done
        return copy

    def state_hash(self) -> str:
        """Return a digest of tables, turn counter and whether the episode is over."""
        text = f"{self.turn} {self._done} {self._database.state_hash()}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def difference(self) -> str:
        """Return which rows a mutation task still lacks or has too many; for reading a miss."""
        return self._gold.difference(self._database)

    def close(self) -> None:
        """Give the connection back; may be called twice."""
        self._closed = True
        self._database.close()
