"""Base of tasks whose cells are numbers, or bounds of numbers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.data.columns import Row, find_columns
from gtx.data.delimited import LARGEST
from gtx.data.row_log import RowLog, named
from gtx.data.targets import BLANK_WORDS, BLANKS, comma_advice, has_comma, no_numbers, parse_number
from gtx.schema import shown
from gtx.settings.tasks import WeightOptions
from gtx.tasks.calibration import LEVEL, Reach
from gtx.tasks.metrics import Target, constants, evaluate, masked_mean
from gtx.tasks.task import (
    Predictions,
    ScoredCells,
    Task,
    check_task_capability,
    count_lines,
    fresh_columns,
    targets_of,
)

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.data.row_log import InputFile


# --- Censored values: cells such as `>5`, and their loss.

SIGNS = {">=": 1, "<=": -1, ">": 1, "<": -1, "≥": 1, "≤": -1}
"""Prefixes of a bound: 1 where values are above it, -1 where they are below."""
_STEPS = 8  # of the search for the spread
_LEAST = 1e-6  # variance, of z-scores


def parse_bound(cell: str) -> tuple[int, float] | None:
    """Parse a bound such as `>5` or `<= 0.1` to its side, 1 or -1, and its number; None for anything else."""
    cell = cell.strip()
    sign = next((sign for sign in SIGNS if cell.startswith(sign)), None)
    if sign is None:
        return None
    number = parse_number(cell[len(sign) :])
    return (SIGNS[sign], number) if abs(number) <= LARGEST else None  # a blank is NaN, a text infinite


def read_bounds(cells: Sequence[str]) -> np.ndarray:
    """Parse the bounds in the cells of a column, float64 `[n, 2]`: lower bounds, and upper bounds."""
    bounds = np.full((len(cells), 2), np.nan)
    for i, cell in enumerate(cells):
        if bound := parse_bound(cell):
            side, number = bound
            bounds[i, 0 if side > 0 else 1] = number
    return bounds


RELATIONS = {
    **dict.fromkeys(("", "=", "==", "~", "\u2248"), ""),
    **dict.fromkeys((">", ">>"), ">"),
    **dict.fromkeys(("<", "<<"), "<"),
    **dict.fromkeys((">=", "\u2265"), ">="),
    **dict.fromkeys(("<=", "\u2264"), "<="),
}
"""Relations that a table has beside its values, and the signs of bounds that they are; no sign for an exact value."""
RELATION_WORDS = "=, ~, >, >=, <, <= or blank"


def parse_relation(cell: str) -> str | None:
    """Parse a relation, with or without quotes, as the sign of a bound; None for another text."""
    text = cell.strip().strip("'\"").strip()
    return RELATIONS.get("" if text.lower() in BLANKS else text)


def join_relation(cell: str, relation: str) -> str:
    """Write a value and its relation as one cell; what does not fit together is no number then."""
    sign = parse_relation(relation)
    if not cell.strip() or sign == "":
        return cell
    bound, own = parse_bound(cell), parse_bound(f"{sign}0") if sign else None
    if bound and own and bound[0] == own[0]:
        return cell
    return f"{relation.strip() if sign is None else sign}{cell.strip()}"


class RelationColumns:
    """Columns of a table whose cells are all relations, beside targets that are read without them.

    Args:
        columns: columns of the table.
        targets: names of the targets.
        named: relation column that the targets are read with, which may be missing; then no other column is.
    """

    def __init__(self, columns: Sequence[str], targets: Sequence[str], named: str | None = None) -> None:
        self.columns = columns
        self.places: list[int] = list(find_columns(columns, targets).values())
        others = [i for i in range(len(columns)) if i not in self.places and named is None]
        self.counts: dict[int, Counter[str]] = {i: Counter() for i in others}
        self.missing: str | None = None if named is None or find_columns(columns, [named]) else named

    def add(self, rows: Sequence[Row]) -> None:
        """Add some rows; a column with another cell is left out."""
        for place, counts in list(self.counts.items()):
            for row in rows:
                if row.error:
                    continue
                sign = parse_relation(row.cells[place])
                if sign is None:
                    del self.counts[place]
                    break
                counts[sign] += any(parse_number(row.cells[i]) < np.inf for i in self.places)

    def lines(self) -> list[str]:
        """Name the columns with the relation of a bound, or the relation column that is missing."""
        lines = []
        if self.missing is not None:
            lines.append(f"there is no column {self.missing!r} with relations, and all values are read as exact")
        for place, counts in self.counts.items():
            bounds = {sign: number for sign, number in counts.items() if sign and number}
            if bounds:
                signs = ", ".join(f"{number} {sign!r}" for sign, number in bounds.items())
                name = printable(self.columns[place])
                lines.append(f"column {name!r} has relations of bounds ({signs}) beside values that are read as exact")
        return lines


def with_bounds(y: Tensor, bounds: Tensor | None) -> tuple[Tensor, Tensor]:
    """Fill blanks among values with their bounds.

    Args:
        y: `[n, T]`, NaN where nothing was measured.
        bounds: `[n, 2T]`, see `gtx.data.MoleculeStore`.

    Returns:
        `[n, T]`, and the sides, `[n, T]`: 1 where the value is above, -1 where it is below, 0 where it is exact.
    """
    if bounds is None:
        return y, torch.zeros_like(y)
    above, below = bounds.to(y).chunk(2, dim=1)
    lacking = y.isnan()
    side = (lacking & ~above.isnan()).to(y) - (lacking & above.isnan() & ~below.isnan()).to(y)
    return torch.where(side > 0, above, torch.where(side < 0, below, y)), side


def bound_scores(bounds: np.ndarray, prediction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count the bounds of each target, and compute the share that predictions satisfy.

    Args:
        bounds: `[n, 2T]`.
        prediction: `[n, T]`.

    Returns:
        The counts `[T]` and the shares `[T]`, NaN without bounds.
    """
    above, below = np.split(bounds, 2, axis=1)
    count = (~np.isnan(above) | ~np.isnan(below)).sum(0)
    good = ((prediction >= above) | (prediction <= below)).sum(0)
    return count, np.where(count > 0, good / np.maximum(count, 1), np.nan)


