"""Run a notebook with papermill: private kernel, declared parameters, bytes that repeat.

A kernel of its own for every call: this interpreter (not whatever `python3` means to the user's
Jupyter), sockets in a private folder (kernels that are started together otherwise race for TCP
ports), no user start-up files. The executed copy is written only when every cell ran, and without
clock readings, so that equal inputs give equal bytes.
"""

import ast
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rail.atomic import write_text
from rail.errors import RailError

if TYPE_CHECKING:
    from nbformat import NotebookNode

KERNEL = "rail"
LOGS = Path("logs") / "notebooks"
"""Where the executed copy of a failed notebook is kept, relative to the working directory."""


class NotebookError(RailError, RuntimeError):
    """A notebook that cannot be read, parameterised or executed to its end."""


def parameters_of(source: Path) -> dict[str, str]:
    """Return the declared parameters: name -> source text of its default.

    They are the plain assignments of the one code cell tagged `parameters`.

    Raises:
        NotebookError: If the file is no notebook or has not exactly one such cell.
    """
    cells = [
        cell
        for cell in _read(source).cells
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", [])
    ]
    if len(cells) != 1:
        raise NotebookError(
            f"{source}: {len(cells)} code cells are tagged `parameters`, expected exactly one"
        )
    defaults: dict[str, str] = {}
    for statement in ast.parse(cells[0].source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                defaults[name] = ast.unparse(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                defaults[name] = ast.unparse(value)
    return defaults


def run_notebook(
    source: Path,
    executed: Path,
    parameters: Mapping[str, Any] | None = None,
    logs: Path = LOGS,
    timeout_s: int | None = None,
) -> None:
    """Execute `source` in the working directory and write the result to `executed`.

    Args:
        source: Notebook with one cell tagged `parameters`.
        executed: Where the executed copy goes; replaced atomically, untouched on failure.
        parameters: Values for declared parameters; anything JSON can say.
        logs: Folder that keeps `<name>.failed.ipynb` when a cell raises.
        timeout_s: Longest time of one cell, in seconds; None: no limit.

    Raises:
        NotebookError: One line that names notebook and cell, for an unreadable notebook, a
            parameter that it does not declare, or a cell that raised.
    """
    values = dict(parameters or {})
    declared = parameters_of(source)
    unknown = sorted(set(values) - set(declared))
    if unknown:
        raise NotebookError(
            f"{source}: unknown parameter {', '.join(unknown)}; declared: {', '.join(declared)}"
        )
    # A short path where there is one: unix sockets allow about 100 characters.
    short = "/tmp" if os.access("/tmp", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="nb", dir=short) as private:
        raw = Path(private) / "executed.ipynb"
        error = _execute(source, raw, values, Path(private), timeout_s)
        if error:
            kept = logs / f"{executed.stem}.failed.ipynb"
            copy = f" (executed copy: {kept})"
            if raw.exists():
                write_text(kept, raw.read_text(encoding="utf-8"))
            else:
                copy = ""
            raise NotebookError(f"{source}: {error}{copy}")
        write_text(executed, normalise(raw.read_text(encoding="utf-8")))


def normalise(text: str) -> str:
    """Return the text of an executed notebook without what differs between two equal runs.

    Goes: clock readings, papermill's and the kernel's metadata, random cell ids, standard error.
    Pieces of one output stream are joined, for where a stream is split depends on timing.
    """
    import nbformat

    notebook = nbformat.reads(text, as_version=4)
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for index, cell in enumerate(notebook.cells):
        cell.id = hashlib.blake2b(f"{index}\n{cell.source}".encode(), digest_size=6).hexdigest()
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type == "code":
            cell.outputs = _join_streams(cell.outputs)
    return nbformat.writes(notebook) + "\n"


def _join_streams(outputs: "list[NotebookNode]") -> "list[NotebookNode]":
    joined: list[NotebookNode] = []
    for output in outputs:
        if output.output_type != "stream":
            joined.append(output)
        elif output.name != "stdout":
            continue
        elif joined and joined[-1].output_type == "stream":
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _read(source: Path) -> "NotebookNode":
    import nbformat

    try:
        return nbformat.read(source, as_version=4)
    except FileNotFoundError as error:
        raise NotebookError(f"{source}: no such notebook") from error
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, UnicodeDecodeError) as error:
        first = str(error).strip().splitlines()[0]
        raise NotebookError(f"{source}: not a notebook: {first}") from error


def _execute(
    source: Path, raw: Path, values: dict[str, Any], private: Path, timeout_s: int | None
) -> str | None:
    """Run to the end and return None, or return one line about the cell that failed."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill import execute_notebook
    from papermill.exceptions import PapermillExecutionError
    from traitlets import default
    from traitlets.config import Config

    specs = KernelSpecManager(kernel_dirs=[str(_kernelspec(private))])

    class PrivateKernel(AsyncKernelManager):
        @default("kernel_spec_manager")
        def _own_specs(self) -> KernelSpecManager:
            return specs

    # Without an explicit `ip` the ipc sockets lie in the working directory, shared by all there.
    sockets = {
        "transport": "ipc",
        "ip": str(private / "k"),
        "connection_file": str(private / "c.json"),
    }
    try:
        execute_notebook(
            source,
            raw,
            parameters=values,
            kernel_name=KERNEL,
            language="python",
            progress_bar=False,
            log_output=True,
            stdout_file=sys.stdout,
            stderr_file=sys.stderr,
            cwd=str(Path.cwd()),
            execution_timeout=timeout_s,
            shutdown_kernel="immediate",  # all cells ran: nothing is left to be saved
            kernel_manager_class=PrivateKernel,
            config=Config({"KernelManager": sockets}),
        )
    except PapermillExecutionError as error:
        return f"cell [{error.exec_count}]: {error.ename}: {_one_line(error.evalue)}"
    except CellTimeoutError:
        return f"a cell ran for more than {timeout_s} s"
    except DeadKernelError as error:
        return f"the kernel died: {_one_line(str(error))}"
    return None


def _kernelspec(private: Path) -> Path:
    """Write a kernelspec that names this interpreter; return the folder of kernelspecs."""
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "rail",
        "language": "python",
        "env": {
            "MPLBACKEND": "agg",
            "IPYTHONDIR": str(private / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(private / "run"),
            "PYTHONHASHSEED": "0",
        },
    }
    folder = private / "kernels" / KERNEL
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return folder.parent


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
