"""MySQL statements as sqlite statements of the same meaning.

A lenient Pratt parser: it understands expressions well enough to know which operands are numbers,
and copies everything else, so that sqlite says what is wrong with a broken statement. It changes:

- a text compared with a number is cast (leading number, else 0), as MySQL does; two texts compare
  under the collation `mysql`;
- `/` divides as floats, `DIV`, `MOD`, `XOR`, `&&`, `||` (a logical or), `<=>`, `RLIKE`, `BINARY`;
- `"..."` is a string, except where a string would make no sense in MySQL (a table, a selected or
  sorted item, the left side of a comparison, an aggregate's argument): there it is handed to sqlite
  as `"..."`, which takes it as a name if there is one. Upstream's own gold statements rely on that;
- `4.50` stored into a text column stays `4.50`;
- SHOW, DESCRIBE, information_schema, TRUNCATE, INSERT IGNORE, CAST types, GROUP_CONCAT's ORDER BY.

A full transpiler (sqlglot 30.30) was measured on the 221 open upstream statements: 750 us a
statement against 110 us here, 23 of them refused, comparison casts, SHOW and DESCRIBE left to do.
"""

from dataclasses import dataclass
from functools import lru_cache

from rail.tools.sql_expressions import Expr, stored
from rail.tools.sql_names import CLAUSES
from rail.tools.sql_parser import ExpressionParser
from rail.tools.sql_show import special
from rail.tools.sql_tokens import SqlError, identifier, tokenize


@dataclass(frozen=True, slots=True)
class Statement:
    """A translated statement.

    Attributes:
        sql: What sqlite runs; empty for a statement without effect (COMMIT, USE, SET).
        table: A table that must exist, or the statement is an error; None otherwise.
    """

    sql: str
    table: str | None = None


@lru_cache(maxsize=1 << 16)
def translate(sql: str) -> Statement:
    """Translate one MySQL statement.

    Raises:
        SqlError: If a quote is not closed, a second statement follows, the statement is empty or
            nested too deeply, or its text is not valid Unicode.
    """
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise SqlError("the statement is not valid Unicode text") from None
    tokens = tokenize(sql)
    if not tokens:
        raise SqlError("the statement is empty")
    found = special(tokens)
    if found is not None:
        return Statement(*found)
    parser = _Parser(tokens)
    text = parser.sequence("expr")[0]
    while parser.index < len(tokens):  # a bracket too many: let sqlite say so
        text += " " + parser.take().text + " " + parser.sequence("expr")[0]
    return Statement(text.strip())


class _Parser(ExpressionParser):
    """Clauses and lists."""

    def sequence(self, context: str) -> tuple[str, list[Expr]]:
        """Copy up to a closing bracket or the end; return text and expressions before a FROM."""
        out: list[str] = []
        found: list[Expr] = []
        counting = True
        while True:
            token = self.peek()
            if token.kind == "end" or (token.kind == "op" and token.text == ")"):
                return " ".join(out), found
            if token.text == "," and token.kind == "op":
                out.append(self.take().text)
            elif token.kind == "word" and self.is_raw(token):
                self.index += 1
                word = token.value
                context = CLAUSES.get(word, context)
                counting = counting and word not in ("FROM", "UNION", "AS")
                if word == "AS" and self.peek().kind in ("string", "double"):
                    out += ["AS", identifier(self.take().value)]
                elif word == "INSERT" and self.at("IGNORE"):
                    out.append("INSERT OR IGNORE")
                else:
                    out.append(token.text)
            elif context == "set":
                start = self.index
                target = self._assignment()
                # Nothing that can be assigned to: pass the token on, sqlite names the mistake.
                out.append(target if self.index > start else self.take().text)
            else:
                start = self.index
                expr = self.expression(0, context)
                if self.index == start:  # nothing that can start an expression
                    out.append(self.take().text)
                    continue
                out.append(self._item(expr, context))
                if counting:
                    found.append(expr)

    def _item(self, expr: Expr, context: str) -> str:
        """An item that stands alone in a list."""
        if context in ("select", "table"):
            return expr.as_name()
        return stored(expr) if context == "value" else expr.as_value()

    def _assignment(self) -> str:
        target = self.prefix("arg").as_name()
        if not self.at("="):
            return target
        return f"{target} = {stored(self.expression(0, 'arg'))}"
