"""Prediction of a table of any length, all rows or the best, in bounded memory."""

from __future__ import annotations

import heapq
import math
import os
import pickle
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from cloudpickle import dumps

from gtx.base.errors import InputError
from gtx.base.schema import check, integer
from gtx.data import FeaturisationResult, MoleculeStore
from gtx.data.cells import parse_number
from gtx.data.featurising import (
    default_chunk_size,
    default_worker_count,
    featurise_stream,
    map_in_workers,
    min_chunks_for_workers,
    show_progress,
)
from gtx.data.rows import (
    Row,
    RowFeatures,
    RowLog,
    Table,
    add_component_columns,
    damage,
    find_column,
    find_columns,
    join_sides,
)
from gtx.data.table_writer import Cell, TableWriter, output_header, output_row, refuse_input_as_output
from gtx.data.tables import open_table
from gtx.molecules import FeaturisedMolecules
from gtx.molecules.perception import Text, featurise_texts
from gtx.prediction.domain import Overlap
from gtx.prediction.inputs import with_columns
from gtx.prediction.model_file import ModelFileHeader
from gtx.tasks.task import Answers

if TYPE_CHECKING:
    from gtx.data.rows import Record


# --- Selection of rows: all, or the best.

Line = tuple[Sequence[Cell], "Record | None"]
"""The cells of a row, and for a row of a Parquet file also its record there."""


@dataclass(frozen=True)
class RowSelection:
    """Selection of the rows of a table that are written: the best k, or by default all rows.

    Attributes:
        top: maximum number of rows, the best first; None for all, in order.
        by: column that ranks the rows; a row without a number in the column is not selected.
        lowest: whether the lowest number is the best, instead of the highest.

    Raises:
        InputError: `top` without `by`, `by` without `top`, or `top` below 1.
    """

    top: int | None = None
    by: str | None = None
    lowest: bool = False

    def __post_init__(self) -> None:
        if (self.top is None) != (self.by is None):
            needs = "`by` needs `top`" if self.top is None else "`top` needs `by`"
            raise InputError(f"{needs}, such as `top` 100 `by` y_pred")
        if self.top is not None and self.top < 1:
            raise InputError(f"top: expected 1 or more, got {self.top}")
        if self.lowest and self.top is None:
            raise InputError("`lowest` needs `top` and `by`, whose order it reverses")

    def select(self, lines: Iterable[Line], header: Sequence[str]) -> Iterable[Line]:
        """Return the selected ones of lines with these columns: the best first, and of equal ones the earlier first.

        Raises:
            InputError: the column that ranks the rows does not exist.
        """
        if self.top is None or self.by is None:
            return lines
        by = find_column(header, self.by)
        ranked = (_copy_record(line) for line in lines if not math.isnan(self.rank(line[0][by])))
        return heapq.nlargest(self.top, ranked, key=lambda line: self.rank(line[0][by]))

    def check(self, cells: Iterable[Cell]) -> None:
        """Raise an `InputError` if there are cells in the column that ranks the rows, and none of them is a number."""
        cell = None
        for cell in cells:
            if not math.isnan(self.rank(cell)):
                return
        if cell is not None:
            raise InputError(f"column {self.by!r} holds no numbers, so it ranks no rows: choose another for `by`")

    def rank(self, cell: Cell) -> float:
        """Return the rank of a row from one of its cells: higher is better; NaN if the cell is no finite number."""
        if cell is None:
            return math.nan
        number = parse_number(cell) if isinstance(cell, str) else float(cell)
        if not math.isfinite(number):
            return math.nan
        return -number if self.lowest else number


def _copy_record(line: Line) -> Line:
    """Copy the record of a row, which must not hold the thousands that were read with it."""
    cells, record = line
    return line if record is None else (cells, (record[0].take([record[1]]), 0))


# --- Chunks of texts, and their answers.

Chunk = tuple[Sequence[Text], Sequence[np.ndarray | None], Sequence[RowFeatures | None]]
"""Texts, their coordinates in Å or None, and their feature columns or None."""

NOT_FINITE = "the model's output is no finite number"
AT_ONCE = 8  # chunks that a GPU predicts at once: hundreds of molecules do not keep it busy, thousands do


