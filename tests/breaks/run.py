"""Prove that tests can fail: apply each defect in tests/breaks/*.patch and demand a red test.

    python -m tests.breaks.run [name ...]

A patch starts with lines `breaks: <pytest node id>`; each named test must pass on the untouched
tree and fail on the broken copy. A patch that no longer applies is a failure too.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
COPIED = ("rail", "tests", "config", "workflow", "notebooks", "pyproject.toml", "Snakefile")
HEADER = "breaks: "
TIMEOUT_S = 900
FAILED = 1
"""Exit code of pytest for failed tests; 2 to 5 mean that it could not run them."""


def nodes_of(patch: Path) -> list[str]:
    """Return the tests that a patch must turn red."""
    lines = patch.read_text().splitlines()
    return [line.removeprefix(HEADER).strip() for line in lines if line.startswith(HEADER)]


def copy_tree(target: Path) -> None:
    """Copy what tests need into `target`."""
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignore, symlinks=True)
        elif source.exists():
            shutil.copy2(source, target / name)


def run_tests(root: Path, nodes: list[str]) -> subprocess.CompletedProcess[str]:
    """Run `nodes` against the package in `root`."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *nodes]
    # PYTHONPATH goes before an editable install, so the copy is what is imported.
    env = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=root, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def problem_of(patch: Path) -> str:
    """Return what is wrong with a patch, empty when each named test turns red."""
    nodes = nodes_of(patch)
    if not nodes:
        return f"no line starts with {HEADER!r}"
    with tempfile.TemporaryDirectory(prefix="rail-break-") as folder:
        root = Path(folder).resolve()
        copy_tree(root)
        applied = subprocess.run(
            ["git", "apply", str(patch)], cwd=root, capture_output=True, text=True, check=False
        )
        if applied.returncode:
            return f"does not apply: {applied.stderr.strip()}"
        for node in nodes:
            result = run_tests(root, [node])
            if result.returncode != FAILED:
                tail = "\n".join(result.stdout.splitlines()[-5:])
                return f"{node}: exit code {result.returncode}, expected a failed test\n{tail}"
    return ""


def main() -> int:
    """Check the named patches, or all; return the number of problems."""
    parser = argparse.ArgumentParser(description="apply defects and demand red tests")
    parser.add_argument("names", nargs="*", help="names of patches, without .patch")
    names = parser.parse_args().names
    patches = [FOLDER / f"{name}.patch" for name in names] or sorted(FOLDER.glob("*.patch"))
    wanted = sorted({node for patch in patches for node in nodes_of(patch)})
    untouched = run_tests(ROOT, wanted)
    if untouched.returncode:
        sys.stdout.write(f"{untouched.stdout}\nthe untouched tree must pass first\n")
        return 1
    problems = 0
    # Each defect has a copy of its own, so they may run side by side.
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        for patch, problem in zip(patches, workers.map(problem_of, patches), strict=True):
            problems += bool(problem)
            sys.stdout.write(f"{'FAIL' if problem else 'red '} {patch.stem}  {problem}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(patches) - problems} of {len(patches)} defects turn their tests red\n")
    return problems


if __name__ == "__main__":
    sys.exit(min(main(), 1))
