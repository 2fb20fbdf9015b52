"""Messages over the bonds by codes, compiled, against PyG's GINEConv of the bonds' vectors."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GINEConv

from gtx.attention.fast import building
from gtx.molecules import Featuriser
from gtx.nn import BondMessagePassing, CategoricalEmbedding
from gtx.nn.bonds import LazyBondEmbedding
from tests.molecules_for_tests import featurised

needs_compiler = pytest.mark.skipif(building.compiler() is None, reason="there is no C compiler")


def drawn(channels: int = 32) -> tuple[BondMessagePassing, torch.Tensor, torch.Tensor, LazyBondEmbedding]:
    torch.manual_seed(0)
    batch, sizes = featurised().store.batch(), list(Featuriser().bond_sizes)
    layer, x = BondMessagePassing(channels), torch.randn(batch.num_nodes, channels)
    layer.eps.fill_(0.3)
    return layer, x, batch.edge_index, LazyBondEmbedding(batch.edge_attr, CategoricalEmbedding(sizes, channels))


@needs_compiler
@pytest.mark.parametrize("channels", [16, 128])
def test_is_the_plain_form(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x, bonds, codes = drawn(channels)
    expected = GINEConv.forward(layer, x, bonds, codes.rows)
    with torch.no_grad():
        torch.testing.assert_close(layer(x, bonds, codes), expected, rtol=1e-5, atol=1e-5)
        monkeypatch.setattr(GINEConv, "forward", lambda *_: pytest.fail("the plain form ran"))
        layer(x, bonds, codes)


def all_gradients(
    layer: BondMessagePassing, x: torch.Tensor, bonds: torch.Tensor, codes: LazyBondEmbedding, twice: bool = False
) -> list[torch.Tensor]:
    """Of nodes and weights, or of the norm of their gradients."""
    x = x.clone().requires_grad_()
    out, wanted = layer(x, bonds, codes), [x, *layer.parameters(), *codes.embedding.parameters()]
    towards = torch.linspace(-1, 2, out.numel()).view(out.shape).to(out)
    grads = torch.autograd.grad(out.square(), wanted, towards, create_graph=twice)
    return [*torch.autograd.grad(sum(grad.square().sum() for grad in grads), wanted)] if twice else [*grads]


@needs_compiler
@pytest.mark.parametrize(("channels", "twice"), [(48, False), (128, False), (16, True)])
def test_gradients_are_those_of_the_plain_form(channels: int, twice: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x, bonds, codes = drawn(channels)
    with monkeypatch.context() as patched:
        patched.setattr(GINEConv, "forward", lambda *_: pytest.fail("the plain form ran"))
        found = all_gradients(layer, x, bonds, codes, twice)
    exact = all_gradients(
        layer.double(), x.double(), bonds, LazyBondEmbedding(codes.codes, codes.embedding.double()), twice
    )
    for one, other in zip(found, exact, strict=True):
        assert (one - other).norm() <= 2e-6 * other.norm()


@needs_compiler
def test_what_there_is_not_is_left_to_the_plain_form() -> None:
    layer, x, bonds, codes = drawn()
    with torch.no_grad():
        for wrong in (-1, len(x)):
            for end in (0, 1):
                moved = bonds.clone()
                moved[end, 7] = wrong
                with pytest.raises((IndexError, RuntimeError, ValueError)):
                    layer(x, moved, codes)
        codes = LazyBondEmbedding(codes.codes.index_fill(0, torch.tensor([5]), 99), codes.embedding)
        with pytest.raises((IndexError, RuntimeError, ValueError)):
            layer(x, bonds, codes)
