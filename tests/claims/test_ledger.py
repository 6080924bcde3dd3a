"""The claims ledger, from small real result folders."""

import csv
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rail.claims import compute, write_ledger
from rail.errors import DataError, TraceError
from tests.claims.arms import SEEDS, arm, claim
from tests.traces.grids import evaluation_rows, write_run


def test_difference_is_supported_with_hand_made_numbers(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [60, 62, 64, 66])
    arm(tmp_path, "twin", [48, 48, 50, 50])
    (row,) = compute([claim()], tmp_path)
    # kind a differs by .12, .14, .14, .16, kind b by 0: halves, mean .07, sd .00816, error .00408
    assert row["values"] == {
        "db": pytest.approx({"1000": 0.06, "1001": 0.07, "1002": 0.07, "1003": 0.08})
    }
    assert row["estimate"] == pytest.approx(0.07)
    assert row["sd"] == pytest.approx(0.01 * (2 / 3) ** 0.5)
    half = 3.182446 * 0.01 * (2 / 3) ** 0.5 / 2
    assert row["ci95"] == pytest.approx([0.07 - half, 0.07 + half])
    assert row["n"] == 4
    assert row["p_sign_flip"] == 2 / 16
    assert (row["verdict"], row["qualifiers"]) == ("supported", [])
    assert row["by_benchmark"]["db"]["estimate"] == pytest.approx(0.07)
    assert row["i_squared"] is None
    assert row["ci95_bootstrap"][0] < 0.07 < row["ci95_bootstrap"][1]
    assert (row["registered"], row["registered_reason"]) == (
        "no",
        "development seeds 1000+, panel A",
    )


def test_every_number_traces_to_files_with_their_digest(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [60, 62])
    arm(tmp_path, "twin", [48, 48])
    arm(tmp_path, "other", [48, 48])
    (row,) = compute([claim()], tmp_path)
    assert [item["path"] for item in row["artifacts"]] == [
        f"runs/db/{method}/seed{seed}/{table}.parquet"
        for method in ("rail", "twin")
        for seed in (1000, 1001)
        for table in ("evaluation", "steps")
    ]
    first = row["artifacts"][0]
    content = (tmp_path / first["path"]).read_bytes()
    assert first["sha256"] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("rail", "verdict"),
    [
        ([30, 32, 30, 32], "contradicted"),
        ([48, 48, 50, 50], "equivalent"),
        ([20, 80, 20, 80], "undecided"),
    ],
)
def test_other_verdicts(tmp_path: Path, rail: list[int], verdict: str) -> None:
    arm(tmp_path, "rail", rail)
    arm(tmp_path, "twin", [48, 48, 50, 50])
    (row,) = compute([claim()], tmp_path)
    assert row["verdict"] == verdict


def test_yoked_pairs_that_spent_unequal_totals_are_void(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [60, 62, 64, 66], billed=1000)
    arm(tmp_path, "twin", [48, 48, 50, 50], billed=1011)
    (row,) = compute([claim(yoked=True)], tmp_path)
    assert (row["verdict"], row["estimate"]) == ("void", None)
    assert "seeds 1000, 1001, 1002, 1003" in row["qualifiers"][0]
    assert compute([claim()], tmp_path)[0]["verdict"] == "supported"
    arm(tmp_path, "twin", [48, 48, 50], billed=1010)
    (row,) = compute([claim(yoked=True)], tmp_path)
    assert (row["n"], row["verdict"]) == (3, "supported")
    assert row["qualifiers"] == [
        "3 of 4 initial policies sampled",
        "void pairs (billed totals differ by more than 1 %): seeds 1003",
    ]


def test_sign_that_hangs_on_the_warm_start_is_said(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [90, 92, 40, 42])
    arm(tmp_path, "twin", [50, 50, 50, 50])
    (row,) = compute([claim()], tmp_path)
    assert row["qualifiers"] == ["depends on the initial policy"]


def test_warm_starts_are_those_that_the_runs_recorded(tmp_path: Path) -> None:
    for method in ("rail", "twin"):
        for seed in SEEDS:
            rows = evaluation_rows({"a": [1, 0, seed % 2]})
            info = {"run": {"warm_start": 0}}
            write_run(tmp_path, method, seed, evaluation=rows, billed=[10], info=info)
    (row,) = compute([claim()], tmp_path)
    assert row["qualifiers"] == ["1 of 4 initial policies sampled"]
    assert (row["verdict"], row["estimate"], row["p"]) == ("equivalent", 0.0, 1.0)


def test_missing_arms_are_not_run_and_missing_seeds_are_said(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [60, 62, 64, 66])
    (row,) = compute([claim()], tmp_path)
    assert (row["verdict"], row["qualifiers"]) == ("not run", ["no finished run of db/twin"])
    assert (row["estimate"], row["p_adjusted"]) == (None, None)
    assert (row["registered"], row["registered_reason"]) == ("no", "no run")
    write_run(tmp_path, "twin", 1000)
    assert compute([claim()], tmp_path)[0]["qualifiers"] == [
        "no evaluation or steps table of db/twin"
    ]
    arm(tmp_path, "twin", [48, 48])
    (row,) = compute([claim()], tmp_path)
    assert row["n"] == 2
    assert "seeds without all arms left out: 1002, 1003" in row["qualifiers"]
    (row,) = compute([claim()], tmp_path, seeds=[1000])
    assert (row["verdict"], row["ci95"], row["p"]) == ("undecided", None, None)
    assert "one seed: no interval" in row["qualifiers"]


