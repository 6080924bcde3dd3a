import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def rail(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "rail", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]])
def test_help_imports_no_torch(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom rail.cli import app\n"
        f"try:\n    app({arguments!r})\nexcept SystemExit:\n    sys.exit('torch' in sys.modules)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            ["--method", "rial", "--benchmark", "agentbench_db"],
            ["no method 'rial'", "did you mean 'rail'?", "grpo_8"],
        ),
        (
            ["--method", "rail", "--benchmark", "agentbench"],
            ["no benchmark 'agentbench'", "did you mean 'agentbench_db'?"],
        ),
    ],
)
def test_an_unknown_name_is_one_line_that_lists_what_exists(
    arguments: list[str], lines: list[str]
) -> None:
    result = rail("resolve", *arguments, "--seed", "0")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("rail: ")
    assert all(line in result.stderr for line in lines)


def test_an_unknown_key_names_file_and_nearest_key(tmp_path: Path) -> None:
    overlay = tmp_path / "typo.yaml"
    overlay.write_text("train:\n  stepz: 3\n")
    arguments = ["--config", "config/default.yaml", "--config", str(overlay)]
    result = rail("status", *arguments)
    assert result.returncode == 2
    assert "typo.yaml" in result.stderr
    assert "did you mean 'steps'?" in result.stderr


def test_debug_shows_the_traceback() -> None:
    result = rail("--debug", "status", "--config", "config/none.yaml")
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_resolve_prints_what_one_run_reads_overlays_applied() -> None:
    arguments = ["--method", "grpo_8", "--benchmark", "agentbench_db", "--seed", "1001"]
    smoke = ["--config", "config/default.yaml", "--config", "config/smoke.yaml"]
    plain = json.loads(rail("resolve", *arguments).stdout)
    small = json.loads(rail("resolve", *arguments, *smoke).stdout)
    assert plain["train"]["steps"] == 48
    assert plain["warm_start"] == 1
    assert small["train"]["steps"] == 6
    assert small["settings"]["rollouts"] == plain["settings"]["rollouts"] == 8


def test_status_before_anything_ran_shows_every_run_as_waiting(tmp_path: Path) -> None:
    (tmp_path / "config").symlink_to(ROOT / "config")
    result = rail("status", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("waiting") == 7 * 4
    assert result.stdout.splitlines()[-1] == "0 of 28 runs done in results"
