"""Classification: two classes per target, or many; calibrated probabilities and prediction sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.data.targets import no_numbers
from gtx.schema import Kind, ListOf, OrNone, Record, flag, number, one_of, text
from gtx.settings.options import learned
from gtx.settings.tasks import BinaryOptions, ClassOptions
from gtx.tasks.calibration import (
    BETWEEN_0_AND_1,
    LEVEL,
    SET_KINDS,
    conformal_half_width,
    evaluate_probabilities,
    fewest,
    fit_isotonic,
    fit_temperature,
    percent,
    ranking,
    stepped,
    tempered,
    unlikeliness,
)
from gtx.tasks.evidence import WORDS, concentrations, evidence_loss, probabilities, vacuity
from gtx.tasks.labels import (
    MOST_CLASSES,
    check_count,
    count_labels,
    in_order,
    indices,
    label,
    listed,
    main_labels,
    same_label,
    written,
)
from gtx.tasks.metrics import (
    accuracy,
    average_precision,
    constants,
    has_values,
    macro_f1,
    matthews_correlation,
    mean_scores,
    roc_auc,
    varies,
)
from gtx.tasks.numbers import NumericTask
from gtx.tasks.task import Metric, Predictions, Task, targets_of
from gtx.tasks.uncertainty import needs_gradients

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.data.row_log import InputFile

BETWEEN = "|"
"""Separator of the classes of a set."""


@dataclass(frozen=True)
class ClassTask(NumericTask, ClassOptions):
    r"""Task that predicts the probability of each class or, if there are two classes, of the second class.

    With `sets`, the prediction set of a molecule contains the likeliest class and the classes \(\{ c : s_c \le q \}\).
    The threshold q is the \(\lceil (n + 1) \cdot coverage \rceil\)-th smallest of the scores \(s_y\) of the true
    classes of n held-out rows, so that the wanted share of sets contains the true class. The function
    `gtx.tasks.calibration.unlikeliness` defines both kinds of score.

    With `uncertainty` "evidential", one more output per target is the evidence for the probabilities, and the column
    `<target>_vacuity` is the lack of evidence; see `gtx.tasks.evidence`.

    Args:
        temperatures: temperature of each target, fitted to validation rows if the calibration is "temperature".
        curves: calibration curve of each target and class if the calibration is "isotonic", see
            `gtx.tasks.calibration.fit_isotonic`.
        margins: threshold q of each target, None if there are too few validation rows.
    """

    temperatures: tuple[float, ...] | None = learned()
    curves: tuple[Any, ...] | None = learned()
    margins: tuple[float | None, ...] | None = learned()
    classes: tuple[tuple[str, ...], ...] | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        BETWEEN_0_AND_1.check(self.coverage, "coverage")
        if self.coverage != LEVEL and not self.sets:
            raise InputError(f"coverage: {self.coverage} needs sets: add sets")
        if self.uncertainty not in WORDS:
            raise InputError(f"uncertainty: of {self.name} expected {' or '.join(WORDS)}, got {self.uncertainty}")
        if self.set_kind not in SET_KINDS:
            raise InputError(f"set_kind: expected {' or '.join(SET_KINDS)}, got {self.set_kind}")
        if self.set_kind != "smallest" and not self.sets:
            raise InputError(f"set_kind: {self.set_kind} needs sets: add sets")

    @abstractmethod
    def labels(self, target: int) -> tuple[str, ...]:
        """Return the labels of a target's classes."""

    def check_labels(self, name: str, labels: Sequence[str]) -> None:
        """Raise an `InputError` if the task cannot learn these labels of a target column."""

    def infer_from_table(self, files: Sequence[InputFile]) -> Self:
        return self.infer_from_cells([files[0].cells(name) for name in self.targets])

    def infer_from_cells(self, columns: Sequence[Sequence[str]]) -> Self:
        """Return the task with the classes in the cells of each target.

        Raises:
            InputError: the cells of a target cannot be learned.
        """
        classes = []
        for name, cells in zip(self.targets, columns, strict=True):
            labels = self.classes_of(cells)
            if not labels:
                raise InputError(no_numbers(cells, name))
            self.check_labels(name, labels)
            check_count(labels, name, self.name)
            classes.append(labels)
        return replace(self, classes=tuple(classes))

    def classes_of(self, cells: Sequence[str]) -> tuple[str, ...]:
        """List the classes in the cells of a target, in order."""
        return in_order(map(label, cells))

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        return indices(cells, self.labels(target))

    def unread_words(self, target: int, cell: str) -> str:
        return "a label that the model does not know"

    @abstractmethod
    def softmaxes(self, output: Tensor) -> Tensor:
        """Convert logits `[..., P]` to probabilities."""

    @abstractmethod
    def loss_weights_of_classes(self, target: int) -> tuple[float, ...] | None:
        """Return the weights of the classes of a target in the loss, by class number; None for uniform weights."""

    @property
    def evidential(self) -> bool:
        """True if one more output per target, after the logits, is the amount of evidence."""
        return self.uncertainty == "evidential"

    @property
    def out_channels(self) -> int:
        return self.num_predictions + (len(self.targets) if self.evidential else 0)

    def outputs(self, target: int) -> np.ndarray:
        logits = np.arange(self.num_predictions)[self.places[target].columns]
        return np.append(logits, self.num_predictions + target) if self.evidential else logits

    def check(self, model: nn.Module, members: int) -> None:
        if self.evidential:
            needs_gradients(self.uncertainty, model)

    @property
    def plain(self) -> Self:
        return replace(self, uncertainty="none")

    @abstractmethod
    def cross_entropies(self, output: Tensor, target: Tensor) -> Tensor:
        """Compute the cross-entropy of each entry, `[B, T]`, from logits `[B, P]` and numbers of classes `[B, T]`."""

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        if not self.evidential:
            return self.cross_entropies(output, target)
        losses = []
        for t, alpha in enumerate(self.distributions(output)):
            y, weights = target[:, t].long(), self.loss_weights_of_classes(t)
            loss = evidence_loss(alpha, y)
            losses.append(loss if weights is None else loss * constants(weights, output)[y])
        return torch.stack(losses, dim=1)

    def distributions(self, output: Tensor) -> list[Tensor]:
        """Compute the Dirichlet distribution of each target, `[..., C]`, from logits and evidence."""
        shares, strength = self.softmaxes(output[..., : self.num_predictions]), output[..., self.num_predictions :]
        parts = [shares[..., target.columns] for target in self.places]
        whole = [torch.cat([1 - p, p], -1) if p.shape[-1] == 1 else p for p in parts]
        return [concentrations(p, strength[..., t]) for t, p in enumerate(whole)]

    def unscaled(self, output: Tensor, store: MoleculeStore) -> Tensor:
        """Compute the probability of each class or, of two classes, of the second."""
        output = output.double()
        if not self.evidential:
            return self.softmaxes(output)
        parts = [probabilities(alpha) for alpha in self.distributions(output)]
        return torch.cat([p[..., -width:] for p, width in zip(parts, self.widths, strict=True)], dim=-1)

    def vacuity(self, outputs: Tensor) -> np.ndarray | None:
        """Average the vacuity over members."""
        if not self.evidential:
            return None
        return torch.stack([vacuity(alpha) for alpha in self.distributions(outputs)], -1).mean(1).numpy()

    def adopting(self, other: Task) -> Self:
        for t, at in enumerate(self.shared(other)):
            if at < 0 or not isinstance(other, ClassTask):
                continue
            theirs, own = other.labels(at), self.labels(t)
            if list(map(same_label, theirs)) != list(map(same_label, own)):
                order = f", in this order: --positive {theirs[-1]} takes over the model's" if len(own) == 2 else ""
                hint = order if set(map(same_label, theirs)) == set(map(same_label, own)) else ""
                raise InputError(
                    f"{self.targets[t]}: the model has the classes {listed(theirs)}, the table {listed(own)}{hint}"
                )
        return self

    def shares(self, prediction: np.ndarray, target: int) -> np.ndarray:
        """Return the probability of each class of a target, `[m, C]`, from predictions `[m, P]`."""
        p = prediction[:, self.places[target].columns]
        return np.concatenate([1 - p, p], axis=1) if p.shape[1] == 1 else p

    def corrected(self, mean: np.ndarray) -> np.ndarray:
        parts = []
        for t, width in enumerate(self.widths):
            p = self.shares(mean, t)
            if self.temperatures is not None:
                p = tempered(p, self.temperatures[t])
            elif self.curves is not None and self.curves[t] is not None:
                p = stepped(p, self.curves[t])
            else:
                p = mean[:, self.places[t].columns]
            parts.append(p[:, -width:])
        return np.concatenate(parts, axis=1)

    def calibrated(self, answers: Predictions, y: np.ndarray) -> Self:
        """Calibrate probabilities, then sets."""
        measured = [~np.isnan(column) for column in y.T]
        pairs = [(y[rows, t].astype(int), self.shares(answers.mean[rows], t)) for t, rows in enumerate(measured)]
        task = self
        if self.calibration == "temperature":
            task = replace(self, temperatures=tuple(fit_temperature(*pair) for pair in pairs))
        elif self.calibration == "isotonic":
            task = replace(self, curves=tuple(fit_isotonic(*pair) for pair in pairs))
        return replace(task, margins=task.fit_margins(task.corrected(answers.mean), y)) if self.sets else task

    def fit_margins(self, mean: np.ndarray, y: np.ndarray) -> tuple[float | None, ...]:
        """Compute the margin of each target's sets from calibrated probabilities and the measured classes."""
        margins = []
        for t, column in enumerate(y.T):
            rows = ~np.isnan(column)
            scores = unlikeliness(self.shares(mean[rows], t), self.set_kind)
            true = np.take_along_axis(scores, column[rows, None].astype(int), 1)
            margin = float(conformal_half_width(true, np.zeros_like(true), self.coverage)[0])
            margins.append(margin if np.isfinite(margin) else None)
        return tuple(margins)

    def members_of_sets(self, mean: np.ndarray, target: int) -> np.ndarray:
        """Select the classes in the set of each molecule, bool `[m, C]`; all without a margin."""
        p = self.shares(mean, target)
        margin = None if self.margins is None else self.margins[target]
        within = unlikeliness(p, self.set_kind) <= (1 if margin is None else margin)
        return within | (p == p.max(1, keepdims=True))

    def further_suffixes(self) -> dict[str, type]:
        """Return suffixes and types of the columns after the probabilities: vacuity and set, if there are any."""
        return ({"vacuity": float} if self.evidential else {}) | ({} if self.margins is None else {"set": str})

    def further_columns(self, answers: Predictions, target: int) -> list[np.ndarray]:
        """Return the columns that `further_suffixes` names, `[m]` each."""
        unknown = [] if answers.vacuity is None else [answers.vacuity[:, target]]
        return unknown + self.set_columns(answers.mean, target)

    def set_columns(self, mean: np.ndarray, target: int) -> list[np.ndarray]:
        """Write the sets of a target as texts, `[m]`: the labels, in order, with a bar between them."""
        if self.margins is None:
            return []
        labels = self.labels(target)
        rows = self.members_of_sets(mean, target)
        return [np.array([BETWEEN.join(labels[c] for c in row.nonzero()[0]) for row in rows], object)]

    def evaluate_uncertainty(self, y: np.ndarray, answers: Predictions) -> dict[str, Any]:
        """Score probabilities, see `gtx.tasks.calibration.evaluate_probabilities`, sets and evidence.

        Of sets `coverage`, the share with the true class, and `size`, their mean number of classes; of evidence
        `auroc_vacuity`, the ROC-AUC of vacuity for wrong predictions.
        """
        per_target: dict[str, dict[str, float | None]] = {}
        for t, name in enumerate(self.targets):
            rows = ~np.isnan(y[:, t]) & answers.finite
            true = y[rows, t].astype(int)
            sets = ("coverage", "size") if self.margins is not None else ()
            evidence = ("auroc_vacuity",) if answers.vacuity is not None else ()
            per_target[name] = dict.fromkeys(("nll", "brier", "ece", "auroc", *evidence, *sets))
            if len(true):
                p = self.shares(answers.mean[rows], t)
                per_target[name] |= evaluate_probabilities(true, p)
                if answers.vacuity is not None:
                    per_target[name]["auroc_vacuity"] = ranking(p.argmax(1) != true, answers.vacuity[rows, t])
                if self.margins is not None:
                    members = self.members_of_sets(answers.mean[rows], t)
                    inside = np.take_along_axis(members, true[:, None], 1)
                    per_target[name] |= {"coverage": float(inside.mean()), "size": float(members.sum(1).mean())}
        return mean_scores(per_target)

    def set_notes(self) -> list[str]:
        """Describe the calibration of probabilities and sets on validation rows."""
        lines = []
        if self.temperatures is not None:
            lines.append(f"temperature of probabilities: {', '.join(f'{t:.3g}' for t in self.temperatures)}")
        if self.margins is not None:
            if self.set_kind == "adaptive":
                most = ", ".join("any" if m is None else f"{m:.3g}" for m in self.margins)
                rule = f"the likeliest, and classes up to a sum of probabilities of {most}, the last by half"
            else:
                least = ", ".join("any" if m is None else f"{max(0.0, 1 - m):.3g}" for m in self.margins)
                rule = f"classes of a probability of {least} or more, and the likeliest"
            lacking = f"; any with fewer than {fewest(self.coverage)} validation values" if None in self.margins else ""
            lines.append(f"sets of {percent(self.coverage)}: {rule}{lacking}")
        return lines

    @classmethod
    def calibration_entries(cls, targets: int) -> dict[str, Kind]:
        """Describe the calibration entries of a model file for a number of targets."""
        line = ListOf(number(0, 1), 1)
        return {
            "calibration": one_of(["none", "temperature", "isotonic"]),
            "sets": flag(),
            "coverage": BETWEEN_0_AND_1,
            "set_kind": one_of(SET_KINDS),
            "uncertainty": one_of(WORDS),
            "temperatures": OrNone(ListOf(number(1e-3, 1e3), targets, targets)),
            "curves": OrNone(ListOf(OrNone(ListOf(ListOf(line, 2, 2), 2)), targets, targets)),
            "margins": OrNone(ListOf(OrNone(number(0, 1)), targets, targets)),
        }


