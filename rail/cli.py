"""The command line: parse, call one function per verb, turn a `RailError` into one line.

Everything heavy is imported inside the command that needs it, so `rail --help` imports no torch.
Environment variables are read here and nowhere else.
"""

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from rail.errors import ConfigError, RailError

app = typer.Typer(
    name="rail",
    help="Recoverability-aware rollout intervention learning: one verb per stage of the workflow.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Configs = Annotated[
    list[Path],
    typer.Option(
        "--config",
        envvar="RAIL_CONFIG",
        help="YAML file; give it again to overlay, later files win.",
    ),
]
BenchmarkName = Annotated[str, typer.Option("--benchmark", help="Name in config/benchmarks.")]
MethodName = Annotated[str, typer.Option("--method", help="Name in config/methods.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the run.")]
Out = Annotated[Path, typer.Option("--out", help="Where the result goes.")]
Policy = Annotated[Path, typer.Option("--policy", help="Folder of the policy to start from.")]
DEFAULT = [Path("config/default.yaml")]


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; as does RAIL_DEBUG=1.")
    ] = False,
) -> None:
    _set_up_logging(logging.DEBUG if debug else logging.INFO)


@app.command()
def panels(benchmark: BenchmarkName, out: Out, config: Configs = DEFAULT) -> None:
    """Write every panel of a benchmark as JSON lines, and their content hashes."""
    from rail.panels import write_panels
    from rail.runs import benchmark_config, load_benchmark, load_config

    settings = benchmark_config(load_config(config), benchmark)
    write_panels(load_benchmark(benchmark, settings), list(settings.pools), out)


@app.command()
def kernel(out: Out) -> None:
    """Compile the decoding kernel and write down what was built, or why it cannot be."""
    from rail.atomic import write_json
    from rail.policy.kernel.build import describe

    write_json(out, describe())


@app.command()
def warmstart(
    benchmark: BenchmarkName,
    index: Annotated[int, typer.Option("--index", help="Which warm start, from 0.")],
    out: Out,
    config: Configs = DEFAULT,
) -> None:
    """Train one initial policy on scripted demonstrations."""
    from rail.policy.warmstart import build_warm_start
    from rail.runs import benchmark_config, load_benchmark, load_config

    scale = load_config(config)
    source = load_benchmark(benchmark, benchmark_config(scale, benchmark))
    log = logging.getLogger("rail").info
    build_warm_start(source, scale.policy, scale.warm_start, index, out, log)


@app.command()
def bands(benchmark: BenchmarkName, policy: Policy, out: Out, config: Configs = DEFAULT) -> None:
    """Measure the difficulty of a benchmark for one warm start (protocol section 2)."""
    from rail.checks.bands import bands as measure
    from rail.runs import load_config

    measure(load_config(config), benchmark, policy, out)


@app.command()
def headroom(benchmark: BenchmarkName, policy: Policy, out: Out, config: Configs = DEFAULT) -> None:
    """Measure what interventions could gain for one warm start (protocol section 2)."""
    from rail.checks.headroom import headroom as measure
    from rail.runs import load_config

    measure(load_config(config), benchmark, policy, out)


@app.command()
def train(
    benchmark: BenchmarkName,
    method: MethodName,
    seed: Seed,
    policy: Policy,
    state: Annotated[Path, typer.Option("--state", help="Folder to resume from.")],
    out: Out,
    reads: Annotated[
        Path | None, typer.Option("--reads", help="Run folder that the method reads.")
    ] = None,
    config: Configs = DEFAULT,
) -> None:
    """Train one run, or go on with it where its state folder stands."""
    from rail.runs import load_config, resolve
    from rail.train import train as run

    run(resolve(load_config(config), benchmark, method, seed), policy, state, out, reads)


@app.command("evaluate-initial")
def evaluate_initial(
    benchmark: BenchmarkName, policy: Policy, out: Out, config: Configs = DEFAULT
) -> None:
    """Evaluate a warm start on the held-out panel: step 0 of every run that begins there."""
    from rail.evaluate import evaluate_initial as judge
    from rail.runs import load_config

    judge(load_config(config), benchmark, policy, out)


@app.command()
def evaluate(
    benchmark: BenchmarkName,
    method: MethodName,
    seed: Seed,
    run: Annotated[Path, typer.Option("--run", help="Run folder with the final policy.")],
    out: Out,
    initial: Annotated[
        Path | None, typer.Option("--initial", help="Evaluation of the warm start.")
    ] = None,
    config: Configs = DEFAULT,
) -> None:
    """Evaluate the final policy of a run on the held-out panel."""
    from rail.evaluate import evaluate as judge
    from rail.runs import load_config

    judge(load_config(config), benchmark, method, seed, run, out, initial)


