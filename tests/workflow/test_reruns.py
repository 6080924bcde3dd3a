import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.workflow.checkouts import SMOKE, make_checkout, planned, snakemake


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    checkout = make_checkout(tmp_path_factory.mktemp("finished"))
    result = snakemake(checkout, *SMOKE)
    assert result.returncode == 0, result.stdout + result.stderr
    return checkout


@contextmanager
def edited(file: Path, old: str, new: str) -> Iterator[None]:
    """Replace `old` by `new` for a moment; the file's bytes and time are restored."""
    before, times = file.read_text(), file.stat()
    assert old in before, f"{file} has no {old!r}"
    file.write_text(before.replace(old, new, 1))
    try:
        yield
    finally:
        file.write_text(before)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_finished_checkout_has_nothing_to_do_within_seconds(finished: Path) -> None:
    begun = time.monotonic()
    assert planned(finished, *SMOKE) == {}
    assert time.monotonic() - begun < 30  # a loaded machine; 6 s on a free one


def test_a_comment_in_a_method_reruns_nothing(finished: Path) -> None:
    with edited(finished / "rail/methods/grpo.py", "class Grpo", "# A remark.\nclass Grpo"):
        assert planned(finished, *SMOKE) == {}


def test_touching_every_source_reruns_nothing(finished: Path) -> None:
    sources = [*finished.glob("rail/**/*.py"), *finished.glob("notebooks/*")]
    times = {file: file.stat() for file in sources}
    for file in sources:
        file.touch()
    try:
        assert planned(finished, *SMOKE) == {}
    finally:
        for file, old in times.items():
            os.utime(file, ns=(old.st_atime_ns, old.st_mtime_ns))


def test_an_edit_in_one_method_reruns_its_runs_only(finished: Path) -> None:
    with edited(finished / "rail/methods/grpo.py", "class Grpo", "EDIT = 1\n\n\nclass Grpo"):
        plan = planned(finished, *SMOKE)
    assert plan["train"] == plan["evaluate"] == 2
    assert not {"train_source", "warmstart", "bands", "panels"} & set(plan)


def test_an_edit_in_rail_reruns_its_runs_and_those_that_read_them(finished: Path) -> None:
    with edited(
        finished / "rail/methods/rail/__init__.py", "class Rail", "EDIT = 1\n\n\nclass Rail"
    ):
        plan = planned(finished, *SMOKE)
    assert (plan["train_source"], plan["train"], plan["evaluate"]) == (2, 2, 4)


def test_an_edit_in_the_loop_reruns_every_run_but_no_warm_start(finished: Path) -> None:
    with edited(finished / "rail/train.py", "LOGGER =", "EDIT = 1\nLOGGER ="):
        plan = planned(finished, *SMOKE)
    assert plan["train"] + plan["train_source"] == 6
    assert "warmstart" not in plan


def test_a_plotting_edit_redraws_figures_only(finished: Path) -> None:
    with edited(finished / "rail/plotting/theme.py", "INK =", "EDIT = 1\nINK ="):
        plan = planned(finished, *SMOKE)
        alone = planned(finished, "results/smoke/figures/headroom.svg", *SMOKE)
    drawn = {f"figure_{name}": 1 for name in ("headroom", "table1", "learning_curves", "figure3")}
    assert plan == {**drawn, "report": 1}
    assert alone == {"figure_headroom": 1}


def test_an_edited_notebook_redraws_its_figure(finished: Path) -> None:
    with edited(finished / "notebooks/headroom.ipynb", "Headroom", "Headroom again"):
        plan = planned(finished, *SMOKE)
    assert plan == {"figure_headroom": 1, "report": 1}


def test_an_evaluation_setting_retrains_nothing(finished: Path) -> None:
    with edited(
        finished / "config/smoke.yaml", "evaluation:\n  tasks: 90", "evaluation:\n  tasks: 80"
    ):
        plan = planned(finished, *SMOKE)
    assert plan["evaluate"] == 6
    assert {"train", "train_source"}.isdisjoint(plan)


def test_a_setting_of_one_method_reruns_its_runs_and_readers_only(finished: Path) -> None:
    with edited(
        finished / "config/methods/grpo_8.yaml",
        "settings:",
        "train: {weight_decay: 0.1}\nsettings:",
    ):
        plan = planned(finished, *SMOKE)
    assert plan["train"] == 2
    assert "train_source" not in plan


def test_a_comment_or_a_label_in_the_configuration_reruns_no_run(finished: Path) -> None:
    with edited(finished / "config/methods/grpo_8.yaml", "label: GRPO-8", "label: GRPO # plain"):
        assert {"train", "train_source", "evaluate"}.isdisjoint(planned(finished, *SMOKE))


def test_one_more_seed_trains_that_seed_only(finished: Path) -> None:
    with edited(finished / "config/smoke.yaml", "[1000, 1001]", "[1000, 1001, 1002]"):
        plan = planned(finished, *SMOKE)
    assert plan["train"] + plan["train_source"] == plan["evaluate"] == 3
