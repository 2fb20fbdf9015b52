"""The attentions that are compared: each a module, and a way to call it on flat nodes.

Every contender gets what does not depend on weights or features once per batch, outside the measurement, as all layers
of a model could share it: gtx its `CompleteGraph`, PyG's `TransformerConv` the written-out `edge_index`, the padded
forms their indices.
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
        self.size = -(-largest // 8) * 8 if graph.ptr.is_cuda else largest
        self.node = torch.arange(graph.num_nodes, device=graph.ptr.device)
        self.node += graph.batch * self.size - graph.ptr[graph.batch]
        sender, receiver = graph.pair_index
        self._pair = self.node[receiver] * self.size + self.node[sender] % self.size
        self.count = graph.num_graphs
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
    """Graphs of given sizes with random features.

    Args:
        sizes: nodes of each graph.
        channels: of the nodes.
        dtype: of the features.
        device: where they lie.
    """

    def __init__(self, sizes: Tensor, channels: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> None:
        generator = torch.Generator().manual_seed(1)
        self.graph = CompleteGraph.from_ptr(torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]).to(device))
        self.channels, self.largest = channels, int(sizes.max())

        def features(rows: int, width: int) -> Tensor:
            return torch.randn(rows, width, generator=generator).to(device, dtype).requires_grad_()

        self.x = features(self.graph.num_nodes, channels)
        self.edge_attr = features(self.graph.num_pairs, EDGE_DIM)

    @cached_property
    def padded(self) -> Padded:
        """Where nodes and pairs go when every graph is padded to the largest."""
        return Padded(self.graph, self.largest)


class PaddedAttention(nn.Module):
    """Attention as one writes it by hand: pad all, call `scaled_dot_product_attention` with the pairs' bias, unpad.

    Args:
        channels: of the nodes.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lin_in, self.lin_out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.lin_bias = nn.Linear(EDGE_DIM, HEADS, bias=False)

    def forward(self, x: Tensor, edge_attr: Tensor, to: Padded) -> Tensor:
        q, k, v = to.nodes(self.lin_in(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)  # [B, H, n, C] each
        bias = to.pairs(self.lin_bias(edge_attr)).permute(0, 3, 1, 2).masked_fill(~to.real[:, None, None], -torch.inf)
        out = F.scaled_dot_product_attention(q, k, v, bias)
        return self.lin_out(out.transpose(1, 2).flatten(0, 1).flatten(1)[to.node])


Call = Callable[[Tensor, Tensor], Tensor]  # from x [N, channels] and edge_attr [num_pairs, EDGE_DIM]
Contender = Callable[[Batch], tuple[nn.Module, Call]]


def edge_attention(batch: Batch, **parts: bool) -> tuple[nn.Module, Call]:
    """gtx."""
    layer = EdgeAttention(batch.channels, batch.channels // HEADS, HEADS, edge_dim=EDGE_DIM, **parts)
    return layer, lambda x, e: layer(x, batch.graph, e)


gtx_bias = partial(edge_attention, project=True)
gtx_bias_value = partial(edge_attention, project=True, edge_value=True)
gtx_key_value = partial(edge_attention, edge_bias=False, edge_key=True, edge_value=True)


def transformer_conv(batch: Batch) -> tuple[nn.Module, Call]:
    """PyG's `TransformerConv` on the written-out complete graph."""
    layer = TransformerConv(batch.channels, batch.channels // HEADS, HEADS, edge_dim=EDGE_DIM, root_weight=False)
    edge_index = batch.graph.edge_index
    return layer, lambda x, e: layer(x, edge_index, e)


def multihead(batch: Batch) -> tuple[nn.Module, Call]:
    """`torch.nn.MultiheadAttention` on nodes that are padded already, as in a padded model; no pair features."""
    layer = nn.MultiheadAttention(batch.channels, HEADS, batch_first=True)
    padded, padding = batch.padded.nodes(batch.x.detach()).requires_grad_(), ~batch.padded.real
    return layer, lambda x, e: layer(padded, padded, padded, key_padding_mask=padding, need_weights=False)[0]


def gps_conv(batch: Batch) -> tuple[nn.Module, Call]:
    """The attention of PyG's `GPSConv`, called as it calls it: padded and unpadded in every layer; no pair features."""
    layer = GPSConv(batch.channels, None, heads=HEADS).attn

    def call(x: Tensor, e: Tensor) -> Tensor:
        h, real = to_dense_batch(x, batch.graph.batch)
        return layer(h, h, h, key_padding_mask=~real, need_weights=False)[0][real]

    return layer, call


def padded_sdpa(batch: Batch) -> tuple[nn.Module, Call]:
    """`scaled_dot_product_attention` with the bias, padded by hand."""
    layer, padded = PaddedAttention(batch.channels), batch.padded
    return layer, lambda x, e: layer(x, e, padded)
