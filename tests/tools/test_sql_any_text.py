"""Whatever a policy writes is answered; nothing but EnvError may leave the database."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rail.tools.sql import Connections, Database, Limits, Output, Table

_POOL = Connections(Limits(max_operations=200_000))
_WORDS = """
SELECT FROM WHERE t name n AND OR NOT IN LIKE BETWEEN IS NULL CASE WHEN THEN ELSE END AS GROUP BY
ORDER HAVING LIMIT COUNT( SUM( CAST( SIGNED GROUP_CONCAT( SEPARATOR IF( CONCAT( LEFT( REPEAT( LPAD(
INSERT INTO VALUES UPDATE SET DELETE SHOW TABLES COLUMNS DESCRIBE TRUNCATE DIV MOD XOR BINARY
COLLATE UNION WITH RECURSIVE EXTRACT( YEAR DATE_FORMAT( STR_TO_DATE( REGEXP REGEXP_REPLACE( OVER
( ) , . ; * + - / % = < > <=> != || && ! ~ 1 2.5 1e9 'a' "n" `name` [n] '%Y' '(' '\\n' -- # /*
""".split()  # noqa: SIM905 - forty quoted words would be harder to read
_SOUP = st.lists(st.sampled_from(_WORDS), max_size=14).map(" ".join)
_TEXT = st.one_of(st.text(max_size=40), _SOUP)


def _database() -> Database:
    return Database.build(
        [Table("t", ["name", "n"], ["TEXT"] * 2, [["Ann", "4"], ["b", None]])], _POOL
    )


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(_TEXT, min_size=1, max_size=3))
def test_any_text_is_answered_the_same_in_a_fork(statements: list[str]) -> None:
    database = _database()
    copy = database.fork()
    for statement in statements:
        output = database.execute(statement)
        assert isinstance(output, Output)
        assert output == copy.execute(statement)
        assert output.error == output.text.startswith("Error: ")
    again = database.fork()
    assert database.state_hash() == copy.state_hash() == again.state_hash()
    for one in (database, copy, again):
        one.close()
