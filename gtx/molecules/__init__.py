"""Codes, coordinates, descriptors, scaffolds, fingerprints and pictures of molecules, from SMILES and mol blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names
from gtx.molecules.coordinates import Conformer, make_conformer
from gtx.molecules.descriptors import DESCRIPTOR_NAMES, MOLECULE_FEATURES, compute_descriptors
from gtx.molecules.graphs import (
    ATOM_FEATURE_VALUES,
    BOND_FEATURE_VALUES,
    FeaturisedMolecules,
    Molecule,
    assign_stereo_labels,
    bond_edge_index,
    encode_atoms,
    encode_bonds,
)
from gtx.molecules.perception import Featuriser, featurise_texts
from gtx.molecules.reading import MoleculeError, read_molblock, read_smiles, standardise_molecule
from gtx.molecules.settings import FEATURISER_VERSION

if TYPE_CHECKING:
    from gtx.molecules.drawing import draw_attention, draw_molecule
    from gtx.molecules.fragments import (
        assign_substructures,
        butina_clusters,
        list_smaller_substructures,
        morgan_bits,
        morgan_counts,
        murcko_scaffold,
        order_by_kennard_stone,
        substructure_to_smiles,
    )


# worker processes that only featurise need none of these
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "ATOM_FEATURE_VALUES",
    "BOND_FEATURE_VALUES",
    "DESCRIPTOR_NAMES",
    "FEATURISER_VERSION",
    "MOLECULE_FEATURES",
    "Conformer",
    "FeaturisedMolecules",
    "Featuriser",
    "Molecule",
    "MoleculeError",
    "assign_stereo_labels",
    "assign_substructures",
    "bond_edge_index",
    "butina_clusters",
    "compute_descriptors",
    "draw_attention",
    "draw_molecule",
    "encode_atoms",
    "encode_bonds",
    "featurise_texts",
    "list_smaller_substructures",
    "make_conformer",
    "morgan_bits",
    "morgan_counts",
    "murcko_scaffold",
    "order_by_kennard_stone",
    "read_molblock",
    "read_smiles",
    "standardise_molecule",
    "substructure_to_smiles",
]
