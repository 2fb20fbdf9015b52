"""One split of a benchmark: gtx and the baselines learn from the same rows and predict the same others."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gtx.data import MoleculeStore, Split
from gtx.molecules import Featuriser
from gtx.prediction import ModelHeader, Predictor
from gtx.report import predict_baselines
from gtx.training import RunFolder, TrainSettings, evaluate, fit, run_config
from gtx.workflow.pipeline import model_spec

OWN = "gtx"


@dataclass(frozen=True)
class Contest:
    """One split of a benchmark, with all it takes to run it in a process of its own.

    Attributes:
        store: the molecules, with targets in their own units.
        smiles: their canonical SMILES.
        task: "regression" or "classification".
        names: of the targets.
        split: molecule indices of "train", "val" and "test".
        settings: how gtx trains; its seed also decides the forest.
        featuriser: how the molecules were read.
        marks: plain values that tell data and split from any other.
        folder: where its run lies.
    """

    store: MoleculeStore
    smiles: Sequence[str]
    task: str
    names: Sequence[str]
    split: Split
    settings: TrainSettings
    featuriser: Featuriser
    marks: dict[str, Any]
    folder: Path

    def run(self) -> dict[str, Any]:
        """Train and score, or read what was found before; called again after an interruption it goes on.

        Returns:
            `rows` (how many of each part), `test` (their molecule indices), `scores` (by method, of the test rows, as
            of `gtx.training.evaluate`), `predictions` (by method `[rows][targets]`, None where there is no finite
            number), `seconds` and `parameters` of gtx.

        Raises:
            InputError: the folder holds a run of other settings, data or rows, or training is impossible.
        """
        result_file, run = self.folder / "result.json", RunFolder(self.folder)
        spec = model_spec(self.settings, self.featuriser, len(self.names), len(self.split["train"]))
        run.open(run_config(self.task, self.names, spec, self.settings, self.marks))
        if run.finished and result_file.exists():
            return json.loads(result_file.read_text())
        begun, test = time.perf_counter(), self.split["test"]
        members = fit(self.store, self.split, self.task, self.names, spec, self.settings, self.folder, self.marks)
        header = ModelHeader(self.task, list(self.names), self.featuriser, spec, members[0].scaler)
        predictor = Predictor(
            [member.model for member in members], header, "cpu" if self.settings.accelerator == "cpu" else None
        )
        predictions = {OWN: predictor.predict_store(self.store.subset(test)).mean}
        seconds = time.perf_counter() - begun
        y = self.store.y.numpy()
        for name, prediction, _ in predict_baselines(
            self.smiles, y, self.split, self.task, self.names, self.settings.seed
        ):
            predictions[name] = prediction[test]
        result = {
            "rows": {part: len(rows) for part, rows in self.split.items()},
            "test": test.tolist(),
            "scores": {
                name: evaluate(y[test], prediction, self.task, self.names) for name, prediction in predictions.items()
            },
            "predictions": {name: _plain(prediction) for name, prediction in predictions.items()},
            "seconds": round(seconds, 1),
            "parameters": sum(p.numel() for p in members[0].model.parameters()),
        }
        partial = result_file.with_suffix(".partial")
        partial.write_text(json.dumps(result, allow_nan=False))
        partial.replace(result_file)
        run.finish()
        return result

    def epochs_done(self) -> int:
        """Epochs that gtx has come through, of `settings.epochs` times `settings.ensemble`; all where it is done."""
        if (self.folder / "result.json").exists():
            return self.settings.epochs * self.settings.ensemble
        logs = self.folder.glob("members/*/log.csv")
        return sum(max(0, len(log.read_bytes().splitlines()) - 1) for log in logs)


def seeded(settings: TrainSettings, number: int) -> TrainSettings:
    """The settings of split `number`: another seed for each, and nothing on the terminal."""
    return replace(settings, seed=settings.seed + number, progress=False)


def _plain(prediction: np.ndarray) -> list[list[float | None]]:
    return [[value if np.isfinite(value) else None for value in row] for row in prediction.tolist()]
