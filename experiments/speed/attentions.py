"""The attentions that are compared: each a module, and a way to call it on flat nodes.

What depends on neither weights nor features is made once per batch, outside the measurement (before or in the turn to
warm up), as all layers of a model could share it: the `CompleteGraph`, its `edge_index`, the indices of padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GPSConv, TransformerConv
from torch_geometric.utils import to_dense_batch

from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention

HEADS, EDGE_DIM = 8, 32


class Padded:
    """Graphs padded to `size` nodes each; on a GPU to a multiple of 8, for the fused kernels that take a bias.

    Attributes:
        node: int64 `[N]`, the slot of each node.
        real: bool `[B, size]`, False for padding.
    """

    def __init__(self, graph: CompleteGraph, largest: int) -> None:
        self.count, self.size = graph.num_graphs, -(-largest // 8) * 8 if graph.ptr.is_cuda else largest
        self.node = torch.arange(graph.num_nodes, device=graph.ptr.device)
        self.node += graph.batch * self.size - graph.ptr[graph.batch]
        sender, receiver = graph.pair_index
        self._pair = self.node[receiver] * self.size + self.node[sender] % self.size
        self.real = self.nodes(torch.ones_like(self.node)) > 0

    def nodes(self, flat: Tensor) -> Tensor:
        """Flat nodes `[N, *]` to `[B, size, *]`, 0 in padding."""
        return _scattered(flat, self.node, self.count, self.size)

    def pairs(self, flat: Tensor) -> Tensor:
        """Flat pairs `[num_pairs, *]` to `[B, receivers, senders, *]`, 0 in padding."""
        return _scattered(flat, self._pair, self.count, self.size, self.size)


def _scattered(flat: Tensor, slot: Tensor, *shape: int) -> Tensor:
    return flat.new_zeros(math.prod(shape), *flat.shape[1:]).index_copy(0, slot, flat).unflatten(0, shape)


class Batch:
    """Graphs of given sizes with random features of `channels` per node."""

    def __init__(self, sizes: Tensor, channels: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> None:
        generator = torch.Generator().manual_seed(1)
        self.graph = CompleteGraph.from_ptr(torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]).to(device))
        self.channels, self.largest = channels, int(sizes.max())
        for name, shape in ("x", (self.graph.num_nodes, channels)), ("edge_attr", (self.graph.num_pairs, EDGE_DIM)):
            setattr(self, name, torch.randn(shape, generator=generator).to(device, dtype).requires_grad_())

    @cached_property
    def padded(self) -> Padded:
        return Padded(self.graph, self.largest)

    @cached_property
    def padded_x(self) -> Tensor:
        return self.padded.nodes(self.x.detach()).requires_grad_()

    @cached_property
    def edge_index(self) -> Tensor:
        return self.graph.edge_index


class PaddedAttention(nn.Module):
    """Attention as one writes it by hand: pad all, call `scaled_dot_product_attention` with the pairs' bias, unpad."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lin_in, self.lin_out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.lin_bias = nn.Linear(EDGE_DIM, HEADS, bias=False)

    def forward(self, x: Tensor, edge_attr: Tensor, to: Padded) -> Tensor:
        q, k, v = to.nodes(self.lin_in(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)  # [B, H, n, C] each
        bias = to.pairs(self.lin_bias(edge_attr)).permute(0, 3, 1, 2).masked_fill(~to.real[:, None, None], -torch.inf)
        out = F.scaled_dot_product_attention(q, k, v, bias)
        return self.lin_out(out.transpose(1, 2).flatten(0, 1).flatten(1)[to.node])


def _without_pairs(layer: nn.Module, x: Tensor, real: Tensor) -> Tensor:
    return layer(x, x, x, key_padding_mask=~real, need_weights=False)[0]


def _as_gps(layer: nn.Module, batch: Batch, x: Tensor, edge_attr: Tensor) -> Tensor:
    """As PyG's `GPSConv` calls its attention: padded and unpadded in every layer."""
    h, real = to_dense_batch(x, batch.graph.batch)
    return _without_pairs(layer, h, real)[real]


def _gtx(**parts: bool) -> Contender:
    how = {"heads": HEADS, "edge_dim": EDGE_DIM, **parts}
    return lambda c: EdgeAttention(c, c // HEADS, **how), lambda layer, batch, x, e: layer(x, batch.graph, e)


Contender = tuple[Callable[[int], nn.Module], Callable[[nn.Module, Batch, Tensor, Tensor], Tensor]]
"""A module of so many channels; a call of it on x `[N, channels]` and edge_attr `[num_pairs, EDGE_DIM]`."""
CAPTURED = ("captured gtx", "captured padded SDPA")
"""Those whose step is a CUDA graph, as a step of gtx's training is: on a GPU alone."""
PYG: dict[str, Contender] = {
    "TransformerConv": (
        lambda c: TransformerConv(c, c // HEADS, HEADS, edge_dim=EDGE_DIM, root_weight=False),
        lambda layer, batch, x, e: layer(x, batch.edge_index, e),
    )
}
PADDED = dict.fromkeys(
    ("padded SDPA", CAPTURED[1]), (PaddedAttention, lambda layer, batch, *xe: layer(*xe, batch.padded))
)
WITHOUT_PAIRS: dict[str, Contender] = {
    "MultiheadAttention": (  # on nodes that are padded already, as in a padded model
        lambda c: nn.MultiheadAttention(c, HEADS, batch_first=True),
        lambda layer, batch, x, e: _without_pairs(layer, batch.padded_x, batch.padded.real),
    ),
    "GPSConv": (lambda c: GPSConv(c, None, heads=HEADS).attn, _as_gps),
}
CONTENDERS: dict[str, dict[str, Contender]] = {
    "key and value": {"gtx": _gtx(edge_bias=False, edge_key=True, edge_value=True), **PYG},
    "bias": {**dict.fromkeys(("gtx", CAPTURED[0]), _gtx(project=True)), **PYG, **PADDED, **WITHOUT_PAIRS},
    "bias and value": {**dict.fromkeys(("gtx", CAPTURED[0]), _gtx(project=True, edge_value=True)), **PYG, **PADDED},
}
"""By function and name."""


def contender(function: str, name: str, batch: Batch) -> tuple[nn.Module, Callable[[Tensor, Tensor], Tensor]]:
    """The module, and its call on the batch."""
    make, call = CONTENDERS[function][name]
    return (layer := make(batch.channels)), partial(call, layer, batch)
