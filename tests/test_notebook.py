import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from rail.notebook import NotebookError, normalise, parameters_of, run_notebook

PARAMETERS = "x = 1\nname: str = 'a'"


def write_notebook(path: Path, *cells: str, tagged: int = 1) -> Path:
    head = [new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}) for _ in range(tagged)]
    nbformat.write(new_notebook(cells=[*head, *map(new_code_cell, cells)]), path)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def texts(path: Path) -> list[str]:
    cells = nbformat.read(path, as_version=4).cells
    return [out.text for cell in cells for out in cell.get("outputs", []) if "text" in out]


def test_parameters_replace_defaults_and_the_kernel_is_this_interpreter(folder: Path) -> None:
    source = write_notebook(folder / "a.ipynb", "import sys\nprint(x + 1, name, sys.executable)")
    run_notebook(source, folder / "out/a.ipynb", {"x": 5})
    assert texts(folder / "out/a.ipynb") == [f"6 a {sys.executable}\n"]


def test_two_runs_give_equal_bytes(folder: Path) -> None:
    # Standard error and the pieces of a stream differ from run to run; both must not show.
    noisy = "import os, sys\nsys.stderr.write(str(os.getpid()))\nprint(1, flush=True)\nprint(2)"
    source = write_notebook(folder / "a.ipynb", noisy)
    for name in ("one", "two"):
        run_notebook(source, folder / f"{name}.ipynb", {"x": 2})
    assert (folder / "one.ipynb").read_bytes() == (folder / "two.ipynb").read_bytes()
    assert texts(folder / "one.ipynb") == ["1\n2\n"]
    assert "papermill" not in (folder / "one.ipynb").read_text()


def test_kernels_started_together_all_finish(folder: Path) -> None:
    sources = [write_notebook(folder / f"{i}.ipynb", f"print(x * {i})") for i in range(4)]
    code = (
        "import sys; from pathlib import Path; from rail.notebook import run_notebook;"
        "run_notebook(Path(sys.argv[1]), Path(sys.argv[2]), {'x': 3})"
    )

    def run(source: Path) -> int:
        target = folder / "out" / source.name
        root = Path(__file__).parents[1]
        return subprocess.run(
            [sys.executable, "-c", code, source, target],
            env={**os.environ, "PYTHONPATH": str(root)},
            check=False,
        ).returncode

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, sources)) == [0, 0, 0, 0]
    assert [texts(folder / f"out/{i}.ipynb") for i in range(4)] == [
        [f"{3 * i}\n"] for i in range(4)
    ]


def test_failing_cell_is_one_line_and_keeps_the_executed_copy(folder: Path) -> None:
    source = write_notebook(folder / "bad.ipynb", "print('before')", "raise ValueError('a\\nb')")
    target = folder / "out/bad.ipynb"
    with pytest.raises(NotebookError) as caught:
        run_notebook(source, target)
    kept = Path("logs/notebooks/bad.failed.ipynb")
    assert str(caught.value) == f"{source}: cell [3]: ValueError: a b (executed copy: {kept})"
    assert texts(kept)[0] == "before\n"
    assert not target.exists()


def test_unknown_parameter_is_refused_before_anything_runs(folder: Path) -> None:
    source = write_notebook(folder / "a.ipynb", "open('ran', 'w')")
    with pytest.raises(NotebookError, match="unknown parameter y; declared: x, name"):
        run_notebook(source, folder / "out.ipynb", {"y": 1})
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("tagged", [0, 2])
def test_exactly_one_parameters_cell_is_required(folder: Path, tagged: int) -> None:
    source = write_notebook(folder / "a.ipynb", tagged=tagged)
    with pytest.raises(NotebookError, match=f"{tagged} code cells are tagged"):
        parameters_of(source)


def test_parameters_are_the_plain_assignments_of_the_tagged_cell(folder: Path) -> None:
    source = write_notebook(folder / "a.ipynb", "z = 3")
    assert parameters_of(source) == {"x": "1", "name": "'a'"}


@pytest.mark.parametrize(("content", "words"), [(None, "no such"), ("{", "not a notebook")])
def test_unreadable_source_is_named(folder: Path, content: str | None, words: str) -> None:
    source = folder / "a.ipynb"
    if content is not None:
        source.write_text(content)
    with pytest.raises(NotebookError, match=rf"a\.ipynb: {words}"):
        parameters_of(source)


def test_timeout_of_a_cell_is_one_line(folder: Path) -> None:
    source = write_notebook(folder / "a.ipynb", "import time\ntime.sleep(60)")
    with pytest.raises(NotebookError, match="more than 1 s"):
        run_notebook(source, folder / "out.ipynb", timeout_s=1)


def test_normalised_text_keeps_source_tags_and_results(folder: Path) -> None:
    source = write_notebook(folder / "a.ipynb", "1 + 1")
    notebook = nbformat.reads(normalise(source.read_text()), as_version=4)
    assert [cell.source for cell in notebook.cells] == [PARAMETERS, "1 + 1"]
    assert notebook.cells[0].metadata == {"tags": ["parameters"]}
    assert len({cell.id for cell in notebook.cells}) == 2
