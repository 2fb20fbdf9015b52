from __future__ import annotations

import numpy as np
import pytest

from gtx.report.headline import headline
from gtx.tasks import Classification


def test_one_target_leads_with_its_rmse(make_report):
    report = make_report(targets=("additive",), units={"additive": "eV"})
    found = headline(report)
    assert found.label == "RMSE in eV"
    assert found.text == f"{report.scores['test']['rmse']:#.3g}"
    low, high = map(float, found.span.split(" to "))
    assert low < report.scores["test"]["rmse"] < high
    assert [bar.name for bar in found.bars] == ["This model", "Ridge regression", "Random forest", "Training mean"]
    assert found.bars[0].ours and found.bars[-1].length == 1
    ratio = report.scores["test"]["rmse"] / report.baselines["ridge"]["test"]["rmse"]
    expected = f"This model is better than the best baseline (ridge regression): its RMSE is {1 - ratio:.0%} lower."
    assert found.verdict == expected


def test_a_baseline_that_does_better_is_said_to(make_report):
    model = make_report(targets=("additive",))
    better = {part: scores | {"per_target": {"additive": {"rmse": 0.0201}}} for part, scores in model.scores.items()}
    found = headline(make_report(targets=("additive",), baselines=model.baselines | {"ridge": better}))
    gap = 1 - 0.0201 / model.scores["test"]["rmse"]
    assert found.verdict == f"Ridge regression is better than this model: its RMSE is {gap:.0%} lower."
    near = {"per_target": {"additive": {"rmse": model.scores["test"]["rmse"] * 0.99}}}
    found = headline(make_report(targets=("additive",), baselines={"ridge": {p: near | {"rmse": 1.0} for p in better}}))
    assert found.verdict.startswith("Ridge regression is better than this model: its RMSE is 1% lower.")
    assert found.verdict.endswith("contains the score of the baseline, so the difference may be chance.")


def test_targets_of_several_units_are_compared_with_the_mean_predictor(make_report):
    report = make_report()
    found = headline(report)
    scores, plain = report.scores["test"]["per_target"], report.baselines["mean"]["test"]["per_target"]
    expected = np.mean([scores[name]["rmse"] / plain[name]["rmse"] for name in report.targets])
    assert found.text == f"{expected:#.3g}"
    assert found.bars[-1].length == pytest.approx(1) and found.bars[-1].name == "Training mean"
    assert found.verdict == "This model is better than the best baseline for 2 of 2 targets."
    assert found.span == ""


def test_classes_lead_with_the_area_under_the_roc_curve(make_report):
    report = make_report(Classification, targets=("additive",))
    found = headline(report)
    assert found.label == "ROC-AUC"
    assert found.bars[0].length == pytest.approx(report.scores["test"]["roc_auc"]) or not found.bars[0].ours


def test_what_is_not_defined_is_not_compared(make_report):
    report = make_report(Classification, targets=("additive",))
    report.y[report.split["test"]] = 1.0
    undefined = {"roc_auc": None, "pr_auc": None, "accuracy": 1.0}
    scores = dict.fromkeys(("train", "val", "test"), undefined | {"per_target": {"additive": undefined}})
    found = headline(make_report(Classification, targets=("additive",), scores=scores, baselines={"mean": scores}))
    assert found.text == "–" and found.bars == []
    assert found.verdict.startswith("Too few values are measured")


@pytest.mark.parametrize(("ours", "verdict"), [(0.0, "are equally good."), (0.2, "its RMSE is 100% lower.")])
def test_a_baseline_may_make_no_error(make_report, ours, verdict):
    def scored(rmse):
        return {p: {"rmse": rmse, "per_target": {"additive": {"rmse": rmse}}} for p in ("train", "val", "test")}

    rivals = {"mean": scored(0.0), "ridge": scored(1e-16)}  # a target that is the same everywhere
    found = headline(make_report(targets=("additive",), scores=scored(ours), baselines=rivals))
    assert found.verdict.startswith("This model and" if not ours else "Training mean is") and verdict in found.verdict
