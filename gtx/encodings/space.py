"""Encodings of the surroundings in space: directions, moments and neighbouring atom types."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gtx.encodings.distance import RadialBasis, check_basis, pair_direction, sum_over_others
from gtx.encodings.encoding import ContinuousFeatureSpec, Encoding
from gtx.graph import CompleteGraph

# --- Directions from receivers to senders.


class PairUnitVector(Encoding):
    r"""Encoding of pairs of atoms by the unit vector from receiver to sender, and a smooth cutoff of their distance.

    \[ \bigl[\, u_{rs} = (x_s - x_r) / d_{rs} \;\|\; \phi(d_{rs} / c) \,\bigr] \]

    with \(\phi\) from 1 at a distance of 0 to 0 at the cutoff (`envelope`, p = 3). Unlike other encodings, the vectors
    rotate with the molecule. Only equivariant layers, such as `gtx.nn.EquivariantAttentionLayer`, can use the vectors.

    Args:
        cutoff: cutoff distance c, in Å.

    The encoding reads `pos` `[N, 3]`, Å, NaN where unknown. The encoding yields pair values `[num_pairs, 4]`; u is 0
    where the distance is 0, and all is 0 where it is unknown.

    Raises:
        ValueError: a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    pair: ContinuousFeatureSpec = ContinuousFeatureSpec(4)
    constant_shapes = True

    def __init__(self, cutoff: float = 5.0) -> None:
        check_basis(1, cutoff)
        super().__init__()
        self.cutoff = cutoff

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        unit, near, known = pair_direction(data, graph, self.cutoff)
        return None, torch.cat([unit, (near * known)[:, None]], -1)

    def __repr__(self) -> str:
        return f"PairUnitVector({self.cutoff})"


# --- Invariants of the moments of the surroundings of an atom in space.

HARMONICS = (slice(0, 1), slice(1, 4), slice(4, 9))  # of degree 0, 1, 2


