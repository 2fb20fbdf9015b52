from __future__ import annotations

import re

import numpy as np
import pytest

from gtx.report.headline import headline
from gtx.tasks import BinaryClassification, Regression

from .conftest import SPLIT


def test_one_target_leads_with_its_rmse(make_report):
    report = make_report(targets=("additive",), units={"additive": "eV"})
    found = headline(report)
    assert found.label == "RMSE in eV"
    assert found.text == f"{report.scores['test']['rmse']:#.3g}"
    assert [bar.name for bar in found.bars] == ["This model", "Ridge regression", "Random forest", "Training mean"]
    assert found.bars[0].ours and found.bars[-1].length == 1
    ratio = report.scores["test"]["rmse"] / report.baselines["ridge"]["test"]["rmse"]
    expected = f"This model is better than the best baseline (ridge regression): its RMSE is {1 - ratio:.0%} lower."
    assert found.verdict == expected


def ends(difference: str) -> list[float]:
    found = re.fullmatch(r"(\S+) to ridge regression, 95% interval (\S+) to (\S+)", difference).groups()
    return [float(number.replace("−", "-")) for number in found]


@pytest.mark.parametrize("targets", [("additive",), ("additive", "letters")])
def test_the_interval_is_of_the_difference_to_the_best_baseline_molecule_by_molecule(make_report, targets):
    """Both make the same large errors, and the model one of its own beside each: the scores are rough, not their
    difference."""
    report = make_report(targets=targets)
    shared = np.random.default_rng(5).normal(size=report.y.shape)
    rivals = {"mean": report.rivals["mean"], "ridge": np.nan_to_num(report.y + shared)}
    for share, verdict in ((0.97, "is better than"), (1.03, "is worse than"), (1.0, "are equally good")):
        found = headline(
            make_report(targets=targets, rivals=rivals, prediction=np.nan_to_num(report.y + share * shared))
        )
        assert verdict in found.verdict
        middle, low, high = ends(found.difference)
        assert low <= middle <= high and np.sign(low) == np.sign(high) == np.sign(share - 1)
    other = np.random.default_rng(6).normal(size=report.y.shape)
    found = headline(make_report(targets=targets, rivals=rivals, prediction=np.nan_to_num(report.y + other)))
    middle, low, high = ends(found.difference)
    assert low < 0 < high and "cannot be distinguished" in found.verdict


@pytest.mark.parametrize(("kind", "count"), [(Regression, 9), (BinaryClassification, 1)])
def test_a_few_molecules_have_no_verdict(make_report, kind, count):
    split = {**SPLIT, "test": SPLIT["test"][:count]}
    found = headline(make_report(kind, targets=("letters",), split=split))
    assert (
        found.verdict.startswith("No verdict: ") and "10 or more" in found.verdict and f"{count} test" in found.verdict
    )
    assert found.difference == ""


def test_a_class_that_is_hardly_there_has_no_verdict(make_report):
    report = make_report(BinaryClassification, targets=("letters",))
    report.y[report.split["test"], 0] = np.arange(20) < 3
    found = headline(make_report(BinaryClassification, targets=("letters",), y=report.y))
    assert found.verdict.startswith("No verdict: ") and "of each class 5" in found.verdict


def test_targets_of_several_units_are_compared_with_the_mean_predictor(make_report):
    report = make_report()
    found = headline(report)
    scores, plain = report.scores["test"]["per_target"], report.baselines["mean"]["test"]["per_target"]
    expected = np.mean([scores[name]["rmse"] / plain[name]["rmse"] for name in report.targets])
    assert found.text == f"{expected:#.3g}"
    assert found.bars[-1].length == pytest.approx(1) and found.bars[-1].name == "Training mean"
    assert found.verdict.endswith("Target by target, it scores better than the best baseline for 2 of 2.")


def test_classes_lead_with_the_area_under_the_roc_curve(make_report):
    report = make_report(BinaryClassification, targets=("additive",))
    found = headline(report)
    assert found.label == "ROC-AUC"
    assert found.bars[0].length == pytest.approx(report.scores["test"]["roc_auc"]) or not found.bars[0].ours


def test_what_is_not_defined_is_not_compared(make_report):
    report = make_report(BinaryClassification, targets=("additive",))
    report.y[report.split["test"]] = 1.0
    undefined = {"roc_auc": None, "pr_auc": None, "accuracy": 1.0}
    scores = dict.fromkeys(("train", "val", "test"), undefined | {"per_target": {"additive": undefined}})
    found = headline(
        make_report(BinaryClassification, targets=("additive",), scores=scores, baselines={"mean": scores})
    )
    assert found.text == "–" and found.bars == []
    assert found.verdict.startswith("No verdict: ")


def test_a_baseline_may_make_no_error(make_report):
    def scored(rmse):
        return {p: {"rmse": rmse, "per_target": {"additive": {"rmse": rmse}}} for p in ("train", "val", "test")}

    rivals = {"mean": scored(0.0), "ridge": scored(1e-16)}  # a target that is the same everywhere
    for ours, verdict in ((0.0, "equally good"), (0.2, "cannot be distinguished")):
        found = headline(make_report(targets=("additive",), scores=scored(ours), baselines=rivals))
        assert verdict in found.verdict
