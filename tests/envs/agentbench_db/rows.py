"""Small rows in upstream format."""

from typing import Any

ROWS = [["Ann", "4"], ["Bob", "10"], ["Cid", "7"]]


def question(label: list[str], gold: str = "", **fields: Any) -> dict[str, Any]:
    """Return a question about table `people` (name, age)."""
    sql = {"sql": {"query": gold, "length": len(gold)}} if gold else {}
    return {**_base("other"), "label": label, **sql, **fields}


def mutation(gold: str, md5: str = "", kind: str = "UPDATE") -> dict[str, Any]:
    """Return a mutation of table `people`."""
    return {**_base(kind), "label": [gold], "answer_md5": f"[('{md5}',)]" if md5 else ""}


def _base(kind: str) -> dict[str, Any]:
    return {
        "description": "How old is Ann?",
        "type": [kind],
        "add_description": "The name of this table is people, and its headers are name,age.",
        "table": {
            "table_name": "people",
            "table_info": {
                "columns": [{"name": "name", "type": "TEXT"}, {"name": "age", "type": "INT"}],
                "rows": ROWS,
            },
        },
    }