class NeighbourDistancesAndAngles(Encoding):
    r"""Encoding of an atom by distances and angles to its neighbours in space, as invariants of moments.

    Every edge within the cutoff sends a message along its direction \(u_{rs}\), and a sum collects moments of degree
    \(l = 0, 1, 2\), of which products that no rotation changes are kept,

    \[ m_{rs} = c(d_{rs})\, (1 + t_{z_s}) \odot W \phi(d_{rs}), \qquad
       A^l_r = \sum_{s \neq r} Y^l(u_{rs}) \otimes m_{rs} \]
    \[ \mathrm{norm} \bigl( A^0_r \;\|\; \langle A^1_r L^1, A^1_r R^1 \rangle \;\|\;
       \langle A^2_r L^2, A^2_r R^2 \rangle \bigr) \]

    with the radial basis \(\phi\), a vector t for every type of atom, Y the real spherical harmonics without their
    factors (so that \(|Y^l| = 1\)), inner products over the \(2l + 1\) components of a channel, learned W, t, L and R,
    a cutoff function c (`envelope`, p = 3) and a layer norm. Products of degree 1 hold the angles between neighbours,
    \(\sum_{ss'} m_{rs} m_{rs'} \cos\theta\); those of degree 2 their \((3 \cos^2\theta - 1) / 2\). Reflections do not
    change the products, so the encoding does not distinguish mirror images.

    Sources: learned radial functions and one product of two first moments, Zhang et al. 2018, DeepPot-SE
    (arXiv:1805.09003); moments of any degree, Shapeev 2016 (arXiv:1512.06054) and Drautz 2019 (Phys. Rev. B 99,
    014104). Here with learned products and no more than two factors.

    Args:
        distance: radial basis \(\phi\), which may depend on the types of the two atoms.
        types: number of atom types, the codes of the first column of `x`.
        channels: number C of channels per degree.
        cutoff: largest distance of a neighbour, in Å.

    The encoding reads `pos` `[N, 3]`, Å, NaN where unknown, and the first column of `x`, int64 `[N, F]`. The encoding
    yields node values `[N, 3C]`. An atom without neighbours or coordinates has moments of 0, and so the bias of the
    norm.

    Raises:
        ValueError: no channels, or a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    node: ContinuousFeatureSpec
    constant_shapes = True

    def __init__(self, distance: RadialBasis, types: int, channels: int = 128, cutoff: float = 5.0) -> None:
        check_basis(channels, cutoff)
        super().__init__()
        self.distance = distance
        self.cutoff = cutoff
        self.channels = channels
        self.filter: nn.Linear = nn.Linear(distance.pair.channels, channels, bias=False)
        self.types: nn.Parameter = nn.Parameter(torch.zeros(types, channels))
        self.left: nn.Parameter = nn.Parameter(torch.randn(2, channels, channels) / math.sqrt(channels))
        self.right: nn.Parameter = nn.Parameter(torch.randn(2, channels, channels) / math.sqrt(channels))
        self.norm: nn.LayerNorm = nn.LayerNorm(3 * channels)
        self.node = ContinuousFeatureSpec(3 * channels)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        directions = self.directions(data, graph)
        with torch.autocast(directions.device.type, enabled=False):  # small differences of geometry need their digits
            _, radial = self.distance(data, graph)
            types = (1 + self.types)[data.x[graph.pair_index[0], 0]]
            moments = _sums(directions, types * self.filter(radial), graph)
            first, *higher = (moments[:, degree] for degree in HARMONICS)
            products = [
                ((moment @ left) * (moment @ right)).sum(1)
                for moment, left, right in zip(higher, self.left, self.right, strict=True)
            ]
            return self.norm(torch.cat([first[:, 0], *products], -1)), None

    def directions(self, data: Data, graph: CompleteGraph) -> Tensor:
        r"""\(c(d_{rs}) Y(u_{rs})\), `[num_pairs, 9]`, 0 from the cutoff on and where a distance is 0 or unknown."""
        unit, near, _ = pair_direction(data, graph, self.cutoff)
        return (near * unit.any(1))[:, None] * harmonics(unit)

    def __repr__(self) -> str:
        sizes = f"types={len(self.types)}, channels={self.channels}, cutoff={self.cutoff}"
        return f"NeighbourDistancesAndAngles({self.distance}, {sizes})"


def harmonics(unit: Tensor) -> Tensor:
    """Compute real spherical harmonics of degree 0, 1, 2 of unit vectors `[*, 3]`: `[*, 9]`, each degree of norm 1."""
    x, y, z = unit.unbind(-1)
    root = math.sqrt(3.0)
    second = (root * x * y, root * y * z, root * x * z, root / 2 * (x * x - y * y), (3 * z * z - 1) / 2)
    return torch.stack([torch.ones_like(x), x, y, z, *second], -1)


def _sums(left: Tensor, right: Tensor, graph: CompleteGraph) -> Tensor:
    """Sum the outer products of `[num_pairs, A]` and `[num_pairs, C]` over senders, for each receiver: `[N, A, C]`."""
    left, right = graph.pairs.pack(left), graph.pairs.pack(right)
    sums, start = [left.new_zeros(0, left.shape[1], right.shape[1])], 0
    for count, size, _ in graph.packed.shapes:
        pairs = slice(start, start := start + count * size**2)
        by_receiver = (tensor[pairs].view(count * size, size, -1) for tensor in (left, right))
        sums.append(torch.einsum("rsa,rsc->rac", *by_receiver))
    return graph.nodes.unpack(torch.cat(sums))


# --- Atoms around an atom in space, by type and distance.


class NeighbourAtomTypes(Encoding):
    r"""Encoding of an atom by the types of the atoms around it in space, weighted by functions of their distance.

    \[ \sum_{s \to r,\, s \neq r} t_{z_s} \odot W \phi(d_{rs}) \]

    over the edges of the graph, with a learned vector t for every type and a radial basis \(\phi\) that ends at its
    cutoff.

    Source: Thölke & De Fabritiis 2022, TorchMD-NET (arXiv:2202.02541), the embedding of the neighbourhood; filters of
    the distance, Schütt et al. 2017, SchNet (arXiv:1706.08566).

    Args:
        distance: the radial basis.
        types: number of atom types, the codes of the first column of `x`.
        channels: width.

    The encoding reads `pos` `[N, 3]`, Å, NaN where unknown, and the first column of `x`, int64 `[N, F]`. The encoding
    yields node values `[N, channels]`; 0 for an atom without neighbours or coordinates.

    Raises:
        ValueError: in `forward`, if there are no coordinates.
    """

    node: ContinuousFeatureSpec
    constant_shapes = True

    def __init__(self, distance: RadialBasis, types: int, channels: int) -> None:
        super().__init__()
        self.distance = distance
        self.filter: nn.Linear = nn.Linear(distance.channels, channels, bias=False)
        self.types: nn.Embedding = nn.Embedding(types, channels)
        self.node = ContinuousFeatureSpec(channels)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        with torch.autocast(graph.ptr.device.type, enabled=False):
            radial = self.distance(data, graph)[1][:, :-1]  # without the channel that is 1 at any distance
            messages = self.types(data.x[:, 0])[graph.pair_index[0]] * self.filter(radial)
            return sum_over_others(messages, graph), None

    def __repr__(self) -> str:
        return f"NeighbourAtomTypes({self.distance}, types={self.types.num_embeddings}, channels={self.node.channels})"
