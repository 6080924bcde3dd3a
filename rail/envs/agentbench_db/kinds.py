"""The ten kinds of generated tasks: question, gold SQL, scripted queries, and their usual mistakes.

Templates are filled with the fields of a task (see `rail.envs.agentbench_db.generator`):
`t` table, `x` the row asked about, `y` a new row's name, `v` a new value; `c`, `d` numeric
columns, `r` reference column, `g` group column, and `cs`, `ds`, `rs`, `gs` the names that those
columns do *not* have in this table; `C`, `D`, `R`, `G` the concepts as the question says them;
`way`, `away` the sort order and its opposite; `o1`, `o2` what the first and second query showed.
Every value is quoted, names of tables are in backticks and `SUM( c)` has its space, so that a
copied word has the same tokens in both places. A mistake changes columns, order, aggregate or
condition and never which value is copied: with two values to choose from, a small policy mixes the
first syllable of one with the second of the other (in 27 % of rollouts, seen after 800 steps on
demonstrations that left it the choice).
The kinds and their mistakes are `our choice`; upstream has lookups, rankings, sums, INSERT, UPDATE.
"""

import re
from dataclasses import dataclass
from typing import Literal

After = Literal["error", "silent", "final"]

_COLUMN = re.compile(r"\{([cdrg])\}")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A structured mistake at one query.

    Attributes:
        name: What goes wrong.
        sql: The wrong query.
        after: What a retry depends on: `error`, the failure shows; `silent`, it does not;
            `final`, the mistake cannot be taken back.
    """

    name: str
    sql: str
    after: After


@dataclass(frozen=True, slots=True)
class Stage:
    """One query of the right way, with what the demonstrator does instead when it fails."""

    sql: str
    mistakes: tuple[Mistake, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Fields of the columns that the right query names, each once."""
        return tuple(dict.fromkeys(_COLUMN.findall(self.sql)))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of task.

    Attributes:
        question: Template of the description.
        gold: One SELECT that gives the answer; None for mutations (their last query is gold).
        columns: Fields of the columns that the table has beside `name`.
        stages: Queries of the right way.
        slip: Answer given when the last look goes wrong; None for mutations.
        hard: The query whose words name the number asked for: there the kind is hardest.
    """

    question: str
    gold: str | None
    columns: str
    stages: tuple[Stage, ...]
    slip: str | None
    hard: int = -1

    @property
    def mutates(self) -> bool:
        """Whether the task changes the table."""
        return self.gold is None


def _silent(name: str, sql: str) -> Mistake:
    return Mistake(name, sql, "silent")


def _error(sql: str) -> Mistake:
    return Mistake("sibling_column", sql, "error")


def _final(name: str, sql: str) -> Mistake:
    return Mistake(name, sql, "final")


_OWN_VALUE = Stage(
    "SELECT {c} FROM `{t}` WHERE name='{x}'",
    (
        _silent("wrong_column", "SELECT name FROM `{t}` WHERE name='{x}'"),
        _silent("dropped_condition", "SELECT {c} FROM `{t}` LIMIT 1"),
        _error("SELECT {cs} FROM `{t}` WHERE name='{x}'"),
    ),
)
_REFERENCE = Stage(
    "SELECT {r} FROM `{t}` WHERE name='{x}'",
    (
        _silent("inverted_hop", "SELECT name FROM `{t}` WHERE {r}='{x}'"),
        _silent("dropped_condition", "SELECT {r} FROM `{t}` LIMIT 1"),
        _error("SELECT {rs} FROM `{t}` WHERE name='{x}'"),
    ),
)
_GROUP = Stage(
    "SELECT {g} FROM `{t}` WHERE name='{x}'",
    (
        _silent("wrong_column", "SELECT name FROM `{t}` WHERE name='{x}'"),
        _silent("dropped_condition", "SELECT {g} FROM `{t}` LIMIT 1"),
        _error("SELECT {gs} FROM `{t}` WHERE name='{x}'"),
    ),
)


def _extreme(by: str) -> Stage:
    def query(column: str, order: str) -> str:
        return f"SELECT name FROM `{{t}}` ORDER BY {column} {{{order}}} LIMIT 1"

    return Stage(
        query(f"{{{by}}}", "way"),
        (
            _silent("inverted_order", query(f"{{{by}}}", "away")),
            _silent("wrong_column", query("name", "way")),
            _error(query(f"{{{by}s}}", "way")),
        ),
    )


def _value_of(seen: str) -> Stage:
    """The `c` of the row found last; asking for its name instead forgets the last hop."""

    def query(column: str) -> str:
        return f"SELECT {column} FROM `{{t}}` WHERE name='{{{seen}}}'"

    return Stage(
        query("{c}"),
        (
            _silent("forgotten_hop", query("name")),
            _silent("dropped_condition", "SELECT {c} FROM `{t}` LIMIT 1"),
            _error(query("{cs}")),
        ),
    )


KINDS: dict[str, Kind] = {
    "lookup": Kind(
        "What is the {C} of '{x}'?",
        "SELECT {c} FROM `{t}` WHERE name='{x}'",
        "rcd",
        (_OWN_VALUE,),
        "{x}",
    ),
    "extreme": Kind(
        "What is the {C} of the one with the {most} {D}?",
        "SELECT {c} FROM `{t}` ORDER BY {d} {way} LIMIT 1",
        "cd",
        (_extreme("d"), _value_of("o1")),
        "{o1}",
    ),
    "next_above": Kind(
        "Who comes next above '{x}' in {C}?",
        "SELECT name FROM `{t}` WHERE {c} > (SELECT {c} FROM `{t}` WHERE name='{x}')"
        " ORDER BY {c} LIMIT 1",
        "cd",
        (
            _OWN_VALUE,
            Stage(
                "SELECT name FROM `{t}` WHERE {c}>'{o1}' ORDER BY {c} LIMIT 1",
                (
                    _silent("dropped_condition", "SELECT name FROM `{t}` ORDER BY {c} LIMIT 1"),
                    _silent(
                        "inverted_order",
                        "SELECT name FROM `{t}` WHERE {c}>'{o1}' ORDER BY {c} DESC LIMIT 1",
                    ),
                    _error("SELECT name FROM `{t}` WHERE {cs}>'{o1}' ORDER BY {cs} LIMIT 1"),
                ),
            ),
        ),
        "{o1}",
    ),
    "group_sum": Kind(
        "What is the total {C} of the {G} of '{x}'?",
        "SELECT SUM( {c}) FROM `{t}` WHERE {g}=(SELECT {g} FROM `{t}` WHERE name='{x}')",
        "gcd",
        (
            _GROUP,
            Stage(
                "SELECT SUM( {c}) FROM `{t}` WHERE {g}='{o1}'",
                (
                    _silent("aggregate", "SELECT MAX( {c}) FROM `{t}` WHERE {g}='{o1}'"),
                    _silent("dropped_condition", "SELECT SUM( {c}) FROM `{t}`"),
                    _error("SELECT SUM( {cs}) FROM `{t}` WHERE {g}='{o1}'"),
                ),
            ),
        ),
        "{o1}",
    ),
    "two_hop": Kind(
        "What is the {C} of the {R} of '{x}'?",
        "SELECT {c} FROM `{t}` WHERE name=(SELECT {r} FROM `{t}` WHERE name='{x}')",
        "rcd",
        (_REFERENCE, _value_of("o1")),
        "{o1}",
    ),
    "chain": Kind(
        "What is the {C} of the {R} of the {R} of '{x}'?",
        "SELECT {c} FROM `{t}` WHERE name=(SELECT {r} FROM `{t}` WHERE name="
        "(SELECT {r} FROM `{t}` WHERE name='{x}'))",
        "rcd",
        (
            _REFERENCE,
            Stage(
                "SELECT {r} FROM `{t}` WHERE name='{o1}'",
                (
                    _silent("inverted_hop", "SELECT name FROM `{t}` WHERE {r}='{o1}'"),
                    _silent("forgotten_hop", "SELECT name FROM `{t}` WHERE name='{o1}'"),
                    _error("SELECT {rs} FROM `{t}` WHERE name='{o1}'"),
                ),
            ),
            _value_of("o2"),
        ),
        "{o2}",
    ),
    "update": Kind(
        "Make '{y}' the {R} of the one with the {most} {C}.",
        None,
        "rcd",
        (
            _extreme("c"),
            Stage(
                "UPDATE `{t}` SET {r}='{y}' WHERE name='{o1}'",
                (
                    _final("wrong_column", "UPDATE `{t}` SET name='{y}' WHERE name='{o1}'"),
                    _final("dropped_condition", "UPDATE `{t}` SET {r}='{y}'"),
                    _error("UPDATE `{t}` SET {rs}='{y}' WHERE name='{o1}'"),
                ),
            ),
        ),
        None,
        hard=0,
    ),
    "insert": Kind(
        "Add '{y}' with {C} '{v}' to the {G} of '{x}'.",
        None,
        "gc",
        (
            _GROUP,
            Stage(
                "INSERT INTO `{t}` (name, {g}, {c}) VALUES ('{y}', '{o1}', '{v}')",
                (
                    _final(
                        "inverted_order",
                        "INSERT INTO `{t}` ({c}, {g}, name) VALUES ('{y}', '{o1}', '{v}')",
                    ),
                    _final("wrong_column", "INSERT INTO `{t}` (name, {g}) VALUES ('{y}', '{o1}')"),
                    _error("INSERT INTO `{t}` (name, {g}, {cs}) VALUES ('{y}', '{o1}', '{v}')"),
                ),
            ),
        ),
        None,
    ),
    "delete": Kind(
        "Remove the one with the {most} {C}.",
        None,
        "rcd",
        (
            _extreme("c"),
            Stage(
                "DELETE FROM `{t}` WHERE name='{o1}'",
                (
                    _final("inverted_hop", "DELETE FROM `{t}` WHERE {r}='{o1}'"),
                    _final("dropped_condition", "DELETE FROM `{t}`"),
                    _error("DELETE FROM `{t}` WHERE {rs}='{o1}'"),
                ),
            ),
        ),
        None,
        hard=0,
    ),
    "assign": Kind(
        "Make the one with the {most} {C} the {R} of '{x}'.",
        None,
        "rcd",
        (
            _extreme("c"),
            Stage(
                "UPDATE `{t}` SET {r}='{o1}' WHERE name='{x}'",
                (
                    _final("wrong_column", "UPDATE `{t}` SET name='{o1}' WHERE name='{x}'"),
                    _final("dropped_condition", "UPDATE `{t}` SET {r}='{o1}'"),
                    _error("UPDATE `{t}` SET {rs}='{o1}' WHERE name='{x}'"),
                ),
            ),
        ),
        None,
        hard=0,
    ),
}
