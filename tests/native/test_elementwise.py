"""The compiled dropout and GELU against their plain forms."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import gelu

from gtx.native import building
from gtx.native.elementwise import GELU, activate, dropout_factors
from gtx.nn import Dropout

pytestmark = pytest.mark.skipif(building.compiler() is None, reason="there is no C compiler")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(0, 3), (1,), (7, 5), (300, 301)])
def test_gelu_is_the_plain_form(shape: tuple[int, ...], threads: int) -> None:
    x = torch.linspace(-9, 9, max(1, torch.Size(shape).numel()))[: torch.Size(shape).numel()].view(shape)
    x.requires_grad_()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found, expected = activate(x), gelu(x)
        towards = torch.sin(3 * x.detach())
        (slope,), (plain,) = (torch.autograd.grad(y, x, towards) for y in (found, expected))
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(slope, plain, rtol=1e-5, atol=1e-6)


def test_gelu_has_second_derivatives_and_is_torchs_without_gradient() -> None:
    x = torch.randn(20, 6, requires_grad=True)
    second = []
    for function in (GELU(), gelu):
        (first,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
        second += torch.autograd.grad(first.square().sum(), x)
    torch.testing.assert_close(*second, rtol=1e-4, atol=1e-5)
    assert activate(x.detach()) is None and activate(x.double()) is None
    assert torch.equal(GELU()(x.detach()), gelu(x.detach().mT).mT)


def test_factors_follow_the_seed_alone() -> None:
    x = torch.empty(501, 333)
    drawn, before = [], torch.get_num_threads()
    for threads in (1, 2, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(7 + len(drawn) // 2)
        drawn.append(dropout_factors(x, 0.25))
    torch.set_num_threads(before)
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    assert drawn[0].unique().tolist() == [0.0, pytest.approx(4 / 3)]
    both = (drawn[0] == 0) & (drawn[2] == 0)  # two seeds are independent
    assert abs(float(both.float().mean()) - 1 / 16) < 0.003


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_every_entry_is_dropped_as_often_as_in_the_plain_form(p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer, x, shares = Dropout(p), torch.ones(11, 7), []
    for _ in range(2):
        shares.append(torch.stack([layer(x) == 0 for _ in range(4000)]).float().mean(0))
        monkeypatch.setattr("gtx.native.elementwise._library", lambda: None)
    for share in shares:
        assert (share - p).abs().max() < 5 * (p * (1 - p) / 4000) ** 0.5
