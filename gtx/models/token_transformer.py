"""Layers over tokens: what encoders and decoders of sequences have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gtx.graph import BipartiteGraph, CompleteGraph
from gtx.nn import GELU, DecoderLayer, Dropout, EdgeAttention, KeyValues, TokenEmbedding
from gtx.sequence import SequenceBatch

BASE: dict[str, Any] = {
    "channels": 512,
    "layers": 6,
    "heads": 8,
    "hidden": 2048,
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "norm_first": False,
    "activation": "relu",
}
"""The base setting of Vaswani et al. 2017 (arXiv:1706.03762), table 3, of encoder and decoder alike."""


class TokenTransformer(nn.Module):
    """Tokens with their places, and layers that let them attend to each other and to a source, if there is one.

    Source: Vaswani et al. 2017, section 3 (arXiv:1706.03762).

    Args:
        size: tokens V there are, start and end among them.
        channels: width d of the tokens, even.
        layers: number of layers.
        heads: attention heads; they divide `channels`.
        hidden: width within the MLPs; default 4d.
        dropout: on the sum of embedding and place and on each branch's output, in training.
        attention_dropout: on attention weights, in training.
        norm_first: pre-norm; if False, post-norm.
        activation: within the MLPs, "relu" or "gelu".
        source_channels: width of the source that the tokens also attend to; None for no source.

    Raises:
        ValueError: sizes that do not fit, or an unknown activation.
    """

    layers: Sequence[DecoderLayer]

    def __init__(
        self,
        size: int,
        channels: int = 256,
        layers: int = 4,
        heads: int = 8,
        hidden: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        norm_first: bool = True,
        activation: Literal["relu", "gelu"] = "relu",
        source_channels: int | None = None,
    ) -> None:
        super().__init__()
        for name, value in {"channels": channels, "layers": layers, "heads": heads}.items():
            if value < 1:
                raise ValueError(f"expected {name} of at least 1, got {value}")
        if channels % heads:
            raise ValueError(f"expected heads that divide the channels, got {heads} heads and {channels} channels")
        if activation not in ("relu", "gelu"):
            raise ValueError(f"expected the activation 'relu' or 'gelu', got {activation!r}")

        def attention(inputs: int | tuple[int, int]) -> EdgeAttention:
            return EdgeAttention(inputs, channels // heads, heads, dropout=attention_dropout, project=True)

        def layer() -> DecoderLayer:
            cross = None if source_channels is None else attention((source_channels, channels))
            function = nn.ReLU() if activation == "relu" else GELU()
            return DecoderLayer(attention(channels), cross, channels, hidden, dropout, norm_first, function)

        self.embedding: TokenEmbedding = TokenEmbedding(size, channels)
        self.dropout: Dropout = Dropout(dropout)
        made = nn.ModuleList(layer() for _ in range(layers))
        self.layers = made  # type: ignore[assignment]  # a sequence that torch's stubs leave untyped
        self.norm: nn.LayerNorm | nn.Identity = nn.LayerNorm(channels) if norm_first else nn.Identity()

    def forward(
        self,
        tokens: SequenceBatch,
        graph: CompleteGraph,
        source: Tensor | None = None,
        cross_edges: Tensor | BipartiteGraph | None = None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """Return the tokens after the last layer, `[N, channels]`.

        Args:
            tokens: N of them.
            graph: which token attends to which.
            source: what else they attend to, `[M, source_channels]`.
            cross_edges: which token attends to which of it, an edge list or a bipartite graph.
            weights: a list to put the weights of the cross-attention into, `[E, H]` per layer.
        """
        x = self.dropout(self.embedding(tokens.items, tokens.place))
        for layer in self.layers:
            x = layer(x, graph, source, cross_edges, weights)
        return self.norm(x)

    def step(self, tokens: Tensor, past: list[KeyValues], source: list[KeyValues | None]) -> Tensor:
        """Compute `forward` for the next token of each row (int64 `[R]`): `[R, channels]`.

        Args:
            tokens: the next token of each row.
            past: per layer, keys and values of the earlier tokens; the new ones are appended.
            source: per layer, keys and values of the source, or None.
        """
        x = self.embedding(tokens, torch.full_like(tokens, past[0].length))
        for layer, own, read in zip(self.layers, past, source, strict=True):
            x = layer.step(x, own, read)
        return self.norm(x)
