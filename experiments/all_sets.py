"""The sets of the recipes by folder of results, and the error of predictions on one."""

from __future__ import annotations

import numpy as np

from experiments import mat, moleculeace, scaffold
from experiments.runs import PublicSet, Run
from experiments.summary import HIGHER, mean_score
from gtx.base.errors import InputError
from gtx.data.public_datasets import load_public_dataset

SETS: dict[str, PublicSet] = {
    each.folder: each for module in (moleculeace, scaffold, mat) for each in module.SETS.values()
}


def error(y: np.ndarray, predicted: np.ndarray, run: Run) -> float:
    """Compute the RMSE, or 1 - ROC-AUC, mean over targets."""
    metric = run.public_set.metric
    score = float(mean_score(y, predicted[None], np.ones((1, len(y))), metric)[0])
    return 1 - score if metric in HIGHER else score


def available() -> list[str]:
    """List the sets whose file is there, without Tox21, whose twelve patterns of blanks take an hour."""
    found = []
    for folder, each in SETS.items():
        try:
            there = load_public_dataset(each.name, download=False).path.exists()
        except InputError:
            there = False
        if there and each.name != "scaffold/tox21":
            found.append(folder)
    return found
