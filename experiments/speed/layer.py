"""One attention layer against other ways to attend over all pairs of every molecule."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import cached_property, partial
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GPSConv, TransformerConv
from torch_geometric.utils import to_dense_batch

from experiments.speed.measure import Case
from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention

HEADS, EDGE_DIM = 8, 32
SIZES = {"drug-like": (128, 9, 38), "tiny": (512, 4, 9), "peptide-like": (16, 80, 300), "2000 nodes": (1, 2000, 2000)}
STEPS = ("forward", "forward + backward")


class Padded:
    """Index of graphs padded to `size` nodes each.

    Attributes:
        node: int64 `[N]`, the slot of each node.
        real: bool `[B, size]`, False for padding.
    """

    def __init__(self, graph: CompleteGraph, largest: int) -> None:
        self.count, self.size = graph.num_graphs, -(-largest // 8) * 8 if graph.ptr.is_cuda else largest
        offset = graph.batch * self.size - graph.ptr[graph.batch]
        self.node = torch.arange(graph.num_nodes, device=graph.ptr.device) + offset
        sender, receiver = graph.pair_index
        self._pair = self.node[receiver] * self.size + self.node[sender] % self.size
        self.real = self.nodes(torch.ones_like(self.node)) > 0

    def nodes(self, flat: Tensor) -> Tensor:
        """Scatter flat nodes `[N, *]` to `[B, size, *]`, 0 in padding."""
        padded = flat.new_zeros(self.count * self.size, *flat.shape[1:])
        return padded.index_copy(0, self.node, flat).unflatten(0, (self.count, self.size))

    def pairs(self, flat: Tensor) -> Tensor:
        """Scatter flat pairs `[num_pairs, *]` to `[B, receivers, senders, *]`, 0 in padding."""
        padded = flat.new_zeros(self.count * self.size**2, *flat.shape[1:])
        return padded.index_copy(0, self._pair, flat).unflatten(0, (self.count, self.size, self.size))


class Batch:
    """Graphs of given sizes with random features; indices that all layers of a model share are made once."""

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
    """Call attention as PyG's `GPSConv` does: padded and unpadded in every layer."""
    h, real = to_dense_batch(x, batch.graph.batch)
    return _without_pairs(layer, h, real)[real]


Contender = tuple[Callable[[int], nn.Module], Callable[[nn.Module, Batch, Tensor, Tensor], Tensor]]
"""A module of so many channels; a call of it on x `[N, channels]` and edge_attr `[num_pairs, EDGE_DIM]`."""


def _gtx(**arguments: bool) -> Contender:
    how = {"heads": HEADS, "edge_dim": EDGE_DIM, **arguments}
    return lambda c: EdgeAttention(c, c // HEADS, **how), lambda layer, batch, x, e: layer(x, batch.graph, e)


PYG: dict[str, Contender] = {
    "TransformerConv": (
        lambda c: TransformerConv(c, c // HEADS, HEADS, edge_dim=EDGE_DIM, root_weight=False),
        lambda layer, batch, x, e: layer(x, batch.edge_index, e),
    )
}
PADDED: dict[str, Contender] = {"padded SDPA": (PaddedAttention, lambda layer, batch, *xe: layer(*xe, batch.padded))}
WITHOUT_PAIRS: dict[str, Contender] = {
    "MultiheadAttention": (  # on nodes that are padded already, as in a padded model
        lambda c: nn.MultiheadAttention(c, HEADS, batch_first=True),
        lambda layer, batch, x, e: _without_pairs(layer, batch.padded_x, batch.padded.real),
    ),
    "GPSConv": (lambda c: GPSConv(c, None, heads=HEADS).attn, _as_gps),
}
CONTENDERS: dict[str, dict[str, Contender]] = {
    "key and value": {"gtx": _gtx(edge_bias=False, edge_key=True, edge_value=True), **PYG},
    "bias": {"gtx": _gtx(project=True), **PYG, **PADDED, **WITHOUT_PAIRS},
    "bias and value": {"gtx": _gtx(project=True, edge_value=True), **PYG, **PADDED},
}
"""By function and name."""


def contender(function: str, name: str, batch: Batch) -> tuple[nn.Module, Callable[[Tensor, Tensor], Tensor]]:
    """Return the module, and its call on the batch."""
    make, call = CONTENDERS[function][name]
    return (layer := make(batch.channels)), partial(call, layer, batch)


def cases(options: Namespace) -> list[Case]:
    """One attention layer, forward and forward + backward, against other ways to attend over all pairs.

    Batches: drug-like (128 molecules of 9 to 38 atoms), tiny (512 of 4 to 9), peptide-like (16 of 80 to 300), one graph
    of 2,000 nodes; 8 heads, 32 pair features. Three functions: "key and value", exactly PyG's `TransformerConv`,
    "bias", one number per pair and head added to the score, and "bias and value", as in the default model.
    `MultiheadAttention` and `GPSConv` take no pair features and padded SDPA only a bias, so they do less.
    """
    gpu = options.device == "cuda"
    kinds, widths = (["drug-like"], [64]) if options.quick else (SIZES, [128] if gpu else [64, 128, 256])
    made = []
    for function, step, kind, width in product(CONTENDERS, STEPS, kinds, widths):
        for dtype in ["float32", "bfloat16"] if gpu else ["float32"]:
            group = f"{function}: {step}; {kind}, {width}, {dtype}"
            for name in CONTENDERS[function]:
                prepare = partial(_prepare, function, name, step, kind, width, dtype, options.device)
                made.append(Case(group, name, prepare, SIZES[kind][0], 0.1))
    return made


def _prepare(f: str, name: str, step: str, kind: str, width: int, dtype: str, device: str) -> Callable[[], None]:
    count, least, most = SIZES[kind]
    sizes = torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(0))
    how = width, getattr(torch, dtype), device
    _step(f, name, step, Batch(sizes[:1].clamp(max=9), *how))()  # libraries load parts of themselves at first use
    return _step(f, name, step, Batch(sizes, *how))


def _step(function: str, name: str, step: str, batch: Batch) -> Callable[[], None]:
    torch.manual_seed(0)
    module, call = contender(function, name, batch)
    module.to(batch.x.device, batch.x.dtype)

    def forward() -> None:
        module.eval()
        with torch.no_grad():
            call(batch.x, batch.edge_attr)

    def both() -> None:
        module.train()
        out = call(batch.x, batch.edge_attr)
        out.backward(torch.ones_like(out))
        module.zero_grad()
        batch.x.grad = batch.edge_attr.grad = None

    return forward if step == "forward" else both
