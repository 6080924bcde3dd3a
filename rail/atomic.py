"""Files that appear whole or not at all.

The bytes go to a temporary name in the same folder, are forced to disk and then take the final name
in one rename, so a reader, a full disk or a kill at any moment meets the old file or the new one.
"""

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rail.errors import StorageError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on leaving the block it becomes `path`.

    The writer inside the block may be any code that writes a file by name. When the block or the
    disk fails, the temporary is removed and `path` is what it was before.

    Raises:
        StorageError: If the operating system refuses (disk full, no permission, not a folder);
            names the path and the reason. Other errors of the block pass through unchanged.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _force_to_disk(temporary)
        temporary.replace(path)
    except BaseException as error:
        _discard(temporary)
        # Only the plain OSError of a full disk or a refused path is ours to explain.
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            reason = error.strerror or str(error)
            raise StorageError(
                f"cannot write {path}: {reason}; free space or check the folder, then run again"
            ) from error
        raise
    _force_folder_to_disk(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all.

    Raises:
        StorageError: See `replacing`.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write `content` as UTF-8 with the line ends it has, whole or not at all."""
    write_bytes(path, content.encode())


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys; equal values give equal bytes.

    Raises:
        ValueError: If `value` holds NaN or infinity, which JSON does not have.
        StorageError: See `replacing`.
    """
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def _force_to_disk(path: Path) -> None:
    # Read-write: some systems refuse fsync on a read-only descriptor.
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _force_folder_to_disk(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(path: Path) -> None:
    # The error that brought us here is the one to report.
    with suppress(OSError):
        path.unlink(missing_ok=True)
