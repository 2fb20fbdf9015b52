"""The network and a kernel in closed form, blended and calibrated as validation rows say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from gtx.closed_form import closed_form_targets, fit_closed_form, outputs_of, why_no_closed_form
from gtx.data import MoleculeStore
from gtx.data.columns import listed
from gtx.data.ledger import counted
from gtx.kernel import KernelRidge
from gtx.models import build_model
from gtx.prediction import ModelHeader, Predictor
from gtx.prediction.kernel_member import KernelMember, blend_outputs
from gtx.prediction.loading import attach_foundation
from gtx.prediction.neighbours import TrainingRows
from gtx.tasks import NumberTask, Task
from gtx.tasks.task import Answers
from gtx.training import Member, TrainSettings
from gtx.workflow.specs import kernel_parts, kernel_spec, learned_spec

FEWEST = 10
"""Validation rows of a target, for it to say anything of a share."""
LEAST = 0.05
"""A smaller share is none: the file need not hold a kernel for it."""
SHARES = torch.linspace(0, 1, 101, dtype=torch.float64)


@dataclass(frozen=True)
class Blended:
    """Predictions of trained networks blended with a kernel, for all molecules of a store.

    Attributes:
        predictor: of both; its intervals, spread and probabilities are calibrated on validation rows.
        answers: its answers for all molecules of the store.
        outputs: its outputs, see `gtx.prediction.Predictor.outputs`; for validation rows those of a kernel that has not
            seen them.
        alone: answers of the parts by name, not calibrated, where there is more than one.
        kernel: as solved for the training rows alone, whether it has a share or not; None where it was not.
        note: what there is to say of it.
    """

    predictor: Predictor
    answers: Answers
    outputs: Any
    alone: Mapping[str, Answers]
    kernel: KernelRidge | None
    note: str | None

    @classmethod
    def calibrated(
        cls,
        store: MoleculeStore,
        val: np.ndarray,
        unseen: list[str | None],
        predictor: Predictor,
        outputs: Any,
        kernel: KernelRidge | None,
        note: str | None,
        alone: Mapping[str, Tensor] | None = None,
    ) -> Self:
        """With what the task learns of validation rows.

        Args:
            store: all molecules, with targets in their own units.
            val: rows of the store.
            unseen, outputs: what the predictor says of the store, see `gtx.prediction.Predictor.outputs`.
            predictor: not calibrated yet.
            kernel, note: see the attributes.
            alone: outputs of the parts by name.
        """
        answers = predictor.answers(store, outputs, unseen)
        task = predictor.task.calibrated(answers.subset(val), store.y.numpy()[val])
        fitted = predictor.with_header(replace(predictor.header, task=task))
        parts = {name: predictor.answers(store, own, unseen) for name, own in (alone or {}).items()}
        return cls(fitted, fitted.answers(store, outputs, unseen), outputs, parts, kernel, note)


def blend(
    members: Sequence[Member],
    header: ModelHeader,
    store: MoleculeStore,
    split: Mapping[str, np.ndarray],
    settings: TrainSettings,
    learned: Callable[[], TrainingRows] | None = None,
) -> Blended:
    """Trained networks with a kernel that learned from the same training rows, as far as validation rows ask for one;
    and intervals, spread and probabilities of both, calibrated on validation rows.

    When the shares are settled, the kernel is solved anew for the training and the validation rows together: there is
    nothing left to decide, and more rows make it better. What it says of a validation row is kept from before, so that
    scores and intervals of these rows are those of molecules that it has not seen.

    Args:
        members: trained.
        header: of their file.
        store: all molecules, with targets in their own units.
        split: rows of "train" and "val".
        settings: whether to blend, and where the networks run.
        learned: gives the rows that the model file keeps in place of the header's where the kernel learns from
            validation rows.
    """
    device = "cpu" if settings.accelerator == "cpu" else None
    predictor = Predictor([member.model for member in members], header, device)
    outputs, unseen = predictor.outputs(store)
    calibrated = partial(Blended.calibrated, store, split["val"], unseen)
    train, val = (store.subset(split[part]) for part in ("train", "val"))
    if isinstance(members[0].model, KernelRidge):
        return calibrated(predictor, outputs, members[0].model, None)
    if settings.blend == "no" or (reason := why_not(header.task, train, val)):
        usual = settings.blend == "no" or header.task.writes or header.task.per != "molecule"
        note = None if usual else f"the network alone: {reason}"
        return calibrated(predictor, outputs, None, note)
    spec = kernel_spec(header.task, header.featuriser, header.features, parts=kernel_parts(settings, header.featuriser))
    kernel = fitted_kernel(spec, header.task, train)
    rows = torch.from_numpy(split["val"])
    held_out = outputs_of(kernel, val)
    share = shares(header.task, outputs[rows].mean(1), held_out, val)
    if (share < LEAST).all():
        note = "the network alone: blending with a kernel would not improve the validation score"
        return calibrated(predictor, outputs, kernel, note)
    whole = fitted_kernel(spec, header.task, store.subset(np.sort(np.concatenate([split["train"], split["val"]]))))
    own = outputs_of(whole, store)
    own[rows] = held_out
    kernel_member = KernelMember(whole, share.float())
    header = replace(header, partner=learned_spec(spec, whole), training=learned() if learned else header.training)
    alone = {"network": outputs, "kernel": blend_outputs(outputs, own, torch.ones_like(share))}
    note = (
        f"prediction = {kernel_member.describe(header.task)}; weights chosen on {counted(len(val), 'validation row')}"
    )
    few = [name for name, known in zip(header.task.targets, (~val.y.isnan()).sum(0), strict=True) if known < FEWEST]
    note += f"; {listed(few)}: too few of them have a value to weigh a kernel, which takes {FEWEST}" if few else ""
    both = Predictor(predictor.members, header, device, kernel_member)
    return calibrated(both, kernel_member.blend(outputs, own), kernel, note, alone)


def fitted_kernel(spec: Mapping[str, Any], task: NumberTask, molecules: MoleculeStore) -> KernelRidge:
    """A kernel that has learned a fitted task from molecules."""
    kernel = attach_foundation(build_model(spec))
    fit_closed_form(kernel, task, molecules)
    return kernel


def why_not(task: Task, train: MoleculeStore, val: MoleculeStore) -> str | None:
    """Why no kernel can have a share; None if one can."""
    if not isinstance(task, NumberTask) or closed_form_targets(task, train) is None:
        return why_no_closed_form(task, train)
    most = int((~val.y.isnan()).sum(0).max()) if len(val) else 0
    if most < FEWEST:
        few = f"{counted(most, 'validation row')} {'is' if most == 1 else 'are'} too few to weigh a kernel beside it"
        return f"{few}, which takes {FEWEST}; --model kernel needs none, and gtx benchmark compares them"
    return None


def shares(task: NumberTask, network: Tensor, kernel: Tensor, val: MoleculeStore) -> Tensor:
    r"""The share of a kernel in each prediction, float64 `[P]`, from 0 to 1.

    A target's share is the mean of what is likely after its validation rows were seen, if before all shares are
    equally likely: \(\int s\, p(y \mid s)\, ds / \int p(y \mid s)\, ds\). Few rows leave it near 1/2, many lead it to
    the best. A target of fewer than `FEWEST` rows has the network alone.

    Args:
        task: fitted.
        network, kernel: their outputs for validation rows, float64 `[m, C]` and `[m, P]`.
        val: these, with targets in their own units.
    """
    y = task.scaled(val).double()
    network = network[:, : task.num_predictions]
    surprise = torch.stack([task.nll(torch.lerp(network, kernel.double(), share), y) for share in SHARES])
    likely = torch.softmax(-surprise, 0)  # [shares, T]
    each = (SHARES[:, None] * likely).sum(0) * ((~y.isnan()).sum(0) >= FEWEST)
    return each.repeat_interleave(torch.tensor(task.widths))
