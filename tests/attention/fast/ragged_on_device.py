"""The kernel against the definition: on a GPU, or under triton's interpreter (then run in a process of its own).

`tests/attention/fast/test_ragged.py` runs this file; by itself, with triton:

    TRITON_INTERPRET=1 python -m pytest tests/attention/fast/ragged_on_device.py     # or without, on a GPU
"""

from __future__ import annotations

import itertools
import os
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from gtx.attention import EdgeFeatures, General, Hardmax, ScaledDot, Softmax
from gtx.attention.fast import ragged, size_classes
from gtx.attention.fast.ragged import ragged_attention
from gtx.graph import BipartiteGraph, CompleteGraph
from gtx.nn import EdgeAttention
from tests.attention.by_hand import close, complete

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
SIZES = [3, 1, 7, 2, 12, 0, 17, 33, 64, 100]
FEW = [3, 0, 1, 17, 5]
H, C, D = 2, 16, 12
PRECISIONS = {torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3} | (
    {torch.float64: 1e-10} if INTERPRETED else {}
)


def made(sizes: list[int], masked: bool = False) -> CompleteGraph:
    """With a mask: not symmetric, the second node of the third-largest graph hears nobody, nor does any of 3 atoms."""
    graph = complete(sizes)
    if masked:
        mask = torch.rand(graph.num_pairs, generator=torch.Generator().manual_seed(4)) < 0.6
        receiver = graph.pair_index[1]
        mask &= graph.ptr.diff()[graph.batch[receiver]] != 3
        mask &= receiver != graph.num_nodes - 2
        graph = graph.masked(mask)
    return graph.to(DEVICE)


def inputs(
    graph: CompleteGraph, dtype: torch.dtype = torch.float32, heads: int = H, key: int = C, value: int = D
) -> tuple[Tensor, ...]:
    """Query, key, value, and a bias that is not symmetric; the upstream gradient last."""
    generator = torch.Generator().manual_seed(0)
    N, P = graph.num_nodes, graph.num_pairs
    shapes = [(N, heads, key), (N, heads, key), (N, heads, value), (P, heads)]
    draw = partial(torch.randn, generator=generator, dtype=torch.float64)
    leaves = [draw(shape).to(DEVICE, dtype).requires_grad_() for shape in shapes]
    return *leaves, draw(N, heads, value).to(DEVICE, dtype)


def by_definition(
    graph: CompleteGraph,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    scale: float,
    factor: Tensor | None = None,
) -> Tensor:
    """Molecule by molecule, the equation; `factor` `[num_pairs, H]` multiplies the weights."""
    out, first = [], 0
    ptr = graph.ptr.tolist()
    for lo, hi in itertools.pairwise(ptr):
        n = hi - lo
        pairs = slice(first, first + n * n)
        s = torch.einsum("rhc,shc->rsh", q[lo:hi], k[lo:hi]) * scale
        s = s if bias is None else s + bias[pairs].view(n, n, q.shape[1])
        if graph.mask is not None:
            edge = graph.mask[pairs].view(n, n, 1)
            s = torch.where(edge, s, -torch.inf)
            s = torch.where(edge.any(1, keepdim=True), s, 0.0)
            p = s.softmax(1) * edge
        else:
            p = s.softmax(1)
        p = p if factor is None else p * factor[pairs].view(n, n, q.shape[1])
        out.append(torch.einsum("rsh,shd->rhd", p, v[lo:hi]))
        first += n * n
    return torch.cat(out)


def agree(graph: CompleteGraph, given: tuple[Tensor, ...], out: Tensor, expected: Tensor, tolerance: float) -> None:
    """Output and gradients; the definition is worked out in float64 from the same numbers."""
    *leaves, upstream = given
    leaves = [leaf for leaf in leaves if leaf is not None]
    close(out.double(), expected, tolerance)
    found = torch.autograd.grad(out, leaves, upstream)
    wanted = torch.autograd.grad(expected, leaves, upstream.double())
    for one, other in zip(found, wanted, strict=True):
        assert other.abs().max() > 1e-3  # zeros would prove nothing
        close(one.double(), other.double(), tolerance)


