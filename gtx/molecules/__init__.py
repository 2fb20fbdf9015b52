"""Molecules: SMILES and mol blocks in; codes, coordinates, descriptors, scaffolds, fingerprints and pictures out."""

from __future__ import annotations

from gtx.lazy import lazy_names
from gtx.molecules.conformers import Conformer, make_conformer
from gtx.molecules.descriptors import DESCRIPTORS, descriptors
from gtx.molecules.errors import MoleculeError
from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS
from gtx.molecules.featuriser import Featuriser, featurise_texts
from gtx.molecules.flat import FlatMolecules, Molecule
from gtx.molecules.graphs import atom_codes, bond_codes, bond_ends
from gtx.molecules.molecule_features import MOLECULE_FEATURES
from gtx.molecules.reading import read_molblock, read_smiles
from gtx.molecules.settings import FEATURISER_VERSION
from gtx.molecules.standardise import standardise
from gtx.molecules.stereo import label_stereo

__all__ = [
    "ATOM_COLUMNS",
    "BOND_COLUMNS",
    "DESCRIPTORS",
    "FEATURISER_VERSION",
    "MOLECULE_FEATURES",
    "Conformer",
    "Featuriser",
    "FlatMolecules",
    "Molecule",
    "MoleculeError",
    "as_molecule",
    "atom_codes",
    "bond_codes",
    "bond_ends",
    "butina_clusters",
    "descriptors",
    "draw_attention",
    "draw_grid",
    "draw_molecule",
    "featurise_texts",
    "kennard_stone_order",
    "label_stereo",
    "make_conformer",
    "morgan_bits",
    "morgan_counts",
    "peelings",
    "read_molblock",
    "read_smiles",
    "scaffold",
    "standardise",
    "substructures",
]

# worker processes that only featurise need none of these
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "scaffolds": ("scaffold",),
        "fragments": ("substructures",),
        "peeling": ("as_molecule", "peelings"),
        "fingerprints": ("morgan_bits", "morgan_counts"),
        "diversity": ("butina_clusters", "kennard_stone_order"),
        "drawing": ("draw_attention", "draw_grid", "draw_molecule"),
    },
)
