"""Attention as its equation says it: loops over receivers and senders, in the tests' own words."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from gtx.graph import CompleteGraph

SIZES = [3, 1, 7, 2, 12, 0]


def complete(sizes: Sequence[int] = SIZES) -> CompleteGraph:
    return CompleteGraph.from_ptr(torch.tensor([0, *sizes]).cumsum(0))


GRAPH = complete()


def inputs(
    channels: int, edge_dim: int | None = None, graph: CompleteGraph = GRAPH, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor | None]:
    """Random nodes and pair features; a pair's features are not those of the pair the other way round."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(graph.num_nodes, channels, dtype=torch.float64, generator=generator)
    e = None
    if edge_dim is not None:
        e = torch.randn(graph.num_pairs, edge_dim, dtype=torch.float64, generator=generator).to(dtype).requires_grad_()
    return x.to(dtype).requires_grad_(), e


def matrix_features(graph: CompleteGraph = GRAPH, dtype: torch.dtype = torch.float64) -> Tensor:
    """Distance in Å, adjacency 0 or 1, and whether the distance is known: of no pair in the third molecule."""
    generator = torch.Generator().manual_seed(1)
    known = (graph.batch[graph.pair_index[1]] != 2) & (torch.rand(graph.num_pairs, generator=generator) < 0.9)
    distance = (4 * torch.rand(graph.num_pairs, dtype=torch.float64, generator=generator)).masked_fill(~known, 0.7)
    bonded = torch.rand(graph.num_pairs, generator=generator) < 0.3
    return torch.stack([distance, bonded.double(), known.double()], -1).to(dtype).requires_grad_()


def linear(module: nn.Module, x: Tensor) -> Tensor:
    r"""\(W x + b\)."""
    return x @ module.weight.T + (0.0 if module.bias is None else module.bias)


def project(module: nn.Module, x: Tensor, heads: int) -> Tensor:
    r"""\(W x + b\), head by head, `[N, H, C]`."""
    return linear(module, x).view(len(x), heads, -1)


def scaled_dot(query: Tensor, key: Tensor, pair: int = 0) -> Tensor:
    """The usual score, `[H]`."""
    return (query * key).sum(-1) / query.shape[-1] ** 0.5


def softmax(scores: Tensor, pairs: list[int] | None = None) -> Tensor:
    return scores.exp() / scores.exp().sum(0)


def pairs_into(receiver: int) -> list[tuple[int, int]]:
    """(sender, number of the pair) of all pairs into a receiver, counted molecule by molecule, receiver by receiver."""
    start = pair = 0
    for size in SIZES:
        if receiver < start + size:
            first = pair + (receiver - start) * size
            return [(start + i, first + i) for i in range(size)]
        start, pair = start + size, pair + size * size
    raise IndexError(receiver)


def attention(
    score: Callable[[int, int, int], Tensor],
    value: Callable[[int, int, int], Tensor],
    weigh: Callable[[Tensor, list[int]], Tensor] = softmax,
) -> Tensor:
    """What every receiver collects, `[N, H, D]`.

    Args:
        score: of (receiver, sender, pair), `[H]`.
        value: of the same, `[H, D]`.
        weigh: from the scores of one receiver, `[S, H]`, and the numbers of its pairs, to weights.
    """
    collected = []
    for r in range(sum(SIZES)):
        into = pairs_into(r)
        weights = weigh(torch.stack([score(r, s, p) for s, p in into]), [p for _, p in into])
        values = torch.stack([value(r, s, p) for s, p in into])
        collected.append((weights.unsqueeze(-1) * values).sum(0))
    return torch.stack(collected)


def by_equation(
    layer: nn.Module,
    x: Tensor,
    score: Callable[[Tensor, Tensor, int], Tensor],
    value: Callable[[Tensor, int], Tensor] = lambda value, pair: value,
    weigh: Callable[[Tensor, list[int]], Tensor] = softmax,
) -> Tensor:
    """What a layer yields that projects to query, key and value, head beside head, behind its last weights if any.

    Args:
        layer: whose weights are taken.
        x: of the nodes.
        score: of (query, key, pair), `[H, C]` each, to `[H]`.
        value: of (value, pair) to what is collected, `[H, D]`.
        weigh: see `attention`.
    """
    q, k = (project(part, x, layer.heads) for part in (layer.lin_query, layer.lin_key))
    v = k if layer.lin_value is None else project(layer.lin_value, x, layer.heads)
    out = attention(lambda r, s, p: score(q[r], k[s], p), lambda r, s, p: value(v[s], p), weigh).flatten(1)
    return out if layer.lin_out is None else linear(layer.lin_out, out)


def close(one: Tensor, other: Tensor, tolerance: float = 1e-10) -> None:
    """Equal to a tolerance times the largest entry."""
    scale = max(1.0, float(other.detach().abs().max())) if other.numel() else 1.0
    torch.testing.assert_close(one, other, atol=tolerance * scale, rtol=0)


def in_both_layouts(layer: nn.Module, expected: Tensor, x: Tensor, e: Tensor | None = None) -> None:
    """The layer gives what is expected on the complete graph and on the edge list."""
    assert expected.abs().max() > 1e-3  # zeros would prove nothing
    for edges in (GRAPH, GRAPH.edge_index):
        close(layer(x, edges, e), expected)
