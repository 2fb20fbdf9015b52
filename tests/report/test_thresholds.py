from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from gtx.report.panels import thresholds
from gtx.tasks import BinaryClassification

from .conftest import SPLIT


@pytest.fixture
def report(make_report):
    found = make_report(BinaryClassification, targets=("additive",))
    found.prediction[:, 0] = np.random.default_rng(3).beta(2, 2, len(found.prediction)) * 0.7 + 0.3 * found.y[:, 0]
    np.nan_to_num(found.prediction, copy=False)
    return found


def counts(y: np.ndarray, predicted: np.ndarray) -> tuple[int, int, int, int]:
    return tuple(int(((y == i) & (predicted == j)).sum()) for i in (0, 1) for j in (0, 1))


def test_scores_at_a_threshold_are_those_of_its_classes(report) -> None:
    rows = report.measured("test", 0)
    for found in thresholds(report, 0):
        tn, fp, fn, tp = counts(report.y[rows, 0], report.prediction[rows, 0] > found.value)
        recall, precision = tp / (tp + fn), tp / (tp + fp)
        expected = [precision, recall, 2 * tp / (2 * tp + fp + fn), (recall + tn / (tn + fp)) / 2]
        assert list(found.scores.values()) == pytest.approx(expected)
    assert [found.value for found in thresholds(report, 0)][:3] == [0.3, 0.5, 0.7]


def test_two_thresholds_are_the_best_in_validation_and_do_not_look_at_the_test_molecules(report) -> None:
    rows = report.measured("val", 0)
    y, probability = report.y[rows, 0], report.prediction[rows, 0]
    *_, f1, youden = thresholds(report, 0)
    assert (f1.why, youden.why) == ("highest F1 in validation", "highest Youden index in validation")
    every = np.concatenate([[0], np.sort(probability)])
    assert f1_score(y, probability > f1.value) == max(f1_score(y, probability > value) for value in every)

    def index(value: float) -> float:
        tn, fp, fn, tp = counts(y, probability > value)
        return tp / (tp + fn) + tn / (tn + fp) - 1

    assert index(youden.value) == pytest.approx(max(map(index, every)))
    report.prediction[SPLIT["test"]] = 0.9
    assert [found.value for found in thresholds(report, 0)][3:] == [f1.value, youden.value]


def test_precision_of_nothing_is_not_defined(report) -> None:
    report.prediction[SPLIT["test"]] = 0.1
    assert np.isnan(thresholds(report, 0)[1].scores["precision"])


def test_one_class_has_no_table_and_chooses_nothing(report) -> None:
    report.y[SPLIT["val"]] = 1
    assert len(thresholds(report, 0)) == 3
    report.y[SPLIT["test"]] = 1
    assert thresholds(report, 0) == []
