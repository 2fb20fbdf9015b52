"""Molecules: SMILES and mol blocks in; codes, coordinates, descriptors, scaffolds, fingerprints and pictures out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names
from gtx.molecules.coordinates import Conformer, make_conformer
from gtx.molecules.descriptors import DESCRIPTORS, MOLECULE_FEATURES, descriptors
from gtx.molecules.graphs import (
    ATOM_COLUMNS,
    BOND_COLUMNS,
    FlatMolecules,
    Molecule,
    atom_codes,
    bond_codes,
    bond_ends,
    label_stereo,
)
from gtx.molecules.perception import Featuriser, featurise_texts
from gtx.molecules.reading import MoleculeError, read_molblock, read_smiles, standardise
from gtx.molecules.settings import FEATURISER_VERSION

if TYPE_CHECKING:
    from gtx.molecules.drawing import draw_attention, draw_grid, draw_molecule
    from gtx.molecules.fragments import (
        as_molecule,
        butina_clusters,
        kennard_stone_order,
        morgan_bits,
        morgan_counts,
        peelings,
        scaffold,
        substructures,
    )


# worker processes that only featurise need none of these
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fragments": (
            "scaffold",
            "substructures",
            "as_molecule",
            "peelings",
            "morgan_bits",
            "morgan_counts",
            "butina_clusters",
            "kennard_stone_order",
        ),
        "drawing": (
            "draw_attention",
            "draw_grid",
            "draw_molecule",
        ),
    },
)
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
