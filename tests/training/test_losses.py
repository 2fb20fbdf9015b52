"""Losses leave out blanks, in value and in gradient."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from gtx.training import masked_loss

PLAIN = {
    "mse": F.mse_loss,
    "mae": F.l1_loss,
    "huber": F.huber_loss,
    "bce": F.binary_cross_entropy_with_logits,
}


@pytest.mark.parametrize("name", PLAIN)
def test_is_the_plain_loss_of_what_was_observed(name: str) -> None:
    output = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    target = torch.rand(7, 3, dtype=torch.float64).round()
    blank = torch.rand(7, 3) < 0.4
    loss = masked_loss(name)(output, target.masked_fill(blank, torch.nan))
    plain = PLAIN[name](output[~blank], target[~blank])
    torch.testing.assert_close(loss, plain)
    (got,) = torch.autograd.grad(loss, output)
    (expected,) = torch.autograd.grad(plain, output)
    torch.testing.assert_close(got, expected)
    assert not got[blank].any()


def test_blanks_alone_give_zero_with_a_gradient() -> None:
    output = torch.randn(4, 2, requires_grad=True)
    loss = masked_loss("mse")(output, torch.full((4, 2), torch.nan))
    loss.backward()
    assert loss.item() == 0 and not output.grad.any()


def test_unknown_loss_is_named() -> None:
    with pytest.raises(ValueError, match="'msee'"):
        masked_loss("msee")
