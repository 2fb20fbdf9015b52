"""Classification: classes of molecules, atoms or bonds; calibrated probabilities and prediction sets.

A target of two classes has one output, the logit of the second class; a target of C classes has the C logits of a
softmax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Dirichlet, kl_divergence

from gtx.base.errors import InputError
from gtx.base.schema import Text, check, list_of, number, per_target
from gtx.data import MoleculeStore
from gtx.settings import learned
from gtx.settings.tasks import BinaryOptions, ClassOptions
from gtx.tasks.columns import LEVELS, MOST_CLASSES, ZERO_ONE, ClassColumns, list_labels, same_label
from gtx.tasks.metrics import Metric, accuracy, constants, has_values, mean_scores, roc_auc, sklearn_score, varies
from gtx.tasks.numeric import NumericAnswers, NumericObjective, NumericTask, Predictions
from gtx.tasks.task import Task
from gtx.tasks.uncertainty import (
    BETWEEN_0_AND_1,
    LEVEL,
    apply_curves,
    apply_temperature,
    conformal_half_width,
    evaluate_probabilities,
    fewest,
    fit_isotonic,
    fit_temperature,
    needs_gradients,
    percent,
    ranking,
    unlikeliness,
)

# --- Evidence: a Dirichlet distribution over the probabilities of the classes of each molecule.

PENALTY = 0.02
"""Lambda, the weight of the penalty for evidence of wrong classes."""
MOST_EVIDENCE = 10.0
"""Limit on the absolute logarithm of evidence."""


def concentrations(shares: Tensor, strength: Tensor) -> Tensor:
    r"""Compute the parameters `[..., C]` of a Dirichlet distribution over the probabilities of C classes.

    \[ \alpha_c = 1 + E \pi_c, \qquad E = e^s, \quad -10 \le s \le 10 \]

    Source: Sensoy et al. 2018 (arXiv:1806.01768).

    E is the total evidence, and \(\pi\), the softmax of the logits, divides the evidence among the classes. With E = 0,
    nothing is known of the probabilities. In the paper, the network has a separate output for the evidence of each
    class. With the division by a softmax, a kernel model can be blended with the logits. The evidence is an
    exponential, as in Pandey & Yu 2023 (arXiv:2306.11113), because an output that a rectifier sets to 0 has no
    gradient.

    Args:
        shares: \(\pi\), `[..., C]`.
        strength: s, `[...]`.
    """
    return 1 + strength.clamp(-MOST_EVIDENCE, MOST_EVIDENCE).exp()[..., None] * shares


def evidence_loss(alpha: Tensor, y: Tensor) -> Tensor:
    r"""Compute the expected cross-entropy of probabilities drawn from the distribution, `[B]`, with a penalty for
    evidence of other classes than the true one y:

    \[ \ell = \psi(S) - \psi(\alpha_y)
       + \lambda\, \mathrm{KL}\bigl( \mathrm{Dir}(\tilde\alpha) \,\|\, \mathrm{Dir}(1) \bigr), \qquad
       S = \sum_c \alpha_c \]

    (Sensoy et al. 2018, equation 4 and the penalty of section 4). \(\tilde\alpha\) is \(\alpha\) with 1 for the true
    class. The paper prefers an expected squared error, and increases lambda to 1 in ten epochs. gtx uses the constant
    lambda = 0.02, so that the loss does not depend on the epoch. With the squared error and lambda = 0.05, a short
    training learned much less than without evidence (docs/uncertainty.md).

    The loss has a known weakness: if classes can be separated, more evidence always lowers the loss, however few rows
    there are. The amount of evidence is therefore not determined by the data (Bengs et al. 2022, arXiv:2203.06102).

    Args:
        alpha: `[B, C]`.
        y: numbers of classes, int64 `[B]`.
    """
    true = (y[:, None] == torch.arange(alpha.shape[-1], device=y.device)).to(alpha.dtype)
    error = alpha.sum(-1).digamma() - (true * alpha.digamma()).sum(-1)
    others, flat = (
        Dirichlet(each, validate_args=False) for each in (true + (1 - true) * alpha, torch.ones_like(alpha))
    )
    return error + PENALTY * kl_divergence(others, flat)


# --- Objective: cross-entropy, or the loss of evidence.

METRICS = {
    "roc_auc": Metric("macro ROC-AUC", roc_auc, varies),
    "accuracy": Metric("accuracy", accuracy, has_values),
    "f1": Metric("macro F1", sklearn_score("f1_score", of_classes=True, average="macro"), has_values),
    "mcc": Metric("Matthews", sklearn_score("matthews_corrcoef", of_classes=True), varies),
}
BINARY_METRICS = {
    "roc_auc": Metric("ROC-AUC", roc_auc, varies),
    "pr_auc": Metric("PR-AUC", sklearn_score("average_precision_score"), varies),
    "accuracy": Metric("accuracy", accuracy, has_values),
}


class CrossEntropy(NumericObjective):
    r"""Cross-entropy \(-\ln p_y\) of the softmax of C logits for each target, or of the sigmoid of one logit.

    If the task is evidential, one more output per target, after the logits, is the amount of evidence.
    """

    task: ClassTask

    has_link: ClassVar[bool] = True

    @property
    def metrics(self) -> Mapping[str, Metric]:  # type: ignore[override]
        """Metrics of two classes, or of several."""
        return BINARY_METRICS if self.task.binary else METRICS

    @property
    def widths(self) -> list[int]:
        return [1 if self.task.binary else len(self.task.columns.labels(t)) for t in range(len(self.targets))]

    @property
    def out_channels(self) -> int:
        return self.num_predictions + (len(self.targets) if self.task.evidential else 0)

    def outputs(self, target: int) -> np.ndarray:
        logits = np.arange(self.num_predictions)[self.places[target].columns]
        return np.append(logits, self.num_predictions + target) if self.task.evidential else logits

    def check(self, model: nn.Module) -> None:
        if self.task.evidential:
            needs_gradients("evidential", model)

    @cached_property
    def point(self) -> Self:
        return type(self)(replace(self.task, uncertainty="none"))

    def fit(self, train: MoleculeStore) -> dict[str, Any]:
        super().fit(train)
        binary, labels = self.task.binary, [self.task.columns.labels(t) for t in range(len(self.targets))]
        targets, weights, counts = self.level.targets(train), self.level.weights(train), []
        weights = targets.new_ones(len(targets)) if weights is None else weights
        for y, names in zip(targets.T, labels, strict=True):
            known = ~y.isnan()
            counts.append(torch.bincount(y[known].long(), weights[known], minlength=len(names)))
        lacking = [t for t, count in enumerate(counts) if (count > 0).sum() < 2]
        if lacking and (not binary or len(lacking) == len(counts)):  # of several pairs of classes some may be so rare
            only = labels[lacking[0]][int(counts[lacking[0]].argmax())]
            where = f"target {self.targets[lacking[0]]!r} has only the class {only!r}"
            raise InputError(f"{where} among the training molecules; {self.task.name} needs two")
        if self.task.class_weights != "balanced" or self.task.weights is not None:
            return {}
        if binary:
            odds = [(zeros / (ones if ones else 1)).clamp(min=1e-3) for zeros, ones in counts]
            return {"weights": tuple((1.0, float(each)) for each in odds)}
        return {"weights": tuple(tuple((n.sum() / (len(n) * n.where(n > 0, 1.0))).tolist()) for n in counts)}

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        weights: list[Any] = [None] * len(self.targets)
        if self.task.weights is not None:
            weights = [constants(each, output) for each in self.task.weights]
        if self.task.binary and not self.task.evidential:
            positive = None if weights[0] is None else torch.stack([each[1] for each in weights])
            return F.binary_cross_entropy_with_logits(output, target, reduction="none", pos_weight=positive)
        losses, classes = [], target.long().unbind(1)
        if self.task.evidential:
            for alpha, y, weight in zip(self.distributions(output), classes, weights, strict=True):
                losses.append(evidence_loss(alpha, y) * (1 if weight is None else weight[y]))
        else:
            for place, y, weight in zip(self.places, classes, weights, strict=True):
                losses.append(F.cross_entropy(output[:, place.columns], y, weight, reduction="none"))
        return torch.stack(losses, dim=1)

    def softmaxes(self, output: Tensor) -> Tensor:
        """Convert logits `[..., P]` to the probability of each class or, of two classes, of the second."""
        if self.task.binary:
            return output.sigmoid()
        return torch.cat([output[..., place.columns].softmax(-1) for place in self.places], dim=-1)

    def class_probabilities(self, prediction: Tensor, target: int) -> Tensor:
        """Select the probability of each class of a target, `[..., C]`, from predictions `[..., P]`."""
        p = prediction[..., self.places[target].columns]
        return torch.cat([1 - p, p], dim=-1) if self.task.binary else p

    def distributions(self, output: Tensor) -> list[Tensor]:
        """Compute the Dirichlet distribution of each target, `[..., C]`, from logits and evidence."""
        shares, strength = self.softmaxes(output[..., : self.num_predictions]), output[..., self.num_predictions :]
        return [concentrations(self.class_probabilities(shares, t), s) for t, s in enumerate(strength.unbind(-1))]

    def unscale(self, output: Tensor, store: MoleculeStore | None = None) -> Tensor:
        """Compute the probability of each class or, of two classes, of the second."""
        output = output.double()
        if not self.task.evidential:
            return self.softmaxes(output)
        means = [alpha / alpha.sum(-1, keepdim=True) for alpha in self.distributions(output)]
        return torch.cat([p[..., -width:] for p, width in zip(means, self.widths, strict=True)], dim=-1)

    def ideal(self, y: Tensor) -> Tensor:
        """Return the indicators of the classes or, of two classes, of the second."""
        if self.task.binary:
            return y.double()
        pairs = zip(y.T, self.widths, strict=True)
        parts = [F.one_hot(column.nan_to_num().long(), width).double() for column, width in pairs]
        blank = y.isnan().repeat_interleave(torch.tensor(self.widths), dim=1)
        return torch.cat(parts, dim=1).masked_fill(blank, torch.nan)

    def regressands(self, store: MoleculeStore) -> Tensor:
        return self.ideal(self.scale(store))

    def val_score(self, output: Tensor, scaled: Tensor, logged: dict[str, float]) -> float:
        """Return the loss; of molecules of two classes 1 − ROC-AUC, which does not punish overconfidence, where it is
        defined.
        """
        ranked = self.task.binary and not self.level.lists and "val_roc_auc" in logged
        return 1 - logged["val_roc_auc"] if ranked else logged["val_loss"]


# --- Answers: probabilities, calibrated on validation rows, and sets of classes.


class ClassAnswers(NumericAnswers):
    """Probabilities, the likeliest class, sets and vacuity.

    Of two classes `<target>_pred` is the probability of the second and, unless the labels are 0 and 1,
    `<target>_class` the likelier one. Of more, `<target>_pred` is the likeliest class and `<target>_<class>` the
    probability of each.
    """

    columns: ClassColumns
    objective: CrossEntropy
    task: ClassTask

    def class_probabilities(self, prediction: np.ndarray, target: int) -> np.ndarray:
        """Select the probability of each class of a target, `[m, C]`, from predictions `[m, P]`."""
        return self.objective.class_probabilities(torch.from_numpy(prediction), target).numpy()

    # columns

    @property
    def _named_targets(self) -> list[tuple[str, tuple[str, ...]]]:
        """Name and labels of each target."""
        return [(name, self.columns.labels(t)) for t, name in enumerate(self.objective.targets)]

    @property
    def prediction_names(self) -> list[str]:
        if self.task.binary:
            return super().prediction_names
        return [f"{name}_{label}" for name, labels in self._named_targets for label in labels]

    @property
    def prediction_columns(self) -> list[str]:
        return super().prediction_columns if self.task.binary else self.prediction_names

    def quantity(self, column: int) -> str:
        if not self.task.binary:
            return f"probability of {self.prediction_names[column]}"
        name, labels = self._named_targets[column]
        return f"probability of {name}" if labels == ZERO_ONE else f"probability that {name} is {labels[1]!r}"

    def target_columns(self, target: int, answers: Predictions) -> list[tuple[str, np.ndarray]]:
        place, labels = self.objective.places[target].columns, np.array(self.columns.labels(target), object)
        p, best = answers.mean[:, place], self.class_probabilities(answers.mean, target).argmax(1)
        columns = [("pred", p[:, 0] if self.task.binary else labels[best])]
        if answers.std is not None:
            std = answers.std[:, place]
            columns.append(("std", std[:, 0] if self.task.binary else std[np.arange(len(best)), best]))
        if not self.task.binary:
            columns += zip(labels, p.T, strict=True)
        elif tuple(labels) != ZERO_ONE:
            columns.append(("class", labels[best]))
        if answers.vacuity is not None:
            columns.append(("vacuity", answers.vacuity[:, target]))
        return columns if self.task.margins is None else [*columns, ("set", self.set_texts(answers.mean, target))]

    def notes(self) -> list[str]:
        """Describe the classes, and the calibration of probabilities and sets on validation rows."""
        lines = []
        if self.task.temperatures is not None:
            lines.append(f"temperature of probabilities: {', '.join(f'{t:.3g}' for t in self.task.temperatures)}")
        if self.task.margins is not None:
            if self.task.set_kind == "adaptive":
                most = ", ".join("any" if m is None else f"{m:.3g}" for m in self.task.margins)
                rule = f"the likeliest, and classes up to a sum of probabilities of {most}, the last by half"
            else:
                least = ", ".join("any" if m is None else f"{max(0.0, 1 - m):.3g}" for m in self.task.margins)
                rule = f"classes of a probability of {least} or more, and the likeliest"
            lacking = (
                f"; any with fewer than {fewest(self.task.coverage)} validation values"
                if None in self.task.margins
                else ""
            )
            lines.append(f"sets of {percent(self.task.coverage)}: {rule}{lacking}")
        for name, labels in self._named_targets:
            if not self.task.binary:
                lines.append(f"{name}: classes {list_labels(labels)}")
            elif labels != ZERO_ONE:
                positive = f"{name}_pred is the probability of the positive class, {labels[1]!r}"
                lines.append(f"{name}: {positive}; the other class is {labels[0]!r}")
        return lines

    # calibration

    def predictions(self, outputs: Tensor, store: MoleculeStore | None) -> Predictions:
        answers = super().predictions(outputs, store)
        return replace(answers, vacuity=self.vacuity(outputs)) if self.task.evidential else answers

    def vacuity(self, outputs: Tensor) -> np.ndarray:
        r"""Compute the vacuity \(u = C / S\) of each target, the lack of evidence, `[m, T]`, from 0 to 1, averaged over
        members.
        """
        each = [alpha.shape[-1] / alpha.sum(-1) for alpha in self.objective.distributions(outputs)]
        return torch.stack(each, -1).mean(1).numpy()

    def calibrate(self, mean: np.ndarray) -> np.ndarray:
        parts = []
        for t, place in enumerate(self.objective.places):
            p = own = mean[:, place.columns]
            if self.task.temperatures is not None:
                p = apply_temperature(self.class_probabilities(mean, t), self.task.temperatures[t])
            elif self.task.curves is not None and self.task.curves[t] is not None:
                p = apply_curves(self.class_probabilities(mean, t), self.task.curves[t])
            parts.append(p[:, -own.shape[1] :])
        return np.concatenate(parts, axis=1)

    def fit(self, answers: Any, y: np.ndarray) -> dict[str, Any]:
        """Calibrate probabilities, then sets."""
        if self.objective.level.lists:
            return {}
        measured = [~np.isnan(column) for column in y.T]
        pairs = [
            (y[rows, t].astype(int), self.class_probabilities(answers.mean[rows], t)) for t, rows in enumerate(measured)
        ]
        fitted: dict[str, Any] = {}
        if self.task.calibration == "temperature":
            fitted["temperatures"] = tuple(fit_temperature(*pair) for pair in pairs)
        elif self.task.calibration == "isotonic":
            fitted["curves"] = tuple(fit_isotonic(*pair) for pair in pairs)
        if self.task.sets:
            mean, margins = replace(self.task, **fitted).answers.calibrate(answers.mean), []
            for t, rows in enumerate(measured):
                scores = unlikeliness(self.class_probabilities(mean[rows], t), self.task.set_kind)
                true = np.take_along_axis(scores, y[rows, t, None].astype(int), 1)
                margin = float(conformal_half_width(true, np.zeros_like(true), self.task.coverage)[0])
                margins.append(margin if np.isfinite(margin) else None)
            fitted["margins"] = tuple(margins)
        return fitted

    def members_of_sets(self, mean: np.ndarray, target: int) -> np.ndarray:
        """Select the classes in the set of each molecule, bool `[m, C]`; all without a margin."""
        p = self.class_probabilities(mean, target)
        margin = None if self.task.margins is None else self.task.margins[target]
        within = unlikeliness(p, self.task.set_kind) <= (1 if margin is None else margin)
        return within | (p == p.max(1, keepdims=True))

    def set_texts(self, mean: np.ndarray, target: int) -> np.ndarray:
        """Write the sets of a target as texts, `[m]`: the labels, in order, with a bar between them."""
        labels = np.array(self.columns.labels(target), object)
        return np.array(["|".join(labels[row]) for row in self.members_of_sets(mean, target)], object)

    def evaluate_uncertainty(self, y: np.ndarray, answers: Predictions) -> dict[str, Any]:
        """Score probabilities, see `gtx.tasks.uncertainty.evaluate_probabilities`, sets and evidence.

        Of sets `coverage`, the share with the true class, and `size`, their mean number of classes; of evidence
        `auroc_vacuity`, the ROC-AUC of vacuity for wrong predictions.
        """
        per_target: dict[str, dict[str, float | None]] = {}
        for t, name in enumerate(self.objective.targets):
            rows = ~np.isnan(y[:, t]) & answers.finite
            true = y[rows, t].astype(int)
            sets = ("coverage", "size") if self.task.margins is not None else ()
            evidence = ("auroc_vacuity",) if answers.vacuity is not None else ()
            per_target[name] = dict.fromkeys(("nll", "brier", "ece", "auroc", *evidence, *sets))
            if len(true):
                p = self.class_probabilities(answers.mean[rows], t)
                per_target[name] |= evaluate_probabilities(true, p)
                if answers.vacuity is not None:
                    per_target[name]["auroc_vacuity"] = ranking(p.argmax(1) != true, answers.vacuity[rows, t])
                if self.task.margins is not None:
                    members = self.members_of_sets(answers.mean[rows], t)
                    inside = np.take_along_axis(members, true[:, None], 1)
                    per_target[name] |= {"coverage": float(inside.mean()), "size": float(members.sum(1).mean())}
        return mean_scores(per_target)


# --- The tasks.

CURVES = list_of(list_of(list_of(number(0, 1), 1), 2, 2), 2)
"""Kind of the calibration curves of the classes of a target."""


@dataclass(frozen=True)
class ClassTask(NumericTask, ClassOptions):
    r"""Task that predicts the probability of each class or, if there are two classes, of the second class.

    With `sets`, the prediction set of a molecule contains the likeliest class and the classes \(\{ c : s_c \le q \}\).
    The threshold q is the \(\lceil (n + 1) \cdot coverage \rceil\)-th smallest of the scores \(s_y\) of the true
    classes of n held-out rows, so that the wanted share of sets contains the true class. The function
    `gtx.tasks.uncertainty.unlikeliness` defines both kinds of score.

    With `uncertainty` "evidential", one more output per target is the evidence for the probabilities, and the column
    `<target>_vacuity` is the lack of evidence; see `concentrations`.

    Args:
        temperatures: temperature of each target, fitted to validation rows if the calibration is "temperature".
        curves: calibration curve of each target and class if the calibration is "isotonic", see
            `gtx.tasks.uncertainty.fit_isotonic`.
        margins: threshold q of each target, None if there are too few validation rows.
        weights: weights of the classes of each target in the loss, fitted to the training rows if they are balanced.
    """

    temperatures: tuple[float, ...] | None = learned(per_target(number(1e-3, 1e3)))
    curves: tuple[Any, ...] | None = learned(per_target(CURVES | None))
    margins: tuple[float | None, ...] | None = learned(per_target(number(0, 1) | None))
    weights: tuple[tuple[float, ...], ...] | None = learned(per_target(list_of(number(0))))
    classes: tuple[tuple[str, ...], ...] | None = learned(per_target(list_of(Text, 2, 2)))

    names: ClassVar[dict[str, str]] = {"atom": "atom-classes", "bond": "bond-classes"}
    epochs: ClassVar[int] = 20
    binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.coverage, BETWEEN_0_AND_1, "coverage")
        if self.classes is not None:
            check({"classes": self.classes}, self.header_entries(len(self.targets)))
        if self.coverage != LEVEL and not self.sets:
            raise InputError(f"coverage: {self.coverage} needs sets: add sets")
        if self.set_kind != "smallest" and not self.sets:
            raise InputError(f"set_kind: {self.set_kind} needs sets: add sets")

    @property
    def evidential(self) -> bool:
        """True if one more output per target is the amount of evidence."""
        return self.uncertainty == "evidential"

    @cached_property
    def columns(self) -> ClassColumns:
        positive = getattr(self, "positive", None)
        return ClassColumns(self.targets, LEVELS[self.level], self.classes, self.name, self.binary, positive)

    objective = cached_property(CrossEntropy)
    answers = cached_property(ClassAnswers)

    def take_over(self, other: Task) -> Self:
        for t, at in enumerate(self.match_targets(other)):
            if at < 0 or not isinstance(other, ClassTask):
                continue
            theirs, own = other.columns.labels(at), self.columns.labels(t)
            if list(map(same_label, theirs)) != list(map(same_label, own)):
                order = f", in this order: `positive` {theirs[-1]} takes over the model's" if len(own) == 2 else ""
                others = "; `new_head` learns those of the table"
                hint = order if set(map(same_label, theirs)) == set(map(same_label, own)) else others
                classes = f"the model has the classes {list_labels(theirs)}, the table {list_labels(own)}"
                raise InputError(f"{self.targets[t]}: {classes}{hint}")
        return self


@dataclass(frozen=True)
class BinaryClassification(ClassTask, BinaryOptions):
    """Task of predicting one of two classes for each target; the network's output is the logit of the second class.

    Args:
        targets: names of the target columns.
        class_weights: "balanced" gives both classes of a target the same total weight in the loss.
        positive: positive class of every target; by default see `gtx.tasks.columns.in_order`.
        classes: two labels of each target, the positive label last, read from the table; default: 0 and 1.
    """

    name: ClassVar[str] = "classification"
    unsaved: ClassVar[frozenset[str]] = ClassTask.unsaved | {"positive"}
    binary: ClassVar[bool] = True


@dataclass(frozen=True)
class MulticlassClassification(ClassTask):
    r"""Task of predicting one of C classes per target, by a softmax of C outputs and cross-entropy: \(-\ln p_y\).

    The predictions are the likeliest class, `<target>_pred`, and the probability of each class, `<target>_<class>`.

    Args:
        targets: names of the target columns.
        class_weights: "balanced" gives all classes of a target the same total weight in the loss.
        classes: labels of each target in order, read from the table.
    """

    name: ClassVar[str] = "multiclass"

    classes: tuple[tuple[str, ...], ...] = learned(per_target(list_of(Text, 2, MOST_CLASSES)), needed=True)
