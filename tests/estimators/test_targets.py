"""What y may hold, for `fit` and for `score`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import cross_val_score

import gtx
from tests.tables import TINY_ESTIMATOR, molecules

pytestmark = pytest.mark.slow

QUICK = TINY_ESTIMATOR | {"epochs": 2}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return molecules(60)


@pytest.fixture(scope="module")
def blanks(table: pd.DataFrame) -> np.ndarray:
    y = table[["gap", "dipole"]].to_numpy(copy=True)
    y[::3, 1] = np.nan
    return y


@pytest.fixture(scope="module")
def words(table: pd.DataFrame) -> pd.DataFrame:
    y = pd.DataFrame({"gap": table.gap > table.gap.median(), "dipole": table.dipole > table.dipole.median()})
    return pd.DataFrame({"gap": np.where(y.gap, "wide", "narrow"), "dipole": np.where(y.dipole, "yes", "no")})


def test_scores_leave_blanks_out(table: pd.DataFrame, blanks: np.ndarray) -> None:
    estimator = gtx.MoleculeRegressor(**QUICK).fit(table.smiles, blanks)
    predicted, known = estimator.predict(table.smiles), ~np.isnan(blanks[:, 1])
    each = [r2_score(blanks[:, 0], predicted[:, 0]), r2_score(blanks[known, 1], predicted[known, 1])]
    assert estimator.score(table.smiles, blanks) == pytest.approx(np.mean(each))
    alone = np.where(np.isnan(blanks), np.nan, blanks) * [1, np.nan]  # nothing is known of the second target
    weights = np.arange(60.0)
    assert estimator.score(table.smiles, alone, weights) == pytest.approx(
        r2_score(blanks[:, 0], predicted[:, 0], sample_weight=weights)
    )
    with pytest.warns(UserWarning, match="no target has 2 different values"):
        assert np.isnan(estimator.score(table.smiles, np.full((60, 2), np.nan)))
    with pytest.raises(ValueError, match=r"shape \[60, 2\], as the predictions are, not \[60\]"):
        estimator.score(table.smiles, table.gap)
    with pytest.raises(ValueError, match=r"1 of 2 SMILES cannot be used; the first is number 1.*'C1CC'"):
        estimator.score(["C", "C1CC"], blanks[:2])
    assert np.isfinite(cross_val_score(estimator, table.smiles, blanks, cv=2, error_score="raise")).all()


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (np.linspace(0, 1, 60), "y: Unknown label.*continuous values; for numbers there is MoleculeRegressor"),
        (["a", 1] * 30, "all text or all numbers, got both"),
        (["a"] * 60, "y: expected two classes or more, got a"),
        ([["a", 0], ["b", 0]] * 30, "y1: expected two classes or more, got 0"),
    ],
)
def test_what_is_no_class_is_refused(y: object, reason: str, table: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=reason):
        gtx.MoleculeClassifier(**QUICK).fit(table.smiles, y)


def test_several_columns_of_words(table: pd.DataFrame, words: pd.DataFrame) -> None:
    estimator = gtx.MoleculeClassifier(**QUICK).fit(table.smiles, words)
    assert [each.tolist() for each in estimator.classes_] == [["narrow", "wide"], ["no", "yes"]]
    p, predicted = estimator.predict_proba(table.smiles), estimator.predict(table.smiles)
    assert p.shape == predicted.shape == (60, 2)
    assert (predicted == np.where(p > 0.5, ["wide", "yes"], ["narrow", "no"])).all()
    answers = estimator.predictor_.predict(table.smiles)
    np.testing.assert_array_equal(answers[["gap_class", "dipole_class"]], predicted)
    each = [accuracy_score(words[name], predicted[:, t].astype(str)) for t, name in enumerate(words)]
    assert estimator.score(table.smiles, words) == pytest.approx(np.mean(each))


def test_several_columns_of_which_one_has_three_classes(table: pd.DataFrame, words: pd.DataFrame) -> None:
    size = pd.qcut(table.gap, 3, labels=["small", "medium", "large"]).astype(str)
    y = pd.DataFrame({"size": size, "dipole": words.dipole})
    y.loc[::5, "size"] = np.nan
    estimator = gtx.MoleculeClassifier(**QUICK).fit(table.smiles, y)
    assert [each.tolist() for each in estimator.classes_] == [["large", "medium", "small"], ["no", "yes"]]
    given, predicted = estimator.predict_proba(table.smiles), estimator.predict(table.smiles)
    assert [p.shape for p in given] == [(60, 3), (60, 2)]
    for t, (p, classes) in enumerate(zip(given, estimator.classes_, strict=True)):
        np.testing.assert_allclose(p.sum(1), 1, rtol=1e-6)
        np.testing.assert_array_equal(classes[p.argmax(1)], predicted[:, t])
    answers = estimator.predictor_.predict(table.smiles)
    np.testing.assert_array_equal(answers[["size_pred", "dipole_pred"]], predicted)
    known = ~pd.isna(y["size"])
    each = [(predicted[known, 0] == y["size"][known]).mean(), (predicted[:, 1] == y.dipole).mean()]
    assert estimator.score(table.smiles, y) == pytest.approx(np.mean(each))
    with pytest.warns(UserWarning, match="NaN is returned"):
        assert [np.isnan(p).all(1).tolist() for p in estimator.predict_proba(["C", "C1CC"])] == [[False, True]] * 2


def test_blanks_among_words_are_no_class(table: pd.DataFrame, words: pd.DataFrame) -> None:
    y = words.gap.tolist()
    y[::4] = [np.nan] * 15
    y[1] = None
    estimator = gtx.MoleculeClassifier(**QUICK).fit(table.smiles, y)
    assert estimator.classes_.tolist() == ["narrow", "wide"]
    known = ~pd.isna(pd.Series(y))
    right = estimator.predict(table.smiles[known]) == np.array(y, object)[known]
    assert estimator.score(table.smiles, y) == pytest.approx(right.mean())


def test_messages_speak_of_python(table: pd.DataFrame) -> None:
    for arguments, reason in [
        ({"start": "foundation"}, "leave out model and model_arguments"),
    ]:
        with pytest.raises(ValueError, match=reason):
            gtx.MoleculeRegressor(**QUICK | arguments).fit(table.smiles, table.gap)
    with pytest.raises(ValueError, match="row 1, column 1, counted from 0, holds 'no'; for classes there is Molecule"):
        gtx.MoleculeRegressor().fit(["C", "CC"], [[1, None], [2, "no"]])
