"""Tables of molecules in requests, and their predictions."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.data.cells import cell_text
from gtx.data.rows import ARROW, RowLog, Table
from gtx.data.table_writer import Cell, TableWriter, as_text, output_header
from gtx.molecules import MoleculeError
from gtx.molecules.perception import Text
from gtx.prediction import ModelFileHeader
from gtx.prediction.streaming import make_table, open_for_model, output_rows
from gtx.serve.processes import Batcher


def molecule_columns(header: ModelFileHeader) -> list[str]:
    """Name the columns of molecules that the model reads, as in the training table; of reactions maybe one a side."""
    names = header.featuriser.components or (header.smiles_column,)
    return [column for name in names for column in name.split(ARROW)]


def make_example(header: ModelFileHeader) -> dict[str, list[Any]]:
    """Make columns, by name, of an example that the model can read; these are all columns that a request needs."""
    rows, features = header.featuriser.examples, header.features
    columns: dict[str, list[Any]] = {}
    names = header.featuriser.components or (header.smiles_column,)
    for name, texts in zip(names, zip(*rows, strict=True), strict=True):
        sides = name.split(ARROW)
        cells = (text.split(ARROW, len(sides) - 1) for text in texts)
        columns |= zip(sides, map(list, zip(*cells, strict=True)), strict=True)
    for name in features.columns:
        columns[name] = [1.0] * len(rows)
        if name in features.atoms:
            columns[name] = [[1.0] * header.featuriser.read(row[0]).GetNumAtoms() for row in rows]
        elif name in features.bonds:
            columns[name] = [[1.0] * header.featuriser.read(row[0]).GetNumBonds() for row in rows]
    return columns


def write_example(columns: Mapping[str, list[Any]]) -> str:
    """Write columns as lines of SMILES if there is one column, otherwise as a CSV."""
    rows = zip(*(map(cell_text, cells) for cells in columns.values()), strict=True)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows if len(columns) == 1 else [columns, *rows])
    return text.getvalue().rstrip()


# --- Requests.

_SDF = re.compile(rb"^(M  END|\$\$\$\$)", re.MULTILINE)


class TooManyRows(InputError):
    """Error: a request has too many rows."""


def read_columns(header: ModelFileHeader, columns: Mapping[str, list[Any]]) -> Table:
    """Read a table from columns of one length, by name; a cell of a wrong type is an error of its row.

    The columns are called as in the training table; that of single molecules or reactions may be called `smiles`.

    Raises:
        InputError: a column is missing or unknown, or columns differ in length.
    """
    molecules = molecule_columns(header)
    if not header.featuriser.components and "smiles" in columns and not set(molecules) <= set(columns):
        molecules = ["smiles"]
    names = [*molecules, *header.features.columns]
    for name in columns:
        if name not in names:
            near = did_you_mean(name, names)
            raise InputError(f'unknown column "{printable(name)}"{near or ";"} this model reads {", ".join(names)}')
    if missing := [name for name in names if name not in columns]:
        raise InputError(f'column "{missing[0]}" is missing; this model reads {", ".join(names)}')
    if len(lengths := {len(cells) for cells in columns.values()}) > 1:
        shown = ", ".join(f'"{name}" {len(columns[name])}' for name in names)
        raise InputError(f"expected columns of one length, got {shown}")
    cells = zip(*(map(cell_text, columns[name]) for name in names), strict=True)
    return make_table(header, names, 0, cells, lengths.pop())


def read_one_row(header: ModelFileHeader, smiles: str | Sequence[str] | None, columns: Mapping[str, str]) -> Text:
    """Read the molecule of one row, or several, from `smiles`, or from columns by name as of `read_columns`.

    Raises:
        InputError: a column is missing or unknown, or there are more or fewer SMILES than the model reads.
    """
    components, names = header.featuriser.components, molecule_columns(header)
    listed = f"a list of {len(components)} SMILES ({', '.join(components)})" if components else "one SMILES"
    named = f", or {', '.join(map(json.dumps, names))}" if names != ["smiles"] else ""
    expected = f'expected "smiles", {listed}{named}'
    if components and "smiles" in names and isinstance(smiles, str):
        columns = {"smiles": smiles, **columns}
        smiles = None
    if unknown := [name for name in columns if name not in names]:
        near = did_you_mean(unknown[0], [*names, "smiles", "method", "target", "features"])
        raise InputError(f'unknown field "{printable(unknown[0])}"{near or ";"} {expected}')
    if columns and smiles is not None:
        raise InputError(f'"smiles" and "{next(iter(columns))}" are given: {expected}')
    if smiles is None:
        if missing := [name for name in names if name not in columns]:
            raise InputError(f'field "{missing[0]}" is missing: {expected}')
        each = components or (header.smiles_column,)
        smiles = [ARROW.join(columns[side] for side in name.split(ARROW)) for name in each]
    texts = (smiles,) if isinstance(smiles, str) else tuple(smiles)
    if len(texts) != max(1, len(components)):
        raise InputError(f"{expected}; got {len(texts)} SMILES")
    return texts if components else texts[0]


def read_text(header: ModelFileHeader, body: bytes) -> Table:
    """Read a table: a CSV or lines of SMILES, recognised by its first lines.

    Raises:
        InputError: the body is compressed, a workbook, an SDF, or no table.
    """
    if body.startswith((b"\x1f\x8b", b"PAR1")):
        raise InputError("expected text: a CSV or lines of SMILES, not compressed and not Parquet")
    if _SDF.search(body):
        raise InputError("expected a CSV or lines of SMILES, got an SDF, which gtx predict reads")
    return open_for_model(header, io.BufferedReader(io.BytesIO(body)))


def read_rows(table: Table, most: int, longest: int) -> Table:
    """Read all rows of a table, and return it anew; a SMILES that `check_smiles` refuses is an error of its row.

    Raises:
        TooManyRows: the table has more than `most` rows.
    """
    rows = list(islice(table.rows, most + 1))
    if len(rows) > most:
        raise TooManyRows(f"expected at most {most:,} molecules in a request, got more; gtx predict has no limit")
    for i, row in enumerate(rows):
        try:
            for text in (row.text, *row.others):
                check_smiles(text, longest)
        except MoleculeError as reason:
            rows[i] = row._replace(error=row.error or str(reason), category="with an unusable molecule")
    return replace(table, rows=iter(rows))


def check_smiles(text: str, longest: int) -> None:
    """Check the length of a SMILES, and that it is no mol block, which may keep RDKit busy for minutes.

    Raises:
        MoleculeError: it has more than `longest` characters, or a line break.
    """
    if len(text) > longest:
        raise MoleculeError(f"cannot be read: it has {len(text):,} characters; the limit is {longest:,}")
    if "\n" in text.strip():
        raise MoleculeError("cannot be read: a SMILES has no line break")


# --- Predictions.

_HEAVIEST = 2**17  # bytes of a chunk: large molecules go in smaller chunks


class PredictedTable(NamedTuple):
    """Table of predictions."""

    columns: list[str]  # those of the request, then of the answers, the error and the warning
    kinds: dict[str, type]  # of each column of the answers, by name
    smiles_column: str
    rows: list[list[Cell]]
    row_log: RowLog

    def csv(self) -> bytes:
        """Write the table as `gtx predict --out` does."""
        with TemporaryDirectory(prefix="gtx-") as folder:
            file = Path(folder, "predictions.csv")
            with TableWriter(file, self.columns, self.kinds) as writer:
                for row in self.rows:
                    writer.write(row)
            return file.read_bytes()

    def table(self) -> bytes:
        """Write the table as JSON: `columns`, `rows` with the cells of the CSV, and the columns of `answers`."""
        rows = [[as_text(cell) for cell in row] for row in self.rows]
        answers = [{"name": name, "number": kind is float} for name, kind in self.kinds.items()]
        table = {"columns": self.columns, "rows": rows, "smiles_column": self.smiles_column, "answers": answers}
        return _json(table | {"summary": self.row_log.summary()})

    def records(self, columns: Mapping[str, list[Any]]) -> bytes:
        """Write the rows as JSON, each with its cells by name, null for a missing one, as in the request's columns."""
        rows = []
        for i, cells in enumerate(self.rows):
            row = {name: None if cell != cell else cell for name, cell in zip(self.columns, cells, strict=True)}
            rows.append(row | {name: None for name, column in columns.items() if column[i] is None})
        return _json({"rows": rows, "summary": self.row_log.summary()})


async def predict_rows(table: Table, batcher: Batcher) -> PredictedTable:
    """Predict the rows of a table, a chunk at a time, so that other requests are predicted between the chunks."""
    kinds = batcher.process.predictor.output_columns(table.columns)
    done = PredictedTable(output_header(table.columns, list(kinds)), kinds, table.smiles_column, [], RowLog())
    for chunk in table.chunks(batcher.most, _HEAVIEST):
        columns = ([row.readable for row in chunk], [row.coordinates for row in chunk], [row.features for row in chunk])
        answers = await batcher.answer(columns)
        done.rows.extend(output_rows(done.row_log, table.smiles_column, chunk, answers, len(kinds)))
    return done


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
