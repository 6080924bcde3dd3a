"""Compile the kernel with whatever C compiler there is; cached by source, flags and compiler.

Looks for $CC, cc, gcc, clang, then the `ziglang` wheel. The instruction set is x86-64-v3 (AVX2) on
every machine, so that equal seeds give equal bits on all of them.
"""

import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor

from rail.atomic import replacing
from rail.errors import PolicyError

FOLDER = Path(__file__).parent
SOURCES = ("decoder.c", "draw.c", "tree.c")
HEADERS = ("vector.h",)
FLAGS = ("-O3", "-ffp-contract=fast", "-shared", "-fPIC")
_NEEDED = ("avx2", "fma")


def compiler() -> list[str] | None:
    """Return the command of a C compiler for x86-64-v3, None if there is none."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return [name, "-march=x86-64-v3"]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc", "-march=x86_64_v3"]  # zig's own spelling
    return None


def unsupported() -> str:
    """Return why this machine cannot run the kernel, empty if it can."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return f"the processor is {platform.machine()}, not x86-64"
    if not all(flag in _processor_flags() for flag in _NEEDED):
        return "the processor has no AVX2"
    if compiler() is None:
        return "there is no C compiler (cc, gcc, clang or the ziglang wheel)"
    return ""


def _processor_flags() -> str:
    information = Path("/proc/cpuinfo")
    return information.read_text() if information.exists() else ""


@cache
def compiled() -> ctypes.CDLL:
    """Return the compiled kernel, built on first use.

    Raises:
        PolicyError: If the compiler fails; shows what it said.
    """
    loaded = ctypes.CDLL(str(built()))
    for name in ("workspace", "draw_workspace", "tree_workspace"):
        getattr(loaded, name).restype = ctypes.c_long
    return loaded


def at(tensor: Tensor) -> ctypes.c_void_p:
    """Return the address of a contiguous tensor's first element; the caller keeps it alive."""
    return ctypes.c_void_p(tensor.data_ptr())


def built(flags: Sequence[str] = FLAGS) -> Path:
    """Return the shared library for `flags`, compiled unless the cache holds it.

    Raises:
        PolicyError: If the compiler fails; shows what it said.
    """
    command = compiler() or []
    key = hashlib.blake2b(digest_size=8)
    for name in (*SOURCES, *HEADERS):
        key.update((FOLDER / name).read_bytes())
    key.update(repr((command, flags)).encode())
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rail"
    target = folder / f"kernel-{key.hexdigest()}.so"
    if not target.exists():
        _compile([*command, *flags], target)
    return target


def describe() -> dict[str, Any]:
    """Build the kernel and return what it is made of; `unsupported` says why there is none."""
    reason, library_name = unsupported(), ""
    if not reason:
        try:
            library_name = built().name
        except PolicyError as error:  # as when a policy is opened: torch decodes then
            reason = str(error)
    return {
        "library": library_name,
        "compiler": compiler(),
        "flags": list(FLAGS),
        "unsupported": reason,
    }


def _compile(command: Sequence[str], target: Path) -> None:
    sources = [str(FOLDER / name) for name in SOURCES]
    with replacing(target) as temporary:
        done = subprocess.run(
            [*command, "-o", str(temporary), *sources, "-lm"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = " ".join(done.stderr.split())[:400]
            raise PolicyError(f"{' '.join(command)} could not compile the kernel: {said}")
