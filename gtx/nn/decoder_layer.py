"""Layers for sequences: token embeddings, the decoder layer and its key-value cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from gtx.attention.definition import attend_receivers
from gtx.attention.normalisers import CompleteGraphAggregator
from gtx.encodings.positions import sinusoidal_encoding
from gtx.graph import BipartiteGraph, CompleteGraph
from gtx.nn.blocks import add_residual
from gtx.nn.edge_attention import EdgeAttention

# --- Tokens as vectors, and vectors as scores of tokens.


class TokenEmbedding(nn.Module):
    r"""Embedding of tokens and their positions; the same weights, transposed, score the next token.

    For a token w at position t, in d channels,

    \[ x = \sqrt{d}\, E_w + p_t, \qquad \mathrm{score}_w = E_w \cdot x + b_w \]

    with the sinusoids p of `sinusoidal_encoding`. The initial variance of E is 1/d, so that both terms
    have similar size.

    Sources: Vaswani et al. 2017 (arXiv:1706.03762), sections 3.4 and 3.5; the tied weights, Press & Wolf 2017
    (arXiv:1608.05859).

    Args:
        size: number V of tokens.
        channels: number d of channels, even.

    Shapes:
        tokens and places int64 `[N]` to `[N, d]`; `scores` from `[N, d]` to `[N, V]`.
    """

    def __init__(self, size: int, channels: int) -> None:
        super().__init__()
        self.channels: int = channels
        self.table: nn.Embedding = nn.Embedding(size, channels)
        self.bias: nn.Parameter = nn.Parameter(torch.empty(size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table.weight, std=self.table.embedding_dim**-0.5)
        nn.init.zeros_(self.bias)

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        x = self.table(tokens)
        first, last = (int(places.min()), int(places.max())) if len(places) else (0, -1)
        waves = sinusoidal_encoding(torch.arange(first, last + 1, dtype=x.dtype, device=x.device), x.shape[-1])
        return x * x.shape[-1] ** 0.5 + waves[places - first]

    def scores(self, x: Tensor) -> Tensor:
        """Score every token as the next token after each x; a softmax of the scores gives probabilities."""
        return nn.functional.linear(x, self.table.weight, self.bias)

    def __repr__(self) -> str:
        return f"TokenEmbedding({self.table.num_embeddings}, {self.table.embedding_dim})"


# --- The key-value cache of a decoder that writes token by token.


class KeyValueCache:
    r"""Key-value cache for decoding: keys and values of the earlier tokens of R sequences.

    A later token does not change the keys and values of earlier tokens, because later tokens are not senders to earlier
    tokens. Keys and values are therefore computed once, and the attention of a new token is one row of the attention
    matrix:

    \[ o = \sum_{s \le t} b_s V_s, \qquad b = \mathrm{normalise}_{s \le t}(\mathrm{score}(q_t, K_s)) \]

    Source: incremental decoding, Shazeer 2019, section 2.4 (arXiv:1911.02150).

    Args:
        key: `[R, H, S, C]`, the heads before the senders, so that products with them copy nothing.
        value: `[R, H, S, D]`.
        absent: bool `[R, S]`, where there is no sender; None where all are.
        length: number of the S places that are used; by default all.
    """

    def __init__(self, key: Tensor, value: Tensor, absent: Tensor | None = None, length: int | None = None) -> None:
        self.key = key
        self.value = value
        self.absent = absent
        self.length: int = key.shape[2] if length is None else length
        hole = torch.zeros(1, 1, dtype=torch.bool, device=key.device) if absent is None else absent
        self.into: CompleteGraphAggregator = CompleteGraphAggregator(hole[:, None, :, None], absent is None)

    @classmethod
    def empty(cls, attention: EdgeAttention, rows: int, limit: int, like: Tensor | None = None) -> KeyValueCache:
        """Make room for `limit` senders of each of `rows` rows, in the precision and on the device of `like`.

        By default these are those of the attention whose keys and values are cached.
        """
        like = next(attention.parameters()) if like is None else like
        key = like.new_empty(rows, attention.heads, limit, attention.key_channels)
        return cls(key, like.new_empty(rows, attention.heads, limit, attention.out_channels), length=0)

    def append(self, key: Tensor, value: Tensor) -> None:
        """Append one sender to each row: `[R, H, C]` and `[R, H, D]`."""
        self.key[:, :, self.length], self.value[:, :, self.length] = key, value
        self.length += 1

    def select(self, rows: Tensor) -> KeyValueCache:
        """Select the rows `rows` (int64 `[R']`), each any number of times."""
        n = self.length

        def of(kept: Tensor) -> Tensor:
            out = kept.new_empty(len(rows), *kept.shape[1:])
            out[:, :, :n] = kept[:, :, :n].index_select(0, rows)
            return out

        return KeyValueCache(of(self.key), of(self.value), None if self.absent is None else self.absent[rows], n)

    def attend(self, attention: EdgeAttention, target: Tensor) -> Tensor:
        """Let one receiver in each row attend to the cached senders of this layer: `[R, *]` to `[R, width]`."""
        query = attention.queries(target).unsqueeze(1)  # [R, 1, H, C]
        key, value = (kept[:, :, : self.length].transpose(1, 2) for kept in (self.key, self.value))  # [R, S, H, C]
        out, _, _ = attend_receivers(query, key, value, attention.rule(), self.into)
        return attention.merge_heads(out.squeeze(1))


# --- One layer of a decoder, or of an encoder of sequences.


Branch = Callable[[Tensor], Tensor]
"""Residual branch of a layer: a function from tokens `[N, d]` to what is added to them."""


class DecoderLayer(nn.Module):
    r"""Transformer decoder layer: self-attention of tokens, cross-attention to the source, and an MLP, each a residual.

    For each of the three branches f in turn, with norms first (pre-norm) or last (post-norm),

    \[ v \leftarrow v + f(\mathrm{norm}(v)) \qquad \text{or} \qquad v \leftarrow \mathrm{norm}(v + f(v)) \]

    The graph determines which tokens attend to which. With the edges j <= i (`gtx.graph.CausalEdges`), the layer is the
    decoder layer of the Transformer, or without cross-attention the layer of GPT. With all pairs and without
    cross-attention, the layer is the encoder layer of the Transformer.

    Sources: Vaswani et al. 2017, section 3.1 (arXiv:1706.03762); Xiong et al. 2020 (arXiv:2002.04745) for pre-norm;
    Radford et al. 2018 (GPT) for the decoder alone.

    Args:
        attention: attention between tokens, from `channels` to `channels`.
        cross: cross-attention from (source, `channels`) to `channels`, or None.
        channels: width d of the tokens.
        hidden: width of the hidden layer of the MLP; default 4d.
        dropout: dropout rate on the output of every branch, in training.
        norm_first: whether norms come first (pre-norm) or last (post-norm) in each branch.
        activation: activation function of the MLP; default ReLU.

    Shapes:
        x `[N, d]` to `[N, d]`; source `[M, *]`.

    Raises:
        ValueError: the attention does not return d channels, or contains modules that cannot be computed for a single
            step.
    """

    def __init__(
        self,
        attention: EdgeAttention,
        cross: EdgeAttention | None,
        channels: int,
        hidden: int | None = None,
        dropout: float = 0.0,
        norm_first: bool = True,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__()
        for module in (attention, cross):
            if module is not None and module.width != channels:
                raise ValueError(f"expected attention that gives {channels} channels, got {module.width}")
            if module is not None and (module.edge_dim, module.gate) != (None, None):
                raise ValueError(f"expected attention with no edge features or gate, got {module}")
        hidden = 4 * channels if hidden is None else hidden
        self.attention = attention
        self.cross = cross
        self.mlp: nn.Sequential = nn.Sequential(
            nn.Linear(channels, hidden), activation or nn.ReLU(), nn.Linear(hidden, channels)
        )
        self.norms: nn.ModuleList = nn.ModuleList(nn.LayerNorm(channels) for _ in range(2 if cross is None else 3))
        self.dropout: nn.Dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(
        self,
        x: Tensor,
        edges: Tensor | CompleteGraph,
        source: Tensor | None = None,
        cross_edges: Tensor | BipartiteGraph | None = None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """Compute the layer for all tokens at once.

        Args:
            x: the tokens.
            edges: edges between tokens.
            source: what is read.
            cross_edges: edges from source nodes to tokens, an edge list or a bipartite graph.
            weights: list to which the weights of the cross-attention are appended, `[E, H]`.
        """
        branches: list[Branch] = [lambda x: self.attention(x, edges)]
        cross = self.cross
        if cross is not None:
            if source is None or cross_edges is None:
                raise ValueError("cross-attention reads: expected a source and edges from it, got None")

            def read(x: Tensor) -> Tensor:
                out, alpha, _ = cross.attend((source, x), cross_edges, weights=weights is not None)
                if weights is not None and alpha is not None:
                    weights.append(alpha)
                return out

            branches.append(read)
        return self._residuals(x, branches)

    def step(self, x: Tensor, past: KeyValueCache, source: KeyValueCache | None = None) -> Tensor:
        """Compute `forward` for the next token of each row, `[R, d]` to `[R, d]`, and append it to `past`.

        Args:
            x: the tokens.
            past: keys and values of the earlier tokens of each row.
            source: keys and values of the source for the cross-attention.
        """

        def attend(x: Tensor) -> Tensor:
            past.append(*self.attention.keys_and_values(x))
            return past.attend(self.attention, x)

        branches: list[Branch] = [attend]
        if self.cross is not None:
            if source is None:
                raise ValueError("cross-attention reads: expected keys and values of a source, got None")
            branches.append(partial(source.attend, self.cross))
        return self._residuals(x, branches)

    def _residuals(self, x: Tensor, branches: Sequence[Branch]) -> Tensor:
        """Apply attention, cross-attention if there is any, and the MLP, each as a residual."""
        every: list[Branch] = [*branches, self.mlp]
        for norm, branch in zip(self.norms, every, strict=True):
            x = add_residual(x, branch, norm, self.dropout, self.norm_first)
        return x
