"""Files appear whole or not at all."""

import errno
import json
import os
import resource
import stat
from pathlib import Path

import pytest

from rail import atomic
from rail.errors import StorageError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_bytes_arrive_and_leave_no_temporary(tmp_path: Path) -> None:
    atomic.write_bytes(tmp_path / "new" / "a.bin", b"one")
    atomic.write_bytes(tmp_path / "new" / "a.bin", b"two")
    assert (tmp_path / "new" / "a.bin").read_bytes() == b"two"
    assert names(tmp_path / "new") == ["a.bin"]


def write_half_then(error: BaseException, path: Path) -> None:
    with atomic.replacing(path) as temporary:
        temporary.write_bytes(b"half of the ne")
        raise error


def test_interrupted_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_half_then(KeyboardInterrupt(), path)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_full_disk_names_path_and_reason_and_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(StorageError, match=r"a\.bin: No space left on device"):
        write_half_then(full, path)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_error_of_the_writer_itself_passes_unchanged(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not ours"):
        write_half_then(ValueError("not ours"), tmp_path / "a.bin")
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is a Linux device")
def test_real_enospc_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match="No space left on device"),
        atomic.replacing(tmp_path / "a.bin"),
    ):
        Path("/dev/full").write_bytes(b"x")
    assert names(tmp_path) == []


def test_file_size_limit_stops_a_real_write_and_removes_the_part(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    pid = os.fork()
    if pid == 0:  # the limit holds for the child alone
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            atomic.write_bytes(path, b"x" * 5000)
        except StorageError as error:
            os._exit(0 if "File too large" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_parent_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    with pytest.raises(StorageError, match="cannot write"):
        atomic.write_text(tmp_path / "plain" / "a.txt", "y")


def test_bytes_are_on_disk_before_the_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[tuple[bool, bool]] = []
    real = os.fsync

    def watching(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        forced.append((is_folder, (tmp_path / "a.bin").exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watching)
    atomic.write_bytes(tmp_path / "a.bin", b"x")
    assert forced == [(False, False), (True, True)]


def test_json_is_sorted_and_refuses_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    atomic.write_json(path, {"b": 1, "a": None})
    assert path.read_text() == '{\n  "a": null,\n  "b": 1\n}\n'
    with pytest.raises(ValueError, match="JSON"):
        atomic.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": None, "b": 1}


def test_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    atomic.write_text(tmp_path / "made", "x")
    assert (tmp_path / "made").stat().st_mode == (tmp_path / "plain").stat().st_mode
