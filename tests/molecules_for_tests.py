"""Real molecules that between them have what breaks things."""

from __future__ import annotations

import torch
from torch_geometric.data import Batch

from gtx.data import Featurised, MoleculeStore, featurise
from gtx.molecules import Featuriser

SMILES = [
    "CC(=O)Oc1ccccc1C(=O)O",  # aspirin
    "C",  # one atom
    "[Na+].[Cl-]",  # a salt without bonds
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",  # caffeine
    "CC(C)C[C@H](NC(=O)[C@@H](N)C)C(=O)O",  # stereocentres
    "F/C=C/F",  # a double bond that cannot turn
    "[2H]OC#N",  # an isotope
    "c1ccc2c(c1)ccc1ccccc12.CCO",  # two molecules
    "C" * 30,  # longer than the longest path with a code of its own
]


def featurised(smiles: list[str] = SMILES, **settings: object) -> Featurised:
    return featurise(Featuriser(**settings), smiles, workers=0)


def store(smiles: list[str] = SMILES, **settings: object) -> MoleculeStore:
    return featurised(smiles, **settings).store


def whole_batch(smiles: list[str] = SMILES, **settings: object) -> Batch:
    made = store(smiles, **settings)
    return made.batch(torch.arange(len(made)))


def renumbered(batch: Batch, seed: int = 0) -> tuple[Batch, torch.Tensor]:
    """The same batch with the atoms of each molecule in another order, and that order: new atom i was `order[i]`."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.cat(
        [
            start + torch.randperm(int(stop - start), generator=generator)
            for start, stop in zip(batch.ptr[:-1], batch.ptr[1:], strict=True)
        ]
    )
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    other = batch.clone()
    other.x, other.edge_index = batch.x[order], place[batch.edge_index]
    if batch.pos is not None:
        other.pos = batch.pos[order]
    return other, order
