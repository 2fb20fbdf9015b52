"""Tables of any length, predicted in bounded memory while worker processes read molecules ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gtx.data import Featurised, chunk_size, featurise_stream, worth_workers
from gtx.data.ledger import Ledger
from gtx.data.table_writer import TableWriter, fresh_name
from gtx.data.tables import Row, Table, open_table
from gtx.data.targets import read_targets
from gtx.prediction.predictor import NOT_FINITE, Predictor, output_columns
from gtx.training import evaluate


@dataclass(frozen=True)
class TableOutcome:
    """What became of a table.

    Attributes:
        ledger: counts of rows and errors; the messages are in the table written.
        metrics: as `gtx.training.evaluate` gives them, for the targets whose values the table holds; None without any.
    """

    ledger: Ledger
    metrics: dict[str, Any] | None


def predict_table(
    predictor: Predictor,
    source: str | Path,
    out: str | Path,
    *,
    smiles_column: str | None = None,
    on_error: Literal["report", "fail"] = "report",
    workers: int | None = None,
    progress: bool = False,
) -> TableOutcome:
    """Predict every row of a table and write all of them, in order: the cells as they were, numbers, error, warning.

    Args:
        predictor: the model.
        source: what `gtx.data.tables.open_table` reads: a file, "-", a SMILES.
        out: CSV, or by its name TSV or Parquet; "-" is standard output.
        smiles_column: default: as in the table the model was trained on.
        on_error: "fail" stops at the first row that cannot be used.
        workers: processes that read molecules; by default all cores, and none for a table of less than 10,000 rows.
        progress: show a progress bar.

    Raises:
        InputError: the table cannot be read or `out` not be written; with "fail", a row cannot be used.
    """
    table = open_table(source, smiles_column or predictor.header.smiles_column)
    ledger, scores = Ledger(on_error), _Scores(predictor, table.columns)
    with TableWriter(out, _header(predictor, table)) as writer:
        parts = _featurised(predictor, table, workers)
        for rows, done in _tracked(parts, table.length) if progress else parts:
            note_rows(ledger, table.smiles_column, rows, done)
            predictions = predictor.predict_store(done.store)
            values = np.full((len(rows), predictions.table().shape[1]), np.nan)
            values[done.good] = predictions.table()
            for i, unseen in zip(done.good, predictions.unseen, strict=True):
                if unseen:
                    ledger.warn(rows[i].number, table.smiles_column, shown(rows[i]), unseen)
            for i in done.good[~predictions.finite]:
                ledger.error(rows[i].number, table.smiles_column, shown(rows[i]), NOT_FINITE, "without a finite output")
            for row, numbers in zip(rows, values, strict=True):
                writer.write(output_row(row, numbers, *ledger.pop(row.number)))
            scores.add([rows[i] for i in done.good], predictions.mean)
    return TableOutcome(ledger, scores.metrics())


def note_rows(ledger: Ledger, column: str, rows: Sequence[Row], done: Featurised) -> None:
    """Enter rows in the ledger with what came of reading their molecules."""
    ledger.enter(rows)
    for row, error, warnings in zip(rows, done.errors, done.warnings, strict=True):
        if error and not row.error:
            ledger.error(row.number, column, shown(row), error)
        for warning in warnings:
            ledger.warn(row.number, column, shown(row), warning)


def shown(row: Row) -> str | None:
    """The molecule of a row as a message shows it: not a whole mol block."""
    return None if "\nM  END" in row.text else row.text


def readable(row: Row) -> str:
    """The text to featurise; a row that is broken has none."""
    return "" if row.error else row.text


def output_row(row: Row, numbers: np.ndarray, error: str | None, warnings: Sequence[str]) -> list[str]:
    """The cells of a row of predictions: as they were, the numbers or an error, the warnings."""
    cells = [""] * len(numbers) if error else ["" if np.isnan(number) else f"{number:.9g}" for number in numbers]
    return [*row.cells, *cells, error or "", "; ".join(warnings)]


def output_header(columns: Sequence[str], numbers: Sequence[str]) -> list[str]:
    """The columns of a table of predictions."""
    header = [*columns, *numbers]
    for name in ("error", "warning"):
        header.append(fresh_name(header, name))
    return header


def _header(predictor: Predictor, table: Table) -> list[str]:
    numbers = output_columns(predictor.header, table.columns, len(predictor.members))
    return output_header(table.columns, numbers)


def _featurised(predictor: Predictor, table: Table, workers: int | None) -> Iterator[tuple[list[Row], Featurised]]:
    """Chunks of rows, each with its molecules; workers are at the next ones meanwhile."""
    featuriser = predictor.header.featuriser
    chunks, least = table.chunks(chunk_size(featuriser)), worth_workers(featuriser)
    first = list(islice(chunks, least)) if workers is None else []
    if workers is None and len(first) < least:
        workers = 0
    waiting: deque[list[Row]] = deque()

    def texts() -> Iterator[tuple[list[str], list[np.ndarray | None]]]:
        for rows in chain(first, chunks):
            waiting.append(rows)
            yield [readable(row) for row in rows], [row.coordinates for row in rows]

    for part in featurise_stream(featuriser, texts(), workers, smiles=False):
        yield waiting.popleft(), Featurised.join([part])


def _tracked(parts: Iterator[tuple[list[Row], Any]], total: int | None) -> Iterator[tuple[list[Row], Any]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("Predicting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        for rows, done in parts:
            yield rows, done
            bar.advance(task, len(rows))


@dataclass
class _Scores:
    """Predictions beside the measured values, as far as the table holds them: 16 bytes per row and target."""

    predictor: Predictor
    columns: Sequence[str]
    y: list[np.ndarray] = field(default_factory=list)
    prediction: list[np.ndarray] = field(default_factory=list)

    @property
    def targets(self) -> list[str]:
        return [target for target in self.predictor.header.targets if self.columns.count(target) == 1]

    def add(self, rows: Sequence[Row], mean: np.ndarray) -> None:
        held = [self.predictor.header.targets.index(target) for target in self.targets]
        if held:
            self.y.append(read_targets(rows, self.columns, self.targets, self.predictor.header.task))
            self.prediction.append(mean[:, held])

    def metrics(self) -> dict[str, Any] | None:
        if not self.y:
            return None
        y, prediction = np.concatenate(self.y), np.concatenate(self.prediction)
        if np.isnan(y).all():
            return None
        return evaluate(y, prediction, self.predictor.header.task, self.targets)
