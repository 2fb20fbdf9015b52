"""torch's GELU, without anything compiled and kept for every new shape."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from gtx.nn import GELU

NEW_SHAPES = """
import sys, torch
from torch import nn
from gtx.nn import GELU
layer = nn.GELU() if sys.argv[1] == "torch" else GELU()
for atoms in range(2, 40):
    x = torch.randn(atoms, 8, requires_grad=True)
    layer(x).sum().backward()
"""


@pytest.mark.parametrize("shape", [(5,), (7, 3), (1, 4), (4, 1), (0, 6), (2, 5, 3), (2, 3, 4, 5)])
def test_value_for_value(shape: tuple[int, ...]) -> None:
    x, upstream = torch.randn(shape, dtype=torch.float64, requires_grad=True), torch.randn(shape, dtype=torch.float64)
    results = [layer(x) for layer in (GELU(), nn.GELU())]
    torch.testing.assert_close(*results)
    torch.testing.assert_close(*(torch.autograd.grad(y, x, upstream)[0] for y in results))
    assert results[0].is_contiguous()


def test_extremes() -> None:
    x = torch.tensor([[-1e30, -50.0, -0.0], [0.0, 50.0, 1e30]])
    torch.testing.assert_close(GELU()(x), torch.tensor([[0.0, 0.0, 0.0], [0.0, 50.0, 1e30]]))


@pytest.mark.slow
@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
@pytest.mark.parametrize(("which", "used"), [("torch", True), ("gtx", False)])
def test_nothing_is_compiled_for_a_shape(which: str, used: bool) -> None:
    command = [sys.executable, "-c", NEW_SHAPES, which]
    done = subprocess.run(command, env={"ONEDNN_VERBOSE": "1"}, capture_output=True, text=True, check=True)
    assert ("eltwise_gelu_erf" in done.stdout) == used
