"""Tables of any length, predicted in bounded memory, by worker processes where there are many rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from gtx.data import chunk_size, default_workers, worth_workers
from gtx.data.components import with_components
from gtx.data.ledger import Ledger
from gtx.data.rows import Row, Table
from gtx.data.table_writer import Cell, TableWriter, output_header, output_row
from gtx.data.tables import open_table
from gtx.errors import InputError
from gtx.prediction.answering import NOT_FINITE, Answered, Answering, Chunk, answer_stream, as_rows
from gtx.prediction.model_file import ModelHeader
from gtx.prediction.overlap import Overlap, Trained
from gtx.prediction.selecting import Line, Selection

EVERY_ROW = Selection()


@dataclass(frozen=True)
class TableOutcome:
    """What became of a table.

    Attributes:
        ledger: counts of rows and errors; the messages are in the table written.
        metrics: as in `metrics.json`, for the targets whose values the table holds; None without any.
        notes: what else there is to say of all answers, a line each.
        kept: how many rows were written.
        overlap: molecules that trained the model, beside scores; None where none is known.
    """

    ledger: Ledger
    metrics: dict[str, Any] | None
    notes: list[str]
    kept: int
    overlap: Overlap | None = None


def predict_table(
    predictor: Answering,
    source: str | Path | Sequence[str],
    out: str | Path,
    *,
    smiles_column: str | None = None,
    smiles_columns: Sequence[str] | None = None,
    on_error: Literal["report", "fail"] = "report",
    selection: Selection = EVERY_ROW,
    workers: int | None = None,
    progress: bool = False,
) -> TableOutcome:
    """Predict every row of a table and write all of them, in order: the cells as they were, answer, error, warning.

    Args:
        predictor: the model.
        source: what `gtx.data.tables.open_table` reads: a file, "-", a SMILES, a list of SMILES.
        out: CSV, or by its name TSV or Parquet; "-" is standard output.
        smiles_column: default: as in the table the model was trained on, or as `gtx.data.open_table` finds it.
        smiles_columns: for a model of several molecules a row, their columns, in the order of training; default: as
            they were called there.
        on_error: "fail" stops at the first row that cannot be used.
        selection: of the rows predicted, which are written; by default all.
        workers: processes that read and predict; by default all cores, and none for a table of less than 10,000 rows.
        progress: show a progress bar.

    Raises:
        InputError: the table cannot be read or `out` not be written; with "fail", a row cannot be used; or the
            selection names a column that there is not.
    """
    table = opened(predictor.header, source, smiles_column, smiles_columns)
    ledger, scores = Ledger(on_error), predictor.task.scores(table.columns)
    training = predictor.header.training if set(predictor.task.targets).intersection(table.columns) else None
    trained = None if training is None else Trained(training, predictor.task, table.columns)
    named = predictor.output_columns(table.columns)
    header = output_header(table.columns, named)
    sieve = selection.over(header)
    writing = TableWriter(out, header, named, table.schema)
    with writing as writer, closing(predicted(predictor, table, ledger, workers, trained is not None)) as parts:
        for rows, lines, done in _tracked(parts, table.length) if progress else parts:
            for line in sieve.passed(lines):
                writer.write(*line)
            good = [rows[i] for i in done.good]
            scores.add(good, done.answers)
            if trained is not None:
                trained.add(good, done.answers, [done.smiles[i] for i in done.good])
        for line in sieve.best():
            writer.write(*line)
    notes, named_so = scores.notes(), (smiles_column, predictor.header.smiles_column, "smiles")
    if table.smiles_column.strip().lower() not in (name.strip().lower() for name in named_so if name):
        notes.insert(0, f"the molecules are those of column {table.smiles_column!r}")
    metrics = scores.metrics()
    overlap = None if trained is None or metrics is None else trained.overlap()
    return TableOutcome(ledger, metrics, notes, sieve.kept, overlap)


def opened(
    header: ModelHeader,
    source: str | Path | Sequence[str] | BufferedReader,
    smiles_column: str | None = None,
    smiles_columns: Sequence[str] | None = None,
    first: int = 0,
) -> Table:
    """The table, its rows from `first` on with all that the model reads: molecules, and the numbers beside them."""
    table = _with_molecules(header, source, smiles_column, smiles_columns, first)
    return header.features.of_table(table) if header.features else table


def predicted(
    predictor: Answering, table: Table, ledger: Ledger, workers: int | None, smiles: bool = False
) -> Generator[tuple[list[Row], list[Line], Answered]]:
    """Some rows of the table at a time, their rows of predictions, and what these were made of."""
    width = len(predictor.output_columns(table.columns))
    with closing(_answered(predictor, table, workers, smiles)) as parts:
        for rows, done in parts:
            cells = answered_rows(ledger, table.smiles_column, rows, done, width)
            yield rows, [(line, row.record) for line, row in zip(cells, rows, strict=True)], done


def _with_molecules(
    header: ModelHeader,
    source: str | Path | Sequence[str] | BufferedReader,
    smiles_column: str | None,
    smiles_columns: Sequence[str] | None,
    first: int,
) -> Table:
    names = header.featuriser.components
    if not names:
        if smiles_columns:
            raise InputError("this model reads one molecule a row: give --smiles-column in place of --smiles-columns")
        return open_table(source, smiles_column, header.smiles_column, first)
    if smiles_column or (smiles_columns and len(smiles_columns) != len(names)):
        given = 1 if smiles_column else len(smiles_columns)
        raise InputError(f"this model reads {' and '.join(names)}: expected {len(names)} --smiles-columns, got {given}")
    own, *others = smiles_columns or names
    table = open_table(source, own, first=first)
    try:
        return with_components(table, others)
    except InputError as error:
        remedy = f"this model reads {' and '.join(names)}: give a table with these columns, or --smiles-columns"
        raise InputError(f"{error}; {remedy}") from None


def answered_rows(ledger: Ledger, column: str, rows: Sequence[Row], done: Answered, width: int) -> Iterator[list[Cell]]:
    """The rows of a table of predictions, each entered in the ledger with what there is to say of it.

    Args:
        ledger: counts them.
        column: what the column with the molecules is called.
        rows: as they were read.
        done: what became of them.
        width: cells of an answer.
    """
    ledger.read(rows, column, done.errors, done.warnings)
    answers = done.answers
    for i, *said in zip(done.good.tolist(), answers.finite.tolist(), answers.remarks, strict=True):
        note_answer(ledger, column, rows[i], *said)
    own, nothing = dict(zip(done.good.tolist(), as_rows(answers), strict=True)), [None] * width
    for i, row in enumerate(rows):
        yield output_row(row, own.get(i, nothing), *ledger.pop(row.number))


def note_answer(ledger: Ledger, column: str, row: Row, finite: bool, remarks: Sequence[str]) -> None:
    """Enter in the ledger what there is to say of the answer to a row, see `gtx.tasks.task.Answers`."""
    for remark in remarks:
        ledger.warn(row.number, *row.place(column), remark)
    if not finite:
        ledger.error(row.number, *row.place(column), NOT_FINITE, "without a finite output")


def _answered(
    predictor: Answering, table: Table, workers: int | None, smiles: bool
) -> Generator[tuple[list[Row], Answered]]:
    """Chunks of rows, each with its answers; workers are at the next ones meanwhile."""
    featuriser = predictor.header.featuriser
    chunks, least = table.chunks(chunk_size(featuriser)), worth_workers(featuriser)
    first = list(islice(chunks, least)) if workers is None else []
    if workers is None:
        workers = 0 if len(first) < least else default_workers()
    waiting: deque[list[Row]] = deque()

    def texts() -> Iterator[Chunk]:
        for rows in chain(first, chunks):
            waiting.append(rows)
            yield [row.readable for row in rows], [row.coordinates for row in rows], [row.features for row in rows]

    for answered in answer_stream(predictor, texts(), workers, smiles):
        rows = waiting.popleft()
        while len(rows) < len(answered.errors):
            rows = rows + waiting.popleft()
        yield rows, answered


def _tracked(
    parts: Iterator[tuple[list[Row], list[Line], Answered]], total: int | None
) -> Iterator[tuple[list[Row], list[Line], Answered]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("Predicting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        for part in parts:
            yield part
            bar.advance(task, len(part[0]))
