"""Numbers of atoms or bonds, such as charges or lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from gtx.data.lists import parse_list
from gtx.errors import InputError
from gtx.schema import MappingOf, Record, anything
from gtx.tasks.losses import LOSSES
from gtx.tasks.metrics import Target
from gtx.tasks.options import PartOptions, learned
from gtx.tasks.parts import PartTask
from gtx.tasks.regression import Regression
from gtx.tasks.scaling import TargetScaler
from gtx.tasks.task import Metric, Task

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.dataset import File
    from gtx.report import PartReport
    from gtx.report.gallery import Panel


@dataclass(frozen=True)
class PartNumbers(PartTask, PartOptions):
    """T numbers for each part of a molecule, learned as z-scores of the training molecules' parts.

    A subclass says which parts there are, and may change outputs before they count (`settled_outputs`).

    Args:
        targets: names of the target columns; a cell is a list, see `gtx.data.lists.parse_list`.
        loss: of z-scores: "mse", "mae" or "huber" (delta 1); no part of a model file.
        scaler: learned of the training molecules.

    Raises:
        InputError: there is no such loss.
    """

    metrics: ClassVar[dict[str, Metric]] = Regression.metrics
    items: ClassVar[tuple[str, str]] = ("number", "numbers")

    scaler: TargetScaler | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss not in LOSSES:
            raise InputError(f"loss: expected one of {', '.join(LOSSES)} for {self.name}, got {self.loss}")

    @cached_property
    def places(self) -> list[Target]:
        return [Target(name, slice(t, t + 1)) for t, name in enumerate(self.targets)]

    def settle(self, files: Sequence[File]) -> Self:
        for t, name in enumerate(self.targets):
            cells = files[0].cells(name)
            if all(self.parsed(t, cell) is None for cell in cells):
                what = f"holds no list of numbers in any of the {len(cells)} rows"
                raise InputError(f"target column {name!r} {what}; one number for each {self.per} was expected")
        return self

    def read(self, target: int, cell: str) -> np.ndarray | None:
        return parse_list(cell)

    # training

    @property
    def out_channels(self) -> int:
        return len(self.targets)

    @property
    def num_predictions(self) -> int:
        return len(self.targets)

    @property
    def kept_channels(self) -> int:
        return 4 * len(self.targets)

    def fitted(self, train: MoleculeStore) -> Self:
        values = self.values(train).cpu()
        for name, blank in zip(self.targets, values.isnan().all(0).tolist(), strict=True):
            if blank:
                raise InputError(f"target {name!r} has no value among the {self.per}s of the training molecules")
        return self if self.scaler is not None else replace(self, scaler=TargetScaler.fit(values))

    def adopting(self, other: Task) -> Self:
        same = type(other) is type(self) and other.targets == self.targets
        return replace(self, scaler=other.scaler) if same else self

    def examples(self, store: MoleculeStore) -> MoleculeStore:
        scaled = self.scaler.scale(self.values(store).cpu()).double().to(store.device)
        return replace(store, **{self.held: scaled})

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        return LOSSES[self.loss](output, target, reduction="none")

    def measures(self, output: Tensor, target: Tensor) -> list[Tensor]:
        """Losses, squares and sizes of errors."""
        error = output - target
        return [self.elementwise(output, target), error.square(), error.abs()]

    def validation_scores(self, means: Sequence[Tensor], val: MoleculeStore) -> dict[str, float]:
        y, sd = self.values(val).cpu().double(), self.scaler.sd
        squares, mae = means  # of scaled numbers
        rmse, variance = squares.sqrt(), (y - y.nanmean(0)).square().nanmean(0)
        r2 = torch.where(variance > 0, 1 - squares * sd.square() / variance, torch.nan)
        found = {"rmse": rmse * sd, "mae": mae * sd, "r2": r2}
        logged = {f"val_{name}": float(each.nanmean()) for name, each in found.items() if not each.isnan().all()}
        return {**logged, "val_score": float((mae if self.loss == "mae" else rmse).nanmean())}

    # prediction

    def answer_kinds(self, target: int, members: int) -> list[str]:
        return ["pred", "std"] if members > 1 else ["pred"]

    def predicted(self, outputs: Tensor) -> tuple[np.ndarray, list[np.ndarray]]:
        """The mean over members, and their standard deviation if there are several."""
        own = self.scaler.unscale(outputs).numpy()
        kinds = [own.mean(1), own.std(1, ddof=1)] if own.shape[1] > 1 else [own.mean(1)]
        return kinds[0], [kind[:, t] for t in range(len(self.targets)) for kind in kinds]

    # what the report says of it

    def panels(self, report: PartReport, t: int) -> Iterator[Panel]:
        from gtx.report.part_panels import number_panels

        return number_panels(report, t)

    def panel_words(self) -> str:
        return f"On the diagonal line, the prediction equals the measurement. Every point is one {self.per}."

    def errors(self, t: int, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return prediction - y

    def value_text(self, t: int, y: float) -> str:
        from gtx.report.words import number

        return number(float(y))

    def prediction_text(self, t: int, prediction: Any) -> str:
        return self.value_text(t, prediction)

    def summary(self, t: int, y: np.ndarray, prediction: np.ndarray) -> dict[str, str]:
        from gtx.report.words import number

        error = prediction - y
        found = {"mean measured": y.mean(), "RMSE": np.sqrt(np.square(error).mean()), "mean error": error.mean()}
        return {name: number(float(value)) for name, value in found.items()}

    # storage

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
        return Record({"scaler": MappingOf(anything())})  # which checks itself
