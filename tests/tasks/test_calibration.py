"""Probabilities and sets of classes, on data whose probabilities are known."""

import numpy as np
import pytest

from gtx.tasks import BinaryClassification, MulticlassClassification
from gtx.tasks.numeric import Predictions
from gtx.tasks.uncertainty import (
    apply_curves,
    apply_temperature,
    evaluate_probabilities,
    fit_isotonic,
    fit_temperature,
    unlikeliness,
)


def drawn(rows: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """True probabilities `[rows, classes]`, and classes that follow them."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(classes), rows)
    return p, (random.random((rows, 1)) > p.cumsum(1)).sum(1)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_temperature_undoes_a_temperature(classes: int) -> None:
    p, y = drawn(5000, classes)
    too_sure = apply_temperature(p, 0.4)
    assert fit_temperature(y, too_sure) == pytest.approx(2.5, rel=0.06)
    assert fit_temperature(y, p) == pytest.approx(1, rel=0.06)
    np.testing.assert_allclose(apply_temperature(too_sure, 2.5), p, atol=1e-6)
    assert fit_temperature(y[:9], too_sure[:9]) == 1


@pytest.mark.parametrize("classes", [2, 3])
def test_steps_undo_any_ascending_distortion(classes: int) -> None:
    p, y = drawn(20_000, classes)
    wrong = p**2 / (p**2).sum(1, keepdims=True) if classes > 2 else np.stack([1 - p[:, 1] ** 3, p[:, 1] ** 3], 1)
    found = apply_curves(wrong, fit_isotonic(y, wrong))
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


@pytest.mark.parametrize("kind, classes", [(BinaryClassification, 2), (MulticlassClassification, 4)])
@pytest.mark.parametrize(
    ("calibration", "sets", "coverage"),
    [("none", "smallest", 0.9), ("temperature", "adaptive", 0.8), ("isotonic", "smallest", 0.8)],
)
def test_sets_of_new_rows_hold_the_true_class(kind, classes, calibration, sets, coverage) -> None:
    labels = tuple("abcd"[:classes])
    task = kind("y", calibration=calibration, sets=True, set_kind=sets, coverage=coverage, classes=(labels,))
    p, y = drawn(8000, classes)
    mean = apply_temperature(p, 0.5)[:, 1:] if classes == 2 else apply_temperature(p, 0.5)
    told = Predictions(mean=mean[:4000], warnings=[[]] * 4000)
    fitted = task.calibrate(told, y[:4000, None].astype(float))
    assert type(task).from_dict(fitted.to_dict()).to_dict() == fitted.to_dict()
    new = fitted.answers.calibrate(mean[4000:])
    found = fitted.answers.evaluate_uncertainty(y[4000:, None], Predictions(mean=new, warnings=[]))
    assert found["coverage"] == pytest.approx(coverage, abs=0.02) and found["size"] < classes
    assert any(note.startswith(f"sets of {100 * coverage:g}%: ") for note in fitted.answers.notes())
    assert (found["ece"] > 0.05) == (calibration == "none")
    texts = fitted.answers.set_texts(new, 0)
    assert set(texts) <= {
        "|".join(c for c, held in zip(labels, row, strict=True) if held) for row in np.ndindex((2,) * classes)
    }
    held = [labels[k] in text.split("|") for k, text in zip(y[4000:], texts, strict=True)]
    assert all(texts) and np.mean(held) > coverage - 0.02


def test_adaptive_sets_hold_it_for_hard_rows_as_for_easy_ones() -> None:
    random = np.random.default_rng(1)
    hard = np.arange(20_000) % 2 == 0
    p = np.where(hard[:, None], random.dirichlet(np.full(10, 2.0), 20_000), random.dirichlet(np.full(10, 0.15), 20_000))
    y = (random.random((20_000, 1)) > p.cumsum(1)).sum(1).clip(max=9)
    gaps, sizes = {}, {}
    for kind in ("smallest", "adaptive"):
        task = MulticlassClassification("y", sets=True, set_kind=kind, classes=(tuple("abcdefghij"),))
        told = Predictions(mean=p[:10_000], warnings=[[]] * 10_000)
        fitted = task.calibrate(told, y[:10_000, None].astype(float))
        held = fitted.answers.members_of_sets(p[10_000:], 0)
        inside = np.take_along_axis(held, y[10_000:, None], 1)[:, 0]
        assert inside.mean() == pytest.approx(0.9, abs=0.015)
        shares = [inside[rows].mean() for rows in (hard[10_000:], ~hard[10_000:])]
        gaps[kind], sizes[kind] = abs(shares[0] - shares[1]), held.sum(1).mean()
    assert gaps["adaptive"] < 0.03 < 0.05 < gaps["smallest"]
    assert sizes["smallest"] < sizes["adaptive"]


def test_adaptive_scores_are_those_of_the_likelier_classes_and_half_of_the_own() -> None:
    p = np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(unlikeliness(p, "adaptive"), [[0.9, 0.25, 0.65], [1, 0.5, 1]])
    np.testing.assert_array_equal(unlikeliness(p, "smallest"), 1 - p)


def test_too_few_rows_leave_probabilities_and_hold_all_classes() -> None:
    task = BinaryClassification("y", calibration="isotonic", sets=True, classes=(("a", "b"),))
    mean = np.linspace(0.1, 0.9, 5)[:, None]
    fitted = task.calibrate(Predictions(mean=mean, warnings=[[]] * 5), np.array([[0.0], [0], [1], [1], [np.nan]]))
    np.testing.assert_array_equal(fitted.answers.calibrate(mean), mean)
    assert fitted.answers.set_texts(mean, 0).tolist() == ["a|b"] * 5
