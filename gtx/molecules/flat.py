"""Featurised molecules: one in arrays, and many concatenated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np


class Molecule(NamedTuple):
    """Featurised molecule with n atoms and m bonds.

    Attributes:
        atoms: uint8 `[n, A]`, a code per atom and column of `ATOM_COLUMNS`.
        bonds: int32 `[2, 2m]`, sender and receiver of every bond in both directions.
        bond_codes: uint8 `[2m, F]`, a code per directed bond and column of `BOND_COLUMNS`.
        positions: float32 `[n, 3]` in Å, NaN for atoms that no conformer could be made for; or None.
        descriptors: float32 `[D]`, NaN where one could not be computed.
        smiles: the canonical isomeric SMILES; None if not requested.
        warnings: messages for the user.
    """

    atoms: np.ndarray
    bonds: np.ndarray
    bond_codes: np.ndarray
    positions: np.ndarray | None
    descriptors: np.ndarray
    smiles: str | None
    warnings: tuple[str, ...]


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
    smiles: list[str | None]  # canonical; None where the text could not be read, or none was asked for
    errors: list[str | None]  # why it could not be read
    warnings: list[tuple[str, ...]]
    parts: np.ndarray | None = None  # int64 [m, K], atoms of each component; None where a text is one molecule

    @classmethod
    def of(cls, molecule: Molecule) -> FlatMolecules:
        """Make a batch of one molecule."""
        atoms, bonds, bond_codes, positions, descriptors, smiles, warnings = molecule
        counts = np.array([len(atoms)]), np.array([len(bond_codes)])
        return cls(atoms, bonds, bond_codes, descriptors[None], *counts, positions, [smiles], [None], [warnings])

    @classmethod
    def join(cls, parts: Sequence[FlatMolecules]) -> FlatMolecules:
        """Return the outcome of all texts of one part or more, one part after the other."""
        joined = []
        for name, *columns in zip(cls._fields, *parts, strict=True):
            if isinstance(columns[0], list):
                joined.append(list(chain.from_iterable(columns)))
            else:
                given = [column for column in columns if column is not None]
                joined.append(np.concatenate(given, axis=1 if name == "bonds" else 0) if given else None)
        return cls(*joined)

    @property
    def molecule(self) -> Molecule:
        """The one molecule."""
        (values,), (smiles,), (warnings,) = self.descriptors, self.smiles, self.warnings
        return Molecule(self.atoms, self.bonds, self.bond_codes, self.positions, values, smiles, warnings)
