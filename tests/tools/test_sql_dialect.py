"""What MySQL gives on a small table; every expected value follows from MySQL's documented rules."""

import pytest

from rail.tools.sql import Database, Output, Table
from rail.tools.sql_dialect import translate
from rail.tools.sql_tokens import SqlError


@pytest.fixture
def database() -> Database:
    rows = [["Ann", "4", "49,285"], ["Bob", "10", "9"], ["Éva", "?", None], ["Bob ", "7.5", ""]]
    return Database.build([Table("t", ["name", "n", "size"], ["TEXT"] * 3, rows)])


@pytest.mark.parametrize(
    ("sql", "result"),
    [
        # text against number: the leading number counts, 0 if there is none
        ("SELECT name FROM t WHERE size > 146445", []),
        ("SELECT name FROM t WHERE n > 7", [("Bob",), ("Bob ",)]),
        ("SELECT name FROM t WHERE 7 < n", [("Bob",), ("Bob ",)]),
        ("SELECT name FROM t WHERE n = 0", [("Éva",)]),
        ("SELECT name FROM t WHERE n BETWEEN 4 AND 8", [("Ann",), ("Bob ",)]),
        ("SELECT name FROM t WHERE n IN (4, 10)", [("Ann",), ("Bob",)]),
        ("SELECT name FROM t WHERE n NOT IN (4, 10)", [("Éva",), ("Bob ",)]),
        ("SELECT name FROM t WHERE n > (SELECT AVG(n) FROM t)", [("Bob",), ("Bob ",)]),
        ("SELECT COUNT(*) > '3' FROM t", [(1,)]),
        ("SELECT name FROM t WHERE n > '4'", [("Éva",), ("Bob ",)]),  # texts: '?' > '4' > '10'
        ("SELECT SUM(n), AVG(n) FROM t", [(21.5, 5.375)]),
        ("SELECT SUM(size) FROM t", [(58.0,)]),
        ("SELECT MIN(n), MIN(CAST(n AS SIGNED)) FROM t WHERE n <> '?'", [("10", 4)]),
        ("SELECT CAST('4.7' AS DECIMAL), CAST('4.752' AS DECIMAL(10, 2))", [(5, 4.75)]),
        ("SELECT CAST(REPLACE(size, ',', '') AS UNSIGNED) FROM t LIMIT 1", [(49285,)]),
        # operators
        ("SELECT 7/2, 7 DIV 2, 7 % 4, 7 MOD 4, 1/0, 5--3", [(3.5, 3, 3, 3, None, 8)]),
        ("SELECT 1 || 0, 1 && 0, !1, 1 XOR 1, NULL <=> NULL", [(1, 0, 0, 0, 1)]),
        ("SELECT 1 + 2 * 3 / 2", [(4.0,)]),
        # collation: case, accents, trailing spaces
        ("SELECT n FROM t WHERE name = 'eva'", [("?",)]),
        ("SELECT n FROM t WHERE name = 'BOB'", [("10",), ("7.5",)]),
        ("SELECT n FROM t WHERE BINARY name = 'bob'", []),
        ("SELECT 'Montreal' = 'montréal', LOWER('Ä') = 'A'", [(1, 1)]),
        ("SELECT COUNT(DISTINCT name) FROM t", [(3,)]),
        ("SELECT name FROM t WHERE name LIKE '_va'", [("Éva",)]),
        ("SELECT name FROM t WHERE name LIKE 'b%' ORDER BY n", [("Bob",), ("Bob ",)]),
        (r"SELECT '5%' LIKE '5\%', '55' LIKE '5\%'", [(1, 0)]),
        ("SELECT name FROM t WHERE name REGEXP '^a'", [("Ann",)]),
        # quotes
        ('SELECT n FROM t WHERE name = "Ann"', [("4",)]),
        ('SELECT "n" FROM "t" WHERE "name" = "Ann"', [("4",)]),
        ('SELECT n FROM t WHERE "name" = "name"', []),
        ("SELECT `n` FROM `t` WHERE [name] = 'Ann'", [("4",)]),
        (r"SELECT 'Don\'t', ""'' FROM t LIMIT 1", [("Don't", "")]),
        # functions
        ("SELECT IF(n > 5, 'big', 'small') FROM t LIMIT 2", [("small",), ("big",)]),
        ("SELECT CONCAT(name, '-', n) FROM t LIMIT 1", [("Ann-4",)]),
        ("SELECT CONCAT('a', NULL), CONCAT_WS(',', 'a', NULL, 'b')", [(None, "a,b")]),
        ("SELECT MD5('a'), LEFT('abc', 2), RIGHT('abc', 2)",
         [("0cc175b9c0f1b6a831c399e269772661", "ab", "bc")]),
        ("SELECT YEAR('2020-03-01'), MONTH('2020-03-01'), DAY('2020-03-01')", [(2020, 3, 1)]),
        ("SELECT STR_TO_DATE('July 11, 2009', '%M %d, %Y')", [("2009-07-11",)]),
        ("SELECT SUBSTRING_INDEX('a-b-c', '-', 2)", [("a-b",)]),
        ("SELECT LENGTH('é'), CHAR_LENGTH('é')", [(2, 1)]),
        ("SELECT GROUP_CONCAT(n ORDER BY n DESC SEPARATOR '; ') FROM t", [("?; 7.5; 4; 10",)]),
        ("SELECT GROUP_CONCAT(DISTINCT name) FROM t", [("Ann,Bob,Éva",)]),
        ("SELECT CASE WHEN n > 5 THEN 'x' ELSE \"y\" END FROM t LIMIT 2", [("y",), ("x",)]),
        ("SELECT name, RANK() OVER (ORDER BY name) FROM t LIMIT 1", [("Ann", 1)]),
        # schema
        ("SHOW TABLES", [("t",)]),
        ("SHOW TABLES LIKE 'x%'", []),
        ("DESCRIBE t", [(c, "text", "YES", "", None, "") for c in ("name", "n", "size")]),
        ("SHOW FULL COLUMNS FROM `t`",
         [(c, "text", "YES", "", None, "") for c in ("name", "n", "size")]),
        ("SELECT column_name FROM information_schema.columns WHERE table_name = 'T'",
         [("name",), ("n",), ("size",)]),
        ("SELECT table_name FROM information_schema.tables", [("t",)]),
    ],
)  # fmt: skip
def test_queries_answer_as_mysql_does(database: Database, sql: str, result: list[object]) -> None:
    assert database.rows(sql) == result


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (r"INSERT INTO u VALUES ('x\ny')", [("x\ny",)]),  # G17
        ('INSERT INTO u VALUES ("Men\'s 50 km")', [("Men's 50 km",)]),  # G20
        ("INSERT INTO u VALUES (4.50), (-1.20), (.5), (2019)",
         [("4.50",), ("-1.20",), ("0.5",), ("2019",)]),
        ("INSERT IGNORE INTO u (a) VALUES ('x')", [("x",)]),
        ("REPLACE INTO u VALUES ('x')", [("x",)]),
    ],
)  # fmt: skip
def test_what_is_stored(sql: str, rows: list[object]) -> None:
    database = Database.build([Table("u", ["a"], ["TEXT"], [])])
    database.rows(sql)
    assert database.contents("u")[1] == rows


