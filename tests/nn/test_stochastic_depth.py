"""In training whole molecules skip a branch; the mean over draws stays."""

from __future__ import annotations

import pytest
import torch

from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention, GraphTransformerLayer, StochasticDepth

BATCH = torch.repeat_interleave(torch.arange(200), torch.tensor([1, 2, 3, 0] * 50))


def test_whole_molecules_are_dropped_and_the_rest_is_scaled() -> None:
    torch.manual_seed(0)
    layer, branch = StochasticDepth(0.75), torch.rand(len(BATCH), 3, 2) + 1.0
    factor = layer(branch, BATCH) / branch
    kept = factor[:, 0, 0] != 0
    torch.testing.assert_close(factor[kept], torch.full_like(factor[kept], 4.0))
    assert factor[~kept].eq(0).all()
    per_molecule = torch.zeros(200).index_add(0, BATCH, kept.float()) / torch.bincount(BATCH, minlength=200)
    per_molecule = per_molecule[~per_molecule.isnan()]
    assert per_molecule.unique().tolist() == [0.0, 1.0]
    assert 0.12 < float(per_molecule.mean()) < 0.4  # about a quarter of 150


def test_the_mean_over_draws_is_the_branch() -> None:
    torch.manual_seed(0)
    layer, batch = StochasticDepth(0.3), torch.arange(20_000)
    mean = float(layer(torch.ones(20_000, 1), batch).mean())
    assert abs(mean - 1.0) < 4 * (0.3 / 0.7 / 20_000) ** 0.5


def test_without_a_batch_vector_all_share_one_draw() -> None:
    torch.manual_seed(0)
    seen = {tuple(StochasticDepth(0.5)(torch.ones(3, 1)).flatten().tolist()) for _ in range(40)}
    assert seen == {(0.0, 0.0, 0.0), (2.0, 2.0, 2.0)}


def test_nothing_is_left_out_in_evaluation_or_at_zero() -> None:
    branch = torch.randn(len(BATCH), 4)
    assert StochasticDepth(0.9).eval()(branch, BATCH) is branch
    assert StochasticDepth(0.0)(branch, BATCH) is branch
    assert StochasticDepth(0.9)(branch[:0], BATCH[:0]).shape == (0, 4)


def test_a_layer_drops_molecules_and_not_atoms() -> None:
    """A molecule that skips both branches comes out as it went in, all of its atoms."""
    torch.manual_seed(0)
    sizes = torch.tensor([4] * 30)
    graph = CompleteGraph.from_ptr(torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]))
    layer = GraphTransformerLayer(EdgeAttention(8, 4, heads=2), None, 8, stochastic_depth=0.6)
    x = torch.randn(120, 8)
    same = (layer(x, graph, batch=graph.batch)[0] == x).all(1).view(30, 4)
    assert (same.all(1) | ~same.any(1)).all()
    assert 3 <= int(same.all(1).sum()) <= 20  # about 0.36 of 30
    assert not (layer.eval()(x, graph, batch=graph.batch)[0] == x).all(1).any()


@pytest.mark.parametrize("p", [1.0, -0.1, 1.5, float("nan")])
def test_another_probability_is_named(p: float) -> None:
    with pytest.raises(ValueError, match=f"expected 0 <= p < 1, got {p}"):
        StochasticDepth(p)
    assert repr(StochasticDepth(0.25)) == "StochasticDepth(0.25)"
