"""Expressions of a MySQL statement, parsed leniently and rendered for sqlite."""

import re
from abc import ABC, abstractmethod

from rail.tools.sql_expressions import Expr, arithmetic, compare, number
from rail.tools.sql_names import (
    AGGREGATES,
    CLOCK_FUNCTIONS,
    CLOCK_WORDS,
    COMPARISONS,
    FIXED_NOW,
    NUMERIC_FUNCTIONS,
    PRECEDENCE,
    RAW_WORDS,
    RENAMED,
    TEXT_FUNCTIONS,
    cast_type,
)
from rail.tools.sql_show import INFORMATION_SCHEMA
from rail.tools.sql_tokens import SqlError, Token, identifier, literal

_MAX_DEPTH = 60  # nested brackets and prefix operators; each costs several Python frames
_END = Token("end", "", "")


class ExpressionParser(ABC):
    """A Pratt parser over a statement's tokens; lists and clauses are `sequence`'s."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = [*tokens, _END, _END, _END]  # `peek` looks at most two ahead of the end
        self.index = 0
        self.depth = 0

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, or one or two further."""
        return self.tokens[self.index + ahead]

    def take(self) -> Token:
        """Return the next token and pass it."""
        token = self.tokens[self.index]
        self.index += token.kind != "end"
        return token

    def at(self, value: str) -> bool:
        """Pass the next token and return True if it is the word or operator `value`."""
        token = self.tokens[self.index]
        if token.value == value and (token.kind == "word" or token.kind == "op"):
            self.index += 1
            return True
        return False

    @abstractmethod
    def sequence(self, context: str) -> tuple[str, list[Expr]]:
        """Copy up to a closing bracket or the end; return text and the expressions met."""

    def is_raw(self, token: Token) -> bool:
        """Return whether the next token is a word that never starts an expression."""
        if token.value not in RAW_WORDS:
            return False
        return not (token.value in RENAMED and self.peek(1).text == "(")

    def expression(self, floor: int, context: str = "arg") -> Expr:
        """Parse operators that bind tighter than or as tight as `floor`."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise SqlError("the statement is nested too deeply")
        start = self.index
        left = self.prefix(context)
        while self.index > start:
            token = self.peek()
            word = token.value
            if token.kind not in ("word", "op"):
                break
            if word == "NOT":
                word = self.peek(1).value
                if word not in ("IN", "LIKE", "BETWEEN", "REGEXP", "RLIKE"):
                    break
            precedence = PRECEDENCE.get(word)
            if precedence is None or precedence < floor:
                break
            left = self._infix(left, word, precedence)
        self.depth -= 1
        return left

    def _infix(self, left: Expr, word: str, precedence: int) -> Expr:
        negated = "NOT " if self.at("NOT") else ""
        self.index += 1
        if word == "COLLATE":
            binary = self.take().value.upper().endswith("BIN")
            return Expr(f"{left.as_name()} COLLATE {'BINARY' if binary else 'mysql'}", "row")
        if word == "IN":
            return self._in(left, negated)
        if word == "BETWEEN":
            low = self.expression(precedence + 1)
            middle = "AND" if self.at("AND") else ""
            high = self.expression(precedence + 1)
            numeric = "num" in (low.kind, high.kind)
            first = number(left) if numeric else left.collated()
            ends = [
                number(e) if numeric or left.kind == "num" else e.as_value() for e in (low, high)
            ]
            return Expr(f"{first} {negated}BETWEEN {ends[0]} {middle} {ends[1]}", "num")
        if word == "IS":
            negated = " NOT" if self.at("NOT") else ""
            return Expr(
                f"{left.as_name()} IS{negated} {self.expression(precedence + 1).text}", "num"
            )
        if word in ("LIKE", "REGEXP", "RLIKE"):
            text = f"{left.as_name()} {negated}{'LIKE' if word == 'LIKE' else 'REGEXP'} "
            text += self.expression(precedence + 1).as_value()
            if self.at("ESCAPE"):
                text += f" ESCAPE {self.prefix('arg').as_value()}"
            return Expr(text, "num")
        right = self.expression(precedence + 1)
        if word in COMPARISONS:
            return compare(left, COMPARISONS[word], right)
        return arithmetic(left, word, right)

    def _in(self, left: Expr, negated: str) -> Expr:
        if self.peek().text != "(":
            return Expr(f"{left.collated()} {negated}IN", "num")
        group, found = self._group("arg")
        kinds = {e.kind for e in found}
        if left.kind == "row":
            first = left.text
        elif "num" in kinds and not kinds & {"text", "double"}:
            first = number(left)
        else:
            first = left.collated()
        return Expr(f"{first} {negated}IN {group}", "num")

    def _group(self, context: str) -> tuple[str, list[Expr]]:
        self.take()
        text, found = self.sequence(context)
        close = ")" if self.at(")") else ""
        return f"({text}{close}", found

    def prefix(self, context: str) -> Expr:
        """Parse a literal, name, call, bracket or prefix operator; empty text if none is there."""
        token = self.peek()
        kind, value = token.kind, token.value
        if kind == "word":
            return self._word(token, context)
        if kind == "number":
            self.index += 1
            return Expr(token.text, "num")
        if kind == "string":
            self.index += 1
            return Expr(literal(value), "text")
        if kind == "double" and self.peek(1).text != ".":
            self.index += 1
            return Expr(value, "double")
        if kind in ("name", "double"):
            return self._dotted(context)
        if value == "(":
            select = self.peek(1).value in ("SELECT", "VALUES", "WITH")
            group, found = self._group(context)
            if len(found) == 1:
                return Expr(group, found[0].kind if found[0].kind in ("num", "text") else "name")
            return Expr(group, "name" if select else "row")
        if value in "-+~!" and kind == "op":
            self.index += 1
            operand = self.expression(PRECEDENCE["UNARY"])
            return Expr(f"{'NOT' if value == '!' else value} {operand.as_name()}", "num")
        if value == "*":
            self.index += 1
            return Expr("*", "row")
        return Expr("", "name")

    def _word(self, token: Token, context: str) -> Expr:
        word = token.value
        if word == "NOT":
            self.index += 1
            return Expr(f"NOT {self.expression(PRECEDENCE['NOT']).as_name()}", "num")
        if word == "CASE":
            return self._case()
        if word == "BINARY" and self.peek(1).kind in ("word", "name", "string"):
            self.index += 1
            return Expr(f"{self.prefix(context).text} COLLATE BINARY", "row")
        if self.is_raw(token):
            return Expr("", "name")
        if self.peek(1).text == "(" and context != "table":
            return self._call(token)
        if word in ("NULL", "TRUE", "FALSE"):
            self.index += 1
            return Expr(word, "null" if word == "NULL" else "num")
        if word in CLOCK_WORDS and context != "table":
            self.index += 1
            return Expr(f"{RENAMED[word]}()", "text")
        return self._dotted(context)

    def _dotted(self, context: str) -> Expr:
        token = self.take()
        parts = [token.text if token.kind == "word" else identifier(token.value)]
        schema = token.value.upper() == "INFORMATION_SCHEMA"
        while self.peek().text == "." and self.peek(1).kind in ("word", "name", "double", "op"):
            self.index += 1
            last = self.take()
            if schema and last.value.upper() in INFORMATION_SCHEMA:
                return Expr(INFORMATION_SCHEMA[last.value.upper()], "row")
            parts.append(last.text if last.kind in ("word", "op") else identifier(last.value))
        return Expr(".".join(parts), "name")

    def _case(self) -> Expr:
        self.index += 1
        out = ["CASE"]
        kinds: set[str] = set()
        result = False
        while True:
            token = self.peek()
            if token.kind == "word" and token.value in ("WHEN", "THEN", "ELSE", "END"):
                self.index += 1
                out.append(token.value)
                result = token.value in ("THEN", "ELSE")
                if token.value == "END":
                    return Expr(" ".join(out), "num" if kinds == {"num"} else "name")
                continue
            expr = self.expression(0)
            if not expr.text:
                return Expr(" ".join(out), "name")
            out.append(expr.as_value())
            if result:
                kinds.add(expr.kind)

    def _call(self, token: Token) -> Expr:
        self.index += 1
        word = token.value
        if word in ("CAST", "CONVERT"):
            return self._cast()
        if word == "GROUP_CONCAT":
            return self._group_concat()
        if word == "EXTRACT" and self.peek(2).value == "FROM":
            unit = self.peek(1).text.lower()
            self.index += 3
            text = self.expression(0).as_value()
            return Expr(f"{unit}({text}{')' if self.at(')') else ''}", "num")
        group, found = self._group("select" if word in AGGREGATES else "arg")
        if word in CLOCK_FUNCTIONS:
            group = (
                f"('{FIXED_NOW}')"
                if group == "()"
                else re.sub(r"'now'", f"'{FIXED_NOW}'", group, flags=re.IGNORECASE)
            )
        kind = "num" if word in NUMERIC_FUNCTIONS else "name"
        if word in ("MIN", "MAX", "COALESCE", "IFNULL", "NULLIF", "GREATEST", "LEAST"):
            kind = "num" if found and all(e.kind == "num" for e in found) else "name"
        name = RENAMED.get(word, token.text)
        collate = " COLLATE mysql" if word in TEXT_FUNCTIONS else ""
        text = f"{name}{group}{collate}"
        while self.peek().value in ("OVER", "FILTER") and self.peek().kind == "word":
            text += f" {self.take().text} "
            text += self._group("arg")[0] if self.peek().text == "(" else self.take().text
        return Expr(text, "text" if collate else kind)

    def _cast(self) -> Expr:
        self.index += 1
        value = self.expression(0).as_name()
        if not (self.at("AS") or self.at(",")):
            return Expr(f"CAST({value}", "name")
        words: list[str] = []
        scale = ""
        while self.peek().kind != "end" and self.peek().text != ")":
            token = self.take()
            if token.text == "(":
                while self.peek().kind != "end" and not self.at(")"):
                    scale = self.take().text  # the last number: DECIMAL(10, 2) has scale 2
                continue
            words.append(token.value)
        close = ")" if self.at(")") else ""
        return Expr(*cast_type(value, " ".join(words), scale, close))

    def _group_concat(self) -> Expr:
        self.index += 1
        distinct = "1" if self.at("DISTINCT") else "0"
        value = self.expression(0).as_name()
        key, ordered, descending, separator = value, "0", "0", "','"
        if self.at("ORDER") and self.at("BY"):
            key, ordered = self.expression(0).as_name(), "1"
            descending = "1" if self.at("DESC") else "0"
            self.at("ASC")
        elif distinct == "0" and self.peek().text != ")" and self.peek().value != "SEPARATOR":
            self.at(",")  # sqlite's own form: group_concat(x, separator)
            separator = self.expression(0).as_value()
        if self.at("SEPARATOR"):
            separator = self.expression(0).as_value()
        close = ")" if self.at(")") else ""
        flags = f"{distinct}, {ordered}, {descending}"
        return Expr(f"mysql_group_concat({value}, {separator}, {key}, {flags}{close}", "text")