def censored_squares(output: Tensor, value: Tensor, side: Tensor, weights: Tensor) -> Tensor:
    r"""Compute squared errors, and for bounds their counterpart in a Gaussian likelihood.

    For errors with one standard deviation \(\sigma\), the loss of an exact value y is \(2 \sigma^2\) times its negative
    log-likelihood, up to a constant. The loss of a bound c is defined in the same way:

    \[ (y - f)^2, \qquad -2 \sigma^2 \ln \Phi\!\left(\frac{f - c}{\sigma}\right) \;\text{for } y > c, \qquad
       -2 \sigma^2 \ln \Phi\!\left(\frac{c - f}{\sigma}\right) \;\text{for } y < c \]

    For a small \(\sigma\), the loss of a bound is 0 on the allowed side and the squared distance on the other side.
    With the estimated \(\sigma\), f estimates the mean of the censored values (Tobin 1958,
    https://doi.org/10.2307/1907382). The standard deviation is the maximum-likelihood estimate from the rows, see
    `censored_spread`, and has no gradient.

    Args:
        output: f, `[B, T]`.
        value: y, or c, `[B, T]`, any number for blanks.
        side: 1 for y > c, -1 for y < c, 0 for y, `[B, T]`.
        weights: weight of each entry in the spread, `[B, T]`, 0 for blanks.
    """
    error = output - value
    spread = censored_spread(error.detach(), side, weights)
    unlikely = -2 * spread.square() * torch.special.log_ndtr(side * error / spread)
    return torch.where(side == 0, error.square(), unlikely)


def censored_spread(error: Tensor, side: Tensor, weights: Tensor) -> Tensor:
    r"""Estimate the standard deviation of partly censored errors by expectation and maximisation, `[T]`.

    \[ \sigma^2 \leftarrow \frac{\sum_{exact} e^2 + \sum_{bounds} \sigma^2 (1 - z \lambda(z))}{n}, \qquad
       z = \pm \frac{e}{\sigma}, \quad \lambda = \frac{\varphi(z)}{\Phi(z)} \]

    (Dempster, Laird & Rubin 1977). Arguments as of `censored_squares`, errors being output minus value; 1 where
    there is no exact value.
    """
    exact, bound = weights * (side == 0), weights * (side != 0)
    squares, measured, total = (exact * error.square()).sum(0), exact.sum(0), weights.sum(0)
    has_exact = measured > 0
    variance = torch.where(has_exact, squares / torch.where(has_exact, measured, 1), 1).clamp(min=_LEAST)
    for _ in range(_STEPS):
        z = side * error / variance.sqrt()
        ratio = (-z.square() / 2 - 0.5 * math.log(2 * math.pi) - torch.special.log_ndtr(z)).exp()
        estimate = (squares + variance * (bound * (1 - z * ratio)).sum(0)) / torch.where(has_exact, total, 1)
        variance = torch.where(has_exact, estimate, variance).clamp(min=_LEAST)
    return variance.sqrt()


