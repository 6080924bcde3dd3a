"""Was a claim fixed before its runs, as the protocol's section 1 asks?"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import yaml

from rail.errors import ConfigError

DEVELOPMENT = 1000
"""Seeds from here on are development seeds."""

Registered = Literal["yes", "no", "deviation"]


def registration(seeds: Sequence[int], panel: str, lock: Path | None) -> tuple[Registered, str]:
    """Return whether a claim counts as registered, and why.

    `no`: no run, development seeds, a panel other than b, or nothing frozen yet. `yes`: every file
    in the lock still has the digest it was frozen with; `deviation`: one has not (named).

    Args:
        seeds: Seeds of the runs that the claim rests on.
        panel: Test panel, `a` or `b`.
        lock: YAML mapping of files, relative to the repository, to sha256 digests; the repository
            is the folder above the lock's.

    Raises:
        ConfigError: If the lock is no such mapping.
    """
    if not seeds:
        return "no", "no run"
    if max(seeds) >= DEVELOPMENT:
        return "no", f"development seeds {DEVELOPMENT}+, panel {panel.upper()}"
    if panel != "b":
        return "no", f"panel {panel.upper()} is for development"
    if lock is None or not lock.is_file():
        return "no", "nothing is frozen: there is no claims.lock"
    changed = _changed(lock)
    if changed:
        return "deviation", f"changed since the freeze: {', '.join(changed)}"
    return "yes", f"as frozen in {lock.name}"


def _changed(lock: Path) -> list[str]:
    frozen = yaml.safe_load(lock.read_text())
    if not isinstance(frozen, dict) or not frozen:
        raise ConfigError(f"{lock}: expected a mapping of file to sha256, got {frozen!r}")
    root = lock.resolve().parent.parent
    return [name for name, digest in frozen.items() if _digest(root / str(name)) != digest]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
