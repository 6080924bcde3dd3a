"""Expressions of the dialect: rendered text and what is known of the value."""

import re
from dataclasses import dataclass

from rail.tools.sql_tokens import lenient, literal

_DECIMAL = re.compile(r"(- )?(\d*)(\.\d+)")


@dataclass(slots=True)
class Expr:
    """A parsed expression; kind: num | text | name | row | null | double (body in `text`)."""

    text: str
    kind: str

    def as_name(self) -> str:
        """Render; a double-quoted text may be a name."""
        return lenient(self.text) if self.kind == "double" else self.text

    def as_value(self) -> str:
        """Render; a double-quoted text is a string."""
        return literal(self.text) if self.kind == "double" else self.text

    def collated(self) -> str:
        """Render as the left side of a comparison of texts."""
        return f"{self.as_name()} COLLATE mysql" if self.kind in _TEXTUAL else self.as_name()


_TEXTUAL = ("text", "name", "double")


def number(expr: Expr) -> str:
    """The leading number of a text, 0 if there is none; numbers and NULL stay."""
    if expr.kind in ("num", "null"):
        return expr.text
    return f"CAST({expr.as_name()} AS NUMERIC)"


def compare(left: Expr, operator: str, right: Expr) -> Expr:
    """Return a comparison: of numbers if either side is one, else of texts under the collation."""
    if "num" in (left.kind, right.kind) and "row" not in (left.kind, right.kind):
        value = (
            right.as_value()
            if right.kind in ("num", "null")
            else number(Expr(right.as_value(), "text"))
        )
        return Expr(f"{number(left)} {operator} {value}", "num")
    if right.kind in ("row", "null"):
        return Expr(f"{left.as_name()} {operator} {right.text}", "num")
    return Expr(f"{left.collated()} {operator} {right.as_value()}", "num")


def arithmetic(left: Expr, word: str, right: Expr) -> Expr:
    """Return an arithmetic or logical operation under MySQL's rules."""
    a, b = left.as_name(), right.as_name()
    if word == "/":
        return Expr(f"(1.0 * ({a}) / ({b}))", "num")
    if word == "DIV":
        return Expr(f"CAST(1.0 * ({a}) / ({b}) AS INTEGER)", "num")
    if word in ("%", "MOD"):
        return Expr(f"mod({a}, {b})", "num")
    if word == "XOR":
        return Expr(f"((({a}) <> 0) <> (({b}) <> 0))", "num")
    operator = {"||": "OR", "&&": "AND"}.get(word, word)
    return Expr(f"{a} {operator} {b}", "num")


def stored(expr: Expr) -> str:
    """A value that INSERT or UPDATE stores: a decimal literal keeps its digits in a text column."""
    match = _DECIMAL.fullmatch(expr.text) if expr.kind == "num" else None
    if match is None:
        return expr.as_value()
    sign, whole, fraction = match.groups()
    return f"'{'-' if sign else ''}{whole.lstrip('0') or '0'}{fraction}'"
