"""A copy of the checkout in which jobs do no work, and what snakemake plans in it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = ("Snakefile", "config", "notebooks", "rail", "workflow")
SMOKE = ("--configfile", "config/smoke.yaml")


def make_checkout(target: Path) -> Path:
    """Copy the checkout to `target`, its command line replaced by the stand-in."""
    target.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target / name)
    (target / "profiles").symlink_to("workflow/profiles")
    shutil.copy2(Path(__file__).parent / "stand_in.py", target / "rail/cli.py")
    return target


def snakemake(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run snakemake in `checkout`, on its own copy of the package."""
    env = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
    return subprocess.run(
        command, cwd=checkout, env=env, capture_output=True, text=True, check=False
    )


def planned(checkout: Path, *arguments: str) -> dict[str, int]:
    """Return the number of jobs that a dry run plans, by rule; collecting targets left out."""
    result = snakemake(checkout, "-n", *arguments)
    text = result.stdout + result.stderr
    assert result.returncode == 0, text
    table = re.search(r"^Job stats:\n(.*?)^total ", text, re.DOTALL | re.MULTILINE)
    if table is None:
        assert "Nothing to be done" in text, text
        return {}
    rows = [line.split() for line in table[1].splitlines()[2:]]
    collecting = {"reproduce", "all", "smoke", "tables", "figures", "traces", "lr_sweep"}
    return {rule: int(count) for rule, count in rows if rule not in collecting}
