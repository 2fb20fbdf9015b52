"""One molecule from text to arrays, which do not depend on how it was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem, rdBase

from gtx.molecules.binary import parts_of
from gtx.molecules.conformers import CONFORMER_VERSION, Conformer, make_conformer
from gtx.molecules.coordinates import with_coordinates, without_hydrogens
from gtx.molecules.descriptors import DESCRIPTORS, Measured, measure, tabulate
from gtx.molecules.errors import MoleculeError
from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS, Parts, put_labels
from gtx.molecules.graphs import Graphs
from gtx.molecules.reading import parse_smiles, read_molblock
from gtx.molecules.standardise import standardise
from gtx.molecules.stereo import copy_labels, label_stereo, quietly

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


class Seen(NamedTuple):
    """What RDKit says of one molecule; arrays are made of many of these at once.

    Attributes:
        parts: its atoms and bonds, with labels.
        bare: the same without hydrogen atoms, which descriptors are computed from.
        measured: what descriptors need of RDKit; None where there are none.
        positions, smiles: as in `Molecule`.
        warnings: what the user should know about its labels, and
        conformer: about its conformer.
    """

    parts: Parts
    bare: Parts
    measured: Measured | None
    positions: np.ndarray | None
    smiles: str | None
    warnings: tuple[str, ...]
    conformer: tuple[str, ...]


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
            seen = self.see(text, coordinates, smiles)
        graph = Graphs.join([seen.parts])
        (values,), (notes,) = self.describe([seen])
        warnings = (*seen.warnings, *notes, *seen.conformer)
        codes = graph.bonds.repeat(2, axis=0)
        return Molecule(graph.atoms, graph.both_ways, codes, seen.positions, values, seen.smiles, warnings)

    def read(self, text: str, coordinates: np.ndarray | None = None) -> Chem.Mol:
        """The RDKit molecule whose atoms become nodes, with its coordinates as a conformer; as `__call__`."""
        with quietly():
            return self._read(text, coordinates)

    def _read(self, text: str, coordinates: np.ndarray | None) -> Chem.Mol:
        block = "M  END" in text or text.strip().count("\n") > 2  # a damaged block may lack its end
        read = read_molblock if block else parse_smiles
        if self.coordinates and coordinates is not None:
            mol = with_coordinates(read(text, remove_hydrogens=False), coordinates)
            if not self.hydrogens:
                mol = Chem.RemoveHs(mol)
        else:
            mol = read(text, remove_hydrogens=not self.hydrogens)
        if self.standardise:
            mol = standardise(Chem.RemoveHs(mol))
        if self.hydrogens:
            mol = Chem.AddHs(mol, addCoords=mol.GetNumConformers() > 0)
            Chem.SetHybridization(mol)
        if mol.GetNumAtoms() > self.max_atoms:
            raise MoleculeError(f"has {mol.GetNumAtoms()} atoms; the limit is {self.max_atoms}")
        return mol

    def see(self, text: str, coordinates: np.ndarray | None, smiles: bool) -> Seen:
        """All that is asked of RDKit about one molecule, within `quietly`; as `__call__`."""
        try:
            return self._see(self._read(text, coordinates), smiles)
        except MoleculeError:
            raise
        except (RuntimeError, ValueError) as error:  # RDKit gave up on a molecule it had read
            raise MoleculeError.because("cannot be featurised", error) from error

    def _see(self, mol: Chem.Mol, smiles: bool) -> Seen:
        bare, kept = without_hydrogens(mol) if self.hydrogens else (mol, None)
        parts = bare_parts = parts_of(bare)
        named = True
        if bare_parts.has_stereo:
            label_stereo(bare)
            named = put_labels(bare, bare_parts)
        if self.hydrogens:  # labels and descriptors are those of the molecule without hydrogen atoms
            copy_labels(bare, mol, kept)
            parts = parts_of(mol)
            put_labels(mol, parts)
        measured = measure(bare, bare_parts) if self.descriptors else None
        written = Chem.MolToSmiles(bare) if smiles else None
        positions, conformer = self._conformer(mol) if self.coordinates else (None, ())
        warnings = () if named else ("stereochemistry that CIP rules could not name is ignored",)
        return Seen(parts, bare_parts, measured, positions, written, warnings, conformer)

    def describe(self, seen: Sequence[Seen]) -> tuple[np.ndarray, list[tuple[str, ...]]]:
        """Descriptors of m molecules, float32 `[m, D]`, and what the user should know about those of each."""
        if not self.descriptors:
            return np.zeros((len(seen), 0), np.float32), [()] * len(seen)
        values = tabulate(Graphs.join([one.bare for one in seen]), [one.measured for one in seen])
        notes: list[tuple[str, ...]] = [()] * len(seen)
        for i in np.flatnonzero(np.isnan(values).any(1)):
            names = (DESCRIPTORS[k].rstrip("0123456789") for k in np.flatnonzero(np.isnan(values[i])))
            notes[i] = (f"descriptors RDKit cannot compute: {', '.join(dict.fromkeys(names))}",)
        return values, notes

    def _conformer(self, mol: Chem.Mol) -> Conformer:
        if not (mol.GetNumConformers() and mol.GetConformer().Is3D()):
            if self.conformers:
                return make_conformer(mol)
            raise MoleculeError("has no coordinates in space; this model needs them")
        with np.errstate(over="ignore"):
            positions = mol.GetConformer().GetPositions().astype(np.float32)
        if not np.isfinite(positions).all():
            raise MoleculeError("has coordinates that are not finite numbers")
        return Conformer(positions, ())

    def to_dict(self) -> dict[str, Any]:
        """Settings as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> Featuriser:
        """The featuriser `to_dict` described."""
        if unknown := set(settings) - {field.name for field in fields(cls)}:
            raise ValueError(f"unknown featuriser settings: {', '.join(sorted(unknown))}")
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
