"""Molecules in whatever a user holds them in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import gtx
from gtx.prediction import Predictor
from gtx.prediction.given import given_smiles

TWO = ["CCO", "c1ccccc1"]
TABLE = pd.DataFrame({"name": ["ethanol", "benzene"], "SMILES": TWO, "logS": [1.1, -1.6]}, index=[7, 3])


def test_a_table_is_read_by_its_column_of_molecules(predictor: Predictor) -> None:
    plain = predictor.predict(TWO)
    assert predictor.predict(TABLE).equals(plain) and predictor.predict(TABLE["SMILES"]).equals(plain)
    np.testing.assert_array_equal(predictor.embed(TABLE), predictor.embed(TWO))
    with pytest.raises(gtx.InputError, match="which column holds the SMILES"):
        predictor.predict(TABLE[["name", "logS"]])


@pytest.mark.parametrize(
    "given",
    [
        TWO,
        tuple(TWO),
        iter(TWO),
        np.array(TWO),
        np.array(TWO, object)[:, None],
        pd.Series(TWO),
        pd.Index(TWO),
        pd.DataFrame({"whatever": TWO}),
        pd.DataFrame({0: TWO}),
        pd.DataFrame({"canonical_smiles": TWO, "y": [1, 2]}),
        pd.DataFrame({"structure": TWO, "smiles": ["C", "C"]}),  # as in training
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_holds_molecules(given: Any) -> None:
    assert given_smiles(given, "structure") == TWO
    assert given_smiles("CCO") == ["CCO"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame({"a": TWO, "b": TWO}), r"Expected one called 'mol', the columns are 'a', 'b': .* frame\['a'\]"),
        (pd.DataFrame({"from_smiles": TWO, "to_smiles": TWO}), "which column holds the SMILES"),
        (pd.DataFrame([TWO], columns=["smiles", "smiles"]), "which column holds the SMILES"),
        (pd.DataFrame(), "without columns"),
        (np.array([TWO, TWO]), r"expected SMILES \[n\], got an array of shape \[2, 2\]"),
        ({"smiles": TWO}, "a value of type dict"),
        (None, "a value of type NoneType"),
        (b"CCO", "a value of type bytes"),
        (5, "a value of type int"),
    ],
    ids=str,
)
def test_what_does_not_is_refused(given: Any, message: str) -> None:
    with pytest.raises(gtx.InputError, match=message):
        given_smiles(given, "mol")
