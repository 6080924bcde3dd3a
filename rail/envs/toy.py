"""The smallest complete benchmark: a code of letters, one letter a turn; for tests, and to copy.

The prompt shows the first letter; a right letter is answered with the next one, a wrong letter with
nothing, so that the next must be guessed. Reward 1 for at most `slack` wrong letters (`our
choice`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rail.config import Positive, Share, Strict
from rail.envs.base import Message, StepResult, StopReason, Task
from rail.errors import ConfigError, EnvError
from rail.seeding import generator

LETTERS = "ab"


class Settings(Strict):
    """Length of the code, wrong letters allowed, and how often the demonstrator errs."""

    length: Positive = 3
    slack: int = 1
    mistakes: Share = 0.4
    seed: int = 0


@dataclass(slots=True)
class ToyEnv:
    """One code in progress."""

    task: Task
    slack: int
    turn: int = 0
    wrong: int = 0
    max_turns: int = field(init=False)

    def __post_init__(self) -> None:
        self.max_turns = len(self.task.row["code"])

    def step(self, action: str) -> StepResult:
        """Compare the first letter of the action with the code's next."""
        if self.turn >= self.max_turns:
            raise EnvError(f"task {self.task.id}: step after the end of the episode")
        code = self.task.row["code"]
        right = action[:1] == code[self.turn]
        self.turn += 1
        self.wrong += not right
        error = action[:1] not in LETTERS
        if self.turn < self.max_turns:
            return StepResult(f"next {code[self.turn]}" if right else "no", error=error)
        reward = float(self.wrong <= self.slack)
        return StepResult("", True, reward, reward, StopReason.ANSWERED, error)

    def fork(self) -> "ToyEnv":
        """Return a copy."""
        copy = ToyEnv(self.task, self.slack, self.turn, self.wrong)
        return copy

    def state_hash(self) -> str:
        """Return the state itself: it is short."""
        return f"{self.task.id}:{self.turn}:{self.wrong}"

    def close(self) -> None:
        """Nothing to free."""


class Toy:
    """See `rail.envs.base.Benchmark`."""

    name = "toy"
    pieces: Sequence[str] = ()

    def __init__(self, settings: Settings, pools: dict[str, int]) -> None:
        """Take the settings; panels are made when asked for."""
        self.settings, self.pools = settings, dict(pools)
        self.max_turns = settings.length

    def panel(self, name: str) -> list[Task]:
        """Return the panel's tasks.

        Raises:
            ConfigError: If the configuration has no such panel.
        """
        if name not in self.pools:
            raise ConfigError(f"toy has no panel {name!r}; it has {', '.join(self.pools)}")
        return [self._task(name, index) for index in range(self.pools[name])]

    def _task(self, panel: str, index: int) -> Task:
        rng = generator(self.settings.seed, "toy", panel, index)
        code = "".join(LETTERS[i] for i in rng.integers(2, size=self.settings.length))
        return Task(f"{panel}-{index:04d}", code[0], f"code {code[0]}", {"code": code})

    def make(self, task: Task) -> ToyEnv:
        """Return a fresh environment."""
        return ToyEnv(task, self.settings.slack)

    def demonstrations(self, warm_start: int) -> Iterator[list[Message]]:
        """Yield dialogues of a demonstrator that errs at the configured rate."""
        rng = generator(self.settings.seed, "toy", "demonstrations", warm_start)
        index = 0
        while True:
            task = self._task(f"demonstrations{warm_start}", index)
            index += 1
            env = self.make(task)
            dialogue = [Message("user", task.prompt)]
            done = False
            while not done:
                letter = task.row["code"][env.turn]
                if rng.random() < self.settings.mistakes:
                    letter = LETTERS[1 - LETTERS.index(letter)]
                dialogue.append(Message("assistant", letter))
                result = env.step(letter)
                done = result.done
                if not done:
                    dialogue.append(Message("tool", result.observation))
            yield dialogue


def build(settings: Settings, pools: dict[str, int]) -> Toy:
    """Return the benchmark."""
    return Toy(settings, pools)