# --- One of two classes, for each of several targets.

ZERO_ONE = ("0", "1")


@dataclass(frozen=True)
class BinaryClassification(ClassTask, BinaryOptions):
    """Task of predicting one of two classes for each target; the network's output is the logit of the second class.

    Args:
        targets: names of the target columns.
        class_weights: "balanced" gives both classes of a target the same total weight in the loss.
        positive: positive class of every target; by default see `gtx.tasks.labels.in_order`.
        classes: two labels of each target, the positive label last, read from the table; default: 0 and 1.
        positive_weights: weight of the positive class of each target, fitted to the training rows if weights are
            balanced.
    """

    name: ClassVar[str] = "classification"
    epochs: ClassVar[int] = 20
    discrete: ClassVar[bool] = True
    linked: ClassVar[bool] = True
    metrics: ClassVar[dict[str, Metric]] = {
        "roc_auc": Metric("ROC-AUC", roc_auc, varies),
        "pr_auc": Metric("PR-AUC", average_precision, varies),
        "accuracy": Metric("accuracy", accuracy, has_values),
    }

    unsaved: ClassVar[frozenset[str]] = ClassTask.unsaved | {"positive"}

    positive_weights: tuple[float, ...] | None = learned()

    def classes_of(self, cells: Sequence[str]) -> tuple[str, ...]:
        counts = count_labels(map(label, cells))
        return in_order(counts if len(counts) == 2 else main_labels(counts), self.positive)

    def labels(self, target: int) -> tuple[str, ...]:
        return ZERO_ONE if self.classes is None else tuple(self.classes[target])

    def check_labels(self, name: str, labels: Sequence[str]) -> None:
        if set(labels) <= set(ZERO_ONE) and len(labels) == 1:
            raise InputError(f"target column {name!r} holds only the class {labels[0]}; {self.name} needs both 0 and 1")
        if len(labels) != 2:
            number = "only the class" if len(labels) == 1 else f"{len(labels)} classes,"
            more = "; for more than two there is --task multiclass" if len(labels) > 2 else ""
            raise InputError(
                f"target column {name!r} holds {number} {listed(labels)}; {self.name} needs exactly two{more}"
            )
        if self.positive is not None and same_label(labels[1]) != same_label(written(self.positive)):
            raise InputError(f"positive: target {name!r} has the classes {listed(labels)}, not {self.positive!r}")

    def complaint(self, target: int, cell: str) -> str:
        zero, one = self.labels(target)
        return f"is neither {zero} nor {one}, nor blank"

    def fitted(self, train: MoleculeStore) -> Self:
        super().fitted(train)
        y = targets_of(train)
        present = [column[~column.isnan()].unique().tolist() for column in y.T]
        if all(len(classes) < 2 for classes in present):  # of several targets some may be so rare
            listing = ", ".join(
                f"{name!r} only the class {self.labels(t)[int(present[t][0])]}" for t, name in enumerate(self.targets)
            )
            both = " and ".join(self.labels(0))
            raise InputError(f"{self.name} needs both {both} among the training molecules; there {listing} occurs")
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
            f"{name}: {name}_pred is the probability of the positive class, {self.labels(t)[1]!r}; the other class is "
            f"{self.labels(t)[0]!r}"
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


