"""Regression: numbers with a unit, of molecules, atoms or bonds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.utils import softmax

from gtx.base.errors import InputError, did_you_mean
from gtx.base.schema import Number, check, entries, list_of, number, per_target
from gtx.data import FeatureColumns, MoleculeStore
from gtx.data.cells import LARGEST, LIMIT
from gtx.data.feature_columns import NO_FEATURES
from gtx.molecules.graphs import ATOM_FEATURE_VALUES, ATOM_INDEX, name_code
from gtx.settings import learned
from gtx.settings.tasks import NumberOptions, TotalOptions
from gtx.tasks.columns import LEVELS, Columns
from gtx.tasks.metrics import (
    LOSSES,
    Metric,
    censored_squares,
    constants,
    has_values,
    masked_mean,
    mean_absolute_error,
    root_mean_squared_error,
    sklearn_score,
    varies,
    with_bounds,
)
from gtx.tasks.numeric import NumericAnswers, NumericObjective, NumericTask, Predictions
from gtx.tasks.task import Task
from gtx.tasks.uncertainty import (
    BETWEEN_0_AND_1,
    STEEPEST,
    UNCERTAINTY_METHODS,
    Reach,
    UncertaintyMethod,
    conformal_interval,
    distance_slopes,
    evaluate_spread,
    interval_entries,
    interval_words,
    needs_gradients,
    std_factors,
)

# --- Scaling of targets: from their own units to z-scores, and back.

EXTENSIVE = 0.95
"""The share of a target's variance among training molecules that composition explains if the target is extensive: of
atomisation energies 0.998, of solubilities, free energies of solvation and gaps at most 0.73."""
ELEMENTS = len(ATOM_FEATURE_VALUES["element"]) + 1
"""Columns of a composition: one per atomic number, and column 0 for atoms of no known element."""


@dataclass(frozen=True)
class TargetScaler:
    r"""Scaler of targets to z-scores of the training rows, after subtracting a reference energy per element if wanted.

    For a molecule with \(n_a\) atoms of element a (hydrogen included),

    .. math:: z = \frac{y - \sum_a n_a \varepsilon_a - \mu}{\sigma}

    The references \(\varepsilon\) are fitted by least squares to the training rows. The composition explains most of an
    extensive target, such as an atomisation energy, and the network learns the rest.

    Attributes:
        mean: mean of each target, float64 `[T]`, in the units of the target.
        sd: standard deviation of each target, float64 `[T]`, in the units of the target; 0 for a constant target, whose
            prediction is the mean.
        reference: reference energy (or another quantity) per atom of each atomic number, float64 `[119, T]`, or None.
    """

    mean: Tensor
    sd: Tensor
    reference: Tensor | None = None

    @property
    def extensive(self) -> list[int]:
        """Indices of the targets that have a reference."""
        return [] if self.reference is None else self.reference.any(0).nonzero().flatten().tolist()

    @classmethod
    def fit(cls, y: Tensor, composition: Tensor | None = None, least: float | None = None) -> TargetScaler:
        """Fit a scaler to training rows `[n, T]` in own units, NaN for blanks, with a value of every target.

        With the composition `[n, 119]` of `count_elements`, a target has a reference per element if this explains at
        `least` that share of its variance (adjusted for the number of elements); None for every target.
        """
        targets = y.shape[1]
        y = y.double().cpu()
        size, reference = y.abs().nanmean(0), None
        if composition is not None:
            composition = composition.cpu()
            fits = torch.stack([_per_element(y[:, t], composition) for t in range(targets)], dim=1)
            if least is not None:
                explained = [_explained(y[:, t], composition, fits[:, t]) for t in range(targets)]
                fits *= torch.tensor(explained) >= least
            if least is None or fits.any():
                reference, y = fits, y - composition @ fits
        mean = y.nanmean(0)
        sd = (y - mean).square().nanmean(0).sqrt()
        fitted = torch.zeros(targets, dtype=torch.bool) if reference is None else reference.any(0)
        rounding = torch.where(fitted, 1e-7, 1e-12)  # of a fit, and of the mean: what does not vary has no more
        varies = sd > rounding * size
        return cls(mean, torch.where(varies, sd, 0.0), reference)

    def take_over(self, other: TargetScaler, shared: Sequence[int]) -> TargetScaler:
        """Return a scaler with the scales of another for the targets that both have, by their index there, -1 for
        none, and that vary there.
        """
        number = torch.tensor(shared)
        at = number.clamp(min=0)
        there = (number >= 0) & (other.sd[at] > 0)

        def merged(own: Tensor, theirs: Tensor) -> Tensor:
            return torch.where(there, theirs[..., at], own)

        none = (s.mean.new_zeros(ELEMENTS, len(s.mean)) for s in (self, other))
        pairs = zip((self.reference, other.reference), none, strict=True)
        reference = merged(*(zeros if own is None else own for own, zeros in pairs))
        mean, sd = merged(self.mean, other.mean), merged(self.sd, other.sd)
        return TargetScaler(mean, sd, reference if reference.any() else None)

    def scale(self, y: Tensor, composition: Tensor | None = None) -> Tensor:
        """Convert own units `[n, T]` to scaled units, float32, 0 where nothing varies; blanks stay blank."""
        return ((y.double() - self._offset(composition)) * torch.where(self.sd > 0, 1 / self.sd, 0.0)).float()

    def unscale(self, output: Tensor, composition: Tensor | None = None) -> Tensor:
        """Convert a network's output `[..., n, T]` to own units, float64."""
        return output.double() * self.sd + self._offset(composition)

    def without_reference(self, composition: Tensor) -> Tensor:
        """Find the elements of molecules that no training molecule had, bool `[n, 119]`; their reference is 0."""
        if self.reference is None:
            return torch.zeros_like(composition, dtype=torch.bool)
        return (composition > 0) & (self.reference[:, self.extensive] == 0).any(1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, for JSON; a float64 survives the round trip."""
        reference = None if self.reference is None else self.reference.tolist()
        return {"mean": self.mean.tolist(), "sd": self.sd.tolist(), "reference": reference}

    @classmethod
    def from_dict(cls, numbers: dict[str, Any]) -> TargetScaler:
        """Restore a scaler from what `to_dict` returned."""
        values = (numbers[name] for name in ("mean", "sd", "reference"))
        mean, sd, reference = (None if each is None else torch.tensor(each, dtype=torch.float64) for each in values)
        return cls(mean, sd, reference)  # type: ignore[arg-type]  # of the three only the last may be None

    @staticmethod
    def header_entries(targets: int) -> Any:
        """Describe what `to_dict` returns for a number of targets, see `gtx.base.schema.entries`."""
        table = list_of(list_of(Number, targets, targets), ELEMENTS, ELEMENTS)
        numbers = {"mean": list_of(Number, targets, targets), "sd": list_of(number(0), targets, targets)}
        return entries({**numbers, "reference": table | None})

    def _offset(self, composition: Tensor | None) -> Tensor:
        if self.reference is None:
            return self.mean
        if composition is None:
            raise ValueError("this scaler has a reference per element: expected the molecules' composition")
        return self.mean + composition @ self.reference


def count_elements(store: MoleculeStore) -> Tensor:
    """Count the atoms of each element in each molecule, implicit hydrogens included: float64 `[M, 119]`.

    The column is the atomic number; column 0 counts atoms of no known element.

    Raises:
        ValueError: no column of the atoms is the element.
    """
    if "element" not in store.atom_columns:
        raise ValueError(f"expected atoms with a column 'element', got columns {list(store.atom_columns)}")
    names = store.atom_columns
    each = torch.arange(len(store), device=store.device)
    molecule = torch.repeat_interleave(each, store.sizes)
    counts = torch.zeros(len(store), ELEMENTS, dtype=torch.float64, device=store.device)
    counts.index_put_((molecule, store.atoms[:, names.index("element")].long()), counts.new_ones(1), accumulate=True)
    if "hydrogens" in names:  # code i + 1 means i hydrogens that are not atoms of the graph
        hydrogens = store.atoms[:, names.index("hydrogens")].double() - 1
        counts[:, 1].index_add_(0, molecule, hydrogens.clamp(min=0))
    return counts.cpu()


def _explained(y: Tensor, composition: Tensor, reference: Tensor) -> float:
    """Compute the adjusted R² of a reference; minus infinity if there are hardly more molecules than elements."""
    observed = ~y.isnan()
    y, composition = y[observed], composition[observed]
    elements = int((composition > 0).any(0).sum())
    free = len(y) - 1 - elements
    if free <= elements or (spread := float(y.var(correction=0))) == 0:
        return -torch.inf
    left = float((y - composition @ reference).var(correction=0))
    return 1 - (left / free) / (spread / (len(y) - 1))


def _per_element(y: Tensor, composition: Tensor) -> Tensor:
    """Fit y by least squares on the composition and a constant; return the coefficients of the composition."""
    observed = ~y.isnan()
    design = torch.cat([composition[observed], torch.ones(int(observed.sum()), 1, dtype=torch.float64)], dim=1)
    solution = torch.linalg.lstsq(design, y[observed, None], driver="gelsd").solution[:-1, 0]
    return solution * composition[observed].any(0)  # exactly 0 for an element that is not there


# --- A total that the values of a molecule's atoms sum to.

CHARGE = "charge"


@dataclass(frozen=True)
class AtomTotal:
    r"""Total Q of the predictions for the atoms of a molecule.

    The network predicts a value \(y_i\) and a logit \(u_i\) for each atom i. The softmax of the logits distributes
    the difference to the total over the atoms:

    \[ \hat y_i = y_i + w_i \Big( Q - \sum_j y_j \Big), \qquad w_i = \frac{e^{u_i}}{\sum_j e^{u_j}} \]

    Source: Guan et al. 2021 (https://doi.org/10.1039/D0SC04823B), as in chemprop. For `sum_to` and `place` see
    `Regression`.
    """

    sum_to: str | float
    place: int | None = None

    def of(self, atoms: Tensor, descriptors: Tensor, molecule: Tensor, like: Tensor) -> Tensor:
        """Compute the total of each molecule, `[B, 1]` of the dtype of `like`, from the codes `[N, A]` and the molecule
        of each atom, and descriptors `[B, D]`; NaN if a charge has no code or the column is blank.
        """
        if self.place is not None:
            return descriptors[:, self.place, None].to(like.dtype)
        if isinstance(self.sum_to, (int, float)):
            return like.new_full((len(descriptors), 1), self.sum_to)
        code = atoms[:, ATOM_INDEX[CHARGE]].to(like.dtype)
        formal = torch.where(code > 0, code - 1 + ATOM_FEATURE_VALUES[CHARGE][0], torch.nan)
        return like.new_zeros(len(descriptors)).index_add(0, molecule, formal)[:, None]

    def constrain(self, output: Tensor, batch: Any, scaler: TargetScaler) -> Tensor:
        """Convert outputs `[N, 2T]`, scaled numbers and logits, to scaled numbers `[N, T]` that sum to the total."""
        scaled, logits = output.chunk(2, dim=1)
        molecule, count = batch.batch, batch.num_graphs
        mean, sd = (constants(each.tolist(), scaled) for each in (scaler.mean, scaler.sd))
        total = self.of(batch.x, batch.u, molecule, scaled)
        predicted = scaled.new_zeros(count, scaled.shape[1]).index_add(0, molecule, scaled * sd + mean)
        missing = torch.where(total.isnan(), 0.0, total - predicted) * torch.where(sd > 0, 1 / sd, 0.0)
        return scaled + softmax(logits, molecule, num_nodes=count) * missing[molecule]

    def gap(self, store: MoleculeStore, y: Tensor, owner: Tensor) -> float | None:
        """Compute the mean difference between the sum of values `[N, T]` and the total; None without whole lists."""
        if self.sum_to == CHARGE and store.atom_columns[ATOM_INDEX[CHARGE] :][:1] != (CHARGE,):
            columns = list(store.atom_columns)
            raise InputError(f"sum_to: expected molecules with formal charges, got atoms with {columns}")
        total = self.of(store.atoms.cpu(), store.descriptors.cpu(), owner, y)
        off = (y.new_zeros(len(store), y.shape[1]).index_add(0, owner, y) - total).abs()
        return None if off.isnan().all() else float(off.nanmean())

    def warn(self, store: MoleculeStore, owner: Tensor, warnings: list[list[str]]) -> None:
        """Add a warning to each molecule whose total is not known."""
        why = "an atom's formal charge is beyond ±4" if self.sum_to == CHARGE else f"{self.sum_to!r} is blank"
        unknown = self.of(store.atoms, store.descriptors, owner, torch.zeros(0)).isnan()[:, 0]
        for i in unknown.nonzero().flatten().tolist():
            warnings[i].append(f"the values of its atoms sum to no total: {why}")

    def note(self, gap: float | None) -> str:
        """Describe the total."""
        total = "its formal charge" if self.sum_to == CHARGE else self.sum_to
        total = f"{total:g}" if isinstance(total, float) else total
        missed = "" if gap is None else f"; those of the training rows miss it by {gap:.2g} on average"
        return f"the predictions of a molecule's atoms sum to {total}{missed}"


# --- Objective.


class NumberObjective(NumericObjective):
    """Numbers as z-scores of the training rows, by squared or absolute errors, or by a method of uncertainty."""

    task: Regression

    metrics: ClassVar[dict[str, Metric]] = {
        "rmse": Metric("RMSE", root_mean_squared_error, has_values, lower=True, in_units=True),
        "mae": Metric("MAE", mean_absolute_error, has_values, lower=True, in_units=True),
        "r2": Metric("R²", sklearn_score("r2_score"), varies),
    }

    @property
    def out_channels(self) -> int:
        """Outputs in blocks of T, first the numbers, then those of the method, or logits of the total."""
        return (self.task.method.width if self.task.total is None else 2) * len(self.targets)

    def check(self, model: nn.Module) -> None:
        if self.task.method.width > 1:
            needs_gradients(self.task.uncertainty, model)

    def fit(self, train: MoleculeStore) -> dict[str, Any]:
        super().fit(train)
        y, lists, reference = self.measured(train), self.level.lists, self.task.element_reference
        fitted: dict[str, Any] = {}
        if self.task.total is not None and self.task.gap is None:
            fitted["gap"] = self.task.total.gap(train, y.double(), self.level.owner(train).cpu())
        if self.task.scaler is None:
            y = y if lists else with_bounds(y, train.bounds)[0]  # a bound counts as the value
            if lists or reference is False or (reference is None and "element" not in train.atom_columns):
                fitted["scaler"] = TargetScaler.fit(y)
            else:
                fitted["scaler"] = TargetScaler.fit(y, count_elements(train), None if reference else EXTENSIVE)
            if self.task.total is not None:  # which moves atoms whose values are all equal, too
                sd = fitted["scaler"].sd
                fitted["scaler"] = replace(fitted["scaler"], sd=torch.where(sd > 0, sd, 1.0))
        return fitted

    def examples(self, store: MoleculeStore) -> MoleculeStore:
        made = super().examples(store)
        if store.bounds is None or self.level.lists:
            return made
        parts = [self.scale(store.with_targets(part)) for part in store.bounds.cpu().chunk(2, dim=1)]
        return replace(made, bounds=torch.cat(parts, dim=1).double().to(store.device))

    def constrain(self, output: Tensor, batch: Any) -> Tensor:
        output = super().constrain(output, batch)
        return output if self.task.total is None else self.task.total.constrain(output, batch, self.task.scaler)

    def mean_loss(self, output: Tensor, examples: Any) -> Tensor:
        bounds = getattr(examples, "bounds", None)
        if bounds is None or self.level.lists:
            return super().mean_loss(output, examples)
        value, side = with_bounds(examples.y, bounds)
        weights, measured = self._loss_weights(examples), ~value.isnan()

        def each(output: Tensor, value: Tensor) -> Tensor:
            if self.task.loss == "mse":
                return censored_squares(output, value, side, measured if weights is None else measured * weights)
            allowed = (output - value) * side > 0
            return torch.where(allowed, 0, self.elementwise(torch.where(allowed, value, output), value))

        return masked_mean(each, output, value, weights)

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        if self.task.method.width > 1:
            return self.task.method.loss(self.blocks(output), target)
        if isinstance(self.task.loss, str):
            return LOSSES[self.task.loss](output, target, reduction="none")
        return self.task.loss(output, target)

    def measured(self, store: MoleculeStore) -> Tensor:
        """Return the targets of a store in own units; raise an `InputError` if one is too large to be learned."""
        y = self.level.targets(store).cpu()
        for i, t in (y.abs() > LARGEST).nonzero()[:1].tolist():
            place = f"{self.level.name} {i // self.level.rows_each}, counted from 0,"
            raise InputError(f"target {self.targets[t]!r} of {place} is {y[i, t]:g}, which is too large: {LIMIT}")
        return y

    def scale(self, store: MoleculeStore) -> Tensor:
        return self.task.scaler.scale(self.measured(store), self.composition(store))

    def unscale(self, output: Tensor, store: MoleculeStore | None = None) -> Tensor:
        return self.task.scaler.unscale(self.numbers(output), self.composition(store))

    def regressands(self, store: MoleculeStore) -> Tensor:
        return self.scale(store).double()

    def nll(self, output: Tensor, scaled: Tensor) -> Tensor:
        """Compute it for Gaussian errors of one unknown size: per value half the logarithm of their mean square."""
        count = (~scaled.isnan()).sum(0)
        mean = (self.numbers(output) - scaled).square().nansum(0) / count.clamp(min=1)
        return count / 2 * mean.clamp(min=1e-12).log()

    def val_score(self, output: Tensor, scaled: Tensor, logged: dict[str, float]) -> float:
        """Compute the mean over targets of the RMSE (the MAE if that is the loss) in scaled units."""
        if self.task.censored:
            return logged["val_loss"]  # which heeds bounds
        error = self.numbers(output) - scaled
        if self.task.loss == "mae":
            return float(error.abs().nanmean(0).nanmean())
        return float(error.square().nanmean(0).sqrt().nanmean())

    def numbers(self, output: Tensor) -> Tensor:
        """Return the predicted numbers `[..., T]` among outputs `[..., C]`."""
        return output[..., : len(self.targets)]

    def blocks(self, output: Tensor) -> Tensor:
        """Reshape outputs `[..., C]` to `[..., W, T]`."""
        return output.unflatten(-1, (-1, len(self.targets)))

    def composition(self, store: MoleculeStore | None) -> Tensor | None:
        """Count the elements of the molecules of a store, `[m, 119]`, if the scaler has a reference for each."""
        if self.task.scaler.reference is None:
            return None
        return torch.zeros(0, ELEMENTS, dtype=torch.float64) if store is None else count_elements(store)


# --- Answers.


class NumberAnswers(NumericAnswers):
    """Numbers with standard deviations by a method of uncertainty, and split-conformal intervals."""

    objective: NumberObjective
    task: Regression

    @property
    def has_intervals(self) -> bool:
        """True if there were enough validation rows for the interval of any target."""
        return self.task.interval is not None and any(width is not None for width in self.task.interval["half_width"])

    @property
    def reads_similarity(self) -> bool:
        return self.task.method.reads_similarity

    def predictions(self, outputs: Tensor, store: MoleculeStore | None) -> Predictions:
        answers = super().predictions(outputs, store)
        if self.reads_similarity:
            answers = replace(answers, distance=outputs[:, 0, -1].numpy())
        if self.task.uncertainty != "none":
            std, reach = self.spread(outputs)
            answers = replace(answers, std=std, reach=reach)
        low, high = self.bounds(answers.mean, answers.reach)
        return replace(answers, low=low, high=high)

    def spread(self, outputs: Tensor) -> tuple[np.ndarray, Reach]:
        """Compute standard deviations `[m, T]` and the reach of intervals from outputs `[m, members, C]`."""
        ones = [1.0] * len(self.objective.targets)
        unit = self.task.scaler.sd * torch.tensor(self.task.std_factor or ones, dtype=torch.float64)
        if self.reads_similarity:
            values = outputs[:, 0, -1:] * torch.tensor(self.task.std_slope or ones, dtype=torch.float64)
        else:
            values = self.objective.blocks(outputs)
        std, below, above = ((each.double() * unit).numpy() for each in self.task.method.spread(values))
        return std, (below, above)

    def bounds(self, mean: np.ndarray, reach: Reach | None) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Compute intervals around predictions, low and high `[m, T]`, or None where there is none."""
        if self.task.interval is None or not self.has_intervals:
            return None, None
        half = np.array([np.nan if width is None else width for width in self.task.interval["half_width"]])
        below, above = (half, half) if reach is None else (half * each for each in reach)
        return mean - below, mean + above

    def fit(self, answers: Any, y: np.ndarray) -> dict[str, Any]:
        """Fit the size of standard deviations, and split-conformal intervals."""
        if self.objective.level.lists:
            return {}
        if answers.reach is None or answers.std is None:
            return {"interval": conformal_interval(y, answers.mean, self.task.coverage)}
        fitted: dict[str, Any] = {}
        if answers.distance is not None and self.task.std_slope is None:
            fitted["std_slope"] = tuple(distance_slopes(y - answers.mean, answers.distance).tolist())
            std, reach = replace(self.task, **fitted).answers.spread(torch.from_numpy(answers.distance)[:, None, None])
            answers = replace(answers, std=std, reach=reach)
        factor = std_factors(y, answers.mean, answers.std)
        below, above = answers.reach
        interval = conformal_interval(y, answers.mean, self.task.coverage, (below * factor, above * factor))
        return fitted | {"interval": interval, "std_factor": tuple(factor.tolist())}

    def evaluate_uncertainty(self, y: np.ndarray, answers: Predictions) -> dict[str, Any]:
        a = answers
        return evaluate_spread(self.objective.targets, y, a.mean, a.std, a.low, a.high, a.distance)

    def warnings(self, store: MoleculeStore) -> list[list[str]]:
        """Warn of elements without a reference, and of molecules whose total is not known."""
        warnings, objective, task = super().warnings(store), self.objective, self.task
        if task.total is not None:
            task.total.warn(store, objective.level.owner(store), warnings)
        if task.scaler.reference is not None:
            targets = ", ".join(objective.targets[t] for t in task.scaler.extensive)
            lacking = task.scaler.without_reference(count_elements(store))
            for i in lacking.any(dim=1).nonzero().flatten().tolist():
                codes = lacking[i].nonzero().flatten().tolist()
                symbols = ", ".join(name_code("atom", ATOM_INDEX["element"], code) for code in codes)
                why = f"without what {symbols} contributes, which training did not show: not to be relied on"
                warnings[i].append(f"{targets}: {why}")
        return warnings

    def notes(self) -> list[str]:
        task, targets = self.task, self.objective.targets
        if task.total is not None:
            return [task.total.note(task.gap)]
        extensive = task.scaler.extensive if task.scaler is not None else []
        lines = [f"{targets[t]}: learned minus a reference per element" for t in extensive]
        if task.interval:
            unit = "" if task.uncertainty == "none" else " standard deviations"
            lines.append(interval_words(task.interval, targets, unit))
        return lines


# --- The task.


@dataclass(frozen=True)
class Regression(NumericTask, NumberOptions, TotalOptions):
    """Task of predicting numbers of molecules, atoms or bonds, learned as z-scores of the training rows.

    Args:
        targets: names of the target columns.
        loss: loss of the z-scores: "mse", "mae", "huber" (delta 1), or a function of outputs and targets `[B, T]` that
            returns the loss of each entry, `[B, T]`. The loss is not stored in a model file.
        relation_column: column with the relation of each value of the one target, such as `>`, which makes it a bound;
            implies `censored`.
        censored: whether cells such as `>5` are bounds to learn from. With "mse", the loss of a bound is a Gaussian
            likelihood, see `gtx.tasks.metrics.censored_squares`. With other losses, the loss of a bound is 0 if the
            prediction satisfies the bound.
        element_reference: whether a reference value per element is subtracted from the targets; by default only from
            targets of which the composition explains 95 % of the variance.
        uncertainty: name of a method in `gtx.tasks.uncertainty`, or "none".
        coverage: share of molecules whose true value should be inside the interval.
        sum_to: of atoms, the total of each target over the atoms of a molecule: "charge" (the formal charge), a number,
            or the name of a feature column (`gtx.data.FeatureColumns`), see `AtomTotal`. None for no constraint.
        scaler, interval, std_factor, std_slope: values fitted by training. The factor per target scales the standard
            deviations; the slope belongs to the method "similarity".
        gap: difference between the sum of the training values and the total, averaged over molecules and targets.
        place: index of the feature column of the total among the descriptors, counted from the end.

    Raises:
        InputError: the loss or the method is unknown, a loss is given for a method with its own loss, the coverage is
            not between 0 and 1, or the total is not finite.
    """

    name: ClassVar[str] = "regression"
    names: ClassVar[dict[str, str]] = {"atom": "atoms", "bond": "bonds"}
    unsaved: ClassVar[frozenset[str]] = NumericTask.unsaved | {"loss", "place"}

    scaler: TargetScaler = learned(TargetScaler.header_entries, needed=True)
    interval: dict[str, Any] | None = learned(interval_entries)
    std_factor: tuple[float, ...] | None = learned(per_target(number(0)))
    std_slope: tuple[float, ...] | None = learned(per_target(number(0, STEEPEST)))
    gap: float | None = learned(lambda targets: number(0))
    place: int | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.coverage, BETWEEN_0_AND_1, "coverage")
        if self.relation_column is not None:
            if len(self.targets) > 1:
                expected = "expected one target, whose relations these are"
                raise InputError(f"relation_column: {expected}, got {len(self.targets)}")
            if self.relation_column in self.targets:
                raise InputError(f"{self.relation_column!r} is a target; it cannot have the relations too")
            object.__setattr__(self, "censored", True)
        if self.method.width > 1 and self.loss != "mse":
            raise InputError(f"loss: uncertainty {self.uncertainty} has a loss of its own; leave it out")
        if self.method.width > 1 and self.censored:
            raise InputError(f"censored: uncertainty {self.uncertainty} has a loss of its own, which knows no bounds")
        if isinstance(self.loss, str) and self.loss not in LOSSES:
            raise InputError(f"loss: expected one of {', '.join(LOSSES)} for {self.name}, got {self.loss}")
        total = self.sum_to
        if isinstance(total, str):  # on the command line a number is a word
            with suppress(ValueError):
                total = float(total)
        if isinstance(total, (int, float)):
            if not abs(total) < np.inf:
                raise InputError(f"sum_to: expected a finite number, got {self.sum_to!r}")
            object.__setattr__(self, "sum_to", float(total))

    @cached_property
    def method(self) -> UncertaintyMethod:
        """Method of uncertainty; `none` has one output per target and the task's own loss."""
        return UNCERTAINTY_METHODS[self.uncertainty](self.coverage)

    @cached_property
    def columns(self) -> Columns:
        censored = bool(self.censored)
        return Columns(self.targets, LEVELS[self.level], censored=censored, relation_column=self.relation_column)

    @cached_property
    def total(self) -> AtomTotal | None:
        """Total of the values of a molecule's atoms."""
        return None if self.sum_to is None else AtomTotal(self.sum_to, self.place)

    objective = cached_property(NumberObjective)
    answers = cached_property(NumberAnswers)

    def with_features(self, features: FeatureColumns) -> Self:
        if self.sum_to == CHARGE or not isinstance(self.sum_to, str):
            return self
        names = features.names
        if self.sum_to not in names:
            what = f"{CHARGE}, a number or one of `feature_columns`"
            raise InputError(f"sum_to: expected {what}, got {self.sum_to!r}{did_you_mean(self.sum_to, names)}")
        return replace(self, place=names.index(self.sum_to) - features.width)

    def fit(self, train: MoleculeStore) -> Self:
        if self.place is None:
            self.with_features(NO_FEATURES)  # raises if a column is missing
        return super().fit(train)

    def known_part(self, store: MoleculeStore) -> np.ndarray | None:
        reference = self.scaler.reference
        return None if reference is None else (count_elements(store) @ reference).numpy()

    def take_over(self, other: Task) -> Self:
        shared = self.match_targets(other)
        if not isinstance(other, Regression) or max(shared) < 0:
            return self
        return replace(self, scaler=self.scaler.take_over(other.scaler, shared))

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return replace(super().from_dict(record), scaler=TargetScaler.from_dict(record["scaler"]))
