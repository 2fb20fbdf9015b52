"""Dropout drops the share it says, keeps the mean, and repeats with its seed."""

from __future__ import annotations

import pytest
import torch

from gtx.elementwise import Dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_share_and_mean(p: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(1000, 401)  # not a multiple of four
    y = Dropout(p)(x)
    kept = y != 0
    assert abs(float(kept.float().mean()) - (1 - p)) < 0.003
    torch.testing.assert_close(y[kept], torch.full_like(y[kept], 1 / (1 - p)), rtol=1e-4, atol=0)
    for lane in range(4):  # every part of the random word
        assert abs(float(kept.flatten()[lane::4].float().mean()) - (1 - p)) < 0.005
    pairs = kept.flatten()[:400_000].view(-1, 4).float()
    assert torch.corrcoef(pairs.T).fill_diagonal_(0).abs().max() < 0.02  # parts of one word are independent


def test_gradient_passes_where_the_value_did() -> None:
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    y = Dropout(0.4)(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(grad * x, y)
    assert y.dtype == torch.float64


def test_seed_evaluation_and_ends() -> None:
    layer, x = Dropout(0.3), torch.randn(50, 3)
    torch.manual_seed(1)
    one = layer(x)
    torch.manual_seed(1)
    assert torch.equal(layer(x), one) and not torch.equal(layer(x), one)
    assert layer.eval()(x) is x and Dropout(0.0)(x) is x
    assert layer.train()(torch.zeros(0, 3)).shape == (0, 3)
    assert repr(layer) == "Dropout(0.3)"
    with pytest.raises(ValueError, match=r"0 <= p < 1, got 1\.0"):
        Dropout(1.0)


@pytest.mark.filterwarnings("ignore")
def test_compiles_without_graph_breaks() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(Dropout(0.5), fullgraph=True, backend="aot_eager")
    assert abs(float((compiled(torch.ones(400, 100)) == 0).float().mean()) - 0.5) < 0.02
