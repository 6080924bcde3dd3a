"""Parquet files that hold exactly their declared columns, whole or not at all.

Equal rows give equal bytes: fixed compression, no clock, no table-wide metadata. Each column's unit
and meaning travel in the file (`schema_of` returns them). pyarrow and pandas are imported when a
table is read or written, so that importing this module costs nothing.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rail import atomic
from rail.errors import TraceError
from rail.traces.schema import Column, Schema

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

COMPRESSION = "zstd"
COMPRESSION_LEVEL = 3
DTYPES = ("int64", "float64", "bool", "string", "list<float64>")
"""What `Column.dtype` may say."""


def write_table(
    path: Path, rows: "Sequence[Mapping[str, Any]] | pd.DataFrame", schema: Schema
) -> None:
    """Write `rows` as parquet with the columns of `schema`, in its order.

    Integers are accepted where floats are declared; nothing else is converted. NaN is a value of
    float columns; None is an error everywhere.

    Raises:
        TraceError: If a column is missing, undeclared, of another dtype, or holds None; names file,
            column, got and expected.
        StorageError: If the disk refuses.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = _columns_of(path, rows, schema)
    arrays = [_array(path, name, columns[name], column) for name, column in schema.items()]
    table = pa.Table.from_arrays(arrays, schema=_arrow_schema(schema))
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        compression=COMPRESSION,
        compression_level=COMPRESSION_LEVEL,
        version="2.6",
        data_page_version="1.0",
        row_group_size=1 << 20,
        write_page_checksum=True,
    )
    atomic.write_bytes(path, buffer.getvalue())


def read_table(path: Path, schema: Schema) -> "pd.DataFrame":
    """Read the columns of `schema`, in its order, as a DataFrame; other columns are left out.

    Raises:
        TraceError: If the file is missing or no whole parquet file, or a column is missing or of
            another dtype.
    """
    return read_arrow(path, schema).to_pandas()


def read_rows(path: Path, schema: Schema) -> list[dict[str, Any]]:
    """Read like `read_table`, as one plain dict per row (no pandas)."""
    return read_arrow(path, schema).to_pylist()


def read_arrow(path: Path, schema: Schema) -> "pa.Table":
    """Read like `read_table`, as a pyarrow table.

    Raises:
        TraceError: See `read_table`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise TraceError(f"{path}: no such table; run the rule that writes it")
    try:
        table = pq.ParquetFile(path, page_checksum_verification=True).read()
    except (pa.ArrowInvalid, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise TraceError(
            f"{path}: truncated or no parquet file ({reason}); delete it and run again: its rule "
            "writes it anew"
        ) from error
    missing = [name for name in schema if name not in table.column_names]
    if missing:
        raise TraceError(
            f"{path}: column {missing[0]!r} is missing (it has: {', '.join(table.column_names)}); "
            "the file was written under another schema: delete it and run again"
        )
    for name, column in schema.items():
        expected, got = _arrow_type(column), table.schema.field(name).type
        if got != expected:
            raise TraceError(
                f"{path}: column {name!r} has dtype {got}, expected {column.dtype}; the file was "
                "written under another schema: delete it and run again"
            )
    return table.select(list(schema))


def schema_of(path: Path) -> Schema:
    """Return the schema that a file written by `write_table` carries.

    Raises:
        TraceError: If the file cannot be read or a column carries no unit and meaning.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        fields = pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise TraceError(
            f"{path}: truncated or no parquet file; delete it and run again"
        ) from error
    return {field.name: _column_of(path, field) for field in fields}


def _column_of(path: Path, field: "pa.Field") -> Column:
    metadata = field.metadata or {}
    if b"meaning" not in metadata:
        raise TraceError(f"{path}: column {field.name!r} carries no meaning; not written by rail")
    unit, meaning = metadata[b"unit"].decode(), metadata[b"meaning"].decode()
    for dtype in DTYPES:
        column = Column(dtype, unit, meaning)
        if _arrow_type(column) == field.type:
            return column
    raise TraceError(f"{path}: column {field.name!r} has dtype {field.type}, which no schema uses")


def _arrow_type(column: Column) -> "pa.DataType":
    import pyarrow as pa

    types = (pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.list_(pa.float64()))
    if column.dtype not in DTYPES:
        raise TraceError(f"declared dtype {column.dtype!r} is unknown; known: {', '.join(DTYPES)}")
    return types[DTYPES.index(column.dtype)]


def _arrow_schema(schema: Schema) -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(
                name,
                _arrow_type(column),
                nullable=False,
                metadata={"unit": column.unit, "meaning": column.meaning},
            )
            for name, column in schema.items()
        ]
    )


def _columns_of(
    path: Path, rows: "Sequence[Mapping[str, Any]] | pd.DataFrame", schema: Schema
) -> dict[str, Any]:
    """Return the values by column, after checking that the names are those of the schema."""
    if not isinstance(rows, Sequence):
        names = [str(name) for name in rows.columns]
        _check_names(path, names, schema, "")
        return {name: rows[name].to_numpy() for name in names}
    for index, row in enumerate(rows):
        if row.keys() != schema.keys():
            _check_names(path, list(row), schema, f"row {index}: ")
    return {name: [row[name] for row in rows] for name in schema}


def _check_names(path: Path, names: list[str], schema: Schema, where: str) -> None:
    missing = [name for name in schema if name not in names]
    extra = [name for name in names if name not in schema]
    if missing:
        raise TraceError(f"{path}: {where}column {missing[0]!r} is missing, expected as declared")
    if extra:
        raise TraceError(
            f"{path}: {where}column {extra[0]!r} is not declared (known: {', '.join(schema)})"
        )


def _array(path: Path, name: str, values: Any, column: Column) -> "pa.Array":
    """Return `values` as the declared type.

    The type is inferred first: told to make int64 at once, pyarrow would cut 1.5 to 1.
    """
    import pyarrow as pa

    expected = _arrow_type(column)
    try:
        array = pa.array(list(values))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        kinds = sorted({type(value).__name__ for value in values})
        raise TraceError(
            f"{path}: column {name!r} mixes {', '.join(kinds)}, expected {column.dtype}"
        ) from error
    if len(array) == 0:
        return array.cast(expected)
    if array.null_count:
        where = array.is_null().to_pylist().index(True)
        raise TraceError(f"{path}: column {name!r} is None in row {where}, expected {column.dtype}")
    if not _fits(array.type, column.dtype):
        raise TraceError(f"{path}: column {name!r} got {array.type}, expected {column.dtype}")
    if column.dtype.startswith("list") and array.flatten().null_count:
        raise TraceError(f"{path}: a list of column {name!r} holds None, expected {column.dtype}")
    return array.cast(expected)


def _fits(got: "pa.DataType", dtype: str) -> bool:
    import pyarrow.types as kinds

    number = kinds.is_integer(got) or kinds.is_floating(got)
    match dtype:
        case "int64":
            return kinds.is_integer(got)
        case "float64":
            return number
        case "bool":
            return kinds.is_boolean(got)
        case "string":
            return kinds.is_string(got) or kinds.is_large_string(got)
        case _:
            return kinds.is_list(got) and (
                kinds.is_null(got.value_type)
                or kinds.is_integer(got.value_type)
                or kinds.is_floating(got.value_type)
            )
