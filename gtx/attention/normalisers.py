"""Normalisers: from the scores of the edges into a receiver to their weights."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.utils import softmax


class Normaliser(nn.Module):
    """Turns scores into attention weights; it sees all the scores of a receiver, in either layout."""

    def edges(self, score: Tensor, receiver: Tensor, num_receivers: int) -> Tensor:
        """Edge list: scores `[E, H]` and the receiver of each edge, int64 `[E]`, to weights `[E, H]`."""
        raise TypeError(f"{type(self).__name__} does not work on an edge list")

    def pairs(self, score: Tensor) -> Tensor:
        """All pairs: scores `[b, H, receivers, senders]`, minus infinity where there is no edge, to weights."""
        raise TypeError(f"{type(self).__name__} does not work on a complete graph")


class Softmax(Normaliser):
    r"""\(b_k = \exp(s_k) / \sum_{k' \to r} \exp(s_{k'})\) over the edges into the receiver r of k.

    Source: Vaswani et al. 2017, eq. 1 (arXiv:1706.03762). The weights into a receiver sum to 1; one without any edge
    has no weights, so its sum is zero.
    """

    def edges(self, score: Tensor, receiver: Tensor, num_receivers: int) -> Tensor:
        return softmax(score, receiver, num_nodes=num_receivers)

    def pairs(self, score: Tensor) -> Tensor:
        return score.softmax(-1)

    def __repr__(self) -> str:
        return "Softmax()"
