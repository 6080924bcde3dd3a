"""Killed and resumed equals never killed: at any write, twice in a row, by any signal."""

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from rail import checkpoint
from rail.config import Config
from rail.errors import LockError, StorageError
from rail.traces.schema import TABLES
from tests.toy_grid import run_method

COMPARED = [f"{name}.parquet" for name in TABLES if name != "clock"] + ["run.json"]


def in_child(action: Callable[[], object]) -> int:
    """Run `action` in a forked process; return its wait status."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        except SystemExit as error:
            code = int(error.code or 0)
        except Exception:  # noqa: BLE001 - the child reports by its exit code
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def kill_at_write(number: int) -> None:
    """Let this process die by SIGKILL between the `number`-th file's bytes and its rename."""
    rename, seen = Path.replace, [0]

    def replace(self: Path, target: Path) -> Path:
        seen[0] += 1
        if seen[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(self, target)

    Path.replace = replace  # type: ignore[method-assign] - this process ends soon


def assert_same(run: Path, undisturbed: Path) -> None:
    for name in COMPARED:
        assert (run / name).read_bytes() == (undisturbed / name).read_bytes(), name


# Six tables and a checkpoint at steps 2, 4, 6, one promotion file; then the results.
@pytest.mark.parametrize("writes", [[1], [7], [9], [15], [21], [25], [29], [8, 3], [16, 5, 9]])
def test_a_run_killed_inside_a_write_ends_with_equal_bytes(
    toy: tuple[Config, Path], toy_runs: Path, tmp_path: Path, writes: list[int]
) -> None:
    config, policy = toy

    for number in writes:

        def attempt(number: int = number) -> None:
            kill_at_write(number)
            run_method(config, policy, "rail", tmp_path)

        status = in_child(attempt)
        assert os.WIFSIGNALED(status), f"write {number} was never reached"
        assert os.WTERMSIG(status) == signal.SIGKILL
    assert_same(run_method(config, policy, "rail", tmp_path), toy_runs / "rail")


def test_a_twin_killed_after_its_start_goes_on(
    toy: tuple[Config, Path], toy_runs: Path, tmp_path: Path
) -> None:
    config, policy = toy

    def attempt() -> None:
        kill_at_write(9)
        run_method(config, policy, "yoked_uniform", tmp_path, reads=toy_runs / "rail")

    assert os.WIFSIGNALED(in_child(attempt))
    again = run_method(config, policy, "yoked_uniform", tmp_path, reads=toy_runs / "rail")
    assert_same(again, toy_runs / "yoked_uniform")


def test_sigterm_ends_after_a_checkpoint_and_the_run_goes_on(
    toy: tuple[Config, Path], toy_runs: Path, tmp_path: Path
) -> None:
    config, policy = toy

    def attempt() -> None:
        save = checkpoint.StateFolder.add

        def add(self: checkpoint.StateFolder, table: str, rows: list[dict[str, object]]) -> None:
            save(self, table, rows)
            if table == "steps" and rows[0]["step"] == 2:
                os.kill(os.getpid(), signal.SIGTERM)

        checkpoint.StateFolder.add = add  # type: ignore[method-assign] - a child process
        run_method(config, policy, "grpo_8", tmp_path)

    assert os.waitstatus_to_exitcode(in_child(attempt)) == 143
    assert (tmp_path / "state" / "grpo_8" / "step00003.pt").exists()
    assert_same(run_method(config, policy, "grpo_8", tmp_path), toy_runs / "grpo_8")


def test_a_full_disk_is_named_and_nothing_is_lost(
    toy: tuple[Config, Path], toy_runs: Path, tmp_path: Path
) -> None:
    config, policy = toy

    def attempt() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        try:
            run_method(config, policy, "grpo_8", tmp_path)
        except StorageError as error:
            raise SystemExit(42 if "step00002.pt" in str(error) else 43) from error

    assert os.waitstatus_to_exitcode(in_child(attempt)) == 42
    assert_same(run_method(config, policy, "grpo_8", tmp_path), toy_runs / "grpo_8")


def test_a_corrupt_checkpoint_is_set_aside_and_the_one_before_is_used(
    toy: tuple[Config, Path], toy_runs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config, policy = toy

    def attempt() -> None:
        kill_at_write(16)  # the first part of step 6
        run_method(config, policy, "grpo_8", tmp_path)

    assert os.WIFSIGNALED(in_child(attempt))
    state = tmp_path / "state" / "grpo_8"
    newest = state / "step00004.pt"
    newest.write_bytes(newest.read_bytes()[:1000])
    assert_same(run_method(config, policy, "grpo_8", tmp_path), toy_runs / "grpo_8")
    assert (state / "step00004.corrupt").exists()
    assert "step00004.pt" in caplog.text
    assert "damaged" in caplog.text


def test_state_of_another_configuration_is_left_behind(
    toy: tuple[Config, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config, policy = toy
    run_method(config, policy, "grpo_8", tmp_path)
    slower = config.train.model_copy(update={"learning_rate": 1e-4})
    out = run_method(config.model_copy(update={"train": slower}), policy, "grpo_8", tmp_path)
    assert "starting afresh" in caplog.text
    assert '"learning_rate": 0.0001' in (out / "run.json").read_text()


def test_two_runs_on_one_state_folder_are_refused(toy: tuple[Config, Path], tmp_path: Path) -> None:
    config, policy = toy
    refused = pytest.raises(LockError, match=f"in use by process {os.getpid()}")
    with checkpoint.locked(tmp_path / "state" / "grpo_8"), refused:
        run_method(config, policy, "grpo_8", tmp_path)
