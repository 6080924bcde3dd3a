"""A synthetic source of dialogues: look a column up, read a value, answer it."""

from collections.abc import Iterator, Sequence

from rail.envs.base import Env, Message, Task
from rail.seeding import generator

QUERY = '<tool_call>{"name":"sql_query","arguments":{"query":"'
ANSWER = '<tool_call>{"name":"answer_action","arguments":{"answer":"'
CLOSE = '"}}</tool_call>'
NAMES = ("river", "stone", "cloud", "tiger", "piano", "maple", "ocean", "lemon")


class CopyTask:
    """A benchmark with demonstrations only."""

    def __init__(self) -> None:
        self.name = "copy"
        self.max_turns = 8
        self.pieces: Sequence[str] = (QUERY, ANSWER, CLOSE)

    def panel(self, name: str) -> list[Task]:
        raise KeyError(f"{name}: the copy task has demonstrations only")

    def make(self, task: Task) -> Env:
        raise KeyError(f"{task.id}: the copy task has demonstrations only")

    def demonstrations(self, warm_start: int) -> Iterator[list[Message]]:
        rng = generator(warm_start, "copy")
        while True:
            name, number = NAMES[rng.integers(len(NAMES))], int(rng.integers(10, 9999))
            yield [
                Message("user", f"How long is '{name}'?"),
                Message("assistant", f"{QUERY}SELECT length FROM t WHERE n = '{name}'{CLOSE}"),
                Message("tool", f"[({number},)]"),
                Message("assistant", f"{ANSWER}{number}{CLOSE}"),
            ]
