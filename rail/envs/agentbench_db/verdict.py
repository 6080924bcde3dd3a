"""The gold side of a task: its database, and what its end is compared with."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from rail.envs.agentbench_db.answers import Answer, may_mean_nothing, score, score_upstream
from rail.envs.agentbench_db.rows import Spec, spec_of
from rail.errors import DataError
from rail.tools.sql import Connections, Database
from rail.tools.sql_tokens import SqlError


class Gold:
    """A task's start state as bytes, and its right end; shared by all environments of the task.

    Attributes:
        row: The row it was made from.
        spec: What the row says.
    """

    def __init__(
        self, row: Mapping[str, Any], connections: Connections, typed: bool, where: str
    ) -> None:
        """Build the database.

        Raises:
            DataError: If the row is not what its format promises.
        """
        self.row = row
        self.spec: Spec = spec_of(row, where)
        self._where = where
        self._connections = connections
        self._content = Database.build(self.spec.tables, connections, typed).snapshot()

    def database(self) -> Database:
        """Return a fresh copy of the start state."""
        return Database(self._content, self._connections)

    def judge(self, database: Database, answer: Answer) -> tuple[float, float]:
        """Return the strict and the upstream reward of ending with this state and answer."""
        if self.spec.mutates:
            names = [table.name for table in self.spec.tables]
            return (
                float(database.state_hash() == self._state_hash),
                float(database.upstream_hash(names) == self._upstream_hash),
            )
        return (
            score(answer, self.spec.label, nothing=self._nothing),
            score_upstream(answer, self.spec.label),
        )

    def difference(self, database: Database) -> str:
        """Return which rows of a mutation's end state are missing or extra; empty if none."""
        return self._ended(lambda gold: database.difference(gold))

    def reproduced(self) -> bool:
        """True if the label is what the gold statement gives: the task can be scored.

        A mutation's end is compared with the stored digest, a question's label with the result.
        """
        if self.spec.mutates:
            names = [table.name for table in self.spec.tables]
            try:
                return self._upstream_hash == self._ended(lambda gold: gold.upstream_hash(names))
            except DataError:
                return False
        if self.spec.gold is None:
            return True
        result = self._question()
        return result is not None and self._scores(result)

    def _scores(self, result: list[tuple[Any, ...]]) -> bool:
        answer = [cell for row in result for cell in row]
        return score(answer, self.spec.label, nothing=self._nothing) == 1.0

    def _question(self) -> list[tuple[Any, ...]] | None:
        """Rows of a question's gold statement, None if it has none or it fails."""
        if self.spec.gold is None:
            return None
        database = self.database()
        try:
            return database.rows(self.spec.gold)
        except SqlError:
            return None
        finally:
            database.close()

    @cached_property
    def _nothing(self) -> bool:
        if not may_mean_nothing(self.spec.label):
            return False  # a gold statement that misses its own label is no witness
        result = self._question()
        return result is not None and all(cell is None for row in result for cell in row)

    def _ended(self, look: Callable[[Database], str]) -> str:
        """Run a mutation's gold statements on a fresh copy and look at the end."""
        database = self.database()
        statement = ""
        try:
            for statement in self.spec.label:
                database.rows(statement)
            return look(database)
        except SqlError as error:
            raise DataError(
                f"{self._where}: gold statement {statement!r} fails: {error}"
            ) from error
        finally:
            database.close()

    @cached_property
    def _state_hash(self) -> str:
        return self._ended(Database.state_hash)

    @cached_property
    def _upstream_hash(self) -> str:
        names = [table.name for table in self.spec.tables]
        return self.spec.md5 or self._ended(lambda gold: gold.upstream_hash(names))
