"""What a result was made from: digests of content, versions of the libraries that shape numbers."""

import hashlib
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

_LIBRARIES = ("torch", "transformers", "tokenizers", "accelerate", "numpy", "scikit-learn", "scipy")


def digest_of(content: Path | str | bytes) -> str:
    """Return a 32-digit digest of a file's bytes, or of text or bytes."""
    if isinstance(content, Path):
        content = content.read_bytes()
    data = content.encode() if isinstance(content, str) else content
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def versions() -> dict[str, Any]:
    """Return the versions of Python and of the libraries, for run.json."""
    return {
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in _LIBRARIES},
    }
