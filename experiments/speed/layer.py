"""One attention layer against other ways to attend over all pairs of every molecule."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import TransformerConv

from experiments.speed.measure import Case
from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention

HEADS, EDGE_DIM = 8, 32
SIZES = {"drug-like": (128, 9, 38), "tiny": (512, 4, 9), "peptide-like": (16, 80, 300), "2000 nodes": (1, 2000, 2000)}
STEPS = ("forward", "forward + backward")


class Batch:
    """Graphs of given sizes with random features, and indices that all layers of a model share.

    Padded, each graph has `size` nodes; `node` `[N]` and `pair` `[num_pairs]` are the places of real nodes and pairs.
    """

    def __init__(self, sizes: Tensor, channels: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> None:
        generator, largest = torch.Generator().manual_seed(1), int(sizes.max())
        self.graph = graph = CompleteGraph.from_ptr(torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]).to(device))
        self.edge_index, (sender, receiver) = graph.edge_index, graph.pair_index
        self.channels, self.count = channels, graph.num_graphs
        self.size = -(-largest // 8) * 8 if graph.ptr.is_cuda else largest
        self.node = torch.arange(graph.num_nodes, device=device) + graph.batch * self.size - graph.ptr[graph.batch]
        self.pair = self.node[receiver] * self.size + self.node[sender] % self.size
        for name, shape in ("x", (graph.num_nodes, channels)), ("edge_attr", (graph.num_pairs, EDGE_DIM)):
            setattr(self, name, torch.randn(shape, generator=generator).to(device, dtype).requires_grad_())
        self.real = self.padded(torch.ones_like(self.node)) > 0  # [B, size]

    def padded(self, flat: Tensor) -> Tensor:
        """Scatter flat nodes `[N, *]` to `[B, size, *]`, 0 in padding."""
        padded = flat.new_zeros(self.count * self.size, *flat.shape[1:])
        return padded.index_copy(0, self.node, flat).unflatten(0, (self.count, self.size))

    def padded_pairs(self, flat: Tensor) -> Tensor:
        """Scatter flat pairs `[num_pairs, *]` to `[B, receivers, senders, *]`, 0 in padding."""
        padded = flat.new_zeros(self.count * self.size**2, *flat.shape[1:])
        return padded.index_copy(0, self.pair, flat).unflatten(0, (self.count, self.size, self.size))


class PaddedAttention(nn.Module):
    """Attention as one writes it by hand: pad all, call `scaled_dot_product_attention` with the pairs' bias, unpad."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lin_in, self.lin_out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.lin_bias = nn.Linear(EDGE_DIM, HEADS, bias=False)

    def forward(self, batch: Batch) -> Tensor:
        q, k, v = (
            batch.padded(self.lin_in(batch.x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        )  # [B, H, n, C]
        bias = batch.padded_pairs(self.lin_bias(batch.edge_attr)).permute(0, 3, 1, 2)
        out = F.scaled_dot_product_attention(q, k, v, bias.masked_fill(~batch.real[:, None, None], -torch.inf))
        return self.lin_out(out.transpose(1, 2).flatten(0, 1).flatten(1)[batch.node])


Contender = tuple[Callable[[int], nn.Module], Callable[[nn.Module, Batch], Tensor]]
"""A module of so many channels, and a call of it on a batch."""


def _gtx(**arguments: bool) -> Contender:
    how = {"heads": HEADS, "edge_dim": EDGE_DIM, **arguments}
    return lambda c: EdgeAttention(c, c // HEADS, **how), lambda layer, batch: layer(
        batch.x, batch.graph, batch.edge_attr
    )


PYG: dict[str, Contender] = {
    "TransformerConv": (
        lambda c: TransformerConv(c, c // HEADS, HEADS, edge_dim=EDGE_DIM, root_weight=False),
        lambda layer, batch: layer(batch.x, batch.edge_index, batch.edge_attr),
    )
}
PADDED: dict[str, Contender] = {"padded SDPA": (PaddedAttention, lambda layer, batch: layer(batch))}
CONTENDERS: dict[str, dict[str, Contender]] = {
    "key and value": {"gtx": _gtx(edge_bias=False, edge_key=True, edge_value=True), **PYG},
    "bias": {"gtx": _gtx(project=True), **PYG, **PADDED},
    "bias and value": {"gtx": _gtx(project=True, edge_value=True), **PYG, **PADDED},
}
"""By function and name."""


def cases(options: Namespace) -> list[Case]:
    """One attention layer, forward and forward + backward, against other ways to attend over all pairs.

    Batches: drug-like (128 molecules of 9 to 38 atoms), tiny (512 of 4 to 9), peptide-like (16 of 80 to 300), one graph
    of 2,000 nodes; 8 heads, 32 pair features. Three functions: "key and value", exactly PyG's `TransformerConv`,
    "bias", one number per pair and head added to the score, and "bias and value", as in the default model, where padded
    SDPA takes the bias alone.
    """
    gpu = options.device == "cuda"
    kinds, widths = (["drug-like"], [64]) if options.quick else (SIZES, [128] if gpu else [64, 128, 256])
    made = []
    for function, step, kind, width in product(CONTENDERS, STEPS, kinds, widths):
        for dtype in ["float32", "bfloat16"] if gpu else ["float32"]:
            group = f"{function}: {step}; {kind}, {width}, {dtype}"
            for name in CONTENDERS[function]:
                prepare = partial(_prepare, function, name, step, kind, width, dtype, options.device)
                made.append(Case(group, name, prepare, SIZES[kind][0]))
    return made


def _prepare(f: str, name: str, step: str, kind: str, width: int, dtype: str, device: str) -> Callable[[], None]:
    count, least, most = SIZES[kind]
    sizes = torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(0))
    batch = Batch(sizes, width, getattr(torch, dtype), device)
    torch.manual_seed(0)
    make, call = CONTENDERS[f][name]
    module = make(width).to(device, batch.x.dtype).train(step != "forward")

    @torch.no_grad()
    def forward() -> None:
        call(module, batch)

    def both() -> None:
        out = call(module, batch)
        out.backward(torch.ones_like(out))
        module.zero_grad()
        batch.x.grad = batch.edge_attr.grad = None

    return forward if step == "forward" else both
