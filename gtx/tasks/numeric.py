"""Tasks of numbers or classes, each with its own column: the base of their three parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError, did_you_mean
from gtx.base.schema import check, mapping_of, number
from gtx.data import MoleculeStore
from gtx.data.cells import list_text
from gtx.data.rows import Row, find_columns, format_row_message, plural
from gtx.settings.tasks import WeightOptions
from gtx.tasks.columns import LEVELS, Columns, RelationColumns, lists_of
from gtx.tasks.metrics import Target, constants, evaluate, masked_mean
from gtx.tasks.task import AnswerRules, Answers, Objective, Task, fresh_columns

# --- Numbers, one for each molecule, atom or bond.


class NumericObjective(Objective):
    """Base of objectives of T targets that are numbers, one value for each molecule, atom or bond.

    A subclass defines the loss (`elementwise`), the meaning of an output (`unscale`) and the scores (`metrics`).
    Every item has the same weight in the loss and in the scores; blanks are left out.
    """

    has_link: ClassVar[bool] = False
    """True if outputs are logits or logarithms that `regressands` only approximate; a closed-form fit is then
    calibrated."""

    # what a kind of target defines

    @abstractmethod
    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of each entry `[R, T]` from outputs `[R, C]` and scaled targets `[R, T]` without blanks."""

    @abstractmethod
    def unscale(self, output: Tensor, store: MoleculeStore | None = None) -> Tensor:
        """Convert outputs `[..., R, C]` for a store to the user's units or to probabilities, float64 `[..., R, P]`."""

    @property
    def widths(self) -> list[int]:
        """Number of predictions for each target: one, or one per class."""
        return [1] * len(self.targets)

    @property
    def out_channels(self) -> int:
        """Number of outputs: one per prediction, then further outputs, such as variances."""
        return self.num_predictions

    def scale(self, store: MoleculeStore) -> Tensor:
        """Scale the targets of a store for the loss, float32 `[R, T]`."""
        return self.level.targets(store).float().cpu()

    def ideal(self, y: Tensor) -> Tensor:
        """Convert scaled targets `[R, T]` to ideal predictions, float64 `[R, P]`, NaN for blanks."""
        return y.double()

    def val_score(self, output: Tensor, scaled: Tensor, logged: dict[str, float]) -> float:
        """Compute the score that selects the best epoch, by default the loss; a lower score is better."""
        return logged["val_loss"]

    @property
    def point(self) -> Self:
        """Objective of point predictions alone, such as a kernel's."""
        return self

    def nll(self, output: Tensor, scaled: Tensor) -> Tensor:
        """Compute the negative log-likelihood `[T]`, up to a constant, of outputs `[m, P]` for scaled targets
        `[m, T]`, NaN for blanks.
        """
        return (self.point.elementwise(output, scaled.nan_to_num()) * ~scaled.isnan()).sum(0)

    # what follows from it

    @property
    def num_predictions(self) -> int:
        """Number P of predictions for each row."""
        return sum(self.widths)

    @cached_property
    def places(self) -> list[Target]:
        """Each target with its columns of the predictions `[R, P]`, and of the first outputs."""
        ends = np.cumsum(self.widths).tolist()
        starts = [0, *ends[:-1]]
        return [Target(*each) for each in zip(self.targets, map(slice, starts, ends), strict=True)]

    def outputs(self, target: int) -> np.ndarray:
        """Return the indices of a target's outputs, its predictions first; by default in blocks of P outputs."""
        blocks = np.arange(self.out_channels).reshape(-1, self.num_predictions)
        return blocks[:, self.places[target].columns].flatten()

    def examples(self, store: MoleculeStore) -> MoleculeStore:
        return self.level.with_targets(store, self.scale(store))

    def mean_loss(self, output: Tensor, examples: Any) -> Tensor:
        return masked_mean(self.elementwise, output, self.level.targets(examples), self._loss_weights(examples))

    def _loss_weights(self, examples: Any) -> Tensor | None:
        """Return the weights of the loss per row and target, broadcastable to `[R, T]`; None for uniform weights."""
        rows = self.level.weights(examples)
        rows = None if rows is None else rows[:, None]
        if not self.task.target_weights:
            return rows
        weights = [self.task.target_weights.get(name, 1.0) for name in self.targets]
        targets = constants(weights, self.level.targets(examples))[None]
        return targets if rows is None else rows * targets

    def validation_scorer(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        y, examples = self.level.targets(val).cpu(), self.examples(val).to("cpu")
        scaled = self.level.targets(examples).float()
        targets: dict[str, Any] = {self.level.field: scaled}
        examples = replace(examples, **targets)

        def scores(output: Tensor) -> dict[str, float]:
            output = output.float().cpu()
            values = self.evaluate(y, self.unscale(output, val))
            logged = {f"val_{name}": values[name] for name in self.metrics if values[name] is not None}
            logged["val_loss"] = float(self.mean_loss(output, examples))
            return {**logged, "val_score": self.val_score(output, scaled, logged)}

        return scores

    def evaluate(
        self, y: np.ndarray | Tensor, prediction: np.ndarray | Tensor, names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Score predictions `[n, P]` against what was measured `[n, T]`, see `gtx.tasks.metrics.evaluate`; by default
        with all metrics.
        """
        metrics = self.metrics if names is None else {name: self.metrics[name] for name in names}
        return evaluate(y, prediction, metrics, self.places)


# --- Predictions, and the rules that make them of outputs.


@dataclass(frozen=True, kw_only=True)
class Predictions(Answers):
    """Predictions for m molecules: values in the targets' units, or class probabilities, with any uncertainty.

    Attributes:
        mean: mean prediction of the networks, float64 `[m, P]`, with a column per target, or per class of each
            target; of atoms or bonds `[m]` arrays, `[a, P]` each.
        std: standard deviation from a method of uncertainty, or between networks, float64 `[m, P]`; None for a
            single member without a method.
        low, high: limits of the prediction interval, float64 `[m, T]`, NaN for a target without an interval; or None.
        reach: widths of the interval below and above the mean, up to a factor per target, float64 `[m, T]` each; None
            for intervals of constant width.
        distance: distance to the nearest training molecule (1 - similarity), float64 `[m]`, if the task uses the
            distance; or None.
        vacuity: lack of evidence for the classes of each target, float64 `[m, T]`, from 0 to 1, for evidential
            classification; or None.
    """

    mean: np.ndarray
    std: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    reach: tuple[np.ndarray, np.ndarray] | None = None
    distance: np.ndarray | None = None
    vacuity: np.ndarray | None = None

    @property
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with a number for every target, atom and bond."""
        if self.mean.dtype == object:
            return np.array([np.isfinite(each).all() for each in self.mean], bool)
        return np.isfinite(self.mean).all(axis=1)


class NumericAnswers(AnswerRules):
    """Answers that are numbers, or lists of numbers for atoms and bonds; with the deviation of several members."""

    def __init__(self, task: NumericTask) -> None:
        self.task: Any = task
        self.columns: Any = task.columns
        self.objective: Any = task.objective

    # what a kind of answer defines

    def target_columns(self, target: int, answers: Predictions) -> list[tuple[str, np.ndarray]]:
        """Return the columns of a target's answers, `[m]` each, and their names after that of the target."""
        parts = {"pred": answers.mean, "std": answers.std, "low": answers.low, "high": answers.high}
        return [(name, part[:, target]) for name, part in parts.items() if part is not None]

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
        members = self.objective.unscale(outputs.transpose(0, 1), store).numpy()  # [members, R, P]
        std = members.std(0, ddof=1) if len(members) > 1 else None
        warnings = [] if store is None else self.warnings(store)
        return Predictions(mean=self.calibrate(members.mean(0)), std=std, warnings=warnings)

    def calibrate(self, mean: np.ndarray) -> np.ndarray:
        """Apply the calibration to predictions `[m, P]`, if there is one."""
        return mean

    def warnings(self, store: MoleculeStore) -> list[list[str]]:
        """Return warnings about each molecule's answer."""
        return [[] for _ in range(len(store))]

    def evaluate_uncertainty(self, y: np.ndarray, answers: Predictions) -> dict[str, Any]:
        """Score the uncertainty of answers by measured values `[n, T]`; empty without any."""
        return {}

    # what follows from it

    def table(self, answers: Predictions) -> tuple[np.ndarray, ...]:
        """Return the columns that `output_columns` names."""
        targets = range(len(self.objective.targets))
        return tuple(column for t in targets for _, column in self.target_columns(t, answers))

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        lists, channels = self.objective.level.lists, self.objective.out_channels + self.reads_similarity
        none = self.predictions(torch.zeros(0, members, channels, dtype=torch.float64), None)
        wanted = (
            (f"{name}_{suffix}", str if lists or column.dtype == object else float)
            for t, name in enumerate(self.objective.targets)
            for suffix, column in self.target_columns(t, none)
        )
        return fresh_columns(taken, wanted)

    def decode(self, outputs: Any, store: MoleculeStore) -> Predictions:
        if not self.objective.level.lists:
            answers = self.predictions(outputs, store)
            return replace(answers, table=self.table(answers))
        none = torch.zeros(0, 1, self.objective.out_channels, dtype=torch.float64)
        answers = self.predictions(torch.cat(list(outputs)) if len(outputs) else none, None)
        ptr = np.cumsum([0, *map(len, outputs)])
        lists = (map(list_text, lists_of(column, ptr)) for column in self.table(answers))
        table = tuple(np.array(list(texts), object) for texts in lists)
        mean = np.fromiter(lists_of(answers.mean, ptr), object, len(store))
        return Predictions(mean=mean, table=table, warnings=self.warnings(store))

    def member_columns(self, members: int) -> dict[str, type]:
        """Name the columns of the predictions of single members, prediction by prediction, with their types."""
        return {f"{name}_{k}": float for name in self.prediction_columns for k in range(1, members + 1)}

    def member_predictions(self, outputs: Tensor, store: MoleculeStore) -> list[np.ndarray]:
        """Convert the outputs of `Objective.predict` to the columns of `member_columns`, `[m]` each."""
        each = self.objective.unscale(outputs.transpose(0, 1), store)  # [members, m, P]
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
        self.left_out: dict[int, tuple[int, tuple[int, str]]] = {}  # number of cells of a target, and the first
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
        cells = self.columns.read(rows, self.names)
        for i, t, cell, reason in cells.bad:
            self._leave_out(t, rows[i], cell, reason)
        if cells.lists is not None:
            for row, lists, mean in zip(rows, cells.lists, answers.mean, strict=True):
                self.y.append(self._items(row, lists, len(mean)))
            self.prediction += list(answers.mean)
            return
        joined = self.columns.check_rows(cells.y)
        for i, t in np.argwhere(np.isinf(joined) & ~np.isnan(cells.y)).tolist():
            self._leave_out(t, rows[i], rows[i].cells[self.position[t]], self.columns.row_complaint(cells.y[i]))
        self.y.append(np.where(np.isinf(joined), np.nan, joined))
        if cells.bounds is not None:
            self.bounds.append(cells.bounds)
        self.prediction.append(answers.mean)

    def _items(self, row: Row, lists: Mapping[str, np.ndarray], items: int) -> np.ndarray:
        """Return the values of a row, one for each of its atoms or bonds, `[items, T]`."""
        y = np.full((items, len(self.columns.targets)), np.nan)
        for t, place in self.position.items():
            values = lists.get(self.columns.targets[t])
            if values is not None and len(values) != items:
                each = plural(items, self.columns.level.name)
                reason = f"has {plural(len(values), 'item')}; expected one for each of the molecule's {each}"
                self._leave_out(t, row, row.cells[place], reason)
            elif values is not None:
                y[:, t] = values
        return y

    def _leave_out(self, target: int, row: Row, cell: str, reason: str) -> None:
        """Count a cell that is not scored."""
        this = row.number, format_row_message(row.number, None, cell, reason)
        number, first = self.left_out.get(target, (0, this))
        self.left_out[target] = number + 1, min(first, this)

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
        """State how many cells of the first few targets are not scored, and why the first is not."""
        incomplete = sorted(self.left_out)
        lines = [self._line(t) for t in incomplete[:MOST_LINES]]
        if len(incomplete) > MOST_LINES:
            lines.append(f"{len(incomplete) - MOST_LINES} more targets have cells that are not scored")
        return lines + self.relations.lines()

    def _line(self, target: int) -> str:
        """State how many cells of a target are scored and why the others are not."""
        (number, (_, first)), known = self.left_out[target], [~np.isnan(part[:, target]) for part in self.y]
        scored = sum(int(part.any() if self.columns.level.lists else part.sum()) for part in known)
        pairs = [~np.isnan(part[:, target :: len(self.columns.targets)]) for part in self.bounds]
        bounds = sum(int(pair.any(1).sum()) for pair in pairs)
        blank = self.rows - scored - bounds - number
        words = [f"{n} {'is' if n == 1 else 'are'} {what}" for n, what in ((bounds, "a bound"), (blank, "blank")) if n]
        words.append(f"{number} cannot be scored, the first: {first}")
        return f"{self.columns.targets[target]}: scored on {scored} of {self.rows} rows; {'; '.join(words)}"


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


# --- Tasks of numbers and classes.


@dataclass(frozen=True)
class NumericTask(Task, WeightOptions):
    """Base class of tasks whose targets are numbers or classes, each with its own column.

    A subclass names its `objective`; the columns are of numbers, and the answers one number per target, by default.
    """

    unsaved: ClassVar[frozenset[str]] = frozenset({"target_weights"})

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in check(self.target_weights or {}, mapping_of(number(0)), "target_weights"):
            if name not in self.targets:
                raise InputError(f"target_weights: there is no target {name!r}{did_you_mean(name, self.targets)}")

    @cached_property
    def columns(self) -> Columns:
        return Columns(self.targets, LEVELS[self.level])

    @property
    @abstractmethod
    def objective(self) -> NumericObjective:
        """Outputs, loss and metrics."""

    answers = cached_property(NumericAnswers)

    def errors(self, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Compute the errors of predictions of one target, `[m]` each, that a report lists and draws; an error is above
        0 where the prediction is too high.
        """
        return prediction - y

    def project(self, prediction: np.ndarray) -> np.ndarray:
        """Project predictions `[m, P]` of a method that ignores the task to values that the task allows."""
        return prediction

    def known_part(self, store: MoleculeStore) -> np.ndarray | None:
        """Return the part of the targets that is known before training, `[m, T]`, such as a reference per element."""
        return None

    def match_targets(self, other: Task) -> list[int]:
        """Map each target to its index in another task of the same class and level, -1 for a new one."""
        theirs = other.targets if type(other) is type(self) and other.level == self.level else ()
        return [theirs.index(name) if name in theirs else -1 for name in self.targets]

    def outputs_of(self, other: Task) -> list[int] | None:
        if not isinstance(other, NumericTask):
            return None
        own, theirs = self.objective, other.objective
        pairs = [(own.outputs(t), theirs.outputs(at)) for t, at in enumerate(self.match_targets(other)) if at >= 0]
        if not pairs or other.targets == self.targets or any(len(one) != len(two) for one, two in pairs):
            return None
        indices = np.full(own.out_channels, -1)
        for one, two in pairs:
            indices[one] = two
        return indices.tolist()


def is_numeric(task: object) -> TypeGuard[NumericTask]:
    """Return whether a task is of numbers or classes of molecules."""
    return isinstance(task, NumericTask) and task.level == "molecule"


def require_numeric(task: Task, purpose: str) -> NumericTask:
    """Return a task of numbers or classes of molecules; for any other, an `InputError` names the purpose."""
    if not is_numeric(task):
        raise InputError(f"task {task.name} does not support {purpose} of numbers and classes of molecules")
    return task
