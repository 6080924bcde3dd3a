"""An in-memory SQL database with MySQL semantics on sqlite: execute, fork, hash.

Statements are translated by `rail.tools.sql_dialect`; limits are `rail.tools.sql_guard`'s.

One difference is left on purpose. MySQL reckons with texts in doubles, so upstream prints
`SUM(text column)` as 30.0 where whole numbers print as 30 here. Values are equal and so are the
verdicts (numbers match within 0.01); made a double, the sum would be stored in a text column as
'30.0', where MySQL stores '30'.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rail.errors import EnvError
from rail.tools.sql_connections import DEFAULT_LIMITS, Connection, Connections, Limits
from rail.tools.sql_dialect import translate
from rail.tools.sql_text import Value, fold, text_of
from rail.tools.sql_tokens import SqlError, identifier

__all__ = ["DEFAULT_LIMITS", "Connections", "Database", "Limits", "Output", "Row", "Table"]

Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table to build: column names, declared types, and cells as text, number or None."""

    name: str
    columns: Sequence[str]
    types: Sequence[str]
    rows: Sequence[Sequence[Value]]


@dataclass(frozen=True, slots=True)
class Output:
    """A statement's answer as shown to the policy; `error` when it was refused or failed."""

    text: str
    error: bool = False


class Database:
    """A database that is cheap to fork: bytes until its first statement."""

    def __init__(self, content: bytes, connections: Connections | None = None) -> None:
        self._content = content
        self._changed = False  # since `_content` was taken
        self._pool = connections or Connections()
        self._connection: Connection | None = None
        self._closed = False

    @classmethod
    def build(
        cls, tables: Sequence[Table], connections: Connections | None = None, typed: bool = False
    ) -> "Database":
        """Create `tables` and fill them.

        Args:
            tables: What to create.
            connections: Where to take the connection from.
            typed: Give number columns their declared type; False makes every column TEXT.

        Raises:
            EnvError: If sqlite refuses the tables.
        """
        raw = sqlite3.connect(":memory:", isolation_level=None)
        try:
            raw.create_collation("mysql", lambda a, b: (fold(a) > fold(b)) - (fold(a) < fold(b)))
            for table in tables:
                columns = ", ".join(
                    f"{identifier(name)} {_affinity(declared) if typed else _TEXT}"
                    for name, declared in zip(table.columns, table.types, strict=True)
                )
                raw.execute(f"CREATE TABLE {identifier(table.name)} ({columns})")
                marks = ", ".join("?" * len(table.columns))
                raw.execute("BEGIN")
                raw.executemany(
                    f"INSERT INTO {identifier(table.name)} VALUES ({marks})",
                    [[None if c is None else str(c) for c in row] for row in table.rows],
                )
                raw.execute("COMMIT")
            content = raw.serialize()
        except sqlite3.Error as error:
            names = [t.name for t in tables]
            raise EnvError(f"tables {names} cannot be created: {error}") from error
        finally:
            raw.close()
        return cls(content, connections)

    def execute(self, sql: str) -> Output:
        """Run one statement of the policy and render its answer; what is wrong with it is text.

        Raises:
            EnvError: If the database is closed or fails by no doing of the statement.
        """
        try:
            statement = translate(sql)
            if not statement.sql:
                return Output("[]")
            cursor = self._run(statement.sql, statement.table)
            return Output(self._render(cursor))
        except SqlError as error:
            return Output(f"Error: {error}", error=True)

    def rows(self, sql: str) -> list[Row]:
        """Return all rows of one statement.

        Raises:
            SqlError: If the statement is wrong.
            EnvError: As `execute`.
        """
        statement = translate(sql)
        if not statement.sql:
            return []
        cursor = self._run(statement.sql, statement.table)
        try:
            return cursor.fetchall()
        except (sqlite3.Error, MemoryError) as error:
            raise self._open().failure(error) from error
        finally:
            cursor.close()

    def fork(self) -> "Database":
        """Return an independent copy."""
        return Database(self.snapshot(), self._pool)

    def snapshot(self) -> bytes:
        """Return the content as bytes; `Database(bytes)` is an independent copy."""
        self._alive()
        if self._changed and self._connection is not None:
            with self._connection.guard.lifted():  # serialize() runs a PRAGMA of its own
                self._content = self._connection.raw.serialize()
            self._changed = False
        return self._content

    def tables(self) -> list[str]:
        """Return the names of all tables, sorted."""
        names = self._run(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            " AND substr(name, 1, 7) <> 'sqlite_'"
        )
        return sorted(str(name) for (name,) in names.fetchall())

    def contents(self, table: str) -> tuple[list[str], list[Row]]:
        """Return column names and rows of a table.

        Raises:
            SqlError: If there is no such table.
        """
        cursor = self._run(f"SELECT * FROM {identifier(table)}")
        names = [column[0] for column in cursor.description]
        return names, cursor.fetchall()

    def state_hash(self) -> str:
        """Return a digest of all tables: names, columns and the multiset of rows, in any order.

        Types count: NULL, '' and 0 differ, and so do ('a,b', 'c') and ('a', 'b,c').
        """
        digest = hashlib.blake2b(digest_size=16)
        for table in self.tables():
            columns, rows = self.contents(table)
            # repr separates cells and types; it never holds a raw line break.
            digest.update(repr((table, columns, len(rows))).encode("utf-8", "surrogatepass"))
            for row in sorted(map(repr, rows)):
                digest.update(b"\n" + row.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def upstream_hash(self, tables: Sequence[str]) -> str:
        """Return AgentBench's published digest of `tables`, without MySQL's cut at 1024 bytes.

        A row counts by five hex digits of the md5 of its cells joined by commas, NULL left out, so
        different rows can be equal under it. A table that is gone counts as empty.
        """
        present = {fold(name) for name in self.tables()}
        hashes = []
        for table in tables:
            rows = self.contents(table)[1] if fold(table) in present else []
            parts = sorted(
                _md5(",".join(text_of(cell) for cell in row if cell is not None))[:5]
                for row in rows
            )
            hashes.append(_md5(",".join(parts)))
        return "_".join(sorted(hashes))

    def difference(self, wanted: "Database") -> str:
        """Return in words which rows are missing or extra here, compared with `wanted`."""
        lines = []
        mine, theirs = set(self.tables()), set(wanted.tables())
        lines += [f"extra table {name}" for name in sorted(mine - theirs)]
        lines += [f"missing table {name}" for name in sorted(theirs - mine)]
        for table in sorted(mine & theirs):
            have, want = Counter(self.contents(table)[1]), Counter(wanted.contents(table)[1])
            lines += [f"{table}: missing {row!r}" for row in (want - have).elements()]
            lines += [f"{table}: extra {row!r}" for row in (have - want).elements()]
        return "\n".join(lines)

    def close(self) -> None:
        """Give the connection back; may be called twice."""
        self._closed = True
        if self._connection is not None:
            self._pool.give(self._connection)
            self._connection = None

    def _alive(self) -> None:
        if self._closed:
            raise EnvError("the database is closed")

    def _open(self) -> Connection:
        self._alive()
        if self._connection is None:
            self._connection = self._pool.take(self._content)
        return self._connection

    def _run(self, sql: str, table: str | None = None) -> sqlite3.Cursor:
        connection = self._open()
        before = connection.raw.total_changes
        try:
            cursor = connection.run(sql, table)
        except SqlError:
            # sqlite rolls a statement that fails midway back; be safe all the same.
            self._changed = self._changed or connection.raw.total_changes != before
            raise
        if cursor.description is None or connection.raw.total_changes != before:
            self._changed = True
        return cursor

    def _render(self, cursor: sqlite3.Cursor) -> str:
        """Render as upstream does, `str(list of tuples)`, keeping only what is shown."""
        connection = self._open()
        limit = connection.limits.output
        shown: list[str] = []
        length = 2  # the brackets
        kept = 0
        changes = connection.raw.total_changes
        try:
            for row in cursor:
                text = repr(row)
                length += len(text) + (2 if length > 2 else 0)
                if kept <= limit:
                    shown.append(text)
                    kept = length
                if connection.guard.late():
                    raise SqlError("the statement took too long and was stopped")
        except (sqlite3.Error, MemoryError) as error:
            raise connection.failure(error) from error
        finally:
            cursor.close()
            if connection.raw.total_changes != changes:  # RETURNING writes while it is read
                self._changed = True
        whole = "[" + ", ".join(shown) + "]"
        if length <= limit:
            return whole
        return f"{whole[:limit]}[TRUNCATED: {length - limit} of {length} characters cut]"


_TEXT = "TEXT COLLATE mysql"


def _affinity(declared: str) -> str:
    """The sqlite type of a declared MySQL type; dates, times and unknown types stay text."""
    head = declared.upper().split("(")[0].strip()
    if head in ("INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT"):
        return "INTEGER"
    if head in ("REAL", "FLOAT", "DOUBLE"):
        return "REAL"
    return "NUMERIC" if head in ("DECIMAL", "NUMERIC") else _TEXT


def _md5(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
