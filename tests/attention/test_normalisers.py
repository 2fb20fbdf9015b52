"""Weights into a receiver, in both layouts."""

from __future__ import annotations

import pytest
import torch

from gtx.attention import Normaliser, Softmax


def test_softmax_sums_to_one_over_each_receivers_edges() -> None:
    score = torch.randn(6, 2, dtype=torch.float64)
    receiver = torch.tensor([0, 0, 0, 2, 2, 3])
    weights = Softmax().edges(score, receiver, 5)
    torch.testing.assert_close(weights[:3], score[:3].softmax(0))
    sums = torch.zeros(5, 2, dtype=torch.float64).index_add(0, receiver, weights)
    torch.testing.assert_close(sums[:, 0], torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0], dtype=torch.float64))


def test_softmax_of_pairs_gives_nothing_where_there_is_no_edge() -> None:
    score = torch.randn(1, 1, 2, 3)
    score[..., 2] = -torch.inf
    weights = Softmax().pairs(score)
    assert weights[..., 2].eq(0).all()
    torch.testing.assert_close(weights[..., :2], score[..., :2].softmax(-1))


def test_large_scores_do_not_overflow() -> None:
    weights = Softmax().edges(torch.tensor([[1e4], [1e4 - 1]]), torch.tensor([0, 0]), 1)
    torch.testing.assert_close(weights, torch.tensor([[1.0], [0.0]]).softmax(0))


def test_a_normaliser_must_say_how() -> None:
    with pytest.raises(TypeError, match="edge list"):
        Normaliser().edges(torch.zeros(1, 1), torch.zeros(1), 1)
    with pytest.raises(TypeError, match="complete graph"):
        Normaliser().pairs(torch.zeros(1, 1, 1, 1))
