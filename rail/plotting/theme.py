"""How every figure looks, and how it is saved.

A method keeps its colour, marker and dash in every figure, whatever else is drawn beside it, so
that colour is never the only carrier. Colours are those of Okabe and Ito
(https://jfly.uni-koeln.de/color/), darkened where thin lines or labels on white need it.
"""

import hashlib
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rail.atomic import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#222222"
MUTED = "#6b6b6b"
GRID = "#e4e4e4"
BAND = "#f1ede3"
"""Fill behind a region that means something: a margin, an allowed range."""

WIDTH = 7.2
"""Width of a full figure, in inches: a page's text block."""


@dataclass(frozen=True, slots=True)
class Look:
    """Colour, marker and dash pattern of one method (or of one named series)."""

    color: str
    marker: str
    dash: tuple[float, tuple[float, ...]]

    @property
    def text(self) -> str:
        """The colour of words: three quarters as bright, for small type needs more contrast."""
        return "#" + "".join(f"{int(self.color[i : i + 2], 16) * 3 // 4:02x}" for i in (1, 3, 5))


_SOLID: tuple[float, tuple[float, ...]] = (0, ())
_DASHED: tuple[float, tuple[float, ...]] = (0, (5, 2))
_DOTTED: tuple[float, tuple[float, ...]] = (0, (1.2, 1.4))
_MIXED: tuple[float, tuple[float, ...]] = (0, (6, 1.6, 1.2, 1.6))

_FIXED = {
    "rail": Look("#0072b2", "o", _SOLID),
    "yoked_uniform": Look("#c77700", "s", _DASHED),
    "yoked_permuted": Look("#c04a00", "D", _MIXED),
    "grpo_wide_yoked": Look("#a8508a", "^", _DOTTED),
    "grpo_wide": Look("#007a5a", "v", _SOLID),
    "grpo_16": Look("#4d4d4d", "P", _DASHED),
    "grpo_8": Look("#858585", "X", _DOTTED),
    # Predictors: the controller is RAIL's.
    "controller": Look("#0072b2", "o", _SOLID),
    "pool_mean": Look("#c04a00", "D", _MIXED),
    "constant": Look("#6b6b6b", "s", _DOTTED),
}
_SPARE_COLORS = ("#2a8fc4", "#7a5195", "#8a6d00", "#5c7f2a", "#b3365b", "#3f6d8a", "#6b4e37")
_SPARE_MARKERS = ("<", ">", "p", "h", "*", "d", "8")
_SPARE_DASHES = (_SOLID, _DASHED, _DOTTED, _MIXED)


def look(method: str) -> Look:
    """Return the look of a method: a fixed one, else one that depends on its name alone."""
    if method in _FIXED:
        return _FIXED[method]
    digest = hashlib.blake2b(method.encode(), digest_size=3).digest()
    return Look(
        _SPARE_COLORS[digest[0] % len(_SPARE_COLORS)],
        _SPARE_MARKERS[digest[1] % len(_SPARE_MARKERS)],
        _SPARE_DASHES[digest[2] % len(_SPARE_DASHES)],
    )


def ordered(methods: Iterable[str]) -> list[str]:
    """Return distinct methods in the order of every table and figure: RAIL, twins, GRPO, others."""
    rank = {method: index for index, method in enumerate(_FIXED)}
    return sorted(set(methods), key=lambda method: (rank.get(method, len(rank)), method))


@contextmanager
def style() -> Iterator[None]:
    """Draw inside this block: seaborn's white theme in our sizes, restored afterwards."""
    import matplotlib as mpl
    import seaborn as sns

    parameters: dict[Any, Any] = {
        **sns.axes_style("white"),
        **sns.plotting_context("paper"),
        "font.family": ["DejaVu Sans"],  # ships with matplotlib: same glyphs everywhere
        "font.size": 8.5,
        "axes.titlesize": 9.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 8,
        "axes.labelsize": 8.5,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": 8,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": GRID,
        "grid.linewidth": 0.7,
        "text.color": INK,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "lines.linewidth": 1.6,
        "lines.markersize": 4.5,
        "figure.facecolor": "white",
        "legend.frameon": False,
    }
    with mpl.rc_context(parameters):
        yield


def new_figure(
    rows: int = 1, columns: int = 1, height: float = 3.0, width: float = WIDTH, **subplots: Any
) -> "tuple[Figure, list[Axes]]":
    """Return a figure (inches) and its axes, row by row; call it inside `style`."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06, wspace=0.04, hspace=0.06)
    figure = Figure(figsize=(width, height), layout=layout)
    axes = figure.subplots(rows, columns, squeeze=False, **subplots)
    return figure, [axis for row in axes for axis in row]


def save_figure(figure: "Figure", stem: Path) -> list[Path]:
    """Write `stem`.svg and `stem`.pdf, both atomically; equal figures give equal bytes.

    Returns:
        The two paths.
    """
    import matplotlib as mpl

    written: list[Path] = []
    # Text as outlines in the SVG: no reader has to own the font, and nothing shifts.
    fixed: dict[Any, Any] = {"svg.hashsalt": stem.name, "svg.fonttype": "path", "pdf.fonttype": 42}
    stamps = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with mpl.rc_context(fixed):
        for kind, metadata in stamps.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, metadata=metadata)
            path = stem.with_name(f"{stem.name}.{kind}")
            write_bytes(path, buffer.getvalue())
            written.append(path)
    return written