# --- The base of regression and classification.

BAD_TARGET = "with a bad target"


@dataclass(frozen=True)
class NumericTask(Task, WeightOptions):
    """Base class of tasks whose T targets are columns of numbers.

    A subclass defines the meaning of an output (`unscaled`), the loss (`elementwise`) and the scores (`metrics`).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, weight in (self.target_weights or {}).items():
            if name not in self.targets:
                raise InputError(f"target_weights: there is no target {name!r}{did_you_mean(name, self.targets)}")
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < np.inf:
                raise InputError(f"target_weights: expected a number of 0 or more for {name!r}, got {shown(weight)}")

    @property
    def widths(self) -> list[int]:
        """Number of predictions for each target: one, or one per class."""
        return [1] * len(self.targets)

    @property
    def num_predictions(self) -> int:
        """Number P of predictions for each molecule."""
        return sum(self.widths)

    @property
    def out_channels(self) -> int:
        """Number of outputs: one per prediction, then further outputs of a task, such as variances."""
        return self.num_predictions

    @cached_property
    def places(self) -> list[Target]:
        """Each target with its columns of the predictions `[B, P]`, and of the first outputs."""
        ends = np.cumsum(self.widths).tolist()
        starts = [0, *ends[:-1]]
        return [Target(*each) for each in zip(self.targets, map(slice, starts, ends), strict=True)]

    def quantity(self, column: int) -> str:
        """Name the quantity that a column of predictions holds."""
        return self.prediction_names[column]

    @property
    def prediction_names(self) -> list[str]:
        """Names of the P columns of predictions."""
        return list(self.targets)

    @property
    def prediction_columns(self) -> list[str]:
        """Names of the answer columns that hold the P predictions."""
        return [f"{name}_pred" for name in self.prediction_names]

    supports: ClassVar[frozenset[str]] = Task.supports | {"benchmark", "explain", "tune"}
    unsaved: ClassVar[frozenset[str]] = frozenset({"target_weights"})
    linked: ClassVar[bool] = False
    """True if outputs are logits or logarithms that `regressands` only approximate; a closed-form fit is then
    calibrated."""

    # definitions of a subclass

    @abstractmethod
    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of each entry `[B, T]` from outputs `[B, P]` and scaled targets `[B, T]` without blanks."""

    @abstractmethod
    def unscaled(self, output: Tensor, store: MoleculeStore) -> Tensor:
        """Convert outputs `[..., m, P]` for a store to the user's units or to probabilities, float64."""

    def scaled(self, store: MoleculeStore) -> Tensor:
        """Scale the targets of a store for the loss, float32 `[m, T]`."""
        return targets_of(store).float().cpu()

    @property
    def plain(self) -> Self:
        """The task of a model whose outputs are predictions alone, such as a kernel."""
        return self

    def nll(self, output: Tensor, scaled: Tensor) -> Tensor:
        """Compute the negative log-likelihood `[T]`, up to a constant.

        Args:
            output: `[m, P]`.
            scaled: targets `[m, T]`, NaN for blanks.
        """
        measured = ~scaled.isnan()
        return (self.plain.elementwise(output, scaled.nan_to_num()) * measured).sum(0)

    def val_score(self, output: Tensor, scaled: Tensor, logged: dict[str, float]) -> float:
        """Compute the score that selects the best epoch, by default the loss; a lower score is better."""
        return logged["val_loss"]

    def table(self, answers: Predictions) -> list[np.ndarray]:
        """Return the columns that `output_columns` names."""
        parts = [part for part in (answers.mean, answers.std, answers.low, answers.high) if part is not None]
        return [part[:, t] for t in range(len(self.targets)) for part in parts]

    def answer_suffixes(self, target: int, members: int) -> dict[str, type]:
        """Return suffixes and types of the columns of a target's answers."""
        return {"pred": float, "std": float} if members > 1 else {"pred": float}

    # what follows from them

    @property
    def level(self) -> float:
        """Share of molecules whose true value should be inside the interval."""
        return LEVEL

    def infer_from_table(self, files: Sequence[InputFile]) -> Self:
        for t, name in enumerate(self.targets):
            with named(files[0]):
                cells = self.target_cells(t, files[0].rows, files[0].columns)
            values = self.values(t, cells)
            if not np.isfinite(values).any():
                usual = NumericTask.complaint(self, t, "")
                refused = (cell for cell, value in zip(cells, values, strict=True) if np.isinf(value))
                for cell in refused:
                    if (complaint := self.complaint(t, cell)) != usual:
                        raise InputError(f"target column {name!r} holds no value: '{printable(cell)}' {complaint}")
                raise InputError(no_numbers(cells, name))
        return self

    def parse(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> np.ndarray:
        cells = [self.target_cells(t, rows, columns) for t in range(len(self.targets))]
        y = np.stack([self.values(t, column) for t, column in enumerate(cells)], axis=1)
        bad = np.isinf(y)
        wrong = [[column[i] for i in np.flatnonzero(bad[:, t])] for t, column in enumerate(cells)]
        advice = ["" if self.discrete else comma_advice(column) for column in wrong]
        for i, t in zip(*np.nonzero(bad), strict=True):
            cell = cells[t][i]
            reason = self.complaint(t, cell) + (advice[t] if has_comma(cell) else "")
            row_log.error(rows[i].number, self.targets[t], cell, reason, category=BAD_TARGET)
        y[bad.any(axis=1)] = np.nan
        return y

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        """Parse the cells of a target, float64 `[n]`: NaN for blanks, infinity for any other text without a value."""
        return np.array([parse_number(cell) for cell in cells], np.float64)

    def bounds_of(self, cells: Sequence[str]) -> np.ndarray | None:
        """Parse the bounds in the cells of a target, lower and upper, float64 `[n, 2]`; None without bounds."""
        return None

    def parse_bounds(self, rows: Sequence[Row], columns: Sequence[str]) -> np.ndarray | None:
        return self.bounds_in([self.target_cells(t, rows, columns) for t in range(len(self.targets))])

    def bounds_in(self, columns: Sequence[Sequence[str]]) -> np.ndarray | None:
        """Parse the bounds in the cells of T targets, float64 `[n, 2T]`: T lower, then T upper; None without bounds."""
        parts = [self.bounds_of(cells) for cells in columns]
        known = [part for part in parts if part is not None]
        return np.concatenate([part[:, [side]] for side in (0, 1) for part in known], axis=1) if known else None

    def relation_columns(self, columns: Sequence[str]) -> RelationColumns:
        """Return the columns of a table that may hold relations of the targets; none for a task without bounds."""
        return RelationColumns((), ())

    joint_words: ClassVar[str] = "values that do not fit together"
    """What a row has whose values `joined` refuses, after "have"."""

    def joined(self, y: np.ndarray) -> np.ndarray:
        """Check the values of each row `[n, T]` together, NaN for blanks; infinity where they do not fit."""
        return y

    def complaint(self, target: int, cell: str) -> str:
        """Describe the error of a cell that is not a value of a target."""
        return f"is not a finite number, nor blank: {BLANK_WORDS}"

    def unread_words(self, target: int, cell: str) -> str:
        """Say what a cell has that is not a value of a target, after "have"."""
        number = parse_number(cell)
        return "no number" if np.isinf(number) else f"a number beyond {LARGEST:g}"

    def fitted(self, train: MoleculeStore) -> Self:
        for name, blank in zip(self.targets, targets_of(train).isnan().all(0).tolist(), strict=True):
            if blank:
                raise InputError(f"target {name!r} has no value among the training molecules")
        return self

    def shared(self, other: Task) -> list[int]:
        """Map each target to its index in another task of the same class, -1 for a new one."""
        theirs = other.targets if type(other) is type(self) else ()
        return [theirs.index(name) if name in theirs else -1 for name in self.targets]

    def outputs_of(self, other: Task) -> list[int] | None:
        if not isinstance(other, NumericTask):
            return None
        pairs = [(self.outputs(t), other.outputs(at)) for t, at in enumerate(self.shared(other)) if at >= 0]
        if not pairs or other.targets == self.targets or any(len(own) != len(theirs) for own, theirs in pairs):
            return None
        indices = np.full(self.out_channels, -1)
        for own, theirs in pairs:
            indices[own] = theirs
        return indices.tolist()

    def outputs(self, target: int) -> np.ndarray:
        """Return the indices of a target's outputs, its predictions first; by default in blocks of P outputs."""
        blocks = np.arange(self.out_channels).reshape(-1, self.num_predictions)
        return blocks[:, self.places[target].columns].flatten()

    def examples(self, store: MoleculeStore) -> MoleculeStore:
        return store.with_targets(self.scaled(store))

    def training_loss(self, output: Tensor, batch: Any) -> Tensor:
        return self.mean_loss(output, batch)

    def mean_loss(self, output: Tensor, examples: Any) -> Tensor:
        """Compute the mean loss of outputs `[B, P]` for a batch, or a store, with scaled targets."""
        return masked_mean(self.elementwise, output, examples.y, self.loss_weights(examples))

    def loss_weights(self, examples: Any) -> Tensor | None:
        """Return the weights of the loss per row and target, broadcastable to `[B, T]`; None for uniform weights.

        Args:
            examples: a batch, or a store; its `weights` are those of its rows, if it has them.
        """
        rows, targets = getattr(examples, "weights", None), None
        if self.target_weights:
            targets = constants([self.target_weights.get(name, 1.0) for name in self.targets], examples.y)[None]
        if rows is None:
            return targets
        return rows[:, None] if targets is None else rows[:, None] * targets

    def share(self, examples: Any) -> int | Tensor:
        """Return the number of molecules, or the sum of their weights."""
        weights = getattr(examples, "weights", None)
        return super().share(examples) if weights is None else weights.sum()

    def validation(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        y, truth = targets_of(val).cpu(), self.examples(val).to("cpu")
        scaled = targets_of(truth).float()

        def scores(output: Tensor) -> dict[str, float]:
            output = output.float().cpu()
            values = self.evaluate(y, self.unscaled(output, val))
            logged = {f"val_{name}": values[name] for name in self.metrics if values[name] is not None}
            logged["val_loss"] = float(self.mean_loss(output, replace(truth, y=scaled)))
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

    def score(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: Predictions, rows: np.ndarray
    ) -> dict[str, Any]:
        y, part = targets_of(store).numpy()[rows], answers.subset(rows)
        scores, uncertainty = self.evaluate(y, part.mean), self.evaluate_uncertainty(y, part)
        if store.bounds is not None:
            scores = self.add_bound_scores(scores, store.bounds.numpy()[rows], part.mean)
        return scores | ({"uncertainty": uncertainty} if uncertainty else {})

    def evaluate_uncertainty(self, y: np.ndarray, answers: Predictions) -> dict[str, Any]:
        """Score the uncertainty of answers by measured values `[n, T]`; empty without any."""
        return {}

    def add_bound_scores(self, scores: dict[str, Any], bounds: np.ndarray, prediction: np.ndarray) -> dict[str, Any]:
        """Add to the scores of each target the number of its `bounds` and `bounds_kept`, the share satisfied."""
        counts, share = bound_scores(bounds, prediction)
        for name, count, part in zip(self.targets, counts.tolist(), share.tolist(), strict=True):
            if count:
                scores["per_target"][name] |= {"bounds": count, "bounds_kept": part}
        return scores

    def admissible(self, prediction: np.ndarray) -> np.ndarray:
        """Project predictions `[m, P]` of a method that ignores the task to values that the task allows."""
        return prediction

    def known_part(self, store: MoleculeStore) -> np.ndarray | None:
        """Return the part of the targets that is known before training, `[m, T]`, such as a reference per element."""
        return None

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        wanted = (
            (f"{name}_{suffix}", dtype)
            for t, name in enumerate(self.targets)
            for suffix, dtype in self.answer_suffixes(t, members).items()
        )
        return fresh_columns(taken, wanted)

    def decode(self, outputs: Tensor, store: MoleculeStore) -> Predictions:
        members = self.unscaled(outputs.transpose(0, 1), store).numpy()  # [members, m, P]
        mean = self.corrected(members.mean(0))
        std, reach = self.spread(outputs) or (members.std(0, ddof=1) if len(members) > 1 else None, None)
        low, high = self.bounds(mean, reach)
        answers = Predictions(
            mean,
            std,
            low,
            high,
            self.prediction_warnings(store),
            reach=reach,
            vacuity=self.vacuity(outputs),
            members=len(members),
        )
        return replace(answers, table=self.table(answers))

    def member_columns(self, members: int) -> dict[str, type]:
        return {f"{name}_{k}": float for name in self.prediction_columns for k in range(1, members + 1)}

    def members_apart(self, outputs: Tensor, store: MoleculeStore) -> list[np.ndarray]:
        each = self.unscaled(outputs.transpose(0, 1), store)  # [members, m, P]
        return list(each.permute(2, 0, 1).flatten(0, 1).numpy())

    def corrected(self, mean: np.ndarray) -> np.ndarray:
        """Apply the calibration to predictions `[m, P]`; by default none."""
        return mean

    def spread(self, outputs: Tensor) -> tuple[np.ndarray, Reach] | None:
        """Compute standard deviations `[m, P]` and the reach of intervals by the method of uncertainty.

        Args:
            outputs: `[m, members, C]`.

        Returns:
            Both, or None without a method.
        """
        return None

    def vacuity(self, outputs: Tensor) -> np.ndarray | None:
        """Compute the lack of evidence for each target's classes, `[m, T]`, 0 to 1; None for a task without evidence.

        Args:
            outputs: `[m, members, C]`.
        """
        return None

    def bounds(self, mean: np.ndarray, reach: Reach | None) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Compute intervals around predictions, low and high `[m, T]`, or None where there is none."""
        return None, None

    def prediction_warnings(self, store: MoleculeStore) -> list[list[str]]:
        """Return warnings about each molecule's answer."""
        return [[] for _ in range(len(store))]

    def scores(self, columns: Sequence[str]) -> NumberScores:
        return NumberScores(self, columns)


# --- Scores of a table that is read in chunks.


class NumberScores:
    """Collection of predictions and measured values, if the table has them: 16 bytes per row and target.

    Args:
        task: task of the model.
        columns: columns of the table.
    """

    def __init__(self, task: NumericTask, columns: Sequence[str]) -> None:
        self.task = task
        self.columns = columns
        self.position: dict[int, int] = find_columns(columns, task.targets)
        self.counts: dict[int, ScoredCells] = {t: ScoredCells(task.targets[t]) for t in self.position}
        self.relations: RelationColumns = task.relation_columns(columns)
        self.y: list[np.ndarray] = []
        self.bounds: list[np.ndarray] = []
        self.prediction: list[np.ndarray] = []

    def add(self, rows: Sequence[Row], answers: Predictions) -> None:
        """Add some rows and their predictions."""
        if not self.position:
            return
        self.relations.add(rows)
        y = np.full((len(rows), len(self.task.targets)), np.nan)
        bounds = np.full((len(rows), 2, len(self.task.targets)), np.nan)
        has_bounds = False
        for t in self.position:
            cells = self.task.target_cells(t, rows, self.columns)
            values, of_target = self.task.values(t, cells), self.task.bounds_of(cells)
            if of_target is not None:
                bounds[:, :, t], has_bounds = of_target, True
            for i in np.flatnonzero(np.abs(values) > LARGEST).tolist():  # and what is no number is infinite
                self.counts[t].leave_out(rows[i], cells[i], self.task.unread_words(t, cells[i]))
            y[:, t] = np.where(np.abs(values) > LARGEST, np.nan, values)
        whole = self.task.joined(y)
        for i, t in np.argwhere(np.isinf(whole) & ~np.isnan(y)).tolist():
            self.counts[t].leave_out(rows[i], rows[i].cells[self.position[t]], self.task.joint_words)
        whole[np.isinf(whole)] = np.nan
        for t, count in self.counts.items():
            count.rows += len(rows)
            count.scored += int((~np.isnan(whole[:, t])).sum())
            count.bounds += int((~np.isnan(bounds[:, :, t])).any(axis=1).sum())
        self.y.append(whole)
        self.prediction.append(answers.mean)
        if has_bounds:
            self.bounds.append(bounds.reshape(len(rows), -1))

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None without a single measured value or bound."""
        if not self.y:
            return None
        y, prediction = np.concatenate(self.y), np.concatenate(self.prediction)
        bounds = np.concatenate(self.bounds) if self.bounds else None
        if np.isnan(y).all() and (bounds is None or np.isnan(bounds).all()):
            return None
        scores = self.task.evaluate(y, prediction)
        if bounds is not None:
            scores = self.task.add_bound_scores(scores, bounds, prediction)
        names = [self.task.targets[t] for t in self.position]
        return {**scores, "per_target": {name: scores["per_target"][name] for name in names}}

    def notes(self) -> list[str]:
        """State how many cells of each target are not scored, and why."""
        return [*count_lines(self.counts.values()), *self.relations.lines()]


def require_numeric(task: Task, capability: str) -> NumericTask:
    """Check that a task of numbers or classes supports a capability, and return the task.

    Raises:
        InputError: it does not.
        TypeError: it is of another kind.
    """
    check_task_capability(task, capability)
    if not isinstance(task, NumericTask):
        raise TypeError(f"expected a NumericTask, got {type(task).__name__}")
    return task
