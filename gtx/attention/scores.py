"""Scores: how well the query of a receiver fits the key of a sender (phi^e, first half).

Read next: `gtx/attention/normalisers.py`, from scores to weights.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Score(nn.Module):
    """A score, written once as an equation over broadcastable queries, keys and edge features.

    Subclasses define `forward`; that is enough, and it is worked out pair by pair in blocks of receivers. More may
    stand beside it, and a test holds it equal to `forward`:

    * `prepare`, if the score is bilinear in query and key, or else `pairs`: a matrix form over all pairs;
    * `state` and `weigh`, with `forward(q, k, e) = weigh(state(q, k, e))` and `state_channels`: a vector behind the
      score, from which an edge state can be updated. For other scores the state is the score itself.

    They belong to the equation that they were written for: a subclass with a `forward` of its own inherits no matrix
    form, unless it defines that too.

    Attributes:
        bilinear: whether score(query, key) = prepare(query) · key; found from the methods of the class.
        matrix_form: whether `pairs` does better than `forward` on every pair; found in the same way.
        state_channels: channels of the state per head.
        heads: H, where the score has weights for so many; None for any.
        channels: channels C of query and key it is made for, per head; None for any.

    Raises:
        TypeError: where a subclass is defined, if it overrides `forward` of a score whose state is a vector, but
            neither `state` nor `weigh`: these are what an attention calls.
    """

    bilinear: bool = False
    matrix_form: bool = False
    state_channels: int = 1
    heads: int | None = None
    channels: int | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        order = {name: _place(cls, name) for name in ("forward", "prepare", "pairs", "state", "weigh")}
        last = cls.__mro__.index(Score)  # methods of this class are of no equation
        cls.bilinear = order["prepare"] <= order["forward"] < last
        cls.matrix_form = cls.bilinear or order["pairs"] <= order["forward"] < last
        if order["forward"] < min(order["state"], order["weigh"]) < last:
            raise TypeError(
                f"{cls.__name__} overrides forward, but inherits state and weigh, which attention calls: expected a "
                "state or weigh of its own, or Score as its base"
            )

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        """`[..., H, C]`, `[..., H, C]` and `[..., K]`, broadcast against each other, to `[..., H]`."""
        raise TypeError(f"{type(self).__name__} does not say how to score a query and a key")

    def state(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        """What an edge state is updated from, `[..., H, state_channels]`."""
        return self(query, key, edge).unsqueeze(-1)

    def weigh(self, state: Tensor) -> Tensor:
        """From states `[..., H, state_channels]` to scores `[..., H]`."""
        return state.squeeze(-1)

    def prepare(self, query: Tensor) -> Tensor:
        """For a bilinear score: the query' `[..., H, C]` with score(query, key) = query' · key."""
        raise TypeError(f"{type(self).__name__} is not bilinear, so it has no matrix form")

    def pairs(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        """All pairs at once: `[b, r, H, C]`, `[b, s, H, C]` and `[b, r, s, K]` to `[b, r, s, H]`."""
        return dots(self.prepare(query), key)

    def reset_parameters(self) -> None:
        """Draw new initial weights."""


def _place(cls: type, name: str) -> int:
    """How far up the class is whose method this is: 0 for `cls` itself."""
    return next(i for i, base in enumerate(cls.__mro__) if name in vars(base))


def dots(query: Tensor, key: Tensor) -> Tensor:
    """The dot product of every query `[b, r, H, C]` with every key `[b, s, H, C]`, `[b, r, s, H]`: a matrix product."""
    return (query.transpose(1, 2) @ key.permute(0, 2, 3, 1)).permute(0, 2, 3, 1)


class ScaledDot(Score):
    r"""The scaled dot product, \(q \cdot k / \sqrt{d_k}\).

    Source: Vaswani et al. 2017, "Attention is all you need", eq. 1 (arXiv:1706.03762).

    Args:
        scale: the factor; default \(1/\sqrt{d_k}\). 1.0 is the plain dot product (Luong et al. 2015, arXiv:1508.04025,
            "dot").
    """

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return (self.prepare(query) * key).sum(-1)

    def prepare(self, query: Tensor) -> Tensor:
        return query * (query.shape[-1] ** -0.5 if self.scale is None else self.scale)

    def __repr__(self) -> str:
        return f"ScaledDot({'' if self.scale is None else self.scale})"


class General(Score):
    r"""A learned bilinear form per head, \(q^\top W k\), started at \(W = I / \sqrt{C}\), the scaled dot product.

    Source: Luong et al. 2015, "general" (arXiv:1508.04025, eq. 8).

    Args:
        heads: H.
        channels: channels C of query and key, per head.
    """

    def __init__(self, heads: int, channels: int) -> None:
        super().__init__()
        self.heads, self.channels = heads, channels
        self.weight = nn.Parameter(torch.empty(heads, channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        channels = self.weight.shape[-1]
        with torch.no_grad():
            self.weight.copy_(torch.eye(channels) * channels**-0.5)

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return (self.prepare(query) * key).sum(-1)

    def prepare(self, query: Tensor) -> Tensor:
        return torch.einsum("...hc,hcd->...hd", query, self.weight)

    def __repr__(self) -> str:
        return f"General({self.weight.shape[0]}, {self.weight.shape[1]})"
