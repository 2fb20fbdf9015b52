"""Tables out: cells as they are, and never half a file under the final name."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

from gtx.base.errors import InputError
from gtx.base.files import atomic_file
from gtx.data.rows import LIMITS

if TYPE_CHECKING:
    import pyarrow as pa

    from gtx.data.rows import Record, Row

TEXT_ENDINGS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
"""Delimiter of text files by file extension; `.gz` may follow."""

PARQUET_ENDINGS = (".parquet", ".pq")

_GROUP = 10_000  # rows of a Parquet row group

Cell = str | float | bool | None
Write = Callable[[Sequence[Cell], "Record | None"], object]


def refuse_input_as_output(out: str | os.PathLike[str], *sources: object) -> None:
    """Raise InputError if `out` is a file of which a table is made, or lies within the folder of its tables."""
    for source in sources:
        if out == "-" or not isinstance(source, (str, os.PathLike)) or not os.path.exists(source):
            continue
        inside = Path(out).resolve().is_relative_to(Path(source).resolve())
        if inside and os.path.isdir(source):
            raise InputError(f"{out} is within {source}: predictions would be taken for molecules")
        if inside or (os.path.exists(out) and os.path.samefile(out, source)):  # by another name, such as a hard link
            raise InputError(f"cannot write {out}: it is read as input; give the output another name")


class TableWriter:
    """Writer of rows to CSV, TSV or Parquet, by the file extension; `.gz` compresses text; "-" is standard output.

    The writer is a context manager. The file gets its final name only when all rows are written. After an error there
    is no file; a killed process leaves a hidden `.part` file. The same rows give the same bytes.

    In text, a number has nine digits, yes and no are 1 and 0, and a missing value is an empty cell. In Parquet, columns
    have types: numbers are float64, and a missing value is null.

    Args:
        path: path of the file; missing folders are created. A device or a pipe without a file extension gets CSV.
        columns: names of all columns.
        types: types of the columns that are not text, float or bool, by name.
        schema: `gtx.data.Table.schema` of the input, if the rows come from a Parquet file. The first columns of a
            Parquet output have these types.

    Raises:
        InputError: the file cannot be written, the disk is full, or the file extension is unknown.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str],
        types: Mapping[str, type] | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        self.path: str = os.fspath(path)
        self.columns: list[str] = list(columns)
        self.types: dict[str, type] = dict(types or {})
        self.schema = schema

    def __enter__(self) -> TableWriter:
        with ExitStack() as stack, self._named_errors():
            self._write = self._open(stack)
            self._stack = stack.pop_all()
        return self

    def write(self, cells: Sequence[Cell], record: Record | None = None) -> None:
        """Write one row: as many cells as there are columns and, given a schema, the first ones as `Row.record`."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        with self._named_errors():
            self._write(cells, record)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._named_errors() if kind is None else suppress(OSError):  # of two errors the first is reported
            self._stack.__exit__(kind, error, trace)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Raise an `InputError` with the path where the file cannot be written."""
        try:
            yield
        except BrokenPipeError:  # the reader has gone, as `head` does
            raise
        except OSError as reason:
            raise InputError(f"cannot write {self.path}: {reason.strerror or reason}") from None

    def _open(self, stack: ExitStack) -> Write:
        if self.path == "-":
            sys.stdout.flush()
            return self._text(stack, sys.stdout.buffer, ",")
        place = Path(self.path)
        device = place.exists() and not place.is_file() and not place.is_dir()
        name = place.name.lower()
        ending = Path(name.removesuffix(".gz")).suffix
        parquet = name.endswith(PARQUET_ENDINGS)
        if not (parquet or ending in TEXT_ENDINGS or (device and not ending)):
            raise InputError(
                f"cannot write {self.path}: the ending of its name says what is written, and it should be one of "
                f"{', '.join(TEXT_ENDINGS)} (.gz may follow) and {', '.join(PARQUET_ENDINGS)}"
            )
        # a device has no name to take over
        raw: IO[bytes] | gzip.GzipFile = stack.enter_context(place.open("wb") if device else atomic_file(place))
        if parquet:
            return self._parquet(stack, raw)
        if name.endswith(".gz"):  # no name and no time inside, so that the bytes are the same on every run
            raw = stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0))
        return self._text(stack, raw, TEXT_ENDINGS.get(ending, ","))

    def _text(self, stack: ExitStack, raw: IO[bytes] | gzip.GzipFile, delimiter: str) -> Write:
        text = io.TextIOWrapper(raw, "utf-8", errors="replace", newline="")  # a cell from Python may be no UTF-8
        stack.callback(text.detach)  # flushes; the stream beneath is closed by whoever opened it
        unquoted = csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow
        quoted = csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow

        def write(cells: Sequence[Cell], record: Record | None = None) -> None:
            texts = [cell if type(cell) is str else as_text(cell) for cell in cells]
            # The csv module leaves a bare carriage return unquoted, though it ends a line for whoever reads it.
            (quoted if "\r" in "".join(texts) else unquoted)(texts)

        write(self.columns)
        return write

    def _parquet(self, stack: ExitStack, raw: IO[bytes] | gzip.GzipFile) -> Write:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from gtx.data.parquet import gather

        typed = list(self.schema or ())
        kinds = {str: pa.string(), float: pa.float64(), bool: pa.bool_()}
        further = [pa.field(name, kinds[self.types.get(name, str)]) for name in self.columns[len(typed) :]]
        schema = pa.schema(typed + further, self.schema and self.schema.metadata)
        file = stack.enter_context(pq.ParquetWriter(raw, schema))
        group: list[tuple[Sequence[Cell], Record | None]] = []
        weight = 0

        def flush() -> None:
            nonlocal weight
            if group:
                rows, records = zip(*group, strict=True)
                columns = zip(further, zip(*rows, strict=True), strict=True)
                new = [pa.array(map(_as_typed, column), field.type) for field, column in columns]
                old = gather(records, self.schema) if typed else []
                file.write_table(pa.Table.from_arrays([*old, *new], schema=schema))
                group.clear()
                weight = 0

        def write(cells: Sequence[Cell], record: Record | None = None) -> None:
            nonlocal weight
            group.append((cells[len(typed) :], record))
            weight += sum(len(cell) for cell in cells if isinstance(cell, str))
            if len(group) == _GROUP or weight > LIMITS.heaviest:
                flush()

        stack.callback(flush)
        return write


