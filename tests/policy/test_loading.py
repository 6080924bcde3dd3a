import json
import socket
from itertools import islice
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig

from rail.config import PolicyConfig
from rail.errors import PolicyError, StorageError
from rail.policy.loading import load_policy, publishing, save_policy
from rail.policy.tiny import build_model
from rail.policy.tokenizer import train_tokenizer
from tests.policy.dialogues import CopyTask

TOKENIZER = train_tokenizer(
    (m.text for d in islice(CopyTask().demonstrations(0), 50) for m in d), (), 400
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = PolicyConfig(hidden=16, layers=1, heads=2, feed_forward=16)
    save_policy(build_model(config, TOKENIZER, 0), TOKENIZER, tmp_path)
    return tmp_path


def test_loading_opens_no_connection_and_keeps_the_weights(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a policy was looked for on the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    model, chat = load_policy(folder)
    saved = load_file(folder / "model.safetensors")
    assert torch.equal(model.state_dict()["model.norm.weight"], saved["model.norm.weight"])
    assert not model.training
    assert chat.end_id == 4
    assert capfd.readouterr().err == ""  # no progress bars


def test_all_files_can_be_read_by_those_who_can_read_the_config(folder: Path) -> None:
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1


def test_another_architecture_takes_the_same_path_and_comes_in_float32(tmp_path: Path) -> None:
    config = LlamaConfig(
        vocab_size=len(TOKENIZER),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    save_policy(model, TOKENIZER, tmp_path)
    loaded, _ = load_policy(tmp_path)
    assert loaded.config.model_type == "llama"
    assert loaded.dtype == torch.float32
    assert load_policy(tmp_path, torch.bfloat16)[0].dtype == torch.bfloat16


def test_a_missing_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"config.json is missing; build the warm start, or"):
        load_policy(tmp_path / "nowhere")


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_truncated_file_is_named_as_a_corrupt_policy(folder: Path, file: str) -> None:
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    with pytest.raises(PolicyError, match=r"cannot load the policy in .* build or copy it"):
        load_policy(folder)


def test_a_missing_tensor_is_never_filled_with_noise(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.0.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(PolicyError, match=r"lack 1 of the tensors .* model.layers.0.mlp.up_proj"):
        load_policy(folder)


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 32}))
    with pytest.raises(PolicyError, match="cannot load the policy"):
        load_policy(folder)


def test_a_failed_publication_keeps_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "policy"
    target.mkdir()
    (target / "old").write_text("kept")

    def fill_the_disk() -> None:
        with publishing(target) as partial:
            (partial / "new").write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="No space left"):
        fill_the_disk()
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]
    assert (target / "old").read_text() == "kept"
    with publishing(target) as partial:
        (partial / "new").write_text("whole")
    assert [path.name for path in target.iterdir()] == ["new"]
