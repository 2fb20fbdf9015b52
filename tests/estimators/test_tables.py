"""pandas tables as X."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rdkit import Chem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import gtx
from tests.tables import TINY_ESTIMATOR, molecules

pytestmark = pytest.mark.slow

QUICK = TINY_ESTIMATOR | {"epochs": 1}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return molecules(30)[["smiles", "gap"]].assign(T=np.linspace(280, 310, 30), note="a note")


@pytest.fixture(scope="module")
def warm(table: pd.DataFrame) -> gtx.MoleculeRegressor:
    return gtx.MoleculeRegressor(**QUICK, feature_columns=["T"]).fit(table[["smiles", "T"]], table.gap)


@pytest.fixture(scope="module")
def plain(table: pd.DataFrame) -> gtx.MoleculeRegressor:
    return gtx.MoleculeRegressor(**QUICK).fit(table.smiles, table.gap)


def test_other_columns_are_named(table: pd.DataFrame) -> None:
    reason = r"columns 'T', 'note' beside 'smiles': give table\['smiles'\], or .*, feature_columns=\['T'\]"
    with pytest.raises(ValueError, match=reason):
        gtx.MoleculeRegressor(**QUICK).fit(table[["smiles", "T", "note"]], table.gap)
    with pytest.raises(ValueError, match="a table with a column of SMILES, got one of 'T' alone"):
        gtx.MoleculeRegressor(**QUICK, feature_columns=["T"]).fit(table[["T"]], table.gap)


def test_the_smiles_beside_features_are_found_by_name(warm: gtx.MoleculeRegressor, table: pd.DataFrame) -> None:
    expected = warm.predict(table[["smiles", "T"]])
    np.testing.assert_array_equal(warm.predict(table[["note", "T", "smiles"]]), expected)
    renamed = table[["smiles", "T", "note"]].rename(columns={"smiles": "mol"})
    np.testing.assert_array_equal(warm.predict(renamed), expected)  # the only column that reads as molecules
    numbered = renamed.assign(note=range(len(renamed))).rename(columns={"note": "smiles_id"})
    np.testing.assert_array_equal(warm.predict(numbered), expected)  # a name alone does not win
    with pytest.raises(ValueError, match="call it 'smiles', or leave out all columns but one beside 'T'"):
        warm.predict(renamed.assign(note=renamed.mol))


def test_a_column_is_called_as_in_training(table: pd.DataFrame) -> None:
    tdc = pd.DataFrame({"Drug_ID": [f"CHEMBL{i}" for i in range(30)], "Drug": table.smiles, "Y": table.gap})
    with pytest.raises(ValueError, match=r"columns 'Drug_ID', 'Y' beside 'Drug': give table\['Drug'\]"):
        gtx.MoleculeRegressor(**QUICK).fit(tdc, tdc.Y)
    named = gtx.MoleculeRegressor(**QUICK, feature_columns=["Y"]).fit(tdc, tdc.Y)
    assert named.predictor_.header.smiles_column == "Drug"
    np.testing.assert_allclose(named.predictor_.predict(tdc[["Y", "Drug"]]).Y_pred, named.predict(tdc))


def test_a_table_of_another_library_keeps_its_names(warm: gtx.MoleculeRegressor, table: pd.DataFrame) -> None:
    arrow = pa.Table.from_pandas(table[["smiles", "T"]])  # has `to_pandas`, as polars has
    np.testing.assert_array_equal(warm.predict(arrow), warm.predict(table[["smiles", "T"]]))
    y = pa.Table.from_pandas(table[["gap", "T"]])
    fitted = gtx.MoleculeRegressor(**QUICK, feature_columns=["T"]).fit(arrow, y)
    assert fitted.predictor_.header.targets == ["gap", "T"]


def test_features_are_counted_and_named_as_scikit_learn_does(warm, plain) -> None:
    assert warm.n_features_in_ == 2 and warm.feature_names_in_.tolist() == ["smiles", "T"]
    assert plain.n_features_in_ == 1 and not hasattr(plain, "feature_names_in_")


def test_a_table_of_one_column_is_one_target(table: pd.DataFrame) -> None:
    fitted = gtx.MoleculeRegressor(**QUICK).fit(table.smiles, table[["gap"]])
    assert fitted.predictor_.header.targets == ["gap"] and fitted.predict(["C"]).shape == (1,)
    assert np.isfinite(fitted.score(table.smiles, table[["gap"]]))
    labels = pd.DataFrame({"high": np.where(table.gap > table.gap.median(), "yes", "no")})
    classes = gtx.MoleculeClassifier(**QUICK).fit(table.smiles, labels)
    assert classes.classes_.tolist() == ["no", "yes"] and classes.predict_proba(["C"]).shape == (1, 2)


def test_molecules_of_rdkit_come_out_of_a_step_before(table: pd.DataFrame, plain: gtx.MoleculeRegressor) -> None:
    def read(smiles: list[str]) -> np.ndarray:  # as scikit-mol's SmilesToMolTransformer
        return np.array([Chem.MolFromSmiles(text) for text in smiles], object)[:, None]

    steps = make_pipeline(FunctionTransformer(read), gtx.MoleculeRegressor(**QUICK)).fit(table.smiles, table.gap)
    np.testing.assert_allclose(steps.predict(["CCO", "CN"]), plain.predict(["CCO", "CN"]), rtol=1e-6)
    with pytest.warns(UserWarning, match="1 of 2 SMILES cannot be used; the first is number 1"):
        assert np.isnan(plain.predict([Chem.MolFromSmiles("C"), None])).tolist() == [False, True]


def test_what_is_ignored_of_a_molecule_is_a_warning(table: pd.DataFrame) -> None:
    racemic = [*table.smiles[:-1], Chem.MolFromSmiles("C[C@H](O)CC |&1:1|")]
    said = "1 of {} with a warning; the first is number {}, counted from 0: relative or racemic stereochemistry"
    with pytest.warns(UserWarning, match=said.format("30 molecules", 29)):
        fitted = gtx.MoleculeRegressor(model="kernel", workers=0).fit(racemic, table.gap)
    with pytest.warns(UserWarning, match=said.format("2 predictions", 1)):
        values = fitted.predict(["CCC", racemic[-1]])
    np.testing.assert_allclose(values[-1], fitted.predict(["CCC(C)O"])[0])
