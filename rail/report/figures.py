"""Figures inside the page."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rail.errors import DataError
from rail.report.sheets import Links, Source

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the page; `svg` is None when it was not made."""

    name: str
    title: str
    caption: str
    svg: "Markup | None"
    source: Source
    pdf: Source
    table: Source | None


def read_figure(links: Links, name: str, title: str) -> Figure:
    """Read `figures/<name>.svg` and its caption.

    Raises:
        DataError: If the file is not an SVG as matplotlib writes it.
    """
    stem = links.results / "figures" / name
    svg, text = stem.with_suffix(".svg"), stem.with_name(f"{name}.caption.txt")
    caption = text.read_text(encoding="utf-8").strip() if text.is_file() else ""
    table = links.results / "tables" / f"{name}.csv"
    return Figure(
        name,
        title,
        caption,
        inline(svg.read_text(encoding="utf-8"), name, title) if svg.is_file() else None,
        links.source(svg),
        links.source(stem.with_suffix(".pdf")),
        links.source(table) if table.is_file() else None,
    )


def inline(text: str, name: str, title: str) -> "Markup":
    """Return an SVG file as an element: named, scalable, its ids distinct from other figures'.

    Args:
        text: Content of the file.
        name: Prefix of the ids.
        title: What a screen reader says.

    Raises:
        DataError: If there is no svg element, or it carries a script or a link to elsewhere.
    """
    from markupsafe import Markup, escape

    start = text.find("<svg")
    if start < 0 or "</svg>" not in text:
        raise DataError(f"{name}.svg: not an SVG; make the figure again")
    body = re.sub(r"<metadata>.*?</metadata>", "", text[start:], flags=re.DOTALL)
    if re.search(r"<script|<foreignObject|\son\w+\s*=|href=\"(?!#|data:image/)", body):
        raise DataError(f"{name}.svg: carries a script or an outside link; make the figure again")
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    head, _, rest = body.partition(">")
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    label = f'<title id="{name}-title">{escape(title)}</title>'
    return Markup(f'{head} role="img" aria-labelledby="{name}-title">{label}{rest}')
