"""Streaming: a table of any length to answers, selected rows alone if asked for."""

from __future__ import annotations

import heapq
import math
import operator
import pickle
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
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
from joblib.externals.loky.backend.reduction import dumps

from gtx.data import Featurised, MoleculeStore, chunk_size, default_workers, featurise_stream, in_workers, worth_workers
from gtx.data.columns import Row, RowFeatures, Table, column_index
from gtx.data.ledger import Ledger
from gtx.data.table_writer import Cell, TableWriter, output_header, output_row
from gtx.data.tables import open_table
from gtx.data.targets import parse_number, with_components
from gtx.errors import InputError
from gtx.molecules import FlatMolecules, featurise_texts
from gtx.molecules.perception import Text
from gtx.prediction.model_file import ModelHeader
from gtx.prediction.neighbours import Overlap, Trained
from gtx.tasks.task import Answers

if TYPE_CHECKING:
    from gtx.data.columns import Record


# --- Which rows of a table of predictions are kept: those that fulfil conditions, and of these the best.

Line = tuple[Sequence[Cell], "Record | None"]
"""The cells of a row, and of a row out of a Parquet file the cells as they are there."""

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": lambda value, number: value < number or value > number,  # which NaN is not
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(rf"\s*(.+?)\s*({'|'.join(_SIGNS)})\s*(\S+)\s*")


class Condition(NamedTuple):
    """A column, a sign and a number; a cell that holds no number does not fulfil it."""

    column: str
    sign: str
    number: float

    @classmethod
    def read(cls, text: str) -> Condition:
        """Parse a condition such as `y_pred > 7`."""
        found = _CONDITION.fullmatch(text)
        if found is None or not math.isfinite(number := parse_number(found[3])):
            raise InputError(f"filter: expected a column, one of {' '.join(_SIGNS)} and a number, got {text!r}")
        return cls(found[1], found[2], number)


@dataclass(frozen=True)
class Selection:
    """Selection of the rows of a table to write; by default all.

    Attributes:
        conditions: every one of them holds for a row that is kept.
        top: how many rows are kept at most, the best first; None for all, in order.
        by: the column that says how good a row is. A row without a number there is not kept.
        lowest: the lowest number is the best, and not the highest.

    Raises:
        InputError: `top` without `by`, `by` without `top`, or `top` below 1.
    """

    conditions: tuple[Condition, ...] = ()
    top: int | None = None
    by: str | None = None
    lowest: bool = False

    def __post_init__(self) -> None:
        if (self.top is None) != (self.by is None):
            raise InputError("top and by belong together: how many rows, and by which column, such as y_pred")
        if self.top is not None and self.top < 1:
            raise InputError(f"top: expected 1 or more, got {self.top}")
        if self.lowest and self.top is None:
            raise InputError("lowest sets the order of top and by: it needs both")

    @classmethod
    def read(cls, text: str | None, top: int | None = None, by: str | None = None, lowest: bool = False) -> Selection:
        """With the conditions of a text such as `y_pred > 7 and y_std < 0.5`; None has none."""
        parts = () if text is None else re.split(r"\s+and\s+", text)
        return cls(tuple(map(Condition.read, parts)), top, by, lowest)

    @property
    def keeps_all(self) -> bool:
        """True if no row is left out."""
        return not self.conditions and self.top is None

    def over(self, header: Sequence[str]) -> Sieve:
        """For rows of these columns.

        Raises:
            InputError: there is no such column.
        """
        places = [(column_index(header, c.column), _SIGNS[c.sign], c.number) for c in self.conditions]
        return Sieve(places, self.top, None if self.by is None else column_index(header, self.by), self.lowest)


