"""What the scripted demonstrator is good at: its competence map, and exact success probabilities.

The map is drawn per warm start. A cell is (kind, concept); both are visible in the question and
shared by all panels, so a policy trained on demonstrations can take the map over. How well the
demonstrator does depends on the concept; the schema look-up that helps it, on the kind's family. A
map drawn for every (family, concept) was not learned in 800 steps: success .29, .45, .55 in three
classes where the demonstrator has .06, .42 and .98. The demonstrator is a small Markov chain over
(queries done, schema look-up taken, turns used): its success probability at any boundary is known
exactly. All numbers are dials (`settings`).

Two properties are there so that states *within* a task differ, which is what interventions can use:
the look-up taken decides most of what follows (`contrast`), and the hard query comes late
(`exponents`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rail.envs.agentbench_db.draws import Draws
from rail.envs.agentbench_db.kinds import KINDS, Mistake
from rail.envs.agentbench_db.schemas import NUMBERS
from rail.envs.agentbench_db.settings import DemonstratorSettings, GeneratorSettings, LevelSettings
from rail.errors import ConfigError
from rail.seeding import generator as stream


@dataclass(frozen=True, slots=True)
class Cell:
    """What the demonstrator can do in one cell.

    Attributes:
        level: Name of its class.
        good_route: Schema look-up after which it does well.
        bias: Probability that it takes that look-up.
        good: Success after the good look-up, if turns suffice.
        bad: The same after the other look-up, or after none.
    """

    level: str
    good_route: str
    bias: float
    good: float
    bad: float


@dataclass(frozen=True, slots=True)
class Competence:
    """The map of one warm start.

    Attributes:
        cells: (kind, concept) -> cell.
        dial: The settings it was drawn from.
        max_turns: Turns of an episode.
    """

    cells: Mapping[tuple[str, str], Cell]
    dial: DemonstratorSettings
    max_turns: int
    _chains: dict[tuple[str, str], "Chain"] = field(default_factory=dict, repr=False)

    def chain(self, row: Mapping[str, Any]) -> "Chain":
        """Return the Markov chain of a generated task.

        Raises:
            ConfigError: If the row was not generated (upstream rows have no `concept`).
        """
        kind, concept = row["type"][0], row.get("concept", "")
        if (kind, concept) not in self.cells:
            raise ConfigError(
                f"no cell of the competence map for kind '{kind}', concept '{concept}':"
                " only generated tasks have demonstrations"
            )
        if (kind, concept) not in self._chains:
            cell = self.cells[kind, concept]
            self._chains[kind, concept] = Chain(kind, cell, self.dial, self.max_turns)
        return self._chains[kind, concept]


def success_probability(
    competence: Competence, row: Mapping[str, Any], route: str | None = None
) -> float:
    """Return the exact probability that the demonstrator solves a generated task.

    Args:
        competence: Map of the warm start.
        row: The task's row.
        route: Schema look-up it is known to have started with; None: averaged over its habits.
    """
    chain = competence.chain(row)
    return chain.start() if route is None else chain.value(0, route, 1)


def draw_competence(settings: GeneratorSettings, warm_start: int, max_turns: int) -> Competence:
    """Draw the map of a warm start from its own stream.

    Classes are dealt to the concepts, in counts that follow the shares, so that every kind has the
    same shares. Kinds are dealt into families, and each family has its own good look-up.
    """
    dial = settings.demonstrator
    draws = Draws(stream(settings.seed, "agentbench_db", "competence", warm_start))
    kinds = draws.shuffled(list(KINDS))
    routes = draws.shuffled(dial.routes)
    cells: dict[tuple[str, str], Cell] = {}
    for concept, name in zip(
        NUMBERS, draws.shuffled(_deck(dial.levels, len(NUMBERS))), strict=True
    ):
        level = dial.levels[name]
        success = draws.between(*level.success)
        good = success / (level.good_route + (1 - level.good_route) * level.contrast)
        for place, kind in enumerate(kinds):
            route = routes[place % dial.families % 2]
            cells[kind, concept] = Cell(name, route, level.good_route, good, level.contrast * good)
    return Competence(cells, dial, max_turns)


def _deck(levels: Mapping[str, LevelSettings], size: int) -> list[str]:
    """Return `size` class names in counts that follow the shares, by largest remainder."""
    counts = {name: int(level.share * size) for name, level in levels.items()}
    rests = sorted(levels, key=lambda name: counts[name] - levels[name].share * size)
    for name in rests[: size - sum(counts.values())]:
        counts[name] += 1
    return [name for name, count in counts.items() for _ in range(count)]


class Chain:
    """The demonstrator on one task as a Markov chain.

    A state is (query, route, turns): the number of right queries so far, the schema look-up taken
    or None, and the turns used. `value` is the probability to solve the task from there.
    """

    def __init__(self, kind: str, cell: Cell, dial: DemonstratorSettings, max_turns: int) -> None:
        self.form = KINDS[kind]
        self.cell = cell
        self.dial = dial
        self.max_turns = max_turns
        shares = list(dial.exponents[len(self.form.stages)])
        rest = 1.0 - sum(shares)
        shares[self.form.hard], shares[-1] = shares[-1], shares[self.form.hard]
        if self.form.mutates:
            shares[self.form.hard] += rest
            rest = 0.0
        self._shares = (*shares, rest)
        self._values: dict[tuple[int, str | None, int], float] = {}

    def level(self, route: str | None) -> float:
        """Return the success that the route allows."""
        return self.cell.good if route == self.cell.good_route else self.cell.bad

    def bias(self, route: str) -> float:
        """Return the probability to take `route` when looking the schema up."""
        return self.cell.bias if route == self.cell.good_route else 1.0 - self.cell.bias

    def eventually(self, query: int, route: str | None) -> float:
        """Return the probability that a query (or, after the last, the answer) ends up right."""
        return self.level(route) ** self._shares[query]

    def at_once(self, query: int, route: str | None) -> float:
        """Return the probability that a query is right the first time.

        It solves eventually = at_once + (1 - at_once) * retry * eventually: a retry is right with
        the probability `eventually` itself.
        """
        target = self.eventually(query, route)
        mistakes = self.form.stages[query].mistakes
        retry = sum(self.retry(mistake) for mistake in mistakes) / len(mistakes)
        return target * (1.0 - retry) / (1.0 - retry * target)

    def retry(self, mistake: Mistake) -> float:
        """Return the probability to try again after a mistake, turns permitting."""
        return {"error": self.dial.retry_error, "silent": self.dial.retry_silent, "final": 0.0}[
            mistake.after
        ]

    def room(self, query: int, turns: int) -> bool:
        """Return whether `query`, all later ones and the answer still fit."""
        return turns + len(self.form.stages) - query + 1 <= self.max_turns

    def new_columns(self, query: int) -> list[str]:
        """Return the fields of the columns that `query` is the first to name."""
        known = {column for stage in self.form.stages[:query] for column in stage.columns}
        return [column for column in self.form.stages[query].columns if column not in known]

    def guess(self, query: int) -> float:
        """Return the probability to guess the new columns of a query, two names each."""
        return 0.5 ** len(self.new_columns(query))

    def start(self) -> float:
        """Return the probability to solve the task from its prompt."""
        skip = self.dial.skip
        return skip * self.value(0, None, 0) + (1.0 - skip) * self.looked_up(0, 1)

    def looked_up(self, query: int, turns: int) -> float:
        """Return the success once the schema is looked up before `query`, `turns` used by then."""
        return sum(self.bias(route) * self.value(query, route, turns) for route in self.dial.routes)

    def value(self, query: int, route: str | None, turns: int) -> float:
        """Return the probability to solve the task from a state in which all went well so far."""
        state = (query, route, turns)
        if state not in self._values:
            self._values[state] = self._value(query, route, turns)
        return self._values[state]

    def _value(self, query: int, route: str | None, turns: int) -> float:
        if query == len(self.form.stages):
            return self.eventually(query, route)
        if route is not None:
            return self._asked(query, route, turns)
        guess = self.guess(query)
        return guess * self._asked(query, None, turns) + (1.0 - guess) * self.looked_up(
            query, turns + 2
        )

    def _asked(self, query: int, route: str | None, turns: int) -> float:
        right = self.at_once(query, route)
        mistakes = self.form.stages[query].mistakes
        rescued = sum(self.rescue(mistake, query, route, turns + 1) for mistake in mistakes)
        return right * self.value(query + 1, route, turns + 1) + (1.0 - right) * rescued / len(
            mistakes
        )

    def rescue(self, mistake: Mistake, query: int, route: str | None, turns: int) -> float:
        """Return the probability to solve the task after a mistake at `query`; `turns` are used."""
        if not self.room(query, turns):
            return 0.0
        again = self.retry(mistake) * self.eventually(query, route)
        return again * self.value(query + 1, route, turns + 1) if again else 0.0