@app.command()
def resolve(
    benchmark: BenchmarkName, method: MethodName, seed: Seed, config: Configs = DEFAULT
) -> None:
    """Print all that one run reads, as JSON."""
    from rail.runs import load_config
    from rail.runs import resolve as resolved

    run = resolved(load_config(config), benchmark, method, seed)
    print(json.dumps(run.model_dump(mode="json"), indent=2))


@app.command()
def traces(
    method: Annotated[list[str], typer.Option("--method", help="Method; may be repeated.")],
    config: Configs = DEFAULT,
) -> None:
    """Export controller traces of the grid's runs, with a sheet that explains the columns."""
    from rail.runs import load_config
    from rail.traces.export import export_run, export_sheet

    scale = load_config(config)
    for benchmark in scale.benchmarks:
        for name in method:
            for seed in scale.seeds:
                export_run(Path(scale.results), benchmark, name, seed)
    export_sheet(Path(scale.results))


@app.command("lr-sweep")
def lr_sweep(out: Out, config: Configs = DEFAULT) -> None:
    """Tabulate validation success per learning rate, best first."""
    from rail.runs import load_config
    from rail.sweep import write_sweep

    for row in write_sweep(load_config(config), out):
        print(row)


@app.command()
def notebook(
    source: Path,
    out: Out,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", help="NAME=VALUE, the value in JSON or plain text."),
    ] = None,
) -> None:
    """Execute a notebook with parameters."""
    from rail.notebook import run_notebook

    run_notebook(source, out, dict(_parameter(text) for text in parameter or []))


@app.command()
def claims(
    claims: Annotated[Path, typer.Option("--claims", help="What is claimed, as YAML.")],
    config: Configs = DEFAULT,
) -> None:
    """Judge every claim by the runs of the scale; write claims.json and tables/claims.csv."""
    from rail.claims import compute, load_claims, write_ledger
    from rail.runs import load_config

    scale = load_config(config)
    results, lock = Path(scale.results), claims.with_name("claims.lock")
    rows = compute(load_claims(claims), results, scale.seeds, scale.test_panel, lock)
    write_ledger(rows, results)
    for row in rows:
        print(f"{row['id']}: {row['verdict']}")


@app.command()
def report(
    out: Out,
    deviations: Annotated[
        Path, typer.Option("--deviations", help="Deviations from the protocol, as YAML.")
    ] = Path("config/deviations.yaml"),
    config: Configs = DEFAULT,
) -> None:
    """Render claims, tables, figures and provenance as one HTML page."""
    from rail.report import render
    from rail.runs import grid_methods, load_config, method_config

    scale = load_config(config)
    labels = {name: method_config(scale, name).label for name in grid_methods(scale)}
    render(scale, labels, out, deviations)


@app.command()
def status(config: Configs = DEFAULT) -> None:
    """Show every run of the grid: progress, time left, last message or error."""
    from rich.console import Console
    from rich.table import Table

    from rail.runs import load_config
    from rail.status import statuses

    scale = load_config(config)
    rows = statuses(scale, time.time())
    table = Table("benchmark", "method", "seed", "state", "step", "left", "last message")
    for row in rows:
        left = "" if row.eta is None else f"{row.eta / 60:.1f} min"
        step = f"{row.step}/{row.steps}" if row.steps else ""
        table.add_row(row.benchmark, row.method, str(row.seed), row.state, step, left, row.note)
    done = sum(row.state == "done" for row in rows)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    print(f"{done} of {len(rows)} runs done in {scale.results}")


@app.command("check-env")
def check_env(name: str, config: Configs = DEFAULT) -> None:
    """Test a benchmark's environments against the contract that branching relies on."""
    from rail.envs.contract import check_benchmark
    from rail.runs import benchmark_config, load_benchmark, load_config

    for line in check_benchmark(load_benchmark(name, benchmark_config(load_config(config), name))):
        print(line)


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"-p {text}: expected NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def main() -> None:
    """Run the command line; a `RailError` is one line on stderr and exit code 2."""
    try:
        app()
    except RailError as error:
        if "--debug" in sys.argv or os.environ.get("RAIL_DEBUG"):
            raise
        print(f"rail: {error}", file=sys.stderr)
        sys.exit(2)


def _set_up_logging(level: int) -> None:
    if sys.stderr.isatty():
        from rich.logging import RichHandler

        handler: logging.Handler = RichHandler(show_path=False)
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("rail")
    logger.addHandler(handler)
    logger.setLevel(level)