def as_text(cell: Cell) -> str:
    """Write a cell as text: nine digits of a number, nothing for a missing value, 1 and 0 for yes and no."""
    if cell is None or cell != cell:
        return ""
    return str(cell) if isinstance(cell, str) else f"{cell:.9g}"


def _as_typed(cell: Cell) -> Cell:
    """Convert a cell for Parquet: null for a missing value, and text in UTF-8."""
    if isinstance(cell, str):
        return cell if cell.isascii() else cell.encode("utf-8", "replace").decode()
    return None if cell != cell else cell


def find_unused_column_name(columns: Collection[str], name: str) -> str:
    """Return a column name that the table does not use yet: `y_pred`, or else `y_pred1`, `y_pred2` and so on."""
    number = 0
    fresh = name
    while fresh in columns:
        number += 1
        fresh = f"{name}{number}"
    return fresh


def output_row(row: Row, answer: Sequence[Cell], error: str | None, warnings: Sequence[str]) -> list[Cell]:
    """Return the cells of a row, unchanged, then an answer or an error, and the warnings."""
    return [*row.cells, *([None] * len(answer) if error else answer), error, "; ".join(warnings) or None]


def output_header(columns: Sequence[str], named: Sequence[str]) -> list[str]:
    """Return the columns of a table of such rows."""
    header = [*columns, *named]
    for name in ("error", "warning"):
        header.append(find_unused_column_name(header, name))
    return header
