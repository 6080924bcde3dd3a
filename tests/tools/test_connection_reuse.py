"""A connection that is reused for another database must not remember the one before.

sqlite 3.40 has two traps here: deserialize() on a used connection does not expire Python's prepared
statements, and it frees the schema that a table-valued `pragma_table_info` still points to.
"""

import subprocess
import sys

from rail.tools.sql import Connections, Database, Table


def _database(columns: list[str], pool: Connections) -> Database:
    return Database.build(
        [Table("t", columns, ["TEXT"] * len(columns), [["1"] * len(columns)])], pool
    )


def test_a_table_of_the_same_name_shows_its_own_columns() -> None:
    pool = Connections()
    first = _database(["a", "b"], pool)
    assert first.execute("SELECT * FROM t").text == "[('1', '1')]"
    first.close()
    second = _database(["a", "b", "c"], pool)
    assert second.execute("SELECT * FROM t").text == "[('1', '1', '1')]"
    assert second.contents("t")[0] == ["a", "b", "c"]


_LOOK_UPS = """
from rail.tools.sql import Connections, Database, Table
pool = Connections()
for i in range(2000):
    db = Database.build([Table(f"t{i % 700}", ["name", "c"], ["TEXT"] * 2, [["a", "1"]])], pool)
    for query in ("SELECT column_name FROM information_schema.columns", f"DESCRIBE t{i % 700}"):
        assert "name" in db.execute(query).text
    db.execute(f"SELECT name FROM t{i % 700}")
    db.close()
"""


def test_schema_look_ups_survive_reuse() -> None:
    done = subprocess.run([sys.executable, "-c", _LOOK_UPS], capture_output=True, text=True)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-500:]}"
