"""MySQL's date functions on ISO texts; a text that is no date gives NULL."""

from collections.abc import Callable
from datetime import date, datetime

# MySQL specifier -> strptime / strftime specifier, where they differ.
_SPECIFIERS = {
    "M": "%B", "b": "%b", "c": "%m", "e": "%d", "D": "%d", "i": "%M", "s": "%S", "S": "%S",
    "W": "%A",
    "h": "%I", "I": "%I", "k": "%H", "l": "%I", "r": "%I:%M:%S %p", "T": "%H:%M:%S", "a": "%a",
    "d": "%d", "f": "%f", "H": "%H", "j": "%j", "m": "%m", "p": "%p", "Y": "%Y", "y": "%y",
    "%": "%%",
}  # fmt: skip


def _pattern(mysql: str) -> str:
    out: list[str] = []
    index = 0
    while index < len(mysql):
        if mysql[index] == "%" and index + 1 < len(mysql):
            index += 1
            out.append(_SPECIFIERS.get(mysql[index], mysql[index]))
        else:
            out.append(mysql[index])
        index += 1
    return "".join(out)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def part(index: int) -> Callable[..., int | None]:
    """Return YEAR (0), MONTH (1) or DAY (2) as a function of a date."""

    def pick(value: object) -> int | None:
        moment = _moment(str(value))
        return None if moment is None else (moment.year, moment.month, moment.day)[index]

    return pick


def difference(later: str, earlier: str) -> int | None:
    """Return the days from `earlier` to `later`."""
    a, b = _moment(later), _moment(earlier)
    return None if a is None or b is None else (a.date() - b.date()).days


def parse(text: str, pattern: str) -> str | None:
    """Return STR_TO_DATE(text, pattern) as ISO text, with a time if the pattern has one."""
    try:
        moment = datetime.strptime(text.strip(), _pattern(pattern))
    except ValueError:
        return None
    timed = any(f"%{letter}" in pattern for letter in "HhIkliSsTrf")
    if timed:
        return moment.isoformat(sep=" ")
    return date(moment.year, moment.month, moment.day).isoformat()


def render(text: str, pattern: str) -> str | None:
    """Return DATE_FORMAT(text, pattern)."""
    moment = _moment(text)
    if moment is None:
        return None
    try:
        return moment.strftime(_pattern(pattern))
    except ValueError:
        return None
