"""States of edges: their update layer by layer, and attention between edges that share a node."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.utils import softmax

from gtx.graph import CompleteGraph
from gtx.graph.packing import ragged
from gtx.nn.blocks import MLP, add_residual

# --- The state of an edge, updated layer by layer.


class EdgeStateUpdate(nn.Module):
    r"""Residual update of the edge states from the state that the attention score has computed for each edge.

    With norms first, \(e \leftarrow e + W \hat e\), then \(e \leftarrow e + \mathrm{MLP}(\mathrm{norm}(e))\); with
    norms last, \(e \leftarrow \mathrm{norm}(e + W \hat e)\), then
    \(e \leftarrow \mathrm{norm}(e + \mathrm{MLP}(e))\). The vector \(\hat e\) is the state from
    `gtx.attention.Score.state`, with all heads concatenated: the score itself in EGT, a vector in GRIT. Between the two
    updates, edges may attend to each other, with a residual connection of the same form.

    Sources: Hussain et al. 2022, EGT (arXiv:2108.03348), eq. 6 to 9; Ma et al. 2023, GRIT (arXiv:2305.17589), eq. 3,
    without the MLP; Hussain et al. 2024, TGT (arXiv:2402.04538), with triplets.

    Args:
        channels: number K of channels of the edge states.
        state_width: channels of \(\hat e\), see `EdgeAttention.state_width`.
        hidden: width of the hidden layer of the MLP; 0 for no MLP.
        dropout: dropout rate on both branches, in training.
        norm_first: whether norms come first (pre-norm) or last (post-norm) in each branch.
        triplets: attention between edges, such as `gtx.nn.TripletAttention`, or None.

    Shapes:
        edge_attr `[E, K]` and states `[E, state_width]` to `[E, K]`; with triplets the edges too, an edge list or a
        complete graph.
    """

    def __init__(
        self,
        channels: int,
        state_width: int,
        hidden: int = 0,
        dropout: float = 0.0,
        norm_first: bool = True,
        triplets: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.lin_state: nn.Linear = nn.Linear(state_width, channels)
        self.norm_first = norm_first
        self.norm: nn.LayerNorm | nn.Identity = nn.LayerNorm(channels) if hidden or not norm_first else nn.Identity()
        self.dropout: nn.Dropout = nn.Dropout(dropout)
        self.triplets = triplets
        self.norm_triplets: nn.Identity | nn.LayerNorm = nn.Identity() if triplets is None else nn.LayerNorm(channels)
        self.mlp: MLP | None = MLP(channels, hidden) if hidden else None
        self.norm_mlp: nn.LayerNorm | nn.Identity = (
            nn.LayerNorm(channels) if hidden and not norm_first else nn.Identity()
        )

    def forward(self, edge_attr: Tensor, states: Tensor, edges: Tensor | CompleteGraph | None = None) -> Tensor:
        e = edge_attr + self.dropout(self.lin_state(states))
        e = e if self.norm_first else self.norm(e)
        triplets = self.triplets
        if triplets is not None:
            if edges is None:
                raise ValueError("triplets are made of edges: expected an edge list or a complete graph, got None")
            e = add_residual(e, lambda e: triplets(e, edges), self.norm_triplets, self.dropout, self.norm_first)
        if self.mlp is None:
            return e
        return add_residual(e, self.mlp, self.norm if self.norm_first else self.norm_mlp, self.dropout, self.norm_first)


# --- Attention between edges: each learns from those that share a node with it.

_BLOCK = 1 << 22  # numbers in one block of triplets


class TripletAttention(nn.Module):
    r"""Attention of each pair (i, j) to the pairs (j, k) and the pairs (k, j), over all third nodes k.

    \[ o_{ij} = \sum_k a_{ijk} v_{jk}, \qquad
       a_{ijk} = \operatorname{softmax}_k\bigl(q_{ij} \cdot p_{jk} / \sqrt d + b_{ik}\bigr)\, \sigma(g_{ik}) \]
    \[ o'_{ij} = \sum_k a'_{ijk} v'_{kj}, \qquad
       a'_{ijk} = \operatorname{softmax}_k\bigl(q'_{ij} \cdot p'_{kj} / \sqrt d + b'_{ki}\bigr)\, \sigma(g'_{ki}) \]

    inward and outward, where q, p, v, b and g are linear maps of the states e, in every head, and a linear map of
    \([o_{ij} \,\|\, o'_{ij}]\), all heads side by side, is the result. The node i receives, j sends. A node k counts if
    both of its pairs are edges; a pair without any such k gets the bias of the last map.

    n nodes make \(n^3\) triplets. They are worked out in blocks of some i, and where a bucket of molecules takes more
    than one block, the blocks are worked out again in the backward pass. So memory is \(O(H n^3)\) while all triplets
    of a bucket have room in one block of 4 million numbers, and \(O(H n^2)\) for one i at the least; time is always
    \(O(K n^3)\).

    Source: Hussain et al. 2024, TGT (arXiv:2402.04538), triplet attention.

    Args:
        channels: number K of channels of the states.
        heads: H; they divide K.

    Shapes:
        states `[E, K]`, flat, with an edge list or a complete graph, to `[E, K]`.
    """

    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        if heads < 1 or channels % heads:
            raise ValueError(f"expected triplet heads that divide the pair channels, got {heads} and {channels}")
        self.channels = channels
        self.heads = heads
        self.lin_states: nn.ModuleList = nn.ModuleList(nn.Linear(channels, 3 * channels) for _ in range(2))
        self.lin_bias_gate: nn.ModuleList = nn.ModuleList(nn.Linear(channels, 2 * heads) for _ in range(2))
        self.lin_out: nn.Linear = nn.Linear(2 * channels, channels)

    def forward(self, states: Tensor, edges: Tensor | CompleteGraph) -> Tensor:
        if isinstance(edges, CompleteGraph):
            return self.lin_out(self._over_pairs(states, edges))
        return self.lin_out(self._over_edges(states, edges))

    def _parts(self, states: Tensor, way: int) -> list[Tensor]:
        """Project to queries (scaled), keys and values `[E, H, d]`, biases and gates `[E, H]`."""
        width = self.channels // self.heads
        query, key, value = self.lin_states[way](states).unflatten(-1, (3, self.heads, width)).unbind(-3)
        bias, gate = self.lin_bias_gate[way](states).chunk(2, -1)
        return [query * width**-0.5, key, value, bias, gate.sigmoid()]

    def _over_edges(self, states: Tensor, edges: Tensor) -> Tensor:
        """Triplet by triplet: the definition."""
        sender, receiver = edges
        out = []
        for way, (first, second) in enumerate(((receiver, sender), (sender, receiver))):
            query, key, value, bias, gate = self._parts(states, way)
            of, to, beside = _triplets(receiver, sender, first, second)
            score = (query[of] * key[to]).sum(-1) + bias[beside]
            weight = softmax(score, of, num_nodes=len(states)) * gate[beside]
            out.append(torch.zeros_like(value).index_add_(0, of, weight.unsqueeze(-1) * value[to]).flatten(1))
        return torch.cat(out, -1)

    def _over_pairs(self, states: Tensor, graph: CompleteGraph) -> Tensor:
        """Attend over a complete graph by matrix products in size buckets."""
        packed = graph.packed
        holes: Sequence[Tensor | None] = [None] * len(packed.shapes)
        none = None if graph.mask is None else ~graph.mask[:, None]
        if none is not None:  # even NaN there has no effect
            states, holes = states.masked_fill(none, 0.0), packed.split_pairs(none, True)
        out = []
        for way in range(2):
            query, key, value, bias, gate = self._parts(states, way)
            lowest = torch.finfo(bias.dtype).min / 4  # finite, where all are absent
            if none is not None:
                bias, gate = bias.masked_fill(none, lowest), gate.masked_fill(none, 0.0)
                value = value.masked_fill(none[..., None], 0.0)
            parts = [packed.split_pairs(x, fill) for x, fill in ((key, 0), (value, 0), (bias, lowest), (gate, 0))]
            buckets = []
            for query_of, *rest in zip(packed.split_pairs(query), holes, *parts, strict=True):
                turned = rest if way == 0 else [None if x is None else x.transpose(1, 2) for x in rest]
                buckets.append(_attend(query_of, *turned).flatten(3))
            out.append(packed.join_pairs(buckets) if buckets else states.new_zeros(0, self.channels))
        return torch.cat(out, -1)

    def __repr__(self) -> str:
        return f"TripletAttention({self.channels}, heads={self.heads})"


def _attend(query: Tensor, hole: Tensor | None, key: Tensor, value: Tensor, bias: Tensor, gate: Tensor) -> Tensor:
    """Attend inward in a bucket of b graphs of n nodes, to `[b, i, j, H, d]`.

    The query is `[b, i, j, H, d]`, key and value `[b, j, k, H, d]`, bias and gate `[b, i, k, H]`. Where a pair is no
    edge, value and gate are 0 and the bias is very negative. `hole` `[b, j, k, 1]` marks these pairs; it is None where
    padding alone is absent, of which the bias knows.
    """
    b, n, _, heads, _ = query.shape
    key, value = key.permute(0, 1, 3, 4, 2), value.permute(0, 1, 3, 2, 4)  # [b, j, H, d, k] and [b, j, H, k, d]
    if hole is not None:
        lowest = torch.finfo(query.dtype).min / 4
        hole = torch.zeros_like(hole, dtype=query.dtype).masked_fill(hole, lowest).permute(0, 1, 3, 2)[:, :, :, None]
    rows = n if torch.compiler.is_compiling() else max(1, _BLOCK // max(1, b * n * n * heads))
    done = []
    for start in range(0, n, rows):
        at = slice(start, start + rows)
        inputs = query[:, at], hole, key, value, bias[:, at], gate[:, at]
        if rows < n and torch.is_grad_enabled():
            done.append(checkpoint(_attend_block, *inputs, use_reentrant=False, preserve_rng_state=False))
        else:
            done.append(_attend_block(*inputs))
    return torch.cat(done, 1)


def _attend_block(query: Tensor, hole: Tensor | None, key: Tensor, value: Tensor, bias: Tensor, gate: Tensor) -> Tensor:
    """Attend for some i at once; `hole` is added to the scores, `[b, j, 1, 1, k]`."""
    bias, gate = (x.permute(0, 3, 1, 2)[:, None] for x in (bias, gate))  # [b, 1, H, i, k]
    score = query.permute(0, 2, 3, 1, 4) @ key + bias  # [b, j, H, i, k]
    weight = (score if hole is None else score + hole).softmax(-1) * gate
    return (weight @ value).permute(0, 3, 1, 2, 4)


def _triplets(receiver: Tensor, sender: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers of edges, int64 `[T]` each: (i, j); one with j `first`; and the one with i first and the same second."""
    nodes = int(torch.cat([receiver, sender]).max()) + 1 if len(receiver) else 0
    order = first.argsort(stable=True)
    count = torch.bincount(first, minlength=nodes)
    of, place = ragged(count[sender])
    to = order[(count.cumsum(0) - count)[sender][of] + place]
    keys, edge = (first * nodes + second).sort()
    third = receiver[of] * nodes + second[to]
    row = torch.searchsorted(keys, third).clamp(max=max(0, len(keys) - 1))
    there = keys[row] == third
    return of[there], to[there], edge[row[there]]
