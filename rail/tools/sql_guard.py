"""What a statement may do and for how long: a sqlite authorizer and a progress handler."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

_ALLOWED = frozenset(
    (
        sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_ALTER_TABLE,
        sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_INDEX, sqlite3.SQLITE_REINDEX,
        sqlite3.SQLITE_CREATE_VIEW, sqlite3.SQLITE_DROP_VIEW,
    )
)  # fmt: skip
_REFUSED_FUNCTIONS = frozenset(
    ("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "randomblob")
)
_PROGRESS_EVERY = 10_000  # virtual machine instructions between two looks at the limits


class Guard:
    """Limits of one connection.

    Attributes:
        stopped: The last statement was interrupted by a limit.
    """

    def __init__(
        self, connection: sqlite3.Connection, timeout_s: float, max_operations: int
    ) -> None:
        self.timeout_s = timeout_s
        self.max_operations = max_operations
        self._lifted = False
        self.stopped = False
        self._ticks = 0
        self._deadline = 0.0
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(self._tick, _PROGRESS_EVERY)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Let everything through, for our own set-up statements."""
        self._lifted = True
        self.start()
        try:
            yield
        finally:
            self._lifted = False

    def start(self) -> None:
        """Begin a statement."""
        self.stopped = False
        self._ticks = 0
        self._deadline = time.monotonic() + self.timeout_s

    def late(self) -> bool:
        """True when the statement is past its wall-clock limit."""
        if time.monotonic() > self._deadline:
            self.stopped = True
        return self.stopped

    def _tick(self) -> bool:
        # The count comes first and is what binds in practice: unlike the clock, it is the same on
        # every machine, so a rerun stops at the same statement.
        self._ticks += 1
        if self._ticks * _PROGRESS_EVERY > self.max_operations:
            self.stopped = True
        return self.stopped or self.late()

    def _authorize(
        self,
        action: int,
        first: str | None,
        second: str | None,
        _db: str | None,
        _inner: str | None,
    ) -> int:
        if self._lifted or action in _ALLOWED:
            refused = action == sqlite3.SQLITE_FUNCTION and second in _REFUSED_FUNCTIONS
            return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_PRAGMA and first == "table_info":
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY
