"""Tables of molecules, read as a stream: CSV, TSV, Parquet, SMILES files, SDF, standard input, a bare SMILES.

Cells stay the strings they were, so that what goes in can come out byte for byte. A damaged row is a row with an error.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TypeVar

from gtx.data.columns import smiles_index
from gtx.data.delimited import records, sniff
from gtx.data.rows import Row, Table, damage
from gtx.errors import InputError

T = TypeVar("T")

_FILE_NAME = re.compile(
    r"\.(csv|tsv|tab|txt|dat|smi|smiles|ism|sdf?|mol2?|pdb|xyz|parquet|pq|xlsx?|json|gtx|npz|gz|zip)$", re.IGNORECASE
)


def open_table(source: str | os.PathLike[str], smiles_column: str | None = None) -> Table:
    """Open a table of molecules; whatever its size, it is read piece by piece.

    Args:
        source: a file (an existing one comes before anything else), "-" for standard input with a SMILES a line, or a
            SMILES. The file's kind follows from its name: `.parquet`, `.smi` or `.smiles` (a SMILES, white space, a
            name), `.sdf` (properties are columns), anything else is delimited text (comma, semicolon or tab). Text is
            UTF-8, with or without a byte-order mark, and may be gzipped. A list column `coordinates` of a Parquet file
            holds coordinates in Å and is not among the columns.
        smiles_column: where there are columns to choose from; by default the one called "smiles", in any case, or the
            only one whose name contains that.

    Raises:
        InputError: for a missing, unreadable or empty file, or one without such a column.
    """
    name = os.fspath(source)
    if name == "-":
        return _read_smiles(_stdin_lines(), named=False)
    if not os.path.exists(name):
        if isinstance(source, os.PathLike) or _looks_like_path(name):
            raise InputError(f"no such file: {name}")
        return _table_of_lines(["smiles"], iter([[name]]), length=1)
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    if suffix in (".parquet", ".pq"):
        from gtx.data.parquet import read_parquet

        return read_parquet(name, smiles_column)
    if suffix in (".sdf", ".sd", ".mol"):
        return _read_sdf(name, smiles_column)
    if suffix in (".smi", ".smiles", ".ism"):
        return _read_smiles(_text_lines(name), named=True)
    return _read_delimited(name, smiles_column, default="\t" if suffix in (".tsv", ".tab") else ",")


def _looks_like_path(name: str) -> bool:
    return bool(_FILE_NAME.search(name)) or name.startswith(("/", "~", "./", "../")) or "_" in name


# Delimited text


def _read_delimited(path: str, smiles_column: str | None, default: str) -> Table:
    lines = _text_lines(path)
    header = next((line for line in lines if line.strip()), None)
    if header is None:
        raise InputError(f"{path} is empty")
    delimiter = sniff(header, [(smiles_column or "smiles").lower()], default)
    stream = records(chain([header], lines), delimiter)
    columns, broken = next(stream)
    if broken or (broken := damage("".join(columns))):
        raise InputError(f"the header of {path} cannot be read: {broken}")
    smiles = smiles_index(columns, smiles_column)

    def rows() -> Iterator[Row]:
        for number, (cells, error) in enumerate(_without_last_blanks(stream, lambda record: not record[0]), start=1):
            error = error or _misfit(cells, len(columns))
            cells = _fit(cells, len(columns), delimiter)
            yield _row(number, cells, cells[smiles], error=error)

    return Table(columns, columns[smiles], rows())


def _misfit(cells: list[str], width: int) -> str | None:
    if len(cells) == width or (width == 1 and not cells):
        return None
    return f"{len(cells)} cells where the header has {width}" if cells else "blank line"


def _fit(cells: list[str], width: int, delimiter: str) -> list[str]:
    """Ragged cells made to fit the header with nothing lost."""
    if len(cells) > width:
        return [*cells[: width - 1], delimiter.join(cells[width - 1 :])]
    return cells + [""] * (width - len(cells))


def _row(number: int, cells: list[str], text: str, error: str | None = None) -> Row:
    return Row(number, cells, text, error=error or damage(text))


def _without_last_blanks(items: Iterable[T], blank: Callable[[T], bool]) -> Iterator[T]:
    """All items but the blank ones at the end: a blank line amid a file is a row, those that end it are not."""
    held: list[T] = []
    for item in items:
        held.append(item)
        if not blank(item):
            yield from held
            held.clear()


# SMILES, a line each


def _read_smiles(lines: Iterator[str], named: bool) -> Table:
    """A SMILES a line and, if `named`, white space and a name; a first line that says "smiles" is a header."""
    first = next(lines, None)
    if first is None:
        raise InputError("there is nothing to read: not one line")
    if first.lower().split()[:1] != ["smiles"]:
        lines = chain([first], lines)
    lines = _without_last_blanks((line.rstrip("\r\n") for line in lines), lambda line: not line.strip())
    if not named:
        return _table_of_lines(["smiles"], ([line] for line in lines))
    return _table_of_lines(["smiles", "name"], (_fit(line.split(None, 1), 2, " ") for line in lines))


def _table_of_lines(columns: list[str], lines: Iterator[list[str]], length: int | None = None) -> Table:
    rows = (_row(number, cells, cells[0]) for number, cells in enumerate(lines, start=1))
    return Table(columns, columns[0], rows, length)


# SDF


def _read_sdf(path: str, smiles_column: str | None) -> Table:
    from gtx.molecules import MoleculeError
    from gtx.molecules.sdf import molblock_smiles, sdf_records

    properties: dict[str, None] = {}
    titled, length = False, 0
    for record in sdf_records(_text_lines(path)):
        properties.update(dict.fromkeys(record.properties))
        titled |= bool(record.title)
        length += 1
    if not length:
        raise InputError(f"{path} is empty")
    if broken := damage("".join(properties)):
        raise InputError(f"the property names of {path} cannot be read: {broken}")
    shown = [smiles_column] if smiles_column in properties else [p for p in properties if p.lower() == "smiles"]
    smiles = shown[0] if shown else "smiles"
    title = "name" if titled and "name" not in properties else None
    columns = ([] if shown else [smiles]) + ([title] if title else []) + list(properties)

    def rows() -> Iterator[Row]:
        for number, record in enumerate(sdf_records(_text_lines(path)), start=1):
            block = record.block.encode("utf-8", "replace").decode()  # stray bytes in a title harm nothing
            cells = dict(record.properties)
            if title:
                cells[title] = record.title
            if not shown:
                try:
                    cells[smiles] = molblock_smiles(block)
                except MoleculeError:
                    cells[smiles] = ""
            error = None if "\nM  END" in block else 'mol block without "M  END"'
            yield _row(number, [cells.get(column, "") for column in columns], block, error=error)

    return Table(columns, smiles, rows(), length)


# Text


def _text_lines(path: str) -> Iterator[str]:
    """The lines of a text file with their ends, decompressed; bytes that are not UTF-8 survive as surrogates."""
    try:
        with open(path, "rb") as raw, gzip.open(raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw as stream:
            yield from io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
    except (OSError, EOFError, zlib.error) as reason:
        raise InputError(f"cannot read {path}: {reason}") from None


def _stdin_lines() -> Iterator[str]:
    text = io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield from text
    finally:
        text.detach()  # standard input is not ours to close
