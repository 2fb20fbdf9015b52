"""Molecules: SMILES and mol blocks in; codes, coordinates, descriptors, scaffolds, fingerprints and pictures out."""

from __future__ import annotations

from gtx.molecules.descriptors import DESCRIPTORS, descriptors
from gtx.molecules.errors import MoleculeError
from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS, atom_codes, bond_codes, bond_ends
from gtx.molecules.featuriser import FEATURISER_VERSION, Featuriser, Molecule
from gtx.molecules.flat import FlatMolecules, featurise_texts
from gtx.molecules.reading import read_molblock, read_smiles
from gtx.molecules.standardise import standardise

__all__ = [
    "ATOM_COLUMNS",
    "BOND_COLUMNS",
    "DESCRIPTORS",
    "FEATURISER_VERSION",
    "Featuriser",
    "FlatMolecules",
    "Molecule",
    "MoleculeError",
    "atom_codes",
    "bond_codes",
    "bond_ends",
    "descriptors",
    "featurise_texts",
    "read_molblock",
    "read_smiles",
    "standardise",
]
