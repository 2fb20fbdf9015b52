"""The number of epochs that fit into some hours: measured once and kept, so that a run continues as it began."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn

from gtx.data import MoleculeStore
from gtx.tasks import Task
from gtx.training import TrainSettings, fit

TRIED = 12  # batches
OVERHEAD = 1.1  # validation, averaging of weights, checkpoints


def epochs_for(
    hours: float, folder: Path, store: MoleculeStore, make: Callable[[], nn.Module], task: Task, settings: TrainSettings
) -> int:
    """The epochs of a run of so many hours; what an earlier call found in this folder holds.

    Args:
        hours: of wall time.
        folder: of the run.
        store: the training molecules, with targets.
        make: makes the model.
        task: what it learns.
        settings: its epochs do not matter.
    """
    file = folder / "pace.json"
    if file.exists():
        found = json.loads(file.read_text())
        if found["hours"] == hours:
            return found["epochs"]
    seconds = epoch_seconds(store, make, task, settings)
    epochs = max(1, int(3600 * hours / seconds))
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"hours": hours, "epoch_seconds": seconds, "epochs": epochs}) + "\n")
    return epochs


def epoch_seconds(store: MoleculeStore, make: Callable[[], nn.Module], task: Task, settings: TrainSettings) -> float:
    """Wall time of an epoch, by the second epoch of a training on a few batches' molecules; leaves nothing behind."""
    most = settings.molecules_per_batch(len(store))
    some = store.subset(torch.randperm(len(store), generator=torch.Generator().manual_seed(0))[: TRIED * most])
    tried = replace(settings, epochs=2, ensemble=1, batch_molecules=most, progress=False)
    with TemporaryDirectory() as folder:
        (member,) = fit(make, task, some, some.subset(torch.zeros(0, dtype=torch.long)), tried, folder)
    return OVERHEAD * member.history[-1]["seconds"] * len(store) / len(some)
