"""Scores: how well what a receiver asks fits what a sender answers (phi^e, first half)."""

from __future__ import annotations

from torch import Tensor, nn


class Score(nn.Module):
    """A score, written once as an equation over broadcastable queries and keys.

    Subclasses define `forward`. Where the score is bilinear in query and key it is a matrix product over all pairs:
    then `bilinear` is True and `prepare` says which, and a test holds the two equal. Any other score is worked out pair
    by pair, in blocks of receivers.
    """

    bilinear: bool = False

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """`[..., H, C]` and `[..., H, C]`, broadcast against each other, to `[..., H]`."""
        raise TypeError(f"{type(self).__name__} does not say how to score a query and a key")

    def prepare(self, query: Tensor) -> Tensor:
        """For a bilinear score: the query' `[..., H, C]` with score(query, key) = query' · key."""
        raise TypeError(f"{type(self).__name__} is not bilinear, so it has no matrix form")


class ScaledDot(Score):
    r"""The scaled dot product, \(q \cdot k / \sqrt{d_k}\).

    Source: Vaswani et al. 2017, "Attention is all you need", eq. 1 (arXiv:1706.03762).

    Args:
        scale: the factor; default \(1/\sqrt{d_k}\). 1.0 is the plain dot product.
    """

    bilinear = True

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return (self.prepare(query) * key).sum(-1)

    def prepare(self, query: Tensor) -> Tensor:
        return query * (query.shape[-1] ** -0.5 if self.scale is None else self.scale)

    def __repr__(self) -> str:
        return f"ScaledDot({'' if self.scale is None else self.scale})"
