import math

import numpy as np
import pytest
import torch

from gtx.tasks import BinaryClassification, Regression
from gtx.tasks.numeric import Predictions
from gtx.tasks.regression import TargetScaler
from gtx.tasks.uncertainty import conformal_half_width, fewest, rank


def test_it_is_the_residual_of_the_corrected_rank_and_blanks_do_not_count() -> None:
    y = np.array([[float(i), np.nan if i > 9 else -i] for i in range(1, 20)])
    assert conformal_half_width(y, np.zeros_like(y)).tolist() == [18.0, 9.0]


@pytest.mark.parametrize("level", [0.55, 0.9, 0.999])
def test_a_level_takes_as_many_values_as_it_says(level: float) -> None:
    needed = fewest(level)
    assert rank(needed, level) <= needed and rank(needed - 1, level) > needed - 1
    for values, enough in ((needed, True), (needed - 1, False)):
        half = conformal_half_width(np.arange(1.0, values + 1)[:, None], np.zeros((values, 1)), level)
        assert math.isfinite(half[0]) == enough
    assert [fewest(x) for x in (0.9, 0.95, 0.99)] == [9, 19, 99] and rank(24, 0.56) == 14  # 25 * 0.56 > 14 in floats


@pytest.mark.parametrize("coverage", [0.8, 0.95])
@pytest.mark.parametrize("uncertainty", ["none", "variance"])
def test_intervals_of_new_rows_hold_the_share_that_was_asked_for(uncertainty: str, coverage: float) -> None:
    random = np.random.default_rng(0)
    spread = random.uniform(0.2, 2, (8000, 1))
    y, mean = 5 + spread * random.standard_normal((8000, 1)), np.full((8000, 1), 5.0)
    reach = None if uncertainty == "none" else (3 * spread, 3 * spread)
    std = None if reach is None else 3 * spread
    scaler = TargetScaler.fit(torch.tensor([[4.0], [6.0]]))
    task = Regression("y", uncertainty=uncertainty, coverage=coverage, scaler=scaler)
    told = Predictions(mean=mean, std=std, warnings=[[]] * 8000, reach=reach)
    half = np.arange(8000) < 4000
    fitted = task.calibrate(told.subset(np.flatnonzero(half)), y[half])
    corrected = None if reach is None else tuple(each[~half] * fitted.std_factor for each in reach)
    low, high = fitted.answers.bounds(mean[~half], corrected)
    inside = (low <= y[~half]) & (y[~half] <= high)
    assert inside.mean() == pytest.approx(coverage, abs=0.02)
    assert f"intervals of {100 * coverage:g}%: y ±" in fitted.answers.notes()[0]
    again = Regression.from_dict(fitted.to_dict())
    assert again.coverage == coverage and again.interval == fitted.interval


def test_a_target_without_spread_in_training_has_no_interval_of_width_0() -> None:
    y = np.stack([np.arange(18.0), np.arange(18.0), np.zeros(18)], axis=1)
    told = Predictions(mean=np.zeros((18, 3)), std=(std := np.array([[1.0, 0, 0]] * 18)), reach=(std, std), warnings=[])
    scaler = TargetScaler.fit(torch.tensor([[4.0, 4, 0], [6.0, 4, 0]]))
    fitted = Regression(["a", "b", "c"], uncertainty="variance", scaler=scaler).calibrate(told, y)
    assert fitted.interval["half_width"][1:] == [None, 0.0]
    assert fitted.answers.notes()[0].endswith(
        "b none, c ±0 standard deviations; none with fewer than 9 validation values or with standard deviations of 0"
    )


def test_where_values_are_too_few_it_is_said_how_many_a_level_takes() -> None:
    y = np.stack([np.arange(18.0), np.arange(18.0)], axis=1)
    y[0, 1] = np.nan
    told = Predictions(mean=np.zeros((18, 2)), warnings=[[]] * 18)
    scaler = TargetScaler.fit(torch.tensor([[4.0, 4.0], [6.0, 6.0]]))
    for coverage, words in (
        (0.9, "intervals of 90%: a ±17, b ±17"),
        (0.945, "intervals of 94.5%: a ±17, b none; none with fewer than 18 validation values"),
        (0.95, "intervals of 95%: a none, b none; none with fewer than 19 validation values"),
    ):
        fitted = Regression(["a", "b"], coverage=coverage, scaler=scaler).calibrate(told, y)
        assert fitted.answers.notes() == [words]
        assert list(fitted.answers.output_columns([]))[:2] == (
            ["a_pred", "b_pred"] if coverage == 0.95 else ["a_pred", "a_low"]
        )
        assert (fitted.answers.bounds(told.mean, None)[0] is None) == (coverage == 0.95)
    task = BinaryClassification("y", sets=True, coverage=0.95, classes=(("a", "b"),))
    fitted = task.calibrate(Predictions(mean=np.full((18, 1), 0.4), warnings=[[]] * 18), np.ones((18, 1)))
    assert (
        "sets of 95%: " in fitted.answers.notes()[0]
        and "any with fewer than 19 validation values" in fitted.answers.notes()[0]
    )
