import json
from pathlib import Path
from typing import Any

import pytest

from rail.errors import DataError
from rail.tables.headroom import headroom_table

BANDS = {
    "mean": 0.46,
    "mixed": 0.5,
    "all_fail": 0.2,
    "all_pass": 0.09,
    "intervals": {"mean": [0.44, 0.48]},
    "kinds": {"two_hop": 0.05, "count": 0.5},
}
HEADROOM = {
    "boundaries_per_trajectory": 3.0,
    "recoverable_failed": 0.4,
    "recoverable_failed_all_fail": None,
    "within_task_variance": 0.03,
    "sampling_noise": 0.01,
    "best_cell_vs_mean": 0.1,
    "best_cell_vs_best_constant": -0.01,
    "regimes": {"MILD": 0.3},
}


def write(results: Path, warm: int, bands: Any = BANDS, headroom: Any = HEADROOM) -> Path:
    folder = results / "checks" / "db" / f"warm{warm}"
    folder.mkdir(parents=True)
    (folder / "bands.json").write_text(json.dumps(bands))
    (folder / "headroom.json").write_text(json.dumps(headroom))
    return folder


def test_each_measure_is_held_against_the_protocol(tmp_path: Path) -> None:
    write(tmp_path, 0)
    table = headroom_table(tmp_path, "db").set_index("measure")
    assert table["inside"].to_dict() == {
        "mean": "no",  # above 0.45
        "mixed": "yes",
        "all_fail": "yes",  # a limit belongs to the range
        "all_pass": "no",
        "count": "yes",
        "two_hop": "no",
        "boundaries_per_trajectory": "yes",
        "recoverable_failed": "yes",
        "recoverable_failed_all_fail": "",  # nothing failed, so nothing is known
        "within_task_variance": "",
        "sampling_noise": "",
        "variance_over_noise": "yes",
        "best_cell_vs_mean": "",
        "best_cell_vs_best_constant": "",
        "MILD": "",
    }
    assert table.loc["variance_over_noise", "estimate"] == pytest.approx(3.0)
    assert table.loc["mean", ["low", "high"]].tolist() == [0.44, 0.48]
    assert table.loc["two_hop", "label"] == "two hop"
    assert table.loc["mixed", "source"] == "checks/db/warm0/bands.json"


def test_rows_come_by_warm_start(tmp_path: Path) -> None:
    for warm in (1, 0):
        write(tmp_path, warm)
    warm = headroom_table(tmp_path, "db")["warm"].tolist()
    assert warm == [0] * (len(warm) // 2) + [1] * (len(warm) // 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mixed": "many"}, "bands.json: ValueError"),
        ({"kinds": None}, "bands.json: AttributeError"),
    ],
)
def test_damaged_file_is_named(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    write(tmp_path, 0, bands=BANDS | change)
    with pytest.raises(DataError, match=words):
        headroom_table(tmp_path, "db")


def test_missing_key_and_broken_json_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path, 0, headroom={})
    with pytest.raises(DataError, match=r"headroom\.json: KeyError"):
        headroom_table(tmp_path, "db")
    (folder / "headroom.json").write_text("{")
    with pytest.raises(DataError, match=r"headroom\.json: not valid JSON"):
        headroom_table(tmp_path, "db")


def test_no_check_at_all_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="snakemake checks"):
        headroom_table(tmp_path, "db")
