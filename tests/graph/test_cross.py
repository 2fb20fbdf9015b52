"""Cross edges are every pair of a source and a target node of one graph."""

from __future__ import annotations

import pytest
import torch

from gtx.graph import list_bipartite_edges
from gtx.nn import EdgeAttention


def test_cross_attention_is_the_dense_sum_and_a_target_without_source_gets_zeros() -> None:
    torch.manual_seed(0)
    layer = EdgeAttention((7, 5), 4, heads=2).double()
    atoms, tokens = torch.randn(5, 7, dtype=torch.float64), torch.randn(5, 5, dtype=torch.float64)
    out = layer((atoms, tokens), list_bipartite_edges(torch.tensor([0, 2, 2, 5]), torch.tensor([0, 1, 3, 5])))
    q = layer.lin_query(tokens).view(5, 2, 4)
    k, v = layer.lin_key(atoms).view(5, 2, 4), layer.lin_value(atoms).view(5, 2, 4)
    weights = (torch.einsum("thc,shc->ths", q[3:], k[2:]) / 2).softmax(-1)
    torch.testing.assert_close(out[3:], torch.einsum("ths,shc->thc", weights, v[2:]).flatten(1))
    assert out[1:3].eq(0).all()


def test_numbers_of_graphs_must_agree() -> None:
    with pytest.raises(ValueError, match=r"as many graphs, got \[3\] and \[2\]"):
        list_bipartite_edges(torch.tensor([0, 1, 2]), torch.tensor([0, 1]))
