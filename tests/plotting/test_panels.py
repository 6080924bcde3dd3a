from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Annotation, Text

from rail.plotting import panels, theme


@pytest.fixture
def axis() -> Iterator[Axes]:
    with theme.style():
        _, (axis,) = theme.new_figure(height=3)
        yield axis


def written(axis: Axes) -> list[str]:
    return [text.get_text() for text in axis.texts]


def test_seed_dots_draws_each_seed_the_mean_and_the_interval(axis: Axes) -> None:
    points = pd.DataFrame({"method": ["rail", "rail", "grpo_8"], "value": [0.5, 0.3, 0.2]})
    intervals = pd.DataFrame(
        {"method": ["grpo_8", "rail"], "mean": [0.2, 0.4], "low": [0.1, 0.35], "high": [0.3, 0.45]}
    )
    panels.seed_dots(axis, points, intervals, {"rail": "RAIL"}, "success")
    seeds, interval, mean = axis.lines[:3]
    assert list(np.asarray(seeds.get_xdata())) == [0.3, 0.5]
    assert list(np.asarray(interval.get_xdata())) == [0.35, 0.45]
    assert list(np.asarray(mean.get_xdata())) == [0.4]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["RAIL", "grpo_8"]
    assert written(axis) == ["0.400", "0.200"]


def test_forest_shades_the_margin_and_signs_the_estimate(axis: Axes) -> None:
    table = pd.DataFrame({"label": ["P1"], "estimate": [-0.012], "low": [-0.03], "high": [0.006]})
    panels.forest(axis, table, 0.03, "difference")
    (shade,) = axis.patches
    box = shade.get_window_extent().transformed(axis.transData.inverted())
    assert (box.x0, box.x1) == pytest.approx((-0.03, 0.03))
    assert written(axis) == ["\N{MINUS SIGN}0.012"]
    assert "0.03" in axis.get_xlabel()


def test_curves_name_every_line_at_its_end_without_overlap(axis: Axes) -> None:
    methods = ["rail", "grpo_8", "grpo_16"]
    table = pd.DataFrame(
        [(m, x, 0.3 + x / 1000, 0.2, 0.5) for m in methods for x in (0, 100)],
        columns=["method", "x", "mean", "low", "high"],
    )
    panels.curves(axis, table, {"rail": "RAIL"}, "rollouts", "success")
    axis.figure.draw_without_rendering()  # pyright: ignore[reportAttributeAccessIssue]
    notes = [text for text in axis.texts if isinstance(text, Annotation)]
    assert sorted(note.get_text() for note in notes) == ["RAIL", "grpo_16", "grpo_8"]
    # Text.get_window_extent: the label alone, without its leader line.
    boxes = sorted((Text.get_window_extent(note) for note in notes), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
    assert all(box.x0 >= axis.get_window_extent().x1 - 1 for box in boxes)


def test_curve_intervals_lie_inside_the_axis(axis: Axes) -> None:
    table = pd.DataFrame(
        {
            "method": ["rail"] * 2,
            "x": [0, 9],
            "mean": [0.5, 0.5],
            "low": [0.1, 0.4],
            "high": [0.6, 0.9],
        }
    )
    panels.curves(axis, table, {}, "rollouts", "success")
    low, high = axis.get_ylim()
    assert low < 0.1
    assert high > 0.9


@pytest.mark.parametrize(
    ("heights", "expected"),
    [
        ([0.2, 0.8], [0.2, 0.8]),  # far apart: untouched
        ([0.5, 0.5], [0.45, 0.55]),  # equal: moved apart about their mean
        ([0.0, 0.02], [0.0, 0.1]),  # kept above the lower limit
        ([1.0, 0.99], [1.0, 0.9]),  # kept below the upper limit, order as the lines
        ([0.5, 0.5, 0.62], [0.44, 0.54, 0.64]),  # mean .54 of a block of three
    ],
)
def test_labels_move_as_little_as_needed(heights: list[float], expected: list[float]) -> None:
    assert panels._apart(heights, 0.1, 0.0, 1.0) == pytest.approx(expected)


def test_estimate_outside_its_range_has_an_open_mark(axis: Axes) -> None:
    nan = float("nan")
    table = pd.DataFrame(
        [
            ("mean", 0.4, 0.38, 0.42, 0.3, 0.45),
            ("mean", 0.5, 0.48, 0.52, 0.3, 0.45),  # above the range
            ("fail", 0.1, 0.05, 0.15, 0.2, nan),  # below an open range
            ("free", 0.9, nan, nan, nan, nan),  # nothing asked
        ],
        columns=["label", "estimate", "low", "high", "at_least", "at_most"],
    )
    panels.allowed_ranges(axis, table, "share")
    marks = [line for line in axis.lines if line.get_marker() == "o"]
    fills = [line.get_markerfacecolor() for line in marks]
    assert fills == [theme.INK, "white", "white", theme.INK]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["mean", "fail", "free"]
    first, second = (float(np.asarray(mark.get_ydata())[0]) for mark in marks[:2])
    assert -0.5 < second < first < 0.5


def test_calibration_line_is_the_mean_label_of_equally_full_bins(axis: Axes) -> None:
    predicted = np.array([0.4, 0.1, 0.3, 0.2])
    realised = np.array([0.5, 0.0, 0.3, 0.1])
    panels.predicted_against_realised(axis, predicted, realised, 0.02, bins=2)
    line = axis.lines[-1]
    assert list(np.asarray(line.get_xdata())) == pytest.approx([0.15, 0.35])
    assert list(np.asarray(line.get_ydata())) == pytest.approx([0.05, 0.4])
