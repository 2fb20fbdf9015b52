"""The molecules of a batch in order of size: what a program per molecule must know, on the device and on the host."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class SizeRange(NamedTuple):
    """Molecules that follow each other in order of size: those from `first` to `stop`, of `least` <= n <= `most`."""

    first: int
    stop: int
    least: int
    most: int


class SizeOrder(NamedTuple):
    """Positions of the molecules of a graph in order of size, ascending or descending.

    Attributes:
        molecules: first node, first pair and size n of each, int64 `[3, M]`, contiguous.
        ranges: bounds on the sizes that need no reading of the device, in the same order; molecules in none are empty.
        whole: whether all molecules are listed, so that every node and every pair belongs to one of them.
    """

    molecules: Tensor
    ranges: tuple[SizeRange, ...]
    whole: bool = True

    @property
    def least(self) -> int:
        """The bound of the smallest molecules, 0 where there is none."""
        return min([r.most for r in self.ranges] or [0])

    @property
    def most(self) -> int:
        """No molecule has more nodes."""
        return max([0, *(r.most for r in self.ranges)])
