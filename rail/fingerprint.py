"""A digest of the code that a job can run: the rerun trigger of the workflow.

Starting from named modules it follows every import of this package, also those inside functions,
and hashes the syntax trees; comments, layout and docstrings do not count. A module loaded by
name (`importlib.import_module`) is invisible to it, so the caller names plug-ins itself.

Source: our choice; file times would rerun everything after each checkout.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rail.errors import ConfigError

PACKAGE = Path(__file__).parent

_TYPES_ONLY = {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def modules_of(*names: str, package: Path = PACKAGE) -> dict[str, Path]:
    """Return name and file of `names` and of all they import from their own package, sorted.

    Args:
        names: Dotted names, such as `rail.train`.
        package: Folder of the package, here `rail/`.

    Raises:
        ConfigError: If one of `names` is no module of the package.
    """
    found: dict[str, Path] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        file = _file_of(name, package)
        if file is None:
            raise ConfigError(f"no module {name!r} in {package}")
        found[name] = file
        parent = name.rpartition(".")[0]  # importing a.b runs a/__init__.py as well
        imports = _read(file, name, file.stat().st_mtime_ns).imports
        waiting += [n for n in (parent, *imports) if n and _file_of(n, package)]
    return dict(sorted(found.items()))


def fingerprint(*names: str, package: Path = PACKAGE) -> str:
    """Return a digest (32 hex digits) of the code reachable from the modules `names`.

    C sources beside a module count with it, byte for byte.

    Raises:
        ConfigError: If one of `names` is no module of the package.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, file in modules_of(*names, package=package).items():
        code = _read(file, name, file.stat().st_mtime_ns).code
        digest.update(f"{name}\n{code}\n".encode())
        if file.name != "__init__.py":
            continue
        for source in sorted(file.parent.glob("*.[ch]")):
            digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()


def modules_in_notebook(notebook: Path, package: Path = PACKAGE) -> list[str]:
    """Return the modules of the package that the code cells of `notebook` import, sorted.

    Raises:
        ConfigError: If the file cannot be read as a notebook of Python cells.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        trees = [ast.parse(source) for source in code]
    except (OSError, ValueError, KeyError, TypeError, SyntaxError) as error:
        raise ConfigError(f"{notebook}: not a notebook of Python cells: {error!r}") from error
    names = {name for tree in trees for name in _targets(tree, [])}
    return sorted(name for name in names if _file_of(name, package))


def _file_of(name: str, package: Path) -> Path | None:
    first, *rest = name.split(".")
    if first != package.name:
        return None
    path = package.joinpath(*rest)
    return next((f for f in (path / "__init__.py", path.with_suffix(".py")) if f.is_file()), None)


@dataclass(frozen=True, slots=True)
class _Module:
    """What counts of a file: its syntax, and the names it may import."""

    code: str
    imports: tuple[str, ...]


# The time of the last change is part of the key, so an edit within one process is seen.
@cache
def _read(file: Path, name: str, changed: int) -> _Module:
    tree = ast.parse(file.read_bytes(), filename=str(file))
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    imports = tuple(_targets(tree, package.split(".")))
    return _Module(ast.dump(_Undocumented().visit(tree)), imports)


def _targets(node: ast.AST, package: list[str]) -> Iterator[str]:
    """Yield every dotted name that `node` may import; names that are no modules are harmless."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        up = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*up, *([node.module] if node.module else [])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)
    for child in _children(node):
        yield from _targets(child, package)


def _children(node: ast.AST) -> Iterable[ast.AST]:
    if isinstance(node, ast.If) and ast.unparse(node.test) in _TYPES_ONLY:
        return node.orelse
    return ast.iter_child_nodes(node)


class _Undocumented(ast.NodeTransformer):
    """Drops docstrings and other bare strings."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else node
