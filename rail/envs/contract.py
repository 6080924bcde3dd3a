"""The contract of `rail.envs.base`, as a program: branching is sound only where it holds.

Used by the tests and by `rail check-env NAME`; it checks a benchmark of your own as well.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Protocol, runtime_checkable

from rail.envs.base import Benchmark, Env, StepResult, StopReason, Task, panel_hash
from rail.errors import EnvError

BAD_ACTIONS = (
    "",
    "I do not know what to do.",
    "<tool_call>",
    "<tool_call></tool_call>",
    "<tool_call>{</tool_call>",
    "<tool_call>[]</tool_call>",
    "<tool_call>{}</tool_call>",
    '<tool_call>{"name": null, "arguments": null}</tool_call>',
    '<tool_call>{"name": "no_such_tool", "arguments": {}}</tool_call>',
    "<tool_call>" + "[" * 100_000 + "</tool_call>",
    "\x00\ud800\uffff",
)
"""Actions that no environment understands."""


@runtime_checkable
class Probing(Protocol):
    """A benchmark that offers actions of its own for the check."""

    def probes(self, task: Task) -> list[str]:
        """Return valid actions, state-changing ones among them; the last one answers."""
        ...


def check_benchmark(benchmark: Benchmark, panel: str = "train", tasks: int = 4) -> Iterator[str]:
    """Check `tasks` tasks of a panel; yield a line for each part that holds.

    Raises:
        EnvError: If a part does not hold; lists all problems.
    """
    problems: list[str] = []
    for title, part in _parts(benchmark, panel, tasks):
        found = part()
        problems += found
        yield f"{'FAIL' if found else 'ok'}: {title}"
    if problems:
        raise EnvError(
            f"{benchmark.name} breaks the contract in {len(problems)} places:\n"
            + "\n".join(problems)
        )


def run_contract(benchmark: Benchmark, panel: str = "train", tasks: int = 4) -> list[str]:
    """Return what is wrong with a benchmark; empty if nothing is."""
    return [line for _, part in _parts(benchmark, panel, tasks) for line in part()]


def check_env(benchmark: Benchmark, tasks: Sequence[Task]) -> list[str]:
    """Return what is wrong with the environments of `tasks`; empty if nothing is."""
    return [
        line
        for task in tasks
        for check in _CHECKS.values()
        for line in _safe(check, benchmark, task)
    ]


_Check = Callable[[Benchmark, Task, list[str]], Iterator[str]]


def _parts(
    benchmark: Benchmark, panel: str, count: int
) -> Iterator[tuple[str, Callable[[], list[str]]]]:
    yield f"panel {panel} is stable and its ids are unique", lambda: list(_panel(benchmark, panel))
    tasks = benchmark.panel(panel)[:count]
    for title, check in _CHECKS.items():
        yield (
            title,
            lambda check=check: [line for task in tasks for line in _safe(check, benchmark, task)],
        )


def _safe(check: _Check, benchmark: Benchmark, task: Task) -> list[str]:
    found: list[str] = []
    try:
        for line in check(benchmark, task, _actions(benchmark, task)):
            found.append(f"{task.id}: {line}")  # noqa: PERF401 - keep what came before an exception
    except Exception as error:  # noqa: BLE001 - an exception of any kind is a finding here
        name = check.__name__.strip("_")
        found.append(f"{task.id}: {name} raised {type(error).__name__}: {error}")
    return found


def _actions(benchmark: Benchmark, task: Task) -> list[str]:
    if isinstance(benchmark, Probing):
        return benchmark.probes(task)
    dialogue = next(islice(benchmark.demonstrations(0), 1))
    return [m.text for m in dialogue if m.role == "assistant"]


def _play(env: Env, actions: Sequence[str]) -> list[StepResult]:
    """Step until the actions or the episode end."""
    results: list[StepResult] = []
    for action in actions:
        results.append(env.step(action))
        if results[-1].done:
            break
    return results


def _panel(benchmark: Benchmark, name: str) -> Iterator[str]:
    tasks = benchmark.panel(name)
    if not tasks:
        yield f"panel {name} is empty"
    if len({task.id for task in tasks}) != len(tasks):
        yield f"panel {name} has repeated task ids"
    if any(not task.prompt for task in tasks):
        yield f"panel {name} has tasks without a prompt"
    if panel_hash(tasks) != panel_hash(benchmark.panel(name)):
        yield f"panel {name} differs when asked for twice"


def _fresh(benchmark: Benchmark, task: Task, actions: list[str]) -> Iterator[str]:
    one, two = benchmark.make(task), benchmark.make(task)
    if one.turn != 0:
        yield f"a fresh environment stands at turn {one.turn}"
    if one.max_turns != benchmark.max_turns:
        yield f"max_turns is {one.max_turns}, the benchmark says {benchmark.max_turns}"
    if one.state_hash() != two.state_hash():
        yield "two fresh environments differ in state"
    if _play(one, actions) != _play(two, actions):
        yield "the same actions in two fresh environments gave different results"
    if one.state_hash() != two.state_hash():
        yield "the same actions led to different states"
    one.close()
    two.close()


def _results(benchmark: Benchmark, task: Task, actions: list[str]) -> Iterator[str]:
    env = benchmark.make(task)
    for turn, action in enumerate(actions[: env.max_turns], 1):
        result = env.step(action)
        if env.turn != turn:
            yield f"after {turn} actions the turn counter is {env.turn}"
        if not (0.0 <= result.reward <= 1.0 and 0.0 <= result.reward_upstream <= 1.0):
            yield f"rewards {result.reward}, {result.reward_upstream} leave [0, 1]"
        if result.done and (result.stop is None or result.observation):
            yield "a result that is done needs a stop reason and no observation"
        if not result.done and (result.stop is not None or result.reward or result.reward_upstream):
            yield "a result that is not done has a stop reason or a reward"
        if result.done:
            break
    env.close()


def _forks(benchmark: Benchmark, task: Task, actions: list[str]) -> Iterator[str]:
    for at in range(len(actions)):
        env = benchmark.make(task)
        if _play(env, actions[:at])[-1:] and env.turn < at:
            return  # the episode ended before
        copy = env.fork()
        if (copy.turn, copy.state_hash()) != (env.turn, env.state_hash()):
            yield f"a fork after {at} actions differs in turn or state"
        if _play(copy, actions[at:]) != _play(env, actions[at:]):
            yield f"a fork after {at} actions answers the same actions differently"
        if copy.state_hash() != env.state_hash():
            yield f"a fork after {at} actions ends in another state"
        env.close()
        copy.close()


def _independent(benchmark: Benchmark, task: Task, actions: list[str]) -> Iterator[str]:
    for at in range(len(actions) - 1):
        env = benchmark.make(task)
        _play(env, actions[:at])
        copy = env.fork()
        before = env.state_hash()
        _play(copy, actions[at:])
        if env.state_hash() != before:
            yield f"acting in a fork made after {at} actions changed its parent"
        copy.close()
        second = env.fork()
        held = second.state_hash()
        env.step(actions[at])
        if second.state_hash() != held:
            yield f"acting in the parent after {at} actions changed its fork"
        env.close()
        if _play(second, actions[at:])[-1:] == []:
            yield "a fork does not outlive its parent"
        second.close()


def _bad(benchmark: Benchmark, task: Task, actions: list[str]) -> Iterator[str]:
    for action in BAD_ACTIONS:
        env = benchmark.make(task)
        result = env.step(action)
        shown = ascii(action[:60])
        if result.reward or result.reward_upstream:
            yield f"bad action {shown} was rewarded"
        if env.max_turns > 1 and (result.done or not result.observation or not result.error):
            yield f"bad action {shown} needs an observation with error=True, got {result}"
        if env.turn != 1:
            yield f"bad action {shown} must cost a turn"
        env.close()


def _limit(benchmark: Benchmark, task: Task, actions: list[str]) -> Iterator[str]:
    env = benchmark.make(task)
    last = _play(env, [BAD_ACTIONS[1]] * (env.max_turns + 1))[-1]
    if not last.done or last.stop is not StopReason.TURN_LIMIT or last.reward:
        yield f"{env.max_turns} actions without an answer: expected the turn limit, got {last}"
    if not _raises(lambda: env.step(BAD_ACTIONS[1])):
        yield "step after the end must raise EnvError"
    env.close()


def _closing(benchmark: Benchmark, task: Task, actions: list[str]) -> Iterator[str]:
    env = benchmark.make(task)
    env.step(actions[0])
    env.close()
    env.close()
    if not _raises(lambda: env.step(actions[0])):
        yield "step after close must raise EnvError"


def _raises(call: Callable[[], object]) -> bool:
    try:
        call()
    except EnvError:
        return True
    return False


_CHECKS: dict[str, _Check] = {
    "fresh environments of a task are equal": _fresh,
    "results carry rewards, stop reasons and observations as promised": _results,
    "a fork followed by the same actions sees the same": _forks,
    "acting in one copy never changes the other": _independent,
    "a bad action is an observation": _bad,
    "the turn limit ends an episode without reward": _limit,
    "close may be called twice and is final": _closing,
}
