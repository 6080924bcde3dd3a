"""CSV files as tables to look at."""

import csv
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rail.errors import DataError

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class Links:
    """Where results are, and how the page names and reaches a file there.

    Attributes:
        results: Result folder.
        page: Folder of the page.
    """

    results: Path
    page: Path

    def source(self, path: Path) -> "Source":
        """Return a file as the page cites it."""
        return Source(path.as_posix(), Path(os.path.relpath(path, self.page)).as_posix())


@dataclass(frozen=True, slots=True)
class Source:
    """A file that numbers come from: its path, and the link relative to the page."""

    path: str
    href: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of the page.

    Attributes:
        rows: Cells in the order of `columns`; empty when the file is missing.
        numeric: Whether a column holds numbers (they are set flush right).
        optional: A missing file is not worth a line.
    """

    name: str
    title: str
    caption: str
    source: Source
    there: bool
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    numeric: tuple[bool, ...] = ()
    optional: bool = False


def read_sheet(
    links: Links,
    name: str,
    title: str,
    caption: str,
    labels: Mapping[str, str] | None = None,
    keep: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    optional: bool = False,
) -> Sheet:
    """Read `tables/<name>.csv`; `x_low` and `x_high` (or low and high) join their estimate.

    Args:
        links: Where to look.
        name: Stem of the CSV file.
        title: Heading.
        caption: What the columns are.
        labels: Words for the values of the column `method`.
        keep: Column -> value that a row must have to be shown.
        drop: Columns that are left out.
        optional: See `Sheet`.
    """
    path = links.results / "tables" / f"{name}.csv"
    source = links.source(path)
    if not path.is_file():
        return Sheet(name, title, caption, source, there=False, optional=optional)
    found = read_csv(path)
    for column, value in (keep or {}).items():
        found = [row for row in found if row.get(column) == value]
    columns = [c for c in (found[0] if found else {}) if c not in drop and not _is_limit(c, found)]
    whole = {c for c in columns if all("." not in row[c] for row in found)}
    rows = [tuple(_cell(row, c, labels or {}, c in whole) for c in columns) for row in found]
    numeric = [all(_is_number(row[c]) for row in found) for c in columns]
    heads = tuple(column.replace("_", " ") for column in columns)
    return Sheet(
        name, title, caption, source, True, heads, tuple(rows), tuple(numeric), optional=optional
    )


def read_pivot(
    links: Links, name: str, title: str, caption: str, by: Sequence[str], keep: Mapping[str, str]
) -> Sheet:
    """Read a tidy `tables/<name>.csv` with one row per `by`, one column per value of `measure`.

    Args:
        links: Where to look.
        name: Stem of the CSV file; columns measure, mean, low, high, n.
        title: Heading.
        caption: What the columns are.
        by: Columns that name a row.
        keep: Column -> value that a row must have to be shown.
    """
    path = links.results / "tables" / f"{name}.csv"
    source = links.source(path)
    if not path.is_file():
        return Sheet(name, title, caption, source, there=False)
    found = [row for row in read_csv(path) if all(row[key] == keep[key] for key in keep)]
    measures = list(dict.fromkeys(row["measure"] for row in found))
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for row in found:
        cells = rows.setdefault(tuple(row[key] for key in by), dict.fromkeys(measures, ""))
        cells[row["measure"]] = estimate(row["mean"], row["low"], row["high"])
        cells["n"] = row["n"]
    heads = tuple(column.replace("_", " ") for column in (*by, *measures, "n"))
    numeric = (False,) * len(by) + (True,) * (len(measures) + 1)
    body = tuple(
        (*(key.replace("_", " ") for key in keys), *cells.values()) for keys, cells in rows.items()
    )
    return Sheet(name, title, caption, source, True, heads, body, numeric)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file with a header.

    Raises:
        DataError: If a row has more or fewer cells than the header.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise DataError(f"{path}: line {number} does not match the header; run its rule again")
    return rows


def number(value: str | float | None, digits: int = 3, sign: bool = False) -> str:
    """Return a number for reading: fixed digits, a true minus, a dash for none."""
    if value is None or value == "" or math.isnan(float(value)):
        return "\N{EN DASH}"
    return f"{float(value):{'+' if sign else ''}.{digits}f}".replace("-", MINUS)


def interval(low: str | float | None, high: str | float | None, sign: bool = False) -> str:
    """Return an interval for reading, empty when there is none."""
    ends = [number(end, sign=sign) for end in (low, high)]
    return "" if "\N{EN DASH}" in ends else f"[{ends[0]}, {ends[1]}]"


def estimate(
    value: str | float | None,
    low: str | float | None = None,
    high: str | float | None = None,
    sign: bool = False,
) -> str:
    """Return an estimate, and its interval on a second line where there is one."""
    return f"{number(value, sign=sign)}\n{interval(low, high, sign)}".rstrip()


def _limits(column: str) -> tuple[str, str]:
    return ("low", "high") if column == "mean" else (f"{column}_low", f"{column}_high")


def _is_limit(column: str, rows: list[dict[str, str]]) -> bool:
    return any(column in _limits(other) for other in rows[0])


def _cell(row: Mapping[str, str], column: str, labels: Mapping[str, str], whole: bool) -> str:
    text = row[column]
    if column == "method":
        return labels.get(text, text)
    if not _is_number(text):
        return text
    low, high = _limits(column)
    signed = column.startswith("minus")
    if whole:
        return text.replace("-", MINUS)
    return estimate(text, row.get(low), row.get(high), signed)


def _is_number(text: str) -> bool:
    if text == "":
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True
