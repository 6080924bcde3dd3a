"""One function per kind of panel: a table goes in, marks on one axis come out.

Nothing here computes a statistic. Intervals arrive as columns `low` and `high`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rail.plotting.theme import BAND, INK, MUTED, look, ordered

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SPREAD = 11.0
"""Sideways distance between the first and the last method of `curves`, in points."""


def seed_dots(
    axis: "Axes",
    points: "pd.DataFrame",
    intervals: "pd.DataFrame",
    labels: Mapping[str, str],
    xlabel: str,
) -> None:
    """Draw one row per method: every seed as a small open mark, mean and interval above it.

    Args:
        axis: Where to draw.
        points: Columns method, value; one row per seed.
        intervals: Columns method, mean, low, high; the interval may be NaN (one seed).
        labels: How figures call a method; its id where absent.
        xlabel: Name and unit of the value.
    """
    methods = ordered(intervals["method"])
    rows = {method: -index for index, method in enumerate(methods)}
    for method in methods:
        mark, row = look(method), rows[method]
        values = points.loc[points["method"] == method, "value"].sort_values()
        axis.plot(
            values, [row - 0.2] * len(values), ls="", marker=mark.marker, ms=4,
            mfc="white", mec=mark.color, mew=0.9,
        )  # fmt: skip
        summary = intervals.loc[intervals["method"] == method].iloc[0]
        axis.plot([summary["low"], summary["high"]], [row + 0.12] * 2, color=mark.color, lw=2)
        axis.plot(
            summary["mean"], row + 0.12, marker=mark.marker, ms=6.5, color=mark.color, zorder=4
        )
        _value(axis, f"{summary['mean']:.3f}", summary["mean"], row + 0.12, mark.text)
    _rows(axis, [labels.get(method, method) for method in methods])
    axis.set_xlabel(xlabel)


def forest(
    axis: "Axes",
    differences: "pd.DataFrame",
    margin: float,
    xlabel: str,
    colors: Sequence[str] = (),
) -> None:
    """Draw one row per comparison: estimate and interval beside zero, the margin shaded.

    Args:
        axis: Where to draw.
        differences: Columns label, estimate, low, high, from top to bottom.
        margin: The equivalence margin delta, in units of the estimate.
        xlabel: Name and unit of the difference.
        colors: One per row; ink where empty.
    """
    axis.axvspan(-margin, margin, color=BAND, lw=0, zorder=0)
    axis.axvline(0, color=INK, lw=0.9, zorder=1)
    for index, row in enumerate(differences.to_dict("records")):
        color = colors[index] if colors else INK
        axis.plot([row["low"], row["high"]], [-index] * 2, color=color, lw=2)
        axis.plot(row["estimate"], -index, marker="o", ms=5.5, color=color, zorder=4)
        _value(axis, _signed(row["estimate"]), row["estimate"], -index, color)
    _rows(axis, [str(label) for label in differences["label"]])
    axis.set_xlabel(f"{xlabel}\n(shaded: within \N{PLUS-MINUS SIGN}{margin:g})")


def curves(
    axis: "Axes", table: "pd.DataFrame", labels: Mapping[str, str], xlabel: str, ylabel: str
) -> None:
    """Draw mean lines with an interval at every point; each line is named at its end, no legend.

    Marks of different methods are moved sideways, by up to half of `SPREAD`, so that intervals at
    the same x stay apart.

    Args:
        axis: Where to draw.
        table: Columns method, x, mean, low, high; a NaN interval draws none.
        labels: How figures call a method.
        xlabel: Name and unit of x.
        ylabel: Name and unit of the mean.
    """
    from matplotlib.transforms import ScaledTranslation

    ends: list[tuple[float, float, str, str]] = []
    methods = ordered(table["method"])
    for index, method in enumerate(methods):
        mark = look(method)
        line = table.loc[table["method"] == method].sort_values("x")
        shift = SPREAD * (index - (len(methods) - 1) / 2) / max(len(methods) - 1, 1)
        inches = ScaledTranslation(shift / 72, 0, axis.figure.dpi_scale_trans)
        beside = axis.transData + inches
        axis.vlines(
            line["x"], line["low"], line["high"], color=mark.color, lw=1, alpha=0.55,
            transform=beside,
        )  # fmt: skip
        axis.plot(
            line["x"], line["mean"], color=mark.color, ls=mark.dash, marker=mark.marker, ms=3.5,
            lw=1.3, transform=beside,
        )  # fmt: skip
        axis.update_datalim(line[["x", "low"]].dropna().to_numpy())
        axis.update_datalim(line[["x", "high"]].dropna().to_numpy())
        axis.update_datalim(line[["x", "mean"]].dropna().to_numpy())
        last = line.dropna(subset=["mean"]).iloc[-1]
        ends.append((last["x"], last["mean"], labels.get(method, method), mark.text))
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    axis.margins(x=0.05)
    axis.autoscale_view()
    name_ends(axis, ends)


def bands(
    axis: "Axes",
    table: "pd.DataFrame",
    labels: Mapping[str, str],
    xlabel: str,
    ylabel: str,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw mean lines in interval bands, for few lines with many points; named at their ends.

    Arguments as in `curves`; `limits` fixes the y axis to the range of the measure, which the t
    interval of a few seeds can leave. Without any row the panel says so.
    """
    ends: list[tuple[float, float, str, str]] = []
    for method in ordered(table["method"]):
        mark = look(method)
        line = table.loc[table["method"] == method].sort_values("x")
        axis.fill_between(line["x"], line["low"], line["high"], color=mark.color, alpha=0.14, lw=0)
        axis.plot(line["x"], line["mean"], color=mark.color, ls=mark.dash)
        last = line.iloc[-1]
        ends.append((last["x"], last["mean"], labels.get(method, method), mark.text))
    if not ends:
        axis.text(0.5, 0.5, "no draws", transform=axis.transAxes, ha="center", color=MUTED)
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    axis.margins(x=0.02)
    if limits is not None:
        axis.set_ylim(*limits)
    name_ends(axis, ends)


