"""Probabilities and sets of classes, on data whose probabilities are known."""

from __future__ import annotations

import numpy as np
import pytest

from gtx.tasks import Classification, Multiclass
from gtx.tasks.calibration import evaluate_probabilities, fit_isotonic, fit_temperature, stepped, tempered
from gtx.tasks.predictions import Predictions


def drawn(rows: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """True probabilities `[rows, classes]`, and classes that follow them."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(classes), rows)
    return p, (random.random((rows, 1)) > p.cumsum(1)).sum(1)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_temperature_undoes_a_temperature(classes: int) -> None:
    p, y = drawn(5000, classes)
    too_sure = tempered(p, 0.4)
    assert fit_temperature(y, too_sure) == pytest.approx(2.5, rel=0.06)
    assert fit_temperature(y, p) == pytest.approx(1, rel=0.06)
    np.testing.assert_allclose(tempered(too_sure, 2.5), p, atol=1e-6)
    assert fit_temperature(y[:9], too_sure[:9]) == 1


@pytest.mark.parametrize("classes", [2, 3])
def test_steps_undo_any_ascending_distortion(classes: int) -> None:
    p, y = drawn(20_000, classes)
    wrong = p**2 / (p**2).sum(1, keepdims=True) if classes > 2 else np.stack([1 - p[:, 1] ** 3, p[:, 1] ** 3], 1)
    found = stepped(wrong, fit_isotonic(y, wrong))
    before, after, best = (evaluate_probabilities(y, each) for each in (wrong, found, p))
    assert after["ece"] < 0.02 < 0.05 < before["ece"]
    assert best["nll"] - 0.02 < after["nll"] < before["nll"] and found.min() > 0
    np.testing.assert_allclose(found.sum(1), 1)
    assert fit_isotonic(y[:9], p[:9]) is None


def test_scores_of_probabilities_are_what_they_say() -> None:
    found = evaluate_probabilities(np.array([0, 1]), np.array([[0.8, 0.2], [0.6, 0.4]]))
    assert found["nll"] == pytest.approx(-np.log([0.8, 0.4]).mean())
    assert found["brier"] == pytest.approx((2 * 0.04 + 2 * 0.36) / 2)
    assert found["ece"] == pytest.approx((0.2 + 0.6) / 2) and found["auroc"] == 1
    assert evaluate_probabilities(np.array([0]), np.array([[0.8, 0.2]]))["auroc"] is None


@pytest.mark.parametrize("kind, classes", [(Classification, 2), (Multiclass, 4)])
@pytest.mark.parametrize("calibration", ["none", "temperature", "isotonic"])
def test_sets_of_new_rows_hold_the_true_class(kind: type, classes: int, calibration: str) -> None:
    labels = tuple("abcd"[:classes])
    task = kind("y", calibration=calibration, sets=True, classes=(labels,))
    p, y = drawn(8000, classes)
    mean = tempered(p, 0.5)[:, 1:] if classes == 2 else tempered(p, 0.5)
    told = Predictions(mean[:4000], None, None, None, [[]] * 4000)
    fitted = task.calibrated(told, y[:4000, None].astype(float))
    assert type(task).from_dict(fitted.to_dict()).to_dict() == fitted.to_dict()
    new = fitted.corrected(mean[4000:])
    found = fitted.evaluate_uncertainty(y[4000:, None], Predictions(new, None, None, None, []))
    assert found["coverage"] == pytest.approx(0.9, abs=0.02) and 1 < found["size"] < classes
    assert (found["ece"] > 0.05) == (calibration == "none")
    texts = fitted.set_columns(new, 0)[0]
    assert set(texts) <= {
        "|".join(c for c, held in zip(labels, row, strict=True) if held) for row in np.ndindex((2,) * classes)
    }
    assert (
        all(texts) and np.mean([labels[k] in text.split("|") for k, text in zip(y[4000:], texts, strict=True)]) > 0.88
    )


def test_too_few_rows_leave_probabilities_and_hold_all_classes() -> None:
    task = Classification("y", calibration="isotonic", sets=True, classes=(("a", "b"),))
    mean = np.linspace(0.1, 0.9, 5)[:, None]
    fitted = task.calibrated(Predictions(mean, None, None, None, [[]] * 5), np.array([[0.0], [0], [1], [1], [np.nan]]))
    np.testing.assert_array_equal(fitted.corrected(mean), mean)
    assert fitted.set_columns(mean, 0)[0].tolist() == ["a|b"] * 5
