"""Real molecules that between them have what breaks things."""

from __future__ import annotations

import torch
from torch_geometric.data import Batch

from gtx.data import Featurised, MoleculeStore, featurise
from gtx.molecules import Featuriser
from gtx.testing import SMILES, renumbered

__all__ = ["SMILES", "featurised", "renumbered", "store", "whole_batch"]


def featurised(smiles: list[str] = SMILES, **settings: object) -> Featurised:
    return featurise(Featuriser(**settings), smiles, workers=0)


def store(smiles: list[str] = SMILES, **settings: object) -> MoleculeStore:
    return featurised(smiles, **settings).store


def whole_batch(smiles: list[str] = SMILES, **settings: object) -> Batch:
    made = store(smiles, **settings)
    return made.batch(torch.arange(len(made)))
