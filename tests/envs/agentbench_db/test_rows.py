import json
from pathlib import Path
from typing import Any

import pytest

from rail.envs.agentbench_db.rows import load, spec_of
from rail.errors import DataError

from .rows import ROWS, mutation, question


def _write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_question() -> None:
    spec = spec_of(question(["4"], "SELECT age FROM people WHERE name = 'Ann'"))
    assert (spec.kind, spec.mutates, spec.label) == ("other", False, ("4",))
    assert spec.gold == "SELECT age FROM people WHERE name = 'Ann'"
    assert spec.prompt == (
        "How old is Ann? The name of this table is people, and its headers are name,age."
    )
    (table,) = spec.tables
    assert (table.name, table.columns, table.types) == ("people", ["name", "age"], ["TEXT", "INT"])
    assert table.rows == ROWS


def test_a_mutation() -> None:
    spec = spec_of(mutation("DELETE FROM people", "0" * 32))
    assert (spec.mutates, spec.md5, spec.gold) == (True, "0" * 32, None)
    assert spec_of(mutation("DELETE FROM people")).md5 == ""


def test_several_tables_may_be_given() -> None:
    row = question(["4"])
    row["table"] = [row["table"], {**row["table"], "table_name": "others"}]
    assert [table.name for table in spec_of(row).tables] == ["people", "others"]


def test_wrapped_rows_carry_id_and_repair(tmp_path: Path) -> None:
    repaired = {"id": "x-7", "upstream": question(["4"], "SELECTage"),
                "check": {"repaired_sql": "SELECT age FROM people"}}  # fmt: skip
    path = _write(tmp_path / "a.jsonl", [repaired, question(["4"])])
    (first, wrapped), (second, bare) = load(path)
    assert (first, second) == ("x-7", "")
    assert spec_of(wrapped).gold == "SELECT age FROM people"
    assert spec_of(bare).gold is None


def _broken(**fields: Any) -> dict[str, Any]:
    row = question(["4"])
    table = {**row["table"], **fields.pop("table", {})}
    return {**row, "table": table, **fields}


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({}, "row 2, field description: Field required"),
        (_broken(description=None), "row 2, field description: .* got None"),
        (_broken(type=[]), "row 2, field type: "),
        (_broken(label="4"), "row 2, field label: .* got '4'"),
        (_broken(table={"table_name": ""}), "row 2, field table.0.table_name: "),
        (_broken(table={"table_info": {"columns": [{"name": "a"}], "rows": [["1", "2"]]}}),
         "row 2, field table.table_info.rows.0: 2 cells for 1 columns of table 'people'"),
        (_broken(answer_md5="[('xyz',)]"), "row 2, field answer_md5: expected"),
        (_broken(hidden_schema=True), r"row 2, field add_description: .* \['name', 'age'\]"),
        ({**mutation("x"), "label": []}, "row 2, field label: a UPDATE task needs its gold"),
        ([1], "row 2: expected an object, got list"),
        ({"upstream": 5}, "row 2, field upstream: expected an object, got int"),
    ],
)  # fmt: skip
def test_an_unreadable_row_is_named(tmp_path: Path, row: Any, error: str) -> None:
    path = _write(tmp_path / "a.jsonl", [question(["4"]), row])
    with pytest.raises(DataError, match=error) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b'{"description": "x"', "row 1: not valid JSON"),
        (b"\xff\xfe", "cannot be read"),
        (b"\n\n", "holds no row"),
        (None, "cannot be read"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes | None, error: str) -> None:
    path = tmp_path / "a.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=error):
        load(path)
