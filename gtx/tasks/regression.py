"""Numbers with a unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from torch import Tensor
from torchmetrics.functional import mean_absolute_error, mean_squared_error, r2_score

from gtx.data.columns import column_index
from gtx.data.ledger import Ledger, describe
from gtx.data.magnitude import LIMIT, too_large
from gtx.data.rows import Row
from gtx.errors import InputError
from gtx.molecules.features import ATOM_PLACE
from gtx.molecules.naming import name_code
from gtx.schema import ListOf, MappingOf, OrNone, Record, anything, flag, number
from gtx.tasks.conformal import conformal_interval
from gtx.tasks.losses import LOSSES
from gtx.tasks.metrics import has_values, varies
from gtx.tasks.numbers import NumberTask, Predictions
from gtx.tasks.options import NumberOptions, learned
from gtx.tasks.scaling import EXTENSIVE, TargetScaler, composition, extensive_part, tells_elements
from gtx.tasks.task import Metric

if TYPE_CHECKING:
    from gtx.data import MoleculeStore


@dataclass(frozen=True)
class Regression(NumberTask, NumberOptions):
    """Numbers, learned as z-scores of the training rows (`gtx.tasks.scaling.TargetScaler`).

    Args:
        targets: names of the target columns.
        loss: of z-scores: "mse", "mae", "huber" (delta 1), or a function of outputs and targets `[B, T]` that gives the
            loss of each entry, `[B, T]`; no part of a model file.
        element_reference: learn every target, or none, minus a reference per element; by default those of whose
            variance the composition explains 95 %.
        scaler, interval: what training learned.

    Raises:
        InputError: there is no such loss.
    """

    name: ClassVar[str] = "regression"
    metrics: ClassVar[dict[str, Metric]] = {
        "rmse": Metric(
            "RMSE", lambda p, y: mean_squared_error(p, y, squared=False), has_values, lower=True, in_units=True
        ),
        "mae": Metric("MAE", mean_absolute_error, has_values, lower=True, in_units=True),
        "r2": Metric("R²", r2_score, varies),
    }

    scaler: TargetScaler | None = learned()
    interval: dict[str, Any] | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.loss, str) and self.loss not in LOSSES:
            raise InputError(f"loss: expected one of {', '.join(LOSSES)} for {self.name}, got {self.loss}")

    def parse(self, rows: Sequence[Row], columns: Sequence[str], ledger: Ledger) -> np.ndarray:
        y = super().parse(rows, columns, ledger)
        if place := too_large(y):
            row, name = rows[place[0]], self.targets[place[1]]
            cell = row.cells[column_index(columns, name)]
            raise InputError(describe(row.number, name, cell, f"is too large: {LIMIT}"))
        return y

    def fitted(self, train: MoleculeStore) -> Self:
        super().fitted(train)
        self._refuse_too_large(train, "training")
        if self.scaler is not None:
            return self
        asked = self.element_reference
        if asked is False or (asked is None and not tells_elements(train)):
            return replace(self, scaler=TargetScaler.fit(train.y))
        return replace(self, scaler=TargetScaler.fit(train.y, composition(train), None if asked else EXTENSIVE))

    def adopting(self, other: NumberTask) -> Self:
        same = isinstance(other, Regression) and other.targets == self.targets
        return replace(self, scaler=other.scaler) if same else self

    def validation(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        self._refuse_too_large(val, "validation")
        return super().validation(val)

    def scaled(self, store: MoleculeStore) -> Tensor:
        return self.scaler.scale(store.y.cpu(), self._composition(store))

    def regressands(self, store: MoleculeStore) -> Tensor:
        return self.scaled(store).double()

    def surprise(self, output: Tensor, scaled: Tensor) -> Tensor:
        """By errors of one size, which is not known: half of the logarithm of their mean square for each value."""
        known = (~scaled.isnan()).sum(0)
        mean = (output - scaled).square().nansum(0) / known.clamp(min=1)
        return known / 2 * mean.clamp(min=1e-12).log()

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        return LOSSES[self.loss](output, target, reduction="none") if self.loss in LOSSES else self.loss(output, target)

    def val_score(self, output: Tensor, scaled: Tensor, logged: dict[str, float]) -> float:
        """The mean over targets of the RMSE (the MAE if that is the loss) in scaled units, since own units differ."""
        error = output - scaled
        if self.loss == "mae":
            return float(error.abs().nanmean(0).nanmean())
        return float(error.square().nanmean(0).sqrt().nanmean())

    def unscaled(self, output: Tensor, store: MoleculeStore) -> Tensor:
        return self.scaler.unscale(output, self._composition(store))

    def calibrated(self, answers: Predictions, y: np.ndarray) -> Self:
        """Split-conformal intervals."""
        interval = conformal_interval(y, answers.mean) if len(y) else {"half_width": []}
        known = any(width is not None for width in interval["half_width"])
        return replace(self, interval=interval if known else None)

    def bounds(self, mean: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        if self.interval is None:
            return None, None
        half = np.array(self.interval["half_width"], dtype=float)  # None is NaN
        return mean - half, mean + half

    def kinds(self, target: int, members: int) -> dict[str, type]:
        return super().kinds(target, members) | ({"low": float, "high": float} if self.interval else {})

    def known_part(self, store: MoleculeStore) -> np.ndarray | None:
        part = extensive_part(self.scaler, store)
        return None if part is None else part.numpy()

    def answer_remarks(self, store: MoleculeStore) -> list[list[str]]:
        """Elements that a reference does not know."""
        remarks: list[list[str]] = [[] for _ in range(len(store))]
        if self.scaler.reference is not None:
            lacking = self.scaler.without_reference(composition(store))
            for i in lacking.any(dim=1).nonzero().flatten().tolist():
                remarks[i].append(self._name_lacking(lacking[i]))
        return remarks

    def notes(self) -> list[str]:
        lines = [f"{self.targets[t]}: learned minus a reference per element" for t in self.scaler.extensive]
        if self.interval:
            widths = ["none" if w is None else f"±{w:.4g}" for w in self.interval["half_width"]]
            lines.append(f"intervals of {self.interval['level']:.0%}: {', '.join(widths)}")
        return lines

    def _refuse_too_large(self, store: MoleculeStore, kind: str) -> None:
        if place := too_large(store.y.cpu().numpy()):
            molecule, name = f"{kind} molecule {place[0]}, counted from 0", self.targets[place[1]]
            raise InputError(f"target {name!r} of {molecule}, is {store.y[place]:g}, which is too large: {LIMIT}")

    def _composition(self, store: MoleculeStore) -> Tensor | None:
        return None if self.scaler.reference is None else composition(store)

    def _name_lacking(self, elements: Tensor) -> str:
        """What a reference per element does not know of a molecule, bool `[119]`, in words."""
        targets = ", ".join(self.targets[t] for t in self.scaler.extensive)
        symbols = ", ".join(
            name_code("atom", ATOM_PLACE["element"], code) for code in elements.nonzero().flatten().tolist()
        )
        return f"{targets}: without what {symbols} contributes, which training did not show: not to be relied on"

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_dict().items() if name != "loss"}  # of training alone

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        own = super().from_dict({name: value for name, value in plain.items() if name != "loss"})
        scaler = TargetScaler.from_dict(own.scaler)
        if len(scaler.mean) != len(own.targets):
            expected = f"{len(own.targets)} values, one per target"
            raise InputError(f"task.scaler.mean: expected {expected}, got {len(scaler.mean)}")
        return replace(own, scaler=scaler)

    @classmethod
    def kept_entries(cls, targets: int) -> Record:
        widths = ListOf(OrNone(number(0)), targets, targets)
        interval = Record({"level": number(0, 1), "half_width": widths})
        return Record(
            {"scaler": MappingOf(anything())},  # which checks itself
            {"interval": OrNone(interval), "element_reference": OrNone(flag())},
        )
