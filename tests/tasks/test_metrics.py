"""Metrics agree with scikit-learn, leave out blanks and are None where they are not defined."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics as sk

from gtx.tasks import BinaryClassification, MulticlassClassification, Regression

RNG = np.random.default_rng(0)


def test_regression_agrees_with_scikit_learn_target_by_target() -> None:
    y, p = RNG.normal(1e3, 5, (40, 2)), RNG.normal(1e3, 5, (40, 2))
    y[::3, 1] = np.nan
    scores = Regression(["a", "b"]).evaluate(y, p)
    seen = ~np.isnan(y[:, 1])
    b = scores["per_target"]["b"]
    assert b["rmse"] == pytest.approx(sk.root_mean_squared_error(y[seen, 1], p[seen, 1]))
    assert b["mae"] == pytest.approx(sk.mean_absolute_error(y[seen, 1], p[seen, 1]))
    assert b["r2"] == pytest.approx(sk.r2_score(y[seen, 1], p[seen, 1]))
    for name in ("rmse", "mae", "r2"):
        assert scores[name] == pytest.approx((scores["per_target"]["a"][name] + b[name]) / 2)


@pytest.mark.parametrize("scale", [1e-12, 1e9])
def test_r2_does_not_depend_on_the_unit(scale: float) -> None:
    y, p = RNG.normal(0, 1, (40, 1)), RNG.normal(0, 1, (40, 1))
    r2 = Regression(["a"]).evaluate(scale * y, scale * p)["r2"]
    assert r2 == pytest.approx(Regression(["a"]).evaluate(y, p)["r2"]) == pytest.approx(sk.r2_score(y, p))


def test_classification_agrees_with_scikit_learn() -> None:
    y, p = RNG.integers(0, 2, (60, 1)).astype(float), RNG.random((60, 1)).round(1)  # ties
    scores = BinaryClassification(["a"]).evaluate(y, p)
    assert scores["roc_auc"] == pytest.approx(sk.roc_auc_score(y, p))
    assert scores["pr_auc"] == pytest.approx(sk.average_precision_score(y, p))
    assert scores["accuracy"] == pytest.approx(sk.accuracy_score(y, p > 0.5))


def test_what_is_not_defined_is_none_and_left_out_of_the_mean() -> None:
    y = np.array([[0.0, 1.0, np.nan], [1.0, 1.0, np.nan]])
    p = np.array([[0.1, 0.9, 0.5], [0.8, 0.2, 0.5]])
    scores = BinaryClassification(["a", "one class", "blank"]).evaluate(y, p)
    assert scores["roc_auc"] == 1.0 and scores["accuracy"] == 0.75
    assert scores["per_target"]["one class"] == {"roc_auc": None, "pr_auc": None, "accuracy": 0.5}
    assert set(scores["per_target"]["blank"].values()) == {None}
    one = Regression(["a"]).evaluate(np.array([[2.0]]), np.array([[3.0]]))
    assert (one["rmse"], one["mae"], one["r2"]) == (1.0, 1.0, None)
    none = Regression(["a"]).evaluate(np.zeros((0, 1)), np.zeros((0, 1)))
    assert none["rmse"] is None and none["r2"] is None


def test_is_plain_json_even_for_predictions_that_are_not_finite() -> None:
    scores = Regression(["a"]).evaluate(np.array([[1.0], [2.0]]), np.array([[np.nan], [2.0]]))
    assert json.loads(json.dumps(scores, allow_nan=False))["rmse"] is None


@pytest.mark.filterwarnings("error")
def test_classes_that_do_not_occur_have_no_say_and_no_warning() -> None:
    y, p = RNG.integers(0, 3, (60, 1)).astype(float), RNG.dirichlet(np.ones(4), 60)
    task = replace(MulticlassClassification("a"), classes=(("w", "x", "y", "z"),))
    shares = p[:, :3] / p[:, :3].sum(1, keepdims=True)
    each = [sk.roc_auc_score(y[:, 0] == k, p[:, k]) for k in range(3)]
    scores = task.evaluate(y, p)
    assert scores["roc_auc"] == pytest.approx(np.mean(each))
    assert scores["accuracy"] == pytest.approx(sk.accuracy_score(y[:, 0], p.argmax(1)))
    assert scores["mcc"] == pytest.approx(sk.matthews_corrcoef(y[:, 0], p.argmax(1)))
    three = replace(task, classes=(("w", "x", "y"),)).evaluate(y, shares)
    assert three["f1"] == pytest.approx(sk.f1_score(y[:, 0], shares.argmax(1), average="macro"))
