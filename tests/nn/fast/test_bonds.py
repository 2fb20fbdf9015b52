"""Messages over the bonds by codes, compiled, against PyG's GINEConv of the bonds' vectors."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GINEConv

from gtx.attention.fast import building
from gtx.models import GraphTransformer
from gtx.molecules import Featuriser
from gtx.nn import BondMessages, CodeEmbedding, EmbeddedCodes
from tests.molecules_for_tests import featurised

needs_compiler = pytest.mark.skipif(building.compiler() is None, reason="there is no C compiler")


def drawn(channels: int = 32) -> tuple[BondMessages, torch.Tensor, torch.Tensor, EmbeddedCodes]:
    torch.manual_seed(0)
    batch, sizes = featurised().store.batch(), list(Featuriser().bond_sizes)
    layer, x = BondMessages(channels), torch.randn(batch.num_nodes, channels)
    layer.eps.fill_(0.3)
    return layer, x, batch.edge_index, EmbeddedCodes(batch.edge_attr, CodeEmbedding(sizes, channels))


@needs_compiler
@pytest.mark.parametrize("channels", [16, 48, 128])
def test_is_the_plain_form(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x, bonds, codes = drawn(channels)
    expected = GINEConv.forward(layer, x, bonds, codes.rows)
    with torch.no_grad():
        torch.testing.assert_close(layer(x, bonds, codes), expected, rtol=1e-5, atol=1e-5)
        monkeypatch.setattr(GINEConv, "forward", lambda *_: pytest.fail("the plain form ran"))
        layer(x, bonds, codes)


def test_gradients_and_double_precision_take_the_plain_form() -> None:
    layer, x, bonds, codes = drawn()
    out = layer(x, bonds, codes)
    assert torch.equal(out, GINEConv.forward(layer, x, bonds, codes.rows)) and out.requires_grad
    with torch.no_grad():
        given = EmbeddedCodes(codes.codes, codes.embedding.double())
        assert layer.double()(x.double(), bonds, given).dtype == torch.float64


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
        codes = EmbeddedCodes(codes.codes.index_fill(0, torch.tensor([5]), 99), codes.embedding)
        with pytest.raises((IndexError, RuntimeError, ValueError)):
            layer(x, bonds, codes)


@needs_compiler
def test_a_model_without_gradients_gives_what_it_gives_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, read = featurised().store.batch(), Featuriser()
    torch.manual_seed(0)
    model = GraphTransformer(2, read.atom_sizes, read.bond_sizes, layers=2, channels=32).eval()
    expected = model(batch).detach()
    with torch.no_grad():
        torch.testing.assert_close(model(batch), expected, rtol=1e-5, atol=1e-5)
        monkeypatch.setattr("gtx.nn.bond_messages.sum_messages", lambda *_: None)
        torch.testing.assert_close(model(batch), expected, rtol=1e-5, atol=1e-5)
