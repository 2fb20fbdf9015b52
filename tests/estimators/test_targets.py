"""What y may hold, for `fit` and for `score`: blanks of every kind, bounds, and classes as `gtx train` reads them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

import gtx
from tests.tables import TINY_ESTIMATOR, molecules, write

KERNEL = {"model": "kernel", "workers": 0, "settings": {"kernel_parts": ["substructures"]}}
KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "nullable": pd.DataFrame.convert_dtypes,
    "lists": lambda y: [[pd.NA if pd.isna(v) else v for v in row] for row in y.to_numpy().tolist()],
    "objects": lambda y: y.astype(object).where(y.notna(), None),
    "arrow": lambda y: y.astype("double[pyarrow]"),
    "arrow table": lambda y: pa.Table.from_pandas(y, preserve_index=False),
    "texts": lambda y: y.astype(object).where(y.notna(), "n/a").astype(str),
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return molecules(60)


@pytest.fixture(scope="module")
def wide(table: pd.DataFrame) -> np.ndarray:
    return (table.gap > table.gap.median()).to_numpy()


@pytest.fixture(scope="module")
def blanks(table: pd.DataFrame) -> pd.DataFrame:
    y = table[["gap", "dipole"]].copy()
    y.loc[::7, "dipole"] = np.nan
    return y


@pytest.fixture(scope="module")
def regressor(table: pd.DataFrame, blanks: pd.DataFrame) -> gtx.MoleculeRegressor:
    return gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, blanks)


@pytest.mark.parametrize("kind", KINDS)
def test_blanks_of_every_kind_are_left_out(kind, table, blanks, regressor) -> None:
    y = KINDS[kind](blanks)
    estimator = gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, y)
    np.testing.assert_allclose(estimator.predict(table.smiles), regressor.predict(table.smiles))
    assert estimator.score(table.smiles, y) == pytest.approx(regressor.score(table.smiles, blanks))


@pytest.mark.parametrize("kind", list(KINDS)[:3])
def test_so_are_those_of_classes(kind: str, table: pd.DataFrame, blanks: pd.DataFrame) -> None:
    bits = (blanks > blanks.median()).astype(float).where(blanks.notna())
    y = KINDS[kind](bits)
    expected, estimator = (gtx.MoleculeClassifier(**KERNEL).fit(table.smiles, each) for each in (bits, y))
    np.testing.assert_allclose(estimator.predict_proba(table.smiles), expected.predict_proba(table.smiles))
    assert estimator.score(table.smiles, y) == pytest.approx(expected.score(table.smiles, bits))
    assert estimator.predictor_.task.columns.labels(1) == ("0", "1") and estimator.classes_.tolist() == [0, 1]
    assert set(np.unique(estimator.predict(table.smiles))) <= {0, 1}


def test_one_column_with_na_is_read_and_a_weight_that_is_missing_is_named(table, blanks) -> None:
    for y in (blanks[["dipole"]].convert_dtypes(), blanks.dipole.astype("Float64").tolist()):
        assert np.isfinite(gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, y).score(table.smiles, y))
    for missing in (pd.array([1.0] * 59 + [None], dtype="Float64"), [*[1.0] * 59, pd.NA]):
        with pytest.raises(ValueError, match=r"sample_weight must be numbers from 0 to 1e\+30: number 59 is nan"):
            gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, table.gap, sample_weight=missing)
    fitted = gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, table.gap)
    for method in (fitted.fit, fitted.score):
        with pytest.raises(ValueError, match=r"of shape \[60\]"):
            method(table.smiles, table.gap, sample_weight=[1, 2])
    with pytest.raises(ValueError, match="number 4 is -1"):
        gtx.MoleculeRegressor(**KERNEL).fit(table.smiles, table.gap, sample_weight=[1, 1, 1, 1, -1, *[1] * 55])


def test_bounds_in_y_are_learned(table: pd.DataFrame) -> None:
    y = [f">{gap - 1}" if i % 3 == 0 else gap for i, gap in enumerate(table.gap)]
    estimator = gtx.MoleculeRegressor(**TINY_ESTIMATOR, epochs=1, workers=0, task_options={"censored": True})
    assert np.isfinite(estimator.fit(table.smiles, y).score(table.smiles, y))
    kept = estimator.predictor_.header.training.values["y"]
    assert any(cell.startswith(">") for cell in kept) and "" not in kept
    with pytest.raises(ValueError, match="relation_column: y has no other column"):
        gtx.MoleculeRegressor(**KERNEL, task_options={"relation_column": "r"}).fit(table.smiles, y)


def test_scores_leave_blanks_out(table: pd.DataFrame, blanks: pd.DataFrame, regressor: gtx.MoleculeRegressor) -> None:
    y, estimator = blanks.to_numpy(), regressor
    predicted, known = estimator.predict(table.smiles), ~np.isnan(y[:, 1])
    each = [r2_score(y[:, 0], predicted[:, 0]), r2_score(y[known, 1], predicted[known, 1])]
    assert estimator.score(table.smiles, y) == pytest.approx(np.mean(each))
    weights = np.arange(60.0)
    alone = y * [1, np.nan]  # nothing is known of the second target
    weighted = r2_score(y[:, 0], predicted[:, 0], sample_weight=weights)
    assert estimator.score(table.smiles, alone, weights) == pytest.approx(weighted)
    with pytest.warns(UserWarning, match="no target has 2 different values"):
        assert np.isnan(estimator.score(table.smiles, np.full((60, 2), np.nan)))
    with pytest.raises(ValueError, match=r"shape \[60, 2\], as the predictions are, not \[60\]"):
        estimator.score(table.smiles, table.gap)
    with pytest.raises(ValueError, match=r"1 of 2 SMILES cannot be used; the first is number 1.*'C1CC'"):
        estimator.score(["C", "C1CC"], y[:2])
    assert np.isfinite(cross_val_score(estimator, table.smiles, y, cv=2, error_score="raise")).all()


def test_a_fit_that_fails_leaves_the_model_as_it_was(table: pd.DataFrame, wide: np.ndarray) -> None:
    estimator = gtx.MoleculeClassifier(**KERNEL).fit(table.smiles, np.where(wide, "high", "low"))
    expected = estimator.predict(table.smiles)
    with pytest.raises(ValueError, match="60 of 60 SMILES"):
        estimator.fit(["C1CC"] * 60, np.where(wide, "b", "a"))
    assert estimator.classes_.tolist() == ["high", "low"] and (estimator.predict(table.smiles) == expected).all()


REGRESSOR, CLASSIFIER, BOUNDS = gtx.MoleculeRegressor, gtx.MoleculeClassifier, [">1", *range(59)]


def test_what_y_cannot_be_is_refused(table: pd.DataFrame) -> None:
    for kind, y, reason in (
        (CLASSIFIER, [[0], [1, 0]] * 30, r"y must be of shape \[n\] or \[n, T\], and its rows differ in length"),
        (CLASSIFIER, np.linspace(0, 1, 60), "y: Unknown label.*continuous values; for numbers there is MoleculeRegr"),
        (CLASSIFIER, ["a", 1] * 30, "all text or all numbers, got both"),
        (CLASSIFIER, ["a"] * 60, "y: expected two classes or more, got a"),
        (CLASSIFIER, [["a", 0], ["b", 0]] * 30, "y1: expected two classes or more, got 0"),
        (REGRESSOR, BOUNDS, "row 0, .* holds '>1': it is a bound, .*; task_options={'censored': True} learns"),
        (REGRESSOR, ["1e31", *BOUNDS[1:]], "row 0, counted from 0, holds '1e31': it is too large: a target lies betw"),
        (REGRESSOR, [[1, None], [2, "no"]] * 30, "row 1, column 1, counted from 0, holds 'no'; for classes there is"),
    ):
        with pytest.raises(ValueError, match=reason):
            kind(**KERNEL).fit(table.smiles, y)


# --- Classes: their spelling, their order, the positive one.

PAIRS = [("non-mutagen", "mutagen"), (False, True), (-1, 1)]


@pytest.mark.parametrize(("low", "high"), [*PAIRS, ("0", "1.0")])
def test_a_saved_classifier_predicts_what_the_estimator_does(low, high, table, wide, tmp_path) -> None:
    y = pd.Series([high if each else low for each in wide], name="y", dtype=object)
    y[5] = np.nan
    estimator = gtx.MoleculeClassifier(**KERNEL).fit(table.smiles, y)
    estimator.save(tmp_path / "model.gtx")
    rows = [[smiles, "" if pd.isna(value) else value] for smiles, value in zip(table.smiles, y, strict=True)]
    write(tmp_path / "t.csv", rows, ["smiles", "y"])
    saved = gtx.load(tmp_path / "model.gtx")
    told = saved.predict(table.smiles)
    assert told.y_pred[wide].mean() > 0.6
    place, p = estimator.classes_.tolist().index(high), estimator.predict_proba(table.smiles)
    np.testing.assert_allclose(p[:, place], told.y_pred)
    np.testing.assert_allclose(p.sum(1), 1)
    assert estimator.classes_.tolist() == sorted([low, high])
    known = ~pd.isna(y)
    right = estimator.predict(table.smiles[known]) == y[known].to_numpy()
    assert estimator.score(table.smiles, y) == right.mean() > 0.8
    outcome = saved.predict_table(tmp_path / "t.csv", tmp_path / "p.csv")
    assert outcome.metrics["per_target"]["y"]["accuracy"] == pytest.approx(right.mean())


def test_the_positive_class_is_an_option_of_the_task(table: pd.DataFrame, wide: np.ndarray) -> None:
    y = np.where(wide, "safe", "toxic")
    models = (gtx.MoleculeClassifier(**KERNEL, task_options={"positive": label}) for label in ("safe", "toxic"))
    one, other = (model.fit(table.smiles, y) for model in models)
    np.testing.assert_allclose(one.predict_proba(table.smiles), other.predict_proba(table.smiles), atol=1e-6)
    pred = (estimator.predictor_.predict(table.smiles).y_pred for estimator in (one, other))
    np.testing.assert_allclose(sum(pred), 1, atol=1e-6)
    assert one.predictor_.task.columns.labels(0) == ("toxic", "safe")


def test_several_labels_of_which_some_are_written_as_a_table_writes_blanks(table, wide) -> None:
    y = pd.DataFrame({"a": np.where(wide, "yes", "no"), "b": np.where(wide, "inhibitor", "non-inhibitor")})
    y.loc[::7, "b"] = "n/a"
    estimator = gtx.MoleculeClassifier(**KERNEL).fit(table.smiles, y)
    assert [each.tolist() for each in estimator.classes_] == [["no", "yes"], ["inhibitor", "non-inhibitor"]]
    p, predicted = estimator.predict_proba(table.smiles), estimator.predict(table.smiles)
    told = estimator.predictor_.predict(table.smiles)
    np.testing.assert_allclose(p, np.stack([told.a_pred, 1 - told.b_pred], axis=1))
    assert (predicted == told[["a_class", "b_class"]].to_numpy()).all()
    known = y.b != "n/a"
    each = [(predicted[:, 0] == y.a).mean(), (predicted[known, 1] == y.b[known]).mean()]
    assert estimator.score(table.smiles, y) == pytest.approx(np.mean(each))


def test_several_columns_of_which_one_has_three_classes(table: pd.DataFrame, wide: np.ndarray) -> None:
    size = pd.qcut(table.gap, 3, labels=["small", "medium", "large"]).astype(str)
    y = pd.DataFrame({"size": size, "polar": np.where(wide, "yes", "no")})
    y.loc[::5, "size"] = np.nan
    estimator = gtx.MoleculeClassifier(**KERNEL).fit(table.smiles, y)
    assert [each.tolist() for each in estimator.classes_] == [["large", "medium", "small"], ["no", "yes"]]
    probabilities, predicted = estimator.predict_proba(table.smiles), estimator.predict(table.smiles)
    assert [p.shape for p in probabilities] == [(60, 3), (60, 2)]
    for t, (p, classes) in enumerate(zip(probabilities, estimator.classes_, strict=True)):
        np.testing.assert_allclose(p.sum(1), 1, rtol=1e-6)
        np.testing.assert_array_equal(classes[p.argmax(1)], predicted[:, t])
    answers = estimator.predictor_.predict(table.smiles)
    np.testing.assert_array_equal(answers[["size_pred", "polar_pred"]], predicted)
    known = ~pd.isna(y["size"])
    each = [(predicted[known, 0] == y["size"][known]).mean(), (predicted[:, 1] == y.polar).mean()]
    assert estimator.score(table.smiles, y) == pytest.approx(np.mean(each))
    with pytest.warns(UserWarning, match="NaN is returned"):
        assert [np.isnan(p).all(1).tolist() for p in estimator.predict_proba(["C", "C1CC"])] == [[False, True]] * 2
