"""Classification: two classes per target, or many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from gtx.data.targets import no_numbers
from gtx.errors import InputError
from gtx.schema import Kind, ListOf, OrNone, Record, number, text
from gtx.tasks.classes import ClassTask
from gtx.tasks.labels import MOST_CLASSES, check_count, distinct, indices, listed
from gtx.tasks.metrics import constants, has_values, varies
from gtx.tasks.options import (
    binary_accuracy,
    binary_auroc,
    binary_average_precision,
    learned,
    multiclass_accuracy,
    multiclass_f1_score,
    multiclass_matthews_corrcoef,
)
from gtx.tasks.task import Metric, Predictions, targets_of

if TYPE_CHECKING:
    from gtx.data import File, MoleculeStore


# --- One of two classes, for each of several targets.

ZERO_ONE = ("0", "1")


@dataclass(frozen=True)
class Classification(ClassTask):
    """Classification into two classes per target, by the logit of the second.

    Args:
        targets: names of the target columns.
        class_weights: "balanced" gives both classes of a target the same total weight in the loss.
        classes: two labels of each target, the positive one last; read from the table; default: 0 and 1.
        positive_weights: of each target, fitted to the training rows if weights are balanced.
    """

    name: ClassVar[str] = "classification"
    epochs: ClassVar[int] = 20
    discrete: ClassVar[bool] = True
    linked: ClassVar[bool] = True
    metrics: ClassVar[dict[str, Metric]] = {
        "roc_auc": Metric("ROC-AUC", lambda p, y: binary_auroc(p, y.long()), varies),
        "pr_auc": Metric("PR-AUC", lambda p, y: binary_average_precision(p, y.long()), varies),
        "accuracy": Metric("accuracy", lambda p, y: binary_accuracy(p, y.long()), has_values),
    }

    classes: tuple[tuple[str, ...], ...] | None = learned()
    positive_weights: tuple[float, ...] | None = learned()

    def labels(self, target: int) -> tuple[str, ...]:
        return ZERO_ONE if self.classes is None else tuple(self.classes[target])

    def infer_from_table(self, files: Sequence[File]) -> Self:
        classes = []
        for name in self.targets:
            cells = files[0].cells(name)
            found = distinct(cells)
            if not found:
                raise InputError(no_numbers(cells, name))
            if set(found) <= set(ZERO_ONE) and len(found) == 1:
                raise InputError(
                    f"target column {name!r} holds only the class {found[0]}; {self.name} needs both 0 and 1"
                )
            if len(found) != 2:
                number = "only the class" if len(found) == 1 else f"{len(found)} classes,"
                more = "; for more than two there is --task multiclass" if len(found) > 2 else ""
                raise InputError(
                    f"target column {name!r} holds {number} {listed(found)}; {self.name} needs exactly two{more}"
                )
            check_count(found, name, self.name)
            classes.append(found)
        return replace(self, classes=tuple(classes))

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        return indices(cells, self.labels(target))

    def complaint(self, target: int, cell: str) -> str:
        zero, one = self.labels(target)
        return f"is neither {zero} nor {one}, nor blank"

    def fitted(self, train: MoleculeStore) -> Self:
        super().fitted(train)
        y = targets_of(train)
        found = [column[~column.isnan()].unique().tolist() for column in y.T]
        if all(len(classes) < 2 for classes in found):  # of several targets some may be so rare
            held = ", ".join(
                f"{name!r} only the class {self.labels(t)[int(found[t][0])]}" for t, name in enumerate(self.targets)
            )
            both = " and ".join(self.labels(0))
            raise InputError(f"{self.name} needs both {both} among the training molecules; there {held} occurs")
        if self.class_weights == "none" or self.positive_weights is not None:
            return self
        positive, measured = y.nansum(0), (~y.isnan()).sum(0)
        weights = ((measured - positive) / positive.clamp(min=1)).clamp(min=1e-3)
        return replace(self, positive_weights=tuple(weights.tolist()))

    def regressands(self, store: MoleculeStore) -> Tensor:
        return self.scaled(store).double()

    def cross_entropies(self, output: Tensor, target: Tensor) -> Tensor:
        weights = None if self.positive_weights is None else constants(self.positive_weights, output)
        return F.binary_cross_entropy_with_logits(output, target, reduction="none", pos_weight=weights)

    def loss_weights_of_classes(self, target: int) -> tuple[float, ...] | None:
        return None if self.positive_weights is None else (1.0, self.positive_weights[target])

    def val_score(self, output: Tensor, scaled: Tensor, logged: dict[str, float]) -> float:
        """Return 1 − ROC-AUC, which does not punish overconfidence; the loss if no target has both classes."""
        return 1 - logged["val_roc_auc"] if "val_roc_auc" in logged else logged["val_loss"]

    def softmaxes(self, output: Tensor) -> Tensor:
        """Return the probability of the second class."""
        return output.sigmoid()

    def answer_suffixes(self, target: int, members: int) -> dict[str, type]:
        suffixes = super().answer_suffixes(target, members)
        if self.labels(target) != ZERO_ONE:
            suffixes["class"] = str
        return suffixes | self.further_suffixes()

    def table(self, answers: Predictions) -> list[np.ndarray]:
        mean, std = answers.mean, answers.std
        columns: list[np.ndarray] = []
        for t in range(len(self.targets)):
            columns += [mean[:, t]] if std is None else [mean[:, t], std[:, t]]
            if self.labels(t) != ZERO_ONE:
                columns.append(np.array(self.labels(t), object)[(mean[:, t] > 0.5).astype(int)])
            columns += self.further_columns(answers, t)
        return columns

    def quantity(self, column: int) -> str:
        name, labels = self.targets[column], self.labels(column)
        return f"probability of {name}" if labels == ZERO_ONE else f"probability that {name} is {labels[1]!r}"

    def notes(self) -> list[str]:
        return self.set_notes() + [
            f"{name}: {name}_pred is the probability of {self.labels(t)[1]!r}, the other class is {self.labels(t)[0]!r}"
            for t, name in enumerate(self.targets)
            if self.labels(t) != ZERO_ONE
        ]

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        classes, weights = ListOf(ListOf(text(), 2, 2), targets, targets), ListOf(number(0), targets, targets)
        entries: dict[str, Kind] = {
            "classes": OrNone(classes),
            "positive_weights": OrNone(weights),
            "class_weights": text(),
        }
        return Record({}, {**entries, **cls.calibration_entries(targets)})


# --- One of several classes, for each of several targets.


def _roc_auc(p: Tensor, y: Tensor) -> Tensor:
    """Average the ROC-AUC of each class that occurs against the rest (Provost & Domingos 2001, unweighted)."""
    return torch.stack([binary_auroc(p[:, k], (y == k).long()) for k in y.long().unique()]).mean()


@dataclass(frozen=True)
class Multiclass(ClassTask):
    r"""Classification into C classes per target, by a softmax of C outputs, learned by cross-entropy: \(-\ln p_y\).

    Answers are the likeliest class, `<target>_pred`, and the probability of each, `<target>_<class>`.

    Args:
        targets: names of the target columns.
        class_weights: "balanced" gives all classes of a target the same total weight in the loss.
        classes: labels of each target in order, read from the table.
        weights: of each target the weights of its classes, fitted to the training rows if they are balanced.
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

    classes: tuple[tuple[str, ...], ...] = learned()
    weights: tuple[tuple[float, ...], ...] | None = learned()

    def labels(self, target: int) -> tuple[str, ...]:
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

    def infer_from_table(self, files: Sequence[File]) -> Self:
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
        y = targets_of(train)
        for t, name in enumerate(self.targets):
            found = y[:, t][~y[:, t].isnan()].unique().long().tolist()
            if len(found) < 2:
                held = ", ".join(self.labels(t)[i] for i in found) or "none"
                raise InputError(f"target {name!r}: expected two classes or more among training molecules, got {held}")
        if self.class_weights == "none" or self.weights is not None:
            return self
        counts = [
            torch.bincount(column[~column.isnan()].long(), minlength=c)
            for column, c in zip(y.T, self.widths, strict=True)
        ]
        return replace(self, weights=tuple(tuple((n.sum() / (len(n) * n.clamp(min=1))).tolist()) for n in counts))

    def cross_entropies(self, output: Tensor, target: Tensor) -> Tensor:
        def one(t: int) -> Tensor:
            weight = None if self.weights is None else constants(self.weights[t], output)
            return F.cross_entropy(output[:, self.places[t].columns], target[:, t].long(), weight, reduction="none")

        return torch.stack([one(t) for t in range(len(self.targets))], dim=1)

    def loss_weights_of_classes(self, target: int) -> tuple[float, ...] | None:
        return None if self.weights is None else self.weights[target]

    def regressands(self, store: MoleculeStore) -> Tensor:
        def one(column: Tensor, width: int) -> Tensor:
            indicators = F.one_hot(column.nan_to_num().long(), width).double()
            return torch.where(column.isnan()[:, None], torch.nan, indicators)

        return torch.cat([one(*each) for each in zip(self.scaled(store).T, self.widths, strict=True)], dim=1)

    def softmaxes(self, output: Tensor) -> Tensor:
        """Return the probability of each class."""
        return torch.cat([output[..., place.columns].softmax(-1) for place in self.places], dim=-1)

    def answer_suffixes(self, target: int, members: int) -> dict[str, type]:
        suffixes = {**super().answer_suffixes(target, members), "pred": str}
        return suffixes | dict.fromkeys(self.labels(target), float) | self.further_suffixes()

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

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        classes = ListOf(ListOf(text(), 2, MOST_CLASSES), targets, targets)
        weights = ListOf(ListOf(number(0)), targets, targets)
        entries: dict[str, Kind] = {"weights": OrNone(weights), "class_weights": text()}
        return Record({"classes": classes}, {**entries, **cls.calibration_entries(targets)})
