"""One fold of a benchmark: gtx and the baselines learn from the same rows and predict the same others."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gtx.baselines import beside, predict_baselines
from gtx.data import FeatureColumns, MoleculeStore, Split
from gtx.files import write_text
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.prediction import ModelHeader
from gtx.prediction.training_rows import TrainingRows
from gtx.tasks import NumberTask
from gtx.training import RunFolder, TrainSettings, fit, run_config
from gtx.workflow.mixing import mixed
from gtx.workflow.specs import learned_spec, model_spec

OWN = "gtx"


@dataclass(frozen=True)
class Fold:
    """One fold of a benchmark, with all it takes to run it in a process of its own.

    Attributes:
        store: the molecules, with targets in their own units.
        smiles: their canonical SMILES.
        task: what is learned, settled by the table.
        split: molecule indices of "train", "val" and "test".
        settings: how gtx trains; its seed also decides the forest.
        featuriser: how the molecules were read.
        features: what the table says beside them.
        marks: plain values that tell data and split from any other.
        folder: where its run lies.
    """

    store: MoleculeStore
    smiles: Sequence[str]
    task: NumberTask
    split: Split
    settings: TrainSettings
    featuriser: Featuriser
    features: FeatureColumns | None
    marks: dict[str, Any]
    folder: Path

    def found(self) -> dict[str, Any] | None:
        """What `run` found before, if it came to its end.

        Raises:
            InputError: the folder holds a run of other settings, data or rows.
        """
        run = RunFolder(self.folder)
        run.open(run_config(self.fitted, self.settings, self.marks | {"model": self.spec}))
        return json.loads(self.result_file.read_text()) if run.finished and self.result_file.exists() else None

    def run(self) -> dict[str, Any]:
        """Train and score; called again after an interruption it goes on.

        Returns:
            `rows` (how many of each part), `test` (their molecule indices), `scores` (by method, of the test rows, as
            of `NumberTask.evaluate`), `predictions` (by method `[rows][outputs]`, None where there is no finite
            number), `seconds`, `parameters` and `batch_pairs` (as trained with, of each member) of gtx.

        Raises:
            InputError: the folder holds a run of other settings, data or rows, or training is impossible.
        """
        begun, test, task, spec = time.perf_counter(), self.split["test"], self.fitted, self.spec
        train, val = (self.store.subset(self.split[part]) for part in ("train", "val"))
        make = functools.partial(build_model, spec)
        members = fit(make, task, train, val, self.settings, self.folder, marks=self.marks | {"model": spec})
        kept = TrainingRows.drawn([self.smiles[i] for i in self.split["train"]], self.split["train"], {})
        described = learned_spec(spec, members[0].model)
        header = ModelHeader(task, self.featuriser, described, features=self.features, training=kept)
        both = mixed(members, header, self.store, self.split, self.settings)
        predictions = {OWN: both.answers.mean[test]}
        seconds = time.perf_counter() - begun
        y, more = self.store.y.numpy(), {"seed": self.settings.seed, **beside(self.store, task), "kernel": both.kernel}
        for name, prediction, _ in predict_baselines(self.smiles, y, self.split, task, **more):
            predictions[name] = prediction[test]
        result = {
            "rows": {part: len(rows) for part, rows in self.split.items()},
            "test": test.tolist(),
            "scores": {name: task.evaluate(y[test], prediction) for name, prediction in predictions.items()},
            "predictions": {name: _plain(prediction) for name, prediction in predictions.items()},
            "seconds": round(seconds, 1),
            "parameters": sum(p.numel() for p in members[0].model.parameters()),
            "batch_pairs": [member.batch_pairs for member in members],
        }
        write_text(self.result_file, json.dumps(result, allow_nan=False))
        RunFolder(self.folder).finish()
        return result

    @property
    def spec(self) -> dict[str, Any]:
        """The model, as of `model_spec`."""
        return model_spec(self.settings, self.featuriser, self.task, len(self.split["train"]), self.features)

    @cached_property
    def fitted(self) -> NumberTask:
        """The task, with what it learns of the training rows."""
        return self.task.fitted(self.task.labelled(self.store.subset(self.split["train"])))

    @property
    def result_file(self) -> Path:
        """Where its result lies."""
        return self.folder / "result.json"

    def epochs_done(self) -> int:
        """Epochs that gtx has come through, of `settings.epochs` times `settings.ensemble`; all where it is done."""
        if self.result_file.exists():
            return self.settings.epochs * self.settings.ensemble
        logs = self.folder.glob("members/*/log.csv")
        return sum(max(0, len(log.read_bytes().splitlines()) - 1) for log in logs)


def seeded(settings: TrainSettings, number: int) -> TrainSettings:
    """The settings of split `number`: another seed for each, and nothing on the terminal."""
    return replace(settings, seed=settings.seed + number, progress=False)


def _plain(prediction: np.ndarray) -> list[list[float | None]]:
    return [[value if np.isfinite(value) else None for value in row] for row in prediction.tolist()]
