"""torch's GELU, without anything compiled and kept for every new shape."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gtx.elementwise import GELU


@pytest.mark.parametrize("shape", [(5,), (7, 3), (0, 6), (2, 3, 4, 5)])
def test_value_for_value(shape: tuple[int, ...]) -> None:
    x, upstream = torch.randn(shape, dtype=torch.float64, requires_grad=True), torch.randn(shape, dtype=torch.float64)
    results = [layer(x) for layer in (GELU(), nn.GELU())]
    torch.testing.assert_close(*results)
    torch.testing.assert_close(*(torch.autograd.grad(y, x, upstream)[0] for y in results))
    assert results[0].is_contiguous()


def test_extremes() -> None:
    x = torch.tensor([[-1e30, -50.0, -0.0], [0.0, 50.0, 1e30]])
    torch.testing.assert_close(GELU()(x), torch.tensor([[0.0, 0.0, 0.0], [0.0, 50.0, 1e30]]))
