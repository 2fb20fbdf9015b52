"""Answers of a task: outputs to values, spread and intervals, the names of their columns, and the scores of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError, printable
from gtx.data.cells import LARGEST, list_text
from gtx.data.rows import Row, find_columns
from gtx.data.table_writer import find_unused_column_name
from gtx.tasks.bounds import RelationColumns, read_bounds
from gtx.tasks.columns import Columns
from gtx.tasks.levels import lists_of
from gtx.tasks.objective import NumericObjective

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.tasks.task import NumericTask


# --- Predicted numbers, and predicted lists of numbers.


class Answers(Protocol):
    """Answers of a model for m molecules."""

    @property
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with an answer."""

    @property
    def warnings(self) -> list[list[str]]:
        """Texts per molecule."""

    def subset(self, rows: np.ndarray) -> Answers:
        """Select the molecules `rows`."""

    def columns(self) -> list[np.ndarray]:
        """Return the columns that `AnswerRules.output_columns` names, `[m]` each; NaN or None without an answer."""


@dataclass(frozen=True)
class Predictions:
    """Predictions for m molecules: values in the targets' units, or class probabilities, with any uncertainty.

    Attributes:
        mean: mean prediction of the networks, float64 `[m, P]`, with a column per target, or per class of each
            target.
        std: standard deviation from a method of uncertainty, or between networks, float64 `[m, P]`; None for a
            single member without a method.
        low, high: limits of the prediction interval, float64 `[m, T]`, NaN for a target without an interval; or None.
        reach: widths of the interval below and above the mean, up to a factor per target, float64 `[m, T]` each; None
            for intervals of constant width.
        warnings: list of warnings for each molecule.
        distance: distance to the nearest training molecule (1 - similarity), float64 `[m]`, if the task uses the
            distance; or None.
        vacuity: lack of evidence for the classes of each target, float64 `[m, T]`, from 0 to 1, for evidential
            classification; or None.
        table: values of the columns that `AnswerRules.output_columns` names, `[m]` each.
    """

    mean: np.ndarray
    std: np.ndarray | None
    low: np.ndarray | None
    high: np.ndarray | None
    warnings: list[list[str]]
    table: Sequence[np.ndarray] = ()
    reach: tuple[np.ndarray, np.ndarray] | None = None
    distance: np.ndarray | None = None
    vacuity: np.ndarray | None = None

    @property
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with a number for every target."""
        return np.isfinite(self.mean).all(axis=1)

    def subset(self, rows: np.ndarray) -> Predictions:
        """Select the molecules `rows`."""
        optional = {name: getattr(self, name) for name in ("std", "low", "high", "distance", "vacuity")}
        return Predictions(
            self.mean[rows],
            **{name: None if values is None else values[rows] for name, values in optional.items()},
            warnings=[self.warnings[i] for i in rows],
            table=[column[rows] for column in self.table],
            reach=None if self.reach is None else (self.reach[0][rows], self.reach[1][rows]),
        )

    def columns(self) -> list[np.ndarray]:
        """Return the columns that `AnswerRules.output_columns` names; NaN or None for a molecule that is not
        `finite`.
        """
        blanks = (np.array(np.nan if column.dtype.kind == "f" else None) for column in self.table)
        return [np.where(self.finite, column, blank) for column, blank in zip(self.table, blanks, strict=True)]


@dataclass(frozen=True)
class ListPredictions:
    """Predictions for each atom or bond of m molecules: numbers in the targets' own units, or probabilities.

    Attributes:
        mean: for each molecule float64 `[a, P]`, the mean over members.
        table: the columns that `AnswerRules.output_columns` names, each with `[a]` numbers or texts for each molecule.
        warnings: per molecule, a list of texts.
    """

    mean: Sequence[np.ndarray]
    table: Sequence[Sequence[np.ndarray]]
    warnings: list[list[str]]

    @cached_property
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with finite numbers for all their atoms or bonds."""
        return np.array([np.isfinite(each).all() for each in self.mean], bool)

    def subset(self, rows: np.ndarray) -> ListPredictions:
        """Select the molecules `rows`."""
        mean, *table = ([each[i] for i in rows] for each in (self.mean, *self.table))
        return ListPredictions(mean, table, [self.warnings[i] for i in rows])

    def columns(self) -> list[np.ndarray]:
        """Return JSON lists, `[m]` each, as `AnswerRules.output_columns` names them; None if not `finite`."""
        return [
            np.array(
                [list_text(items) if finite else None for items, finite in zip(column, self.finite, strict=True)],
                object,
            )
            for column in self.table
        ]


