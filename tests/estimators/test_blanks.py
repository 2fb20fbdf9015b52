"""Blanks of every kind in y are left out of training and scores; bounds in y are bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gtx
from tests.tables import TINY_ESTIMATOR, molecules

KERNEL = {"model": "kernel", "workers": 0}
KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "nullable": pd.DataFrame.convert_dtypes,
    "arrow": lambda y: y.astype("double[pyarrow]"),
    "arrow table": lambda y: pa.Table.from_pandas(y, preserve_index=False),
    "lists": lambda y: [[pd.NA if pd.isna(v) else v for v in row] for row in y.to_numpy().tolist()],
    "objects": lambda y: y.astype(object).where(y.notna(), None),
    "texts": lambda y: y.astype(object).where(y.notna(), "n/a").astype(str),
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return molecules(60)


@pytest.fixture(scope="module")
def plain(table: pd.DataFrame) -> pd.DataFrame:
    y = table[["gap", "dipole"]].copy()
    y.loc[::7, "dipole"] = np.nan
    return y


@pytest.mark.parametrize("kind", KINDS)
def test_blanks_of_every_kind_are_left_out(kind: str, table: pd.DataFrame, plain: pd.DataFrame) -> None:
    made, expected = KINDS[kind](plain), gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, plain)
    estimator = gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, made)
    np.testing.assert_allclose(estimator.predict(table.smiles), expected.predict(table.smiles))
    assert estimator.score(table.smiles, made) == pytest.approx(expected.score(table.smiles, plain))


@pytest.mark.parametrize("kind", ["nullable", "lists", "objects"])
def test_so_are_those_of_classes(kind: str, table: pd.DataFrame, plain: pd.DataFrame) -> None:
    bits = (plain > plain.median()).astype(float).where(plain.notna())
    made, expected = KINDS[kind](bits), gtx.MoleculeClassifier(**KERNEL).fit(table.smiles, bits)
    estimator = gtx.MoleculeClassifier(**KERNEL).fit(table.smiles, made)
    np.testing.assert_allclose(estimator.predict_proba(table.smiles), expected.predict_proba(table.smiles))
    assert estimator.score(table.smiles, made) == pytest.approx(expected.score(table.smiles, bits))
    assert estimator.predictor_.task.columns.labels(1) == ("0", "1") and estimator.classes_.tolist() == [0, 1]


def test_one_column_with_na_is_read_too(table: pd.DataFrame, plain: pd.DataFrame) -> None:
    for y in (
        plain.dipole.convert_dtypes(),
        plain[["dipole"]].convert_dtypes(),
        plain.dipole.astype("Float64").tolist(),
    ):
        estimator = gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, y)
        assert np.isfinite(estimator.score(table.smiles, y))


def test_a_weight_that_is_missing_is_named(table: pd.DataFrame) -> None:
    weights = pd.array([1.0] * 59 + [None], dtype="Float64")
    with pytest.raises(ValueError, match="sample_weight must be numbers of 0 or more: number 59 is nan"):
        gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, table.gap, sample_weight=weights)
    with pytest.raises(ValueError, match="number 59 is nan"):
        gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, table.gap, sample_weight=[*weights[:59], pd.NA])


def test_bounds_in_y_are_learned(table: pd.DataFrame) -> None:
    y = [f">{gap - 1}" if i % 3 == 0 else gap for i, gap in enumerate(table.gap)]
    estimator = gtx.MoleculeRegressor(**TINY_ESTIMATOR, epochs=1, workers=0, task_options={"censored": True})
    estimator.fit(table.smiles, y)
    assert np.isfinite(estimator.score(table.smiles, y))
    kept = estimator.predictor_.header.training.values["y"]
    assert any(cell.startswith(">") for cell in kept) and "" not in kept
    with pytest.raises(
        ValueError, match=r"row 0, counted from 0, holds '>.*': it is a bound, not a number; .*censored"
    ):
        gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, y)
