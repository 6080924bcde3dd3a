"""The database around the dialect: forks, hashes, limits, failures."""

import hashlib
from pathlib import Path

import pytest

from rail.envs.agentbench_db.answers import score, score_upstream
from rail.errors import EnvError
from rail.tools.sql import Connections, Database, Limits, Table

_POOL = Connections()


def _table(rows: list[list[str | None]], columns: int = 2, name: str = "t") -> Database:
    names = ["a", "b", "c"][:columns]
    return Database.build([Table(name, names, ["TEXT"] * columns, rows)], _POOL)


def test_a_fork_is_independent_in_both_directions() -> None:
    parent = _table([["x", "1"]])
    parent.rows("UPDATE t SET b = '2'")
    child = parent.fork()
    child.rows("UPDATE t SET b = '3'")
    parent.rows("INSERT INTO t VALUES ('y', '9')")
    assert parent.contents("t")[1] == [("x", "2"), ("y", "9")]
    assert child.contents("t")[1] == [("x", "3")]
    parent.close()
    assert child.contents("t")[1] == [("x", "3")]


def test_a_fork_of_an_untouched_database_copies_nothing() -> None:
    parent = _table([["x", "1"]])
    parent.rows("SELECT * FROM t")
    assert parent.fork().snapshot() is parent.snapshot()


def test_every_kind_of_write_reaches_the_fork() -> None:
    database = _table([["x", "1"]])
    writes = {
        "UPDATE t SET b = '2' RETURNING b": [("x", "2")],
        "ALTER TABLE t RENAME COLUMN b TO d": [("x", "2")],
        "DELETE FROM t": [],
    }
    for sql, rows in writes.items():
        database.execute(sql)
        copy = database.fork()
        assert copy.contents("t") == database.contents("t")
        assert copy.contents("t")[1] == rows
        copy.close()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([["a,b", "c"]], [["a", "b,c"]]),
        ([["a", None]], [["a", ""]]),
        ([["a", "1"]], [["a", "1"], ["a", "1"]]),
        ([["Lead Actor", "x"]], [["lead actor", "x"]]),  # F2
        ([], [["a", "1"]]),
        ([["a", "0"]], [["a", None]]),
        ([["a", "1\n2"]], [["a", "1\\n2"]]),
    ],
)
def test_the_state_hash_tells_apart_what_differs(
    one: list[list[str | None]], other: list[list[str | None]]
) -> None:
    assert _table(one).state_hash() != _table(other).state_hash()


def test_the_state_hash_ignores_the_order_of_rows() -> None:
    rows: list[list[str | None]] = [["a", "1"], ["b", "2"], ["b", "2"]]
    assert _table(rows).state_hash() == _table(rows[::-1]).state_hash()


def test_the_state_hash_sees_a_late_row_of_a_long_table() -> None:  # F36
    rows: list[list[str | None]] = [[f"{i:03d}", "x"] for i in range(200)]
    changed = [*rows[:-1], ["199", "y"]]
    assert _table(rows).state_hash() != _table(changed).state_hash()
    assert _table(rows).upstream_hash(["t"]) != _table(changed).upstream_hash(["t"])


def test_the_state_hash_sees_names() -> None:
    assert _table([]).state_hash() != _table([], columns=3).state_hash()
    assert _table([]).state_hash() != _table([], name="u").state_hash()


def test_the_upstream_hash_follows_the_published_rule() -> None:
    def md5(text: str) -> str:
        return hashlib.md5(text.encode()).hexdigest()

    # concat_ws joins by commas and skips NULL; five digits a row, sorted, joined by commas
    parts = sorted((md5("a,b,c")[:5], md5("x")[:5]))
    database = _table([["a,b", "c"], ["x", None]])
    assert database.upstream_hash(["t"]) == md5(",".join(parts))
    two = "_".join(sorted((md5(",".join(parts)), md5(""))))
    assert database.upstream_hash(["t", "gone"]) == two


def test_a_difference_names_the_rows() -> None:  # F2
    have = _table([["lead actor", "x"]])
    want = _table([["Lead Actor", "x"]])
    assert have.difference(want) == ("t: missing ('Lead Actor', 'x')\nt: extra ('lead actor', 'x')")
    assert want.difference(want.fork()) == ""
    have.rows("CREATE TABLE scratch (a TEXT)")
    assert "extra table scratch" in have.difference(want)


def test_a_result_is_shown_as_upstream_does() -> None:
    database = _table([["Dick Murdoch", "1"], ["x", None]])
    assert database.execute("SELECT a FROM t LIMIT 1").text == "[('Dick Murdoch',)]"
    assert database.execute("SELECT * FROM t").text == "[('Dick Murdoch', '1'), ('x', None)]"
    assert database.execute("SELECT * FROM t WHERE a = 'no'").text == "[]"
    assert database.execute("UPDATE t SET b = '2'").text == "[]"


@pytest.mark.parametrize(("length", "shown"), [(10, "[('aaaaaaaaaa',)]"), (11, None)])
def test_output_is_cut_with_a_count(length: int, shown: str | None) -> None:
    pool = Connections(Limits(output=17))  # [('aaaaaaaaaa',)] has 17 characters
    database = Database.build([Table("t", ["a"], ["TEXT"], [["a" * length]])], pool)
    text = database.execute("SELECT a FROM t").text
    assert text == (shown or "[('aaaaaaaaaaa',)[TRUNCATED: 1 of 18 characters cut]")


