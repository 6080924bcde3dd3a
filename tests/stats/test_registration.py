"""Registered, and why."""

import hashlib
from pathlib import Path

import pytest
import yaml

from rail.errors import ConfigError
from rail.stats.registration import registration


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/claims.yaml").write_text("claims: []")
    digest = hashlib.sha256(b"claims: []").hexdigest()
    path = tmp_path / "config/claims.lock"
    path.write_text(yaml.safe_dump({"config/claims.yaml": digest}))
    return path


def test_development_runs_are_not_registered(lock: Path) -> None:
    assert registration([1000, 1001], "a", lock) == ("no", "development seeds 1000+, panel A")
    assert registration([0, 1], "a", lock) == ("no", "panel A is for development")
    assert registration([], "b", lock) == ("no", "no run")
    assert registration([0], "b", None)[0] == "no"
    assert registration([0], "b", lock.with_name("gone"))[0] == "no"


def test_frozen_files_that_did_not_change_are_registered(lock: Path) -> None:
    assert registration([0, 1], "b", lock) == ("yes", "as frozen in claims.lock")


def test_a_changed_or_missing_file_is_a_deviation(lock: Path) -> None:
    (lock.parent / "claims.yaml").write_text("claims: [x]")
    expected = ("deviation", "changed since the freeze: config/claims.yaml")
    assert registration([0], "b", lock) == expected
    (lock.parent / "claims.yaml").unlink()
    assert registration([0], "b", lock) == expected


def test_broken_lock_is_named(lock: Path) -> None:
    lock.write_text("- a")
    with pytest.raises(ConfigError, match=r"claims\.lock: expected a mapping"):
        registration([0], "b", lock)