# --- The rules by which outputs become answers.


class Scores(Protocol):
    """Collection of answers and true values while a table is read."""

    def add(self, rows: Sequence[Row], answers: Any) -> None:
        """Add some rows and their answers."""

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None if the table has no true values."""

    def notes(self) -> list[str]:
        """Return notes about all answers, a line each."""


class AnswerRules(ABC):
    """Rules by which outputs become answers: values, spread, intervals, and the names of their columns."""

    @property
    def reads_similarity(self) -> bool:
        """True if `decode` needs the distance to the nearest training molecule, 1 - similarity, after all outputs."""
        return False

    @abstractmethod
    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        """Name the columns of answers, target by target, with their types float, bool or str.

        A name in `taken` gets a number: `y_pred1` for `y_pred`.
        """

    @abstractmethod
    def decode(self, outputs: Any, store: MoleculeStore) -> Answers:
        """Convert the outputs of `Objective.predict` for all molecules of a store to answers in the user's units."""

    def member_columns(self, members: int) -> dict[str, type] | None:
        """Name the columns of the predictions of single members, prediction by prediction, with their types.

        None for a task without predictions of single members.
        """
        return None

    def members_apart(self, outputs: Any, store: MoleculeStore) -> list[np.ndarray]:
        """Convert the outputs of `Objective.predict` to the columns of `member_columns`, `[m]` each."""
        raise NotImplementedError(f"{type(self).__name__} has no predictions of single members")

    def fit(self, answers: Any, y: np.ndarray) -> dict[str, Any]:
        """Calibrate, for example, intervals on the answers for held-out rows and their targets `[n, T]`, and return the
        values as fields of the task.
        """
        return {}

    @abstractmethod
    def score(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: Any, rows: np.ndarray
    ) -> dict[str, Any]:
        """Score the answers of networks for the molecules `rows` of a store, as in `metrics.json`.

        Returns:
            The means over targets, and `per_target`; None where a score is not defined.
        """

    @abstractmethod
    def scores(self, columns: Sequence[str]) -> Scores:
        """Make an object that collects predictions and scores a table that has target columns."""

    def notes(self) -> list[str]:
        """Return notes about how targets were read and answers calibrated, one line each."""
        return []


def fresh_columns(taken: Iterable[str], wanted: Iterable[tuple[str, type]]) -> dict[str, type]:
    """Rename the columns `wanted` where their names are `taken`."""
    names = list(taken)
    fresh: dict[str, type] = {}
    for name, dtype in wanted:
        names.append(find_unused_column_name(names, name))
        fresh[names[-1]] = dtype
    return fresh