class Sieve:
    """A `Selection` at work; it holds no more than the best rows so far.

    Attributes:
        kept: how many rows were let through.
    """

    def __init__(
        self,
        places: Sequence[tuple[int, Callable[[float, float], bool], float]],
        top: int | None,
        by: int | None,
        lowest: bool,
    ) -> None:
        self._places, self._lowest = places, lowest
        self._order = None if top is None or by is None else (top, by)
        self._best: list[tuple[float, int, Line]] = []
        self._seen = 0
        self.kept = 0

    def passed(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the rows that are kept whatever rows follow."""
        for line in lines:
            if not all(holds(number_of(line[0][place]), number) for place, holds, number in self._places):
                continue
            if self._order is None:
                self.kept += 1
                yield line
            else:
                self._offer(line, *self._order)

    def best(self) -> Iterator[Line]:
        """At the end: the best rows, the best first, and of equal ones the earlier first."""
        for _, _, line in sorted(self._best, key=lambda one: one[:2], reverse=True):
            self.kept += 1
            yield line

    def _offer(self, line: Line, top: int, by: int) -> None:
        self._seen += 1
        value = goodness(line[0][by], self._lowest)
        key = (value, -self._seen)
        if math.isnan(value) or (len(self._best) == top and key < self._best[0][:2]):
            return
        cells, record = line
        if record is not None:  # a copy: a row must not hold the thousands that were read with it
            record = record[0].take([record[1]]), 0
        change = heapq.heappush if len(self._best) < top else heapq.heapreplace
        change(self._best, (*key, (cells, record)))


def goodness(cell: Cell, lowest: bool) -> float:
    """Rank a row by one of its cells: higher is better; NaN if the cell is no number."""
    return -number_of(cell) if lowest else number_of(cell)


def number_of(cell: Cell) -> float:
    """The number in a cell; NaN, which no condition holds for, where there is none."""
    if cell is None:
        return math.nan
    number = parse_number(cell) if isinstance(cell, str) else float(cell)
    return number if math.isfinite(number) else math.nan


# --- What predicts, as those see it who hand it molecules; and a stream of texts through it.

Chunk = tuple[Sequence[Text], Sequence[np.ndarray | None], Sequence[RowFeatures | None]]
"""Texts; coordinates in Å, where they are known; features, where the model takes any."""

_TOGETHER = 8  # chunks that a GPU predicts at once: it is busy with thousands of molecules, not with hundreds
NOT_FINITE = "the model's output is no finite number"


class Answering(Protocol):
    """A `gtx.prediction.Predictor`, or what can stand for one.

    Attributes:
        header: how molecules are read, and what is predicted.
        task: what is predicted.
        device: where it computes.
    """

    @property
    def header(self) -> ModelHeader: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def task(self) -> Any: ...

    def output_columns(self, taken: Iterable[str]) -> dict[str, type]:
        """The columns of answers."""

    def predict_store(self, store: MoleculeStore) -> Answers:
        """Answers for molecules that are featurised already."""


class Answered(NamedTuple):
    """Answers for n texts.

    Attributes:
        errors: per text, why it could not be read, or None.
        warnings: per text, what was odd about it.
        good: int64 `[m]`, the numbers of the texts that could be read.
        answers: for these, in order.
        smiles: per text, its canonical SMILES, or None; all None where none were asked for.
    """

    errors: list[str | None]
    warnings: list[tuple[str, ...]]
    good: np.ndarray
    answers: Answers
    smiles: Sequence[str | None] = ()


def answer_stream(
    predictor: Answering, chunks: Iterable[Chunk], workers: int, smiles: bool = False
) -> Iterator[Answered]:
    """Read and predict chunks of texts, in order; memory stays bounded.

    On a processor each worker process reads and predicts, with a copy of the model and one thread, and only answers go
    from process to process. With a model on a GPU workers read, and this process predicts, several chunks at a time.

    Args:
        predictor: the model.
        chunks: of texts.
        workers: processes; 0 works in this one.
        smiles: find canonical SMILES too.
    """
    if workers < 1 or predictor.device.type != "cpu":
        beside: deque[Sequence[RowFeatures | None]] = deque()

        def molecules() -> Iterator[tuple[Sequence[Text], Sequence[np.ndarray | None]]]:
            for texts, coordinates, features in chunks:
                beside.append(features)
                yield texts, coordinates

        read = featurise_stream(predictor.header.featuriser, molecules(), workers, smiles=smiles)
        together = 1 if predictor.device.type == "cpu" else _TOGETHER
        while parts := list(islice(read, together)):
            yield answer_flat(predictor, parts, [row for _ in parts for row in beside.popleft()])
        return
    wanted = predictor.header.features
    # compiles what is to be compiled, so that the workers need not, each for itself
    _answer(predictor, [predictor.header.featuriser.simplest], [None], [wanted.unknown if wanted else None])
    with TemporaryDirectory(prefix="gtx-") as folder:
        file = Path(folder, "predictor")
        file.write_bytes(dumps(predictor))
        yield from in_workers(partial(_answer_in_worker, file, smiles=smiles), chunks, workers)


def as_rows(answers: Answers) -> list[tuple[Cell, ...]]:
    """Per molecule, its answer, as `gtx.data.TableWriter` takes it."""
    return list(zip(*(column.tolist() for column in answers.columns()), strict=True))


def answer_flat(
    predictor: Answering, parts: Sequence[FlatMolecules], features: Sequence[RowFeatures | None]
) -> Answered:
    """Predict texts that were read already, with the features of each."""
    done, wanted = Featurised.join(parts), predictor.header.features
    done = wanted.joined(done, features) if wanted else done
    return Answered(done.errors, done.warnings, done.good, predictor.predict_store(done.store), done.smiles)


def _answer(
    predictor: Answering,
    texts: Sequence[Text],
    coordinates: Sequence[np.ndarray | None],
    features: Sequence[RowFeatures | None],
    smiles: bool = False,
) -> Answered:
    part = featurise_texts(predictor.header.featuriser, texts, coordinates, smiles=smiles)
    return answer_flat(predictor, [part], features)


def _answer_in_worker(
    file: Path,
    texts: Sequence[Text],
    coordinates: Sequence[np.ndarray | None],
    features: Sequence[RowFeatures | None],
    smiles: bool = False,
) -> Answered:
    return _answer(_opened(file), texts, coordinates, features, smiles)


@lru_cache(maxsize=1)
def _opened(file: Path) -> Answering:
    """The predictor of this worker process, whose file no other call ever has."""
    torch.set_num_threads(1)  # there are as many workers as are to compute
    return pickle.loads(file.read_bytes())


# --- Tables of any length, predicted in bounded memory, by worker processes where there are many rows.

EVERY_ROW = Selection()


@dataclass(frozen=True)
class TableOutcome:
    """Outcome of predicting a table.

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
    header = output_header(table.columns, list(named))
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
    given = 1 if smiles_column else len(smiles_columns or names)
    if given != len(names):
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
    for i, *said in zip(done.good.tolist(), answers.finite.tolist(), answers.warnings, strict=True):
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
