"""The only place where randomness starts.

Every consumer names its own path, so that adding a consumer never shifts another's stream:
``generator(seed, "base", step, task_id, child)``. The digest is blake2b, not Python's ``hash``,
which differs between processes.
"""

import hashlib

import numpy as np

PathPart = str | int


def seed_of(seed: int, *path: PathPart) -> int:
    """Return a 63-bit integer that depends on `seed` and on every part of `path`."""
    text = "\x1f".join([str(seed), *(f"{type(part).__name__}:{part}" for part in path)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(seed: int, *path: PathPart) -> np.random.Generator:
    """Return the generator of the stream that `path` names, independent of every other path."""
    return np.random.Generator(np.random.PCG64(seed_of(seed, *path)))
