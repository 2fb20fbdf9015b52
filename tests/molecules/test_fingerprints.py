"""Morgan counts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors

from gtx.molecules import MoleculeError, morgan_counts

from .rewriting import rewritings

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def test_counts_are_those_of_rdkit_folded() -> None:
    """The unfolded fingerprint of the older interface, folded here."""
    for radius, bits in ((2, 2048), (1, 64)):
        expected = np.zeros(bits, int)
        for number, count in (
            rdMolDescriptors.GetMorganFingerprint(Chem.MolFromSmiles(ASPIRIN), radius).GetNonzeroElements().items()
        ):
            expected[number % bits] += count
        ours = morgan_counts([ASPIRIN, "C"], radius, bits)
        assert ours.dtype == np.uint8 and ours.shape == (2, bits)
        assert (ours[0] == expected).all()


def test_counts_are_cut_and_not_wrapped() -> None:
    assert morgan_counts(["C" * 400], radius=0).max() == 255


def test_order_of_atoms_changes_nothing() -> None:
    assert len({morgan_counts([written]).tobytes() for written in (ASPIRIN, *rewritings(ASPIRIN, 5))}) == 1


def test_a_table_of_one_column_and_rdkits_molecules_are_read() -> None:
    plain = morgan_counts([ASPIRIN, "CCO"])
    table = pd.DataFrame({"smiles": [ASPIRIN, "CCO"]})
    mols = [Chem.MolFromSmiles(text) for text in table.smiles]
    for given in (table, table.smiles, table.to_numpy(), mols, np.array(mols, object)[:, None]):
        np.testing.assert_array_equal(morgan_counts(given), plain)
    with pytest.raises(MoleculeError, match=r"a table of one column, got one of shape \[2, 2\]"):
        morgan_counts(table.assign(y=1))


def test_nothing_and_nonsense() -> None:
    assert morgan_counts([]).shape == (0, 2048)
    with pytest.raises(MoleculeError, match=r"^number 1, counted from 0: 'C1CC' cannot be read: .*unclosed ring"):
        morgan_counts(["C", "C1CC"])
    for gap in (None, float("nan"), 5):
        with pytest.raises(MoleculeError, match=rf"^number 1, counted from 0: {gap} cannot be read: the text is empty"):
            morgan_counts(["C", gap])
