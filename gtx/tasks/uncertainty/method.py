"""What every method of uncertainty says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from gtx.errors import InputError


class Spread(NamedTuple):
    """How far from their predictions the values of m molecules may lie, float64 `[m, T]` each.

    Attributes:
        std: the standard deviation.
        below, above: how far an interval reaches down and up, but for a factor that validation rows set.
    """

    std: Tensor
    below: Tensor
    above: Tensor


class Method:
    r"""The base: several networks, whose own variance, if they tell one, and whose disagreement add up.

    \[ \sigma^2 = \frac{1}{K} \sum_k \sigma_k^2 + \frac{1}{K - 1} \sum_k (\mu_k - \bar\mu)^2 \]

    (the law of total variance; Lakshminarayanan et al. 2017, arXiv:1612.01474). All is in scaled units.

    Attributes:
        word: the method's name in `METHODS`.
        width: W, how many outputs the network has for each target; the first is the number itself.
        has_loss: whether `loss` takes the place of the task's.
        reads_similarity: whether the distance to the nearest training molecule stands behind the outputs.
    """

    word: ClassVar[str]
    width: ClassVar[int] = 1
    has_loss: ClassVar[bool] = False
    reads_similarity: ClassVar[bool] = False

    def at(self, level: float) -> Method:
        """The method for intervals of a level, between 0 and 1; most do not depend on it."""
        return self

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss of each entry, `[B, T]`, of outputs `[B, W, T]` and targets `[B, T]`."""
        raise NotImplementedError(f"{type(self).__name__} has no loss of its own")

    def networks(self, members: Sequence[nn.Module]) -> list[nn.Module]:
        """Those that are asked for a prediction, K for any member."""
        return list(members)

    def variance(self, output: Tensor) -> Tensor:
        """What networks say of their variance, `[..., T]`, by outputs `[..., W, T]`; nothing by default."""
        return torch.zeros_like(output[..., 0, :])

    def spread(self, output: Tensor) -> Spread:
        """Of outputs `[m, K, W, T]` of K networks."""
        std = (self.variance(output).mean(1) + between(output)).sqrt()
        return Spread(std, std, std)

    def check(self, model: nn.Module, members: int) -> None:
        """Raise an `InputError` unless the method suits a model and the number of its members."""
        if self.width > 1:
            needs_gradients(self.word, model)


def needs_gradients(word: str, model: nn.Module) -> None:
    """Raise an `InputError` unless a model is learned by gradients, as the method of this name is."""
    if not any(weight.requires_grad for weight in model.parameters()):
        raise InputError(f"uncertainty {word} is learned by gradients, which {type(model).__name__} is not")


def between(output: Tensor) -> Tensor:
    """How far K networks disagree of the numbers: their sample variance, `[m, T]`; 0 of one alone."""
    numbers = output[:, :, 0]
    return numbers.var(1) if numbers.shape[1] > 1 else torch.zeros_like(numbers[:, 0])
