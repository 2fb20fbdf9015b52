"""Parquet files: cells as strings, and beside them as the types they have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as types

from gtx.data.columns import smiles_index
from gtx.data.rows import Row, Table, damage
from gtx.errors import InputError

if TYPE_CHECKING:
    from gtx.data.rows import Record

BATCH = 4096  # rows decoded at a time


def read_parquet(path: str, smiles_column: str | None) -> Table:
    """A Parquet file; see `gtx.data.tables.open_table`."""
    try:
        file = pq.ParquetFile(path, pre_buffer=False)  # buffering ahead would hold a whole row group
    except (OSError, pa.ArrowException) as reason:
        raise InputError(f"cannot read {path}: {reason}") from None
    schema = file.schema_arrow
    places = [i for i, field in enumerate(schema) if field.name.lower() == "coordinates" and _is_numbers(field.type)]
    others = [i for i in range(len(schema)) if i not in places]
    columns = [schema[i].name for i in others]
    smiles = smiles_index(columns, smiles_column)

    def rows() -> Iterator[Row]:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=BATCH):
                record = batch.select(others)
                table = zip(*map(_strings, record.columns), strict=True)
                where = map(_flat, batch.column(places[0])) if places else [None] * batch.num_rows
                for i, (cells, coordinates) in enumerate(zip(table, where, strict=True)):
                    number += 1
                    text = cells[smiles]
                    yield Row(number, list(cells), text, coordinates, damage(text), (record, i))
        except (OSError, pa.ArrowException) as reason:
            raise InputError(f"cannot read {path} after row {number}: {reason}") from None

    kept = pa.schema([schema[i] for i in others], schema.metadata)
    return Table(columns, columns[smiles], rows(), file.metadata.num_rows, kept)


def gathered(records: Sequence[Record]) -> list[pa.ChunkedArray]:
    """The columns of some rows of a Parquet file, given as `Row.record`."""
    runs = []  # neighbours are copied together
    for _, run in groupby(enumerate(records), lambda numbered: (id(numbered[1][0]), numbered[1][1] - numbered[0])):
        (_, (batch, start)), *rest = run
        runs.append(batch.slice(start, 1 + len(rest)))
    return pa.Table.from_batches(runs, runs[0].schema).columns


def _strings(column: pa.Array) -> list[str]:
    try:
        return column.cast(pa.string()).fill_null("").to_pylist()
    except pa.ArrowException:  # bytes that are not UTF-8, lists, structures
        return [_string(value) for value in column.to_pylist()]


def _string(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return "" if value is None else str(value)


def _is_numbers(kind: pa.DataType) -> bool:
    nested = _is_list(kind)
    while _is_list(kind):
        kind = kind.value_type
    return nested and (types.is_floating(kind) or types.is_integer(kind))


def _is_list(kind: pa.DataType) -> bool:
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _flat(cell: pa.Scalar) -> np.ndarray | None:
    values = cell.values
    while values is not None and _is_list(values.type):
        values = values.flatten()
    return None if values is None else values.to_numpy(zero_copy_only=False).astype(np.float32)
