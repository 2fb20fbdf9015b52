"""What the bar of a benchmark says."""

from __future__ import annotations

import numpy as np

from gtx.tasks import Regression
from gtx.workflow.parallel import _words


def test_scores_of_several_targets_are_not_averaged_across_units() -> None:
    y = np.random.default_rng(0).normal(size=(30, 2))
    worse = np.array([0.5, 0.1])  # half of a deviation off in one target, a tenth in the other
    results = []
    for factor in (1.0, 1000.0):
        unit = np.array([1.0, factor])
        guesses = {"gtx": y * (1 - worse), "ridge": y * 0.6, "mean": np.zeros_like(y)}
        scores = {name: Regression(["a", "b"]).evaluate(y * unit, guess * unit) for name, guess in guesses.items()}
        results.append(_words([{"scores": scores}, None], Regression(["a"])))
    assert results[0] == results[1] == "1/2 splits; RMSE ÷ the mean's 0.300, best baseline 0.400"


def test_a_single_target_has_its_unit() -> None:
    y = np.random.default_rng(0).normal(size=(30, 1))
    guesses = {"gtx": y + 2, "ridge": y + 3, "mean": y + 4}
    scores = {name: Regression(["a"]).evaluate(y, guess) for name, guess in guesses.items()}
    assert _words([{"scores": scores}], Regression(["a"])) == "1/1 splits; RMSE 2.00, best baseline 3.00"
    assert _words([None], Regression(["a"])) == "0/1 splits"
