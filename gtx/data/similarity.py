"""Similarity of molecules to the training molecules, on which prediction errors depend (Tanimoto, Morgan counts)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gtx.data.rows import percent
from gtx.data.store import MoleculeStore
from gtx.kernel import TanimotoKernel
from gtx.molecules.graphs import ATOM_INDEX, BOND_INDEX

MORGAN: dict[str, Any] = {
    "radius": 2,
    "atoms": [ATOM_INDEX[name] for name in ("element", "charge", "hydrogens", "degree")],
    "bonds": [BOND_INDEX["type"]],
}
"""Substructures that are counted: circular, within 2 bonds, as in Morgan's fingerprint, unfolded."""
MOST_SCORED, MOST_TRAINED = 1_000, 20_000  # of more molecules, as many are drawn at random: ten seconds of work at most
CHUNK = 256  # molecules that are compared at a time
NEARLY_SAME = 0.9


@dataclass(frozen=True)
class NearestTrainingMolecules:
    """Most similar training molecule (nearest neighbour) of each of m other molecules, with its Tanimoto similarity.

    Attributes:
        rows: rows of the m molecules, int `[m]`, ascending.
        similarity: Tanimoto similarity of each molecule to its nearest neighbour, `[m]`.
        neighbour: row of the nearest neighbour of each molecule, int `[m]`.
    """

    rows: np.ndarray
    similarity: np.ndarray
    neighbour: np.ndarray

    def summary(self) -> str:
        """Summarise the similarities: `median 0.45, for 80% of them 0.31 to 0.72; 0.9 or more for 2%`."""
        low, middle, high = np.quantile(self.similarity, [0.1, 0.5, 0.9])
        alike = (self.similarity >= NEARLY_SAME).mean()
        usual = f"median {middle:.2f}, for 80% of them {low:.2f} to {high:.2f}"
        return f"{usual}; {NEARLY_SAME} or more for {percent(alike)}"


def find_nearest_training_molecules(
    store: MoleculeStore, split: Mapping[str, np.ndarray], scored: str = "test", rows: np.ndarray | None = None
) -> NearestTrainingMolecules:
    """Find the most similar training molecule of each molecule of a part of the split, of which neither is empty.

    The `rows` of the part are compared, by default a sample, see `sample_rows`.
    """
    sample, trained = sample_rows(split, scored)
    rows = sample if rows is None else rows
    place, similarity = nearest_references(morgan_kernel(store.subset(trained)), store.subset(rows), 1)
    return NearestTrainingMolecules(rows, similarity[:, 0], trained[place[:, 0]])


def nearest_similarity(references: MoleculeStore, molecules: MoleculeStore) -> np.ndarray:
    """Compute the similarity of each of m molecules to the nearest of the references, float64 `[m]`, from 0 to 1.

    Of more than `MOST_TRAINED` references, as many are drawn at random.
    """
    rows = draw_rows(np.arange(len(references)), MOST_TRAINED)
    return nearest_references(morgan_kernel(references.subset(rows)), molecules, 1)[1][:, 0]


def morgan_kernel(references: MoleculeStore) -> TanimotoKernel:
    """Make the kernel that compares molecules with these references, by Morgan counts; of reactions, of both sides."""
    columns = {"atoms": references.atoms.shape[1], "bonds": references.bond_codes.shape[1]}
    widths = {"atoms": len(ATOM_INDEX), "bonds": len(BOND_INDEX)}
    every = {
        name: [column + shift for shift in range(0, columns[name], widths[name]) for column in MORGAN[name]]
        for name in widths
    }
    kernel = TanimotoKernel([MORGAN | every])
    kernel.set_references(references.to("cpu"))
    return kernel


def nearest_references(kernel: TanimotoKernel, store: MoleculeStore, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest references, the most similar first: positions, int64, and similarities, float64 `[m, count]`."""
    store = store.to("cpu")
    parts = [kernel.nearest(store.batch(some), count) for some in torch.arange(len(store)).split(CHUNK)]
    parts = parts or [(torch.zeros(0, count, dtype=torch.long), torch.zeros(0, count, dtype=torch.double))]
    place, similarity = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
    return place, similarity


def sample_rows(split: Mapping[str, np.ndarray], scored: str) -> tuple[np.ndarray, np.ndarray]:
    """Sample the rows that are compared: test rows and training rows."""
    return draw_rows(split[scored], MOST_SCORED), draw_rows(split["train"], MOST_TRAINED)


def draw_rows(rows: np.ndarray, most: int) -> np.ndarray:
    """Draw at most so many of some rows, always the same ones, ascending."""
    if len(rows) > most:
        rows = rows[np.random.default_rng(0).permutation(len(rows))[:most]]
    return np.sort(rows)
