"""Counts: the rate of a Poisson variable is found, and the scores are those of scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_poisson_deviance

from gtx.data import Row, RowLog
from gtx.errors import InputError
from gtx.tasks import CountRegression
from gtx.tasks.counts import deviance
from tests.molecules_for_tests import store

RNG = np.random.default_rng(0)


def test_the_loss_is_least_at_the_mean_of_what_was_counted() -> None:
    y = torch.from_numpy(RNG.poisson(3.7, (400, 1)))
    molecules = store(["C"] * len(y)).with_targets(y.double())
    task = CountRegression("n").fitted(molecules)
    output = torch.tensor(0.4, requires_grad=True)  # the one output of molecules that are all alike
    search = torch.optim.LBFGS([output], line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        search.zero_grad()
        found = task.elementwise(output.expand(len(y), 1), task.scaled(molecules)).mean()
        found.backward()
        return found

    for _ in range(5):
        search.step(loss)
    rate = task.unscaled(output.detach()[None, None], molecules)
    assert float(rate) == pytest.approx(float(y.double().mean()), rel=1e-4)
    least = float(loss().detach())
    assert least == pytest.approx(float(deviance(rate, y.double())) / 2 / task.means[0], rel=1e-4)


def test_deviance_is_scikit_learns_and_infinite_for_what_was_held_impossible() -> None:
    y, p = torch.from_numpy(RNG.poisson(2.0, 50)).double(), torch.from_numpy(RNG.gamma(2.0, 1.0, 50))
    assert float(deviance(p, y)) == pytest.approx(mean_poisson_deviance(y, p))
    found = CountRegression("n").evaluate(np.array([[1.0], [0.0]]), np.array([[0.0], [0.0]]))
    assert found["deviance"] is None and found["mae"] == 0.5


def test_cells_that_are_no_counts_are_errors_of_their_rows() -> None:
    rows = [Row(i + 1, ["C", cell], "C") for i, cell in enumerate(["0", "3", "2.5", "-1", "", "1e3", "many", "inf"])]
    row_log = RowLog()
    y = CountRegression("n").parse(rows, ["smiles", "n"], row_log)
    np.testing.assert_array_equal(y[:, 0], [0, 3, np.nan, np.nan, np.nan, 1000, np.nan, np.nan])
    assert sorted(row_log.errors) == [3, 4, 7, 8]
    assert row_log.errors[3] == 'row 3, column "n", value "2.5": is not a whole number of 0 or more, nor blank'


@pytest.mark.parametrize(("y", "said"), [([0, 0], "0 for all"), ([1, 2.5], "molecule 1, .* 2.5, is not a whole")])
def test_training_rows_that_teach_no_rate_are_refused(y: list, said: str) -> None:
    molecules = store(["C", "CC"])
    with pytest.raises(InputError, match=said):
        CountRegression("n").fitted(replace(molecules, y=torch.tensor(y, dtype=torch.float64)[:, None]))
