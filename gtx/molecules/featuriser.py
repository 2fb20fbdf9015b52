"""One molecule from text to arrays, which do not depend on how it was written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem, rdBase

from gtx.errors import InputError, printable
from gtx.molecules.conformers import CONFORMER_VERSION
from gtx.molecules.descriptors import DESCRIPTORS
from gtx.molecules.errors import MoleculeError
from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS
from gtx.molecules.perception import perceive, read_molecule
from gtx.molecules.stereo import quietly
from gtx.schema import Record, kinds_of, whole

FEATURISER_VERSION = 1
"""Raised whenever the same molecule would give other codes or descriptors."""


class Molecule(NamedTuple):
    """One featurised molecule with n atoms and m bonds.

    Attributes:
        atoms: uint8 `[n, A]`, a code per atom and column of `ATOM_COLUMNS`.
        bonds: int32 `[2, 2m]`, sender and receiver of every bond in both directions.
        bond_codes: uint8 `[2m, F]`, a code per directed bond and column of `BOND_COLUMNS`.
        positions: float32 `[n, 3]` in Å, NaN for atoms that no conformer could be made for; or None.
        descriptors: float32 `[D]`, NaN where one could not be computed.
        smiles: the canonical isomeric SMILES; None where it was not asked for.
        warnings: what the user should know about it.
    """

    atoms: np.ndarray
    bonds: np.ndarray
    bond_codes: np.ndarray
    positions: np.ndarray | None
    descriptors: np.ndarray
    smiles: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Featuriser:
    """Texts to molecules, always in the same way; a model file stores these settings.

    Args:
        max_atoms: larger molecules are refused.
        standardise: keep the largest fragment and neutralise it.
        coordinates: three-dimensional coordinates are required and kept; otherwise they are dropped.
        hydrogens: hydrogen atoms are nodes; otherwise they are counted at their neighbours.
        descriptors: compute global descriptors; otherwise there are none (D = 0).
        conformers: make a conformer of a molecule that comes without coordinates, see `make_conformer`; sets
            `coordinates`.
    """

    max_atoms: int = 1000
    standardise: bool = False
    coordinates: bool = False
    hydrogens: bool = False
    descriptors: bool = True
    conformers: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "coordinates", self.coordinates or self.conformers)

    def __call__(self, text: str, coordinates: np.ndarray | None = None, *, smiles: bool = True) -> Molecule:
        """Read and featurise one molecule; `featurise_texts` is faster for many.

        Args:
            text: a SMILES, or a mol block.
            coordinates: flat or `[k, 3]` in Å, for the atoms in the order of the text: the heavy atoms, all atoms of
                the text, or these and then the hydrogens that RDKit's `AddHs` appends.
            smiles: find its canonical SMILES too, which takes half as long as reading it.

        Raises:
            MoleculeError: the text cannot be read, the molecule is too large, or coordinates lack or do not fit.
        """
        with quietly():
            seen, (error,) = perceive(self, [text], None if coordinates is None else [coordinates], smiles)
        if error is not None:
            raise MoleculeError(error)
        (values,), (warnings,) = seen.describe(self.descriptors)
        positions = seen.positions[0] if seen.positions else None
        graph = seen.graphs
        return Molecule(graph.atoms, graph.both_ways, graph.both_codes, positions, values, seen.smiles[0], warnings)

    def read(self, text: str, coordinates: np.ndarray | None = None) -> Chem.Mol:
        """The RDKit molecule whose atoms become nodes, with its coordinates as a conformer; as `__call__`."""
        with quietly():
            mol, _ = read_molecule(self, text, coordinates)
        return mol

    def to_dict(self) -> dict[str, Any]:
        """Settings as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> Featuriser:
        """The featuriser `to_dict` described.

        Raises:
            InputError: a setting is unknown, or its value is of another kind.
        """
        if unknown := set(settings) - {field.name for field in fields(cls)}:
            raise InputError(f"unknown featuriser settings: {', '.join(map(printable, sorted(unknown)))}")
        Record({}, {**kinds_of(cls), "max_atoms": whole(0, 2**31)}).check(settings, "featuriser.settings")
        return cls(**settings)

    @property
    def hash(self) -> str:
        """SHA-256 of everything that decides what the arrays mean: equal hashes, equal columns and settings."""
        settings = self.to_dict()
        made = [CONFORMER_VERSION] if settings.pop("conformers") else []  # files from before there were any keep theirs
        what = [FEATURISER_VERSION, settings, ATOM_COLUMNS, BOND_COLUMNS, DESCRIPTORS, *made]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    @property
    def cache_key(self) -> str:
        """As `hash`, for one RDKit version: perception of rings, aromaticity and stereo changes between releases."""
        return hashlib.sha256(f"{self.hash} {rdBase.rdkitVersion}".encode()).hexdigest()

    @property
    def num_descriptors(self) -> int:
        """D, the number of global descriptors."""
        return len(DESCRIPTORS) if self.descriptors else 0

    @property
    def atom_sizes(self) -> tuple[int, ...]:
        """Codes per atom column, "other" included."""
        return tuple(len(values) + 1 for values in ATOM_COLUMNS.values())

    @property
    def bond_sizes(self) -> tuple[int, ...]:
        """Codes per bond column, "other" included."""
        return tuple(len(values) + 1 for values in BOND_COLUMNS.values())

    @property
    def constitution(self) -> dict[str, list[int]]:
        """The columns of "atoms" and of "bonds" that say nothing of stereochemistry."""
        tables = {"atoms": (ATOM_COLUMNS, "chirality"), "bonds": (BOND_COLUMNS, "stereo")}
        return {of: [i for i, name in enumerate(names) if name != left] for of, (names, left) in tables.items()}
