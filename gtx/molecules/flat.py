"""Featurising many texts into flat arrays: what a worker process does, with numpy and RDKit alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gtx.molecules.featuriser import Featuriser, Molecule
from gtx.molecules.reading import MoleculeError


class FlatMolecules(NamedTuple):
    """The outcome of n texts, of which m could be read, with N atoms and E directed bonds in all.

    Arrays are as in `gtx.data.MoleculeStore`; `smiles`, `errors` and `warnings` have one entry per text.
    """

    atoms: np.ndarray  # uint8 [N, A]
    bonds: np.ndarray  # int32 [2, E], numbered within each molecule
    bond_codes: np.ndarray  # uint8 [E, F]
    descriptors: np.ndarray  # float32 [m, D]
    atom_counts: np.ndarray  # int64 [m]
    bond_counts: np.ndarray  # int64 [m]
    positions: np.ndarray | None  # float32 [N, 3] in Å, NaN where unknown
    smiles: list[str | None]  # canonical; None where the text could not be read
    errors: list[str | None]  # why it could not be read
    warnings: list[tuple[str, ...]]


def featurise_texts(
    featuriser: Featuriser, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None = None
) -> FlatMolecules:
    """Featurise one text after the other; a molecule at fault leaves an error, never an exception.

    Args:
        featuriser: how molecules are read.
        texts: SMILES or mol blocks.
        coordinates: per text, positions in Å as `Featuriser` takes them, or None.
    """
    molecules: list[Molecule] = []
    smiles: list[str | None] = []
    errors: list[str | None] = []
    warnings: list[tuple[str, ...]] = []
    for i, text in enumerate(texts):
        try:
            molecule = featuriser(text, None if coordinates is None else coordinates[i])
        except MoleculeError as error:
            smiles.append(None)
            errors.append(str(error))
            warnings.append(())
        else:
            molecules.append(molecule)
            smiles.append(molecule.smiles)
            errors.append(None)
            warnings.append(molecule.warnings)
    return FlatMolecules(*_flat(featuriser, molecules), smiles, errors, warnings)


def _flat(featuriser: Featuriser, molecules: list[Molecule]) -> tuple:
    def join(arrays: list[np.ndarray], empty: tuple[int, ...], dtype: type, axis: int = 0) -> np.ndarray:
        return np.concatenate(arrays, axis) if arrays else np.zeros(empty, dtype)

    return (
        join([m.atoms for m in molecules], (0, len(featuriser.atom_sizes)), np.uint8),
        join([m.bonds for m in molecules], (2, 0), np.int32, axis=1),
        join([m.bond_codes for m in molecules], (0, len(featuriser.bond_sizes)), np.uint8),
        join([m.descriptors[None] for m in molecules], (0, featuriser.num_descriptors), np.float32),
        np.array([len(m.atoms) for m in molecules], np.int64),
        np.array([m.bonds.shape[1] for m in molecules], np.int64),
        join([m.positions for m in molecules], (0, 3), np.float32) if featuriser.coordinates else None,
    )
