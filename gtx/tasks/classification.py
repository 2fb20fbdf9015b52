"""One of two classes, for each of several targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from gtx.data.targets import no_numbers
from gtx.errors import InputError
from gtx.schema import ListOf, OrNone, Record, number, text
from gtx.tasks.classes import ClassTask
from gtx.tasks.labels import distinct, indices, listed
from gtx.tasks.late_functions import binary_accuracy, binary_auroc, binary_average_precision
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

ZERO_ONE = ("0", "1")


@dataclass(frozen=True)
class Classification(ClassTask):
    """Two classes per target, by the logit of the second.

    Args:
        targets: names of the target columns.
        class_weights: "balanced" gives both classes of a target the same say in the loss, whatever their numbers.
        classes: per target its two labels, the positive one last; settled by the table, by default 0 and 1.
        positive_weights: per target, learned of the training rows where weights are balanced.
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
        """The labels of a target's classes."""
        return ZERO_ONE if self.classes is None else tuple(self.classes[target])

    def settle(self, files: Sequence[File]) -> Self:
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
            classes.append(found)
        return replace(self, classes=tuple(classes))

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        return indices(cells, self.labels(target))

    def complaint(self, target: int, cell: str) -> str:
        zero, one = self.labels(target)
        return f"is neither {zero} nor {one}, nor blank"

    def fitted(self, train: MoleculeStore) -> Self:
        super().fitted(train)
        found = [column[~column.isnan()].unique().tolist() for column in train.y.T]
        if all(len(classes) < 2 for classes in found):  # of several targets some may be so rare
            held = ", ".join(
                f"{name!r} only the class {self.labels(t)[int(found[t][0])]}" for t, name in enumerate(self.targets)
            )
            both = " and ".join(self.labels(0))
            raise InputError(f"{self.name} needs both {both} among the training molecules; there {held} occurs")
        if self.class_weights == "none" or self.positive_weights is not None:
            return self
        positive, known = train.y.nansum(0), (~train.y.isnan()).sum(0)
        return replace(
            self, positive_weights=tuple(((known - positive) / positive.clamp(min=1)).clamp(min=1e-3).tolist())
        )

    def regressands(self, store: MoleculeStore) -> Tensor:
        return self.scaled(store).double()

    def cross_entropies(self, output: Tensor, target: Tensor) -> Tensor:
        weights = None if self.positive_weights is None else constants(self.positive_weights, output)
        return F.binary_cross_entropy_with_logits(output, target, reduction="none", pos_weight=weights)

    def class_says(self, target: int) -> tuple[float, ...] | None:
        return None if self.positive_weights is None else (1.0, self.positive_weights[target])

    def val_score(self, output: Tensor, scaled: Tensor, logged: dict[str, float]) -> float:
        """1 − ROC-AUC, which does not punish a ranking for overconfidence; the loss if no target has both classes."""
        return 1 - logged["val_roc_auc"] if "val_roc_auc" in logged else logged["val_loss"]

    def softmaxes(self, output: Tensor) -> Tensor:
        """Of the second class."""
        return output.sigmoid()

    def kinds(self, target: int, members: int) -> dict[str, type]:
        return (
            super().kinds(target, members)
            | ({} if self.labels(target) == ZERO_ONE else {"class": str})
            | self.further_kinds()
        )

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

    # what the report says of it

    has_thresholds: ClassVar[bool] = True

    def panels(self, report: Report, t: int, near: Callable[[], Nearest]) -> Iterator[Panel]:
        from gtx.report.panels import probability_panels

        return probability_panels(report, t, near)

    def lede(self, several: bool) -> str:
        return f", {'each ' * several}as the probability of class {self.labels(0)[1] if not several else 1}"

    def panel_words(self, intervals: bool) -> str:
        return (
            "Dotted lines are the precision of random guesses. The calibration picture groups molecules by predicted "
            "probability and shows which share of each group is in the class; on the diagonal line both are equal."
        )

    def likeliest(self, prediction: np.ndarray) -> np.ndarray:
        """The number of the likelier class of each molecule, `[m]`."""
        return (prediction > 0.5).astype(int)

    def value_text(self, t: int, y: float) -> str:
        return self.labels(t)[int(y)]

    def share_names(self, t: int) -> list[str]:
        """Names of the classes whose shares are shown: the second alone."""
        return [self.targets[t] if self.labels(t) == ZERO_ONE else f"{self.targets[t]} {self.labels(t)[1]}"]

    def summary(self, t: int, y: np.ndarray) -> dict[str, str]:
        from gtx.report.words import number

        return {"share of the second class": number(y.mean() if len(y) else None)}

    @classmethod
    def kept_entries(cls, targets: int) -> Record:
        classes, weights = ListOf(ListOf(text(), 2, 2), targets, targets), ListOf(number(0), targets, targets)
        own = {"classes": OrNone(classes), "positive_weights": OrNone(weights), "class_weights": text()}
        return Record({}, own | cls.calibration_entries(targets))
