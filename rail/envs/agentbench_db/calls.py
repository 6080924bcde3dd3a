"""Tool calls: how they are written, and what is wrong with one that cannot be read."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


class CallError(ValueError):
    """An action without a usable tool call; the text says what was expected."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Names of the two tools and of their arguments.

    Attributes:
        many: The answer is a JSON list of texts instead of one text.
    """

    query: str = "sql_query"
    query_argument: str = "query"
    answer: str = "answer_action"
    answer_argument: str = "answer"
    many: bool = False

    def pieces(self) -> tuple[str, ...]:
        """Return the texts around a query and around an answer, for the tokenizer."""
        query, answer = (self._prefix(*pair) for pair in self._pairs())
        closing = ('"}}</tool_call>', '"]}}</tool_call>') if self.many else ('"}}</tool_call>',)
        return (query, answer, *closing)

    def call_query(self, sql: str) -> str:
        """Return the action that runs `sql`."""
        return (
            self._prefix(self.query, self.query_argument, False) + _inside(sql) + '"}}</tool_call>'
        )

    def call_answer(self, answer: str | Sequence[str]) -> str:
        """Return the action that answers; several become the text of a list unless `many`."""
        prefix = self._prefix(self.answer, self.answer_argument, self.many)
        if self.many:
            items = [answer] if isinstance(answer, str) else list(answer)
            return prefix + '","'.join(map(_inside, items)) + '"]}}</tool_call>'
        text = answer if isinstance(answer, str) else json.dumps(list(answer), ensure_ascii=False)
        return prefix + _inside(text) + '"}}</tool_call>'

    def parse(self, action: str) -> tuple[bool, Any]:
        """Return (is it an answer, the query or the answer) of the first call in `action`.

        Raises:
            CallError: If there is none, or it cannot be read.
        """
        match = _CALL.search(action)
        if match is None:
            raise CallError(f"no tool call found; write {self._example()}")
        try:
            # strict=False lets a raw line break stand inside a query.
            call = json.loads(match.group(1), strict=False)
        except (ValueError, RecursionError):
            raise CallError(f"the tool call is not valid JSON; write {self._example()}") from None
        name = call.get("name") if isinstance(call, dict) else None
        arguments = call.get("arguments") if isinstance(call, dict) else None
        if name not in (self.query, self.answer):
            raise CallError(
                f"unknown tool {_short(name)}; the tools are {self.query} and {self.answer}"
            )
        is_answer = name == self.answer
        wanted = self.answer_argument if is_answer else self.query_argument
        if not isinstance(arguments, dict) or wanted not in arguments:
            raise CallError(f"{name} needs the argument {wanted!r}; write {self._example()}")
        value = arguments[wanted]
        if not is_answer and not isinstance(value, str):
            raise CallError(f"{name} needs a text as {wanted!r}, got {_short(value)}")
        if is_answer and isinstance(value, dict):
            raise CallError(f"{name} needs a text or a list as {wanted!r}, got an object")
        return is_answer, value

    def _pairs(self) -> tuple[tuple[str, str, bool], tuple[str, str, bool]]:
        return (self.query, self.query_argument, False), (
            self.answer,
            self.answer_argument,
            self.many,
        )

    def _prefix(self, name: str, argument: str, many: bool) -> str:
        bracket = '["' if many else '"'
        return f'<tool_call>{{"name":"{name}","arguments":{{"{argument}":{bracket}'

    def _example(self) -> str:
        return self.call_query("SELECT ...") + " or " + self.call_answer("...")


SQL_QUERY = Tools()
EXECUTE_SQL = Tools("execute_sql", "query", "commit_final_answer", "answers", many=True)
PRESETS = {"sql_query": SQL_QUERY, "execute_sql": EXECUTE_SQL}


def _inside(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
