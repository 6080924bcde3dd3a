"""Rows in AgentBench DBBench's format: reading, checking, and what a task needs of one."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rail.errors import DataError
from rail.tools.sql import Table

MUTATIONS = frozenset(("INSERT", "UPDATE", "DELETE"))
_MD5 = re.compile(r"[0-9a-f]{32}(?:_[0-9a-f]{32})*")

Cell = str | int | float | None


class _Model(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class _Column(_Model):
    name: str
    type: str = "TEXT"


class _TableInfo(_Model):
    columns: Annotated[list[_Column], Field(min_length=1)]
    rows: list[list[Cell]]


class _UpstreamTable(_Model):
    table_name: Annotated[str, Field(min_length=1)]
    table_info: _TableInfo


class _Sql(_Model):
    query: str


class _UpstreamRow(_Model):
    description: Annotated[str, Field(min_length=1)]
    type: Annotated[list[str], Field(min_length=1)]
    table: Annotated[list[_UpstreamTable], Field(min_length=1)]
    label: list[Cell]
    add_description: str = ""
    answer_md5: str = ""
    sql: _Sql | None = None
    repaired_sql: str | None = None
    hidden_schema: bool = False

    @field_validator("table", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return value if isinstance(value, list) else [value]

    @field_validator("answer_md5", "add_description", mode="before")
    @classmethod
    def _none_is_empty(cls, value: object) -> object:
        return "" if value is None else value


@dataclass(frozen=True, slots=True)
class Spec:
    """What a task needs of its row.

    Attributes:
        kind: The row's first type.
        prompt: Description, then the additional description where there is one.
        tables: Tables to build.
        label: Gold cells of a question; gold statements of a mutation.
        mutates: The state is judged, not the answer.
        gold: A question's gold statement, repaired where the file says so; None if not given.
        md5: Upstream's digest of the right end state; empty if not given.
    """

    kind: str
    prompt: str
    tables: tuple[Table, ...]
    label: tuple[str, ...]
    mutates: bool
    gold: str | None
    md5: str


def spec_of(row: Mapping[str, Any], where: str = "row") -> Spec:
    """Check a row and return what a task needs of it.

    Args:
        row: A row in upstream format.
        where: How an error calls the row.

    Raises:
        DataError: Naming row and field, if one is missing or of the wrong form, if a table's rows
            differ in length from its columns, or if a row with `hidden_schema` names a column.
    """
    try:
        checked = _UpstreamRow.model_validate(dict(row))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{where}, field {name}: {first['msg']}, got {_short(first.get('input'))}"
        ) from error
    tables = tuple(_table(t, where) for t in checked.table)
    kind = checked.type[0]
    digest = _digest(checked.answer_md5, where)
    mutates = kind.upper() in MUTATIONS or bool(digest)
    label = tuple("none" if cell is None else str(cell) for cell in checked.label)
    if mutates and not label:
        raise DataError(f"{where}, field label: a {kind} task needs its gold statement, got []")
    if checked.hidden_schema:
        _nothing_told(checked.add_description, tables, where)
    query = checked.sql.query if checked.sql else None
    return Spec(
        kind=kind,
        prompt=" ".join(
            filter(None, (checked.description.strip(), checked.add_description.strip()))
        ),
        tables=tables,
        label=label,
        mutates=mutates,
        gold=checked.repaired_sql or query,
        md5=digest,
    )


def load(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Read a JSON-lines file of rows, bare or wrapped as `{"id": ..., "upstream": {...}}`.

    Returns:
        (id, row) in file order; the id is empty where the file gives none. A wrapper's
        `check.repaired_sql` becomes the row's field `repaired_sql`.

    Raises:
        DataError: If the file cannot be read, or a row is not what the format promises; names the
            file, the row (counted from 1) and the field.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"task file {path} cannot be read: {error}") from error
    found: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path} row {number}"
        try:
            raw = json.loads(line)
        except ValueError as error:
            raise DataError(f"{where}: not valid JSON: {error}") from error
        if not isinstance(raw, dict):
            raise DataError(f"{where}: expected an object, got {type(raw).__name__}")
        row = raw.get("upstream", raw)
        if not isinstance(row, dict):
            raise DataError(
                f"{where}, field upstream: expected an object, got {type(row).__name__}"
            )
        check = raw.get("check")
        repaired = check.get("repaired_sql") if isinstance(check, dict) else None
        row = {**row, "repaired_sql": repaired} if repaired else row
        spec_of(row, where)
        found.append((str(raw.get("id", "")), row))
    if not found:
        raise DataError(f"task file {path} holds no row")
    return found


def _table(table: _UpstreamTable, where: str) -> Table:
    names = [c.name for c in table.table_info.columns]
    for number, row in enumerate(table.table_info.rows):
        if len(row) != len(names):
            raise DataError(
                f"{where}, field table.table_info.rows.{number}: {len(row)} cells for"
                f" {len(names)} columns of table {table.table_name!r}"
            )
    types = [c.type for c in table.table_info.columns]
    return Table(table.table_name, names, types, table.table_info.rows)


def _digest(text: str, where: str) -> str:
    """The digest inside upstream's `[('<hex>',)]`."""
    bare = text.strip().strip("[](),'\" ")
    if bare and not _MD5.fullmatch(bare):
        raise DataError(
            f"{where}, field answer_md5: expected [('<32 hex digits>',)], got {_short(text)}"
        )
    return bare


def _nothing_told(text: str, tables: Sequence[Table], where: str) -> None:
    told = [
        column
        for table in tables
        for column in table.columns
        if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", text)
    ]
    if told:
        raise DataError(
            f"{where}, field add_description: hidden_schema is true, but it names columns {told}"
        )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
