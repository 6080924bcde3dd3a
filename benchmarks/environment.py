"""Time of the AgentBench-DB environment: make, fork, one statement, an episode.

Run: `python benchmarks/environment.py`. Exit code 1 if a fork takes 1 ms or more (issue bound).
Medians of 7 repeats, CPU time, statements seen before (`new` ones are translated first).
"""

import itertools
import statistics
import sys
import time
from collections.abc import Callable

from rail.envs.agentbench_db import build
from rail.envs.agentbench_db.env import DbEnv

FORK_LIMIT_US = 1000.0


def microseconds(call: Callable[[], object], repeats: int = 7, times: int = 200) -> float:
    """Return the median CPU time of a call in microseconds."""

    def once() -> float:
        start = time.process_time()
        for _ in range(times):
            call()
        return (time.process_time() - start) / times * 1e6

    return statistics.median(once() for _ in range(repeats))


def main() -> int:
    """Print the table; return the exit code."""
    benchmark = build({"max_turns": 10**9}, {"train": 16})
    task = benchmark.panel("train")[0]
    probes = benchmark.probes(task)
    show, update, select, answer = probes[2], probes[3], probes[4], probes[-1]
    clean, changed, acting = benchmark.make(task), benchmark.make(task), benchmark.make(task)
    changed.step(update)
    fresh = itertools.count()

    def fork_after_write() -> None:
        changed.step(update)
        changed.fork().close()

    def fork_and_act(env: DbEnv) -> None:
        copy = env.fork()
        copy.step(select)
        copy.close()

    def new_statement() -> None:
        acting.step(select.replace("SELECT ", f"SELECT {next(fresh)}, "))

    def episode() -> None:
        env = benchmark.make(task)
        for action in (show, select, select, answer):
            env.step(action)
        env.close()

    write = microseconds(lambda: changed.step(update))
    fork = microseconds(lambda: fork_and_act(clean))
    rows = {
        "make (database opens at its first statement)": microseconds(lambda: benchmark.make(task)),
        "fork": microseconds(lambda: clean.fork().close()),
        "fork after a write": max(microseconds(fork_after_write) - write, 0.0),
        "fork, first statement in it, close": fork,
        "statement": microseconds(lambda: acting.step(select)),
        "statement, new text": microseconds(new_statement),
        "state hash": microseconds(acting.state_hash),
        "episode of three queries and an answer": microseconds(episode),
    }
    for name, value in rows.items():
        print(f"{value:9.1f} us  {name}")
    return int(fork >= FORK_LIMIT_US)


if __name__ == "__main__":
    sys.exit(main())
