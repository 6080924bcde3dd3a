"""Generated tasks in AgentBench-DB's row format: one small table each, labels from real SQL.

A row has the upstream fields (`description`, `type`, `table`, `label`, `answer_md5` of mutations,
`sql` of questions, `add_description`) and three of ours: `hidden_schema` (the prompt names no
columns), `concept` (the number asked for) and `fields` (what fills the templates of its kind).
"""

from typing import Any

from pydantic import ValidationError

from rail.envs.agentbench_db.draws import Draws
from rail.envs.agentbench_db.kinds import KINDS, Kind
from rail.envs.agentbench_db.schemas import (
    GROUPS,
    NUMBERS,
    REFERENCES,
    Partition,
    draw_names,
)
from rail.envs.agentbench_db.settings import GeneratorSettings
from rail.errors import ConfigError
from rail.seeding import generator as stream
from rail.tools.sql import Connections, Database, Table

Row = dict[str, Any]


def settings_of(settings: dict[str, Any]) -> GeneratorSettings:
    """Validate the generator's settings.

    Raises:
        ConfigError: If a key is unknown or a value out of range.
    """
    try:
        return GeneratorSettings.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(f"settings of the generated AgentBench-DB tasks: {error}") from error


def generate(settings: dict[str, Any], panel: str, size: int) -> list[Row]:
    """Return `size` rows of a panel, balanced over kinds and, within each kind, over concepts.

    Args:
        settings: See `GeneratorSettings`.
        panel: A name listed in `settings.panels`.
        size: Number of tasks.

    Raises:
        ConfigError: If the panel is not listed: without a seed of its own it does not exist.
    """
    checked = settings_of(settings)
    if panel not in checked.panels:
        raise ConfigError(
            f"no panel '{panel}' has been given a seed; there are {', '.join(checked.panels)}"
            " (test_b is listed only once the experiment is frozen)"
        )
    place = checked.panels[panel]
    draws = Draws(stream(place.seed, "agentbench_db", "panel", panel))
    decks: dict[str, list[str]] = {kind: [] for kind in KINDS}
    order: list[str] = []
    pool = Connections()
    rows: list[Row] = []
    for _ in range(size):
        order = order or draws.shuffled(list(KINDS))
        kind = order.pop()
        decks[kind] = decks[kind] or draws.shuffled(list(NUMBERS))
        rows.append(draw_row(draws, kind, decks[kind].pop(), place.names, checked.rows, pool))
    return rows


def draw_row(
    draws: Draws,
    kind: str,
    concept: str,
    partition: Partition,
    rows: tuple[int, int],
    pool: Connections | None,
) -> Row:
    """Draw one task.

    Args:
        draws: Stream.
        kind: A key of `KINDS`.
        concept: A key of `schemas.NUMBERS`, the number that the task is about.
        partition: Whose names it may use.
        rows: Fewest and most rows of the table.
        pool: Where the database that computes the label takes its connection from; None: the label
            is left out, which halves the cost of a demonstration.
    """
    form = KINDS[kind]
    while True:
        fields, columns, cells = _draw_table(draws, form, concept, partition, rows)
        if _pick_subject(draws, form, fields, cells):
            break
    return _labelled(kind, concept, fields, columns, cells, pool)


def _draw_table(
    draws: Draws, form: Kind, concept: str, partition: Partition, rows: tuple[int, int]
) -> tuple[dict[str, str], list[str], list[dict[str, str]]]:
    """Return the fields known so far, the table's columns as field letters, and its cells.

    All numbers of a table differ and have two digits, so that text sorts like numbers and an answer
    found by a wrong query is a wrong answer.
    """
    size = rows[0] + draws.below(rows[1] - rows[0] + 1)
    table, new, *words = draw_names(draws, partition, size + 5)
    entities = [word.capitalize() for word in words[:size]]
    groups = [word.capitalize() for word in words[size : size + (2 if size < 6 else 3)]]
    numbers = [str(number) for number in draws.sample(range(10, 100), 2 * size + 1)]
    other = draws.choice([name for name in NUMBERS if name != concept])
    fields = {"t": table, "y": new.capitalize(), "v": numbers.pop()}
    asked = {
        "c": (concept, NUMBERS),
        "d": (other, NUMBERS),
        "r": (draws.choice(list(REFERENCES)), REFERENCES),
        "g": (draws.choice(list(GROUPS)), GROUPS),
    }
    for letter, (word, vocabulary) in asked.items():
        here = draws.below(2)
        fields[letter.upper()] = word
        fields[letter] = vocabulary[word][here]
        fields[letter + "s"] = vocabulary[word][1 - here]
    most = draws.below(2)
    fields["most"] = ("most", "least")[most]
    fields["way"], fields["away"] = (("DESC", "ASC"), ("ASC", "DESC"))[most]

    cycle = draws.shuffled(range(size))  # one cycle: nobody is its own boss, nor its boss's boss
    boss = {row: cycle[(place + 1) % size] for place, row in enumerate(cycle)}
    pairs = [group for group in groups for _ in range(2)]  # no group of one
    teams = draws.shuffled(pairs + [draws.choice(groups) for _ in range(size - len(pairs))])
    cells = [
        {
            "name": entities[row],
            "c": numbers[row],
            "d": numbers[size + row],
            "r": entities[boss[row]],
            "g": teams[row],
        }
        for row in range(size)
    ]
    return fields, ["name", *draws.shuffled(form.columns)], cells


