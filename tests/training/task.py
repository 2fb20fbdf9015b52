"""A small real task: substituted benzenes and their octanol-water partition (Crippen's estimate, log units)."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import Chem
from rdkit.Chem.Crippen import MolLogP
from torch import nn

from gtx.data import MoleculeStore, featurise
from gtx.models import standard
from gtx.molecules import Featuriser
from gtx.tasks import NumericTask, Regression
from gtx.training import TrainedMember, TrainSettings, fit
from tests.molecules_for_tests import CODE_SIZES

GROUPS = ("C", "O", "N", "F", "Cl", "C#N", "C(=O)O", "OC", "C(F)(F)F")
SMILES = [f"c1c({a})cc({b})cc1{c}" for a, b, c in product(GROUPS, GROUPS[:4], GROUPS[4:6])]  # 72
FEATURISER = Featuriser()
LOGP = np.array([[MolLogP(Chem.MolFromSmiles(smiles))] for smiles in SMILES])
_ORDER = np.random.default_rng(0).permutation(len(SMILES))
SPLIT = {"train": _ORDER[:48], "val": _ORDER[48:60], "test": _ORDER[60:]}
MARKS = {"data": {"file": "benzenes", "rows": len(SMILES)}}
SMALL: dict[str, Any] = {"epochs": 4, "batch_molecules": 16, "threads": 1, "progress": False, "accelerator": "cpu"}


def store(y: np.ndarray = LOGP) -> MoleculeStore:
    return featurise(FEATURISER, SMILES, workers=0).store.with_targets(y)


def model(task: NumericTask, **arguments: Any) -> nn.Module:
    """A small one."""
    width = {"channels": 16, "layers": 1, "heads": 2, "num_descriptors": FEATURISER.num_descriptors} | arguments
    return standard(task.objective.out_channels, **CODE_SIZES, **width)


@dataclass(frozen=True)
class Maker:
    """Function that makes the small model, in other processes too; runs know it by its name."""

    task: NumericTask
    arguments: dict[str, Any]
    __name__ = "model"

    def __call__(self) -> nn.Module:
        return model(self.task, **self.arguments)


def train(out: Path, y: np.ndarray = LOGP, task: NumericTask | None = None, **changes: Any) -> list[TrainedMember]:
    """Train the small model; `changes` are settings, other arguments of `fit`, or `model_arguments`."""
    # Crippen's estimate is nearly a sum over these atoms, and would be taken off
    task = task or Regression([f"y{t}" for t in range(y.shape[1])], element_reference=False)
    given = {k: changes.pop(k) for k in ("marks", "overwrite", "start") if k in changes}
    split, arguments = changes.pop("split", SPLIT), changes.pop("model_arguments", {})
    molecules = store(y)
    train, val = (molecules.subset(split.get(part, _ORDER[:0])) for part in ("train", "val"))
    settings = TrainSettings(**{**SMALL, **changes})
    if settings.folds > 1:  # networks that differ by their seeds alone
        order = np.concatenate([split["train"], split["val"]])
        rows = {part: np.flatnonzero(np.isin(order, split[part])) for part in ("train", "val")}
        train, given["folds"] = molecules.subset(order), [rows] * settings.folds
        task = task.fit(molecules.subset(split["train"]))
    return fit(Maker(task, arguments), task, train, val, settings, out, **{"marks": MARKS, **given})
