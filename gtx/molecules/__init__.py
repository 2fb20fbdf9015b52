"""Codes, coordinates, descriptors, scaffolds, fingerprints and pictures of molecules, from SMILES and mol blocks."""

from __future__ import annotations

from gtx.molecules.coordinates import Conformer, make_conformer
from gtx.molecules.descriptors import DESCRIPTOR_NAMES, butina_clusters, morgan_counts, murcko_scaffold
from gtx.molecules.drawing import draw_attention, draw_molecule
from gtx.molecules.graphs import ATOM_FEATURE_VALUES, BOND_FEATURE_VALUES, FeaturisedMolecules, Molecule
from gtx.molecules.perception import Featuriser
from gtx.molecules.reading import MoleculeError, read_smiles

__all__ = [
    "ATOM_FEATURE_VALUES",
    "BOND_FEATURE_VALUES",
    "DESCRIPTOR_NAMES",
    "Conformer",
    "FeaturisedMolecules",
    "Featuriser",
    "Molecule",
    "MoleculeError",
    "butina_clusters",
    "draw_attention",
    "draw_molecule",
    "make_conformer",
    "morgan_counts",
    "murcko_scaffold",
    "read_smiles",
]