class Model(Protocol):
    """What streams use of a `gtx.prediction.Predictor`."""

    header: ModelFileHeader
    device: torch.device

    def output_columns(self, taken: Iterable[str]) -> dict[str, type]: ...
    def predict_store(self, store: MoleculeStore) -> Answers: ...


class ChunkAnswers(NamedTuple):
    """Answers for a chunk of n texts."""

    errors: list[str | None]  # for each text the reason why it could not be read, or None
    warnings: list[tuple[str, ...]]
    good: np.ndarray  # positions of the texts that could be read, int64 [m]
    answers: Answers  # of those, in order
    smiles: Sequence[str | None] = ()  # for each text its canonical SMILES or None; all None unless requested


def predict_chunk(predictor: Model, chunk: Chunk, smiles: bool = False) -> ChunkAnswers:
    """Read and predict a chunk in this process, on request with canonical SMILES."""
    texts, coordinates, features = chunk
    part = featurise_texts(predictor.header.featuriser, texts, coordinates, smiles=smiles)
    return _predict_parts(predictor, [part], texts, features)


def _predict_parts(
    predictor: Model,
    parts: Sequence[FeaturisedMolecules],
    texts: Sequence[Text],
    features: Sequence[RowFeatures | None],
) -> ChunkAnswers:
    """Predict texts that are featurised already, with the feature columns of each."""
    done, header = FeaturisationResult.join(parts), predictor.header
    done = with_columns(done, texts, features, header.featuriser, header.features, header.predicts_lists)
    return ChunkAnswers(done.errors, done.warnings, done.good, predictor.predict_store(done.store), done.smiles)


def _predict_in_worker(file: Path, *chunk: Any, smiles: bool) -> ChunkAnswers:
    return predict_chunk(_load_pickle(file), chunk, smiles)  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def _load_pickle(file: Path) -> Model:
    """Load the predictor of this worker process, once."""
    torch.set_num_threads(1)  # the workers themselves use the cores
    return pickle.loads(file.read_bytes())


def answer_rows(answers: Answers) -> list[tuple[Cell, ...]]:
    """Return the cells of each molecule's answer, for `gtx.data.TableWriter`."""
    return list(zip(*(column.tolist() for column in answers.columns()), strict=True))


# --- Tables of any length, by worker processes where there are many rows.

EVERY_ROW = RowSelection()


@dataclass(frozen=True)
class TableOutcome:
    """Outcome of predicting a table.

    Attributes:
        row_log: counts of rows and errors; the output table contains the messages.
        metrics: metrics as in `metrics.json`, for targets with values in the table; None without such targets.
        notes: notes on the predictions, one line each.
        written: number of rows that were written.
        overlap: overlap with the training rows, if the table was scored; otherwise None.
    """

    row_log: RowLog
    metrics: dict[str, Any] | None
    notes: list[str]
    written: int
    overlap: Overlap | None = None


