"""State of a run in progress: one folder, one owner, whole files only.

Layout: `lock`, `progress.jsonl` (append-only log), `step<n>.pt` (the last two checkpoints), and
`parts/<table>-<n>.parquet` (rows of the steps between checkpoints). A checkpoint names the code and
configuration it belongs to; one that does not match is left behind, one that is corrupt is set
aside and the one before it is used.
"""

import fcntl
import io
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from rail import atomic
from rail.errors import CheckpointError, LockError
from rail.traces.schema import TABLES
from rail.traces.store import read_rows, write_table

LOGGER = logging.getLogger(__name__)
_NAME = re.compile(r"step(\d+)\.pt")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the state folder for this process; the lock dies with the process.

    Raises:
        LockError: If another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            raise LockError(
                f"{folder} is in use by process {owner}: wait for it or end it, then run again"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint, whole or not at all.

    Raises:
        StorageError: If the disk refuses; the old file is as it was.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    atomic.write_bytes(path, buffer.getvalue())


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint.

    Raises:
        CheckpointError: If it is missing, truncated, or no checkpoint.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:  # torch raises many types on damaged files
        raise CheckpointError(
            f"{path}: cannot be read as a checkpoint ({type(error).__name__}); it is damaged or "
            "missing: delete it and run again"
        ) from error


class StateFolder:
    """Checkpoints and row parts of one run; use inside `locked`."""

    def __init__(self, folder: Path, key: str) -> None:
        """`key` is the digest of the code and configuration that the state belongs to."""
        self.folder, self._key = folder, key
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}

    def add(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Keep rows until the next checkpoint."""
        self._rows[table] += rows

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write the rows since the last checkpoint, then the checkpoint of `step` done steps."""
        for table, rows in self._rows.items():
            write_table(self._part(table, step), rows, TABLES[table])
        save(self.folder / f"step{step:05d}.pt", {"key": self._key, "step": step, **state})
        self._rows = {name: [] for name in TABLES}
        for old, path in self._checkpoints()[:-2]:
            LOGGER.debug("removing the checkpoint of step %d", old)
            path.unlink()

    def resume(self) -> dict[str, Any] | None:
        """Return the newest usable checkpoint; None: start afresh. Later parts are removed."""
        for step, path in reversed(self._checkpoints()):
            try:
                state = load(path)
            except CheckpointError as error:
                aside = path.with_suffix(".corrupt")
                path.replace(aside)
                LOGGER.warning("%s; set aside as %s, using the one before", error, aside.name)
                continue
            if state.get("key") != self._key:
                LOGGER.warning("%s belongs to other code or configuration: starting afresh", path)
                break
            self._drop_parts(after=step)
            return state
        self.clear()
        return None

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return all rows of a table so far, in order."""
        found: list[dict[str, Any]] = []
        for _, path in self._parts(table):
            found += read_rows(path, TABLES[table])
        return found + self._rows[table]

    def clear(self) -> None:
        """Remove checkpoints and parts; log and lock stay."""
        for _, path in self._checkpoints():
            path.unlink()
        shutil.rmtree(self.folder / "parts", ignore_errors=True)

    def _part(self, table: str, step: int) -> Path:
        return self.folder / "parts" / f"{table}-{step:05d}.parquet"

    def _parts(self, table: str) -> list[tuple[int, Path]]:
        paths = (self.folder / "parts").glob(f"{table}-*.parquet")
        return sorted((int(path.stem.rsplit("-", 1)[1]), path) for path in paths)

    def _drop_parts(self, after: int) -> None:
        for table in TABLES:
            for step, path in self._parts(table):
                if step > after:
                    path.unlink()

    def _checkpoints(self) -> list[tuple[int, Path]]:
        matches = ((_NAME.fullmatch(path.name), path) for path in self.folder.glob("step*.pt"))
        return sorted((int(match[1]), path) for match, path in matches if match)
