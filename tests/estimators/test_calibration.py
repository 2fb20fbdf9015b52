"""Intervals, standard deviations, probabilities and sets of estimators are calibrated on the rows set aside."""

import numpy as np
import pandas as pd
import pytest

import gtx
from tests.tables import TINY_ESTIMATOR, molecules

pytestmark = pytest.mark.slow

HALF = TINY_ESTIMATOR | {"epochs": 10, "validation_fraction": 0.5}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return molecules(200)


@pytest.fixture(scope="module")
def labels(table: pd.DataFrame) -> np.ndarray:
    return pd.qcut(table.gap, 3, labels=["low", "medium", "high"]).astype(str).to_numpy()


@pytest.fixture(scope="module")
def sure(table: pd.DataFrame) -> gtx.MoleculeRegressor:
    options = {"uncertainty": "variance"}
    return gtx.MoleculeRegressor(**HALF, task_options=options).fit(table.smiles[:120], table.gap[:120])


def test_calibration_changes_probabilities_and_sets_hold_the_true_class(table, labels) -> None:
    options = {"calibration": "isotonic", "sets": True}
    plain, told = (
        gtx.MoleculeClassifier(**HALF, task_options=each).fit(table.smiles[:120], labels[:120])
        for each in (None, options)
    )
    new = table.smiles[120:]
    p = told.predict_proba(new)
    assert not np.allclose(p, plain.predict_proba(new))
    np.testing.assert_allclose(p.sum(1), 1)
    answers = told.predictor_.predict(new)
    np.testing.assert_array_equal(p, answers[[f"y_{name}" for name in told.classes_]])
    assert (told.predict(new) == answers.y_pred).all()
    inside = [label in held.split("|") for label, held in zip(labels[120:], answers.y_set, strict=True)]
    assert np.mean(inside) > 0.8 and answers.y_set.nunique() > 1


def test_without_rows_set_aside_nothing_is_calibrated(table: pd.DataFrame, labels: np.ndarray) -> None:
    none = HALF | {"validation_fraction": 0, "epochs": 1}
    sure = gtx.MoleculeRegressor(**none, task_options={"uncertainty": "variance"})
    answers = sure.fit(table.smiles[:30], table.gap[:30]).predictor_.predict(["CCO"])
    assert list(answers)[1:3] == ["gap_pred", "gap_std"] and np.isfinite(answers.gap_std[0])
    options = {"calibration": "isotonic", "sets": True}
    classes = gtx.MoleculeClassifier(**none, task_options=options).fit(table.smiles[:30], labels[:30])
    assert classes.predict_proba(["CCO"]).sum() == pytest.approx(1)
    assert classes.predictor_.predict(["CCO"]).y_set[0] == "low|medium|high"  # nothing is known, so it may be any


def test_standard_deviations_of_the_right_size_and_intervals_come_as_arrays(sure, table) -> None:
    told = sure.predictor_.predict(table.smiles[120:])
    error = (table.gap[120:].to_numpy() - told.gap_pred) / told.gap_std
    assert 0.6 < error.std() < 1.6 and sure.predictor_.task.std_factor[0] not in (None, 1)
    mean, std = sure.predict(table.smiles[120:], return_std=True)
    np.testing.assert_array_equal(mean, told.gap_pred)
    np.testing.assert_array_equal(std, told.gap_std)
    bounds = sure.predict_interval(table.smiles[120:])
    np.testing.assert_array_equal(bounds, told[["gap_low", "gap_high"]])
    with pytest.warns(UserWarning, match="1 of 2 SMILES cannot be used"):
        assert np.isnan(sure.predict_interval(["C", "C1CC"])).tolist() == [[False, False], [True, True]]


def test_of_several_targets_each_has_its_interval(table: pd.DataFrame) -> None:
    y = table[["gap", "dipole"]][:60].copy()
    y.loc[y.index[8:], "dipole"] = np.nan  # too few to say anything of it
    estimator = gtx.MoleculeRegressor(**HALF | {"epochs": 1}, folds=2).fit(table.smiles[:60], y)
    mean, std = estimator.predict(["C", "CC", "CCC"], return_std=True)
    assert mean.shape == std.shape == (3, 2) and (std > 0).all()
    bounds = estimator.predict_interval(["C", "CC", "CCC"])
    assert bounds.shape == (3, 2, 2) and (bounds[:, 0, 0] < mean[:, 0]).all() and np.isnan(bounds[:, 1]).all()


def test_what_a_model_cannot_say_is_an_error(table: pd.DataFrame) -> None:
    few = gtx.MoleculeRegressor(**HALF | {"validation_fraction": 0.1, "epochs": 1})
    few.fit(table.smiles[:30], table.gap[:30])
    with pytest.raises(
        ValueError, match=r'no standard deviations; expected .*task_options=\{"uncertainty": "variance"\}'
    ):
        few.predict(["C"], return_std=True)
    with pytest.raises(ValueError, match=r"9 rows set aside or more, .*larger validation_fraction than 0\.1"):
        few.predict_interval(["C"])
