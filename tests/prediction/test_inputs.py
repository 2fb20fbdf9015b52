"""Molecules in whatever a user holds them in."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rdkit import Chem
from rdkit.Chem.rdDistGeom import EmbedMolecule

import gtx
from gtx.data import featurise
from gtx.prediction import Predictor
from gtx.prediction.inputs import as_texts, component_rows, smiles_list

TWO = ["CCO", "c1ccccc1"]


LEVELS = pd.MultiIndex.from_tuples([("x", 1), ("y", 0), ("x", 0)], names=["a", "b"])


@pytest.mark.parametrize("index", [[2, 0, 1], ["b", "a", "c"], [5, 5, 5], LEVELS], ids=str)
def test_predictions_have_the_index_of_their_rows(predictor: Predictor, index: Any) -> None:
    table = pd.DataFrame({"smiles": ["CCO", "C1CC", "c1ccccc1"]}, index=index)
    plain = predictor.predict(table.smiles.tolist(), members=True)
    for given in (table, table["smiles"]):
        pd.testing.assert_frame_equal(predictor.predict(given, members=True), plain.set_axis(table.index))
    table["gap"] = predictor.predict(table).gap_pred
    np.testing.assert_array_equal(table["gap"], plain.gap_pred)


def test_what_is_no_molecule_is_an_error_of_its_row(predictor: Predictor) -> None:
    gaps = [None, np.nan, pd.NA, pd.NaT, "", 5, 1.5, ["C"], {"a": 1}]
    for given in (["CCO", *gaps], pd.Series(["CCO", *gaps])):
        found = predictor.predict(given)
        assert found.error.isna().tolist() == [True] + [False] * len(gaps)
        assert found.gap_pred.isna().tolist() == [False] + [True] * len(gaps)
        with pytest.warns(UserWarning, match=r"9 of 10 SMILES cannot be used; .*is number 1, .*empty; NaN is returned"):
            assert np.isnan(predictor.embed(given)).all(1).tolist() == found.gap_pred.isna().tolist()
    assert predictor.predict([None, np.nan]).error.str.contains("the text is empty").all()
    assert component_rows([None, ("C", pd.NA)], ("a", "b")) == [(None, None), ("C", pd.NA)]
    assert as_texts([(None, None), ("C", pd.NA)]) == [("", ""), ("C", "")]


@pytest.mark.parametrize("path", ["table.csv", "data/Mols.SMI", "a.csv.gz", Path("library.parquet")])
def test_the_name_of_a_file_is_not_read_as_a_molecule(predictor: Predictor, path: Any) -> None:
    for method in (predictor.predict, predictor.embed):
        with pytest.raises(gtx.InputError, match=r"expected SMILES, got the name of a file, .*predict_table"):
            method(path)


@pytest.mark.parametrize(
    "given",
    [
        TWO,
        np.array(TWO),
        np.array(TWO, object)[:, None],
        pd.Series(TWO),
        pd.DataFrame({"whatever": TWO}),
        pd.DataFrame({"canonical_smiles": TWO, "y": [1, 2]}),
        pd.DataFrame({"structure": TWO, "smiles": ["C", "C"]}),  # as in training
        pd.DataFrame({"Drug_ID": ["Ethanol", "CHEMBL277500"], "Drug": TWO, "Y": [0, 1]}),  # as TDC has it
        pd.DataFrame({"smiles_id": [17, 18], "Drug": TWO}),  # a name does not win against cells
        pa.table({"name": ["ethanol", "benzene"], "smiles": TWO}),  # as polars is: with `to_pandas`
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_holds_molecules(given: Any) -> None:
    assert smiles_list(given, "structure") == TWO
    assert smiles_list("CCO") == ["CCO"]


def test_rdkits_molecules_are_molecules(predictor: Predictor) -> None:
    mols = [Chem.AddHs(Chem.MolFromSmiles(text)) for text in TWO]
    plain = predictor.predict([Chem.MolToSmiles(Chem.RemoveHs(mol)) for mol in mols])
    column = np.array(mols, object)[:, None]  # as scikit-mol has them
    for given in (mols, column, pd.DataFrame({"mol": mols})):
        pd.testing.assert_frame_equal(predictor.predict(given).drop(columns="smiles"), plain.drop(columns="smiles"))
    (one,) = predictor.predict(mols[0]).itertuples()
    assert one.smiles == Chem.MolToSmiles(mols[0]) and np.isfinite(one.gap_pred)
    np.testing.assert_allclose(predictor.embed(mols), predictor.embed(TWO), rtol=1e-4, atol=1e-5)
    assert predictor.predict([mols[0], None, Chem.Mol()]).error.notna().tolist() == [False, True, True]


def test_a_molecules_conformer_is_read_where_coordinates_are(predictor: Predictor) -> None:
    flat, placed = Chem.MolFromSmiles("OCC"), Chem.AddHs(Chem.MolFromSmiles("OCC"))
    EmbedMolecule(placed, randomSeed=1)
    read = replace(predictor.header.featuriser, coordinates=True)
    done = featurise(read, as_texts([placed, flat], coordinates=True))
    assert done.errors[0] is None and "no coordinates" in done.errors[1]
    np.testing.assert_allclose(done.store.batch().pos, placed.GetConformer().GetPositions()[:3], atol=1e-3)


def test_what_does_not_is_refused() -> None:
    for given, message in (
        (pd.DataFrame({"i": [1, 2], "a": TWO, "b": TWO}), r"call it 'mol', or .* frame\['a'\]; .* are 'i', 'a', 'b'"),
        (pd.DataFrame({"from_smiles": TWO, "to_smiles": TWO}), "which column holds the SMILES"),
        (np.array([TWO, TWO]), r"expected SMILES \[n\], got an array of shape \[2, 2\]"),
        ({"smiles": TWO}, "a value of type dict"),
        (None, "a value of type NoneType"),
    ):
        with pytest.raises(gtx.InputError, match=message):
            smiles_list(given, "mol")
