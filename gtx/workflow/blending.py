"""Blend of the network and a kernel in closed form, weighted and calibrated on validation rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from gtx.data import MoleculeStore, Split
from gtx.data.rows import listed, plural
from gtx.data.similarity import nearest_similarity
from gtx.kernel import KernelRidge
from gtx.models import build_model
from gtx.prediction import ModelFileHeader, Predictor
from gtx.prediction.domain import TrainingRows
from gtx.prediction.foundation_embedding import attach_foundation
from gtx.prediction.model_file import KernelMember, blend_outputs
from gtx.prediction.predictor import in_threads
from gtx.tasks import Answers, NumericTask, Predictions, Task
from gtx.tasks.closed_form import fit_closed_form, outputs_of, why_no_closed_form
from gtx.tasks.columns import LEVELS
from gtx.tasks.numeric import is_numeric
from gtx.training import TrainedMember, TrainSettings
from gtx.training.logging import diverged
from gtx.workflow.specs import add_learned_arguments, make_model_spec

MIN_ROWS = 10
"""Smallest number of validation rows of a target on which a weight is fitted."""
MIN_WEIGHT = 0.05
"""Smallest weight of a kernel; with a smaller one the network is used alone."""
PRIOR = 6.0, 4.0
"""Parameters a and b of the Beta distribution of a kernel's weight before validation rows are seen; its mean is 0.6."""
ROUNDING = 1e-12
"""Deviation between equal outputs, per size of their mean."""
MOLECULES = LEVELS["molecule"]
WEIGHTS = torch.linspace(0, 1, 101, dtype=torch.float64)


@dataclass(frozen=True)
class Blended:
    """Averaged predictions of trained networks and a kernel model, for all molecules of a store.

    Attributes:
        members: the trained networks.
        predictor: predictor of the blend, calibrated on validation rows.
        answers: predictions for all molecules of the store; for a validation row, of the network that it validates and
            of a kernel model fitted without it.
        in_sample: the same, but for training rows by the predictor itself, all networks and the last kernel model;
            `answers` for a single network.
        outputs: outputs of which `answers` are decoded, see `gtx.prediction.Predictor.outputs`.
        alone: predictions of network and kernel model by name and part of the split, not calibrated; empty for a
            network alone.
        kernel: kernel model fitted to the training rows alone, also if its weight is 0; None if no kernel model was
            fitted to them.
        note: description of the blend, one line.
    """

    members: Sequence[TrainedMember]
    predictor: Predictor
    answers: Answers
    in_sample: Answers
    outputs: Any
    alone: Mapping[str, Mapping[str, Predictions]]
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
        members: Sequence[TrainedMember],
        store: MoleculeStore,
        val: np.ndarray,
        predictor: Predictor,
        outputs: Outputs,
        kernel: KernelRidge | None = None,
        note: str | None = None,
        alone: Mapping[str, Outputs] | None = None,
    ) -> Self:
        """Calibrate a predictor on validation rows of a store; `alone` are the outputs of network and kernel.

        Raises:
            InputError: no prediction is finite, because the last step of the training diverged.
        """
        answers = predictor.answers(store, outputs.held_out)
        if not (answers.finite.any() or predictor.task.writes):
            raise diverged("no prediction is a finite number")
        task = predictor.task.calibrate(answers.subset(val), MOLECULES.targets(store).numpy()[val])
        fitted = predictor.with_header(replace(predictor.header, task=task))
        parts = {}
        for name, each in (alone or {}).items():
            others, in_sample = map(_predictions, each.answers(predictor, store, val))
            parts[name] = {"train": in_sample, "val": others, "test": others}
        return cls(members, fitted, *outputs.answers(fitted, store, val), outputs.held_out, parts, kernel, note)


@dataclass(frozen=True)
class Outputs:
    """Outputs of a model for all molecules of a store, see `gtx.prediction.Predictor.outputs`.

    Those `held_out` are, for each validation row, of a model that was fitted without it; for a single network, they are
    the same object as `final`.
    """

    final: Any
    held_out: Any

    def answers(self, predictor: Predictor, store: MoleculeStore, val: np.ndarray) -> tuple[Answers, Answers]:
        """Decode the outputs, held out and final.

        The one network that predicts a validation row out-of-fold has no disagreement, which is NaN.
        """
        answers: Answers = predictor.answers(store, self.held_out)
        if self.final is self.held_out:
            return answers, answers
        if isinstance(answers, Predictions) and answers.std is not None:
            std = answers.std.copy()
            std[val] = np.where(std[val] > ROUNDING * (1 + np.abs(answers.mean[val])), std[val], np.nan)
            answers = replace(answers, std=std)
            answers = replace(answers, table=predictor.task.answers.table(answers))
        return answers, predictor.answers(store, self.final)


