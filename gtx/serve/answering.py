"""A table of a request, answered piece by piece, so that large requests let small ones pass."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from gtx.data.ledger import Ledger
from gtx.data.rows import Row, Table
from gtx.data.table_writer import Cell, TableWriter, as_text, output_header
from gtx.prediction.answering import Answered
from gtx.prediction.streaming import answered_rows
from gtx.serve.batching import Batcher
from gtx.serve.limits import Limits

_CHARACTERS = 50_000  # of a piece: molecules of which few keep the model long go in smaller pieces


class Answer(NamedTuple):
    """A table of predictions.

    Attributes:
        columns: those of the request, then those of answers, the error and the warning.
        named: the columns of answers, and what they hold.
        smiles_column: the column with the molecules.
        rows: as many cells as there are columns.
        ledger: counts of rows and errors.
    """

    columns: list[str]
    named: dict[str, type]
    smiles_column: str
    rows: list[list[Cell]]
    ledger: Ledger

    def csv(self) -> bytes:
        """The bytes that `gtx predict --out` would write."""
        with TemporaryDirectory(prefix="gtx-") as folder:
            file = Path(folder, "predictions.csv")
            with TableWriter(file, self.columns, self.named) as writer:
                for row in self.rows:
                    writer.write(row)
            return file.read_bytes()

    def table(self) -> bytes:
        """JSON: `columns`, `rows` with the cells as the CSV has them, and which columns are `answers`."""
        return _json(
            {
                "columns": self.columns,
                "rows": [[as_text(cell) for cell in row] for row in self.rows],
                "smiles_column": self.smiles_column,
                "answers": [{"name": name, "number": kind is float} for name, kind in self.named.items()],
                "summary": self.ledger.summary(),
            }
        )

    def records(self) -> bytes:
        """JSON: `rows`, each with its cells by name; what is missing is null."""
        rows = [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]
        return _json({"rows": rows, "summary": self.ledger.summary()})


async def answer(table: Table, rows: Sequence[Row], batcher: Batcher, limits: Limits) -> Answer:
    """Predict rows of a table.

    Args:
        table: which says what its columns are called.
        rows: its rows.
        batcher: predicts them.
        limits: a SMILES that is longer than they say is an error of its row.
    """
    named = batcher.predictor.output_columns(table.columns)
    made = Answer(output_header(table.columns, named), named, table.smiles_column, [], Ledger())
    for piece in pieces(rows, batcher.most):
        errors = [_too_long(row, limits.max_smiles) for row in piece]
        texts = ["" if error else row.readable for row, error in zip(piece, errors, strict=True)]
        done = await batcher.answer((texts, [row.coordinates for row in piece], [row.features for row in piece]))
        done = done._replace(errors=[own or other for own, other in zip(errors, done.errors, strict=True)])
        made.rows.extend(await asyncio.to_thread(_entered, made, piece, done))
    return made


def pieces(rows: Sequence[Row], most: int) -> Iterator[list[Row]]:
    """Rows in pieces of at most so many, and of few where their molecules are long texts."""
    piece, characters = [], 0
    for row in rows:
        if piece and (len(piece) == most or characters + len(row.text) > _CHARACTERS):
            yield piece
            piece, characters = [], 0
        piece.append(row)
        characters += len(row.text)
    if piece:
        yield piece


def _entered(made: Answer, piece: Sequence[Row], done: Answered) -> list[list[Cell]]:
    return list(answered_rows(made.ledger, made.smiles_column, piece, done, len(made.named)))


def _too_long(row: Row, most: int) -> str | None:
    longest = max(map(len, (row.shown or "", *row.others)))
    return f"cannot be read: it has {longest:,} characters; the limit is {most:,}" if longest > most else None


def _plain(cell: Any) -> Any:
    return None if cell != cell else cell


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
