"""Tables hold what they declare, in equal bytes, whole or not at all."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rail.errors import TraceError
from rail.traces.schema import INTERVENTIONS, TABLES, Column, Schema
from rail.traces.store import read_rows, read_table, schema_of, write_table

SCHEMA: Schema = {
    "step": Column("int64", "policy step", "0-based"),
    "reward": Column("float64", "", "strict reward"),
    "kept": Column("bool", "", "entered the update"),
    "kind": Column("string", "", "stratum"),
    "features": Column("list<float64>", "", "z"),
}
ROWS: list[dict[str, Any]] = [
    {"step": 0, "reward": 1, "kept": True, "kind": "a", "features": [0.5, 1.0]},
    {"step": 1, "reward": float("nan"), "kept": False, "kind": "", "features": []},
]


def test_rows_come_back_in_declared_order_with_declared_types(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    shuffled = [dict(reversed(row.items())) for row in ROWS]
    write_table(path, shuffled, SCHEMA)
    frame = read_table(path, SCHEMA)
    assert list(frame.columns) == list(SCHEMA)
    assert [str(t) for t in frame.dtypes] == ["int64", "float64", "bool", "str", "object"]
    assert frame["reward"].tolist()[0] == 1.0
    assert np.isnan(frame["reward"].tolist()[1])
    assert [list(z) for z in frame["features"]] == [[0.5, 1.0], []]
    rows = read_rows(path, SCHEMA)
    assert rows[0] == {"step": 0, "reward": 1.0, "kept": True, "kind": "a", "features": [0.5, 1.0]}


def test_file_carries_unit_and_meaning(tmp_path: Path) -> None:
    write_table(tmp_path / "t.parquet", ROWS, SCHEMA)
    assert schema_of(tmp_path / "t.parquet") == SCHEMA


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_declared_table_can_be_written_empty(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / "t.parquet", [], TABLES[name])
    assert read_table(tmp_path / "t.parquet", TABLES[name]).shape == (0, len(TABLES[name]))
    assert schema_of(tmp_path / "t.parquet") == TABLES[name]


def test_rows_and_the_frame_of_them_give_equal_bytes(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", ROWS, SCHEMA)
    write_table(tmp_path / "b.parquet", pd.DataFrame(ROWS, columns=list(SCHEMA)[::-1]), SCHEMA)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_two_processes_write_equal_bytes(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from rail.traces.schema import INTERVENTIONS as S\n"
        "from rail.traces.store import write_table\n"
        "one = {'int64': 7, 'float64': 0.1, 'bool': True, 'string': 'x', 'list<float64>': [0.1]}\n"
        "rows = [{n: one[c.dtype] for n, c in S.items()} | {'step': i} for i in range(500)]\n"
        "write_table(pathlib.Path(sys.argv[1]), rows, S)\n"
    )
    digests = set()
    for name, hash_seed in (("a", "1"), ("b", "2")):
        path = tmp_path / f"{name}.parquet"
        subprocess.run(
            [sys.executable, "-c", program, str(path)],
            check=True,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1
    assert read_table(tmp_path / "a.parquet", INTERVENTIONS)["step"].tolist() == list(range(500))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("step", 1.5, "column 'step' got double, expected int64"),
        ("step", 2.0, "column 'step' got double, expected int64"),
        ("step", True, "column 'step' mixes bool, int, expected int64"),
        ("step", None, "column 'step' is None in row 1, expected int64"),
        ("reward", "1", "column 'reward' mixes int, str, expected float64"),
        ("kept", 1, "column 'kept' mixes bool, int, expected bool"),
        ("kind", b"a", "column 'kind' got binary, expected string"),
        ("features", 0.5, "column 'features' mixes float, list, expected list<float64>"),
        ("features", [None], "a list of column 'features' holds None"),
        ("features", ["x"], "column 'features' mixes list, expected list<float64>"),
    ],
)
def test_wrong_value_names_table_column_got_and_expected(
    tmp_path: Path, column: str, value: Any, message: str
) -> None:
    path = tmp_path / "t.parquet"
    with pytest.raises(TraceError) as caught:
        write_table(path, [ROWS[0], {**ROWS[1], column: value}], SCHEMA)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert not path.exists()


def test_missing_and_undeclared_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="row 1: column 'kept' is missing"):
        write_table(
            tmp_path / "t", [ROWS[0], {k: v for k, v in ROWS[1].items() if k != "kept"}], SCHEMA
        )
    with pytest.raises(TraceError, match="row 0: column 'extra' is not declared"):
        write_table(tmp_path / "t", [{**ROWS[0], "extra": 1}], SCHEMA)
    with pytest.raises(TraceError, match="column 'kind' is missing"):
        write_table(tmp_path / "t", pd.DataFrame(ROWS).drop(columns="kind"), SCHEMA)


@pytest.mark.parametrize("keep", [0, 3, 200, -1])
def test_truncated_file_is_one_clear_line(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "t.parquet"
    write_table(path, ROWS, SCHEMA)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(TraceError, match="truncated or no parquet file") as caught:
        read_table(path, SCHEMA)
    assert str(caught.value).startswith(str(path))
    assert "delete it and run again" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_flipped_bytes_are_found(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_table(path, ROWS * 500, SCHEMA)
    whole = bytearray(path.read_bytes())
    whole[20:60] = bytes(40)
    path.write_bytes(whole)
    with pytest.raises(TraceError, match="truncated or no parquet file"):
        read_table(path, SCHEMA)


def test_missing_file_and_missing_column_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"gone\.parquet: no such table"):
        read_table(tmp_path / "gone.parquet", SCHEMA)
    write_table(tmp_path / "t.parquet", ROWS, SCHEMA)
    wider = {**SCHEMA, "cost": Column("float64", "", "new")}
    with pytest.raises(TraceError, match="column 'cost' is missing"):
        read_table(tmp_path / "t.parquet", wider)
    other = {**SCHEMA, "reward": Column("int64", "", "changed")}
    with pytest.raises(TraceError, match="column 'reward' has dtype double, expected int64"):
        read_table(tmp_path / "t.parquet", other)


def test_file_that_rail_did_not_write_has_no_schema(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    with pytest.raises(TraceError, match="column 'a' carries no meaning"):
        schema_of(tmp_path / "t.parquet")


def test_importing_the_store_imports_neither_torch_nor_pandas_nor_pyarrow() -> None:
    program = (
        "import sys, rail.traces.store, rail.traces.frames\n"
        "heavy = {'torch', 'pandas', 'pyarrow', 'numpy'} & set(sys.modules)\n"
        "sys.exit(','.join(sorted(heavy)) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert (done.returncode, done.stderr) == (0, "")
