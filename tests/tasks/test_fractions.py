"""Fractions add up to 1, whatever comes, and the loss is least at what was measured."""

import numpy as np
import pytest
import torch
from scipy.special import rel_entr

from gtx.base.errors import InputError
from gtx.data import Row, RowLog
from gtx.tasks import FractionRegression
from gtx.tasks.metrics import masked_mean
from tests.molecules_for_tests import store

TASK = FractionRegression(["a", "b", "c"])
Y = torch.from_numpy(np.random.default_rng(0).dirichlet([0.3, 1.0, 2.0], 40))


def test_predictions_add_up_to_1_members_and_their_mean() -> None:
    molecules = store(["C"] * 40)
    outputs = torch.randn(40, 5, 3) * 20
    answers = TASK.answers.decode(outputs, molecules)
    np.testing.assert_allclose(answers.mean.sum(1), 1)
    assert (answers.mean >= 0).all() and answers.std.shape == (40, 3)
    np.testing.assert_allclose(TASK.project(np.array([[-1.0, 0.5, 1.5], [0, 0, 0]])).sum(1), 1)


def test_the_loss_is_the_divergence_and_least_where_the_shares_are_those_measured() -> None:
    output = torch.randn(40, 3, dtype=torch.float64, requires_grad=True)
    loss = masked_mean(TASK.objective.elementwise, output, Y)
    p = output.detach().softmax(-1).numpy()
    assert float(loss.detach()) == pytest.approx(rel_entr(Y.numpy(), p).sum(1).mean())
    assert TASK.objective.evaluate(Y, p)["kl"] == pytest.approx(float(loss.detach()), rel=1e-6)
    best = Y.log().requires_grad_()
    least = masked_mean(TASK.objective.elementwise, best, Y)
    assert float(least.detach()) == pytest.approx(0, abs=1e-12)
    assert torch.autograd.grad(least, best)[0].abs().max() < 1e-12
    one = torch.eye(3, dtype=torch.float64)[:1]  # fractions of 0 are no trouble
    assert masked_mean(TASK.objective.elementwise, output[:1], one).isfinite()


CELLS = [
    *(["0.2", "0.3", "0.5"], ["2", "3", "5"], ["", "", ""], ["0.5", "", "0.5"]),
    *(["0.5", "-0.1", "0.6"], ["0", "0", "0"], ["0.33", "0.33", "0.33"]),
]


@pytest.mark.parametrize(("normalise", "wrong"), [(False, [2, 4, 5, 6]), (True, [4, 5, 6])])
def test_rows_that_are_no_shares_are_errors(normalise: bool, wrong: list[int]) -> None:
    rows = [Row(i + 1, cells, "C") for i, cells in enumerate(CELLS)]
    row_log = RowLog()
    y = FractionRegression(["a", "b", "c"], normalise=normalise).columns.parse(rows, ["a", "b", "c"], row_log).y
    assert sorted(row_log.errors) == wrong
    known = ~np.isnan(y).any(1)
    assert known.tolist() == [i + 1 not in (*wrong, 3) for i in range(len(rows))]
    np.testing.assert_allclose(y[known].sum(1), 1)
    assert row_log.errors[5] == 'row 5, column "b", value "-0.1": is not a number of 0 or more, nor blank'
    assert "'b' is blank; write 0 for nothing" in row_log.errors[4]
    if not normalise:
        assert row_log.errors[2].endswith("add up to 10, not to 1; --normalise divides each by that")


def test_a_truth_in_the_table_is_scored_as_it_was_learned() -> None:
    task = FractionRegression(["a", "b", "c"], normalise=True)
    scores = task.answers.scores(["a", "b", "c"])
    outputs = torch.tensor([[0.2, 0.3, 0.5]] * 7).log()[:, None]
    rows = [Row(i + 1, cells, "C") for i, cells in enumerate(CELLS)]
    scores.add(rows, task.answers.decode(outputs, store(["C"] * 7)))
    found = scores.metrics()
    third = rel_entr([1 / 3] * 3, [0.2, 0.3, 0.5]).sum() / 3  # of three rows that can be used, one is wrong
    assert found["kl"] == pytest.approx(third, rel=1e-5)


def test_one_share_alone_or_training_rows_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"two target columns or more, .* got 'a'"):
        FractionRegression("a")
    with pytest.raises(InputError, match="molecule 1, counted from 0: the 3 fractions from 'a' to 'c' add up to 3"):
        TASK.fit(store(["C", "CC"]).with_targets(torch.tensor([[1.0, 0, 0], [1, 1, 1]])))
