"""Classes of an estimator are those of `gtx train` on the same table: their spelling, their order, the positive one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gtx
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model
from tests.tables import ALONE, molecules, write

KERNEL = {"model": "kernel", "workers": 0}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return molecules(60)


@pytest.fixture(scope="module")
def wide(table: pd.DataFrame) -> np.ndarray:
    return (table.gap > table.gap.median()).to_numpy()


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("inactive", "active"),
        ("non-mutagen", "mutagen"),
        ("BBB-", "BBB+"),
        (False, True),
        (0.0, 1.0),
        (-1, 1),
        ("0", "1.0"),
    ],
)
def test_a_saved_classifier_predicts_what_that_of_gtx_train_predicts(
    low: object, high: object, table: pd.DataFrame, wide: np.ndarray, tmp_path: Path
) -> None:
    y = pd.Series([high if each else low for each in wide], name="y", dtype=object)
    y[5] = np.nan
    estimator = gtx.MoleculeClassifier(**KERNEL).fit(table.smiles, y)
    estimator.save(tmp_path / "model.gtx")
    rows = [[smiles, "" if pd.isna(value) else value] for smiles, value in zip(table.smiles, y, strict=True)]
    data = DataSettings(str(write(tmp_path / "t.csv", rows, ["smiles", "y"])), ("y",), workers=0)
    train_model(data, TrainSettings(model="kernel", progress=False), tmp_path / "run", **ALONE)
    saved, trained = (gtx.load(tmp_path / file) for file in ("model.gtx", "run/model.gtx"))
    assert saved.task.columns.labels(0) == trained.task.columns.labels(0)
    told, expected = (model.predict(table.smiles) for model in (saved, trained))
    assert list(told) == list(expected)
    assert np.corrcoef(told.y_pred, expected.y_pred)[0, 1] > 0.9 and told.y_pred[wide].mean() > 0.6
    place = estimator.classes_.tolist().index(high)
    np.testing.assert_allclose(estimator.predict_proba(table.smiles)[:, place], told.y_pred)
    assert estimator.classes_.tolist() == sorted([low, high])
    known = ~pd.isna(y)
    right = estimator.predict(table.smiles[known]) == y[known].to_numpy()
    assert estimator.score(table.smiles, y) == right.mean() > 0.8
    outcome = saved.predict_table(tmp_path / "t.csv", tmp_path / "p.csv")
    assert outcome.metrics["per_target"]["y"]["accuracy"] == pytest.approx(right.mean())


def test_the_positive_class_is_an_option_of_the_task(table: pd.DataFrame, wide: np.ndarray, tmp_path: Path) -> None:
    y = np.where(wide, "safe", "toxic")
    one, other = (
        gtx.MoleculeClassifier(**KERNEL, task_options={"positive": label}).fit(table.smiles, y)
        for label in ("safe", "toxic")
    )
    np.testing.assert_allclose(one.predict_proba(table.smiles), other.predict_proba(table.smiles), atol=1e-6)
    pred = (estimator.predictor_.predict(table.smiles).y_pred for estimator in (one, other))
    np.testing.assert_allclose(sum(pred), 1, atol=1e-6)
    assert one.predictor_.task.columns.labels(0) == ("toxic", "safe")


def test_several_labels_of_which_some_are_written_as_a_table_writes_blanks(
    table: pd.DataFrame, wide: np.ndarray
) -> None:
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
