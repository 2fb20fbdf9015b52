"""One of several classes, for each of several targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from gtx.data.targets import no_numbers
from gtx.errors import InputError
from gtx.schema import ListOf, OrNone, Record, number, text
from gtx.tasks.classes import ClassTask
from gtx.tasks.labels import MOST_CLASSES, check_count, distinct, indices, listed
from gtx.tasks.late_functions import (
    binary_auroc,
    multiclass_accuracy,
    multiclass_f1_score,
    multiclass_matthews_corrcoef,
)
from gtx.tasks.losses import constants
from gtx.tasks.metrics import has_values, varies
from gtx.tasks.options import learned
from gtx.tasks.predictions import Predictions
from gtx.tasks.task import Metric

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.dataset import File
    from gtx.report.context import Report
    from gtx.report.gallery import Panel
    from gtx.report.similarity import Nearest


def _roc_auc(p: Tensor, y: Tensor) -> Tensor:
    """The mean over the classes that occur of each against the rest (Provost & Domingos 2001, unweighted)."""
    return torch.stack([binary_auroc(p[:, k], (y == k).long()) for k in y.long().unique()]).mean()


@dataclass(frozen=True)
class Multiclass(ClassTask):
    r"""C classes per target, by a softmax of C outputs, learned by cross-entropy: \(-\ln p_y\).

    Answers are the likeliest class, `<target>_pred`, and the probability of each, `<target>_<class>`.

    Args:
        targets: names of the target columns.
        class_weights: "balanced" gives all classes of a target the same say in the loss, whatever their numbers.
        classes: per target its labels in order, settled by the table.
        weights: per target the say of each class, learned of the training rows where weights are balanced.
    """

    name: ClassVar[str] = "multiclass"
    epochs: ClassVar[int] = 20
    discrete: ClassVar[bool] = True
    linked: ClassVar[bool] = True
    metrics: ClassVar[dict[str, Metric]] = {
        "roc_auc": Metric("macro ROC-AUC", _roc_auc, varies),
        "accuracy": Metric(
            "accuracy", lambda p, y: multiclass_accuracy(p, y.long(), p.shape[1], average="micro"), has_values
        ),
        "f1": Metric("macro F1", lambda p, y: multiclass_f1_score(p, y.long(), p.shape[1]), has_values),
        "mcc": Metric("Matthews", lambda p, y: multiclass_matthews_corrcoef(p, y.long(), p.shape[1]), varies),
    }

    classes: tuple[tuple[str, ...], ...] | None = learned()
    weights: tuple[tuple[float, ...], ...] | None = learned()

    def labels(self, target: int) -> tuple[str, ...]:
        """The labels of a target's classes."""
        return tuple(self.classes[target])

    @property
    def widths(self) -> list[int]:
        return [len(labels) for labels in self.classes]

    @property
    def prediction_names(self) -> list[str]:
        return [f"{name}_{label}" for t, name in enumerate(self.targets) for label in self.labels(t)]

    @property
    def prediction_columns(self) -> list[str]:
        return self.prediction_names

    def settle(self, files: Sequence[File]) -> Self:
        classes = []
        for name in self.targets:
            cells = files[0].cells(name)
            found = distinct(cells)
            if not found:
                raise InputError(no_numbers(cells, name))
            check_count(found, name, self.name)
            classes.append(found)
        return replace(self, classes=tuple(classes))

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        return indices(cells, self.labels(target))

    def complaint(self, target: int, cell: str) -> str:
        return f"is none of the classes {listed(self.labels(target))} of the training table, nor blank"

    def fitted(self, train: MoleculeStore) -> Self:
        super().fitted(train)
        for t, name in enumerate(self.targets):
            found = train.y[:, t][~train.y[:, t].isnan()].unique().long().tolist()
            if len(found) < 2:
                held = ", ".join(self.labels(t)[i] for i in found) or "none"
                raise InputError(f"target {name!r}: expected two classes or more among training molecules, got {held}")
        if self.class_weights == "none" or self.weights is not None:
            return self
        counts = [
            torch.bincount(column[~column.isnan()].long(), minlength=c)
            for column, c in zip(train.y.T, self.widths, strict=True)
        ]
        return replace(self, weights=tuple(tuple((n.sum() / (len(n) * n.clamp(min=1))).tolist()) for n in counts))

    def cross_entropies(self, output: Tensor, target: Tensor) -> Tensor:
        def one(t: int) -> Tensor:
            weight = None if self.weights is None else constants(self.weights[t], output)
            return F.cross_entropy(output[:, self.places[t].columns], target[:, t].long(), weight, reduction="none")

        return torch.stack([one(t) for t in range(len(self.targets))], dim=1)

    def class_says(self, target: int) -> tuple[float, ...] | None:
        return None if self.weights is None else self.weights[target]

    def regressands(self, store: MoleculeStore) -> Tensor:
        def one(column: Tensor, width: int) -> Tensor:
            known = F.one_hot(column.nan_to_num().long(), width).double()
            return torch.where(column.isnan()[:, None], torch.nan, known)

        return torch.cat([one(*each) for each in zip(self.scaled(store).T, self.widths, strict=True)], dim=1)

    def softmaxes(self, output: Tensor) -> Tensor:
        """Of each class."""
        return torch.cat([output[..., place.columns].softmax(-1) for place in self.places], dim=-1)

    def kinds(self, target: int, members: int) -> dict[str, type]:
        return (
            super().kinds(target, members)
            | {"pred": str}
            | dict.fromkeys(self.labels(target), float)
            | self.further_kinds()
        )

    def table(self, answers: Predictions) -> list[np.ndarray]:
        mean, std = answers.mean, answers.std
        columns: list[np.ndarray] = []
        for t, place in enumerate(self.places):
            p = mean[:, place.columns]
            best = p.argmax(1)
            columns.append(np.array(self.labels(t), object)[best])
            if std is not None:
                columns.append(np.take_along_axis(std[:, place.columns], best[:, None], 1)[:, 0])
            columns += [*p.T, *self.further_columns(answers, t)]
        return columns

    def quantity(self, column: int) -> str:
        return f"probability of {self.prediction_names[column]}"

    def notes(self) -> list[str]:
        return self.set_notes() + [f"{name}: classes {listed(self.labels(t))}" for t, name in enumerate(self.targets)]

    # what the report says of it

    def panels(self, report: Report, t: int, near: Callable[[], Nearest]) -> Iterator[Panel]:
        from gtx.report.panels import label_panels

        return label_panels(report, t, near)

    def lede(self, several: bool) -> str:
        return ", each as one of several classes" if several else f", as one of the classes {listed(self.labels(0))}"

    def panel_words(self, intervals: bool) -> str:
        return (
            "In the confusion matrix, rows are measured classes and columns are predicted classes. Numbers count "
            "molecules; a darker cell has a larger share of its row."
        )

    def likeliest(self, prediction: np.ndarray) -> np.ndarray:
        """The number of the likeliest class of each molecule, `[m]`, of probabilities `[m, C]`."""
        return prediction.argmax(-1)

    def errors(self, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """What the probability of the measured class lacks of 1."""
        return 1 - np.take_along_axis(prediction, y.astype(int)[:, None], 1)[:, 0]

    def value_text(self, t: int, y: float) -> str:
        return self.labels(t)[int(y)]

    def prediction_text(self, t: int, prediction: np.ndarray) -> str:
        best = int(prediction.argmax())
        return f"{self.labels(t)[best]} ({prediction[best]:.2f})"

    def share_names(self, t: int) -> list[str]:
        """Names of the classes whose shares are shown."""
        return list(self.labels(t)) if len(self.targets) == 1 else [f"{self.targets[t]} {k}" for k in self.labels(t)]

    def summary(self, t: int, y: np.ndarray) -> dict[str, str]:
        counts = ", ".join(f"{name} {int((y == k).sum()):,}" for k, name in enumerate(self.labels(t)))
        return {"molecules of each class": counts}

    @classmethod
    def kept_entries(cls, targets: int) -> Record:
        classes = ListOf(ListOf(text(), 2, MOST_CLASSES), targets, targets)
        weights = ListOf(ListOf(number(0)), targets, targets)
        own = {"weights": OrNone(weights), "class_weights": text()}
        return Record({"classes": classes}, own | cls.calibration_entries(targets))
