"""Training, as one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pytorch_lightning.utilities.seed import isolate_rng

from gtx.data import MoleculeStore
from gtx.errors import InputError
from gtx.training.member import Member
from gtx.training.run import RunFolder, run_config
from gtx.training.settings import TrainSettings
from gtx.training.surroundings import interruptible, quiet, threads
from gtx.training.targets import EXTENSIVE, TargetScaler, composition, tells_elements
from gtx.training.trainer import Problem, train_member


def fit(
    store: MoleculeStore,
    split: Mapping[str, np.ndarray],
    task: str,
    target_names: Sequence[str],
    model_spec: dict[str, Any],
    settings: TrainSettings,
    out: str | Path,
    fingerprint: dict[str, Any],
    *,
    overwrite: bool = False,
    start: Sequence[Member] = (),
    keep_scaler: bool = True,
) -> list[Member]:
    """Train an ensemble in the folder `out`; called again with the same arguments it goes on where it was stopped.

    Members that are done are read, one that was killed goes on from its last whole epoch, and on one CPU thread the
    weights end up the same to the last bit.

    Args:
        store: all molecules, with targets in their own units, NaN for blanks.
        split: int64 indices into the store, `"train"` and, if any, `"val"`; others are not looked at, nor are molecules
            without any value.
        task: `"regression"` or `"classification"` (targets 0 and 1).
        target_names: one per column of `store.y`.
        model_spec: `{"name": a function of gtx.models, "arguments": {...}}`.
        settings: how to train.
        out: the run's folder.
        fingerprint: plain values that tell the data, the featuriser and the split from any other, for `config.yaml`.
        overwrite: train anew whatever `out` holds.
        start: trained members to go on from; member k starts from `start[k % len(start)]`, and with a fresh head if
            the number of targets differs.
        keep_scaler: with `start`, keep its scaler where the number of targets is the same; the targets should then
            mean the same.

    Returns:
        The trained members.

    Raises:
        InputError: `out` holds a run of other settings or data, a target has no training value, there are no training
            molecules, the model or the loss does not suit, or training diverged.
    """
    train, val = (_labelled(store, split.get(part, ())) for part in ("train", "val"))
    _check(train, target_names, task, settings.element_reference)
    settings, run = settings.settled(task), RunFolder(out)
    run.open(run_config(task, target_names, model_spec, settings, fingerprint), overwrite)
    scaler = _scaler(train, task, settings, start if keep_scaler else ())
    reference = composition(train) if scaler.reference is not None else None
    problem = Problem(
        train.with_targets(scaler.scale(train.y.cpu(), reference)),
        val,
        scaler,
        target_names,
        model_spec,
        settings,
        start,
    )
    with isolate_rng(), quiet(), interruptible(), threads(settings.threads):
        return [train_member(problem, k, run.member(k)) for k in range(settings.ensemble)]


def _labelled(store: MoleculeStore, rows: Sequence[int]) -> MoleculeStore:
    """The molecules of `rows` that have a value; others can neither teach nor judge."""
    rows = np.asarray(rows, np.int64)
    return store.subset(rows[(~store.y[rows].isnan()).any(1).cpu().numpy()])


def _check(train: MoleculeStore, names: Sequence[str], task: str, element_reference: bool | None) -> None:
    if len(train) == 0:
        raise InputError("there are no training molecules with a target value")
    for name, blank in zip(names, train.y.isnan().all(0).tolist(), strict=True):
        if blank:
            raise InputError(f"target {name!r} has no value among the training molecules")
    if task == "classification":
        if element_reference:
            raise InputError("element_reference: classes have none; leave it out")
        classes = [column[~column.isnan()].unique().tolist() for column in train.y.T]
        if all(len(found) == 1 for found in classes):  # of several targets some may be so rare
            held = ", ".join(
                f"{name!r} only the class {found[0]:.0f}" for name, found in zip(names, classes, strict=True)
            )
            raise InputError(f"classification needs both 0 and 1 among the training molecules; there {held} occurs")


def _scaler(train: MoleculeStore, task: str, settings: TrainSettings, start: Sequence[Member]) -> TargetScaler:
    if start and start[0].scaler.task == task and len(start[0].scaler.mean) == train.y.shape[1]:
        return start[0].scaler
    asked = settings.element_reference
    if task == "classification" or asked is False or (asked is None and not tells_elements(train)):
        return TargetScaler.fit(train.y, task)
    return TargetScaler.fit(train.y, task, composition(train), None if asked else EXTENSIVE)
