"""Regression: numbers with a unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.data.columns import Row, find_column, find_columns
from gtx.data.delimited import LIMIT, too_large
from gtx.data.row_log import RowLog, format_row_message
from gtx.molecules.graphs import ATOM_INDEX, name_code
from gtx.schema import ListOf, MappingOf, OrNone, Record, anything, flag, number, one_of, text
from gtx.settings.options import learned
from gtx.settings.tasks import NumberOptions
from gtx.tasks.calibration import BETWEEN_0_AND_1, Reach, conformal_interval, interval_words
from gtx.tasks.metrics import (
    LOSSES,
    has_values,
    masked_mean,
    mean_absolute_error,
    r2_score,
    root_mean_squared_error,
    varies,
)
from gtx.tasks.numbers import (
    RELATION_WORDS,
    NumericTask,
    RelationColumns,
    censored_squares,
    join_relation,
    parse_bound,
    read_bounds,
    with_bounds,
)
from gtx.tasks.scaling import (
    EXTENSIVE,
    TargetScaler,
    count_elements,
    has_element_column,
    sum_element_references,
)
from gtx.tasks.task import Metric, Predictions, Task, targets_of
from gtx.tasks.uncertainty import (
    STEEPEST,
    UNCERTAINTY_METHODS,
    Ensemble,
    UncertaintyMethod,
    distance_slopes,
    evaluate_spread,
    std_factors,
)

if TYPE_CHECKING:
    from gtx.data import MoleculeStore

NO_METHOD = UncertaintyMethod()


@dataclass(frozen=True)
class Regression(NumericTask, NumberOptions):
    """Task of predicting numbers, learned as z-scores of the training rows.

    Args:
        targets: names of the target columns.
        loss: loss of the z-scores: "mse", "mae", "huber" (delta 1), or a function of outputs and targets `[B, T]` that
            returns the loss of each entry, `[B, T]`. The loss is not stored in a model file.
        censored: whether cells such as `>5` are bounds to learn from. With "mse", the loss of a bound is a Gaussian
            likelihood, see `gtx.tasks.numbers.censored_squares`. With other losses, the loss of a bound is 0 if the
            prediction satisfies the bound.
        element_reference: whether a reference value per element is subtracted from the targets; by default only from
            targets of which the composition explains 95 % of the variance.
        relation_column: column with the relation of each value, such as `>`, which makes it a bound.
        uncertainty: name of a method in `gtx.tasks.uncertainty`, or "none".
        coverage: share of molecules whose true value should be inside the interval.
        scaler, interval, std_factor, std_slope, member_variance: values fitted by training. The factor per target
            scales the standard deviations; the slope belongs to the method "similarity", the mean variance between
            members over validation rows, in scaled units, to the method "ensemble".

    Raises:
        InputError: the loss or the method is unknown, a loss is given for a method with its own loss, or the coverage
            is not between 0 and 1.
    """

    name: ClassVar[str] = "regression"
    metrics: ClassVar[dict[str, Metric]] = {
        "rmse": Metric("RMSE", root_mean_squared_error, has_values, lower=True, in_units=True),
        "mae": Metric("MAE", mean_absolute_error, has_values, lower=True, in_units=True),
        "r2": Metric("R²", r2_score, varies),
    }

    supports: ClassVar[frozenset[str]] = NumericTask.supports | {"outliers"}
    unsaved: ClassVar[frozenset[str]] = NumericTask.unsaved | {"loss"}

    relation_column: str | None = learned()
    scaler: TargetScaler = learned()
    interval: dict[str, Any] | None = learned()
    std_factor: tuple[float, ...] | None = learned()
    std_slope: tuple[float, ...] | None = learned()
    member_variance: tuple[float, ...] | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        BETWEEN_0_AND_1.check(self.coverage, "coverage")
        if self.uncertainty not in ("none", *UNCERTAINTY_METHODS):
            names = ", ".join(("none", *UNCERTAINTY_METHODS))
            raise InputError(f"uncertainty: expected one of {names}, got {self.uncertainty}")
        if self.method.has_loss and self.loss != "mse":
            raise InputError(f"loss: uncertainty {self.uncertainty} has a loss of its own; leave it out")
        if self.method.has_loss and self.censored:
            raise InputError(f"censored: uncertainty {self.uncertainty} has a loss of its own, which knows no bounds")
        if isinstance(self.loss, str) and self.loss not in LOSSES:
            raise InputError(f"loss: expected one of {', '.join(LOSSES)} for {self.name}, got {self.loss}")

    @property
    def method(self) -> UncertaintyMethod:
        """Method of uncertainty; `none` has one output per target and the task's own loss."""
        if self.uncertainty == Ensemble.word:
            return Ensemble(self.member_variance)
        return UNCERTAINTY_METHODS.get(self.uncertainty, NO_METHOD).at(self.coverage)

    @property
    def level(self) -> float:
        return self.coverage

    @property
    def has_intervals(self) -> bool:
        """True if there were enough validation rows for the interval of any target."""
        return self.interval is not None and any(width is not None for width in self.interval["half_width"])

    @property
    def out_channels(self) -> int:
        """Outputs in blocks of T, first the numbers, then those of the method."""
        return self.method.width * len(self.targets)

    @property
    def reads_similarity(self) -> bool:
        return self.method.reads_similarity

    def check(self, model: nn.Module, members: int) -> None:
        self.method.check(model, members)

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        numbers = super().values(target, cells)
        if self.censored:
            for i in np.flatnonzero(np.isinf(numbers)).tolist():
                if parse_bound(cells[i]):
                    numbers[i] = np.nan
        return numbers

    def with_relation(self, column: str) -> Self:
        if len(self.targets) > 1:
            raise InputError(
                f"--relation-column: expected one target, whose relations these are, got {len(self.targets)}"
            )
        return replace(self, censored=True, relation_column=column)

    def target_cells(self, target: int, rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
        cells = super().target_cells(target, rows, columns)
        for place in find_columns(columns, [self.relation_column] if self.relation_column else []).values():
            cells = [
                "" if row.error else join_relation(cell, row.cells[place])
                for row, cell in zip(rows, cells, strict=True)
            ]
        return cells

    def relation_columns(self, columns: Sequence[str]) -> RelationColumns:
        return RelationColumns(columns, self.targets, self.relation_column)

    def bounds_of(self, cells: Sequence[str]) -> np.ndarray | None:
        return read_bounds(cells) if self.censored else None

    def unread_words(self, target: int, cell: str) -> str:
        return "a bound in place of a number" if parse_bound(cell) else super().unread_words(target, cell)

    def complaint(self, target: int, cell: str) -> str:
        if not self.censored and parse_bound(cell):
            return "is a bound, not a number; --censored learns from bounds too"
        if self.relation_column is not None:
            relation = f"the relation of column {self.relation_column!r} before it: {RELATION_WORDS}"
            return f"{super().complaint(target, cell)}; expected a number, and {relation}"
        return super().complaint(target, cell)

    def parse(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> np.ndarray:
        if self.relation_column is not None:
            find_column(columns, self.relation_column)
        y = super().parse(rows, columns, row_log)
        if position := too_large(y):
            row, name = rows[position[0]], self.targets[position[1]]
            (cell,) = self.target_cells(position[1], [row], columns)
            raise InputError(format_row_message(row.number, name, cell, f"is too large: {LIMIT}"))
        return y

    def fitted(self, train: MoleculeStore) -> Self:
        super().fitted(train)
        self._refuse_too_large(train, "training")
        if self.scaler is not None:
            return self
        asked = self.element_reference
        y, _ = with_bounds(targets_of(train).cpu(), train.bounds)  # a bound counts as the value
        if asked is False or (asked is None and not has_element_column(train)):
            return replace(self, scaler=TargetScaler.fit(y))
        return replace(self, scaler=TargetScaler.fit(y, count_elements(train), None if asked else EXTENSIVE))

    def adopting(self, other: Task) -> Self:
        shared = self.shared(other)
        if not isinstance(other, Regression) or max(shared) < 0:
            return self
        return replace(self, scaler=self.scaler.adopting(other.scaler, shared))

    def validation(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        self._refuse_too_large(val, "validation")
        return super().validation(val)

    def examples(self, store: MoleculeStore) -> MoleculeStore:
        made = super().examples(store)
        if store.bounds is None:
            return made
        parts = [self.scaled(store.with_targets(part)) for part in store.bounds.cpu().chunk(2, dim=1)]
        return replace(made, bounds=torch.cat(parts, dim=1).double().to(store.device))

    def mean_loss(self, output: Tensor, examples: Any) -> Tensor:
        bounds = getattr(examples, "bounds", None)
        if bounds is None:
            return super().mean_loss(output, examples)
        value, side = with_bounds(examples.y, bounds)
        weights, measured = self.loss_weights(examples), ~value.isnan()

        def each(output: Tensor, value: Tensor) -> Tensor:
            if self.loss == "mse":
                return censored_squares(output, value, side, measured if weights is None else measured * weights)
            allowed = (output - value) * side > 0
            return torch.where(allowed, 0, self.elementwise(torch.where(allowed, value, output), value))

        return masked_mean(each, output, value, weights)

    def scaled(self, store: MoleculeStore) -> Tensor:
        return self.scaler.scale(targets_of(store).cpu(), self._composition(store))

    def regressands(self, store: MoleculeStore) -> Tensor:
        return self.scaled(store).double()

    def nll(self, output: Tensor, scaled: Tensor) -> Tensor:
        """Compute it for Gaussian errors of one unknown size: per value half the logarithm of their mean square."""
        count = (~scaled.isnan()).sum(0)
        mean = (self._numbers(output) - scaled).square().nansum(0) / count.clamp(min=1)
        return count / 2 * mean.clamp(min=1e-12).log()

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        if self.method.has_loss:
            return self.method.loss(self._blocks(output), target)
        if isinstance(self.loss, str):
            return LOSSES[self.loss](output, target, reduction="none")
        return self.loss(output, target)

    def val_score(self, output: Tensor, scaled: Tensor, logged: dict[str, float]) -> float:
        """Compute the mean over targets of the RMSE (the MAE if that is the loss) in scaled units."""
        if self.censored:
            return logged["val_loss"]  # which heeds bounds
        error = self._numbers(output) - scaled
        if self.loss == "mae":
            return float(error.abs().nanmean(0).nanmean())
        return float(error.square().nanmean(0).sqrt().nanmean())

    def unscaled(self, output: Tensor, store: MoleculeStore) -> Tensor:
        return self.scaler.unscale(self._numbers(output), self._composition(store))

    def _numbers(self, output: Tensor) -> Tensor:
        """Return the predicted numbers `[..., T]` among outputs `[..., C]`."""
        return output[..., : len(self.targets)]

    def _blocks(self, output: Tensor) -> Tensor:
        """Reshape outputs `[..., C]` to `[..., W, T]`."""
        return output.unflatten(-1, (-1, len(self.targets)))

    def spread(self, outputs: Tensor) -> tuple[np.ndarray, Reach] | None:
        if self.uncertainty == "none":
            return None
        ones = [1.0] * len(self.targets)
        unit = self.scaler.sd * torch.tensor(self.std_factor or ones, dtype=torch.float64)
        if self.reads_similarity:
            values = outputs[:, 0, -1:] * torch.tensor(self.std_slope or ones, dtype=torch.float64)
        else:
            values = self._blocks(outputs)
        std, below, above = ((each.double() * unit).numpy() for each in self.method.spread(values))
        return std, (below, above)

    def decode(self, outputs: Tensor, store: MoleculeStore) -> Predictions:
        answers = super().decode(outputs, store)
        return replace(answers, distance=outputs[:, 0, -1].numpy()) if self.reads_similarity else answers

    def calibrated(self, answers: Predictions, y: np.ndarray) -> Self:
        """Fit the size of standard deviations, and split-conformal intervals."""
        if answers.reach is None or answers.std is None:
            return replace(self, interval=conformal_interval(y, answers.mean, self.coverage))
        if answers.distance is not None and self.std_slope is None:
            sloped = replace(self, std_slope=tuple(distance_slopes(y - answers.mean, answers.distance).tolist()))
            if spread := sloped.spread(torch.from_numpy(answers.distance)[:, None, None]):
                return sloped.calibrated(replace(answers, std=spread[0], reach=spread[1]), y)
        if self.uncertainty == Ensemble.word and self.member_variance is None and len(y):
            variance = (torch.from_numpy(answers.std) / self.scaler.sd).square().nan_to_num()  # 0 of a constant target
            prior = tuple(variance.mean(0).tolist())
            std = (Ensemble(prior).moderated(variance, answers.members).sqrt() * self.scaler.sd).numpy()
            moderated = replace(self, member_variance=prior)
            return moderated.calibrated(replace(answers, std=std, reach=(std, std)), y)
        factor = std_factors(y, answers.mean, answers.std)
        below, above = answers.reach
        reach = below * factor, above * factor
        interval = conformal_interval(y, answers.mean, self.coverage, reach)
        return replace(self, interval=interval, std_factor=tuple(factor.tolist()))

    def bounds(self, mean: np.ndarray, reach: Reach | None) -> tuple[np.ndarray | None, np.ndarray | None]:
        if self.interval is None or not self.has_intervals:
            return None, None
        half = np.array([np.nan if width is None else width for width in self.interval["half_width"]])
        below, above = (half, half) if reach is None else (half * each for each in reach)
        return mean - below, mean + above

    def evaluate_uncertainty(self, y: np.ndarray, answers: Predictions) -> dict[str, Any]:
        return evaluate_spread(self.targets, y, answers.mean, answers.std, answers.low, answers.high, answers.distance)

    def answer_suffixes(self, target: int, members: int) -> dict[str, type]:
        suffixes = super().answer_suffixes(target, members)
        if self.uncertainty != "none":
            suffixes["std"] = float
        return suffixes | {"low": float, "high": float} if self.has_intervals else suffixes

    def known_part(self, store: MoleculeStore) -> np.ndarray | None:
        part = sum_element_references(self.scaler, store)
        return None if part is None else part.numpy()

    def prediction_warnings(self, store: MoleculeStore) -> list[list[str]]:
        """Warn of elements without a reference."""
        warnings: list[list[str]] = [[] for _ in range(len(store))]
        if self.scaler.reference is not None:
            lacking = self.scaler.without_reference(count_elements(store))
            for i in lacking.any(dim=1).nonzero().flatten().tolist():
                warnings[i].append(self._name_lacking(lacking[i]))
        return warnings

    def notes(self) -> list[str]:
        lines = [f"{self.targets[t]}: learned minus a reference per element" for t in self.scaler.extensive]
        if self.interval:
            unit = "" if self.uncertainty == "none" else " standard deviations"
            lines.append(interval_words(self.interval, self.targets, unit))
        return lines

    def _refuse_too_large(self, store: MoleculeStore, split: str) -> None:
        y = targets_of(store).cpu().numpy()
        if position := too_large(y):
            molecule, name = f"{split} molecule {position[0]}, counted from 0", self.targets[position[1]]
            raise InputError(f"target {name!r} of {molecule}, is {y[position]:g}, which is too large: {LIMIT}")

    def _composition(self, store: MoleculeStore) -> Tensor | None:
        return None if self.scaler.reference is None else count_elements(store)

    def _name_lacking(self, elements: Tensor) -> str:
        """Name the elements of a molecule, bool `[119]`, that have no reference value."""
        targets = ", ".join(self.targets[t] for t in self.scaler.extensive)
        symbols = ", ".join(
            name_code("atom", ATOM_INDEX["element"], code) for code in elements.nonzero().flatten().tolist()
        )
        return f"{targets}: without what {symbols} contributes, which training did not show: not to be relied on"

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        task = super().from_dict(plain)
        return replace(task, scaler=TargetScaler.for_targets(plain["scaler"], task.targets))

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        widths = ListOf(OrNone(number(0)), targets, targets)
        interval = Record({"level": BETWEEN_0_AND_1, "half_width": widths})
        return Record(
            {"scaler": MappingOf(anything())},  # which checks itself
            {
                "coverage": BETWEEN_0_AND_1,
                "interval": OrNone(interval),
                "element_reference": OrNone(flag()),
                "censored": OrNone(flag()),
                "relation_column": OrNone(text()),
                "uncertainty": one_of(["none", *UNCERTAINTY_METHODS]),
                "std_factor": OrNone(ListOf(number(0), targets, targets)),
                "std_slope": OrNone(ListOf(number(0, STEEPEST), targets, targets)),
                "member_variance": OrNone(ListOf(number(0), targets, targets)),
            },
        )