def held_out_outputs(outputs: Any, networks: Sequence[Split]) -> Any:
    """Replace, for each validation row, the outputs of all networks by those of the network that it validates."""
    if len(networks) == 1:
        return outputs
    rows = list(outputs)
    for k, network in enumerate(networks):
        for row in network["val"].tolist():
            rows[row] = _of_network(rows[row], k)
    return torch.stack(rows) if isinstance(outputs, Tensor) else rows


def _of_network(outputs: Any, k: int) -> Any:
    """Repeat the outputs of network k in place of those of all networks, in `[..., K, C]` or a tuple of such."""
    if isinstance(outputs, Tensor):
        return outputs[..., [k], :].expand_as(outputs)
    return tuple(_of_network(part, k) for part in outputs)


def held_out_similarity(store: MoleculeStore, networks: Sequence[Split], rows: np.ndarray) -> np.ndarray:
    """Compute the similarity of validation rows to the nearest row that trained their network, float64 `[m]`."""
    similarity = np.zeros(len(rows))
    for network in networks:
        own = np.isin(rows, network["val"])
        similarity[own] = nearest_similarity(store.subset(network["train"]), store.subset(rows[own]))
    return similarity


def blend_with_kernel(
    members: Sequence[TrainedMember],
    header: ModelFileHeader,
    store: MoleculeStore,
    networks: Sequence[Split],
    settings: TrainSettings,
    learned: Callable[[], TrainingRows] | None = None,
) -> Blended:
    """Average trained networks with a kernel model fitted to the same training rows.

    The weights of the average are chosen, and the intervals calibrated, on validation rows. Each is predicted by the
    network that it validates, and by a kernel model fitted to the training rows of that network.

    Once the weights are fixed, the kernel model is refitted to training and validation rows, because more rows make the
    kernel model better. Outputs for validation rows remain those of the first fits, so that validation scores and
    intervals are valid for new molecules.

    Args:
        members: trained networks.
        header: header of the model file.
        store: all molecules, with targets in their own units.
        networks: rows of "train" and "val" for each network; each row is a validation row of at most one.
        settings: settings of the blend, and the device of the networks.
        learned: function that collects the rows for the model file if the kernel is fitted to validation rows too; None
            if the file stores none.
    """
    device = "cpu" if settings.accelerator == "cpu" else None
    predictor = Predictor([member.model for member in members], header, device)
    val_rows = np.unique(np.concatenate([rows["val"] for rows in networks]))
    every_row = np.union1d(val_rows, np.concatenate([rows["train"] for rows in networks]))
    outputs = predictor.outputs(store)
    held_out = held_out_outputs(outputs, networks)
    if isinstance(members[0].model, KernelRidge):
        if len(networks) == 1:
            return Blended.calibrated(members, store, val_rows, predictor, Outputs(outputs, outputs), members[0].model)
        kernel = fitted_kernel(header.model, header.task, store.subset(every_row))
        predictor = Predictor([kernel], replace(header, model=add_learned_arguments(header.model, kernel)), device)
        final = predictor.outputs(store)
        held_out = final.index_copy(0, torch.from_numpy(val_rows), held_out[val_rows][:, :1])
        member = TrainedMember(kernel.eval(), header.task, [], 0, math.inf)
        return Blended.calibrated([member], store, val_rows, predictor, Outputs(final, held_out), kernel)
    if header.task.answers.reads_similarity and len(networks) > 1:
        distance = 1 - torch.from_numpy(held_out_similarity(store, networks, val_rows))
        held_out[val_rows, :, -1] = distance[:, None]
    network = Outputs(outputs, held_out)
    calibrated = partial(Blended.calibrated, members, store, val_rows)
    val, trained = store.subset(val_rows), [store.subset(rows["train"]) for rows in networks]
    task = header.task
    reason = None if settings.blend == "no" else obstacle_to_blend(task, trained[0], val)
    if settings.blend == "no" or reason is not None or not is_numeric(task):
        usual = settings.blend == "no" or task.writes or task.level != "molecule"
        return calibrated(predictor, network, note=None if usual else f"the network alone: {reason}")
    spec = kernel_spec(settings, header)
    kernels = in_threads(partial(fitted_kernel, spec, task), trained)
    kernel_held_out = torch.zeros(len(store), task.objective.num_predictions, dtype=torch.float64)
    for kernel, rows in zip(kernels, networks, strict=True):
        kernel_held_out[rows["val"]] = outputs_of(kernel, store.subset(rows["val"]))
    weight = blend_weights(task, held_out[val_rows].mean(1), kernel_held_out[val_rows], val)
    kernel_of_training = kernels[0] if len(networks) == 1 else None
    if (weight < MIN_WEIGHT).all():
        note = "the network alone: blending with a kernel would not improve the validation score"
        return calibrated(predictor, network, kernel_of_training, note)
    refitted = fitted_kernel(spec, task, store.subset(every_row))
    kernel_outputs = outputs_of(refitted, store)
    rest = np.setdiff1d(np.arange(len(store)), val_rows)
    kernel_held_out[rest] = kernel_outputs[rest]
    kernel_member = KernelMember(refitted, weight.float())
    header = replace(
        header, partner=add_learned_arguments(spec, refitted), training=learned() if learned else header.training
    )

    def mixed(blend: Callable[[Tensor, Tensor], Tensor]) -> Outputs:
        parts = blend(held_out, kernel_held_out)
        return Outputs(parts if len(networks) == 1 else blend(outputs, kernel_outputs), parts)

    alone = {"network": network, "kernel": mixed(partial(blend_outputs, share=torch.ones_like(weight)))}
    kind = "validation row" if len(networks) == 1 else "out-of-fold prediction"
    note = f"prediction = {kernel_member.describe(task)}; weights chosen on {plural(len(val), kind)}"
    values = (~MOLECULES.targets(val).isnan()).sum(0).tolist()
    few = [name for name, number in zip(task.targets, values, strict=True) if number < MIN_ROWS]
    if few:
        note += f"; {listed(few)}: too few of them have a value to weigh a kernel, which takes {MIN_ROWS}"
    both = Predictor(predictor.members, header, device, kernel_member)
    kernel = refitted if kernel_of_training is None else kernel_of_training
    return calibrated(both, mixed(partial(blend_outputs, share=kernel_member.share)), kernel, note, alone)


