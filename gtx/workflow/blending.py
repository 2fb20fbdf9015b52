"""Blend of the network and a kernel in closed form, weighted and calibrated on validation rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from gtx.data import MoleculeStore
from gtx.data.columns import listed
from gtx.data.row_log import plural
from gtx.kernel import KernelRidge
from gtx.models import build_model
from gtx.prediction import ModelFileHeader, Predictor
from gtx.prediction.kernel_member import KernelMember, blend_outputs
from gtx.prediction.loading import attach_foundation
from gtx.prediction.neighbours import TrainingRows
from gtx.tasks import Answers, NumericTask, Predictions, Task
from gtx.tasks.closed_form import closed_form_targets, fit_closed_form, outputs_of, why_no_closed_form
from gtx.tasks.task import is_numeric
from gtx.training import TrainedEnsembleMember, TrainSettings
from gtx.workflow.specs import add_learned_arguments, kernel_parts, kernel_spec

MIN_ROWS = 10
"""Smallest number of validation rows of a target on which a weight is fitted."""
MIN_WEIGHT = 0.05
"""Smallest weight of a kernel; with a smaller one the network is used alone."""
WEIGHTS = torch.linspace(0, 1, 101, dtype=torch.float64)


@dataclass(frozen=True)
class Blended:
    """Averaged predictions of trained networks and a kernel model, for all molecules of a store.

    Attributes:
        members: the trained networks.
        predictor: predictor of the blend, whose intervals, standard deviations and probabilities are calibrated on
            validation rows.
        answers: predictions of the blend for all molecules of the store.
        outputs: outputs of the blend, see `gtx.prediction.Predictor.outputs`; for validation rows, with a kernel model
            fitted to training rows alone.
        alone: predictions of network and kernel model by name, not calibrated; empty for a network alone.
        kernel: kernel model fitted to the training rows alone, also if its weight is 0; None if no kernel model was
            fitted.
        note: description of the blend, one line.
    """

    members: Sequence[TrainedEnsembleMember]
    predictor: Predictor
    answers: Answers
    outputs: Any
    alone: Mapping[str, Predictions]
    kernel: KernelRidge | None
    note: str | None

    @property
    def predictions(self) -> Predictions:
        """Answers of a task of numbers or classes."""
        return _predictions(self.answers)

    def with_header(self, **changes: Any) -> Self:
        """Return the blend with other values in the header of the model file."""
        predictor = self.predictor
        return replace(self, predictor=predictor.with_header(replace(predictor.header, **changes)))

    @classmethod
    def calibrated(
        cls,
        members: Sequence[TrainedEnsembleMember],
        store: MoleculeStore,
        val: np.ndarray,
        predictor: Predictor,
        outputs: Any,
        kernel: KernelRidge | None,
        note: str | None,
        alone: Mapping[str, Tensor] | None = None,
    ) -> Self:
        """Calibrate a predictor on validation rows.

        Args:
            members: the trained networks.
            store: all molecules, with targets in their own units.
            val: validation rows of the store.
            predictor: the predictor, not calibrated yet.
            outputs: outputs for the store, see `gtx.prediction.Predictor.outputs`.
            kernel, note: see the attributes.
            alone: outputs of network and kernel by name.
        """
        answers = predictor.answers(store, outputs)
        task = predictor.task.calibrated(answers.subset(val), targets_of(store).numpy()[val])
        fitted = predictor.with_header(replace(predictor.header, task=task))
        parts = {name: _predictions(predictor.answers(store, each)) for name, each in (alone or {}).items()}
        return cls(members, fitted, fitted.answers(store, outputs), outputs, parts, kernel, note)


def blend_with_kernel(
    members: Sequence[TrainedEnsembleMember],
    header: ModelFileHeader,
    store: MoleculeStore,
    split: Mapping[str, np.ndarray],
    settings: TrainSettings,
    learned: Callable[[], TrainingRows] | None = None,
) -> Blended:
    """Average trained networks with a kernel model fitted to the same training rows.

    The weights of the average are chosen, and the intervals calibrated, on validation rows.

    Once the weights are fixed, the kernel model is refitted to training and validation rows, because more rows make the
    kernel model better. Outputs for validation rows remain those of the first fit, so that validation scores and
    intervals are valid for new molecules.

    Args:
        members: trained networks.
        header: header of the model file.
        store: all molecules, with targets in their own units.
        split: rows of "train" and "val".
        settings: settings of the blend, and the device of the networks.
        learned: function that collects the rows for the model file, in place of those of the header, if the kernel is
            fitted to validation rows too.
    """
    device = "cpu" if settings.accelerator == "cpu" else None
    predictor = Predictor([member.model for member in members], header, device)
    outputs = predictor.outputs(store)
    calibrated = partial(Blended.calibrated, members, store, split["val"])
    train, val = (store.subset(split[part]) for part in ("train", "val"))
    if isinstance(members[0].model, KernelRidge):
        return calibrated(predictor, outputs, members[0].model, None)
    task = header.task
    reason = None if settings.blend == "no" else obstacle_to_blend(task, train, val)
    if settings.blend == "no" or reason is not None or not is_numeric(task):
        usual = settings.blend == "no" or task.writes or task.level != "molecule"
        note = None if usual else f"the network alone: {reason}"
        return calibrated(predictor, outputs, None, note)
    spec = kernel_spec(task, header.featuriser, header.features, parts=kernel_parts(settings, header.featuriser))
    kernel = fitted_kernel(spec, task, train)
    rows = torch.from_numpy(split["val"])
    held_out = outputs_of(kernel, val)
    weight = blend_weights(task, outputs[rows].mean(1), held_out, val)
    if (weight < MIN_WEIGHT).all():
        note = "the network alone: blending with a kernel would not improve the validation score"
        return calibrated(predictor, outputs, kernel, note)
    refitted = fitted_kernel(spec, task, store.subset(np.sort(np.concatenate([split["train"], split["val"]]))))
    kernel_outputs = outputs_of(refitted, store)
    kernel_outputs[rows] = held_out
    kernel_member = KernelMember(refitted, weight.float())
    header = replace(
        header, partner=add_learned_arguments(spec, refitted), training=learned() if learned else header.training
    )
    alone = {"network": outputs, "kernel": blend_outputs(outputs, kernel_outputs, torch.ones_like(weight))}
    note = f"prediction = {kernel_member.describe(task)}; weights chosen on {plural(len(val), 'validation row')}"
    values = (~targets_of(val).isnan()).sum(0).tolist()
    few = [name for name, number in zip(task.targets, values, strict=True) if number < MIN_ROWS]
    if few:
        note += f"; {listed(few)}: too few of them have a value to weigh a kernel, which takes {MIN_ROWS}"
    both = Predictor(predictor.members, header, device, kernel_member)
    return calibrated(both, kernel_member.blend(outputs, kernel_outputs), kernel, note, alone)


def kernel_baseline(
    blended: Blended, store: MoleculeStore, train: np.ndarray, settings: TrainSettings
) -> KernelRidge | None:
    """Return the kernel that is scored as a baseline: that of the blend before its last fit, or a new one of the same
    settings; None for a task that no kernel learns.
    """
    header, rows = blended.predictor.header, store.subset(train)
    task = header.task
    if blended.kernel is not None or not is_numeric(task) or closed_form_targets(task, rows) is None:
        return blended.kernel
    parts = kernel_parts(settings, header.featuriser)
    return fitted_kernel(kernel_spec(task, header.featuriser, header.features, parts=parts), task, rows)


def fitted_kernel(spec: Mapping[str, Any], task: NumericTask, molecules: MoleculeStore) -> KernelRidge:
    """Make a kernel and fit it to molecules with a fitted task."""
    kernel = attach_foundation(build_model(spec))
    if not isinstance(kernel, KernelRidge):
        raise TypeError(f"expected the specification of a kernel, got {spec['name']}")
    fit_closed_form(kernel, task, molecules)
    return kernel


def obstacle_to_blend(task: Task, train: MoleculeStore, val: MoleculeStore) -> str | None:
    """Name the reason why no kernel can be blended; None if one can."""
    if not is_numeric(task) or closed_form_targets(task, train) is None:
        return why_no_closed_form(task, train)
    most = int((~targets_of(val).isnan()).sum(0).max()) if len(val) else 0
    if most < MIN_ROWS:
        few = f"{plural(most, 'validation row')} {'is' if most == 1 else 'are'} too few to weigh a kernel beside it"
        return f"{few}, which takes {MIN_ROWS}; --model kernel is fitted without them, and gtx benchmark compares them"
    return None


def blend_weights(task: NumericTask, network: Tensor, kernel: Tensor, val: MoleculeStore) -> Tensor:
    r"""Fit the weight of the kernel in each prediction, float64 `[P]`, from 0 to 1.

    The weight of a target is its posterior mean given the validation rows, for a uniform prior,

    \[ \frac{\int_0^1 s\, p(y \mid s)\, ds}{\int_0^1 p(y \mid s)\, ds}. \]

    With few rows it stays near 1/2. A target with fewer than `MIN_ROWS` rows has weight 0.

    Args:
        task: the fitted task.
        network, kernel: outputs for validation rows, float64 `[m, C]` and `[m, P]`.
        val: validation rows, with targets in their own units.
    """
    y = task.objective.scaled(val).double()
    network = network[:, : task.objective.num_predictions]
    nll = torch.stack([task.objective.nll(torch.lerp(network, kernel.double(), weight), y) for weight in WEIGHTS])
    posterior = torch.softmax(-nll, 0)  # [weights, T]
    mean = (WEIGHTS[:, None] * posterior).sum(0) * ((~y.isnan()).sum(0) >= MIN_ROWS)
    return mean.repeat_interleave(torch.tensor(task.objective.widths))


def targets_of(store: MoleculeStore) -> Tensor:
    """Return the targets of a store, float64 `[m, T]`; raise a `ValueError` if it has none."""
    if store.y is None:
        raise ValueError("expected molecules with targets, got a store without")
    return store.y


def _predictions(answers: Answers) -> Predictions:
    if not isinstance(answers, Predictions):
        raise TypeError(f"expected predictions of numbers or classes, got {type(answers).__name__}")
    return answers
