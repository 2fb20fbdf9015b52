"""Multi-head attention as an edge update.

Read next: `gtx/attention/definition.py`, the equation; `gtx/attention/complete.py`, who computes it.
"""

from __future__ import annotations

from inspect import signature
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import Linear, MessagePassing
from torch_geometric.nn.inits import glorot
from torch_geometric.utils import is_sparse

from gtx.attention import HeadMerge, Normaliser, ScaledDotScore, Score, Softmax, attend
from gtx.attention.definition import AttentionRule, ProjectedEdgeFeatures, weigh_edges, weigh_values
from gtx.attention.normalisers import EdgeListAggregator
from gtx.base.errors import did_you_mean
from gtx.graph import BipartiteGraph, CompleteGraph

_LINEAR, _LOOPS = "add a torch.nn.Linear of x to the output", "add torch_geometric.utils.add_self_loops to the edges"
_FOREIGN = {
    **dict.fromkeys(["beta", "root_weight", "residual"], _LINEAR),
    **dict.fromkeys(["add_self_loops", "fill_value"], _LOOPS),
    "share_weights": 'pass projections="shared"',
    "negative_slope": "pass a score with a slope, such as gtx.attention.GATv2Score",
    "aggr": "the weighted values are summed, and a normaliser makes the weights",
    "flow": "turn the edges round with edge_index.flip(0)",
}
"""Arguments of PyG's attention layers that are not taken, and what stands for them."""
_AS_HERE = (None, False, "add", "sum", "source_to_target")
"""Values of these arguments that say what the layer does."""