def doubled(given: tuple[Tensor, ...]) -> list[Tensor | None]:
    return [None if x is None else x.double() for x in given[:4]]


@pytest.mark.parametrize("masked", [False, True], ids=["all pairs", "masked"])
@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_equals_the_definition(dtype: torch.dtype, masked: bool) -> None:
    graph = made(SIZES, masked)
    given = inputs(graph, dtype)
    out = ragged_attention(graph, *given[:4], scale=0.25)
    assert out.dtype == dtype and out.isfinite().all()
    agree(graph, given, out, by_definition(graph, *doubled(given), 0.25), PRECISIONS[dtype])


@pytest.mark.parametrize(("heads", "key", "value"), [(1, 1, 1), (3, 5, 20), (2, 40, 8)])
def test_any_width_and_no_bias(heads: int, key: int, value: int) -> None:
    graph = made(FEW)
    q, k, v, _, upstream = inputs(graph, torch.float32, heads, key, value)
    given = (q, k, v, None, upstream)
    agree(graph, given, ragged_attention(graph, q, k, v), by_definition(graph, *doubled(given), key**-0.5), 1e-5)


def test_256_atoms_in_strips() -> None:
    graph = made([130, 2])
    given = inputs(graph, torch.bfloat16, 1)
    assert size_classes.limit(C, torch.bfloat16) == 256
    out = ragged_attention(graph, *given[:4], scale=0.25)
    agree(graph, given, out, by_definition(graph, *doubled(given), 0.25), PRECISIONS[torch.bfloat16])


@pytest.mark.parametrize("masked", [False, True], ids=["all pairs", "masked"])
def test_large_molecules_beside_small_ones(masked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_classes, "_ON_CHIP", 16 * C * 4)  # nothing above 16 atoms
    graph = made([3, 17, 0, 40, 16, 5, 18], masked)
    given = inputs(graph)
    agree(graph, given, ragged_attention(graph, *given[:4]), by_definition(graph, *doubled(given), 0.25), 1e-5)
    assert size_classes.plan(graph, 16).large[2].num_graphs == 3
    monkeypatch.setattr(size_classes, "_ON_CHIP", 0)  # nothing at all
    agree(graph, given, ragged_attention(graph, *given[:4]), by_definition(graph, *doubled(given), 0.25), 1e-5)


def test_equals_edge_attention_on_the_edge_list() -> None:
    graph = made(FEW, masked=True)
    torch.manual_seed(0)
    layer = EdgeAttention(10, 8, heads=4, edge_dim=3).to(DEVICE)
    x, e = torch.randn(graph.num_nodes, 10, device=DEVICE), torch.randn(graph.num_pairs, 3, device=DEVICE)
    x.requires_grad_()
    query, key, value = layer.queries(x), *layer.keys_and_values(x)
    out = ragged_attention(graph, layer.score.prepare(query), key, value, layer.lin_edge_bias(e), 1.0).flatten(1)
    expected = layer(x, graph.edge_index, graph.select(e))
    close(out, expected, 1e-5)
    used = [x, *layer.parameters()]
    grads = [torch.autograd.grad(y.square().sum(), used) for y in (out, expected)]
    for one, other in zip(*grads, strict=True):
        close(one, other, 1e-5)


def test_a_receiver_without_edges_gets_zeros_and_finite_gradients() -> None:
    graph = made(FEW, masked=True)
    lonely = torch.ones(graph.num_nodes, dtype=torch.bool, device=DEVICE)
    lonely[graph.edge_index[1]] = False
    assert lonely.sum() >= 4
    *leaves, upstream = inputs(graph)
    out = ragged_attention(graph, *leaves)
    assert out[lonely].eq(0).all() and out[~lonely].ne(0).all()
    for grad in torch.autograd.grad(out, leaves, upstream):
        assert grad.isfinite().all()
    d_bias = torch.autograd.grad(ragged_attention(graph, *leaves), leaves[3], upstream)[0]
    assert d_bias[~graph.mask].eq(0).all()


