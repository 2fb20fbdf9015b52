"""The distance in space, and the base class of its radial bases."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gtx.encodings.encoding import Encoding, Values
from gtx.graph import CompleteGraph


def pair_distance(data: Data, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
    r"""The distance \(d_{rs} = |x_r - x_s|\) of every pair, and whether it is known.

    A node whose coordinates are unknown has NaN in its row of `pos`; its pairs have distance 0 and are not known. The
    derivative with respect to `pos` is finite everywhere: where two nodes coincide, as a node does with itself, it is
    set to zero.

    Reads `pos` `[N, 3]`, Å.

    Returns:
        Distances `[num_pairs]`, Å, and known, bool `[num_pairs]`.

    Raises:
        ValueError: if there are no coordinates.
    """
    if data.pos is None:
        raise ValueError("this encoding needs coordinates: expected pos [N, 3] in Å, got None")
    sender, receiver = graph.pair_index
    placed = data.pos.isfinite().all(-1)
    pos = torch.where(placed[:, None], data.pos, 0.0)
    square = (pos[sender] - pos[receiver]).square().sum(-1)
    known = placed[sender] & placed[receiver]
    apart = known & (square > 0)
    return torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0), known


class RadialBasis(Encoding):
    """K functions of the distance between two nodes, which a subclass defines in `basis`.

    Reads `pos` `[N, 3]`, Å. Yields pair values `[num_pairs, K + 1]`: the K functions, then 1 where the distance is
    known and 0, like all K, where it is not. Rotating or moving a molecule changes nothing.

    Args:
        channels: K.

    Raises:
        ValueError: in `forward`, if there are no coordinates.
    """

    constant_shapes = True

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.pair = Values(channels + 1)

    def basis(self, distance: Tensor) -> Tensor:
        """`[num_pairs]` distances to `[num_pairs, K]`, finite also for a distance of 0."""
        raise TypeError(f"{type(self).__name__} does not say what its basis is")

    def adjusted(self, distance: Tensor, data: Data, graph: CompleteGraph) -> Tensor:
        """The distance `[num_pairs]` as the basis takes it: unchanged, unless a subclass overrides this."""
        return distance

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        distance, known = pair_distance(data, graph)
        values = self.basis(self.adjusted(distance, data, graph)) * known[:, None]
        return None, torch.cat([values, known[:, None].to(values.dtype)], -1)

    def _constant(self, name: str, value: Tensor, learned: bool) -> None:
        """Hold `value` as a parameter, or as a buffer that follows the device and is not saved."""
        if learned:
            self.register_parameter(name, nn.Parameter(value))
        else:
            self.register_buffer(name, value, persistent=False)


def check_basis(channels: int, cutoff: float, least: int = 1) -> None:
    """ValueError unless there are `least` channels and the cutoff is positive."""
    if channels < least or cutoff <= 0:
        raise ValueError(f"expected at least {least} channels and a positive cutoff, got {channels} and {cutoff}")
