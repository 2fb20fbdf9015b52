"""The base of classification tasks: calibrated probabilities, and sets of classes that hold the true one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.data.columns import listed
from gtx.errors import InputError
from gtx.schema import ListOf, OrNone, flag, number, one_of
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
    r"""A task whose predictions are probabilities of classes, of each or, of two, of the second.

    With `sets`, \(\{ c : s_c \le q \}\) and the likeliest class is the set of a molecule: q is the
    \(\lceil (n + 1) \cdot coverage \rceil\)-th of the scores \(s_y\) of the true classes of n held-out rows, so that
    this share of sets holds the true class; see `gtx.tasks.calibration.unlikeliness` for both kinds of score.

    With `uncertainty` "evidential" an output per target says how much evidence the probabilities stand on, and
    `<target>_vacuity` how much is lacking; see `gtx.tasks.uncertainty.evidence`.

    Args:
        temperatures: per target, learned of validation rows where the calibration is "temperature".
        curves: per target and class, see `gtx.tasks.calibration.fit_isotonic`, where it is "isotonic".
        margins: per target q, None where there are too few validation rows.
    """

    temperatures: tuple[float, ...] | None = learned()
    curves: tuple[Any, ...] | None = learned()
    margins: tuple[float | None, ...] | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        BETWEEN_0_AND_1.check(self.coverage, "coverage")
        if self.coverage != LEVEL and not self.sets:
            raise InputError(f"coverage: {self.coverage} is of sets, which were not asked for: add sets")
        if self.uncertainty not in WORDS:
            raise InputError(f"uncertainty: of {self.name} expected {' or '.join(WORDS)}, got {self.uncertainty}")
        if self.set_kind not in SET_KINDS:
            raise InputError(f"set_kind: expected {' or '.join(SET_KINDS)}, got {self.set_kind}")
        if self.set_kind != "smallest" and not self.sets:
            raise InputError(f"set_kind: {self.set_kind} is a kind of sets, which were not asked for: add sets")

    @abstractmethod
    def labels(self, target: int) -> tuple[str, ...]:
        """The labels of a target's classes."""

    @abstractmethod
    def softmaxes(self, output: Tensor) -> Tensor:
        """Logits `[..., P]` as probabilities."""

    @abstractmethod
    def class_says(self, target: int) -> tuple[float, ...] | None:
        """Return the weights of the classes of a target in the loss, by class number; None for uniform weights."""

    @property
    def evidential(self) -> bool:
        """True if one more output per target, after the logits, is the amount of evidence."""
        return self.uncertainty == "evidential"

    @property
    def out_channels(self) -> int:
        return self.num_predictions + self.evidential * len(self.targets)

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
        """`elementwise` of logits `[B, P]`."""

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        if not self.evidential:
            return self.cross_entropies(output, target)
        losses = []
        for t, alpha in enumerate(self.distributions(output)):
            y, says = target[:, t].long(), self.class_says(t)
            loss = evidence_loss(alpha, y)
            losses.append(loss if says is None else loss * constants(says, output)[y])
        return torch.stack(losses, dim=1)

    def distributions(self, output: Tensor) -> list[Tensor]:
        """The Dirichlet distribution of each target, `[..., C]`, by outputs of logits and of evidence."""
        shares, strength = self.softmaxes(output[..., : self.num_predictions]), output[..., self.num_predictions :]
        parts = [shares[..., place.columns] for place in self.places]
        whole = [torch.cat([1 - p, p], -1) if p.shape[-1] == 1 else p for p in parts]
        return [concentrations(p, strength[..., t]) for t, p in enumerate(whole)]

    def unscaled(self, output: Tensor, store: MoleculeStore) -> Tensor:
        """The probability of each class or, of two, of the second."""
        output = output.double()
        if not self.evidential:
            return self.softmaxes(output)
        found = [probabilities(alpha) for alpha in self.distributions(output)]
        return torch.cat([p[..., -width:] for p, width in zip(found, self.widths, strict=True)], dim=-1)

    def vacuity(self, outputs: Tensor) -> np.ndarray | None:
        """The mean of the members'."""
        if not self.evidential:
            return None
        return torch.stack([vacuity(alpha) for alpha in self.distributions(outputs)], -1).mean(1).numpy()

    def adopting(self, other: Task) -> Self:
        for t, at in enumerate(self.known(other)):
            if at >= 0 and other.labels(at) != self.labels(t):
                known, here = listed(other.labels(at)), listed(self.labels(t))
                raise InputError(f"{self.targets[t]}: the model knows the classes {known}, the table {here}")
        return self

    def shares(self, prediction: np.ndarray, target: int) -> np.ndarray:
        """The probability of each class of a target, `[m, C]`, of predictions `[m, P]`."""
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
        """Probabilities first, then the sets by these."""
        known = [~np.isnan(column) for column in y.T]
        given = [(y[rows, t].astype(int), self.shares(answers.mean[rows], t)) for t, rows in enumerate(known)]
        task = self
        if self.calibration == "temperature":
            task = replace(self, temperatures=tuple(fit_temperature(*one) for one in given))
        elif self.calibration == "isotonic":
            task = replace(self, curves=tuple(fit_isotonic(*one) for one in given))
        return replace(task, margins=task._margins(task.corrected(answers.mean), y)) if self.sets else task

    def _margins(self, mean: np.ndarray, y: np.ndarray) -> tuple[float | None, ...]:
        found = []
        for t, column in enumerate(y.T):
            rows = ~np.isnan(column)
            scores = unlikeliness(self.shares(mean[rows], t), self.set_kind)
            true = np.take_along_axis(scores, column[rows, None].astype(int), 1)
            margin = float(conformal_half_width(true, np.zeros_like(true), self.coverage)[0])
            found.append(margin if np.isfinite(margin) else None)
        return tuple(found)

    def members_of_sets(self, mean: np.ndarray, target: int) -> np.ndarray:
        """Which classes are in the set of each molecule, bool `[m, C]`; all of them where nothing is known."""
        p = self.shares(mean, target)
        margin = self.margins[target]
        within = unlikeliness(p, self.set_kind) <= (1 if margin is None else margin)
        return within | (p == p.max(1, keepdims=True))

    def further_kinds(self) -> dict[str, type]:
        """The columns of a target after its probabilities: how little is known, and the set, as far as there are."""
        return ({"vacuity": float} if self.evidential else {}) | ({} if self.margins is None else {"set": str})

    def further_columns(self, answers: Predictions, target: int) -> list[np.ndarray]:
        """Return the columns that `further_kinds` names, `[m]` each."""
        unknown = [] if answers.vacuity is None else [answers.vacuity[:, target]]
        return unknown + self.set_columns(answers.mean, target)

    def set_columns(self, mean: np.ndarray, target: int) -> list[np.ndarray]:
        """Sets of a target as text, `[m]`: the labels, in order, with a bar between them."""
        if self.margins is None:
            return []
        labels = self.labels(target)
        rows = self.members_of_sets(mean, target)
        return [np.array([BETWEEN.join(labels[c] for c in row.nonzero()[0]) for row in rows], object)]

    def evaluate_uncertainty(self, y: np.ndarray, answers: Predictions) -> dict[str, Any]:
        """See `gtx.tasks.calibration.evaluate_probabilities`; of sets `coverage`, the share that hold the true class,
        and `size`, how many classes they hold on average; of evidence `auroc_vacuity`, how well the lack of it tells
        wrong from right."""
        per_target = {}
        for t, name in enumerate(self.targets):
            rows = ~np.isnan(y[:, t]) & answers.finite
            told = y[rows, t].astype(int)
            sets = ("coverage", "size") if self.margins is not None else ()
            evidence = ("auroc_vacuity",) if answers.vacuity is not None else ()
            per_target[name] = dict.fromkeys(("nll", "brier", "ece", "auroc", *evidence, *sets))
            if len(told):
                p = self.shares(answers.mean[rows], t)
                per_target[name] |= evaluate_probabilities(told, p)
                if evidence:
                    per_target[name]["auroc_vacuity"] = ranking(p.argmax(1) != told, answers.vacuity[rows, t])
                if self.margins is not None:
                    held = self.members_of_sets(answers.mean[rows], t)
                    inside = np.take_along_axis(held, told[:, None], 1)
                    per_target[name] |= {"coverage": float(inside.mean()), "size": float(held.sum(1).mean())}
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
    def calibration_entries(cls, targets: int) -> dict[str, Any]:
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
