"""Tokens as vectors, and vectors as scores of tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gtx.encodings import sinusoidal


class TokenEmbedding(nn.Module):
    r"""A vector per token and its place; the same weights, transposed, score the token that comes next.

    For a token w at place t, in d channels,

    \[ x = \sqrt{d}\, E_w + p_t, \qquad \mathrm{score}_w = E_w \cdot x + b_w \]

    with the sinusoids p of `gtx.encodings.sinusoidal`. E starts with the variance 1/d, so both are of order one.

    Sources: Vaswani et al. 2017 (arXiv:1706.03762), sections 3.4 and 3.5; the tied weights, Press & Wolf 2017
    (arXiv:1608.05859).

    Args:
        size: tokens V.
        channels: d, even.

    Shapes:
        tokens and places int64 `[N]` to `[N, d]`; `scores` from `[N, d]` to `[N, V]`.
    """

    def __init__(self, size: int, channels: int) -> None:
        super().__init__()
        self.table = nn.Embedding(size, channels)
        self.bias = nn.Parameter(torch.empty(size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table.weight, std=self.table.embedding_dim**-0.5)
        nn.init.zeros_(self.bias)

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        x = self.table(tokens)
        first, last = (int(places.min()), int(places.max())) if len(places) else (0, -1)
        waves = sinusoidal(torch.arange(first, last + 1, dtype=x.dtype, device=x.device), x.shape[-1])
        return x * x.shape[-1] ** 0.5 + waves[places - first]

    def scores(self, x: Tensor) -> Tensor:
        """Scores of every token as the one that comes after each x; a softmax makes them probabilities."""
        return nn.functional.linear(x, self.table.weight, self.bias)

    def __repr__(self) -> str:
        return f"TokenEmbedding({self.table.num_embeddings}, {self.table.embedding_dim})"
