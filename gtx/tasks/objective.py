"""Objective of a task: the outputs per item, their loss and metrics, and the scales fitted to training rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.tasks.levels import LEVELS, Level
from gtx.tasks.metrics import Metric, Target, constants, evaluate, masked_mean

if TYPE_CHECKING:
    from gtx.tasks.task import Task

# --- What training needs of a task.


class Validation(ABC):
    """Scores of the validation rows in every epoch.

    Attributes:
        channels: K, numbers that are collected for each molecule.
        names: names of the metrics that every epoch can give.
    """

    channels: int
    names: Sequence[str]

    def outputs(self, output: Any, batch: Any) -> Tensor:
        """Return what is collected of a batch, `[B, K]`."""
        return output.float()

    @abstractmethod
    def scorer(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        """Return a function from the `outputs` of all validation rows, `[n, K]`, to the scores of an epoch.

        The names of the scores start with `val_`; the best epoch has the lowest `val_score`.
        """


class Objective(ABC):
    """What training needs of a task.

    Attributes:
        metrics: metrics by name, the main metric first.
        level: level of the targets, with R rows in a store or a batch.
    """

    metrics: ClassVar[Mapping[str, Metric]]
    level: Level = LEVELS["molecule"]

    def __init__(self, task: Task) -> None:
        self.task: Any = task
        self.targets: tuple[str, ...] = task.targets
        self.level = LEVELS[task.level]

    @property
    @abstractmethod
    def out_channels(self) -> int:
        """Number of the model's outputs per molecule, atom or bond."""

    @property
    def num_predictions(self) -> int:
        """Number of outputs, from the first, that are predictions and can be blended with a kernel's."""
        return self.out_channels

    def known(self, store: MoleculeStore) -> Tensor:
        """Find the molecules with a value or a bound, bool `[M]`."""
        return self.level.known(store)

    def fit(self, train: MoleculeStore) -> dict[str, Any]:
        """Fit scales or classes to the training rows; return them as fields of the task, none that it has already.

        Raises:
            InputError: it cannot be learned from these rows.
        """
        return {}

    def check(self, model: nn.Module) -> None:  # noqa: B027 -- most objectives take any
        """Raise an `InputError` unless a model suits, before it is trained."""

    def examples(self, store: MoleculeStore) -> Any:
        """Return the examples from which batches are made, with targets scaled for the loss."""
        return store

    def forward(self, model: nn.Module, batch: Any) -> Any:
        """Compute the output of the model for a batch of `examples`."""
        return self.constrain(model(batch), batch)

    def constrain(self, output: Any, batch: Any) -> Any:
        """Convert what the model returns for a batch to outputs that the loss and the answers read."""
        return output

    @abstractmethod
    def mean_loss(self, output: Any, examples: Any) -> Tensor:
        """Compute the mean loss of outputs for a batch of `examples`, or for all of them."""

    def share(self, examples: Any) -> int | Tensor:
        """Return the weight of a batch in an epoch, such as its number of molecules; of all `examples` likewise."""
        return self.level.share(examples)

    @property
    @abstractmethod
    def validation(self) -> Validation:
        """Scores of validation rows in every epoch."""

    def predict(self, members: Sequence[nn.Module], batch: Any) -> Any:
        """Compute the members' outputs for the B molecules of a batch: `[B, members, C]`, or a list of B."""
        return self.collect([member(batch) for member in members], batch)

    def collect(self, outputs: Sequence[Any], batch: Any) -> Any:
        """Collect what each member returns for a batch as `predict` returns it."""
        return torch.stack([self.constrain(output.double(), batch) for output in outputs], dim=1).cpu()

    def regressands(self, store: MoleculeStore) -> Tensor | None:
        """Return targets for a least-squares fit, float64 `[M, P]`, NaN for blanks.

        The targets are the ideal outputs, or indicators of the classes. The result is None if least squares is not
        suitable; then no kernel model is blended with the network.
        """
        return None


# --- Numbers, one for each molecule, atom or bond.


