"""Exported controller traces."""

import csv
from pathlib import Path

import pytest

from rail.errors import TraceError
from rail.traces.export import TRACES, export_all, export_run, load_traces, sheet_path
from rail.traces.schema import INTERVENTIONS
from rail.traces.store import read_table
from tests.traces.grids import filled, write_run


def rows(*gains: float) -> list[dict[str, object]]:
    return [filled(INTERVENTIONS, step=i, gain=gain) for i, gain in enumerate(gains)]


def test_every_run_that_intervened_is_exported_with_its_name(tmp_path: Path) -> None:
    write_run(tmp_path, "rail", 2, interventions=rows(0.1, 0.2))
    write_run(tmp_path, "rail", 10, interventions=rows(0.3))
    write_run(tmp_path, "grpo_8", 2, interventions=[])
    write_run(tmp_path, "grpo_16", 2)
    paths = export_all(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in paths] == [
        "traces/db/rail/seed2.parquet",
        "traces/db/rail/seed10.parquet",
        "traces/schema.csv",
    ]
    frame = load_traces(tmp_path, "db", "rail")
    assert list(frame.columns) == list(TRACES)
    assert list(zip(frame["seed"], frame["gain"], strict=True)) == [(2, 0.1), (2, 0.2), (10, 0.3)]
    assert read_table(paths[0], TRACES)["method"].tolist() == ["rail", "rail"]


def test_sheet_explains_every_column(tmp_path: Path) -> None:
    export_all(tmp_path)
    with sheet_path(tmp_path).open() as file:
        sheet = list(csv.DictReader(file))
    assert [row["column"] for row in sheet] == list(TRACES)
    assert all(row["meaning"] and row["dtype"] for row in sheet)
    gain = next(row for row in sheet if row["column"] == "gain")
    assert gain == {
        "column": "gain",
        "dtype": "float64",
        "unit": "gain",
        "meaning": "y, net of cost; NaN on skip",
    }


def test_missing_table_and_missing_export_are_named(tmp_path: Path) -> None:
    write_run(tmp_path, "grpo_8", 2)
    with pytest.raises(TraceError, match=r"interventions\.parquet: no such table"):
        export_run(tmp_path, "db", "grpo_8", 2)
    with pytest.raises(TraceError, match="no trace of db/rail; run `snakemake traces`"):
        load_traces(tmp_path, "db", "rail")
