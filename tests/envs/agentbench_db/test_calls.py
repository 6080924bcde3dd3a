import json

import pytest

from rail.envs.agentbench_db.calls import EXECUTE_SQL, PRESETS, SQL_QUERY, CallError, Tools

_HARD = "SELECT \"a\" FROM `t` WHERE b = 'x\\ny' -- é\n"


@pytest.mark.parametrize("tools", PRESETS.values())
def test_what_is_written_is_read(tools: Tools) -> None:
    assert tools.parse("first I look. " + tools.call_query(_HARD)) == (False, _HARD)
    wanted = [_HARD] if tools.many else _HARD
    assert tools.parse(tools.call_answer(_HARD)) == (True, wanted)


def test_several_answers() -> None:
    assert SQL_QUERY.parse(SQL_QUERY.call_answer(["a", "b"])) == (True, '["a", "b"]')
    assert EXECUTE_SQL.parse(EXECUTE_SQL.call_answer(["a", "b"])) == (True, ["a", "b"])


@pytest.mark.parametrize("tools", PRESETS.values())
def test_pieces_enclose_every_call(tools: Tools) -> None:
    query, answer, *closing = tools.pieces()
    assert tools.call_query("x") == f"{query}x{closing[0]}"
    assert tools.call_answer("x") == f"{answer}x{closing[-1]}"
    assert query == f'<tool_call>{{"name":"{tools.query}","arguments":{{"query":"'
    assert json.loads(tools.call_query("x")[11:-12]) == {
        "name": tools.query, "arguments": {"query": "x"},
    }  # fmt: skip


def test_the_first_of_several_calls_counts() -> None:
    text = SQL_QUERY.call_query("SELECT 1") + SQL_QUERY.call_answer("2")
    assert SQL_QUERY.parse(text) == (False, "SELECT 1")


def test_a_raw_line_break_may_stand_in_a_query() -> None:
    call = SQL_QUERY.call_query("SELECT 1\nFROM t").replace("\\n", "\n")
    assert SQL_QUERY.parse(call) == (False, "SELECT 1\nFROM t")


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("SELECT 1", "no tool call found"),
        ("<tool_call>{}", "no tool call found"),
        ("<tool_call>{'a'}</tool_call>", "not valid JSON"),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "not valid JSON"),
        ("<tool_call>[]</tool_call>", "unknown tool None"),
        ('<tool_call>{"name":"bash"}</tool_call>', "unknown tool 'bash'; the tools are sql_query"),
        ('<tool_call>{"name":["sql_query"]}</tool_call>', "unknown tool"),
        ('<tool_call>{"name":"sql_query"}</tool_call>', "needs the argument 'query'"),
        ('<tool_call>{"name":"sql_query","arguments":{"sql":"x"}}</tool_call>',
         "needs the argument 'query'"),
        ('<tool_call>{"name":"sql_query","arguments":{"query":5}}</tool_call>', "needs a text"),
        ('<tool_call>{"name":"answer_action","arguments":{"answer":{}}}</tool_call>',
         "needs a text or a list"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_call_is_said(action: str, error: str) -> None:
    with pytest.raises(CallError, match=error):
        SQL_QUERY.parse(action)
