"""Relevance, distances and removals."""

from __future__ import annotations

import numpy as np
import torch

from gtx.explain.relevance import (
    attention_rollout,
    gradient_weighted_attention,
    measure_faithfulness,
)

# --- Scores of three atoms, by hand.


FIRST = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])  # 0 and 1 look at 0, 2 looks at 1
SECOND = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]])  # 2 looks at 1 again


def test_rollout_by_hand() -> None:
    reached = attention_rollout(torch.stack([FIRST, SECOND]))
    # first layer, halved with the residual: rows (1 0 0), (1/2 1/2 0), (0 1/2 1/2)
    # second layer: row 2 is half its own first row and half that of atom 1
    expected = torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.5, 0.25]])
    torch.testing.assert_close(reached, expected)


def test_gradient_weighted_by_hand() -> None:
    weights = torch.stack([FIRST, SECOND])[:, None]
    gradients = torch.ones(2, 1, 3, 3)
    gradients[0, 0, 2, 1] = -1.0  # what 2 takes from 1 in the first layer lowers the output: it does not count
    gradients[1, 0, 2, 1] = 2.0
    # after layer 1: I + rows (1 0 0), (1 0 0), (0 0 0); layer 2 adds twice row 1 = (1 1 0) to row 2, and to rows 0, 1
    expected = torch.tensor([[3.0, 0, 0], [2, 1, 0], [2, 2, 0]])
    torch.testing.assert_close(gradient_weighted_attention(weights, gradients), expected)


# --- Removing atoms, on a prediction that is known.


WORTH = np.array([5.0, -3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def worth(sets: np.ndarray) -> np.ndarray:
    """A prediction that is the sum of what its atoms are worth."""
    return -(sets @ WORTH)


def test_a_score_that_knows_the_truth_beats_chance_and_one_that_does_not_does_not() -> None:
    tables = measure_faithfulness(worth, {"true": np.abs(WORTH), "wrong": -np.abs(WORTH)})
    one, two, *_ = tables["true"]
    assert one.k == 1 and one.change == -5.0 and two.change == -2.0
    np.testing.assert_allclose(np.sort(one.random), np.sort(-WORTH))  # all eight sets of one atom, none twice
    assert one.mean == np.abs(WORTH).mean() and one.sd == np.abs(WORTH).std()
    assert one.less == 7 / 8  # the set itself is among the eight
    assert tables["wrong"][0].change == 0 and tables["wrong"][0].less == 0
    assert len(two.random) == 28  # pairs of eight
