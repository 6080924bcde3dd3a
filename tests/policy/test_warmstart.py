import json
from pathlib import Path

import pytest

from rail.config import PolicyConfig, WarmStartConfig
from rail.errors import ConfigError
from rail.policy.loading import load_policy
from rail.policy.warmstart import build_warm_start
from tests.policy.dialogues import CopyTask

SMALL = PolicyConfig(hidden=32, layers=2, heads=2, feed_forward=32, vocabulary=400)
SHORT = WarmStartConfig(demonstrations=60, steps=3, batch=4, warmup=1)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warm")
    for name, index in (("a", 1), ("again", 1), ("other", 2)):
        build_warm_start(CopyTask(), SMALL, SHORT, index, folder / name, print)
    return folder


def test_equal_indices_give_equal_bytes_of_everything_but_the_clock(built: Path) -> None:
    files = sorted(path.name for path in (built / "a").iterdir())
    assert {"model.safetensors", "tokenizer.json", "warm_start.json", "clock.json"} <= set(files)
    for name in set(files) - {"clock.json"}:
        assert (built / "a" / name).read_bytes() == (built / "again" / name).read_bytes(), name


def test_another_index_has_other_weights_and_demonstrations_but_the_same_tokenizer(
    built: Path,
) -> None:
    same, differ = ["tokenizer.json"], ["model.safetensors", "warm_start.json"]
    for name in same + differ:
        equal = (built / "a" / name).read_bytes() == (built / "other" / name).read_bytes()
        assert equal == (name in same), name
    first, other = (
        json.loads((built / name / "warm_start.json").read_text()) for name in ("a", "other")
    )
    assert first["demonstrations_hash"] != other["demonstrations_hash"]


def test_the_record_says_what_was_done(built: Path) -> None:
    record = json.loads((built / "a" / "warm_start.json").read_text())
    assert record["index"] == 1
    assert record["demonstrations"] == 60
    assert record["warm_start"]["steps"] == 3
    assert [step for step, _ in record["loss"]] == [3]
    assert 3 * 4 * 20 < record["trained_tokens"] <= 3 * 4 * record["longest_episode"]
    assert set(json.loads((built / "a" / "clock.json").read_text())) == {"seconds", "cpu_seconds"}


def test_it_loads_by_the_path_of_every_policy(built: Path) -> None:
    model, chat = load_policy(built / "a")
    assert model.config.hidden_size == 32
    assert chat.decode_action(chat.encode_action("SELECT 1")) == "SELECT 1"


def test_no_partial_folder_is_left_and_an_old_one_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "warm"
    out.mkdir()
    (out / "stale").write_text("x")
    build_warm_start(CopyTask(), SMALL, SHORT, 0, out, print)
    assert [path.name for path in tmp_path.iterdir()] == ["warm"]
    assert not (out / "stale").exists()


def test_too_long_demonstrations_are_refused_before_training(tmp_path: Path) -> None:
    tight = SMALL.model_copy(update={"max_tokens": 8})
    with pytest.raises(ConfigError, match=r"60 of 60 demonstrations exceed policy.max_tokens = 8"):
        build_warm_start(CopyTask(), tight, SHORT, 0, tmp_path / "warm", print)
    assert not list(tmp_path.iterdir())