def test_a_name_may_start_with_a_digit() -> None:  # G18
    database = Database.build([Table("1952_British_Grand_Prix_0", ["a"], ["TEXT"], [])])
    database.rows("INSERT INTO 1952_British_Grand_Prix_0 VALUES ('x')")
    assert database.rows("SELECT a FROM 1952_British_Grand_Prix_0") == [("x",)]


def test_an_update_may_compare_any_text_with_a_number() -> None:  # G22
    database = Database.build([Table("t", ["no", "a"], ["TEXT"] * 2, [["?", "x"], ["16", "x"]])])
    database.rows("UPDATE t SET a = 'y' WHERE no = 16")
    assert database.contents("t")[1] == [("?", "x"), ("16", "y")]


def test_an_assignment_is_no_comparison() -> None:
    database = Database.build([Table("t", ["a"], ["TEXT"], [["1"]])])
    database.rows("UPDATE t SET a = 5")
    assert database.contents("t")[1] == [("5",)]


def test_truncate_empties_the_table(database: Database) -> None:
    database.rows("TRUNCATE TABLE t")
    assert database.contents("t")[1] == []


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT nope FROM t", "no such column: nope"),
        ("SELECT `nope` FROM t", "no such column: nope"),
        ("SELECT * FROM nope", "no such table: nope"),
        ("DESCRIBE nope", "no such table: nope"),
        ("SELECT FROM t", 'near "FROM": syntax error'),
        ("SELECT name FROM t WHERE", "incomplete input"),
        ("SELECT (name FROM t", 'near "FROM": syntax error'),
        ("SELECT name) FROM t", 'near ")": syntax error'),
        ("", "the statement is empty"),
        (" ; ", "the statement is empty"),
        ("SELECT 'x", "the quote ' is not closed"),
        ("SELECT '\ud800'", "the statement is not valid Unicode text"),
        ("SELECT 1; SELECT 2", "one statement per call; remove what follows the semicolon"),
        ("SHOW ENGINES", "this SHOW statement is not supported; use SHOW TABLES, SHOW COLUMNS FROM"
         " t or SHOW CREATE TABLE t"),
        ("SELECT " + "(" * 500 + "1" + ")" * 500, "the statement is nested too deeply"),
        ("ROLLBACK", "transactions are not available; every statement takes effect at once"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(database: Database, sql: str, error: str) -> None:
    assert database.execute(sql) == Output(f"Error: {error}", error=True)


@pytest.mark.parametrize(
    "sql", ["COMMIT", "BEGIN", "START TRANSACTION", "USE db", "SET NAMES utf8"]
)
def test_statements_without_effect_are_accepted(database: Database, sql: str) -> None:
    assert database.execute(sql) == Output("[]")


def test_create_table_passes_through() -> None:
    sql = "CREATE TABLE IF NOT EXISTS x (a VARCHAR(20) NOT NULL, b DECIMAL(10,2) DEFAULT 1.5)"
    text = translate(sql).sql.replace(" ", "")
    assert text == sql.replace(" ", "")


def test_an_unknown_start_is_sqlites_to_refuse() -> None:
    database = Database.build([Table("t", ["a"], ["TEXT"], [])])
    assert database.execute("HELLO world").text == 'Error: near "HELLO": syntax error'


def test_translation_is_remembered_by_text() -> None:
    translate.cache_clear()
    translate("SELECT 1")
    translate("SELECT 1")
    assert translate.cache_info().hits == 1


def test_a_failing_translation_raises_each_time() -> None:
    for _ in range(2):
        with pytest.raises(SqlError):
            translate("SELECT '")