def test_views_are_read_where_they_lie() -> None:
    graph = made(FEW)
    q, k, v, bias, upstream = inputs(graph, value=C)
    expected = ragged_attention(graph, q, k, v, bias)
    fused = torch.stack([q, k, v], 1).detach().requires_grad_()
    turned = bias.detach().T.contiguous().requires_grad_()
    out = ragged_attention(graph, *fused.unbind(1), turned.T)
    assert out.equal(expected)
    apart = torch.autograd.grad(expected, [q, k, v, bias], upstream)
    together, of_turned = torch.autograd.grad(out, [fused, turned], upstream)
    assert together.equal(torch.stack(apart[:3], 1)) and of_turned.T.equal(apart[3])


def test_batch_mates_change_no_bit() -> None:
    graph, alone = made(FEW), made([17])
    q, k, v, bias, _ = inputs(graph)
    nodes = slice(4, 21)
    first = 9 + 1
    out = ragged_attention(alone, q[nodes], k[nodes], v[nodes], bias[first : first + 17 * 17])
    assert ragged_attention(graph, q, k, v, bias)[nodes].equal(out)


def test_the_order_of_atoms_does_not_matter() -> None:
    graph = made([5, 20])
    q, k, v, bias, _ = inputs(graph)
    order = torch.cat([torch.randperm(5), 5 + torch.randperm(20)]).to(DEVICE)
    pairs = graph.pair_of(order[graph.pair_index])
    turned = ragged_attention(graph, q[order], k[order], v[order], bias[pairs])
    close(turned, ragged_attention(graph, q, k, v, bias)[order], 1e-6)


def dropped(graph: CompleteGraph, p: float, seed: int, heads: int = H) -> Tensor:
    """The dropout factors, `[num_pairs, H]`: equal weights, and values that say which sender they are."""
    most = int(graph.ptr.diff().max())
    local = torch.arange(graph.num_nodes, device=DEVICE) - graph.ptr[graph.batch]
    zeros = torch.zeros(graph.num_nodes, heads, 1, device=DEVICE)
    one_hot = torch.nn.functional.one_hot(local, most).float()[:, None].expand(-1, heads, -1)
    torch.manual_seed(seed)
    out = ragged_attention(graph, zeros, zeros, one_hot, dropout=p)
    sender, receiver = graph.pair_index
    size = graph.ptr.diff()[graph.batch[receiver]]
    return out[receiver, :, local[sender]] * size[:, None]


def test_dropout_keeps_its_share_and_follows_the_seed() -> None:
    graph, p = made([64, 30, 3, 17]), 0.25
    factor = dropped(graph, p, 0)
    kept = factor != 0
    close(factor[kept], torch.full_like(factor[kept], 1 / (1 - p)), 1e-5)
    sender, expected = graph.pair_index[0], 1 - p

    def share(which: Tensor) -> None:
        sigma = (expected * p / which.numel()) ** 0.5
        assert abs(float(which.float().mean()) - expected) < 4 * sigma

    share(kept)
    for i in range(4):  # the four draws of one call
        share(kept[sender % 4 == i])
    for one, other in ((kept[:, 0], kept[:, 1]), (kept[:-1], kept[1:]), (kept[:-4], kept[4:]), (kept[:-64], kept[64:])):
        both = (one & other).float().mean()  # neither heads, nor senders, nor receivers repeat each other
        assert abs(float(both) - expected**2) < 5 * (expected**2 * (1 - expected**2) / one.numel()) ** 0.5
    assert dropped(graph, p, 0).equal(factor)
    assert not dropped(graph, p, 1).equal(factor)