class NumericAnswers(AnswerRules):
    """Answers that are numbers, or lists of numbers for atoms and bonds; with the deviation of several members."""

    def __init__(self, task: NumericTask) -> None:
        self.task: Any = task
        self.columns: Any = task.columns
        self.objective: Any = task.objective

    # what a kind of answer defines

    def suffixes(self, target: int, members: int) -> dict[str, type]:
        """Return suffixes and types of the columns of a target's answers."""
        return {"pred": float, "std": float} if members > 1 else {"pred": float}

    def table(self, answers: Predictions) -> list[np.ndarray]:
        """Return the columns that `output_columns` names."""
        parts = [part for part in (answers.mean, answers.std, answers.low, answers.high) if part is not None]
        return [part[:, t] for t in range(len(self.objective.targets)) for part in parts]

    @property
    def prediction_names(self) -> list[str]:
        """Names of the P columns of predictions."""
        return list(self.objective.targets)

    @property
    def prediction_columns(self) -> list[str]:
        """Names of the answer columns that hold the P predictions."""
        return [f"{name}_pred" for name in self.prediction_names]

    def quantity(self, column: int) -> str:
        """Name the quantity that a column of predictions holds."""
        return self.prediction_names[column]

    def predictions(self, outputs: Tensor, store: MoleculeStore | None) -> Predictions:
        """Convert outputs `[R, members, C]` to predictions of R molecules, atoms or bonds, without their table."""
        members = self.objective.unscaled(outputs.transpose(0, 1), store).numpy()  # [members, R, P]
        std = members.std(0, ddof=1) if len(members) > 1 else None
        return Predictions(members.mean(0), std, None, None, [] if store is None else self.warnings(store))

    def warnings(self, store: MoleculeStore) -> list[list[str]]:
        """Return warnings about each molecule's answer."""
        return [[] for _ in range(len(store))]

    def evaluate_uncertainty(self, y: np.ndarray, answers: Predictions) -> dict[str, Any]:
        """Score the uncertainty of answers by measured values `[n, T]`; empty without any."""
        return {}

    # what follows from it

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        lists = self.objective.level.lists
        wanted = (
            (f"{name}_{suffix}", str if lists else dtype)
            for t, name in enumerate(self.objective.targets)
            for suffix, dtype in self.suffixes(t, members).items()
        )
        return fresh_columns(taken, wanted)

    def decode(self, outputs: Any, store: MoleculeStore) -> Any:
        if not self.objective.level.lists:
            answers = self.predictions(outputs, store)
            return replace(answers, table=self.table(answers))
        none = torch.zeros(0, 1, self.objective.out_channels, dtype=torch.float64)
        answers = self.predictions(torch.cat(list(outputs)) if len(outputs) else none, None)
        ptr = np.cumsum([0, *map(len, outputs)])
        table = [lists_of(column, ptr) for column in self.table(answers)]
        return ListPredictions(lists_of(answers.mean, ptr), table, self.warnings(store))

    def member_columns(self, members: int) -> dict[str, type] | None:
        if self.objective.level.lists:
            return None
        return {f"{name}_{k}": float for name in self.prediction_columns for k in range(1, members + 1)}

    def members_apart(self, outputs: Tensor, store: MoleculeStore) -> list[np.ndarray]:
        each = self.objective.unscaled(outputs.transpose(0, 1), store)  # [members, m, P]
        return list(each.permute(2, 0, 1).flatten(0, 1).numpy())

    def score(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: Any, rows: np.ndarray
    ) -> dict[str, Any]:
        part, molecules = answers.subset(rows), store.subset(rows)
        y = self.objective.level.truth(molecules)
        if self.objective.level.lists:
            none = np.empty((0, self.objective.num_predictions))
            return self.objective.evaluate(y, np.concatenate([none, *part.mean]))
        scores, uncertainty = self.objective.evaluate(y, part.mean), self.evaluate_uncertainty(y, part)
        if store.bounds is not None:
            scores = add_bound_scores(scores, self.objective.targets, store.bounds.numpy()[rows], part.mean)
        return scores | ({"uncertainty": uncertainty} if uncertainty else {})

    def scores(self, columns: Sequence[str]) -> TableScores:
        return TableScores(self.columns, self.objective, columns)


# --- Scores of a table that is read in portions, and the count of cells that are not scored.

MOST_LINES = 10
"""Largest number of targets whose cells are told of."""


@dataclass
class CellCount:
    """Number of cells of a target with a value, with a bound, and with something else by reason, with the first."""

    scored: int = 0
    bounds: int = 0
    others: dict[str, tuple[int, str]] = field(default_factory=dict)

    def leave_out(self, row: Row, cell: str, reason: str) -> None:
        """Count a cell that is not scored; the reason is what it has in place of a value."""
        number, first = self.others.get(reason, (0, f"row {row.number}: '{printable(cell, 40)}'"))
        self.others[reason] = number + 1, first

    def line(self, target: str, rows: int) -> str:
        """State how many cells are scored and why the others are not."""
        words = [
            f"{number} {'has' if number == 1 else 'have'} {reason}, first {first}"
            for reason, (number, first) in self.others.items()
        ]
        blank = rows - self.scored - self.bounds - sum(number for number, _ in self.others.values())
        for number, what in ((self.bounds, "a bound"), (blank, "blank")):
            words += [f"{number} {'is' if number == 1 else 'are'} {what}"] if number else []
        return f"{target}: scored on {self.scored} of {rows} rows; {'; '.join(words)}"


