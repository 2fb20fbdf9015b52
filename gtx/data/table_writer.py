"""Tables out: cells as they are, and never half a file under the final name."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path

from gtx.errors import InputError

_GROUP = 10_000  # rows of a Parquet row group


class TableWriter:
    """Writes rows of strings to CSV, TSV or Parquet, as the name says; `.gz` compresses text; "-" is standard output.

    A context manager. The file takes its name when all is written; after an error, or a kill, there is none (a killed
    process leaves a hidden `.part` file beside it). The same rows give the same bytes.

    Args:
        path: where to; missing folders are made.
        columns: the header.

    Raises:
        InputError: if the place cannot be written to.
    """

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str]) -> None:
        self.path = os.fspath(path)
        self.columns = list(columns)

    def __enter__(self) -> TableWriter:
        self._stack = ExitStack()
        self._part: Path | None = None
        try:
            self._write = self._open()
        except OSError as reason:
            self._stack.close()
            raise InputError(f"cannot write {self.path}: {reason.strerror or reason}") from None
        return self

    def write(self, cells: Sequence[str]) -> None:
        """Write one row; as many cells as there are columns."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self._write(cells)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            self._stack.close()
            if self._part and kind is None:
                self._part.replace(self._target)
        finally:
            if self._part:
                self._part.unlink(missing_ok=True)

    def _open(self) -> Callable[[Sequence[str]], object]:
        name = self.path.lower()
        if self.path == "-":
            sys.stdout.flush()
            return self._text(sys.stdout.buffer, ",")
        place = Path(self.path)
        if place.exists() and not place.is_file():  # a device or a pipe has no name to take over
            raw = self._stack.enter_context(place.open("wb"))
        else:
            self._target = place.resolve()
            self._target.parent.mkdir(parents=True, exist_ok=True)
            self._part = self._target.with_name(f".{self._target.name}.{os.getpid()}.part")
            raw = self._stack.enter_context(self._part.open("wb"))
        if name.endswith((".parquet", ".pq")):
            return self._parquet(raw)
        if name.endswith(".gz"):  # no name and no time inside, so that the bytes are the same on every run
            raw = self._stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0))
        return self._text(raw, "\t" if name.removesuffix(".gz").endswith((".tsv", ".tab")) else ",")

    def _text(self, raw: io.BufferedIOBase, delimiter: str) -> Callable[[Sequence[str]], object]:
        text = io.TextIOWrapper(raw, "utf-8", errors="surrogateescape", newline="")
        self._stack.callback(text.detach)  # flushes; the stream beneath is closed by whoever opened it
        plain = csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow
        quoted = csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow

        def write(cells: Sequence[str]) -> None:
            # The csv module leaves a bare carriage return unquoted, though it ends a line for whoever reads it.
            (quoted if any("\r" in cell for cell in cells) else plain)(cells)

        write(self.columns)
        return write

    def _parquet(self, raw: io.BufferedIOBase) -> Callable[[Sequence[str]], object]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([(name, pa.string()) for name in self.columns])
        file = self._stack.enter_context(pq.ParquetWriter(raw, schema))
        group: list[list[str]] = []

        def flush() -> None:
            if group:
                columns = [pa.array(column, pa.string()) for column in zip(*group, strict=True)]
                file.write_table(pa.Table.from_arrays(columns, schema=schema))
                group.clear()

        def write(cells: Sequence[str]) -> None:
            group.append([_utf8(cell) for cell in cells])
            if len(group) == _GROUP:
                flush()

        self._stack.callback(flush)
        return write


def _utf8(cell: str) -> str:
    return cell if cell.isascii() else cell.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def fresh_name(columns: Collection[str], name: str) -> str:
    """`name`, or with the first number from 1 appended that no column has: `y_pred`, `y_pred1`, `y_pred2`."""
    number = 0
    fresh = name
    while fresh in columns:
        number += 1
        fresh = f"{name}{number}"
    return fresh
