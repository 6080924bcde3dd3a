import hashlib
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from rail.plotting import theme

DRAW = """
from pathlib import Path
import sys
from rail.plotting import theme
with theme.style():
    figure, (left, right) = theme.new_figure(1, 2, height=2)
    left.plot([0, 1], [0, 1], color=theme.look('rail').color, label='RAIL')
    right.set_title('gain')
    theme.save_figure(figure, Path(sys.argv[1]))
"""


def luminance(color: str) -> float:
    """Relative luminance of WCAG 2.1."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_saved_figures_have_equal_bytes_in_different_processes(tmp_path: Path) -> None:
    digests = []
    for seed in ("1", "2"):
        stem = tmp_path / seed / "figure"
        subprocess.run(
            [sys.executable, "-c", DRAW, stem],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            check=True,
        )
        files = sorted(stem.parent.iterdir())
        assert [file.name for file in files] == ["figure.pdf", "figure.svg"]
        digests.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
    assert digests[0] == digests[1]


def test_a_method_looks_the_same_whatever_else_is_drawn() -> None:
    assert theme.look("rail") == theme.look("rail")
    assert theme.look("not_listed_anywhere") == theme.look("not_listed_anywhere")
    listed = theme.ordered(set(theme._FIXED) - {"controller", "pool_mean", "constant"})
    assert len({theme.look(method).color for method in listed}) == len(listed)
    assert len({theme.look(method).marker for method in listed}) == len(listed)


def contrast_on_white(color: str) -> float:
    return 1.05 / (luminance(color) + 0.05)


def test_every_colour_is_readable_on_white() -> None:
    spare = [theme.Look(color, "o", (0, ())) for color in theme._SPARE_COLORS]
    for mark in [*theme._FIXED.values(), *spare]:
        # Limits of WCAG 2.1: 3:1 for graphical objects, 4.5:1 for text.
        assert contrast_on_white(mark.color) >= 3, mark.color
        assert contrast_on_white(mark.text) >= 4.5, mark.text
    assert min(map(contrast_on_white, [theme.INK, theme.MUTED])) >= 4.5


def test_order_is_rail_twins_grpo_then_the_rest_by_name() -> None:
    methods = ["zeta", "grpo_8", "yoked_permuted", "rail", "alpha", "rail"]
    assert theme.ordered(methods) == ["rail", "yoked_permuted", "grpo_8", "alpha", "zeta"]


def test_style_is_gone_after_the_block() -> None:
    before = dict(mpl.rcParams)
    with theme.style():
        assert mpl.rcParams["axes.spines.top"] is False
    assert dict(mpl.rcParams) == before


def test_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with theme.style():
        figure, _ = theme.new_figure()
        with pytest.raises(OSError, match="file"):
            theme.save_figure(figure, tmp_path / "file" / "figure")