def kernel_baseline(
    blended: Blended, store: MoleculeStore, train: np.ndarray, settings: TrainSettings
) -> KernelRidge | None:
    """Return the kernel of the blend before its last fit, or a new one of the same settings, to score as a baseline."""
    header, rows = blended.predictor.header, store.subset(train)
    task = header.task
    if blended.kernel is not None or why_no_closed_form(task, rows) is not None:
        return blended.kernel
    return fitted_kernel(kernel_spec(settings, header), task, rows)


def kernel_spec(settings: TrainSettings, header: ModelFileHeader) -> dict[str, Any]:
    """Make the specification of the kernel that is blended with a network."""
    settings = replace(settings, model="kernel", model_arguments={})
    return make_model_spec(settings, header.featuriser, header.task, 0, header.features)


def fitted_kernel(spec: Mapping[str, Any], task: Task, molecules: MoleculeStore) -> KernelRidge:
    """Make a kernel and fit it to molecules with a fitted task."""
    kernel = attach_foundation(build_model(spec))
    if not isinstance(kernel, KernelRidge):
        raise TypeError(f"expected the specification of a kernel, got {spec['name']}")
    fit_closed_form(kernel, task, molecules)
    return kernel


def obstacle_to_blend(task: Task, train: MoleculeStore, val: MoleculeStore) -> str | None:
    """Name the reason why no kernel can be blended with networks of such training rows; None if one can."""
    if obstacle := why_no_closed_form(task, train):
        return obstacle
    most = int((~MOLECULES.targets(val).isnan()).sum(0).max()) if len(val) else 0
    if most < MIN_ROWS:
        few = f"{plural(most, 'validation row')} {'is' if most == 1 else 'are'} too few to weigh a kernel beside it"
        return f"{few}, which takes {MIN_ROWS}; --model kernel is fitted without them, and gtx benchmark compares them"
    return None


def blend_weights(task: NumericTask, network: Tensor, kernel: Tensor, val: MoleculeStore) -> Tensor:
    r"""Fit the weight of the kernel in each prediction, float64 `[P]`, from 0 to 1.

    The weight of a target is its posterior mean given the validation rows, for the prior Beta(a, b), see `PRIOR`,

    \[ \frac{\int_0^1 s\, q(s)\, ds}{\int_0^1 q(s)\, ds}, \qquad q(s) = p(y \mid s)\, s^{a - 1} (1 - s)^{b - 1}. \]

    With few rows it stays near 0.6. For molecules unlike the validation rows this is safer than the weight that
    predicts validation rows best (experiments/TRIED.md). A target with fewer than `MIN_ROWS` rows has weight 0.

    Args:
        task: the fitted task.
        network, kernel: outputs for validation rows, float64 `[m, C]` and `[m, P]`.
        val: validation rows, with targets in their own units.
    """
    y = task.objective.scale(val).double()
    network = network[:, : task.objective.num_predictions]
    nll = torch.stack([task.objective.nll(torch.lerp(network, kernel.double(), weight), y) for weight in WEIGHTS])
    a, b = PRIOR
    prior = (a - 1) * WEIGHTS.log() + (b - 1) * (1 - WEIGHTS).log()
    posterior = torch.softmax(prior[:, None] - nll, 0)  # [weights, T]
    mean = (WEIGHTS[:, None] * posterior).sum(0) * ((~y.isnan()).sum(0) >= MIN_ROWS)
    return mean.repeat_interleave(torch.tensor(task.objective.widths))


def _predictions(answers: Answers) -> Predictions:
    if not isinstance(answers, Predictions):
        raise TypeError(f"expected predictions of numbers or classes, got {type(answers).__name__}")
    return answers