def test_families_are_adjusted_apart(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [52, 56, 49, 60])
    arm(tmp_path, "twin", [48, 48, 45, 50])
    rows = compute(
        [
            claim(id="a"),
            claim(id="b"),
            claim(id="c", family="secondary"),
            claim(id="d", family="exploratory"),
            claim(id="e", arms=["rail", "gone"]),
        ],
        tmp_path,
    )
    by_id = {row["id"]: row for row in rows}
    p = by_id["a"]["p"]
    assert 0.017 < p < 0.05
    assert by_id["a"]["p_adjusted"] == pytest.approx(3 * p)  # the claim not run counts
    assert by_id["c"]["p_adjusted"] == pytest.approx(p)
    assert by_id["d"]["p_adjusted"] is None
    assert by_id["a"]["verdict"] == "supported"
    assert "adjusted p (holm) above 0.05" in by_id["a"]["qualifiers"]
    assert "adjusted p (holm) above 0.05" not in by_id["d"]["qualifiers"]


def test_four_benchmarks_are_averaged_inside_each_seed(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [60, 62, 64, 66], benchmark="db")
    arm(tmp_path, "twin", [48, 48, 50, 50], benchmark="db")
    arm(tmp_path, "rail", [60, 60, 60], benchmark="os")
    arm(tmp_path, "twin", [60, 60, 56], benchmark="os")
    (row,) = compute([claim(benchmarks=["db", "os"], margin=0.015)], tmp_path)
    assert row["n"] == 3
    # (.06 + 0) / 2, (.07 + 0) / 2, (.07 + .02) / 2
    assert row["estimate"] == pytest.approx((0.03 + 0.035 + 0.045) / 3)
    assert "seeds that some benchmark lacks left out: 1003" in row["qualifiers"]
    assert row["by_benchmark"]["db"]["n"] == 4
    assert 0 < row["i_squared"] < 1


def test_descriptive_claims_carry_no_verdict(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [60, 62, 64, 66])
    arm(tmp_path, "twin", [48, 48, 50, 50])
    (row,) = compute([claim(descriptive=True)], tmp_path)
    assert row["verdict"] == "descriptive"
    assert row["estimate"] == pytest.approx(0.07)


def test_arms_judged_on_different_tasks_stop_the_ledger(tmp_path: Path) -> None:
    write_run(tmp_path, "rail", 0, evaluation=evaluation_rows({"a": [1, 0]}), billed=[1])
    write_run(tmp_path, "twin", 0, evaluation=evaluation_rows({"b": [1, 0]}), billed=[1])
    with pytest.raises(DataError, match=r"db seed 0: rail and twin were judged on different tasks"):
        compute([claim()], tmp_path)


def test_arms_sampled_by_different_backends_stop_the_ledger(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [60])
    arm(tmp_path, "twin", [48], backend="torch")
    arm(tmp_path, "other", [48])
    with pytest.raises(DataError, match=r"native: db/rail/seed1000; torch: db/twin/seed1000"):
        compute([claim()], tmp_path)
    rows = compute([claim(arms=["rail", "other"]), claim(kind="rise", arms=["twin"])], tmp_path)
    assert [row["n"] for row in rows] == [1, 1]


def test_damaged_table_stops_the_ledger_with_its_path(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [60])
    arm(tmp_path, "twin", [48])
    (tmp_path / "runs/db/twin/seed1000/evaluation.parquet").write_bytes(b"PAR1")
    with pytest.raises(TraceError, match=r"twin/seed1000/evaluation\.parquet: truncated"):
        compute([claim()], tmp_path)


def test_ledger_files_are_equal_for_equal_results(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [60, 62, 64, 66])
    arm(tmp_path, "twin", [48, 48, 50, 50])
    claims = [claim(), claim(id="P2", arms=["rail", "gone"])]
    write_ledger(compute(claims, tmp_path), tmp_path)
    first = [(tmp_path / name).read_bytes() for name in ("claims.json", "tables/claims.csv")]
    write_ledger(compute(claims, tmp_path), tmp_path)
    assert first == [
        (tmp_path / name).read_bytes() for name in ("claims.json", "tables/claims.csv")
    ]
    assert [row["verdict"] for row in json.loads(first[0])] == ["supported", "not run"]
    with (tmp_path / "tables/claims.csv").open() as file:
        table = list(csv.DictReader(file))
    assert float(table[0]["estimate"]) == pytest.approx(0.07)
    assert float(table[0]["ci95_low"]) == pytest.approx(0.057, abs=1e-4)
    assert (table[1]["verdict"], table[1]["estimate"]) == ("not run", "")


def test_analysis_imports_no_torch() -> None:
    program = (
        "import sys, rail.claims, rail.stats.controller, rail.stats.aggregate, rail.traces.export\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    root = str(Path(__file__).parents[2])
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False).returncode == 0
