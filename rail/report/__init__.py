"""One HTML page for the reader: verdict, headroom, claims, tables, figures, provenance.

The page is self-contained (inline figures and style, no script, no network). It computes nothing
that is not in a file: every table and figure names the file it shows. What is missing says so.
"""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from rail import __version__
from rail.atomic import write_text
from rail.config import Config
from rail.report.deviations import load_deviations
from rail.report.figures import Figure, read_figure
from rail.report.headroom import read_headroom
from rail.report.ledger import read_ledger
from rail.report.runs import read_runs
from rail.report.sheets import Links, Sheet, read_pivot, read_sheet

FIGURES = {
    "table1": "Held-out success by method and seed",
    "learning_curves": "Learning curves at equal rollouts and at equal tokens",
    "figure3": "The controller over the course of training",
    "headroom": "Difficulty and headroom of the warm starts",
}
"""Figures of the page -> heading; anything else in the figures folder follows by name."""

TABLE1 = (
    "Mean over seeds with 95 % t interval: success at T = 1 (the primary endpoint), greedy, and by "
    "the benchmark's published rule (upstream); reference method minus this one, paired by seed; "
    "rollouts per task: all that were billed, without shadow branches (live), and retained for the "
    "update."
)
CONTROLLER = (
    "Mean over seeds with 95 % t interval; n: draws of all seeds. Exploration draws, weighted by "
    "1 / the probability with which exploration drew them, show what the controller would miss; "
    "executed ones what it chose."
)


def render(config: Config, labels: Mapping[str, str], out: Path, deviations: Path) -> None:
    """Write the report of a result folder.

    Args:
        config: The scale; `config.results` is the folder that is read.
        labels: Methods of the grid and how figures call them.
        out: The HTML file.
        deviations: YAML list of deviations from the protocol.

    Raises:
        ConfigError: If `deviations` is not as described in it.
        DataError: If a file that exists is damaged.
        TraceError: If a run's table or run.json is damaged.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    results = Path(config.results)
    links = Links(results, out.parent)
    environment = Environment(
        loader=PackageLoader("rail.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    ledger = read_ledger(links)
    page = environment.get_template("page.html.jinja").render(
        style=resources.files("rail.report").joinpath("page.css").read_text(encoding="utf-8"),
        version=__version__,
        config=config,
        labels=labels,
        ledger=ledger,
        headroom=[read_headroom(links, benchmark) for benchmark in config.benchmarks],
        sheets=_sheets(links, labels),
        figures=_figures(links),
        runs=read_runs(config, labels, links),
        deviations=load_deviations(deviations),
        development=not ledger.registered,
    )
    write_text(out, page)


def _sheets(links: Links, labels: Mapping[str, str]) -> list[Sheet]:
    success = read_sheet(
        links, "table1", "Table 1: held-out success", TABLE1, labels, drop=("benchmark", "per_seed")
    )
    controller = read_pivot(
        links,
        "figure3",
        "Controller measures over the whole run",
        CONTROLLER,
        by=("draws", "predictor"),
        keep={"window": "0"},
    )
    rates = read_sheet(links, "lr_sweep", "Learning rate, chosen on validation", "", optional=True)
    return [success, controller, rates]


def _figures(links: Links) -> list[Figure]:
    folder = links.results / "figures"
    others = sorted({path.stem for path in folder.glob("*.svg")} - set(FIGURES))
    titles = {**FIGURES, **{name: name.replace("_", " ") for name in others}}
    return [read_figure(links, name, title) for name, title in titles.items()]