@pytest.mark.parametrize("masked", [False, True], ids=["all pairs", "masked"])
def test_dropout_is_the_same_backward(masked: bool) -> None:
    graph = made([20, 0, 3, 7, 33], masked)
    factor = dropped(complete([20, 0, 3, 7, 33]).to(DEVICE), 0.5, 7).double()
    given = inputs(graph)
    torch.manual_seed(7)
    out = ragged_attention(graph, *given[:4], dropout=0.5)
    agree(graph, given, out, by_definition(graph, *doubled(given), 0.25, factor), 1e-5)


def test_the_average_over_dropout_is_the_attention_without() -> None:
    graph = made([5])
    q, k, v, bias, _ = inputs(graph)
    torch.manual_seed(0)
    mean = sum(ragged_attention(graph, q, k, v, bias, dropout=0.5) for _ in range(50)) / 50
    close(mean, ragged_attention(graph, q, k, v, bias), 0.5)


@pytest.mark.parametrize("sizes", [[], [0, 0], [0, 4, 0]])
def test_graphs_without_nodes(sizes: list[int]) -> None:
    graph = made(sizes)
    q, k, v, bias, upstream = inputs(graph)
    out = ragged_attention(graph, q, k, v, bias)
    assert out.shape == (sum(sizes), H, D)
    assert torch.autograd.grad(out, v, upstream)[0].shape == v.shape


def test_no_second_derivative_in_silence() -> None:
    graph = made([4])
    q, k, v, bias, _ = inputs(graph)
    first = torch.autograd.grad(ragged_attention(graph, q, k, v, bias).square().sum(), v, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_says_what_it_can_run() -> None:
    graph = made(FEW)
    q = torch.zeros(graph.num_nodes, H, C, device=DEVICE)
    bias = EdgeFeatures(None, torch.zeros(graph.num_pairs, H, device=DEVICE))
    can = partial(ragged.can_run, graph, q, ScaledDot(), Softmax())
    assert can() and can(bias) and can(bias, 0.1)
    assert ragged.can_run(graph, q.bfloat16(), General(H, C), Softmax())
    assert not can(bias._replace(value=torch.zeros(H, D, 3)))
    assert not can(bias._replace(key=torch.zeros(H, C, 3)))
    assert not ragged.can_run(graph, q, ScaledDot(), Hardmax())
    assert not ragged.can_run(graph, q, ScaledDot(), Softmax(2.0))
    assert not ragged.can_run(graph, q, SimpleNamespace(bilinear=False), Softmax())
    assert not ragged.can_run(graph, q.int(), ScaledDot(), Softmax())
    assert not ragged.can_run(made([300]), q, ScaledDot(), Softmax())
    assert not ragged.can_run(made([]), q, ScaledDot(), Softmax())
    assert not ragged.can_run(BipartiteGraph.between(graph.ptr, graph.ptr), q, ScaledDot(), Softmax())


def test_autocast_is_followed() -> None:
    graph = made([4])
    q, k, v, bias, _ = inputs(graph)
    with torch.autocast(DEVICE, torch.bfloat16):
        out = ragged_attention(graph, q, k, v, bias)
    assert out.dtype == torch.bfloat16
    assert [g.dtype for g in torch.autograd.grad(out.float().sum(), [q, bias])] == [torch.float32, torch.float32]


def test_shapes_that_do_not_fit_are_named() -> None:
    graph = made([4])
    q, k, v, bias, _ = inputs(graph)
    with pytest.raises(ValueError, match=r"expected query and key \[4, H, C\] and value \[4, H, D\], got \[4, 2, 16\]"):
        ragged_attention(graph, q, k[:, :1], v)
    with pytest.raises(ValueError, match=r"expected a bias \[16, 2\], got \[15, 2\]"):
        ragged_attention(graph, q, k, v, bias[1:])
    with pytest.raises(ValueError, match=r"expected 0 <= dropout < 1, got 1\.0"):
        ragged_attention(graph, q, k, v, dropout=1.0)
    with pytest.raises(ValueError, match=r"expected float32, bfloat16 or float16, got torch.int32"):
        ragged_attention(graph, q.int(), k.int(), v.int())
