"""Warm starts: the embedded policy trained until it acts like the scripted demonstrator.

Difficulty is set by the demonstrator's mistakes, not by stopping early: the ability to copy a name
from an observation into a query forms abruptly, and before that a policy succeeds at nothing.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rail.config import PolicyConfig, WarmStartConfig
from rail.envs.base import Benchmark, Message
from rail.errors import ConfigError
from rail.policy.actor import choose_decoder
from rail.policy.chat import Chat, Ints
from rail.policy.loading import publishing, save_policy
from rail.policy.supervised import Encoded, Log, train
from rail.policy.tiny import build_model
from rail.policy.tokenizer import train_tokenizer
from rail.seeding import generator, seed_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

TOKENIZER_DIALOGUES = 4000
"""Dialogues that the tokenizer learns from, the first of warm start 0; `our choice`."""

Dialogue = list[Message]


def build_warm_start(
    benchmark: Benchmark,
    policy: PolicyConfig,
    config: WarmStartConfig,
    index: int,
    out: Path,
    log: Log,
) -> dict[str, Any]:
    """Train warm start `index` and write it to the folder `out`, whole or not at all.

    Initial weights, demonstrations and batch order are the warm start's own streams. The tokenizer
    is common to all warm starts of a benchmark: it costs 2 s of demonstrations, and makes token
    counts, entropies per token and `eligible` lengths comparable between runs that start from
    different ones.

    Writes:
        The model and tokenizer (`save_pretrained`), `warm_start.json` (what was done, loss curve;
        equal bytes for equal input) and `clock.json` (seconds).

    Returns:
        The content of both JSON files in one dict.

    Raises:
        ConfigError: If more than one dialogue in 20 is longer than `policy.max_tokens`.
        StorageError: If the folder cannot be written.
    """
    started = time.perf_counter(), time.process_time()
    dialogues = list(islice(benchmark.demonstrations(index), config.demonstrations))
    tokenizer = _common_tokenizer(benchmark, policy, dialogues if index == 0 else None)
    encoded = encode(Chat(tokenizer), dialogues, policy.max_tokens)
    length = np.mean([len(ids) for ids in encoded.ids])
    log(
        f"warm start {index} of {benchmark.name}: {len(encoded.ids)} demonstrations,"
        f" {length:.0f} tokens each, vocabulary {len(tokenizer)},"
        f" {time.process_time() - started[1]:.0f} CPU s"
    )
    model = build_model(policy, tokenizer, seed_of(index, "warm_start", benchmark.name, "weights"))
    order = _order(config, len(encoded.ids), index, benchmark.name)
    backend, _, _ = choose_decoder(model, policy, rows=1)
    curve, tokens = train(model, encoded, order, config, log, native=backend == "native")
    record: dict[str, Any] = {
        "benchmark": benchmark.name,
        "index": index,
        "policy": policy.model_dump(mode="json"),
        "warm_start": config.model_dump(mode="json"),
        "backend": backend,
        "parameters": model.num_parameters(),
        "vocabulary": len(tokenizer),
        "demonstrations": len(encoded.ids),
        "dropped": encoded.dropped,
        "demonstrations_hash": dialogue_hash(dialogues),
        "longest_episode": max(len(ids) for ids in encoded.ids),
        "trained_tokens": tokens,
        "loss": curve,
    }
    clock = {
        "seconds": round(time.perf_counter() - started[0], 2),
        "cpu_seconds": round(time.process_time() - started[1], 2),
    }
    with publishing(out) as folder:
        save_policy(model, tokenizer, folder)
        for name, content in (("warm_start.json", record), ("clock.json", clock)):
            (folder / name).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
    log(
        f"warm start {index} of {benchmark.name}: done, loss {curve[-1][1]:.3f},"
        f" {clock['cpu_seconds']:.0f} CPU s, written to {out}"
    )
    return record | clock


def encode(chat: Chat, dialogues: Sequence[Dialogue], max_tokens: int) -> Encoded:
    """Turn dialogues into token ids and leave out those longer than `max_tokens`.

    Raises:
        ConfigError: If more than one in 20 is longer.
    """
    ids, action, dropped = [], [], 0
    for dialogue in dialogues:
        tokens, mask = chat.encode_dialogue(dialogue)
        if len(tokens) > max_tokens:
            dropped += 1
            continue
        ids.append(tokens)
        action.append(mask)
    if dropped * 20 > len(dialogues) or not ids:
        raise ConfigError(
            f"{dropped} of {len(dialogues)} demonstrations exceed policy.max_tokens = {max_tokens};"
            " raise it"
        )
    return Encoded(ids, action, dropped)


def dialogue_hash(dialogues: Sequence[Dialogue]) -> str:
    """Return a digest of every role and text, in order."""
    digest = hashlib.blake2b(digest_size=16)
    for dialogue in dialogues:
        line = json.dumps([[message.role, message.text] for message in dialogue])
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def _common_tokenizer(
    benchmark: Benchmark, policy: PolicyConfig, first: list[Dialogue] | None
) -> "PreTrainedTokenizerFast":
    source: Iterator[Dialogue] = iter(first) if first else benchmark.demonstrations(0)
    texts = (
        message.text for dialogue in islice(source, TOKENIZER_DIALOGUES) for message in dialogue
    )
    return train_tokenizer(texts, benchmark.pieces, policy.vocabulary)


def _order(config: WarmStartConfig, count: int, index: int, name: str) -> Ints:
    """Return the dialogues of each step, shape (steps, batch): epochs without replacement."""
    rng = generator(index, "warm_start", name, "order")
    needed = config.steps * config.batch
    epochs = [rng.permutation(count) for _ in range(-(-needed // count))]
    return np.concatenate(epochs)[:needed].reshape(config.steps, config.batch)
