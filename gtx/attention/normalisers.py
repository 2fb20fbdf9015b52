"""Normalisers: from the scores of the edges into a receiver to their weights."""

from __future__ import annotations

from torch import Tensor, nn

from gtx.attention.receivers import Receivers


class Normaliser(nn.Module):
    """Turns scores into attention weights, by one equation in either layout.

    Subclasses define `forward`. An edge that is not there must get exactly 0: `into.softmax` and `into.only` see to it.
    """

    def forward(self, score: Tensor, edge: Tensor | None, into: Receivers) -> Tensor:
        """Weights.

        Args:
            score: `[..., H]`, one per edge and head.
            edge: features of the edges, `[..., K]`, or None.
            into: the edges grouped by receiver.

        Returns:
            `[..., H]`.
        """
        raise TypeError(f"{type(self).__name__} does not say how to weigh scores")


class Softmax(Normaliser):
    r"""\(b_k = \exp(s_k / T) / \sum_{k' \to r} \exp(s_{k'} / T)\) over the edges into the receiver r of k.

    Source: Vaswani et al. 2017, eq. 1 (arXiv:1706.03762); the temperature, Hinton et al. 2015 (arXiv:1503.02531). The
    weights into a receiver sum to 1; one without any edge has no weights, so its sum is zero. As T goes to 0 the
    weights go to those of `Hardmax`; as T goes to infinity they become uniform.

    Args:
        temperature: T > 0, in units of the score.
    """

    def __init__(self, temperature: float = 1.0) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"expected a temperature above 0 (for its limit take Hardmax), got {temperature}")
        self.temperature = temperature

    def forward(self, score: Tensor, edge: Tensor | None, into: Receivers) -> Tensor:
        return into.softmax(score if self.temperature == 1.0 else score / self.temperature)

    def __repr__(self) -> str:
        return f"Softmax({'' if self.temperature == 1.0 else self.temperature})"


class Hardmax(Normaliser):
    r"""All the weight on the largest score, equal shares where several are largest: the softmax at T = 0.

    Backward, the gradient is that of the softmax at T = 1 (straight-through), since the step itself has none.

    Sources: hard attention, Xu et al. 2015 (arXiv:1502.03044); the straight-through gradient, Bengio et al. 2013
    (arXiv:1308.3432).
    """

    def forward(self, score: Tensor, edge: Tensor | None, into: Receivers) -> Tensor:
        largest = into.only((score == into.max(score)).to(score.dtype))
        hard = largest / into.sum(largest).clamp(min=1.0)
        soft = into.softmax(score)
        return hard.detach() + (soft - soft.detach())

    def __repr__(self) -> str:
        return "Hardmax()"


class Sigmoid(Normaliser):
    r"""A gate on each edge by itself, \(b_k = \sigma(s_k)\); the weights into a receiver sum to anything.

    Source: Ramapuram et al. 2024 (arXiv:2409.04431), without its bias of \(-\log n\).
    """

    def forward(self, score: Tensor, edge: Tensor | None, into: Receivers) -> Tensor:
        return into.only(score.sigmoid())

    def __repr__(self) -> str:
        return "Sigmoid()"


class Unnormalised(Normaliser):
    r"""The scores as they are, \(b_k = s_k\).

    Source: linear attention, Katharopoulos et al. 2020 (arXiv:2006.16236), without its division.
    """

    def forward(self, score: Tensor, edge: Tensor | None, into: Receivers) -> Tensor:
        return into.only(score)

    def __repr__(self) -> str:
        return "Unnormalised()"
