"""Tables of molecules, read as a stream: CSV, TSV, Parquet, SMILES files, SDF, standard input, a bare SMILES.

Cells are kept as the strings in the file, so that an output table has the same bytes. A damaged row is a row with an
error.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import shutil
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, TextIO, TypeVar, cast

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.base.files import example_file
from gtx.data.rows import (
    FIRST_ROWS,
    LIMITS,
    MoleculeColumn,
    Row,
    Table,
    check_number_of_columns,
    damage,
    decode_stray_bytes,
    first_side,
    is_molecule,
    join_sides,
    molecule_columns,
    notes_on_names,
    plural,
    smiles_index,
    too_long,
)
from gtx.data.table_writer import find_unused_column_name

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")
Lines = Iterator[str | None]

_KINDS = (
    dict.fromkeys((".sdf", ".sd", ".mol"), "sdf")
    | dict.fromkeys((".smi", ".smiles", ".ism"), "smiles")
    | dict.fromkeys((".csv", ".tsv", ".tab"), "delimited")
)
"""Kinds of text files, by the ending of their names; where it says nothing, by their first lines."""

_COUNTS_LINE = re.compile(r".*\bV[23]000\s*$", re.DOTALL)  # the fourth line of a mol block
_DELIMITER_LINE = re.compile(r"\s*\"?sep=([,;\t])\"?\s*$")


def open_table(
    source: str | os.PathLike[str] | Sequence[str] | io.BufferedReader,
    smiles_column: str | None = None,
    usual_column: str | None = None,
) -> Table:
    """Open a table of molecules (CSV, TSV, SMILES, SDF or Parquet); rows are read one after the other, at any file
    size.

    The ending of the file name determines the kind of the file: `.parquet`, `.smi` or `.smiles` (a SMILES, white space,
    a name; or more columns with names in a header, separated by white space, or by tabs, beside which a cell may be
    blank), `.sdf` (properties are columns), `.csv`
    and `.tsv` (comma, semicolon or tab; white space if the header has none of these). Without a file name, as for
    standard input, the first lines determine the kind. Text is UTF-8, with or without a byte-order mark, and may be
    gzipped; other bytes are read as Windows-1252, with a warning. A list column `coordinates` of a Parquet file holds
    coordinates in Å and is not among the columns. A row above `gtx.data.rows.LIMITS` is a row with an error.

    Args:
        source: path of a file, "-" for standard input, a SMILES, a list of SMILES, or an open binary stream. A text
            that is the path of an existing file is always a file.
        smiles_column: name of the column of molecules, if the table has several columns; for reactions whose sides are
            in two columns, their names with the arrow between them: `reactants>>products`.
        usual_column: name of the column of molecules if `smiles_column` is not given. If the table has no such column,
            gtx takes the column called "smiles" (in any case), or else the only column whose name contains "smiles", or
            else the only column whose first rows can be read as molecules.

    Raises:
        InputError: for a missing, unreadable or empty file, one without such a column, a SMILES that cannot be read,
            or a list with the name of a file.
    """
    wanted = MoleculeColumn(first_side(smiles_column), first_side(usual_column))
    return join_sides(_open(source, wanted), smiles_column, usual_column)


def _open(source: str | os.PathLike[str] | Sequence[str] | io.BufferedReader, wanted: MoleculeColumn) -> Table:
    if isinstance(source, io.BufferedReader):
        return _read_stream(source, wanted, "the table")
    if not isinstance(source, str | os.PathLike):
        check_smiles(source)
        return _of_smiles(source)
    check_source(source)
    name = os.fspath(source)
    if os.path.isdir(name):
        raise InputError(f"{name} is a folder; a table, which is one file, was expected (gtx predict reads folders)")
    if Path(name.lower().removesuffix(".gz")).suffix in (".parquet", ".pq") and os.path.exists(name):
        from gtx.data.parquet import read_parquet

        return read_parquet(name, wanted, name)
    if name == "-":
        return _read_stream(standard_input(), wanted, "standard input")
    if not os.path.exists(name):
        return _of_smiles([name])
    suffix, lines = Path(name.lower().removesuffix(".gz")).suffix, file_lines(name)
    kind = _KINDS.get(suffix)
    if kind is None:
        kind, lines = _kind(lines, wanted)
    if kind == "sdf":
        return _read_sdf(lambda: file_lines(name), wanted, name)
    if kind == "smiles":
        return _read_smiles(lines, wanted, name)
    return _read_delimited(lines, wanted, name, default="\t" if suffix in (".tsv", ".tab") else ",")


def _of_smiles(every: Sequence[str]) -> Table:
    rows = (Row.of_text(number, ["smiles"], [text], text) for number, text in enumerate(every, start=1))
    return Table(["smiles"], "smiles", rows, len(every))


# What no name tells


def _read_stream(raw: io.BufferedReader, wanted: MoleculeColumn, name: str) -> Table:
    """Read a stream as a file of the same content; formats that must be read twice are copied to a temporary file."""
    if raw.peek(4)[:4] == b"PAR1":
        from gtx.data.parquet import read_parquet

        return _read_copy(partial(shutil.copyfileobj, raw), name, lambda path: read_parquet(path, wanted, name))
    kind, lines = _kind(text_lines(raw, name), wanted)
    if kind == "sdf":
        too_long = " " * (LIMITS.longest_row + 1) + "\n"
        texts = ((too_long if line is None else line).encode("utf-8", "surrogateescape") for line in lines)
        return _read_copy(
            lambda file: file.writelines(texts), name, lambda path: _read_sdf(lambda: file_lines(path), wanted, name)
        )
    return (_read_smiles if kind == "smiles" else _read_delimited)(lines, wanted, name)


def _kind(lines: Lines, wanted: MoleculeColumn) -> tuple[str, Lines]:
    """Detect the format from the first lines, "sdf", "smiles" or "delimited"; return it and all lines."""
    head: list[str | None] = []
    for line in islice(lines, 200):
        head.append(line)
        if sum(len(one or "") for one in head) > 2**20:
            break
    texts = [line or "" for line in head]
    ends = any(line.startswith(("$$$$", "M  END")) for line in texts)
    if ends or any(map(_COUNTS_LINE.match, texts[3:4])):
        kind = "sdf"
    else:
        kind = "smiles" if _is_smiles(next(filter(str.strip, texts), ""), wanted) else "delimited"
    return kind, chain(head, lines)


def _is_smiles(line: str, wanted: MoleculeColumn) -> bool:
    """Return whether the first line belongs to a SMILES file, and is not the header of a table."""
    names = line.rstrip("\r\n").split(sniff(line, wanted.names))
    if wanted.find(names) and (len(names) > 1 or not line.split()[1:]):
        return False
    return len(names) == 1 or is_molecule(line.split()[0])


def _read_copy(write: Callable[[IO[bytes]], object], name: str, read: Callable[[str], Table]) -> Table:
    """Read a table from a temporary file, which is deleted when the rows have been read."""
    try:
        file = NamedTemporaryFile()  # noqa: SIM115 it is closed when the table has been read
        write(file)
        file.flush()
    except OSError as reason:
        raise InputError(f"cannot keep {name} in a file while it is read: {reason}") from None
    table = read(file.name)

    def rows() -> Iterator[Row]:
        with file:
            yield from table.rows

    return replace(table, rows=rows())


# Delimited text


def _read_delimited(lines: Lines, wanted: MoleculeColumn, name: str, default: str = ",") -> Table:
    header = _first_line(lines, name)
    if named := _DELIMITER_LINE.match(header):  # a line of Excel's, before the header
        header, default = _first_line(lines, name), named[1]
    delimiter = sniff(header, wanted.names, default)
    if delimiter not in header:
        ahead = list(islice(lines, FIRST_ROWS))
        lines = chain(ahead, lines)
        names, filled = _header_words(header, ahead, wanted), [line.split() for line in ahead if line and line.strip()]
        if len(names) > 1 and filled and min(map(len, filled)) >= len(names):
            return _read_words(names, lines, wanted)
    stream = records(chain([header], lines), delimiter)
    columns, broken = next(stream)
    if broken:
        raise InputError(f"the header of {name} cannot be read: {broken}")
    columns = [decode_stray_bytes(column) for column in columns]
    if damaged := damage("".join(columns)):
        raise InputError(f"the header of {name} {damaged}")
    check_number_of_columns(len(columns), name)
    first: list[tuple[list[str], str | None]] = []

    def first_rows() -> list[list[str]]:
        first.extend(islice(stream, FIRST_ROWS))
        return [cells for cells, _ in first if len(cells) == len(columns)]

    smiles = smiles_index(columns, wanted, first_rows)
    return _of_records(columns, smiles, chain(first, stream), delimiter)


def _of_records(
    columns: list[str], smiles: int, every: Iterable[tuple[list[str], str | None]], delimiter: str
) -> Table:
    """Make a table of the cells and the error of each record; one without cells is a blank line."""

    def rows() -> Iterator[Row]:
        width = len(columns)
        for number, (cells, error) in enumerate(_without_last_blanks(every, ([], None)), start=1):
            if len(cells) != width:
                error = error or _misfit(cells, columns)
                cells = _fit(cells, width, delimiter)
            yield Row.of_text(number, columns, cells, cells[smiles], error)

    return Table(columns, columns[smiles], rows(), notes=notes_on_names(columns, smiles))


def _first_line(lines: Lines, name: str) -> str:
    """Return the first line that is not blank."""
    line = next((line for line in lines if line is None or line.strip()), "")
    if not line:
        raise InputError(f"{name} is empty" if line == "" else f"the header of {name} {too_long()}")
    return line


def _misfit(cells: list[str], columns: list[str]) -> str | None:
    """Describe what is wrong with ragged cells; None if cells and header differ by blanks at the end alone."""
    width = len(columns)
    if (width == 1 and not cells) or (cells and not any(map(str.strip, cells[width:] + columns[len(cells) :]))):
        return None
    return f"{plural(len(cells), 'cell')} where the header has {width}" if cells else "blank line"


def _fit(cells: list[str], width: int, delimiter: str) -> list[str]:
    """Fit ragged cells to the width of the header without loss, but for blank cells at the end."""
    while len(cells) > width and not cells[-1].strip():
        cells = cells[:-1]
    if len(cells) > width:
        return [*cells[: width - 1], delimiter.join(cells[width - 1 :])]
    return cells + [""] * (width - len(cells))


def _without_last_blanks(items: Iterable[T], blank: T) -> Iterator[T]:
    """Yield all items but the blank ones at the end: a blank line is a row unless only blank lines follow."""
    blanks = 0  # counted and not held: a small packed file may have millions
    for item in items:
        if item == blank:
            blanks += 1
        else:
            yield from repeat(blank, blanks)
            yield item
            blanks = 0


# SMILES, a line each


def _read_smiles(lines: Lines, wanted: MoleculeColumn, name: str) -> Table:
    """Read one SMILES per line, white space and a name; or columns with names in a header; tabs between three or more
    keep blank cells apart.
    """
    first = next(lines, "")
    if first == "":
        raise InputError("there is nothing to read: not one line")
    ahead = list(islice(lines, FIRST_ROWS))
    if names := _header_words(first or "", ahead, wanted):
        if _has_tabs(first or "", names):
            return _read_delimited(chain([first], ahead, lines), wanted, name, "\t")
        return _read_words(names if names[1:] else [*names, "name"], chain(ahead, lines), wanted)
    return _read_words(["smiles", "name"], chain([first], ahead, lines), MoleculeColumn("smiles"))


def _header_words(header: str, ahead: Sequence[str | None], wanted: MoleculeColumn) -> list[str]:
    """Return the names of columns that are separated by white space; none if the first line is no such header."""
    names = header.split()
    places = wanted.find(names)
    if not places or names[0].lower() in wanted.names:
        return names if places else []
    tab = "\t" if _has_tabs(header, names) else None
    rows = [line.split(tab) for line in ahead if line]
    molecules = [cells[places[0]] for cells in rows if len(cells) > places[0]]
    return names if any(map(is_molecule, molecules)) and not is_molecule(names[0]) else []


def _has_tabs(header: str, names: Sequence[str]) -> bool:
    """Return whether tabs separate the three or more names of a header."""
    return len(names) > 2 and list(names) == list(map(str.strip, header.split("\t")))


def _read_words(columns: list[str], lines: Lines, wanted: MoleculeColumn) -> Table:
    """Read columns that are separated by white space; the last has the rest of the line."""
    width = len(columns)
    if wanted.requested not in columns:
        wanted = MoleculeColumn(None, wanted.usual)
    first = list(islice(lines, FIRST_ROWS))
    words = [line.split(None, width - 1) for line in first if line]
    smiles = smiles_index(columns, wanted, lambda: [cells for cells in words if len(cells) == width])
    every = (([], too_long()) if line is None else (_words(line, width, smiles), None) for line in chain(first, lines))
    return _of_records(columns, smiles, every, " ")


def _words(line: str, width: int, smiles: int) -> list[str]:
    """Split a line into cells; the extension of a CXSMILES, after white space, belongs to the cell of the SMILES.

    Beside a SMILES alone, all other cells are blank; of more words, but too few, nothing shows which cell is blank.
    """
    from gtx.molecules.reading import EXTENSION

    line = line.rstrip("\r\n")
    cells = line.split(None, smiles + 1)
    if smiles == 0 and len(cells) == 1:
        return cells + [""] * (width - 1)
    if smiles + 1 < min(width, len(cells)) and (match := EXTENSION.match(cells[-1])):
        rest = cells.pop()[match.end() :]
        cells[smiles] += f" {match[0]}"
        return cells + (rest.split(None, width - smiles - 2) if width > smiles + 2 else [rest.lstrip()] if rest else [])
    return line.split(None, width - 1)


# SDF


def _read_sdf(lines: Callable[[], Lines], wanted: MoleculeColumn, name: str) -> Table:
    from gtx.molecules import MoleculeError
    from gtx.molecules.reading import molblock_smiles, sdf_records

    properties: dict[str, None] = {}
    first: list[dict[str, str]] = []
    titled, length = False, 0
    for record in sdf_records(lines()):
        properties.update(dict.fromkeys(record.properties))
        if length < FIRST_ROWS:
            first.append(record.properties)
        titled |= bool(record.title)
        length += 1
        check_number_of_columns(len(properties), name)
    if not length:
        raise InputError(f"{name} is empty")
    if broken := damage("".join(properties)):
        raise InputError(f"the property names of {name} cannot be read: {broken}")
    names = list(properties)
    molecules = molecule_columns([[cells.get(name, "") for name in names] for cells in first])
    shown = [names[i] for i in wanted.find(names, parts=False) if i in molecules]
    smiles = shown[0] if shown else find_unused_column_name(names, "smiles")
    title = "name" if titled and "name" not in properties else None
    columns = ([] if shown else [smiles]) + ([title] if title else []) + list(properties)

    def rows() -> Iterator[Row]:
        for number, record in enumerate(sdf_records(lines()), start=1):
            block = record.block.encode("utf-8", "replace").decode()  # stray bytes in a title harm nothing
            cells = dict(record.properties)
            if title:
                cells[title] = record.title
            if not shown:
                try:
                    cells[smiles] = molblock_smiles(block)
                except MoleculeError:
                    cells[smiles] = ""
            error = record.error or (None if "\nM  END" in block else 'mol block without "M  END"')
            row = Row.of_text(number, columns, [cells.get(column, "") for column in columns], block, error)
            twice = tuple(f'property "{printable(name)}" is there twice; the last is read' for name in record.repeated)
            yield row._replace(warnings=row.warnings + twice)

    return Table(columns, smiles, rows(), length)


# --- Lines of a text, compressed or not, with a bound on their length.


def file_lines(path: str) -> Iterator[str | None]:
    """Yield the lines of a text file, see `text_lines`."""
    try:
        with open(path, "rb") as raw:
            yield from text_lines(raw, path)
    except OSError as reason:
        raise InputError(f"cannot read {path}: {reason}") from None


def text_lines(raw: io.BufferedReader, name: str) -> Iterator[str | None]:
    """Yield the lines of a text with their ends, unpacked where gzip packed it; see `bound_lines`.

    The text is UTF-8, with or without a byte-order mark; invalid bytes are kept as surrogates. An `InputError` says
    that `name` cannot be read to its end, or is a workbook or UTF-16 text.
    """
    try:
        stream = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
        refuse_workbook(stream.peek(HEAD)[:HEAD], name)
        yield from bound_lines(io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline=""))
    except (OSError, EOFError, zlib.error) as reason:
        raise InputError(f"cannot read {name}: {reason}") from None


def bound_lines(text: TextIO) -> Iterator[str | None]:
    """Yield the lines of a text with their ends, and None for a line above `LIMITS.longest_row` characters."""
    most = LIMITS.longest_row
    line = text.readline(most + 2)  # the two are its end
    while line:
        if len(line) <= most or len(line.rstrip("\r\n")) <= most:
            yield line
            line = text.readline(most + 2)
            continue
        yield None
        while line and line[-1] not in "\r\n":
            line = text.readline(most + 2)
        cut, line = line, text.readline(most + 2)
        if cut.endswith("\r") and line == "\n":  # an end of two characters that was cut in two
            line = text.readline(most + 2)


def standard_input() -> io.BufferedReader:
    """Open standard input, whose first four bytes can be peeked at however slowly they come; closing does no harm."""
    stream = cast(io.BufferedReader, sys.stdin.buffer)
    return io.BufferedReader(_Rejoined(stream.read(4), stream))


class _Rejoined(io.RawIOBase):
    """Stream of some bytes that were read before, and then the rest."""

    def __init__(self, head: bytes, rest: io.BufferedReader) -> None:
        self.head, self.rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not self.head:
            return self.rest.readinto1(buffer)
        view = memoryview(buffer)
        count = min(len(view), len(self.head))
        view[:count], self.head = self.head[:count], self.head[count:]
        return count


# --- Files mistaken for text tables: workbooks, UTF-16 text of spreadsheets, and text that gzip did not pack.

HEAD = 4
"""Number of first bytes that identify such a file."""
_REMEDY = "save it as CSV UTF-8"
_ZIP = b"PK\x03\x04"  # .xlsx, .xlsm, .xlsb, .ods
_OLE = b"\xd0\xcf\x11\xe0"  # .xls, and a workbook with a password
_PACKED = {b"BZh": "bzip2", b"\xfd7zX": "xz", b"\x28\xb5\x2f\xfd": "zstandard"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # what Excel calls Unicode text


def refuse_workbook(head: bytes, name: str) -> None:
    """Raise an `InputError` for the first bytes of a file that is no text of UTF-8, with what to do about it."""
    if head.startswith(_UTF_16):
        raise InputError(f"{name} is UTF-16 text: {_REMEDY}")
    ending = os.path.splitext(name.lower())[1]
    if head.startswith(_ZIP) and ending == ".zip":
        raise InputError(f"{name} is a ZIP file: unpack it, and give the table inside")
    if head.startswith(_ZIP) and ending == ".ods":
        raise InputError(f"{name} is a LibreOffice workbook: {_REMEDY}")
    for start, program in _PACKED.items():
        if head.startswith(start):
            raise InputError(f"{name} is packed by {program}: unpack it, or pack it with gzip")
    if head.startswith((_ZIP, _OLE)):
        raise InputError(f"{name} is an Excel workbook: {_REMEDY}")


# --- Comma-, semicolon- or tab-separated text, record by record, damaged quoting included.

DELIMITERS = ",;\t"
END = ""  # of the lines: a line has one character or more, its end

csv.field_size_limit(2**31 - 1)  # the library's default of 128 KiB would refuse a long cell


def sniff(header: str, columns: Iterable[str] = (), default: str = ",") -> str:
    """Return the delimiter of a table, from its header line alone; quoted text does not count.

    A delimiter that sets one of the `columns` (in lower case) free wins over a more frequent one.
    """
    bare = re.sub(r'"[^"]*("|$)', '"', header.strip("\r\n"))

    def merit(delimiter: str) -> tuple[bool, int, bool]:
        names = {name.strip().strip('"').strip().lower() for name in header.strip("\r\n").split(delimiter)}
        return bool(names.intersection(columns)), bare.count(delimiter), delimiter == default

    candidates = [delimiter for delimiter in DELIMITERS if delimiter in bare]
    return max(candidates, key=merit, default=default)


def records(lines: Iterable[str | None], delimiter: str) -> Iterator[tuple[list[str], str | None]]:
    """Yield the cells of each record, and its error or None; a blank line has no cells.

    A quote that is never closed, or closed amid a cell, is an error of its own line, whose cells have the quotes
    unchanged; reading continues with the next line. A line above the limit, which is None, is an error too.
    """
    lines = iter(lines)
    ahead: deque[str | None] = deque()
    read: list[str | None] = []
    patience = LIMITS.longest_record  # lines to read ahead in vain: a quote on every line must not cost all lines after

    def source() -> Iterator[str]:
        size = 0
        while len(read) <= patience and size <= LIMITS.longest_row:
            line = ahead.popleft() if ahead else next(lines, END)
            if line == END:
                return
            read.append(line)
            if line is None:
                return
            size += len(line)
            yield line

    while True:
        line = ahead.popleft() if ahead else next(lines, END)
        if line == END:
            return
        if line is None:
            yield [], too_long()
            patience = min(patience + 1, LIMITS.longest_record)
            continue
        if '"' not in line:  # nothing to unquote: a tenth of the library's time
            line = line.rstrip("\r\n")
            yield (line.split(delimiter) if line else []), None
            patience = min(patience + 1, LIMITS.longest_record)
            continue
        ahead.appendleft(line)
        read.clear()
        broken = None
        try:
            cells = next(csv.reader(source(), delimiter=delimiter, strict=True), [])
            patience = min(patience + len(read), LIMITS.longest_record)
        except csv.Error as reason:
            ahead.extendleft(reversed(read[1:]))
            patience -= len(read) - 1
            cells = line.rstrip("\r\n").split(delimiter)
            broken = f"broken quoting ({reason})"
        yield cells, broken


# --- Sources by name: a file, standard input, or a SMILES; and errors for names that do not exist.

FILE_NAME = re.compile(
    r"\.(csv|tsv|tab|txt|dat|smi|smiles|ism|sdf?|mol2?|pdb|xyz|parquet|pq|xlsx?|json|gtx|npz|gz|zip)$", re.IGNORECASE
)
_MOST_FILES = 1000  # of a folder, among which a near name is looked for


def check_source(source: str | os.PathLike[str], sets: Iterable[str] = ()) -> None:
    """Refuse what is neither a file nor "-" nor a SMILES that can be read.

    The message has the nearest name among the public data sets, if they may be meant, and the files of the folder.
    """
    name, sets = os.fspath(source), list(sets)
    if name.endswith(".gtx") and os.path.isfile(name):
        raise InputError(f"{name} is a model file; a table of molecules was expected in its place")
    if name == "-" or os.path.isfile(name) or os.path.isdir(name):
        return
    if os.path.exists(name):  # a device or a pipe, which may never end and cannot be read twice
        raise InputError(f"{name} is no file; what a pipe brings is read as standard input, with - in its place")
    hint = did_you_mean(name, [*sets, *_sibling_files(name)])
    if isinstance(source, os.PathLike) or _looks_like_path(name):
        if os.path.dirname(name) == "examples" and (file := example_file(os.path.basename(name))).exists():
            hint = f"; it comes with gtx, as {file}"
        raise InputError(f"no such file: {name}{hint}")
    from gtx.molecules import MoleculeError
    from gtx.molecules.reactions import read_sides

    try:
        read_sides(name)
    except MoleculeError as reason:
        public = " and no public data set of that name" if sets else ""
        as_smiles = hint or f"; as a SMILES it {reason}"
        raise InputError(f"there is no file {printable(name)!r}{public}{as_smiles}") from None


def check_smiles(every: Iterable[str]) -> None:
    """Refuse the name of a file, or what is no text, among several SMILES; an unreadable one is an error of its row."""
    for i, name in enumerate(every):
        if not isinstance(name, str):
            got = f"number {i}, counted from 0, is {printable(repr(name))}"
            raise InputError(f"several molecules must be SMILES, and {got}")
        if name == "-" or os.path.exists(name) or _looks_like_path(name):
            raise InputError(f"several molecules must be SMILES, and {name} is the name of a file: give one file alone")


def _looks_like_path(name: str) -> bool:
    return bool(FILE_NAME.search(name)) or name.startswith(("/", "~", "./", "../")) or "_" in name.split(" |")[0]


def _sibling_files(name: str) -> list[str]:
    """Return the files of the folder where a file is said to be, written the same way."""
    folder = os.path.dirname(name)
    try:
        with os.scandir(folder or ".") as entries:
            return [os.path.join(folder, entry.name) for entry in islice(entries, _MOST_FILES)]
    except (OSError, ValueError):  # a NUL is in no name
        return []
