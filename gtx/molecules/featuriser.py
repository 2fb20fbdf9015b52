"""Texts to arrays, which do not depend on how a molecule was written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from rdkit import Chem

from gtx.lazy import annex
from gtx.molecules import perception
from gtx.molecules.coordinates import without_hydrogens
from gtx.molecules.descriptors import with_molecule_features
from gtx.molecules.flat import FlatMolecules, Molecule
from gtx.molecules.graphs import quietly
from gtx.molecules.reading import MoleculeError
from gtx.molecules.settings import Settings, flatten_components, join_components

Text = str | tuple[str, ...]
"""A molecule, or the components of a row."""


@dataclass(frozen=True)
class Featuriser(Settings):
    """Texts to molecules, always in the same way; a model file stores these settings.

    Args:
        max_atoms: larger molecules are refused.
        standardise: keep the largest fragment and neutralise it.
        coordinates: three-dimensional coordinates are required and kept; otherwise they are dropped.
        hydrogens: hydrogen atoms are nodes; otherwise they are counted at their neighbours.
        descriptors: compute global descriptors; otherwise there are none (D = 0).
        conformers: make a conformer of a molecule that comes without coordinates, see `make_conformer`; sets
            `coordinates`.
        molecule_features: names of `MOLECULE_FEATURES`, which join the descriptors.
        components: names of the K molecules that belong together, such as ("solute", "solvent"), where a row has
            several; its text is then a tuple of K texts, and all other settings are for each of them.
        ignore_stereo: which way stereocentres and double bonds are is not read: stereoisomers are the same molecule.
    """

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
        found = featurise_texts(self, [text], None if coordinates is None else [coordinates], smiles=smiles)
        if (error := found.errors[0]) is not None:
            raise MoleculeError(error)
        return found.molecule

    def read(self, text: str, coordinates: np.ndarray | None = None) -> Chem.Mol:
        """Return the RDKit molecule whose atoms become nodes, with its coordinates as a conformer; as `__call__`."""
        with quietly():
            mol, _ = perception.read_molecule(self, text, coordinates)
        return mol


def featurise_texts(
    featuriser: Featuriser,
    texts: Sequence[Text],
    coordinates: Sequence[np.ndarray | None] | None = None,
    *,
    smiles: bool = True,
) -> FlatMolecules:
    """Featurise texts; a molecule at fault leaves an error, never an exception.

    Args:
        featuriser: how molecules are read.
        texts: SMILES or mol blocks; of several components, tuples of them.
        coordinates: per text, positions in Å as `Featuriser` takes them, or None; of several components, of the first.
        smiles: find canonical SMILES too, which takes half as long as reading the molecules.
    """
    if names := featuriser.components:
        every, known = flatten_components(names, texts, coordinates)
        found = featurise_texts(replace(featuriser, components=()), every, known, smiles=smiles)
        return join_components(names, every, found)
    with quietly():
        fast = annex("fast") if os.environ.get("GTX_FAST") != "0" else None
        found = (perception if fast is None else fast).perceive(featuriser, texts, coordinates, smiles)
        if featuriser.molecule_features:

            def bare(i: int) -> Chem.Mol:
                mol = featuriser.read(texts[i], None if coordinates is None else coordinates[i])
                return without_hydrogens(mol)[0] if featuriser.hydrogens else mol

            found = with_molecule_features(featuriser.molecule_features, found, bare)
        return found
