import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [line.split(";")[0].strip() for line in lines if line and not line.startswith("#")]
    return dict(line.split("==") for line in found)


def conda_lines() -> list[str]:
    content = yaml.safe_load((ROOT / "environment.yml").read_text())
    return next(entry["pip"] for entry in content["dependencies"] if isinstance(entry, dict))


def declared() -> list[Requirement]:
    extras = project()["optional-dependencies"].values()
    lines = [*project()["dependencies"], *(line for extra in extras for line in extra)]
    return [Requirement(line) for line in lines]


def test_the_lock_holds_each_declared_dependency_at_an_allowed_version() -> None:
    wrong = [str(r) for r in declared() if not r.specifier.contains(pins().get(r.name, "0"))]
    assert wrong == []


def test_the_lock_names_no_index_path_or_local_build() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert re.findall(r"://|--\w+-url|\+cpu|\+cu\d+| @ ", text) == []
    assert "torch==2.13.0" in text.splitlines()


def test_conda_and_pip_pin_the_same_versions() -> None:
    lines = conda_lines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    assert pinned == {r.name: pins()[r.name] for r in map(Requirement, project()["dependencies"])}
    assert lines[0] == "-c constraints.txt"
    assert lines[-1] == "-e ."


def imported(folder: str) -> set[str]:
    names = set()
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"rail"}


def test_every_library_that_the_package_imports_is_a_declared_dependency() -> None:
    canonical = {re.sub(r"[-_.]+", "-", r.name).lower() for r in declared()}
    owners = packages_distributions()
    missing = {
        name
        for name in imported("rail")
        if not {re.sub(r"[-_.]+", "-", d).lower() for d in owners.get(name, [name])} & canonical
    }
    assert missing == set()


def test_python_of_the_conda_environment_is_allowed() -> None:
    assert project()["requires-python"] == ">=3.11.5"


@pytest.mark.parametrize("module", ["rail.cli", "rail.status", "rail.fingerprint", "rail.runs"])
def test_light_modules_import_no_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
