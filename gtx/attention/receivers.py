"""The edges of a graph grouped by the receiver they go into: what a normaliser works on, in either layout."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch_geometric.utils import scatter, softmax


class ReceiverAggregator(ABC):
    """Base class for sums, maxima and softmaxes over the edges into each receiver.

    Inputs and outputs have one entry per edge: `[E, H]` for an edge list, `[b, receivers, senders, H]` for a padded
    group of complete graphs. A result for a receiver is returned for each of its edges (or broadcast), so that a
    normaliser is one equation for both layouts.
    """

    @abstractmethod
    def softmax(self, score: Tensor) -> Tensor:
        """Compute a softmax over the edges into each receiver; the result is exactly 0 for pairs without an edge."""

    @abstractmethod
    def sum(self, values: Tensor) -> Tensor:
        """Sum the values over all edges into the receiver of each edge."""

    @abstractmethod
    def max(self, values: Tensor) -> Tensor:
        """Take the largest value over all edges into the receiver of each edge."""

    @abstractmethod
    def only(self, values: Tensor) -> Tensor:
        """Set the values of pairs without an edge to 0."""


class EdgeListAggregator(ReceiverAggregator):
    """Sums, maxima and softmaxes over the edges into each node, for a graph given as an edge list.

    Args:
        receiver: receiver of each edge, int64 `[E]`.
        num_receivers: number of receivers.
    """

    def __init__(self, receiver: Tensor, num_receivers: int) -> None:
        self.receiver = receiver
        self.num_receivers = num_receivers

    def softmax(self, score: Tensor) -> Tensor:
        return softmax(score, self.receiver, num_nodes=self.num_receivers)

    def sum(self, values: Tensor) -> Tensor:
        return scatter(values, self.receiver, 0, self.num_receivers, "sum")[self.receiver]

    def max(self, values: Tensor) -> Tensor:
        return scatter(values, self.receiver, 0, self.num_receivers, "max")[self.receiver]

    def only(self, values: Tensor) -> Tensor:
        return values


class CompleteGraphAggregator(ReceiverAggregator):
    """Sums, maxima and softmaxes over the edges into each node, for padded complete graphs of similar size.

    The softmax is in the memory order `[b, H, receivers, senders]`.

    Args:
        absent: bool `[b, receivers or 1, senders, 1]`, True where there is no edge: padding, or masked.
        padding_only: whether every receiver has an edge, as where only padding is absent.
    """

    def __init__(self, absent: Tensor, padding_only: bool) -> None:
        self.absent = absent
        self.padding_only = padding_only
        nothing = absent if padding_only else absent & ~absent.all(2, keepdim=True)  # a row without edges stays finite
        self.penalty: Tensor = torch.zeros_like(absent, dtype=torch.get_default_dtype()).masked_fill_(
            nothing, -torch.inf
        )

    def block(self, rows: slice) -> CompleteGraphAggregator:
        """Select some of the receivers."""
        if self.absent.shape[1] == 1:
            return self
        return CompleteGraphAggregator(self.absent[:, rows], self.padding_only)

    def softmax(self, score: Tensor) -> Tensor:
        score = score + self.penalty.to(score.dtype)
        weights = score.permute(0, 3, 1, 2).softmax(-1).permute(0, 2, 3, 1)
        return weights if self.padding_only else self.only(weights)

    def sum(self, values: Tensor) -> Tensor:
        return self.only(values).sum(2, keepdim=True)

    def max(self, values: Tensor) -> Tensor:
        return values.masked_fill(self.absent, -torch.inf).amax(2, keepdim=True)

    def only(self, values: Tensor) -> Tensor:
        return values.masked_fill(self.absent, 0.0)