def _pick_subject(
    draws: Draws,
    form: Kind,
    fields: dict[str, str],
    cells: list[dict[str, str]],
) -> bool:
    """Choose the row asked about; False if in this table a usual mistake could hit the answer."""
    first = cells[0]  # what a dropped condition finds
    question = form.question
    if "{most}" in question:
        by = "d" if "{D}" in question else "c"
        ranked = sorted(cells, key=lambda cell: cell[by], reverse=fields["way"] == "DESC")
        names = sorted(cell["name"] for cell in cells)
        top = ranked[0]["name"]
        if "{x}" in question:
            others = [cell["name"] for cell in cells[1:] if top not in (cell["name"], cell["r"])]
            fields["x"] = draws.choice(others)
        return ranked[0] is not first and top not in (names[0], names[-1])
    subject = cells[1 + draws.below(len(cells) - 1)]
    fields["x"] = subject["name"]
    if "above" in question:
        return _apart_above(subject, cells)
    if "{G}" in question:
        return _apart_sums(subject, cells)
    boss = next(cell for cell in cells if cell["name"] == subject["r"])
    return "{R}" not in question or first["name"] not in (boss["name"], boss["r"])


def _above(value: str, cells: list[dict[str, str]]) -> str | None:
    higher = sorted((cell["c"], cell["name"]) for cell in cells if cell["c"] > value)
    return higher[0][1] if higher else None


def _apart_above(subject: dict[str, str], cells: list[dict[str, str]]) -> bool:
    top = max(cells, key=lambda cell: cell["c"])["name"]
    return _above(subject["c"], cells) not in {None, top}


def _apart_sums(subject: dict[str, str], cells: list[dict[str, str]]) -> bool:
    def total(group: str) -> int:
        return sum(int(cell["c"]) for cell in cells if cell["g"] == group)

    others = {cell["g"] for cell in cells} - {subject["g"]}
    answer = total(subject["g"])
    return cells[0]["g"] != subject["g"] and answer not in {total(group) for group in others}


def _labelled(
    kind: str,
    concept: str,
    fields: dict[str, str],
    columns: list[str],
    cells: list[dict[str, str]],
    pool: Connections | None,
) -> Row:
    """Run the gold SQL on the table and write the row."""
    form = KINDS[kind]
    names = [fields.get(column, column) for column in columns]
    cells_in_order = [[cell[column] for column in columns] for cell in cells]
    table = {
        "table_name": fields["t"],
        "table_info": {
            "columns": [{"name": name, "type": "TEXT"} for name in names],
            "rows": cells_in_order,
        },
    }
    row: Row = {
        "description": form.question.format_map(fields),
        "add_description": "Table `{t}`.".format_map(fields),
        "type": [kind],
        "table": table,
        "hidden_schema": True,
        "concept": concept,
        "fields": fields,
    }
    if pool is None:
        row["label"] = ["not computed"]
        return row
    built = Table(fields["t"], names, ["TEXT"] * len(names), cells_in_order)
    database = Database.build([built], pool)
    try:
        if form.gold is not None:
            query = form.gold.format_map(fields)
            row["label"] = [str(cell) for cell in database.rows(query)[0]]
            row["sql"] = {"query": query, "length": len(query.split())}
        else:
            seen = dict(fields)
            for number, stage in enumerate(form.stages[:-1], start=1):
                seen[f"o{number}"] = str(database.rows(stage.sql.format_map(seen))[0][0])
            gold = form.stages[-1].sql.format_map(seen)
            database.rows(gold)
            row["label"] = [gold]
            row["answer_md5"] = f"[('{database.upstream_hash([fields['t']])}',)]"
    finally:
        database.close()
    return row
