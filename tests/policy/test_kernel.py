"""Building the kernel, refusing a damaged one, doing without one; its memory under sanitizers."""

import importlib.util
import json
import logging
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rail.config import Config, PolicyConfig
from rail.errors import PolicyError
from rail.policy.actor import open_actor
from rail.policy.kernel import build
from tests.policy.models import needs_kernel
from tests.toy_grid import toy_policy

Toy = tuple[Config, Path]


@pytest.fixture
def own_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the sources, built into a cache of its own."""
    folder = tmp_path / "kernel"
    shutil.copytree(build.FOLDER, folder)
    monkeypatch.setattr(build, "FOLDER", folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    build.compiled.cache_clear()
    yield folder
    build.compiled.cache_clear()


def policy(toy: Toy) -> PolicyConfig:
    return toy[0].policy.model_copy(update={"backend": "native"})


@needs_kernel
@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("vector.h", "5.0000001201e-1f", "5.0500001201e-1f"),
        ("vector.h", "0.693359375f", "0.6931f"),
        ("decoder.c", "total(sum) / (float)size", "total(sum) / (float)(size + 1)"),
        ("draw.c", "(float)(log(mass)", "(float)(log10(mass)"),
        ("tree.c", "- mean) * t->scale", "+ mean) * t->scale"),
    ],
)
def test_a_kernel_with_one_constant_changed_is_refused_at_load(
    toy: Toy, own_kernel: Path, caplog: pytest.LogCaptureFixture, file: str, right: str, wrong: str
) -> None:
    source = (own_kernel / file).read_text()
    assert right in source
    (own_kernel / file).write_text(source.replace(right, wrong))
    with caplog.at_level(logging.WARNING):
        actor = open_actor(toy[1], policy(toy))
    assert actor.backend == "torch"
    (said,) = (r.getMessage() for r in caplog.records)
    assert "decoding with torch" in said
    assert "its kernel is damaged" in said


@needs_kernel
def test_a_kernel_that_does_not_compile_says_what_the_compiler_said(own_kernel: Path) -> None:
    (own_kernel / "draw.c").write_text("this is not C")
    with pytest.raises(PolicyError, match=r"could not compile the kernel: .*draw\.c.*error"):
        build.compiled()
    found = build.describe()
    assert found["library"] == ""
    assert "could not compile" in found["unsupported"]


@needs_kernel
def test_a_warm_start_falls_back_as_well(toy: Toy, own_kernel: Path, tmp_path: Path) -> None:
    (own_kernel / "tree.c").write_text("this is not C")
    folder = toy_policy(toy[0], tmp_path / "policy")
    assert json.loads((folder / "warm_start.json").read_text())["backend"] == "torch"


@needs_kernel
def test_the_cache_is_keyed_by_sources_and_flags(own_kernel: Path) -> None:
    first = build.built()
    assert build.built() == first
    assert build.built((*build.FLAGS, "-DOTHER")) != first
    (own_kernel / "vector.h").write_text((own_kernel / "vector.h").read_text() + "\n")
    assert build.built() != first


@needs_kernel
def test_what_was_built_is_written_down(own_kernel: Path) -> None:
    found = build.describe()
    assert found["library"] == build.built().name
    assert found["unsupported"] == ""
    assert found["compiler"][-1] in ("-march=x86-64-v3", "-march=x86_64_v3")


def test_without_a_compiler_torch_decodes_and_says_so_once(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with caplog.at_level(logging.WARNING):
        actor = open_actor(toy[1], policy(toy))
    assert actor.backend == "torch"
    (said,) = (r.getMessage() for r in caplog.records)
    assert "no C compiler" in said
    assert build.describe()["unsupported"].startswith("there is no C compiler")


@needs_kernel
def test_memory_stays_in_bounds_under_sanitizers(tmp_path: Path) -> None:
    """Every function at its limits: last positions, one entry, odd counts, narrow nuclei."""
    driver = Path(__file__).with_name("kernel_driver.c")
    program = tmp_path / "driver"
    command = [*(build.compiler() or []), "-O1", "-g", f"-I{build.FOLDER}"]
    checks = "-fsanitize=address,undefined"
    done = subprocess.run(
        [*command, checks, "-fno-sanitize-recover=all", str(driver), "-o", str(program), "-lm"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    ran = subprocess.run(
        [str(program)],
        capture_output=True,
        text=True,
        check=False,
        env={"ASAN_OPTIONS": "detect_leaks=0"},  # the driver's own arrays live to its end
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("finite sum ")


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no ziglang wheel")
def test_the_ziglang_wheel_is_a_compiler(
    toy: Toy, own_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    assert "ziglang" in (build.compiler() or [])
    assert open_actor(toy[1], policy(toy)).backend == "native"
