"""Policies on disk: Hugging Face folders, written whole or not at all, read without network."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rail.errors import PolicyError, StorageError
from rail.policy.chat import Chat

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def load_policy(path: Path, dtype: torch.dtype = torch.float32) -> tuple["PreTrainedModel", Chat]:
    """Load a causal language model and its chat from a folder; nothing is downloaded.

    The embedded warm starts and pretrained instruction models (SmolLM2, Qwen) take this same path.
    Weights come in `dtype`, float32 unless asked: importance ratios compare log-probabilities of
    the sampler and of the update, and bfloat16 blurs them.

    Raises:
        PolicyError: If the folder is missing, incomplete or corrupt, lacks weights that the
            architecture needs, or has no usable chat template.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if not (path / "config.json").is_file():
        raise PolicyError(
            f"no policy in {path}: config.json is missing; build the warm start, or point"
            " policy.path to a Hugging Face model folder"
        )
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                path, local_files_only=True, dtype=dtype, output_loading_info=True
            )
            model, report = loaded
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise PolicyError(
            f"cannot load the policy in {path}: {error}; delete the folder and build or copy it"
            " again"
        ) from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise PolicyError(
            f"the weights in {path} lack {len(missing)} of the tensors that its config.json asks"
            f" for, first {missing[0]}; delete the folder and build or copy it again"
        )
    return model.eval(), Chat(tokenizer)


def save_policy(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", folder: Path
) -> None:
    """Write model and tokenizer into `folder` as `save_pretrained` does, without progress bars."""
    with _quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    mode = (folder / "config.json").stat().st_mode
    for weights in folder.glob("*.safetensors"):
        weights.chmod(mode)  # safetensors writes for the owner alone; others share a results folder


@contextmanager
def publishing(folder: Path) -> Iterator[Path]:
    """Yield an empty folder; on leaving the block it replaces `folder` in one rename.

    Raises:
        StorageError: If the operating system refuses, a full disk for one. `folder` is then what it
            was before and the partial one is gone.
    """
    partial = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.tmp")
    try:
        partial.mkdir(parents=True)
        yield partial
        for file in sorted(partial.iterdir()):
            with file.open("rb+") as handle:
                os.fsync(handle.fileno())
        if folder.exists():
            shutil.rmtree(folder)
        partial.rename(folder)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"cannot write {folder}: {error.strerror or error}; free space or check the folder,"
            " then run again"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Switch off transformers' progress bars for the block."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
