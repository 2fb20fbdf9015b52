"""Base of classification tasks: calibrated probabilities and prediction sets."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.data.columns import listed
from gtx.errors import InputError
from gtx.schema import Kind, ListOf, OrNone, flag, number, one_of
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
from gtx.tasks.metrics import constants, mean_scores
from gtx.tasks.numbers import NumberTask
from gtx.tasks.options import ClassOptions, learned
from gtx.tasks.task import Predictions, Task
from gtx.tasks.uncertainty.evidence import WORDS, concentrations, evidence_loss, probabilities, vacuity
from gtx.tasks.uncertainty.methods import needs_gradients

if TYPE_CHECKING:
    from gtx.data import MoleculeStore

BETWEEN = "|"
"""Separator of the classes of a set."""


@dataclass(frozen=True)
class ClassTask(NumberTask, ClassOptions):
    r"""Task whose predictions are probabilities: of each class or, of two classes, of the second.

    With `sets`, \(\{ c : s_c \le q \}\) and the likeliest class is the set of a molecule: q is the
    \(\lceil (n + 1) \cdot coverage \rceil\)-th of the scores \(s_y\) of the true classes of n held-out rows, so that
    this share of sets holds the true class; see `gtx.tasks.calibration.unlikeliness` for both kinds of score.

    With `uncertainty` "evidential" one more output per target is the evidence for the probabilities, and
    `<target>_vacuity` is the lack of it; see `gtx.tasks.uncertainty.evidence`.

    Args:
        temperatures: of each target, fitted to validation rows if the calibration is "temperature".
        curves: of each target and class, see `gtx.tasks.calibration.fit_isotonic`, if it is "isotonic".
        margins: q of each target, None where there are too few validation rows.
    """

    temperatures: tuple[float, ...] | None = learned()
    curves: tuple[Any, ...] | None = learned()
    margins: tuple[float | None, ...] | None = learned()

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
        parts = [shares[..., place.columns] for place in self.places]
        whole = [torch.cat([1 - p, p], -1) if p.shape[-1] == 1 else p for p in parts]
        return [concentrations(p, strength[..., t]) for t, p in enumerate(whole)]

    def unscaled(self, output: Tensor, store: MoleculeStore) -> Tensor:
        """Compute the probability of each class or, of two classes, of the second."""
        output = output.double()
        if not self.evidential:
            return self.softmaxes(output)
        found = [probabilities(alpha) for alpha in self.distributions(output)]
        return torch.cat([p[..., -width:] for p, width in zip(found, self.widths, strict=True)], dim=-1)

    def vacuity(self, outputs: Tensor) -> np.ndarray | None:
        """Average the vacuity over members."""
        if not self.evidential:
            return None
        return torch.stack([vacuity(alpha) for alpha in self.distributions(outputs)], -1).mean(1).numpy()

    def adopting(self, other: Task) -> Self:
        for t, at in enumerate(self.shared(other)):
            if at >= 0 and isinstance(other, ClassTask) and other.labels(at) != self.labels(t):
                theirs, here = listed(other.labels(at)), listed(self.labels(t))
                raise InputError(f"{self.targets[t]}: the model has the classes {theirs}, the table {here}")
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
        return replace(task, margins=task._margins(task.corrected(answers.mean), y)) if self.sets else task

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
