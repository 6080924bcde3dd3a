"""The grid of finished runs as data frames."""

from pathlib import Path

import pytest

from rail.errors import DataError, TraceError
from rail.traces.frames import load, runs
from tests.traces.grids import evaluation_rows, write_run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for method in ("rail", "grpo_8"):
        for seed in (2, 10):
            rows = evaluation_rows({"a": [1, 0]})
            write_run(tmp_path, method, seed, evaluation=rows, billed=[64], info={"k": seed})
    return tmp_path


def test_runs_are_found_in_numeric_order_with_their_descriptor(results: Path) -> None:
    found = runs(results)
    assert [run.name for run in found] == [
        "db/grpo_8/seed2",
        "db/grpo_8/seed10",
        "db/rail/seed2",
        "db/rail/seed10",
    ]
    assert found[1].info == {"k": 10}
    assert [run.seed for run in runs(results, "db", "rail")] == [2, 10]
    assert runs(results, "os") == []


def test_folder_without_descriptor_is_not_a_finished_run(results: Path) -> None:
    (results / "runs/db/rail/seed3").mkdir()
    assert [run.seed for run in runs(results, method="rail")] == [2, 10]


def test_load_puts_the_run_in_front(results: Path) -> None:
    frame = load(results, "evaluation", methods=["rail"])
    assert list(frame.columns[:5]) == ["benchmark", "method", "seed", "step", "mode"]
    assert frame["seed"].tolist() == [2, 2, 10, 10]
    assert frame["reward"].tolist() == [1.0, 0.0, 1.0, 0.0]
    assert len(load(results, "steps")) == 4


def test_named_run_that_is_missing_is_named(results: Path) -> None:
    with pytest.raises(TraceError, match="1 runs missing, first: db/rail/3"):
        load(results, "steps", ["db"], ["rail"], [2, 3])
    with pytest.raises(TraceError, match=r"db/arpo/2 \(finished: db/grpo_8, db/rail"):
        load(results, "steps", ["db"], ["arpo", "rail"])
    with pytest.raises(TraceError, match=r"no runs missing, first: any \(finished: none"):
        load(results / "empty", "steps")


def test_unknown_table_and_missing_table_are_named(results: Path) -> None:
    with pytest.raises(TraceError, match="no table 'stepz'; known: steps, rollouts"):
        load(results, "stepz")
    with pytest.raises(TraceError, match=r"seed2/turns\.parquet: no such table"):
        load(results, "turns")


def test_broken_descriptor_is_named(results: Path) -> None:
    (results / "runs/db/rail/seed2/run.json").write_text("{")
    with pytest.raises(TraceError, match=r"rail/seed2/run\.json: not valid JSON"):
        runs(results)


def test_runs_of_different_backends_are_not_loaded_together(tmp_path: Path) -> None:
    for method, backend in (("rail", "native"), ("grpo_8", "torch")):
        write_run(tmp_path, method, 2, billed=[64], info={"backend": backend})
    with pytest.raises(DataError) as caught:
        load(tmp_path, "steps")
    assert "(native: db/rail/seed2; torch: db/grpo_8/seed2)" in str(caught.value)
    assert "`policy.backend`" in str(caught.value)
    assert len(load(tmp_path, "steps", methods=["rail"])) == 1
    write_run(tmp_path, "rail", 3, billed=[64])
    with pytest.raises(DataError, match=r"native: db/rail/seed2; not recorded: db/rail/seed3"):
        load(tmp_path, "steps", methods=["rail"])


def test_each_benchmark_may_have_a_backend_of_its_own(tmp_path: Path) -> None:
    for benchmark, backend in (("db", "native"), ("os", "torch")):
        write_run(tmp_path, "rail", 2, benchmark=benchmark, billed=[64], info={"backend": backend})
    assert len(load(tmp_path, "steps")) == 2
