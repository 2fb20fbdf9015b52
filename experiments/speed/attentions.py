"""The attentions that are compared: each a module, and a way to call it on flat nodes.

Every contender gets what does not depend on weights or features once per batch, outside the measurement, as all layers
of a model could share it: gtx its `CompleteGraph`, PyG's `TransformerConv` the written-out `edge_index`, the padded
forms their indices.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GPSConv, TransformerConv
from torch_geometric.utils import to_dense_batch

from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention

HEADS, EDGE_DIM = 8, 32


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
        ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]).to(device)
        self.graph = CompleteGraph.from_ptr(ptr)
        self.channels, self.sizes = channels, sizes.to(device)

        def features(rows: int, width: int) -> Tensor:
            return torch.randn(rows, width, generator=generator).to(device, dtype).requires_grad_()

        self.x = features(self.graph.num_nodes, channels)
        self.edge_attr = features(self.graph.num_pairs, EDGE_DIM)

    @cached_property
    def dense(self) -> Dense:
        """Where nodes and pairs go when every graph is padded to the largest."""
        graph, count, size = self.graph, len(self.sizes), int(self.sizes.max())
        if graph.ptr.is_cuda:
            size = -(-size // 8) * 8  # what the fused kernels want of a bias
        node = graph.batch * size + torch.arange(graph.num_nodes, device=graph.ptr.device) - graph.ptr[graph.batch]
        sender, receiver = graph.pair_index
        real = torch.zeros(count * size, dtype=torch.bool, device=node.device)
        real[node] = True
        return Dense(count, size, node, node[receiver] * size + node[sender] % size, real.view(count, size))


class Dense(NamedTuple):
    """Graphs padded to one size.

    Attributes:
        count: graphs.
        size: nodes of each, with padding.
        node: int64 `[N]`, the slot of each node among `count * size`.
        pair: int64 `[num_pairs]`, the slot of each pair among `count * size * size`, receiver-major.
        real: bool `[count, size]`, False for padding.
    """

    count: int
    size: int
    node: Tensor
    pair: Tensor
    real: Tensor


class PaddedAttention(nn.Module):
    """Attention as one writes it by hand: pad all, call `scaled_dot_product_attention` with the pairs' bias, unpad.

    Args:
        channels: of the nodes.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lin_in, self.lin_out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.lin_bias = nn.Linear(EDGE_DIM, HEADS, bias=False)

    def forward(self, x: Tensor, edge_attr: Tensor, dense: Dense) -> Tensor:
        count, size, node, pair, real = dense
        flat, pairs = self.lin_in(x), self.lin_bias(edge_attr)
        slots = flat.new_zeros(count * size, flat.shape[1]).index_copy(0, node, flat)
        q, k, v = slots.view(count, size, 3, HEADS, -1).permute(2, 0, 3, 1, 4)  # [b, H, n, C] each
        bias = pairs.new_zeros(count * size * size, HEADS).index_copy(0, pair, pairs)
        bias = bias.view(count, size, size, HEADS).permute(0, 3, 1, 2)
        out = F.scaled_dot_product_attention(q, k, v, bias.masked_fill(~real[:, None, None], -torch.inf))
        return self.lin_out(out.transpose(1, 2).reshape(count * size, -1)[node])


Call = Callable[[Tensor, Tensor], Tensor]  # from x [N, channels] and edge_attr [num_pairs, EDGE_DIM]
Contender = Callable[[Batch], tuple[nn.Module, Call]]


def gtx_bias(batch: Batch) -> tuple[nn.Module, Call]:
    """A bias per head from the pair features, and W_o."""
    layer = EdgeAttention(batch.channels, batch.channels // HEADS, HEADS, edge_dim=EDGE_DIM, project=True)
    return layer, lambda x, e: layer(x, batch.graph, e)


def gtx_key_value(batch: Batch) -> tuple[nn.Module, Call]:
    """What `TransformerConv` computes: pair features in key and value."""
    parts = {"edge_bias": False, "edge_key": True, "edge_value": True}
    layer = EdgeAttention(batch.channels, batch.channels // HEADS, HEADS, edge_dim=EDGE_DIM, **parts)
    return layer, lambda x, e: layer(x, batch.graph, e)


def transformer_conv(batch: Batch) -> tuple[nn.Module, Call]:
    """PyG's `TransformerConv` on the written-out complete graph."""
    layer = TransformerConv(
        batch.channels, batch.channels // HEADS, HEADS, edge_dim=EDGE_DIM, root_weight=False, concat=True
    )
    edge_index = batch.graph.edge_index
    return layer, lambda x, e: layer(x, edge_index, e)


def multihead(batch: Batch) -> tuple[nn.Module, Call]:
    """`torch.nn.MultiheadAttention` on nodes that are padded already, as in a padded model; no pair features."""
    layer = nn.MultiheadAttention(batch.channels, HEADS, batch_first=True)
    dense = batch.dense
    padded = batch.x.new_zeros(dense.count * dense.size, batch.channels).index_copy(0, dense.node, batch.x.detach())
    padded = padded.view(dense.count, dense.size, -1).requires_grad_()
    padding = ~dense.real
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
    layer, dense = PaddedAttention(batch.channels), batch.dense
    return layer, lambda x, e: layer(x, e, dense)