def test_the_cut_counts_rows_that_were_not_kept() -> None:
    pool = Connections(Limits(output=20))
    database = Database.build([Table("t", ["a"], ["TEXT"], [["x"]] * 100)], pool)
    # 100 rows of 6 characters, 99 separators of 2, 2 brackets
    assert database.execute("SELECT a FROM t").text.endswith(
        "[TRUNCATED: 780 of 800 characters cut]"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH DATABASE '{path}' AS other",
        "VACUUM INTO '{path}'",
        "PRAGMA database_list",
        "PRAGMA writable_schema = 1",
        "SELECT * FROM pragma_database_list",
        "SELECT load_extension('{path}')",
        "CREATE TEMP TABLE x (a TEXT)",
        "CREATE VIRTUAL TABLE x USING fts5(a)",
        "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 1, '')",
    ],
)
def test_files_and_settings_are_out_of_reach(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "file"
    database = _table([["x", "1"]])
    output = database.execute(sql.format(path=path))
    assert output.error
    assert not path.exists()
    assert database.contents("t")[1] == [("x", "1")]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT MAX(n) FROM r",
        "SELECT '" + "a" * 40 + "' REGEXP '^(a|aa)+$|^(a+)+b$'",
        "SELECT '" + "a" * 200 + "' LIKE '" + "%a" * 60 + "%b'",
    ],
)
def test_an_endless_statement_ends(sql: str) -> None:
    pool = Connections(Limits(max_operations=200_000))
    database = Database.build([Table("t", ["a"], ["TEXT"], [])], pool)
    output = database.execute(sql)
    assert output.error == ("RECURSIVE" in sql)
    if output.error:
        assert output.text == "Error: the statement took too long and was stopped"
    assert database.execute("SELECT 1").text == "[(1,)]"


def test_a_database_cannot_grow_without_bound() -> None:
    pool = Connections(Limits(max_pages=20))
    database = Database.build([Table("t", ["a"], ["TEXT"], [["x" * 1000]] * 10)], pool)
    outputs = [database.execute("INSERT INTO t SELECT a FROM t") for _ in range(6)]
    assert outputs[-1].text == "Error: database or disk is full"
    assert len(database.snapshot()) <= 20 * 4096


def test_chance_and_the_clock_are_the_same_in_every_copy() -> None:
    database = _table([["x", "1"], ["y", "2"], ["z", "3"]])
    sql = "SELECT RAND(), RANDOM(), NOW(), CURRENT_TIMESTAMP, DATE('now'), a FROM t ORDER BY RAND()"
    first = database.rows(sql)
    assert database.rows(sql) == first
    assert database.fork().rows(sql) == first
    assert first[0][0] != first[1][0]


def test_bytes_that_are_no_database_are_our_failure() -> None:  # F10
    with pytest.raises(EnvError, match="cannot be opened"):
        Database(b"not a database" * 100, _POOL).execute("SELECT 1")


def test_a_damaged_database_is_our_failure() -> None:
    content = bytearray(_table([["x" * 500, "1"]] * 50).snapshot())
    content[4096 * 2 :] = b"\xff" * (len(content) - 4096 * 2)
    with pytest.raises(EnvError):
        Database(bytes(content), _POOL).execute("SELECT * FROM t")


def test_a_closed_database_says_so() -> None:
    database = _table([])
    database.close()
    database.close()
    with pytest.raises(EnvError, match="closed"):
        database.execute("SELECT 1")
    with pytest.raises(EnvError, match="closed"):
        database.fork()


def test_tables_that_cannot_be_built_are_named() -> None:
    with pytest.raises(EnvError, match=r"\['t'\].*duplicate column"):
        Database.build([Table("t", ["a", "A"], ["TEXT"] * 2, [])])


def test_columns_are_text_unless_typed() -> None:
    table = Table("t", ["n", "x", "s"], ["INT", "DECIMAL(10,2)", "DATE"], [["7", "1.50", "2020"]])
    assert Database.build([table]).rows("SELECT * FROM t") == [("7", "1.50", "2020")]
    typed = Database.build([table], typed=True)
    assert typed.rows("SELECT * FROM t") == [(7, 1.5, "2020")]
    assert typed.rows("SELECT n FROM t WHERE n > '10'") == []
    assert typed.rows("DESCRIBE t")[0][1] == "int"


def test_minimum_over_text_is_lexicographic() -> None:  # G25
    database = Database.build([Table("t", ["a"], ["TEXT"], [["4"], ["10"]])])
    assert database.rows("SELECT MIN(a) FROM t") == [("10",)]
    assert database.rows("SELECT a FROM t ORDER BY a") == [("10",), ("4",)]
    assert database.rows("SELECT MIN(CAST(a AS SIGNED)) FROM t") == [(4,)]


def test_a_sum_of_texts_is_the_number_that_mysql_gives() -> None:
    # MySQL adds texts as doubles: its client prints 14.0, sqlite 14. A text column stores "14".
    database = Database.build([Table("t", ["a"], ["TEXT"], [["4"], ["10"]])])
    assert database.rows("SELECT SUM(a), AVG(a) FROM t") == [(14.0, 7.0)]
    assert database.execute("SELECT SUM(a) FROM t").text == "[(14,)]"
    assert score("14", ["14.0"]) == score("14.0", ["14"]) == score_upstream("14", ["14.0"]) == 1.0
    database.rows("INSERT INTO t SELECT SUM(a) FROM t")
    assert database.contents("t")[1] == [("4",), ("10",), ("14",)]
