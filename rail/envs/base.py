"""What a benchmark and its environments promise.

An environment is single-use: it is made for one task, stepped to its end, and closed. There is no
`reset`; the branching primitive is `fork`. The policy's doing (bad command, no answer) is an
observation or an outcome; our own failure raises `EnvError` and is never a reward.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class StopReason(StrEnum):
    """Why an episode ended."""

    ANSWERED = "answered"
    TURN_LIMIT = "turn_limit"
    TOKEN_LIMIT = "token_limit"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a dialogue; `role` is user, assistant or tool."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a panel.

    Attributes:
        id: Unique within its benchmark; names the panel it comes from.
        kind: Stratum for per-kind success.
        prompt: The user message an episode starts with.
        row: The benchmark's own row (upstream format), JSON-like.
    """

    id: str
    kind: str
    prompt: str
    row: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one action led to.

    Attributes:
        observation: Text shown to the policy next; empty when `done`.
        done: True when the episode is over.
        reward: Strict reward in [0, 1]; 0 until `done`.
        reward_upstream: The same under the benchmark's published rule.
        stop: Why the episode ended, None until `done`.
        error: True where a tool refused or failed on the action.
    """

    observation: str
    done: bool = False
    reward: float = 0.0
    reward_upstream: float = 0.0
    stop: StopReason | None = None
    error: bool = False


class Env(Protocol):
    """A single-use environment."""

    task: Task
    turn: int
    max_turns: int

    def step(self, action: str) -> StepResult:
        """Act with the text of one assistant turn. Never raises on what the policy wrote."""
        ...

    def fork(self) -> "Env":
        """Return an independent copy of the present state, turn counter included."""
        ...

    def state_hash(self) -> str:
        """Return a digest of the state; equal states have equal digests."""
        ...

    def close(self) -> None:
        """Free resources; may be called twice."""
        ...


class Benchmark(Protocol):
    """A source of tasks, environments and scripted demonstrations.

    Attributes:
        pieces: Strings that the embedded tokenizer keeps as one token: tool-call prefix, suffix.
    """

    name: str
    max_turns: int
    pieces: Sequence[str]

    def panel(self, name: str) -> list[Task]:
        """Return the tasks of `train`, `validation`, `test_a`, ... in their fixed order."""
        ...

    def make(self, task: Task) -> Env:
        """Return a fresh environment of `task`."""
        ...

    def demonstrations(self, warm_start: int) -> Iterator[list[Message]]:
        """Yield scripted dialogues without end, executed for real, from the start's own streams."""
        ...


def panel_hash(tasks: Sequence[Task]) -> str:
    """Return a digest of everything in a panel: ids, prompts and rows, in order."""
    digest = hashlib.blake2b(digest_size=16)
    for task in tasks:
        line = json.dumps([task.id, task.kind, task.prompt, dict(task.row)], sort_keys=True)
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()
