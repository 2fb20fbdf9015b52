"""Recipes whose molecules come from no table: a store and a split in, a run in the archive out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from experiments.problem import Answer, Problem, Run
from experiments.record import kept, write
from gtx.data import Duplicates, MoleculeStore, PairBudgetSampler, Split
from gtx.training import Member, TrainSettings, composition, fit
from gtx.workflow import DataSettings
from gtx.workflow.dataset import Dataset, sha256


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
        spec: `{"name": a function of gtx.models, "arguments": {...}}`.
        settings: how; its seed is the run's.
        title: what a table calls the model.
        command: that makes the run again.
        most: weights it may have at most.
    """

    run: Run
    molecules: Molecules
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
    given = molecules.store, molecules.split, "regression", molecules.names, study.spec, settings
    (member,) = fit(*given, folder, marks)
    figures = {
        "title": study.title,
        "seconds": round(sum(row["seconds"] for row in member.history), 1),  # of all epochs, resumed or not
        "cpu_seconds": round(time.process_time() - processor, 1),
        "resumed": resumed,
        "best_epoch": member.best_epoch,
    }
    answer = Answer(
        predict(member, molecules.store),
        sum(p.numel() for p in member.model.parameters()),
        {"model": study.spec, "training": {k: v for k, v in settings.decisive().items() if k != "seed"}},
    )
    measured = molecules.store.y.numpy()[molecules.split["test"]]
    return write(_problem(study, runs), answer, figures, study.command, results, settings.threads, measured)


@torch.inference_mode()
def predict(member: Member, store: MoleculeStore) -> np.ndarray:
    """float64 `[m, T]` in the targets' own units, for any model that takes a batch."""
    output = torch.empty(len(store), len(member.scaler.mean), dtype=torch.float64)
    for rows in PairBudgetSampler(store.sizes, 50_000, max_molecules=256, shuffle=False):
        output[rows] = member.model(store.batch(rows)).double()
    counts = composition(store) if member.scaler.reference is not None else None
    return member.scaler.unscale(output, counts).numpy()


def _check_size(study: Study) -> None:
    from gtx.models import ARCHITECTURES

    weights = sum(p.numel() for p in ARCHITECTURES[study.spec["name"]].make(**study.spec["arguments"]).parameters())
    if study.most is not None and weights > study.most:
        raise ValueError(f"expected a model of at most {study.most:,} weights, got {weights:,}")


def _problem(study: Study, runs: Path) -> Problem:
    store, split, rows, names, source = study.molecules
    nothing = Duplicates(0, 0, 0)
    dataset = Dataset([], "regression", store, rows, [], split, study.run.benchmark.splits[0], nothing, {})
    return Problem(study.run, DataSettings(str(source), tuple(names)), dataset, runs)
