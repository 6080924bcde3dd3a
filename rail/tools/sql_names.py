"""Words that the dialect treats specially: clauses, operators, functions, types."""

# A clause word and the context it opens; see `_Parser.sequence`.
CLAUSES = {
    "SELECT": "select", "GROUP": "select", "ORDER": "select",
    "FROM": "table", "JOIN": "table", "INTO": "table", "UPDATE": "table", "TABLE": "table",
    "WITH": "table", "WHERE": "expr", "ON": "expr", "HAVING": "expr", "USING": "expr",
    "LIMIT": "expr", "OFFSET": "expr", "VALUES": "value", "SET": "set", "RETURNING": "select",
}  # fmt: skip

# Words that never start an expression.
RAW_WORDS = frozenset(CLAUSES) | frozenset(
    (
        "AS", "DISTINCT", "ALL", "UNION", "EXCEPT", "INTERSECT", "ASC", "DESC", "LEFT", "RIGHT",
        "INNER", "OUTER", "CROSS", "NATURAL", "FULL", "BY", "WHEN", "THEN", "ELSE", "END",
        "INSERT", "DELETE", "CREATE", "ALTER", "DROP", "ADD", "COLUMN", "AND", "OR", "IN", "IS",
        "LIKE",
    )
)  # fmt: skip

# Binding strength, after MySQL's operator table; a larger number binds tighter.
PRECEDENCE = {
    "OR": 1, "||": 1, "XOR": 2, "AND": 3, "&&": 3, "NOT": 4,
    "=": 6, "==": 6, "<=>": 6, ">=": 6, ">": 6, "<=": 6, "<": 6, "<>": 6, "!=": 6, "IS": 6,
    "LIKE": 6, "REGEXP": 6, "RLIKE": 6, "IN": 6, "BETWEEN": 6,
    "|": 7, "&": 8, "<<": 9, ">>": 9, "+": 10, "-": 10,
    "*": 11, "/": 11, "%": 11, "DIV": 11, "MOD": 11, "UNARY": 13, "COLLATE": 15,
}  # fmt: skip

# MySQL comparison -> sqlite comparison.
COMPARISONS = {
    **{op: op for op in ("=", ">=", ">", "<=", "<", "<>", "!=")}, "<=>": "IS",
}  # fmt: skip

AGGREGATES = frozenset(("COUNT", "SUM", "AVG", "MIN", "MAX", "TOTAL"))

NUMERIC_FUNCTIONS = frozenset(
    (
        "COUNT", "SUM", "AVG", "TOTAL", "ABS", "ROUND", "CEIL", "CEILING", "FLOOR", "TRUNCATE",
        "MOD", "POW", "POWER", "SQRT", "SIGN", "LN", "LOG", "LOG2", "LOG10", "EXP", "LENGTH",
        "CHAR_LENGTH", "CHARACTER_LENGTH", "INSTR", "LOCATE", "STRCMP", "FIELD", "FIND_IN_SET",
        "YEAR", "MONTH", "DAY", "DAYOFMONTH", "DATEDIFF", "EXISTS", "ISNULL", "REGEXP_LIKE",
        "RAND", "RANDOM", "ROW_NUMBER", "RANK", "DENSE_RANK", "ASCII",
    )
)  # fmt: skip

TEXT_FUNCTIONS = frozenset(
    (
        "LOWER", "UPPER", "LCASE", "UCASE", "TRIM", "LTRIM", "RTRIM", "SUBSTR", "SUBSTRING", "MID",
        "LEFT", "RIGHT", "CONCAT", "CONCAT_WS", "REPLACE", "SUBSTRING_INDEX", "REVERSE", "LPAD",
        "RPAD", "REPEAT", "REGEXP_REPLACE", "REGEXP_SUBSTR",
    )
)  # fmt: skip

# Names that sqlite knows otherwise, or cannot parse as a call.
RENAMED = {
    "LEFT": "mysql_left", "RIGHT": "mysql_right", "IF": "iif", "MID": "substr",
    "SUBSTRING": "substr",
    "LCASE": "lower", "UCASE": "upper", "CEILING": "ceil", "CHARACTER_LENGTH": "char_length",
    "CURRENT_DATE": "curdate", "CURRENT_TIME": "curtime", "CURRENT_TIMESTAMP": "now",
    "POWER": "pow", "DAYOFMONTH": "day", "LOCATE": "mysql_locate", "LOG": "ln",
}  # fmt: skip

# Nothing in an environment may depend on the clock: forks and reruns must agree.
FIXED_NOW = "2026-01-01 00:00:00"
CLOCK_WORDS = frozenset(("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP"))
CLOCK_FUNCTIONS = frozenset(("DATE", "TIME", "DATETIME", "JULIANDAY", "STRFTIME", "UNIXEPOCH"))


def cast_type(value: str, target: str, scale: str, close: str) -> tuple[str, str]:
    """Return sqlite text and kind of `CAST(value AS target)`.

    A MySQL DECIMAL without a scale rounds to a whole number; SIGNED truncates a text.
    """
    head = target.split(" ")[0]
    if head in ("SIGNED", "UNSIGNED", "INT", "INTEGER", "BIGINT"):
        return f"CAST({value} AS INTEGER{close}", "num"
    if head in ("DECIMAL", "DEC", "NUMERIC"):
        return f"decimal_cast({value}, {scale or 0}{close}", "num"
    if head in ("FLOAT", "DOUBLE", "REAL"):
        return f"CAST({value} AS REAL{close}", "num"
    if head in ("CHAR", "VARCHAR", "NCHAR", "TEXT"):
        return f"CAST({value} AS TEXT{close}", "text"
    if head in ("DATE", "DATETIME", "TIME"):
        return f"{head.lower()}({value}{close}", "text"
    return f"CAST({value} AS {target}{close}", "name"
