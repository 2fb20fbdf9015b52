"""A small real task: substituted benzenes and their octanol-water partition (Crippen's estimate, log units)."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import Chem
from rdkit.Chem.Crippen import MolLogP

from gtx.data import MoleculeStore, featurise
from gtx.molecules import Featuriser
from gtx.training import Member, TrainSettings, fit

GROUPS = ("C", "O", "N", "F", "Cl", "C#N", "C(=O)O", "OC", "C(F)(F)F")
SMILES = [f"c1c({a})cc({b})cc1{c}" for a, b, c in product(GROUPS, GROUPS[:4], GROUPS[4:6])]  # 72
FEATURISER = Featuriser()
LOGP = np.array([[MolLogP(Chem.MolFromSmiles(smiles))] for smiles in SMILES])
_ORDER = np.random.default_rng(0).permutation(len(SMILES))
SPLIT = {"train": _ORDER[:48], "val": _ORDER[48:60], "test": _ORDER[60:]}
FINGERPRINT = {"data": {"file": "benzenes", "rows": len(SMILES)}}
SMALL: dict[str, Any] = {
    "epochs": 4,
    "batch_molecules": 16,
    "element_reference": False,  # Crippen's estimate is nearly a sum over these atoms, and would be taken off
    "threads": 1,
    "progress": False,
    "accelerator": "cpu",
}


def store(y: np.ndarray = LOGP) -> MoleculeStore:
    return featurise(FEATURISER, SMILES, workers=0).store.with_targets(y)


def spec(targets: int = 1, **arguments: Any) -> dict[str, Any]:
    sizes = {"atom_sizes": list(FEATURISER.atom_sizes), "bond_sizes": list(FEATURISER.bond_sizes)}
    width = {"channels": 16, "layers": 1, "heads": 2, "num_descriptors": FEATURISER.num_descriptors}
    return {"name": "standard", "arguments": {"out_channels": targets, **sizes, **width, **arguments}}


def train(out: Path, y: np.ndarray = LOGP, task: str = "regression", **changes: Any) -> list[Member]:
    """Train the small model; `changes` are settings, or other arguments of `fit`."""
    names = [f"y{t}" for t in range(y.shape[1])]
    given = {k: changes.pop(k) for k in ("fingerprint", "overwrite", "start", "split", "model_spec") if k in changes}
    arguments = {"fingerprint": FINGERPRINT, "split": SPLIT, "model_spec": spec(y.shape[1]), **given}
    settings = TrainSettings(**{**SMALL, **changes})
    return fit(store(y), task=task, target_names=names, settings=settings, out=out, **arguments)
