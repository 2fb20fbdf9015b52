"""Weights into a receiver: one equation, on the edges of a list and on buckets of pairs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gtx.attention import (
    Hardmax,
    Normaliser,
    Softmax,
)
from gtx.attention.receivers import CompleteGraphAggregator, EdgeListAggregator

B, N, H = 2, 6, 3
PADDED = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])[:, None, :, None]  # the second molecule has 4 atoms


def masked() -> Tensor:
    """bool `[B, N, N, 1]`, True where there is no edge; one receiver has none at all."""
    absent = (torch.rand(B, N, N, 1, generator=torch.Generator().manual_seed(0)) < 0.4) | PADDED
    absent[0, 2] = True
    return absent


def scores() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    score = torch.randn(B, N, N, H, dtype=torch.float64)
    score[0, 1, 3] = score[0, 1, 0]  # a tie
    edge = torch.stack([4 * torch.rand(B, N, N), torch.rand(B, N, N).round(), torch.rand(B, N, N).round()], -1)
    return score, edge.double()


def as_list(absent: Tensor) -> tuple[Tensor, EdgeListAggregator]:
    """Which pairs are edges, and these edges as a list."""
    present = ~absent.expand(B, N, N, 1).squeeze(-1)
    molecule, receiver, _ = present.nonzero(as_tuple=True)
    return present, EdgeListAggregator(molecule * N + receiver, B * N)


def one_receiver(normaliser: Normaliser, score: Tensor) -> Tensor:
    """The weights of the edges `[E, H]` into a single receiver."""
    return normaliser(score, None, EdgeListAggregator(torch.zeros(len(score), dtype=torch.long), 1))


def test_large_scores_do_not_overflow() -> None:
    score = torch.tensor([[1e4], [1e4 - 1]])
    torch.testing.assert_close(one_receiver(Softmax(), score), torch.tensor([[1.0], [0.0]]).softmax(0))
    pairs = Softmax()(
        score.view(1, 1, 2, 1), None, CompleteGraphAggregator(torch.zeros(1, 1, 2, 1, dtype=torch.bool), True)
    )
    torch.testing.assert_close(pairs.view(2, 1), torch.tensor([[1.0], [0.0]]).softmax(0))


def test_temperature_divides_the_scores_and_has_both_limits() -> None:
    score, _ = scores()
    score = score[0, 0]
    torch.testing.assert_close(one_receiver(Softmax(0.7), score), (score / 0.7).softmax(0), atol=1e-14, rtol=0)
    hard = one_receiver(Hardmax(), score)
    torch.testing.assert_close(one_receiver(Softmax(1e-4), score), hard, atol=1e-10, rtol=0)
    torch.testing.assert_close(one_receiver(Softmax(1e9), score), torch.full_like(score, 1 / N), atol=1e-8, rtol=0)
    for wrong in (0.0, -1.0):
        with pytest.raises(ValueError, match=f"temperature above 0 .*Hardmax.*, got {wrong}"):
            Softmax(wrong)


def test_hardmax_shares_among_the_largest_alone() -> None:
    score = torch.tensor([[1.0, -2.0], [3.0, -1.0], [3.0, -7.0], [0.0, -1.0], [3.0, -1.0]])
    expected = torch.tensor([[0, 0], [1 / 3, 1 / 3], [1 / 3, 0], [0, 1 / 3], [1 / 3, 1 / 3]])
    torch.testing.assert_close(one_receiver(Hardmax(), score), expected)


@pytest.mark.parametrize("absent", [PADDED, masked()], ids=["padding", "masked"])
def test_hardmax_goes_backward_as_the_softmax(absent: Tensor) -> None:
    """Straight-through: the gradient is Σ w_s (g_s - Σ w g), with the softmax's w."""
    score = scores()[0].requires_grad_()
    given = torch.randn(score.shape, dtype=torch.float64)
    absent = absent.expand(B, N, N, 1)
    w = score.detach().masked_fill(absent, -torch.inf).softmax(2).nan_to_num(0.0)
    expected = w * (given - (w * given).sum(2, keepdim=True))
    (grad,) = torch.autograd.grad((Hardmax()(score, None, CompleteGraphAggregator(absent, False)) * given).sum(), score)
    torch.testing.assert_close(grad, expected, atol=1e-12, rtol=0)
    present, listed = as_list(absent)
    (grad,) = torch.autograd.grad((Hardmax()(score[present], None, listed) * given[present]).sum(), score)
    torch.testing.assert_close(grad, expected, atol=1e-12, rtol=0)
