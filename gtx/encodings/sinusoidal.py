"""Sines and cosines of a position in a sequence."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import ContinuousFeatureSpec, Encoding
from gtx.graph import CompleteGraph

Convention = Literal["interleaved", "halves"]


def sinusoidal_encoding(positions: Tensor, channels: int, convention: Convention = "interleaved") -> Tensor:
    r"""Compute sines and cosines of each position, with wavelengths from \(2\pi\) to about \(10000 \cdot 2\pi\).

    `interleaved`, for D channels and \(i = 0, \ldots, D/2 - 1\):

    \[ p_{2i} = \sin(t / 10000^{2i/D}), \qquad p_{2i+1} = \cos(t / 10000^{2i/D}) \]

    `halves`, all sines before all cosines, and wavelengths that reach \(10000 \cdot 2\pi\) exactly:

    \[ p_i = \sin(t / 10000^{i/(D/2-1)}), \qquad p_{D/2+i} = \cos(t / 10000^{i/(D/2-1)}) \]

    Either way \(|p|^2 = D/2\), and a shift from t to t + k turns each pair of sine and cosine by an angle that depends
    on k alone.

    Sources: Vaswani et al. 2017 (arXiv:1706.03762), section 3.5; the second is that of their program, tensor2tensor
    (Vaswani et al. 2018, arXiv:1803.07416).

    Args:
        positions: positions t, integers or real numbers, `[*]`.
        channels: D, even, and at least 4 for `halves`.
        convention: `interleaved` or `halves`.

    Returns:
        `[*, D]`, in the precision of real positions, or torch's default for whole ones.

    Raises:
        ValueError: a convention or a number of channels that is not among these.
    """
    _check(channels, convention)
    half = channels // 2
    steps = torch.arange(half, device=positions.device, dtype=torch.float64)
    exponents = steps / half if convention == "interleaved" else steps / (half - 1)
    angles = positions[..., None].double() * 10000.0**-exponents
    waves = torch.stack([angles.sin(), angles.cos()], -1 if convention == "interleaved" else -2)
    return waves.flatten(-2).to(positions.dtype if positions.is_floating_point() else torch.get_default_dtype())


class SinusoidalPosition(Encoding):
    """Sinusoidal position encoding of each node in its graph (from 0), for graphs that are sequences.

    The encoding is NOT invariant under renumbering: the features depend on the order of the nodes, which is arbitrary
    for the atoms of a molecule.

    Args:
        channels: number D of channels.
        convention: as in `sinusoidal_encoding`.

    The encoding reads only the graph. The encoding yields node values `[N, D]`.

    Raises:
        ValueError: as `sinusoidal_encoding` does.
    """

    node: ContinuousFeatureSpec

    def __init__(self, channels: int, convention: Convention = "interleaved") -> None:
        super().__init__()
        _check(channels, convention)
        self.convention = convention
        self.node = ContinuousFeatureSpec(channels)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        place = torch.arange(graph.num_nodes, device=graph.ptr.device) - graph.ptr[graph.batch]
        return sinusoidal_encoding(place, self.node.channels, self.convention), None

    def __repr__(self) -> str:
        return f"SinusoidalPosition({self.node.channels}, '{self.convention}')"


def _check(channels: int, convention: str) -> None:
    if convention not in ("interleaved", "halves"):
        raise ValueError(f"expected the convention 'interleaved' or 'halves', got {convention!r}")
    least = 2 if convention == "interleaved" else 4
    if channels < least or channels % 2:
        raise ValueError(f"expected an even number of channels, at least {least}, got {channels}")
