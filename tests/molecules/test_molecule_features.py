"""Further features of a molecule, by name."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors, MACCSkeys

from gtx.base.errors import InputError
from gtx.molecules import Featuriser, morgan_counts
from gtx.molecules.descriptors import MOLECULE_FEATURES, RDKIT_DESCRIPTORS
from gtx.molecules.perception import featurise_texts
from tests.molecules_for_tests import SMILES

ALL = tuple(MOLECULE_FEATURES)


def test_they_are_those_of_rdkit_and_follow_the_descriptors() -> None:
    found = featurise_texts(Featuriser(molecule_features=ALL), SMILES)
    plain = featurise_texts(Featuriser(), SMILES)
    width = plain.descriptors.shape[1]
    assert np.array_equal(found.descriptors[:, :width], plain.descriptors, equal_nan=True)
    mols = [Chem.MolFromSmiles(text) for text in SMILES]
    place = width + 2048 + 167 + RDKIT_DESCRIPTORS.index("TPSA")
    assert np.array_equal(found.descriptors[:, width : width + 2048], morgan_counts(SMILES))
    keys = [list(MACCSkeys.GenMACCSKeys(mol)) for mol in mols]
    assert np.array_equal(found.descriptors[:, width + 2048 :][:, :167], keys)
    assert np.allclose(found.descriptors[:, place], [Descriptors.TPSA(mol) for mol in mols])


def test_they_do_not_depend_on_hydrogens_or_on_how_a_molecule_is_written() -> None:
    one = Featuriser(molecule_features=ALL, descriptors=False)
    other = Featuriser(molecule_features=ALL, descriptors=False, hydrogens=True)
    assert np.allclose(one("c1ccccc1O").descriptors, one("Oc1ccccc1").descriptors, rtol=1e-5)
    assert np.allclose(one("c1ccccc1O").descriptors, other("Oc1ccccc1").descriptors, rtol=1e-5)


def test_a_text_at_fault_and_an_unknown_name() -> None:
    featuriser = Featuriser(molecule_features=["maccs"], descriptors=False)
    found = featurise_texts(featuriser, ["CCO", "C1CC", "CC"])
    assert found.descriptors.shape == (2, 167) and [bool(error) for error in found.errors] == [False, True, False]
    assert featurise_texts(featuriser, []).descriptors.shape == (0, 167)
    assert Featuriser.from_dict(featuriser.to_dict()) == featuriser
    assert featuriser.hash != Featuriser(descriptors=False).hash
    with pytest.raises(InputError, match="no molecule features 'mordred'; gtx has morgan, maccs, rdkit"):
        Featuriser(molecule_features=["mordred"])
