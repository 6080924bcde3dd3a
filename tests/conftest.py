from pathlib import Path

import pytest

from rail.config import Config
from tests.toy_grid import run_method, toy_config, toy_policy


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Path]:
    """The toy scale and its warm start."""
    folder = tmp_path_factory.mktemp("toy")
    config = toy_config(folder)
    return config, toy_policy(config, folder / "policy")


@pytest.fixture(scope="session")
def toy_runs(toy: tuple[Config, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished toy runs of RAIL, its twins and two uniform methods, by method name."""
    config, policy = toy
    folder = tmp_path_factory.mktemp("runs")
    rail = run_method(config, policy, "rail", folder)
    for method in ("yoked_uniform", "yoked_permuted", "grpo_wide_yoked"):
        run_method(config, policy, method, folder, reads=rail)
    for method in ("grpo_8", "grpo_wide"):
        run_method(config, policy, method, folder)
    return folder
