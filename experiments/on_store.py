"""Training on molecules that do not come from a table: a store and a split in, a run in the archive out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from experiments.public_sets import FitResult, LoadedRun, Run
from experiments.record import kept, write
from gtx.data import Duplicates, MoleculeStore, PairBudgetSampler, Split
from gtx.dataset import Dataset, DataSettings, sha256
from gtx.tasks import Regression
from gtx.training import Member, TrainSettings, fit


class Molecules(NamedTuple):
    """What a recipe trains on.

    Attributes:
        store: the molecules, with targets in their own units.
        split: their indices of "train", "val" and "test".
        rows: the row of each molecule in its table or file, from 0.
        names: of the targets.
        source: the file they came from.
    """

    store: MoleculeStore
    split: Split
    rows: np.ndarray
    names: Sequence[str]
    source: Path


class Study(NamedTuple):
    """One run.

    Attributes:
        run: which set, model and seed.
        molecules: what it is trained on.
        task: what is learned.
        make: makes the model.
        spec: the model in plain values, for the record.
        settings: how; its seed is the run's.
        title: what a table calls the model.
        command: that makes the run again.
        most: weights it may have at most.
    """

    run: Run
    molecules: Molecules
    task: Regression
    make: Callable[[], nn.Module]
    spec: dict[str, Any]
    settings: TrainSettings
    title: str
    command: str
    most: int | None = None


def execute(study: Study, results: Path, runs: Path) -> dict[str, Any]:
    """Train, or go on where training was stopped, predict, and write the result; read it where it is there.

    A result that another command made is kept and said to be.

    Raises:
        ValueError: the model has more weights than it may.
    """
    run, molecules, settings = study.run, study.molecules, study.settings
    if found := kept(run, study.command, results):
        return found
    _check_size(study)
    folder = run.folder(runs)
    resumed, processor = (folder / "config.yaml").exists(), time.process_time()
    marks = {"data": sha256(molecules.source), "split": {k: len(v) for k, v in molecules.split.items()}}
    train, val = (molecules.store.subset(molecules.split[part]) for part in ("train", "val"))
    (member,) = fit(study.make, study.task, train, val, settings, folder, marks=marks | {"model": study.spec})
    figures = {
        "title": study.title,
        "seconds": round(sum(row["seconds"] for row in member.history), 1),  # of all epochs, resumed or not
        "cpu_seconds": round(time.process_time() - processor, 1),
        "resumed": resumed,
        "best_epoch": member.best_epoch,
    }
    answer = FitResult(
        predict(member, molecules.store),
        sum(p.numel() for p in member.model.parameters()),
        {
            "model": study.spec,
            "task": study.task.config(),
            "training": {k: v for k, v in settings.decisive().items() if k != "seed"},
        },
    )
    measured = molecules.store.y.numpy()[molecules.split["test"]]
    return write(_problem(study, runs), answer, figures, study.command, results, settings.threads, measured)


@torch.inference_mode()
def predict(member: Member, store: MoleculeStore) -> np.ndarray:
    """float64 `[m, T]` in the targets' own units, for any model that takes a batch."""
    output = torch.empty(len(store), member.task.out_channels, dtype=torch.float64)
    for rows in PairBudgetSampler(store.sizes, 50_000, max_molecules=256, shuffle=False):
        output[rows] = member.model(store.batch(rows)).double()
    return member.task.unscaled(output, store).numpy()


def _check_size(study: Study) -> None:
    weights = sum(p.numel() for p in study.make().parameters())
    if study.most is not None and weights > study.most:
        raise ValueError(f"expected a model of at most {study.most:,} weights, got {weights:,}")


def _problem(study: Study, runs: Path) -> LoadedRun:
    store, split, rows, names, source = study.molecules
    nothing = Duplicates(0, 0)
    dataset = Dataset([], study.task, store, rows, [], split, study.run.public_set.splits[0], nothing, {})
    return LoadedRun(study.run, DataSettings(str(source), tuple(names)), dataset, runs)