class NumericObjective(Objective):
    """Base of objectives of T targets that are numbers, one value for each molecule, atom or bond.

    A subclass defines the loss (`elementwise`), the meaning of an output (`unscaled`) and the scores (`metrics`).
    Every item has the same weight in the loss and in the scores; blanks are left out.
    """

    linked: ClassVar[bool] = False
    """True if outputs are logits or logarithms that `regressands` only approximate; a closed-form fit is then
    calibrated."""
    num_measures: ClassVar[int] = 0
    """Number of `measures`."""
    item_metrics: ClassVar[Sequence[str]] = ()
    """Metrics that `item_scores` gives."""

    # what a kind of target defines

    @abstractmethod
    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of each entry `[R, T]` from outputs `[R, C]` and scaled targets `[R, T]` without blanks."""

    @abstractmethod
    def unscaled(self, output: Tensor, store: MoleculeStore | None = None) -> Tensor:
        """Convert outputs `[..., R, C]` for a store to the user's units or to probabilities, float64 `[..., R, P]`."""

    @property
    def widths(self) -> list[int]:
        """Number of predictions for each target: one, or one per class."""
        return [1] * len(self.targets)

    @property
    def out_channels(self) -> int:
        """Number of outputs: one per prediction, then further outputs, such as variances."""
        return self.num_predictions

    def scaled(self, store: MoleculeStore) -> Tensor:
        """Scale the targets of a store for the loss, float32 `[R, T]`."""
        return self.level.targets(store).float().cpu()

    def ideal(self, y: Tensor) -> Tensor:
        """Convert scaled targets `[R, T]` to ideal predictions, float64 `[R, P]`, NaN for blanks."""
        return y.double()

    def measures(self, output: Tensor, target: Tensor) -> list[Tensor]:
        """Compute what validation of atoms or bonds averages beside the loss, `[R, T]` each; no target is blank."""
        return []

    def item_scores(self, means: Sequence[Tensor], val: MoleculeStore) -> dict[str, float]:
        """Compute the scores of an epoch from the means of `measures`, `[T]` each, NaN without values."""
        return {}

    def val_score(self, output: Tensor, scaled: Tensor, logged: dict[str, float]) -> float:
        """Compute the score that selects the best epoch, by default the loss; a lower score is better."""
        return logged["val_loss"]

    @property
    def point(self) -> Self:
        """Objective of point predictions alone, such as a kernel's."""
        return self

    def nll(self, output: Tensor, scaled: Tensor) -> Tensor:
        """Compute the negative log-likelihood `[T]`, up to a constant, of outputs `[m, P]` for scaled targets
        `[m, T]`, NaN for blanks.
        """
        return (self.point.elementwise(output, scaled.nan_to_num()) * ~scaled.isnan()).sum(0)

    # what follows from it

    @property
    def num_predictions(self) -> int:
        """Number P of predictions for each row."""
        return sum(self.widths)

    @cached_property
    def places(self) -> list[Target]:
        """Each target with its columns of the predictions `[R, P]`, and of the first outputs."""
        ends = np.cumsum(self.widths).tolist()
        starts = [0, *ends[:-1]]
        return [Target(*each) for each in zip(self.targets, map(slice, starts, ends), strict=True)]

    def outputs(self, target: int) -> np.ndarray:
        """Return the indices of a target's outputs, its predictions first; by default in blocks of P outputs."""
        blocks = np.arange(self.out_channels).reshape(-1, self.num_predictions)
        return blocks[:, self.places[target].columns].flatten()

    def fit(self, train: MoleculeStore) -> dict[str, Any]:
        items = f"the {self.level.name}s of " if self.level.lists else ""
        for name, blank in zip(self.targets, self.level.targets(train).isnan().all(0).tolist(), strict=True):
            if blank:
                raise InputError(f"target {name!r} has no value among {items}the training molecules")
        return {}

    def examples(self, store: MoleculeStore) -> MoleculeStore:
        return self.level.with_targets(store, self.scaled(store))

    def mean_loss(self, output: Tensor, examples: Any) -> Tensor:
        return masked_mean(self.elementwise, output, self.level.targets(examples), self._loss_weights(examples))

    def _loss_weights(self, examples: Any) -> Tensor | None:
        """Return the weights of the loss per row and target, broadcastable to `[R, T]`; None for uniform weights."""
        rows = self.level.weights(examples)
        rows = None if rows is None else rows[:, None]
        if not self.task.target_weights:
            return rows
        weights = [self.task.target_weights.get(name, 1.0) for name in self.targets]
        targets = constants(weights, self.level.targets(examples))[None]
        return targets if rows is None else rows * targets

    @cached_property
    def validation(self) -> Validation:
        return (ItemValidation if self.level.lists else MoleculeValidation)(self)

    def collect(self, outputs: Sequence[Tensor], batch: Any) -> Any:
        stacked = super().collect(outputs, batch)
        if not self.level.lists:
            return stacked
        sizes = torch.bincount(self.level.owner(batch), minlength=batch.num_graphs)
        return [part[:: self.level.rows_each] for part in stacked.split(sizes.tolist())]

    def evaluate(
        self, y: np.ndarray | Tensor, prediction: np.ndarray | Tensor, names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Score predictions `[n, P]` against what was measured `[n, T]`, see `gtx.tasks.metrics.evaluate`; by default
        with all metrics.
        """
        metrics = self.metrics if names is None else {name: self.metrics[name] for name in names}
        return evaluate(y, prediction, metrics, self.places)


# --- Validation of molecules, atoms and bonds.


class MoleculeValidation(Validation):
    """Validation of targets of molecules: all outputs are collected, and scored by every metric."""

    def __init__(self, objective: NumericObjective) -> None:
        self.objective = objective
        self.channels: int = objective.out_channels
        self.names: Sequence[str] = list(objective.metrics)

    def scorer(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        objective = self.objective
        y, truth = objective.level.targets(val).cpu(), objective.examples(val).to("cpu")
        scaled = objective.level.targets(truth).float()

        def scores(output: Tensor) -> dict[str, float]:
            output = output.float().cpu()
            values = objective.evaluate(y, objective.unscaled(output, val))
            logged = {f"val_{name}": values[name] for name in objective.metrics if values[name] is not None}
            logged["val_loss"] = float(objective.mean_loss(output, replace(truth, y=scaled)))
            return {**logged, "val_score": objective.val_score(output, scaled, logged)}

        return scores


class ItemValidation(Validation):
    """Validation of targets of atoms or bonds: sums over those of each molecule are collected, in place of outputs.

    The sums are, for each target, the number of values and the measures of the objective. Scores that need all outputs
    at once, such as ROC-AUC, are left out.
    """

    def __init__(self, objective: NumericObjective) -> None:
        self.objective = objective
        self.names: Sequence[str] = objective.item_metrics
        self.channels: int = (2 + objective.num_measures) * len(objective.targets)

    def outputs(self, output: Tensor, batch: Any) -> Tensor:
        level = self.objective.level
        target = level.targets(batch)
        measured = ~target.isnan()
        target, output = target.nan_to_num(), output.float()
        losses = self.objective.elementwise(output, target)
        sums = [torch.ones_like(target), losses, *self.objective.measures(output, target)]
        each = torch.cat([each * measured for each in sums], 1)
        return each.new_zeros(batch.num_graphs, self.channels).index_add(0, level.owner(batch), each)

    def scorer(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        weights = torch.ones(len(val), 1).double() if val.weights is None else val.weights.cpu()[:, None].double()
        targets = len(self.objective.targets)

        def scores(outputs: Tensor) -> dict[str, float]:
            count, loss, *sums = outputs.double().cpu().unflatten(1, (-1, targets)).unbind(1)
            mean_loss = float((loss * weights).sum() / (count * weights).sum().clamp(min=1e-300))
            means = [each.sum(0) / count.sum(0) for each in sums]
            return {"val_loss": mean_loss, "val_score": mean_loss} | self.objective.item_scores(means, val)

        return scores