@dataclass(frozen=True)
class MulticlassClassification(ClassTask):
    r"""Task of predicting one of C classes per target, by a softmax of C outputs and cross-entropy: \(-\ln p_y\).

    The predictions are the likeliest class, `<target>_pred`, and the probability of each class, `<target>_<class>`.

    Args:
        targets: names of the target columns.
        class_weights: "balanced" gives all classes of a target the same total weight in the loss.
        classes: labels of each target in order, read from the table.
        weights: weights of the classes of each target, fitted to the training rows if weights are balanced.
    """

    name: ClassVar[str] = "multiclass"
    epochs: ClassVar[int] = 20
    discrete: ClassVar[bool] = True
    linked: ClassVar[bool] = True
    metrics: ClassVar[dict[str, Metric]] = {
        "roc_auc": Metric("macro ROC-AUC", roc_auc, varies),
        "accuracy": Metric("accuracy", accuracy, has_values),
        "f1": Metric("macro F1", macro_f1, has_values),
        "mcc": Metric("Matthews", matthews_correlation, varies),
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

    def complaint(self, target: int, cell: str) -> str:
        return f"is none of the classes {listed(self.labels(target))} of the training table, nor blank"

    def fitted(self, train: MoleculeStore) -> Self:
        super().fitted(train)
        y = targets_of(train)
        for t, name in enumerate(self.targets):
            present = y[:, t][~y[:, t].isnan()].unique().long().tolist()
            if len(present) < 2:
                listing = ", ".join(self.labels(t)[i] for i in present) or "none"
                raise InputError(
                    f"target {name!r}: expected two classes or more among training molecules, got {listing}"
                )
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
        return torch.cat([output[..., target.columns].softmax(-1) for target in self.places], dim=-1)

    def answer_suffixes(self, target: int, members: int) -> dict[str, type]:
        suffixes = {**super().answer_suffixes(target, members), "pred": str}
        return suffixes | dict.fromkeys(self.labels(target), float) | self.further_suffixes()

    def table(self, answers: Predictions) -> list[np.ndarray]:
        mean, std = answers.mean, answers.std
        columns: list[np.ndarray] = []
        for t, target in enumerate(self.places):
            p = mean[:, target.columns]
            best = p.argmax(1)
            columns.append(np.array(self.labels(t), object)[best])
            if std is not None:
                columns.append(np.take_along_axis(std[:, target.columns], best[:, None], 1)[:, 0])
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
