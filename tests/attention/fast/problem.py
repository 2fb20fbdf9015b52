"""Graphs and tensors for the fast forms of attention, and the definition that they are compared with."""

from functools import partial

import torch
from torch import Tensor

from gtx.attention.fast import compiled
from gtx.graph import CompleteGraph
from tests.attention.by_hand import close, complete


def made(sizes: list[int], masked: bool = False, device: str = "cpu") -> CompleteGraph:
    """With a mask: not symmetric, the last node but one hears nobody, nor does any of a molecule of 3."""
    graph = complete(sizes)
    if masked:
        mask = torch.rand(graph.num_pairs, generator=torch.Generator().manual_seed(4)) < 0.6
        receiver = graph.pair_index[1]
        mask &= graph.ptr.diff()[graph.batch[receiver]] != 3
        mask &= receiver != graph.num_nodes - 2
        graph = graph.masked(mask)
    return graph.to(device)


def inputs(
    graph: CompleteGraph,
    parts: str = "kvsb",
    dtype: torch.dtype = torch.float32,
    heads: int = 2,
    key: int = 16,
    value: int = 12,
    features: int = 5,
) -> tuple[Tensor | None, ...]:
    """Query, key, value, e, b, w_b, W_K, W_V, of which `parts` names k(ey), v(alue), s(core) and b(ias), the others are
    None; the upstream gradient last. No pair is like the pair the other way round."""
    generator = torch.Generator().manual_seed(0)
    draw = partial(torch.randn, generator=generator, dtype=torch.float64)
    N, P, device = graph.num_nodes, graph.num_pairs, graph.ptr.device
    shapes = [(N, heads, key), (N, heads, key), (N, heads, value), (P, features)]
    shapes += [(P, heads), (heads, features), (heads, key, features), (heads, value, features)]
    there = [True] * 3 + [bool(set(parts) & set("kvs")), *(part in parts for part in "bskv")]
    leaves = [draw(shape).to(device, dtype).requires_grad_() for shape in shapes]
    upstream = draw(N, heads, value).to(device, dtype)
    return *(x if here else None for x, here in zip(leaves, there, strict=True)), upstream


def gradients(out: Tensor, given: tuple[Tensor | None, ...]) -> list[Tensor]:
    """Of all tensors that there are, by the upstream gradient."""
    *leaves, upstream = given
    return list(torch.autograd.grad(out, [x for x in leaves if x is not None], upstream))


def agree(
    graph: CompleteGraph,
    given: tuple[Tensor | None, ...],
    out: Tensor,
    tolerance: float = 1e-5,
    factor: Tensor | None = None,
) -> None:
    """Output and every gradient; the definition is worked out in float64 from the same numbers, with dropout's factors
    `[num_pairs, H]` if there are any."""
    *leaves, upstream = given
    doubled = [None if x is None else x.detach().double().requires_grad_() for x in leaves]
    q, k, v, e, b, score, of_key, of_value = doubled
    expected = compiled.attend_by_definition(q, k, v, e, of_key, of_value, score, b, graph=graph, factor=factor)
    close(out.double(), expected, tolerance)
    wanted = gradients(expected, (*doubled, upstream.double()))
    for one, other in zip(gradients(out, given), wanted, strict=True):
        assert other.abs().max() > 1e-3  # zeros would prove nothing
        close(one.double(), other, tolerance)
