"""The compiled linear map against torch's."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import gelu

from gtx.attention.fast import building
from gtx.nn import linear as compiled

needs_compiler = pytest.mark.skipif(building.compiler() is None, reason="there is no C compiler")


def given(count: int, channels: int, out: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    shapes = (count, channels), (out, channels), (out,)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


@needs_compiler
@pytest.mark.parametrize("with_gelu", [False, True])
@pytest.mark.parametrize(("count", "channels", "out"), [(0, 5, 32), (1, 1, 32), (13, 64, 96), (8003, 128, 64)])
def test_is_the_plain_form(count: int, channels: int, out: int, with_gelu: bool) -> None:
    x, weight, bias = given(count, channels, out)
    found = compiled._compiled(x, weight, bias, with_gelu)
    exact = x.double() @ weight.double().T + bias.double()
    torch.testing.assert_close(found, (gelu(exact) if with_gelu else exact).float(), rtol=1e-5, atol=2e-5)


@needs_compiler
def test_a_row_does_not_depend_on_the_others() -> None:
    x, weight, bias = given(57, 64, 64)
    together = compiled.linear(x, weight, bias)
    for rows in (slice(0, 1), slice(3, 50), slice(56, 57)):
        assert torch.equal(compiled.linear(x[rows], weight, bias), together[rows])


def test_gradients_and_other_types_are_those_of_torch() -> None:
    x, weight, bias = given(9, 64, 32)
    for learned in (False, True):
        found = compiled.linear(x.requires_grad_(learned), weight, bias, with_gelu=True)
        torch.testing.assert_close(found, gelu(torch.nn.functional.linear(x, weight, bias)))
        assert found.requires_grad == learned
    for one in (x.double(), weight.double(), bias.double()), (x[None], weight, bias), (x, weight, None):
        torch.testing.assert_close(compiled.linear(*one), torch.nn.functional.linear(*one))
