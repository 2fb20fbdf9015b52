"""Parquet files: cells as strings, and beside them as the types they have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as types

from gtx.base.errors import InputError, printable
from gtx.data.rows import (
    FIRST_ROWS,
    LIMITS,
    MoleculeColumn,
    Row,
    Table,
    check_number_of_columns,
    damage,
    decode_stray_bytes,
    notes_on_names,
    smiles_index,
    too_long,
)

if TYPE_CHECKING:
    from gtx.data.rows import Record

BATCH = 4096  # rows decoded at a time, at most
NESTED_BATCH = 256  # the same where columns hold lists, whose lengths no file says beforehand
_FAULTS = (OSError, MemoryError, ValueError, LookupError, TypeError, pa.ArrowException)
"""Exceptions of a damaged file; a name that is no text is a ValueError."""


def read_parquet(path: str, wanted: MoleculeColumn, name: str) -> Table:
    """Open a Parquet file, called `name` in messages; see `gtx.data.tables.open_table`.

    Texts stay packed, each different one once, until the rows too long to be kept are known: a file of a kilobyte can
    hold a text of a gigabyte in every row.
    """
    try:
        file = pq.ParquetFile(path, pre_buffer=False)  # buffering ahead would hold a whole row group
        # a row that is too long comes out as nulls; views, which exist in memory alone, are read as texts
        plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
        types_of_fields = [field.with_type(plain.get(field.type, field.type)) for field in file.schema_arrow]
        schema = pa.schema([field.with_nullable(True) for field in types_of_fields], file.schema_arrow.metadata)
        leaves = [file.schema.column(i) for i in range(file.metadata.num_columns)]
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        fixed = [leaf for leaf in leaves if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY"]
        packed = pq.ParquetFile(path, metadata=file.metadata, pre_buffer=False, read_dictionary=texts)
        names = schema.names
    except _FAULTS as reason:
        raise InputError(f"cannot read {name}: {reason}") from None
    for leaf in fixed:
        if leaf.length > LIMITS.longest_row:
            much = f"column {printable(leaf.path)!r} holds {leaf.length:,} bytes in each row"
            raise InputError(f"cannot read {name}: {much}")
    width = sum(leaf.length for leaf in fixed)  # bytes of the texts of fixed length in a row
    places = [i for i, field in enumerate(schema) if names[i].lower() == "coordinates" and _is_numbers(field.type)]
    others = [i for i in range(len(schema)) if i not in places]
    columns = [names[i] for i in others]
    check_number_of_columns(len(columns), name)

    def first_rows() -> list[tuple[str, ...]]:
        try:
            first = (batch.select(others).slice(0, FIRST_ROWS) for batch, _ in _batches(packed, schema, width))
            return list(zip(*map(strings, next(first).columns), strict=True))
        except StopIteration:
            return []
        except _FAULTS as reason:
            raise InputError(f"cannot read {name}: {reason}") from None

    smiles = smiles_index(columns, wanted, first_rows)

    def rows() -> Iterator[Row]:
        number = 0
        try:
            for batch, within_limits in _batches(packed, schema, width):
                record = batch.select(others)
                table = zip(*map(strings, record.columns), strict=True)
                where = map(_flat, batch.column(places[0])) if places else [None] * batch.num_rows
                readable = enumerate(zip(table, where, strict=True))
                for is_within in within_limits:
                    number += 1
                    if not is_within:
                        yield Row(number, [""] * len(columns), "", error=too_long())
                        continue
                    i, (cells, coordinates) = next(readable)
                    text = cells[smiles]
                    yield Row(number, list(cells), text, coordinates, damage(text), (record, i))
        except _FAULTS as reason:
            raise InputError(f"cannot read {name} after row {number}: {reason}") from None
        if number != (expected := file.metadata.num_rows):
            raise InputError(f"{name} is damaged: it says that it has {expected} rows, and {number} came")

    types_of_columns = pa.schema([schema[i] for i in others], schema.metadata)
    notes = notes_on_names(columns, smiles)
    return Table(columns, columns[smiles], rows(), file.metadata.num_rows, types_of_columns, notes)


def gather(records: Sequence[Record | None], schema: pa.Schema) -> list[pa.ChunkedArray]:
    """Return the columns of some rows of a Parquet file, given as `Row.record`; nulls where a row has none."""
    runs = []  # neighbours are copied together
    numbered = enumerate(records)
    for _, run in groupby(numbered, lambda one: one[1] and (id(one[1][0]), one[1][1] - one[0])):
        (_, first), *rest = run
        if first is None:
            nothing = [pa.nulls(1 + len(rest), field.type) for field in schema]
            runs.append(pa.RecordBatch.from_arrays(nothing, schema=schema))
        else:
            runs.append(first[0].slice(first[1], 1 + len(rest)))
    return pa.Table.from_batches(runs, schema).columns


def _batches(file: pq.ParquetFile, schema: pa.Schema, width: int) -> Iterator[tuple[pa.RecordBatch, list[bool]]]:
    """Yield some rows at a time: the decoded rows within the limits, and a flag for every row."""
    size = _batch_size(file.metadata, schema, width)
    groups = range(file.metadata.num_row_groups)  # in one batch two of them could not keep nested texts
    for batch in chain.from_iterable(file.iter_batches(size, row_groups=[group]) for group in groups):
        weights = sum(map(_weight, batch.columns), np.zeros(batch.num_rows, np.int64))
        within_limits = weights <= LIMITS.longest_row
        for start, stop in _pieces(np.where(within_limits, weights, 0)):
            part, mask = batch.slice(start, stop - start), within_limits[start:stop]
            if not mask.all():
                part = part.filter(pa.array(mask))
            columns = [c if c.type == field.type else c.cast(field.type) for c, field in zip(part, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema), mask.tolist()


def _batch_size(metadata: pq.FileMetaData, schema: pa.Schema, width: int) -> int:
    """Choose the number of rows with some `LIMITS.heaviest` bytes, by the metadata of the file."""
    groups = (metadata.row_group(g) for g in range(metadata.num_row_groups))
    most = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=0)
    most = max(most, width) + 50 * len(schema)  # what the string of a cell takes
    nested = any(types.is_nested(field.type) for field in schema)
    return int(np.clip(LIMITS.heaviest / most, 1, NESTED_BATCH if nested else BATCH))


def _weight(column: pa.Array) -> np.ndarray:
    """Estimate the memory of each cell when unpacked, in bytes; int64 `[n]`."""
    kind = column.type
    packed = types.is_dictionary(kind) and _is_text(kind.value_type)
    if packed or _is_text(kind):
        lengths = pc.binary_length(column.dictionary).take(column.indices) if packed else pc.binary_length(column)
        return lengths.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if types.is_struct(kind):
        return sum(map(_weight, column.flatten()), np.zeros(len(column), np.int64))
    if types.is_map(kind):
        entries = pa.StructArray.from_arrays([column.keys, column.items], ["key", "item"])
        column = pa.ListArray.from_arrays(column.offsets, entries)
    if _is_list(column.type):
        rows = pc.list_parent_indices(column).to_numpy()
        return np.bincount(rows, 4 + _weight(column.flatten()), len(column)).astype(np.int64)
    fixed = types.is_primitive(kind) or types.is_fixed_size_binary(kind)
    return np.full(len(column), kind.bit_width // 8 if fixed else 8)


def _pieces(weights: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the start and end of pieces, each one row or no heavier than `LIMITS.heaviest`."""
    ends, start = np.cumsum(weights), 0
    while start < len(weights):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + LIMITS.heaviest, "right")))
        yield start, stop
        start = stop


def strings(column: pa.Array) -> list[str]:
    """Convert cells to texts; null to an empty one."""
    try:
        return column.cast(pa.string()).fill_null("").to_pylist()
    except pa.ArrowException:  # bytes that are not UTF-8, lists, structures
        return [_string(value) for value in column.to_pylist()]


def _string(value: object) -> str:
    if isinstance(value, bytes):
        return decode_stray_bytes(value.decode("utf-8", "surrogateescape"))
    return "" if value is None else str(value)


def _is_text(kind: pa.DataType) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)


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