class TableScores:
    """Collection of predictions and measured values, if the table has them: 16 bytes per value.

    Args:
        columns: target columns of the task.
        objective: objective of the task.
        names: names of the columns of the table.
    """

    def __init__(self, columns: Columns, objective: NumericObjective, names: Sequence[str]) -> None:
        self.columns = columns
        self.objective = objective
        self.names = names
        self.position: dict[int, int] = find_columns(names, columns.targets)
        self.counts: dict[int, CellCount] = {t: CellCount() for t in self.position}
        self.relations: RelationColumns = columns.relations(names)
        self.rows: int = 0
        self.y: list[np.ndarray] = []
        self.bounds: list[np.ndarray] = []
        self.prediction: list[np.ndarray] = []

    def add(self, rows: Sequence[Row], answers: Any) -> None:
        """Add some rows and their predictions; a cell that cannot be read, or does not fit, is not scored."""
        if not self.position:
            return
        self.relations.add(rows)
        self.rows += len(rows)
        if self.columns.level.lists:
            self.y += [self._items(row, len(mean)) for row, mean in zip(rows, answers.mean, strict=True)]
            self.prediction += answers.mean
        else:
            self.y.append(self._values(rows))
            self.prediction.append(answers.mean)

    def _values(self, rows: Sequence[Row]) -> np.ndarray:
        """Read the values of some rows, `[n, T]`, and keep their bounds."""
        targets = len(self.columns.targets)
        y, bounds = np.full((len(rows), targets), np.nan), np.full((len(rows), 2, targets), np.nan)
        for t, count in self.counts.items():
            cells = self.columns.cells(t, rows, self.names)
            values = self.columns.values(t, cells)
            if self.columns.censored:
                bounds[:, :, t] = read_bounds(cells)
                count.bounds += int((~np.isnan(bounds[:, :, t])).any(axis=1).sum())
            bad = np.abs(values) > LARGEST  # and what is no number is infinite
            for i in np.flatnonzero(bad).tolist():
                count.leave_out(rows[i], cells[i], self.columns.unread_words(t, cells[i]))
            y[:, t] = np.where(bad, np.nan, values)
        joined = self.columns.check_rows(y)
        for i, t in np.argwhere(np.isinf(joined) & ~np.isnan(y)).tolist():
            self.counts[t].leave_out(rows[i], rows[i].cells[self.position[t]], self.columns.joint_words)
        joined = np.where(np.isinf(joined), np.nan, joined)
        for t, count in self.counts.items():
            count.scored += int((~np.isnan(joined[:, t])).sum())
        if self.columns.censored:
            self.bounds.append(bounds.reshape(len(rows), -1))
        return joined

    def _items(self, row: Row, items: int) -> np.ndarray:
        """Read the lists of a row, one value for each of its atoms or bonds, `[items, T]`."""
        y = np.full((items, len(self.columns.targets)), np.nan)
        for t, position in self.position.items():
            count, cell, level = self.counts[t], row.cells[position], self.columns.level.name
            try:
                values = self.columns.items(t, cell)
            except InputError:
                count.leave_out(row, cell, self.columns.unread_words(t, cell))
                continue
            if values is not None and len(values) != items:
                length = f"a list of another length than one {self.columns.nouns[0]} for each {level}"
                count.leave_out(row, cell, length)
            elif values is not None:
                y[:, t] = values
                count.scored += int(not np.isnan(values).all())
        return y

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None without a single measured value or bound."""
        if not self.y:
            return None
        y, prediction = np.concatenate(self.y), np.concatenate(self.prediction)
        bounds = np.concatenate(self.bounds) if self.bounds else np.empty(0)
        if np.isnan(y).all() and np.isnan(bounds).all():
            return None
        scores = self.objective.evaluate(y, prediction)
        if self.bounds:
            scores = add_bound_scores(scores, self.columns.targets, bounds, prediction)
        names = [self.columns.targets[t] for t in self.position]
        return {**scores, "per_target": {name: scores["per_target"][name] for name in names}}

    def notes(self) -> list[str]:
        """State how many cells of the first few targets are not scored, and why."""
        counts = [(self.columns.targets[t], count) for t, count in self.counts.items() if count.others]
        lines = [count.line(target, self.rows) for target, count in counts[:MOST_LINES]]
        if len(counts) > MOST_LINES:
            lines.append(f"{len(counts) - MOST_LINES} more targets have cells that are not scored")
        return lines + self.relations.lines()


def add_bound_scores(
    scores: dict[str, Any], targets: Sequence[str], bounds: np.ndarray, prediction: np.ndarray
) -> dict[str, Any]:
    """Add to the scores of each target the number of its `bounds` and `bounds_kept`, the share satisfied."""
    above, below = np.split(bounds, 2, axis=1)
    known, kept = ~np.isnan(above) | ~np.isnan(below), (prediction >= above) | (prediction <= below)
    for t, name in enumerate(targets):
        if count := int(known[:, t].sum()):
            scores["per_target"][name] |= {"bounds": count, "bounds_kept": float(kept[:, t].sum() / count)}
    return scores
