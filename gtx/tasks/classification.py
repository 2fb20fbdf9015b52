"""Classification: two classes per target, or many; calibrated probabilities and prediction sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gtx.base.errors import InputError, printable
from gtx.base.schema import Text, check, entries, list_of, number, one_of
from gtx.data.feature_columns import parse_labels
from gtx.data.targets import no_numbers
from gtx.settings.options import learned
from gtx.settings.tasks import BinaryOptions, ClassOptions
from gtx.tasks.answers import NumericAnswers, Predictions
from gtx.tasks.calibration import (
    BETWEEN_0_AND_1,
    LEVEL,
    SET_KINDS,
    apply_curves,
    apply_temperature,
    conformal_half_width,
    evaluate_probabilities,
    fewest,
    fit_isotonic,
    fit_temperature,
    percent,
    ranking,
    unlikeliness,
)
from gtx.tasks.columns import Columns
from gtx.tasks.evidence import WORDS, concentrations, evidence_loss, probabilities, vacuity
from gtx.tasks.labels import (
    MOST_CLASSES,
    check_count,
    count_labels,
    in_order,
    indices,
    label,
    label_indices,
    listed,
    main_labels,
    normal_label,
    same_label,
)
from gtx.tasks.levels import LEVELS
from gtx.tasks.metrics import (
    Metric,
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
from gtx.tasks.objective import NumericObjective
from gtx.tasks.task import NumericTask, Task
from gtx.tasks.uncertainty import needs_gradients

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.data.row_log import InputFile

BETWEEN = "|"
"""Separator of the classes of a set."""
ZERO_ONE = ("0", "1")

# --- Columns: labels of classes.


@dataclass(frozen=True)
class ClassColumns(Columns):
    """Columns of labels, which become numbers of classes.

    Attributes:
        classes: labels of each target in order; None before the table is read.
        task: name of the task, for messages.
    """

    classes: tuple[tuple[str, ...], ...] | None = None
    task: str = "multiclass"

    discrete: ClassVar[bool] = True
    nouns: ClassVar[tuple[str, str]] = ("class", "classes")

    def labels(self, target: int) -> tuple[str, ...]:
        """Return the labels of a target's classes."""
        return () if self.classes is None else tuple(self.classes[target])

    def check_labels(self, name: str, labels: Sequence[str]) -> None:
        """Raise an `InputError` if the task cannot learn these labels of a target column."""

    def classes_of(self, cells: Sequence[str]) -> tuple[str, ...]:
        """List the classes in the cells of a target, in order."""
        return in_order(map(label, cells))

    def infer(self, files: Sequence[InputFile]) -> dict[str, Any]:
        return self.infer_from_cells([files[0].cells(name) for name in self.targets])

    def infer_from_cells(self, columns: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Return the classes in the cells of each target, as a field of the task.

        Raises:
            InputError: the cells of a target cannot be learned.
        """
        classes = []
        for name, cells in zip(self.targets, columns, strict=True):
            if self.level.lists:
                labels, hint = self.classes_in_lists(name, cells), f"; for numbers there is --task {self.level.name}s"
            else:
                labels, hint = self.classes_of(cells), ""
                if not labels:
                    raise InputError(no_numbers(cells, name))
            self.check_labels(name, labels)
            check_count(labels, name, self.task, hint)
            classes.append(labels)
        return {"classes": tuple(classes)}

    def classes_in_lists(self, name: str, cells: Sequence[str], positive: str | None = None) -> tuple[str, ...]:
        """List the classes in the lists of a target column, in order.

        Raises:
            InputError: there is no list of classes.
        """
        labels = in_order((item for cell in cells for item in _labels(cell, strict=False) or ()), positive)
        if not labels:
            what = f"holds no list of classes in any of the {len(cells)} rows"
            raise InputError(f"target column {name!r} {what}; one class for each {self.level.name} was expected")
        return labels

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        return indices(cells, self.labels(target))

    def items(self, target: int, cell: str) -> np.ndarray | None:
        names = _labels(cell)
        if names is None:
            return None
        labels = self.labels(target)
        values = label_indices(names, labels)
        for i in np.flatnonzero(np.isinf(values)).tolist()[:1]:
            item = f"item {i + 1}, '{printable(str(names[i]), 20)}',"
            raise InputError(f"{item} is none of the classes {listed(labels)} of the training table, nor null")
        return values

    def complaint(self, target: int, cell: str) -> str:
        return f"is none of the classes {listed(self.labels(target))} of the training table, nor blank"

    def unread_words(self, target: int, cell: str) -> str:
        if self.level.lists and _labels(cell, strict=False) is None:
            return super().unread_words(target, cell)
        return "a label that the model does not know"


def _labels(cell: str, strict: bool = True) -> list[str | None] | None:
    """Parse the labels of a cell's list; None if it is blank, or, unless `strict`, no list."""
    try:
        items = parse_labels(cell)
    except InputError:
        if strict:
            raise
        return None
    return None if items is None else [None if item is None else normal_label(item) for item in items]


@dataclass(frozen=True)
class BinaryColumns(ClassColumns):
    """Columns of labels of two classes, the positive one last; 0 and 1 before the table is read.

    Attributes:
        positive: positive class of every target; by default see `gtx.tasks.labels.in_order`.
    """

    positive: str | None = None

    def labels(self, target: int) -> tuple[str, ...]:
        return super().labels(target) or ZERO_ONE

    def classes_of(self, cells: Sequence[str]) -> tuple[str, ...]:
        counts = count_labels(map(label, cells))
        return in_order(counts if len(counts) == 2 else main_labels(counts), self.positive)

    def classes_in_lists(self, name: str, cells: Sequence[str], positive: str | None = None) -> tuple[str, ...]:
        return super().classes_in_lists(name, cells, positive or self.positive)

    def check_labels(self, name: str, labels: Sequence[str]) -> None:
        if set(labels) <= set(ZERO_ONE) and len(labels) == 1:
            raise InputError(f"target column {name!r} holds only the class {labels[0]}; {self.task} needs both 0 and 1")
        if len(labels) != 2:
            number = "only the class" if len(labels) == 1 else f"{len(labels)} classes,"
            more = "; for more than two there is --task multiclass" if len(labels) > 2 else ""
            raise InputError(
                f"target column {name!r} holds {number} {listed(labels)}; {self.task} needs exactly two{more}"
            )
        if self.positive is not None and same_label(labels[1]) != same_label(normal_label(self.positive)):
            raise InputError(f"positive: target {name!r} has the classes {listed(labels)}, not {self.positive!r}")

    def complaint(self, target: int, cell: str) -> str:
        zero, one = self.labels(target)
        return f"is neither {zero} nor {one}, nor blank"


# --- Objective: cross-entropy, or the loss of evidence.


@dataclass(frozen=True)
class CrossEntropy(NumericObjective):
    """Base of cross-entropies of two classes or of several.

    Attributes:
        columns: columns of the targets, which know the classes.
        balanced: whether rarer classes have larger weights.
        weights: weights of the classes in the loss, fitted to the training rows if they are balanced.
        evidential: whether one more output per target, after the logits, is the amount of evidence.
    """

    columns: ClassColumns = field(kw_only=True)
    balanced: bool = False
    weights: tuple[Any, ...] | None = None
    evidential: bool = False

    linked: ClassVar[bool] = True
    num_measures: ClassVar[int] = 1
    item_metrics: ClassVar[Sequence[str]] = ("accuracy",)

    @abstractmethod
    def softmaxes(self, output: Tensor) -> Tensor:
        """Convert logits `[..., P]` to probabilities."""

    @abstractmethod
    def class_weights(self, target: int) -> tuple[float, ...] | None:
        """Return the weights of the classes of a target in the loss, by class number; None for uniform weights."""

    @abstractmethod
    def cross_entropies(self, output: Tensor, target: Tensor) -> Tensor:
        """Compute the cross-entropy of each entry, `[B, T]`, from logits `[B, P]` and numbers of classes `[B, T]`."""

    @property
    def out_channels(self) -> int:
        return self.num_predictions + (len(self.targets) if self.evidential else 0)

    def outputs(self, target: int) -> np.ndarray:
        logits = np.arange(self.num_predictions)[self.places[target].columns]
        return np.append(logits, self.num_predictions + target) if self.evidential else logits

    def check(self, model: nn.Module) -> None:
        if self.evidential:
            needs_gradients("evidential", model)

    @property
    def point(self) -> Self:
        return replace(self, evidential=False)

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        if not self.evidential:
            return self.cross_entropies(output, target)
        losses = []
        for t, alpha in enumerate(self.distributions(output)):
            y, weights = target[:, t].long(), self.class_weights(t)
            loss = evidence_loss(alpha, y)
            losses.append(loss if weights is None else loss * constants(weights, output)[y])
        return torch.stack(losses, dim=1)

    def distributions(self, output: Tensor) -> list[Tensor]:
        """Compute the Dirichlet distribution of each target, `[..., C]`, from logits and evidence."""
        shares, strength = self.softmaxes(output[..., : self.num_predictions]), output[..., self.num_predictions :]
        parts = [shares[..., target.columns] for target in self.places]
        each = [torch.cat([1 - p, p], -1) if p.shape[-1] == 1 else p for p in parts]
        return [concentrations(p, strength[..., t]) for t, p in enumerate(each)]

    def unscaled(self, output: Tensor, store: MoleculeStore | None = None) -> Tensor:
        """Compute the probability of each class or, of two classes, of the second."""
        output = output.double()
        if not self.evidential:
            return self.softmaxes(output)
        parts = [probabilities(alpha) for alpha in self.distributions(output)]
        return torch.cat([p[..., -width:] for p, width in zip(parts, self.widths, strict=True)], dim=-1)

    def regressands(self, store: MoleculeStore) -> Tensor | None:
        return None if self.level.lists else self.ideal(self.scaled(store))

    def measures(self, output: Tensor, target: Tensor) -> list[Tensor]:
        """Compute whether the likeliest class is right."""
        p = self.softmaxes(output)
        parts = [p[:, place.columns] for place in self.places]
        likeliest = [(one[:, 0] > 0.5).long() if one.shape[1] == 1 else one.argmax(1) for one in parts]
        return [torch.stack(likeliest, 1) == target]

    def item_scores(self, means: Sequence[Tensor], val: MoleculeStore) -> dict[str, float]:
        (right,) = means
        return {} if right.isnan().all() else {"val_accuracy": float(right.nanmean())}


@dataclass(frozen=True)
class BinaryCrossEntropy(CrossEntropy):
    """Cross-entropy of the logit of the second class, the one output of a target."""

    metrics: ClassVar[dict[str, Metric]] = {
        "roc_auc": Metric("ROC-AUC", roc_auc, varies),
        "pr_auc": Metric("PR-AUC", average_precision, varies),
        "accuracy": Metric("accuracy", accuracy, has_values),
    }

    def fit(self, train: MoleculeStore) -> dict[str, Any]:
        super().fit(train)
        y = self.level.targets(train)
        present = [column[~column.isnan()].unique().tolist() for column in y.T]
        if all(len(classes) < 2 for classes in present):  # of several targets some may be so rare
            listing = ", ".join(
                f"{name!r} only the class {self.columns.labels(t)[int(present[t][0])]}"
                for t, name in enumerate(self.targets)
            )
            both = " and ".join(self.columns.labels(0))
            needed = f"{self.columns.task} needs both {both} among the training molecules"
            raise InputError(f"{needed}; there {listing} occurs")
        if not self.balanced or self.weights is not None:
            return {}
        positive, measured = y.nansum(0), (~y.isnan()).sum(0)
        weights = ((measured - positive) / positive.clamp(min=1)).clamp(min=1e-3)
        return {"positive_weights": tuple(weights.tolist())}

    def class_weights(self, target: int) -> tuple[float, ...] | None:
        return None if self.weights is None else (1.0, self.weights[target])

    def cross_entropies(self, output: Tensor, target: Tensor) -> Tensor:
        weights = None if self.weights is None else constants(self.weights, output)
        return F.binary_cross_entropy_with_logits(output, target, reduction="none", pos_weight=weights)

    def val_score(self, output: Tensor, scaled: Tensor, logged: dict[str, float]) -> float:
        """Return 1 − ROC-AUC, which does not punish overconfidence; the loss if no target has both classes."""
        return 1 - logged["val_roc_auc"] if "val_roc_auc" in logged else logged["val_loss"]

    def softmaxes(self, output: Tensor) -> Tensor:
        """Return the probability of the second class."""
        return output.sigmoid()


@dataclass(frozen=True)
class SoftmaxCrossEntropy(CrossEntropy):
    r"""Cross-entropy \(-\ln p_y\) of the softmax of C logits for each target."""

    metrics: ClassVar[dict[str, Metric]] = {
        "roc_auc": Metric("macro ROC-AUC", roc_auc, varies),
        "accuracy": Metric("accuracy", accuracy, has_values),
        "f1": Metric("macro F1", macro_f1, has_values),
        "mcc": Metric("Matthews", matthews_correlation, varies),
    }

    @property
    def widths(self) -> list[int]:
        return [len(self.columns.labels(t)) for t in range(len(self.targets))]

    def fit(self, train: MoleculeStore) -> dict[str, Any]:
        super().fit(train)
        y = self.level.targets(train)
        for t, name in enumerate(self.targets):
            present = y[:, t][~y[:, t].isnan()].unique().long().tolist()
            if len(present) < 2:
                listing = ", ".join(self.columns.labels(t)[i] for i in present) or "none"
                raise InputError(
                    f"target {name!r}: expected two classes or more among training molecules, got {listing}"
                )
        if not self.balanced or self.weights is not None:
            return {}
        counts = [
            torch.bincount(column[~column.isnan()].long(), minlength=c)
            for column, c in zip(y.T, self.widths, strict=True)
        ]
        return {"weights": tuple(tuple((n.sum() / (len(n) * n.clamp(min=1))).tolist()) for n in counts)}

    def class_weights(self, target: int) -> tuple[float, ...] | None:
        return None if self.weights is None else self.weights[target]

    def cross_entropies(self, output: Tensor, target: Tensor) -> Tensor:
        def one(t: int) -> Tensor:
            weight = None if self.weights is None else constants(self.weights[t], output)
            return F.cross_entropy(output[:, self.places[t].columns], target[:, t].long(), weight, reduction="none")

        return torch.stack([one(t) for t in range(len(self.targets))], dim=1)

    def ideal(self, y: Tensor) -> Tensor:
        """Return the indicators of the classes."""

        def one(column: Tensor, width: int) -> Tensor:
            indicators = F.one_hot(column.nan_to_num().long(), width).double()
            return torch.where(column.isnan()[:, None], torch.nan, indicators)

        return torch.cat([one(*each) for each in zip(y.T, self.widths, strict=True)], dim=1)

    def softmaxes(self, output: Tensor) -> Tensor:
        """Return the probability of each class."""
        return torch.cat([output[..., target.columns].softmax(-1) for target in self.places], dim=-1)


# --- Answers: probabilities, calibrated on validation rows, and sets of classes.


@dataclass(frozen=True)
class ClassAnswers(NumericAnswers):
    """Base of answers of two classes or of several: probabilities, sets and vacuity.

    Attributes:
        calibration, sets, coverage, set_kind: see `gtx.tasks.options.ClassOptions`.
        temperatures, curves, margins: see `ClassTask`.
    """

    columns: ClassColumns
    objective: CrossEntropy
    calibration: str = "none"
    sets: bool = False
    coverage: float = LEVEL
    set_kind: str = "smallest"
    temperatures: tuple[float, ...] | None = None
    curves: tuple[Any, ...] | None = None
    margins: tuple[float | None, ...] | None = None

    def shares(self, prediction: np.ndarray, target: int) -> np.ndarray:
        """Return the probability of each class of a target, `[m, C]`, from predictions `[m, P]`."""
        p = prediction[:, self.objective.places[target].columns]
        return np.concatenate([1 - p, p], axis=1) if p.shape[1] == 1 else p

    def vacuity(self, outputs: Tensor) -> np.ndarray | None:
        """Average the vacuity over members."""
        if not self.objective.evidential:
            return None
        return torch.stack([vacuity(alpha) for alpha in self.objective.distributions(outputs)], -1).mean(1).numpy()

    def corrected(self, mean: np.ndarray) -> np.ndarray:
        parts = []
        for t, width in enumerate(self.objective.widths):
            p = self.shares(mean, t)
            if self.temperatures is not None:
                p = apply_temperature(p, self.temperatures[t])
            elif self.curves is not None and self.curves[t] is not None:
                p = apply_curves(p, self.curves[t])
            else:
                p = mean[:, self.objective.places[t].columns]
            parts.append(p[:, -width:])
        return np.concatenate(parts, axis=1)

    def fit(self, answers: Any, y: np.ndarray) -> dict[str, Any]:
        """Calibrate probabilities, then sets."""
        if self.objective.level.lists:
            return {}
        measured = [~np.isnan(column) for column in y.T]
        pairs = [(y[rows, t].astype(int), self.shares(answers.mean[rows], t)) for t, rows in enumerate(measured)]
        fitted: dict[str, Any] = {}
        if self.calibration == "temperature":
            fitted["temperatures"] = tuple(fit_temperature(*pair) for pair in pairs)
        elif self.calibration == "isotonic":
            fitted["curves"] = tuple(fit_isotonic(*pair) for pair in pairs)
        if self.sets:
            fitted["margins"] = self._margins(replace(self, **fitted).corrected(answers.mean), y)
        return fitted

    def _margins(self, mean: np.ndarray, y: np.ndarray) -> tuple[float | None, ...]:
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
        evidence: dict[str, type] = {"vacuity": float} if self.objective.evidential else {}
        return evidence | ({} if self.margins is None else {"set": str})

    def further_columns(self, answers: Predictions, target: int) -> list[np.ndarray]:
        """Return the columns that `further_suffixes` names, `[m]` each."""
        unknown = [] if answers.vacuity is None else [answers.vacuity[:, target]]
        return unknown + self.set_columns(answers.mean, target)

    def set_columns(self, mean: np.ndarray, target: int) -> list[np.ndarray]:
        """Write the sets of a target as texts, `[m]`: the labels, in order, with a bar between them."""
        if self.margins is None:
            return []
        labels = self.columns.labels(target)
        rows = self.members_of_sets(mean, target)
        return [np.array([BETWEEN.join(labels[c] for c in row.nonzero()[0]) for row in rows], object)]

    def evaluate_uncertainty(self, y: np.ndarray, answers: Predictions) -> dict[str, Any]:
        """Score probabilities, see `gtx.tasks.calibration.evaluate_probabilities`, sets and evidence.

        Of sets `coverage`, the share with the true class, and `size`, their mean number of classes; of evidence
        `auroc_vacuity`, the ROC-AUC of vacuity for wrong predictions.
        """
        per_target: dict[str, dict[str, float | None]] = {}
        for t, name in enumerate(self.objective.targets):
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

    def notes(self) -> list[str]:
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


@dataclass(frozen=True)
class BinaryAnswers(ClassAnswers):
    """Probability of the second class, and, unless the labels are 0 and 1, the likelier class."""

    def suffixes(self, target: int, members: int) -> dict[str, type]:
        suffixes = super().suffixes(target, members)
        if self.columns.labels(target) != ZERO_ONE:
            suffixes["class"] = str
        return suffixes | self.further_suffixes()

    def table(self, answers: Predictions) -> list[np.ndarray]:
        mean, std = answers.mean, answers.std
        columns: list[np.ndarray] = []
        for t in range(len(self.objective.targets)):
            columns += [mean[:, t]] if std is None else [mean[:, t], std[:, t]]
            if self.columns.labels(t) != ZERO_ONE:
                columns.append(np.array(self.columns.labels(t), object)[(mean[:, t] > 0.5).astype(int)])
            columns += self.further_columns(answers, t)
        return columns

    def quantity(self, column: int) -> str:
        name, labels = self.objective.targets[column], self.columns.labels(column)
        return f"probability of {name}" if labels == ZERO_ONE else f"probability that {name} is {labels[1]!r}"

    def notes(self) -> list[str]:
        return super().notes() + [
            f"{name}: {name}_pred is the probability of the positive class, {labels[1]!r}; the other class is "
            f"{labels[0]!r}"
            for name, labels in ((name, self.columns.labels(t)) for t, name in enumerate(self.objective.targets))
            if labels != ZERO_ONE
        ]


@dataclass(frozen=True)
class MulticlassAnswers(ClassAnswers):
    """Likeliest class, `<target>_pred`, and the probability of each class, `<target>_<class>`."""

    @property
    def prediction_names(self) -> list[str]:
        names = enumerate(self.objective.targets)
        return [f"{name}_{label}" for t, name in names for label in self.columns.labels(t)]

    @property
    def prediction_columns(self) -> list[str]:
        return self.prediction_names

    def suffixes(self, target: int, members: int) -> dict[str, type]:
        suffixes = {**super().suffixes(target, members), "pred": str}
        return suffixes | dict.fromkeys(self.columns.labels(target), float) | self.further_suffixes()

    def table(self, answers: Predictions) -> list[np.ndarray]:
        mean, std = answers.mean, answers.std
        columns: list[np.ndarray] = []
        for t, target in enumerate(self.objective.places):
            p = mean[:, target.columns]
            best = p.argmax(1)
            columns.append(np.array(self.columns.labels(t), object)[best])
            if std is not None:
                columns.append(np.take_along_axis(std[:, target.columns], best[:, None], 1)[:, 0])
            columns += [*p.T, *self.further_columns(answers, t)]
        return columns

    def quantity(self, column: int) -> str:
        return f"probability of {self.prediction_names[column]}"

    def notes(self) -> list[str]:
        names = enumerate(self.objective.targets)
        return super().notes() + [f"{name}: classes {listed(self.columns.labels(t))}" for t, name in names]


# --- The tasks.


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

    names: ClassVar[dict[str, str]] = {"atom": "atom-classes", "bond": "bond-classes"}
    epochs: ClassVar[int] = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.coverage, BETWEEN_0_AND_1, "coverage")
        if self.coverage != LEVEL and not self.sets:
            raise InputError(f"coverage: {self.coverage} needs sets: add sets")
        if self.uncertainty not in WORDS:
            raise InputError(f"uncertainty: of {self.name} expected {' or '.join(WORDS)}, got {self.uncertainty}")
        if self.set_kind not in SET_KINDS:
            raise InputError(f"set_kind: expected {' or '.join(SET_KINDS)}, got {self.set_kind}")
        if self.set_kind != "smallest" and not self.sets:
            raise InputError(f"set_kind: {self.set_kind} needs sets: add sets")

    @property
    @abstractmethod
    def columns(self) -> ClassColumns:
        """Columns of labels."""

    @property
    @abstractmethod
    def answers(self) -> ClassAnswers:
        """Probabilities and sets."""

    def _loss(self, columns: ClassColumns, weights: tuple[Any, ...] | None) -> dict[str, Any]:
        return {
            "columns": columns,
            "target_weights": self.target_weights,
            "balanced": self.class_weights == "balanced",
            "weights": weights,
            "evidential": self.uncertainty == "evidential",
        }

    def _answers(self, kind: type[Any], columns: ClassColumns, objective: CrossEntropy) -> Any:
        fitted = self.temperatures, self.curves, self.margins
        return kind(columns, objective, self.calibration, self.sets, self.coverage, self.set_kind, *fitted)

    def adopting(self, other: Task) -> Self:
        for t, at in enumerate(self.shared(other)):
            if at < 0 or not isinstance(other, ClassTask):
                continue
            theirs, own = other.columns.labels(at), self.columns.labels(t)
            if list(map(same_label, theirs)) != list(map(same_label, own)):
                order = f", in this order: --positive {theirs[-1]} takes over the model's" if len(own) == 2 else ""
                hint = order if set(map(same_label, theirs)) == set(map(same_label, own)) else ""
                raise InputError(
                    f"{self.targets[t]}: the model has the classes {listed(theirs)}, the table {listed(own)}{hint}"
                )
        return self

    @classmethod
    def calibration_entries(cls, targets: int) -> dict[str, Any]:
        """Describe the calibration entries of a model file for a number of targets."""
        curve = list_of(list_of(list_of(number(0, 1), 1), 2, 2), 2)
        return {
            "calibration": one_of(["none", "temperature", "isotonic"]),
            "sets": bool,
            "coverage": BETWEEN_0_AND_1,
            "set_kind": one_of(SET_KINDS),
            "uncertainty": one_of(WORDS),
            "temperatures": list_of(number(1e-3, 1e3), targets, targets) | None,
            "curves": list_of(curve | None, targets, targets) | None,
            "margins": list_of(number(0, 1) | None, targets, targets) | None,
        }


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
    unsaved: ClassVar[frozenset[str]] = ClassTask.unsaved | {"positive"}

    positive_weights: tuple[float, ...] | None = learned()

    @cached_property
    def columns(self) -> BinaryColumns:
        return BinaryColumns(self.targets, LEVELS[self.level], self.classes, self.name, self.positive)

    @cached_property
    def objective(self) -> BinaryCrossEntropy:
        return BinaryCrossEntropy(self.targets, LEVELS[self.level], **self._loss(self.columns, self.positive_weights))

    @cached_property
    def answers(self) -> BinaryAnswers:
        return self._answers(BinaryAnswers, self.columns, self.objective)

    @classmethod
    def header_entries(cls, targets: int) -> Any:
        classes, weights = list_of(list_of(Text, 2, 2), targets, targets), list_of(number(0), targets, targets)
        own = {"classes": classes | None, "positive_weights": weights | None, "class_weights": Text}
        return entries({}, own | cls.calibration_entries(targets))


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

    classes: tuple[tuple[str, ...], ...] = learned()
    weights: tuple[tuple[float, ...], ...] | None = learned()

    @cached_property
    def columns(self) -> ClassColumns:
        return ClassColumns(self.targets, LEVELS[self.level], self.classes, self.name)

    @cached_property
    def objective(self) -> SoftmaxCrossEntropy:
        return SoftmaxCrossEntropy(self.targets, LEVELS[self.level], **self._loss(self.columns, self.weights))

    @cached_property
    def answers(self) -> MulticlassAnswers:
        return self._answers(MulticlassAnswers, self.columns, self.objective)

    @classmethod
    def header_entries(cls, targets: int) -> Any:
        classes = list_of(list_of(Text, 2, MOST_CLASSES), targets, targets)
        own = {"weights": list_of(list_of(number(0)), targets, targets) | None, "class_weights": Text}
        return entries({"classes": classes}, own | cls.calibration_entries(targets))