def predict_table(
    predictor: Model,
    source: str | Path | Sequence[str],
    out: str | Path,
    *,
    smiles_column: str | None = None,
    smiles_columns: Sequence[str] | None = None,
    on_error: Literal["report", "fail"] = "report",
    selection: RowSelection = EVERY_ROW,
    workers: int | None = None,
    progress: bool = False,
) -> TableOutcome:
    """Predict each row of a table and write the rows in order: the cells unchanged, then prediction, error and warning.

    Args:
        predictor: the model.
        source: path of a file, "-" for standard input, a SMILES or a list of SMILES, see `gtx.data.open_table`; for a
            model of several molecules per row, a list has those of one row.
        out: path of the output table, CSV, TSV or Parquet by its ending; "-" for standard output.
        smiles_column: name of the column of SMILES; by default the name in training, or the column that
            `gtx.data.open_table` finds.
        smiles_columns: for a model of several molecules per row, the names of their columns in the order of training;
            by default the names in training.
        on_error: "fail" stops at the first row that cannot be used; "report" records the error and continues.
        selection: rows to write; by default all rows.
        workers: number of processes that read and predict; by default one per core, and 0 for a table of fewer than
            10,000 rows.
        progress: whether a progress bar is shown.

    Raises:
        InputError: the table cannot be read, `out` cannot be written or is the table itself, there is no column of
            the selection, or `workers` is negative; with "fail", a row cannot be used.
    """
    check(workers, integer(0) | None, "workers")  # before anything is written
    refuse_input_as_output(out, source)
    table = open_for_model(predictor.header, source, smiles_column, smiles_columns)
    row_log, scores = RowLog(on_error), predictor.header.task.answers.scores(table.columns)
    training, scored = predictor.header.training, bool(find_columns(table.columns, predictor.header.task.targets))
    overlap = Overlap(training, predictor.header.task, table.columns) if scored else None
    named = predictor.output_columns(table.columns)
    header = output_header(table.columns, list(named))

    def lines() -> Iterator[Line]:
        shown = show_progress(parts, table.length, "Predicting", lambda part: len(part[0])) if progress else parts
        for rows, lines, done in shown:
            yield from lines
            good = [rows[i] for i in done.good]
            scores.add(good, done.answers)
            if overlap is not None:
                overlap.add(good, done.answers, [done.smiles[i] for i in done.good])

    if selection.by is not None:
        place = find_column(header, selection.by)  # before anything is written
        usual = list(predictor.output_columns([]))
        if place < len(table.columns) and header[place] in usual:
            ours = list(named)[usual.index(header[place])]
            there = f"the table has this column, and the one that this model predicts is called {ours!r}"
            raise InputError(f"`by` {selection.by}: {there}: name that one, or rename the column of the table")
        if place < len(table.columns) and source != "-":  # what is predicted first would be predicted in vain
            every = open_for_model(predictor.header, source, smiles_column, smiles_columns).rows
            selection.check(row.cells[place] for row in every)
    written = 0
    parts = predict_rows(predictor, table, row_log, workers, scored and training is not None)
    with closing(parts), TableWriter(out, header, named, table.schema) as writer:
        for line in selection.select(lines(), header):
            writer.write(*line)
            written += 1
        if not written and row_log.num_errors < row_log.rows:
            selection.check([""])  # raises: none of the rows has a number
    notes, named_so = scores.notes(), (smiles_column, predictor.header.smiles_column, "smiles")
    if table.smiles_column.strip().lower() not in (name.strip().lower() for name in named_so if name):
        notes.insert(0, f"the molecules are those of column {table.smiles_column!r}")
    notes += table.notes
    metrics = scores.metrics()
    if metrics is None or (overlap is not None and overlap.is_none):
        overlap = None
    return TableOutcome(row_log, metrics, notes, written, overlap)


def open_for_model(
    header: ModelFileHeader,
    source: str | Path | Sequence[str] | BufferedReader,
    smiles_column: str | None = None,
    smiles_columns: Sequence[str] | None = None,
) -> Table:
    """Open a table with all columns that the model reads; SMILES without a file are rows, or the molecules of one."""
    names = header.featuriser.components
    if not names and smiles_columns:
        raise InputError("this model reads one molecule a row: give `smiles_column` in place of `smiles_columns`")
    count = 1 if smiles_column else len(smiles_columns or names)
    if names and count != len(names):
        raise InputError(f"this model reads {' and '.join(names)}: expected {len(names)} `smiles_columns`, got {count}")
    chosen = list(smiles_columns or names)
    table = open_table(source, chosen[0] if chosen else smiles_column, header.smiles_column)
    if names and (texts := _texts(source)):  # of one row
        if len(texts) != len(names):
            expected = "expected a SMILES of each, or a table with these columns"
            raise InputError(f"this model reads {' and '.join(names)}: {expected}; got {len(texts)} SMILES")
        return make_table(header, list(names), 0, [texts], 1)
    try:
        table = add_component_columns(table, chosen[1:])
    except InputError as error:
        remedy = f"this model reads {' and '.join(names)}: give a table with these columns, or `smiles_columns`"
        raise InputError(f"{error}; {remedy}") from None
    return header.features.read_table(table)


def _texts(source: str | Path | Sequence[str] | BufferedReader) -> list[str]:
    """Return the SMILES that are given in place of a file; none for a file."""
    if isinstance(source, str | Path):
        return [] if source == "-" or os.path.exists(source) else [str(source)]
    return [] if isinstance(source, BufferedReader) else list(source)


