"""SHOW, DESCRIBE and the other MySQL statements that have no sqlite counterpart."""

from rail.tools.sql_tokens import SqlError, Token, identifier, literal

_TYPE = (
    "CASE upper(type) WHEN 'INTEGER' THEN 'int' WHEN 'REAL' THEN 'double' "
    "WHEN 'NUMERIC' THEN 'decimal' ELSE lower(type) END"
)
_TABLES = "sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"

INFORMATION_SCHEMA = {
    "TABLES": (
        "(SELECT 'main' AS TABLE_SCHEMA, name AS TABLE_NAME, 'BASE TABLE' AS TABLE_TYPE "
        f"FROM {_TABLES})"
    ),
    "COLUMNS": (
        "(SELECT 'main' AS TABLE_SCHEMA, m.name AS TABLE_NAME, p.name AS COLUMN_NAME, "
        f"p.cid + 1 AS ORDINAL_POSITION, {_TYPE.replace('type', 'p.type')} AS DATA_TYPE, "
        f"{_TYPE.replace('type', 'p.type')} AS COLUMN_TYPE, "
        "CASE p.\"notnull\" WHEN 0 THEN 'YES' ELSE 'NO' END AS IS_NULLABLE "
        "FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type IN ('table', 'view') "
        "AND m.name NOT LIKE 'sqlite~_%' ESCAPE '~')"
    ),
}

_NOOPS = frozenset(("BEGIN", "COMMIT", "USE", "SET", "LOCK", "UNLOCK"))
_REFUSED = frozenset(("ROLLBACK", "SAVEPOINT", "RELEASE"))


def special(tokens: list[Token]) -> tuple[str, str | None] | None:
    """Return (sqlite text, table that must exist) of a statement handled here, else None.

    Raises:
        SqlError: If the statement is one that is refused or not known.
    """
    words = [t.value if t.kind == "word" else "" for t in tokens]
    first = words[0]
    if first == "SHOW":
        return _show(tokens, words)
    if first in ("DESCRIBE", "DESC") or (first == "EXPLAIN" and len(tokens) == 2):
        if len(tokens) < 2:
            raise SqlError(f"{first} needs a table name")
        return _columns(_name(tokens, 1))
    if first == "TRUNCATE":
        at = 2 if words[1:2] == ["TABLE"] else 1
        if len(tokens) <= at:
            raise SqlError("TRUNCATE needs a table name")
        return f"DELETE FROM {identifier(_name(tokens, at))}", None
    if first in _NOOPS or words[:2] == ["START", "TRANSACTION"]:
        return "", None
    if first in _REFUSED:
        raise SqlError("transactions are not available; every statement takes effect at once")
    return None


def _name(tokens: list[Token], at: int) -> str:
    """The table name at `at`; a database name before it is dropped."""
    token = tokens[at]
    if len(tokens) > at + 2 and tokens[at + 1].text == ".":
        token = tokens[at + 2]
    return token.text if token.kind == "word" else token.value


def _columns(table: str) -> tuple[str, str | None]:
    return (
        f"SELECT name, {_TYPE}, CASE \"notnull\" WHEN 0 THEN 'YES' ELSE 'NO' END, "
        f"CASE pk WHEN 0 THEN '' ELSE 'PRI' END, dflt_value, '' "
        f"FROM pragma_table_info({literal(table)})",
        table,
    )


def _show(tokens: list[Token], words: list[str]) -> tuple[str, str | None]:
    rest = [w for w in words[1:] if w not in ("FULL", "EXTENDED")]
    what = rest[0] if rest else ""
    if what == "TABLES":
        like = ""
        if "LIKE" in words and tokens[-1].kind in ("string", "double"):
            like = f" AND name LIKE {literal(tokens[-1].value)}"
        return f"SELECT name FROM {_TABLES}{like} ORDER BY name", None
    if what in ("DATABASES", "SCHEMAS"):
        return "SELECT 'main'", None
    if what in ("COLUMNS", "FIELDS"):
        for at, word in enumerate(words):
            if word in ("FROM", "IN") and at + 1 < len(tokens):
                return _columns(_name(tokens, at + 1))
    if rest[:2] == ["CREATE", "TABLE"] and len(tokens) > 3:
        table = _name(tokens, 3)
        return (
            f"SELECT name, sql FROM sqlite_master WHERE name = {literal(table)} COLLATE NOCASE",
            table,
        )
    raise SqlError(
        "this SHOW statement is not supported; use SHOW TABLES, SHOW COLUMNS FROM t or "
        "SHOW CREATE TABLE t"
    )
