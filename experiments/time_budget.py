"""The number of epochs that fit into some hours: measured once and kept, so that a run continues as it began."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from gtx.data import MoleculeStore, PairBudgetSampler
from gtx.tasks import Task
from gtx.training import TrainSettings
from gtx.training.optimise import adamw

TRIED, WARM_UP = 12, 3  # batches
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
    """Wall time of an epoch, by a few of its batches; leaves nothing behind."""
    before = torch.get_num_threads()
    torch.set_num_threads(settings.threads or before)
    most = settings.molecules_per_batch(len(store))
    batches = PairBudgetSampler(
        store.sizes, settings.batch_pairs, max_molecules=most, jitter=settings.jitter, seed=settings.seed
    ).batches()
    with torch.random.fork_rng([]):
        model, task = make(), task.fitted(store)
        examples, optimiser = task.examples(store), adamw(model, settings.lr, settings.weight_decay)
        begun = 0.0
        tried = batches[: TRIED + WARM_UP]
        for number, rows in enumerate(tried):
            if number == min(WARM_UP, len(tried) - 1):
                begun = time.perf_counter()
            batch = examples.batch(rows)
            optimiser.zero_grad()
            task.training_loss(task.forward(model, batch), batch).backward()
            optimiser.step()
        seconds = time.perf_counter() - begun
    torch.set_num_threads(before)
    return OVERHEAD * seconds * len(batches) / (len(tried) - min(WARM_UP, len(tried) - 1))
