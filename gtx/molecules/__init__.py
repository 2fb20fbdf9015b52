"""Molecules: SMILES and mol blocks in; codes, coordinates, descriptors, scaffolds, fingerprints and pictures out."""

from __future__ import annotations

from importlib import import_module

from gtx.molecules.descriptors import DESCRIPTORS, descriptors
from gtx.molecules.errors import MoleculeError
from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS, atom_codes, bond_codes, bond_ends
from gtx.molecules.featuriser import FEATURISER_VERSION, Featuriser, Molecule
from gtx.molecules.flat import FlatMolecules, featurise_texts
from gtx.molecules.reading import read_molblock, read_smiles
from gtx.molecules.standardise import standardise
from gtx.molecules.stereo import label_stereo

_LAZY = {
    "scaffold": "gtx.molecules.scaffolds",
    "morgan_counts": "gtx.molecules.fingerprints",
    "draw_attention": "gtx.molecules.drawing",
    "draw_grid": "gtx.molecules.drawing",
    "draw_molecule": "gtx.molecules.drawing",
}  # worker processes that only featurise need none of these

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
    "draw_attention",
    "draw_grid",
    "draw_molecule",
    "featurise_texts",
    "label_stereo",
    "morgan_counts",
    "read_molblock",
    "read_smiles",
    "scaffold",
    "standardise",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'gtx.molecules' has no attribute {name!r}")
