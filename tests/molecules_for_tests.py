"""Real molecules that between them have what breaks things."""

from copy import copy

import torch
from torch_geometric.data import Batch

from gtx.data import FeaturisationResult, MoleculeStore, featurise
from gtx.molecules import Featuriser
from gtx.testing import SMILES, renumbered

__all__ = ["CODE_SIZES", "RINGS", "SMILES", "featurised", "in_double", "renumbered", "store", "whole_batch"]

RINGS = [
    "c1ccc2ccccc2c1",  # naphthalene: fused
    "C1CCC2(CC1)CCOC2",  # spiro
    "C1CC2CCC1C2",  # norbornane: bridged
    "C12C3C4C1C5C2C3C45",  # cubane: many shortest paths
    "C1CCC=CC1",  # cyclohexene: two shortest paths across, over other bonds
]
"""Rings beside those of `SMILES`."""

CODE_SIZES = {"atom_sizes": list(Featuriser().atom_sizes), "bond_sizes": list(Featuriser().bond_sizes)}
"""Arguments of a model for the codes of atoms and bonds."""


def featurised(smiles: list[str] = SMILES, **settings: object) -> FeaturisationResult:
    return featurise(Featuriser(**settings), smiles, workers=0)


def store(smiles: list[str] = SMILES, **settings: object) -> MoleculeStore:
    return featurised(smiles, **settings).store


def whole_batch(smiles: list[str] = SMILES, **settings: object) -> Batch:
    made = store(smiles, **settings)
    return made.batch(torch.arange(len(made)))


def in_double(batch: Batch) -> Batch:
    return copy(batch).apply(lambda values: values.double() if values.is_floating_point() else values)