class EdgeAttention(MessagePassing):
    r"""Multi-head attention as message passing: each receiver sums the values of its senders, weighted by a softmax.

    In a graph network (Battaglia et al. 2018), the weighted value of an edge is the result of its edge update.

    For an edge k from sender s to receiver r with features \(e_k\), in every head,

    \[ q_k = W_q v_r, \qquad K_k = W_k v_s + W_{ek} e_k, \qquad V_k = W_v v_s + W_{ev} e_k \]
    \[ b_k = \operatorname{normalise}_{k \to r} \bigl( \mathrm{score}(q_k, K_k, e_k) + w_b \cdot e_k \bigr), \qquad
       \bar e_r = g_r \sum_{k \to r} b_k V_k \]

    and the heads are concatenated, averaged, or merged by the weight tensor
    \(\bar e_{rl} = \sum_{kjh} e'_{kjh} w_{jhl}\) (concatenation and \(W_o\)). By default the score is the scaled dot
    product, the normaliser a softmax, and there is no gate \(g_r\). A published attention is another choice of score,
    normaliser and gate (see `gtx.attention`).

    The graph is an edge list, int64 `[2, E]`, or a `gtx.graph.CompleteGraph`, or for a pair (source, target) a
    `gtx.graph.BipartiteGraph`. The learned weights and the output do not depend on the form of the graph. The layer
    adds no root weight and no self-loops.

    Sources: Vaswani et al. 2017 (arXiv:1706.03762) for the attention; Battaglia et al. 2018 (arXiv:1806.01261) for
    graph networks; Shaw et al. 2018 (arXiv:1803.02155) for edge features in key and value.

    Args:
        in_channels: channels of the nodes; a pair (source, target) for a bipartite graph; -1 to learn it from the
            first input.
        out_channels: channels of the values, PER HEAD.
        heads: number of heads H.
        concat: whether the outputs of the heads are concatenated (`H * out_channels` channels) or averaged.
        dropout: share of the attention weights set to zero in training.
        edge_dim: channels K of the edge features; -1 to learn it from the first input; None without edge features.
        bias: whether the projections of nodes have a bias.
        key_channels: channels of queries and keys per head, d_k; default `out_channels`.
        project: whether a learned matrix \(W_o\) merges the heads, to `H * out_channels` channels if `concat`, else to
            `out_channels`.
        score: score of query and key; default: the scaled dot product.
        normaliser: function from the scores of a receiver to attention weights; default: the softmax.
        edge_bias: whether edge features are added to the score as a bias per head, by a linear map. A module from `[*,
            K]` to `[*, H]` replaces the linear map (`torch.nn.Identity()` if the features already are the bias). The
            output of a receiver whose scores are all minus infinity is not defined (in compiled code zero, else NaN):
            leave such edges out of the graph.
        edge_key: whether a linear map of the edge features is added to the key.
        edge_value: whether a linear map of the edge features is added to the value; with "state", the states of the
            score are used instead of the edge features (see `Score.state`).
        projections: "separate" for three matrices \(W_q, W_k, W_v\); "key_value" for \(W_k = W_v\); "shared" for one
            matrix; "none" for no projection.
        value_activation: activation function of the values, or None.
        gate: module that computes a factor per receiver and head, such as `gtx.attention.HeadGate`; or None.
        merge: module that merges the heads, in place of `concat` and `project`.

    Shapes:
        x `[N, in_channels]`, or (`[N_s, ...]`, `[N_t, ...]`); edge_attr flat, `[E, edge_dim]`; for a complete graph
        `[num_pairs, edge_dim]`, receiver-major. Output `[N, width]`, `width` being `H * out_channels`, or
        `out_channels`, or what `merge` gives.
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        dropout: float = 0.0,
        edge_dim: int | None = None,
        bias: bool = True,
        key_channels: int | None = None,
        project: bool = False,
        score: Score | None = None,
        normaliser: Normaliser | None = None,
        edge_bias: bool | nn.Module = True,
        edge_key: bool = False,
        edge_value: bool | Literal["state"] = False,
        projections: Literal["separate", "key_value", "shared", "none"] = "separate",
        value_activation: nn.Module | None = None,
        gate: nn.Module | None = None,
        merge: HeadMerge | None = None,
        **kwargs: Any,
    ) -> None:
        for name in _FOREIGN.keys() & kwargs.keys():
            value = kwargs.pop(name)
            if value not in _AS_HERE:
                raise TypeError(
                    f"EdgeAttention has no {name}={value!r}, unlike attention layers of PyG: leave it out; "
                    f"{_FOREIGN[name]}"
                )
        for name in kwargs.keys() - signature(MessagePassing).parameters:
            hint = did_you_mean(name, signature(EdgeAttention).parameters)
            raise TypeError(f"EdgeAttention has no argument {name!r}{hint}")
        super().__init__(aggr="add", node_dim=0, **kwargs)
        source, target = in_channels if isinstance(in_channels, tuple | list) else (in_channels, in_channels)
        self.in_channels = in_channels if isinstance(in_channels, int) else (source, target)
        self.out_channels = out_channels
        self.heads = heads
        self.key_channels: int = out_channels if key_channels is None else key_channels
        for name in ("out_channels", "heads", "key_channels"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected a positive {name}, got {getattr(self, name)}")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"expected 0 <= dropout < 1, got {dropout}")
        if edge_value != "state" and not isinstance(edge_value, bool):
            raise ValueError(f"expected edge_value True, False or 'state', got {edge_value!r}")
        self.concat = concat
        self.dropout = dropout
        self.edge_dim = edge_dim
        if score is not None and not isinstance(score, Score):
            raise TypeError(f"expected a score, an instance of a class derived from gtx.attention.Score, got {score!r}")
        self.score: ScaledDotScore | Score = ScaledDotScore() if score is None else score
        self.normaliser: Softmax | Normaliser = Softmax() if normaliser is None else normaliser
        for module in (self.score, self.normaliser, gate, merge):
            channels = out_channels if module is merge else self.key_channels
            sizes = {"heads": heads, "channels": channels, "edge_dim": edge_dim}
            for name, size in getattr(module, "fixed_sizes", {}).items():
                if size is not None and sizes[name] not in (None, -1, size):
                    raise ValueError(f"expected modules for {name} {sizes[name]}, got {module}")
        if edge_dim is None and (edge_key or edge_value is True or isinstance(edge_bias, nn.Module)):
            raise ValueError("edge features are to enter the attention: expected their channels edge_dim, got None")
        if isinstance(edge_bias, nn.Identity) and edge_dim != heads:
            raise ValueError(f"a bias has one channel per head: expected edge_dim {heads}, got {edge_dim}")
        self.value_activation = value_activation
        self.gate = gate

        self.projections = projections
        self._check_projections(source, target)
        self.lin_query: Linear | None = (
            None if projections == "none" else Linear(target, heads * self.key_channels, bias=bias)
        )
        own_key, own_value = projections in ("separate", "key_value"), projections == "separate"
        self.lin_key: Linear | None = Linear(source, heads * self.key_channels, bias=bias) if own_key else None
        self.lin_value: Linear | None = Linear(source, heads * out_channels, bias=bias) if own_value else None

        def edge_linear(used: bool, channels: int) -> Linear | None:
            return Linear(edge_dim, channels, bias=False) if used and edge_dim is not None else None

        self.lin_edge_bias: nn.Module | None = (
            edge_bias if isinstance(edge_bias, nn.Module) else edge_linear(edge_bias, heads)
        )
        self.lin_edge_key: Linear | None = edge_linear(edge_key, heads * self.key_channels)
        self.lin_edge_value: Linear | None = edge_linear(edge_value is True, heads * out_channels)
        self.state_value: nn.Parameter | None = None
        if edge_value == "state":
            self.state_value = nn.Parameter(torch.empty(heads, out_channels, self.score.state_channels))
        self.merge = merge
        self.lin_out: Linear | None = (
            Linear(heads * out_channels, self.width, bias=bias) if project and merge is None else None
        )
        self.reset_parameters()

    @property
    def width(self) -> int:
        """Channels of the output."""
        if self.merge is not None:
            return self.merge.width(self.heads, self.out_channels)
        return self.heads * self.out_channels if self.concat else self.out_channels

    @property
    def state_width(self) -> int:
        """Channels of the states of an edge, all heads."""
        return self.heads * self.score.state_channels

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for module in self.children():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        glorot(self.state_value)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Tensor | CompleteGraph,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
        size: tuple[int, int] | None = None,
    ) -> Tensor | tuple[Tensor, tuple[Tensor | CompleteGraph, Tensor]]:
        """Compute the attention.

        Args:
            x: node features, flat; a pair (source, target) for a bipartite graph. If the target is None, the receivers
                have features of zero, so their queries equal the bias.
            edge_index: int64 `[2, E]`, senders and receivers, or a complete graph.
            edge_attr: edge features, flat; features with one channel may have the shape `[E]`.
            return_attention_weights: whether `(edge_index, weights [E, H])` is also returned, with the weights before
                dropout. For a complete graph, all pairs are returned, with weight 0 for a pair that is not an edge.
            size: numbers of senders and receivers; by default there are as many receivers without features as senders,
                as in PyG.

        Raises:
            ValueError: a shape or type is wrong; the message gives the expected and the actual one.
        """
        out, alpha, _ = self.attend(x, edge_index, edge_attr, weights=bool(return_attention_weights), size=size)
        return (out, (edge_index, alpha)) if return_attention_weights and alpha is not None else out

    def attend(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Tensor | CompleteGraph,
        edge_attr: Tensor | None = None,
        weights: bool = False,
        states: bool = False,
        size: tuple[int, int] | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return the output of `forward` and, on request, the weights `[E, H]` and the states `[E, state_width]`."""
        source, target = x if isinstance(x, tuple | list) else (x, x)
        if target is None:
            target = self._without_features(source, edge_index, size)
        if edge_attr is not None and edge_attr.dim() == 1 and self.edge_dim in (1, -1):
            edge_attr = edge_attr[:, None]
        self._check(source, target, edge_index, edge_attr)
        if self.edge_dim == -1 and edge_attr is not None:
            for linear in (self.lin_edge_bias, self.lin_edge_key, self.lin_edge_value):
                if isinstance(linear, Linear):
                    linear(edge_attr[:0])  # a first call, which makes its weights
            self.edge_dim = edge_attr.size(1)
        if size is not None and tuple(size) != (len(source), len(target)):
            raise ValueError(
                f"expected x of {size[0]} senders and {size[1]} receivers, got {len(source)} and {len(target)}"
            )
        query = self.queries(target)
        key, value = self.keys_and_values(source, query if source is target else None)
        if isinstance(edge_index, CompleteGraph):
            if edge_index.mask is not None and edge_attr is not None:  # even NaN there has no effect
                edge_attr = edge_attr.masked_fill(~edge_index.mask[:, None], 0.0)
            out, alpha, state = attend(edge_index, query, key, value, self.rule(edge_attr), weights, states)
        else:  # the sum of `gtx.attention.definition`, taken by PyG, so that its explainers and hooks see every edge
            rule, size = self.rule(edge_attr), (source.size(0), target.size(0))
            alpha, state = self.edge_updater(edge_index, query=query, key=key, rule=rule, size=size)
            out = self.propagate(edge_index, value=value, alpha=alpha, state=state, rule=rule, size=size)

        if self.gate is not None:
            out = out * self.gate(target, source, edge_index).unsqueeze(-1)
        return self.merge_heads(out), alpha, None if state is None or not states else state.flatten(1)

    def queries(self, target: Tensor) -> Tensor:
        """Project receivers `[N, *]` to queries `[N, H, C]`."""
        return self._split(target if self.lin_query is None else self.lin_query(target))

    def keys_and_values(self, source: Tensor, query: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Project senders `[M, *]` to keys `[M, H, C]` and values `[M, H, D]`.

        The queries of the same nodes, if known, are the keys where one projection serves both.
        """
        if self.lin_key is not None:
            key = self._split(self.lin_key(source))
        else:
            key = self.queries(source) if query is None else query
        value = key.flatten(1) if self.lin_value is None else self.lin_value(source)
        return key, self._split(value if self.value_activation is None else self.value_activation(value))

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Merge the outputs of the heads, `[N, H, D]`, into `[N, width]`."""
        if self.merge is not None:
            return self.merge(heads)
        if self.lin_out is not None:
            return self.lin_out(heads.flatten(1))
        return heads.flatten(1) if self.concat else heads.mean(1)

    def rule(self, edge_attr: Tensor | None = None) -> AttentionRule:
        """Collect what the layer does with queries, keys and values, for edges with these features, `[E, edge_dim]`."""
        bias = None if edge_attr is None else self.lin_edge_bias
        linear = bias is not None and type(bias) is Linear and bias.bias is None
        edges = ProjectedEdgeFeatures(
            edge_attr,
            None if bias is None or linear else bias(edge_attr),
            bias.weight if isinstance(bias, Linear) and linear else None,
            self._per_head(self.lin_edge_key),
            self._per_head(self.lin_edge_value),
            self.state_value,
        )
        return AttentionRule(self.score, self.normaliser, edges, self.dropout if self.training else 0.0)

    def edge_update(
        self, query_i: Tensor, key_j: Tensor, rule: AttentionRule, index: Tensor, size_i: int
    ) -> tuple[Tensor, Tensor]:
        """Compute the weight of every edge, `[E, H]`, and the state of the score, `[E, H, S]`."""
        return weigh_edges(query_i, key_j, rule, EdgeListAggregator(index, size_i))

    def message(self, value_j: Tensor, alpha: Tensor, state: Tensor, rule: AttentionRule) -> Tensor:
        """Compute the weighted value of every edge, `[E, H, C]`; `aggr="add"` then sums over the edges."""
        return weigh_values(value_j, F.dropout(alpha, rule.dropout), state, rule.edges)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, x.size(-1) // self.heads))

    def _per_head(self, linear: Linear | None) -> Tensor | None:
        return None if linear is None else linear.weight.view(self.heads, -1, self.edge_dim)

    def _check_projections(self, source: int, target: int) -> None:
        kinds = ("separate", "key_value", "shared", "none")
        if self.projections not in kinds:
            raise ValueError(f"expected projections out of {', '.join(kinds)}, got {self.projections}")
        if self.projections != "separate" and self.key_channels != self.out_channels:
            raise ValueError(
                f"projections {self.projections!r} make key and value one: expected key_channels {self.out_channels}, "
                f"got {self.key_channels}"
            )
        if self.projections in ("shared", "none") and source != target:
            raise ValueError(
                f"projections {self.projections!r} treat source and target alike: expected channels of one width, "
                f"got {source} and {target}"
            )
        if self.projections == "none" and source not in (-1, self.heads * self.out_channels):
            raise ValueError(
                f"without projections the nodes are the heads: expected {self.heads * self.out_channels} channels, "
                f"got {source}"
            )

    def _without_features(
        self, source: Tensor, edge_index: Tensor | CompleteGraph, size: tuple[int, int] | None
    ) -> Tensor:
        channels = self.in_channels[1] if isinstance(self.in_channels, tuple) else self.in_channels
        if channels == -1:
            raise ValueError("a target of None has no width to learn: expected in_channels of the target, got -1")
        default = edge_index.num_nodes if isinstance(edge_index, CompleteGraph) else len(source)
        return source.new_zeros(default if size is None else size[1], channels)

    def _check(
        self, source: Tensor, target: Tensor, edge_index: Tensor | CompleteGraph, edge_attr: Tensor | None
    ) -> None:
        sides = self.in_channels if isinstance(self.in_channels, tuple) else (self.in_channels, self.in_channels)
        weight = next(self.parameters(), None)
        dtype = torch.get_default_dtype() if weight is None else weight.dtype
        casts = weight is None or (not source.is_meta and torch.is_autocast_enabled(source.device.type))
        for x, channels in zip((source, target), sides, strict=True):
            if x.dim() != 2 or (channels != -1 and channels != x.size(1)):
                raise ValueError(f"expected x [N, {'C' if channels == -1 else channels}], got {list(x.shape)}")
        maps = (self.lin_edge_bias, self.lin_edge_key, self.lin_edge_value)
        mapped = edge_attr if any(isinstance(each, Linear) for each in maps) else None  # other modules may read codes
        for name, tensor in (("x", source), ("x", target), ("edge features", mapped)):
            if tensor is not None and (not tensor.is_floating_point() or (tensor.dtype != dtype and not casts)):
                advice = "" if tensor.is_floating_point() else ": gtx.nn.CategoricalEmbedding makes vectors of codes"
                raise ValueError(f"expected {name} of {dtype}, as the weights are, got {tensor.dtype}{advice}")
        if isinstance(edge_index, CompleteGraph):
            if self.explain or self._message_forward_hooks:
                raise ValueError(
                    "an explainer must see the edges it explains: pass the edge list, `graph.edge_index`, "
                    "instead of the CompleteGraph"
                )
            if source is not target and not isinstance(edge_index, BipartiteGraph):
                raise ValueError("a CompleteGraph joins one set of nodes; for (source, target) pass a BipartiteGraph")
            edges = edge_index.num_pairs
        else:
            if is_sparse(edge_index):
                raise ValueError(
                    f"expected edge_index [2, E] or a CompleteGraph, got a sparse adjacency {list(edge_index.shape)}: "
                    "pass torch_geometric.utils.to_edge_index(adjacency)[0], or of adj_t to_edge_index(adj_t.t())[0]"
                )
            if edge_index.dim() != 2 or edge_index.size(0) != 2:
                raise ValueError(f"expected edge_index [2, E] or a CompleteGraph, got {list(edge_index.shape)}")
            edges = edge_index.size(1)
        shape = None if edge_attr is None else list(edge_attr.shape)
        if self.edge_dim is None and shape is not None:
            raise ValueError(f"edge features {shape} came, but this layer has edge_dim=None")
        width = shape[-1] if shape and self.edge_dim == -1 else self.edge_dim
        if self.edge_dim is not None and shape != [edges, width]:
            raise ValueError(f"expected edge features [{edges}, {self.edge_dim}], got {shape}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, heads={self.heads})"