def name_ends(axis: "Axes", ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write (x, y, text, colour) right of the plot at height y, moved apart where they would touch.

    Call it when all data are drawn: it fixes the limits of the y axis.
    """
    low, high = axis.get_ylim()
    axis.set_ylim(low, high)
    height = axis.get_window_extent().height * 72 / axis.figure.dpi  # points
    gap = min(9.5 / height * (high - low), (high - low) / max(len(ends), 1))
    placed = _apart([y for _, y, _, _ in ends], gap, low, high)
    right = axis.get_xlim()[1]
    for (x, y, text, color), at in zip(ends, placed, strict=True):
        axis.annotate(
            text, (x, y), (right, at), xycoords="data", textcoords="data", va="center",
            fontsize=8, color=color, annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": color, "lw": 0.6, "alpha": 0.6, "shrinkA": 1,
                "shrinkB": 3, "relpos": (0, 0.5),
            },
        )  # fmt: skip
    axis.set_xlim(axis.get_xlim()[0], right)


def allowed_ranges(axis: "Axes", table: "pd.DataFrame", xlabel: str) -> None:
    """Draw one row per label: each estimate with its interval, and the range they must lie in.

    Args:
        axis: Where to draw.
        table: Columns label, estimate, low, high, at_least, at_most; rows of one label share its
            line, the first on top. A NaN limit means that this side is open; both NaN, none. An
            estimate outside its range gets an open mark.
        xlabel: Name and unit of the estimate.
    """
    labels = list(dict.fromkeys(table["label"]))
    spans = table.groupby("label", sort=False)[["at_least", "at_most"]].first()
    left = float(np.nanmin(table[["estimate", "low", "at_least"]].to_numpy())) - 0.02
    right = float(np.nanmax(table[["estimate", "high", "at_most"]].to_numpy())) + 0.02
    for position, label in enumerate(labels):
        low, high = (float(value) for value in spans.loc[label])
        if not (np.isnan(low) and np.isnan(high)):
            start, end = np.nan_to_num(low, nan=left), np.nan_to_num(high, nan=right)
            axis.barh(-position, end - start, left=start, height=0.84, color=BAND, lw=0)
            for limit in (low, high):
                axis.plot([limit] * 2, [-position - 0.42, -position + 0.42], color=MUTED, lw=1)
        rows = table.loc[table["label"] == label]
        for index, row in enumerate(rows.to_dict("records")):
            y = -position + 0.6 * ((len(rows) - 1) / 2 - index) / max(len(rows), 1)
            outside = row["estimate"] < row["at_least"] or row["estimate"] > row["at_most"]
            axis.plot([row["low"], row["high"]], [y] * 2, color=INK, lw=1.2)
            fill = "white" if outside else INK
            axis.plot(row["estimate"], y, marker="o", ms=4.5, color=INK, mfc=fill)
    axis.set_xlim(left, right)
    _rows(axis, labels)
    axis.set_xlabel(xlabel)


def predicted_against_realised(
    axis: "Axes",
    predicted: NDArray[np.float64],
    realised: NDArray[np.float64],
    gate: float,
    bins: int = 10,
) -> None:
    """Draw every label as a point, and its mean in equally full bins of the prediction.

    Args:
        axis: Where to draw.
        predicted: f of the chosen cell before learning, shape (n,).
        realised: y, net of cost, shape (n,).
        gate: Threshold of act and worth, drawn on both axes.
        bins: How many bins at most.
    """
    mark = look("rail")
    axis.plot(
        predicted, realised, ls="", marker="o", ms=2.5, color=mark.color, alpha=0.25, mew=0,
        rasterized=len(predicted) > 2000,
    )  # fmt: skip
    full = [part for part in np.array_split(np.argsort(predicted), bins) if len(part)]
    means = np.array([[predicted[part].mean(), realised[part].mean()] for part in full])
    axis.axvline(gate, color=MUTED, lw=0.8, ls=(0, (3, 2)))
    axis.axhline(gate, color=MUTED, lw=0.8, ls=(0, (3, 2)))
    if len(means):
        ends = [float(predicted.min()), float(predicted.max())]
        axis.plot(ends, ends, color=MUTED, lw=0.8)
        axis.plot(means[:, 0], means[:, 1], color=INK, marker="o", ms=4, lw=1.2)
    axis.set_xlabel("predicted gain f")
    axis.locator_params(axis="x", nbins=5)  # more labels would run into each other
    axis.set_ylabel("realised gain y")


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")


def _value(axis: "Axes", text: str, x: float, y: float, color: str) -> None:
    """Write a number above a mark, readable on top of lines."""
    axis.annotate(
        text, (x, y), (0, 4.5), textcoords="offset points", ha="center", fontsize=7.5,
        color=color, zorder=3,
        bbox={"facecolor": "white", "alpha": 0.75, "pad": 0.6, "lw": 0},
    )  # fmt: skip


def _rows(axis: "Axes", labels: Sequence[str]) -> None:
    axis.set_yticks([-index for index in range(len(labels))], labels)
    axis.set_ylim(-len(labels) + 0.45, 0.65)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False, axis="y")
    axis.spines["left"].set_visible(False)


def _apart(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return `heights` moved as little as needed to lie at least `gap` apart within the limits."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    placed = list(heights)
    # Blocks of touching labels, each centred on the mean of what it holds.
    blocks: list[list[int]] = []

    def bottom(block: list[int]) -> float:
        centre = sum(heights[index] for index in block) / len(block)
        start = centre - gap * (len(block) - 1) / 2
        return min(max(start, low), high - gap * (len(block) - 1))

    for index in order:
        blocks.append([index])
        while len(blocks) > 1:
            below, above = blocks[-2], blocks[-1]
            if bottom(above) - (bottom(below) + gap * (len(below) - 1)) >= gap:
                break
            blocks[-2:] = [below + above]
    for block in blocks:
        for offset, index in enumerate(block):
            placed[index] = bottom(block) + gap * offset
    return placed
