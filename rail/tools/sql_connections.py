"""Guarded sqlite connections, reused from one database to the next."""

import sqlite3
import threading
from dataclasses import dataclass

from rail.errors import EnvError
from rail.tools.sql_functions import register
from rail.tools.sql_guard import Guard
from rail.tools.sql_tokens import SqlError

# Failures of the machine or of our own bytes; everything else is the statement's fault.
_OURS = frozenset(
    (
        sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_INTERNAL, sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED,
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """What one statement may use.

    Attributes:
        timeout_s: Wall-clock seconds; a safety net, since it differs between machines.
        max_operations: sqlite virtual machine instructions, the limit that is the same everywhere.
        output: Characters of a rendered result that are shown.
        max_cell: Characters of one cell.
        max_pages: Pages of 4 KiB that a database may grow to.
    """

    timeout_s: float = 5.0
    max_operations: int = 5_000_000
    output: int = 800
    max_cell: int = 100_000
    max_pages: int = 4096


DEFAULT_LIMITS = Limits()


class Connections:
    """Open connections kept for reuse: adding our functions costs more than a fork may."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, keep: int = 64) -> None:
        self.limits = limits
        self._keep = keep
        self._idle: list[Connection] = []
        self._loader = sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = threading.Lock()

    def take(self, content: bytes) -> "Connection":
        """Return a connection that holds `content`.

        Raises:
            EnvError: If the bytes are no database or the connection fails.
        """
        with self._lock:
            connection = self._idle.pop() if self._idle else Connection(self.limits)
            try:
                # Not deserialize() on the connection itself: once pragma_table_info has been used,
                # sqlite 3.40 keeps a pointer to the schema that deserialize() frees, and crashes.
                self._loader.deserialize(content)
                self._loader.backup(connection.raw)
            except (sqlite3.Error, MemoryError) as error:
                raise EnvError(
                    f"database of {len(content)} bytes cannot be opened: {error}"
                ) from error
        return connection

    def give(self, connection: "Connection") -> None:
        """Take a connection back."""
        if len(self._idle) < self._keep:
            self._idle.append(connection)
        else:
            connection.raw.close()


class Connection:
    """A sqlite connection with functions, collation and guard."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # Autocommit: an open implicit transaction would be missing from serialize().
        self.raw = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.max_cell)
        self.restart = register(self.raw)
        self.guard = Guard(self.raw, limits.timeout_s, limits.max_operations)
        with self.guard.lifted():
            self.raw.execute("PRAGMA temp_store = MEMORY").close()
            self.raw.execute(f"PRAGMA max_page_count = {limits.max_pages}").close()

    def run(self, sql: str, table: str | None = None) -> sqlite3.Cursor:
        """Run a translated statement.

        Raises:
            SqlError: If sqlite refuses it or a limit stops it.
            EnvError: If sqlite itself fails.
        """
        self.guard.start()
        self.restart()
        try:
            if table is not None and not self._exists(table):
                raise SqlError(f"no such table: {table}")
            return self.raw.execute(sql)
        except (sqlite3.Error, sqlite3.Warning, MemoryError) as error:
            raise self.failure(error) from error

    def _exists(self, table: str) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE"
        return self.raw.execute(query, (table,)).fetchone() is not None

    def failure(self, error: BaseException) -> SqlError | EnvError:
        """Return what an exception of sqlite means."""
        code = getattr(error, "sqlite_errorcode", 0)
        if isinstance(error, MemoryError) or (code & 0xFF) in _OURS:
            return EnvError(f"the database failed: {type(error).__name__}: {error}")
        if self.guard.stopped:
            return SqlError("the statement took too long and was stopped")
        return SqlError(str(error))
