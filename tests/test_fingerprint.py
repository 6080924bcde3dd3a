import json
from pathlib import Path

import pytest

from rail.errors import ConfigError
from rail.fingerprint import fingerprint, modules_in_notebook, modules_of

SOURCES = {
    "__init__.py": '"""A package."""\n',
    "low.py": "def add(a, b):\n    return a + b\n",
    "high.py": "from toy.low import add\n\n\ndef twice(a):\n    return add(a, a)\n",
    "plug/__init__.py": "",
    "plug/one.py": "def load():\n    from toy import low\n\n    return low\n",
    "plug/two.py": "from . import one\nfrom ..high import twice\n",
    "typed.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import toy.high\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in SOURCES.items():
        file = tmp_path / "toy" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "toy"


def edit(file: Path, text: str) -> None:
    file.write_text(text)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("toy.low", ["toy", "toy.low"]),
        ("toy.high", ["toy", "toy.high", "toy.low"]),
        ("toy.plug.one", ["toy", "toy.low", "toy.plug", "toy.plug.one"]),
        (
            "toy.plug.two",
            ["toy", "toy.high", "toy.low", "toy.plug", "toy.plug.one", "toy.plug.two"],
        ),
        ("toy.typed", ["toy", "toy.typed"]),
    ],
)
def test_follows_absolute_relative_and_local_imports_but_not_those_for_types(
    package: Path, start: str, expected: list[str]
) -> None:
    assert list(modules_of(start, package=package)) == expected


def test_comments_layout_and_docstrings_do_not_count(package: Path) -> None:
    before = fingerprint("toy.high", package=package)
    edit(package / "low.py", '# note\ndef add(a,  b):\n    """Sum."""\n    return a+b\n')
    assert fingerprint("toy.high", package=package) == before


def test_a_change_counts_for_importers_only(package: Path) -> None:
    names = ("toy.high", "toy.plug.one", "toy.typed")
    before = [fingerprint(name, package=package) for name in names]
    edit(package / "low.py", "def add(a, b):\n    return b - a\n")
    after = [fingerprint(name, package=package) for name in names]
    assert [a == b for a, b in zip(after, before, strict=True)] == [False, False, True]


def test_a_file_touched_without_change_has_the_same_digest(package: Path) -> None:
    before = fingerprint("toy.high", package=package)
    (package / "low.py").touch()
    assert fingerprint("toy.high", package=package) == before


def test_unknown_module_is_named(package: Path) -> None:
    with pytest.raises(ConfigError, match=r"no module 'toy\.lwo'"):
        fingerprint("toy.lwo", package=package)


def test_the_loop_reaches_the_hooks_of_methods() -> None:
    assert {"rail.methods.base", "rail.rollout.tree", "rail.interventions"} <= set(
        modules_of("rail.methods.base")
    )


def test_a_notebook_depends_on_what_its_code_cells_import(package: Path, tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["import toy.typed"]},
        {"cell_type": "code", "source": ["from pathlib import Path\n", "from toy import low\n"]},
        {"cell_type": "code", "source": "import toy.high"},
    ]
    notebook = tmp_path / "figure.ipynb"
    notebook.write_text(json.dumps({"cells": cells}))
    assert modules_in_notebook(notebook, package) == ["toy", "toy.high", "toy.low"]


def test_a_file_that_is_no_notebook_is_named(tmp_path: Path) -> None:
    (tmp_path / "figure.ipynb").write_text("{")
    with pytest.raises(ConfigError, match=r"figure\.ipynb: not a notebook"):
        modules_in_notebook(tmp_path / "figure.ipynb")
