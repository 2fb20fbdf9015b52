"""Molecules whose properties are known exactly, and a report on them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from gtx.data import MoleculeStore, featurise
from gtx.molecules import Featuriser
from gtx.report.context import NumericReport
from gtx.tasks import NumericTask, Regression

ENDS = ["C", "O", "N", "F", "S", "C(=O)O", "C#N", "c1ccccc1", "C(C)C", "OC"]
SMILES = [left + "C" * n + right for n in (1, 2, 3) for i, left in enumerate(ENDS[:5]) for right in ENDS[i:]]
ORDER = np.random.default_rng(0).permutation(len(SMILES))
SPLIT = {"train": ORDER[:80], "val": ORDER[80:100], "test": ORDER[100:]}


@cache
def store_of(smiles: tuple[str, ...]) -> MoleculeStore:
    return featurise(Featuriser(), smiles, workers=0).store


def additive(smiles: str) -> float:
    """A sum of contributions of atoms."""
    return 0.5 * smiles.upper().count("C") - 1.5 * smiles.count("O") + 0.8 * smiles.count("N")


def measured() -> np.ndarray:
    """`[n, 2]`: an additive property with a few blanks, and the number of letters."""
    values = np.array([[additive(smiles), len(smiles)] for smiles in SMILES], dtype=float)
    values[::9, 0] = np.nan
    return values


def facts(**changes: Any) -> dict[str, Any]:
    """What every report tells of a run on some molecules."""
    smiles = changes.get("smiles", SMILES)
    history = [{"epoch": i, "lr": 1e-3, "train_loss": 1 / (i + 1), "val_loss": 2 / (i + 1)} for i in range(5)]
    return {
        "title": "Chains",
        "smiles": smiles,
        "store": changes.get("store") or store_of(tuple(smiles)),
        "row_numbers": np.arange(1, len(smiles) + 1),
        "split": SPLIT,
        "source": "chains.csv",
        "rows": len(SMILES) + 1,
        "errors": 1,
        "summary": "121 rows: 120 read, 1 error",
        "split_summary": "random, seed 0",
        "first_errors": ['row 3, column "smiles", value "C1CC": unclosed ring'],
        "histories": [history],
        "settings": {"training": {"epochs": 5}},
        "versions": {"gtx": "0.1.0"},
        "model_file": "run/model.gtx",
        **changes,
    }


@pytest.fixture
def y() -> np.ndarray:
    return measured()


@pytest.fixture
def make_report(y: np.ndarray) -> Callable[..., NumericReport]:
    """Reports on `SMILES`; of a model whose errors have a standard deviation of 0.2."""

    def make(
        kind: type[NumericTask] = Regression, targets: tuple[str, ...] = ("additive", "letters"), **changes: object
    ) -> NumericReport:
        measured = y[:, : len(targets)]
        prediction = measured + np.random.default_rng(1).normal(0, 0.2, measured.shape)
        task = kind(targets)
        if task.discrete:
            classes = np.where(np.isnan(measured), np.nan, measured > np.nanmedian(measured, 0))
            measured, prediction = classes, np.clip(0.2 + 0.6 * classes + prediction - measured, 0, 1)
        prediction = np.nan_to_num(prediction)
        low, high = (None, None) if task.discrete else (prediction - 0.3, prediction + 0.3)
        own = {"task": task, "y": measured, "prediction": prediction, "low": low, "high": high}
        settings = facts(**own | changes)
        if "scores" not in settings:
            settings["scores"] = _scores(settings, settings["prediction"])
        if "baselines" not in settings:
            settings.setdefault("rivals", _rivals(settings))
            settings["baselines"] = {name: _scores(settings, said) for name, said in settings["rivals"].items()}
        return NumericReport(**settings)

    return make


def _scores(settings: dict, prediction: np.ndarray) -> dict:
    y, task = settings["y"], settings["task"]
    return {part: task.objective.evaluate(y[rows], prediction[rows]) for part, rows in settings["split"].items()}


def _rivals(settings: dict) -> dict[str, np.ndarray]:
    mean = np.tile(np.nanmean(settings["y"][settings["split"]["train"]], 0), (len(SMILES), 1))
    linear = "logistic" if settings["task"].discrete else "ridge"
    halfway = (mean + settings["prediction"]) / 2
    return {"mean": mean, linear: halfway, "random_forest": 0.9 * mean + 0.1 * settings["prediction"]}
