"""The equivariant layer: the paper's equations, whose vectors turn with the molecule, both layouts."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings import ExpNormDistance, PairUnitVector
from gtx.graph import CompleteGraph
from gtx.nn import EquivariantAttentionLayer
from tests.attention.by_hand import close, complete, linear

C, H, R, CUTOFF = 6, 2, 5, 4.0
GRAPH = complete([5, 1, 4])


def space(pos: Tensor, graph: CompleteGraph = GRAPH) -> Tensor:
    """Radial functions, direction and nearness of all pairs."""
    data = Data(pos=pos)
    return torch.cat(
        [ExpNormDistance(R, CUTOFF).double()(data, graph)[1][:, :-1], PairUnitVector(CUTOFF)(data, graph)[1]], -1
    )


@pytest.fixture
def pos() -> Tensor:
    return 2.0 * torch.randn(10, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def nodes(vectors: bool) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(10, 4 * C if vectors else C, dtype=torch.float64, generator=generator)


def make(last: bool = False) -> EquivariantAttentionLayer:
    torch.manual_seed(0)
    return EquivariantAttentionLayer(C, H, R, last).double()


@pytest.mark.parametrize("vectors", [False, True])
def test_it_is_the_equation_atom_by_atom(vectors: bool, pos: Tensor) -> None:
    layer, rows, e = make(), nodes(vectors), space(pos)
    x = rows[:, :C]
    v = rows[:, C:].view(10, 3, C) if vectors else torch.zeros(10, 3, C, dtype=torch.float64)
    normed = F.layer_norm(x, (C,), layer.norm.weight, layer.norm.bias)
    q, k, value = (linear(part, normed) for part in (layer.lin_query, layer.lin_key, layer.lin_value))
    expected = []
    for r in range(10):
        collected, w = torch.zeros(C, dtype=torch.float64), torch.zeros(3, C, dtype=torch.float64)
        for p in (GRAPH.pair_index[1] == r).nonzero().flatten().tolist():
            s = int(GRAPH.pair_index[0, p])
            apart = (pos[s] - pos[r]).norm()
            near = 1 - 10 * (apart / CUTOFF) ** 3 + 15 * (apart / CUTOFF) ** 4 - 6 * (apart / CUTOFF) ** 5
            near = near if apart < CUTOFF else torch.zeros(())
            along = (pos[s] - pos[r]) / apart if r != s else torch.zeros(3, dtype=torch.float64)
            key = k[s] * F.silu(linear(layer.score.lin_edge, e[p, :R]))
            a = F.silu((q[r] * key).view(H, -1).sum(-1)) * near
            s1, s2, s3 = (value[s] * F.silu(linear(layer.lin_edge_value, e[p, :R]))).split(C)
            collected = collected + a.repeat_interleave(C // H) * s3
            w = w + near * (s1 * v[s] + s2 * along[:, None])
        y1, y2, y3 = linear(layer.lin_out, collected).split(C)
        u1, u2, u3 = linear(layer.lin_vector, v[r]).split(C, -1)
        expected.append(torch.cat([x[r] + y1 + y2 * (u1 * u2).sum(0), (v[r] + w + y3 * u3).flatten()]))
    for edges in (GRAPH, GRAPH.edge_index):
        close(layer(rows, edges, e)[0], torch.stack(expected))
        close(make(last=True)(rows, edges, e)[0], torch.stack(expected)[:, :C])


def test_layouts_agree_under_a_mask_even_where_an_absent_pair_is_not_a_number(pos: Tensor) -> None:
    graph = GRAPH.masked(torch.rand(GRAPH.num_pairs, generator=torch.Generator().manual_seed(3)) < 0.5)
    e = space(pos)
    spoilt = torch.where(graph.mask[:, None], e, torch.nan)
    results = []
    for edges, features in ((graph, spoilt), (graph.edge_index, graph.select(e))):
        layer, weights = make(), []
        out = layer(nodes(True), edges, features, weights=weights)[0]
        alpha = weights[0][graph.mask] if edges is graph else weights[0]
        results.append([out, alpha, *torch.autograd.grad(out.sin().sum(), list(layer.parameters()))])
    for one, other in zip(*results, strict=True):
        close(one, other)


def test_heads_that_do_not_divide_the_channels_are_refused() -> None:
    with pytest.raises(ValueError, match="got 4 heads and 6 channels"):
        EquivariantAttentionLayer(6, 4, R)
    with pytest.raises(ValueError, match=r"expected edge features \[42, 9\], got \[42, 5\]"):
        make()(nodes(False), GRAPH, torch.zeros(42, R))
