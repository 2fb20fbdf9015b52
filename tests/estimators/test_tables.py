"""pandas tables as X."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gtx
from tests.tables import TINY_ESTIMATOR, molecules

QUICK = TINY_ESTIMATOR | {"epochs": 1}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return molecules(30)[["smiles", "gap"]].assign(T=np.linspace(280, 310, 30), note="a note")


@pytest.fixture(scope="module")
def warm(table: pd.DataFrame) -> gtx.MoleculeRegressor:
    return gtx.MoleculeRegressor(**QUICK, feature_columns=["T"]).fit(table[["smiles", "T"]], table.gap)


def test_other_columns_are_named(table: pd.DataFrame) -> None:
    reason = r"columns 'T', 'note' beside 'smiles': give table\['smiles'\], or .*, feature_columns=\['T'\]"
    with pytest.raises(ValueError, match=reason):
        gtx.MoleculeRegressor(**QUICK).fit(table[["smiles", "T", "note"]], table.gap)
    with pytest.raises(ValueError, match="X has no column of SMILES beside 'T'"):
        gtx.MoleculeRegressor(**QUICK, feature_columns=["T"]).fit(table[["T"]], table.gap)


def test_the_smiles_beside_features_are_found_by_name(warm: gtx.MoleculeRegressor, table: pd.DataFrame) -> None:
    expected = warm.predict(table[["smiles", "T"]])
    np.testing.assert_array_equal(warm.predict(table[["note", "T", "smiles"]]), expected)
    with pytest.raises(
        ValueError, match="Beside 'T' there are 'mol', 'note': leave all but one out, or call one 'smil"
    ):
        warm.predict(table[["smiles", "T", "note"]].rename(columns={"smiles": "mol"}))


def test_a_column_is_called_as_in_training(table: pd.DataFrame) -> None:
    named = table.rename(columns={"smiles": "mol"})
    estimator = gtx.MoleculeRegressor(**QUICK, feature_columns=["T"]).fit(named[["mol", "T"]], named.gap)
    expected = estimator.predict(named[["mol", "T"]])
    np.testing.assert_array_equal(estimator.predict(named[["note", "mol", "T"]]), expected)
    np.testing.assert_allclose(estimator.predictor_.predict(named).gap_pred, expected)
