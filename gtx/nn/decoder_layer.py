"""One layer of a decoder, or of an encoder of sequences."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from gtx.graph import BipartiteGraph, CompleteGraph
from gtx.nn.dropout import Dropout
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.key_values import KeyValues


class DecoderLayer(nn.Module):
    r"""Tokens attend to tokens, then to what is read, then an MLP; each a residual.

    For each branch f of these three in turn, with norms first (pre-norm) or last (post-norm),

    \[ v \leftarrow v + f(\mathrm{norm}(v)) \qquad \text{or} \qquad v \leftarrow \mathrm{norm}(v + f(v)) \]

    The graph decides which tokens attend to which: over the edges j <= i (`gtx.graph.Causal`) this is the decoder of
    the Transformer, without cross-attention that of GPT; over all pairs without cross-attention it is the encoder.

    Sources: Vaswani et al. 2017, section 3.1 (arXiv:1706.03762); Xiong et al. 2020 (arXiv:2002.04745) for pre-norm;
    Radford et al. 2018 (GPT) for the decoder alone.

    Args:
        attention: between tokens, from `channels` to `channels`.
        cross: from (source, `channels`) to `channels`, or None.
        channels: width d of the tokens.
        hidden: width within the MLP; default 4d.
        dropout: on every branch's output, in training.
        norm_first: pre-norm; if False, post-norm.
        activation: within the MLP; default ReLU.

    Shapes:
        x `[N, d]` to `[N, d]`; source `[M, *]`.

    Raises:
        ValueError: an attention that does not give d channels, or has parts that a single step could not work out.
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
        for part in (attention, cross):
            if part is not None and part.width != channels:
                raise ValueError(f"expected attention that gives {channels} channels, got {part.width}")
            if part is not None and (part.edge_dim, part.gate) != (None, None):
                raise ValueError(f"expected attention with no edge features or gate, got {part}")
        hidden = 4 * channels if hidden is None else hidden
        self.attention, self.cross = attention, cross
        self.mlp = nn.Sequential(nn.Linear(channels, hidden), activation or nn.ReLU(), nn.Linear(hidden, channels))
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(2 if cross is None else 3))
        self.dropout, self.norm_first = Dropout(dropout), norm_first

    def forward(
        self,
        x: Tensor,
        edges: Tensor | CompleteGraph,
        source: Tensor | None = None,
        cross_edges: Tensor | BipartiteGraph | None = None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """All tokens at once.

        Args:
            x: the tokens.
            edges: which token attends to which.
            source: what is read.
            cross_edges: which token attends to which of it, an edge list or a bipartite graph.
            weights: a list to put the weights of the cross-attention into, `[E, H]`.
        """

        def read(x: Tensor) -> Tensor:
            out, alpha, _ = self.cross.attend((source, x), cross_edges, weights=weights is not None)
            if weights is not None:
                weights.append(alpha)
            return out

        return self._residuals(x, lambda x: self.attention(x, edges), read)

    def step(self, x: Tensor, past: KeyValues, source: KeyValues | None = None) -> Tensor:
        """The next token of each row alone, `[R, d]` to `[R, d]`; `past` grows by it. Equal to its row of `forward`.

        Args:
            x: the tokens.
            past: keys and values of the earlier tokens of each row.
            source: what is read, as the cross-attention's keys and values.
        """

        def attend(x: Tensor) -> Tensor:
            past.append(*self.attention.keys_and_values(x))
            return past.attend(self.attention, x)

        return self._residuals(x, attend, lambda x: source.attend(self.cross, x))

    def _residuals(self, x: Tensor, attend: Callable[[Tensor], Tensor], read: Callable[[Tensor], Tensor]) -> Tensor:
        branches = (attend, self.mlp) if self.cross is None else (attend, read, self.mlp)
        for norm, branch in zip(self.norms, branches, strict=True):
            x = x + self.dropout(branch(norm(x))) if self.norm_first else norm(x + self.dropout(branch(x)))
        return x
