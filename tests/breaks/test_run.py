from pathlib import Path

import pytest

from tests.breaks.run import problem_of

TEST = "tests/test_recoverability.py::test_gain_by_hand"
DIFF = """
--- a/rail/recoverability.py
+++ b/rail/recoverability.py
@@ -1,1 +1,2 @@
+# Harmless.
 {first}
"""


def patch(tmp_path: Path, header: str, first: str) -> Path:
    file = tmp_path / "one.patch"
    file.write_text(f"{header}\n" + DIFF.format(first=first))
    return file


@pytest.fixture
def first() -> str:
    return (Path(__file__).parents[2] / "rail/recoverability.py").read_text().splitlines()[0]


def test_a_patch_that_turns_nothing_red_is_a_problem(tmp_path: Path, first: str) -> None:
    problem = problem_of(patch(tmp_path, f"breaks: {TEST}", first))
    assert problem.startswith(f"{TEST}: exit code 0, expected a failed test")


def test_a_patch_that_no_longer_applies_is_a_problem(tmp_path: Path) -> None:
    problem = problem_of(patch(tmp_path, f"breaks: {TEST}", "a line that is not there"))
    assert problem.startswith("does not apply")


def test_a_test_that_is_not_there_is_a_problem(tmp_path: Path, first: str) -> None:
    problem = problem_of(patch(tmp_path, f"breaks: {TEST}_gone", first))
    assert "exit code 4" in problem


def test_a_patch_names_the_tests_it_breaks(tmp_path: Path, first: str) -> None:
    assert "no line starts with 'breaks: '" in problem_of(patch(tmp_path, "", first))
