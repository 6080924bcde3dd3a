"""The notebooks of the repository: thin, stripped, and they run on what a grid leaves behind."""

import ast
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from rail.errors import RailError
from rail.notebook import parameters_of, run_notebook
from tests.synthetic import BENCHMARK, LABELS, SEEDS, STEPS_DONE, make_results

SOURCES = sorted(Path(__file__).parents[1].joinpath("notebooks").glob("*.ipynb"))
NAMES = [source.stem for source in SOURCES]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_results(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first run of every notebook writes."""
    return tmp_path_factory.mktemp("once")


def source_of(name: str) -> Path:
    return SOURCES[NAMES.index(name)]


def execute(name: str, results: Path, out: Path, **more: object) -> Path:
    """Run a notebook as its rule does; return the stem of its figure."""
    stem = out / "figures" / name
    values = {"results": str(results), "table": str(out / f"{name}.csv"), "figure": str(stem)}
    if "labels" in parameters_of(source_of(name)):
        values |= {"labels": LABELS, "seeds": list(SEEDS)}
    run_notebook(source_of(name), out / f"{name}.ipynb", {**values, **more}, logs=out / "logs")
    return stem


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_stripped_and_thin(name: str) -> None:
    notebook = nbformat.read(source_of(name), as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert 1 < len(code) <= 6
    assert notebook.cells[0].cell_type == "markdown"
    for cell in code:
        assert cell.outputs == []
        assert cell.execution_count is None
        nodes = list(ast.walk(ast.parse(cell.source)))
        assert not [n for n in nodes if isinstance(n, ast.FunctionDef | ast.Lambda | ast.ClassDef)]
        imported = {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
        assert not {m for m in imported if m and m.startswith(("torch", "rail.train"))}


@pytest.mark.parametrize("name", NAMES)
def test_every_notebook_takes_what_the_figure_rule_gives(name: str) -> None:
    assert {"results", "benchmark", "table", "figure"} <= set(parameters_of(source_of(name)))


@pytest.mark.parametrize("name", NAMES)
def test_notebook_writes_table_figure_and_caption(name: str, results: Path, once: Path) -> None:
    stem = execute(name, results, once)
    assert len(pd.read_csv(once / f"{name}.csv")) > 3
    assert stem.with_suffix(".svg").read_text().count("<path") > 30
    assert stem.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert len(stem.with_name(f"{name}.caption.txt").read_text()) > 100


@pytest.mark.parametrize("name", ["learning_curves"])
def test_second_run_gives_the_same_bytes(
    name: str, results: Path, once: Path, tmp_path: Path
) -> None:
    stem = execute(name, results, tmp_path)
    for file in (tmp_path / f"{name}.csv", stem.with_suffix(".svg"), stem.with_suffix(".pdf")):
        assert file.read_bytes() == (once / file.relative_to(tmp_path)).read_bytes()


def test_table1_has_one_row_per_method_and_rail_first(once: Path) -> None:
    table = pd.read_csv(once / "table1.csv")
    assert list(table["method"]) == list(LABELS)
    assert set(table["seeds"]) == {len(SEEDS)}


def test_figure3_caption_states_window_and_counts(once: Path) -> None:
    caption = (once / "figures" / "figure3.caption.txt").read_text()
    assert (STEPS_DONE, len(SEEDS)) == (16, 4)
    # Live steps 5 to 15, 4 seeds, 8 anchors each step of which 2 are exploration draws: 11 * 4 * 2.
    # A window of 8 holds 8, 16, ... 56, then four times 64 of them: the sixth of eleven is 48.
    assert "8 policy steps" in caption
    assert "n = 88, median 48 in a window" in caption
    assert "Executed draws: n = 352, median 192" in caption


def test_missing_runs_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(RailError, match=r"table1\.ipynb: cell \[3\]: TraceError") as caught:
        execute("table1", tmp_path / "nothing", tmp_path, benchmark=BENCHMARK)
    assert "\n" not in str(caught.value)
