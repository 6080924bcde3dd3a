from pathlib import Path

import pytest

from tests.workflow.checkouts import SMOKE, make_checkout, planned, snakemake


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkout(tmp_path_factory.mktemp("fresh"))


def test_a_clean_checkout_plans_the_whole_default_grid(fresh: Path) -> None:
    plan = planned(fresh)
    # 7 methods x 4 seeds, of which rail's own runs are read by its three twins.
    assert plan["train"] + plan["train_source"] == plan["evaluate"] == 28
    assert plan["train_source"] == 4
    assert plan["warmstart"] == plan["bands"] == plan["headroom"] == 4
    assert plan["report"] == plan["claims"] == plan["panels"] == 1


def test_the_smoke_overlay_reaches_the_jobs_plan(fresh: Path) -> None:
    plan = planned(fresh, *SMOKE)
    assert plan["train"] + plan["train_source"] == 3 * 2
    assert plan["warmstart"] == 1


def test_the_learning_rate_sweep_trains_three_rates_and_evaluates_nothing(fresh: Path) -> None:
    plan = planned(fresh, "lr_sweep", "--configfile", "config/lr_sweep.yaml")
    assert plan == {"kernel": 1, "warmstart": 3, "train": 3 * 3, "lr_sweep_table": 1}


def test_a_target_at_the_wrong_scale_says_how_to_get_there(fresh: Path) -> None:
    result = snakemake(fresh, "-n", "smoke")
    assert result.returncode == 1
    assert (
        "run: snakemake smoke --cores all --configfile config/smoke.yaml"
        in result.stdout + result.stderr
    )


def test_values_that_jobs_would_not_see_are_refused(fresh: Path) -> None:
    result = snakemake(fresh, "-n", "--config", "results=elsewhere")
    assert result.returncode == 1
    assert "use --configfile with an overlay" in result.stdout + result.stderr


def test_a_misspelt_key_of_an_overlay_stops_the_plan(fresh: Path) -> None:
    (fresh / "typo.yaml").write_text("train:\n  stepz: 3\n")
    result = snakemake(fresh, "-n", "--configfile", "typo.yaml")
    assert result.returncode == 1
    assert "unknown key 'train.stepz', did you mean 'steps'?" in result.stdout + result.stderr


def test_the_linter_has_nothing_to_say(fresh: Path) -> None:
    result = snakemake(fresh, "--lint")
    assert result.returncode == 0, result.stdout + result.stderr