def make_table(
    header: ModelFileHeader,
    columns: list[str],
    place: int,
    cells: Iterable[Sequence[str]],
    length: int,
    requested: str | None = None,
) -> Table:
    """Make a table with all columns that the model reads from the cells of rows in memory.

    `place` is that of the column of molecules; `requested` is its name, if it was given.
    """
    rows = (Row(number, list(row), row[place], error=damage(row[place])) for number, row in enumerate(cells, start=1))
    usual = next(iter(header.featuriser.components), header.smiles_column)
    table = join_sides(Table(columns, columns[place], rows, length), requested, usual)
    table = add_component_columns(table, header.featuriser.components[1:])
    return header.features.read_table(table)


def predict_rows(
    predictor: Model, table: Table, row_log: RowLog, workers: int | None, smiles: bool = False
) -> Generator[tuple[list[Row], list[Line], ChunkAnswers]]:
    """Yield some rows of the table at a time, their rows of predictions, and the answers."""
    width = len(predictor.output_columns(table.columns))
    with closing(_predict_chunks(predictor, table, workers, smiles)) as parts:
        for rows, done in parts:
            cells = output_rows(row_log, table.smiles_column, rows, done, width)
            yield rows, [(line, row.record) for line, row in zip(cells, rows, strict=True)], done


def output_rows(
    row_log: RowLog, column: str, rows: Sequence[Row], done: ChunkAnswers, width: int
) -> Iterator[list[Cell]]:
    """Yield the rows of a table of predictions, with `width` cells of an answer each, and record their errors and
    warnings; `column` is that of the molecules.
    """
    row_log.enter(rows)
    for row, error, remarks in zip(rows, done.errors, done.warnings, strict=True):
        row_log.add(row, column, error, remarks)
    answers = done.answers
    for i, finite, warnings in zip(done.good.tolist(), answers.finite.tolist(), answers.warnings, strict=True):
        record_answer(row_log, column, rows[i], finite, warnings)
    own, nothing = dict(zip(done.good.tolist(), answer_rows(answers), strict=True)), [None] * width
    for i, row in enumerate(rows):
        yield output_row(row, own.get(i, nothing), *row_log.pop(row.number))


def record_answer(row_log: RowLog, column: str, row: Row, finite: bool, remarks: Sequence[str]) -> None:
    """Record the warnings of an answer, and an answer that is not finite, in the row log."""
    for remark in remarks:
        row_log.warn(row.number, *row.locate(column), remark)
    if not finite:
        row_log.error(row.number, *row.locate(column), NOT_FINITE, "without a finite output")


def _predict_chunks(
    predictor: Model, table: Table, workers: int | None, smiles: bool
) -> Generator[tuple[list[Row], ChunkAnswers]]:
    """Yield rows with their answers, in order and in bounded memory, while workers read, or predict, the next ones.

    On a CPU each worker process reads and predicts, with a copy of the model and one thread. With a model on a GPU the
    workers read, and this process predicts several chunks at a time.
    """
    header = predictor.header
    chunks, least = table.chunks(default_chunk_size(header.featuriser)), min_chunks_for_workers(header.featuriser)
    first = list(islice(chunks, least)) if workers is None else []
    if workers is None:
        workers = 0 if len(first) < least else default_worker_count()
    waiting: deque[list[Row]] = deque()

    def columns() -> Iterator[Chunk]:
        for rows in chain(first, chunks):
            waiting.append(rows)
            yield [row.readable for row in rows], [row.coordinates for row in rows], [row.features for row in rows]

    on_cpu = predictor.device.type == "cpu"
    if workers > 0 and on_cpu:
        # compiles and caches the loops before the workers start, each of which would compile them
        predict_chunk(predictor, ([header.featuriser.example], [None], [header.features.blank_row]))
        with TemporaryDirectory(prefix="gtx-") as folder:
            file = Path(folder, "predictor")
            file.write_bytes(dumps(predictor))
            for done in map_in_workers(partial(_predict_in_worker, file, smiles=smiles), columns(), workers):
                yield waiting.popleft(), done
        return
    molecules = ((texts, coordinates) for texts, coordinates, _ in columns())
    read = featurise_stream(header.featuriser, molecules, workers, smiles=smiles)
    while parts := list(islice(read, 1 if on_cpu else AT_ONCE)):
        rows = [row for _ in parts for row in waiting.popleft()]
        texts, features = [row.readable for row in rows], [row.features for row in rows]
        yield rows, _predict_parts(predictor, parts, texts, features)
