"""The file of claims: what loads, and what is wrong with what does not."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rail.claims import load_claims
from rail.errors import ConfigError
from tests.claims.arms import ENTRY


def test_the_projects_own_claims_load_and_cover_the_family() -> None:
    claims = load_claims(Path(__file__).parents[2] / "config/claims.yaml")
    confirmatory = [c.id for c in claims if c.family == "confirmatory"]
    assert confirmatory == ["P1", "P2", "P3"]
    assert {c.kind for c in claims} == {
        "difference", "non_inferiority", "frontier", "controller", "rise",
    }  # fmt: skip
    assert all(c.yoked for c in claims if c.id in confirmatory)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "diff"}, "no kind 'diff'; known: difference, non_inferiority, frontier"),
        ({"arms": ["rail", "rial"]}, "no arm 'rial'; known: grpo_8, rail, twin"),
        ({"arms": ["rail"]}, "kind difference takes 2 arms, got 1"),
        ({"endpoint": "reward"}, "no endpoint of kind difference 'reward'; known: success"),
        ({"benchmarks": ["os"]}, "no benchmark 'os'; known: db"),
        ({"marign": 0.1}, "unknown key 'marign'; known: id, statement, source, kind"),
        ({"margin": 0}, "key 'margin': Input should be greater than 0"),
        ({"family": "primary"}, "key 'family': Input should be 'confirmatory', 'secondary'"),
        ({"kind": "rise", "arms": ["rail"], "yoked": True}, "`yoked` belongs to kind difference"),
    ],
)
def test_bad_entries_are_one_clear_line(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": [ENTRY | change]}))
    with pytest.raises(ConfigError) as caught:
        load_claims(path, ["grpo_8", "rail", "twin"], ["db"])
    assert str(caught.value).startswith(f"{path}: claim P1: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_files_are_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    with pytest.raises(ConfigError, match="cannot be read"):
        load_claims(path, [], [])
    path.write_text("- a")
    with pytest.raises(ConfigError, match="expected a mapping with one key `claims`"):
        load_claims(path, [], [])
    path.write_text(yaml.safe_dump({"claims": [ENTRY, ENTRY]}))
    with pytest.raises(ConfigError, match="claim P1: the id is used twice"):
        load_claims(path, ["rail", "twin"], ["db"])
