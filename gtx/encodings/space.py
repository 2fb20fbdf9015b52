"""Encodings of space: distances and their sums, directions, and the surroundings of an atom."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gtx.encodings.encoding import ContinuousFeatureSpec, Encoding, integer_codes
from gtx.graph import CompleteGraph

# --- The distance of pairs, functions of it, and sums of these.


def envelope(x: Tensor, exponent: int) -> Tensor:
    r"""1 at x = 0, and 0 with its first two derivatives from x = 1 on.

    \[ u(x) = 1 - \frac{(p+1)(p+2)}{2} x^p + p(p+2) x^{p+1} - \frac{p(p+1)}{2} x^{p+2} \]

    Source: Gasteiger et al. 2020, DimeNet (arXiv:2003.03123), eq. 8; with p = 3 it is the cutoff function of PhysNet,
    Unke & Meuwly 2019 (arXiv:1902.08408).

    Args:
        x: distance over cutoff, `[*]`, not negative.
        exponent: p, at least 1.
    """
    p = exponent
    inside = 1 - (p + 1) * (p + 2) / 2 * x**p + p * (p + 2) * x ** (p + 1) - p * (p + 1) / 2 * x ** (p + 2)
    return torch.where(x < 1, inside, 0.0)


def pair_distance(data: Data, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
    r"""Return the distance \(d_{rs} = |x_r - x_s|\) of every pair, and whether it is known.

    A node whose coordinates are unknown has NaN in its row of `pos`; its pairs have distance 0 and are not known. The
    derivative with respect to `pos` is finite everywhere: where two nodes coincide, as a node does with itself, it is
    set to zero.

    The encoding reads `pos` `[N, 3]`, Å.

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


def pair_direction(data: Data, graph: CompleteGraph, cutoff: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the unit vector from receiver to sender of every pair, the `envelope` (p = 3) of its distance over the
    cutoff, and whether the distance is known: `[num_pairs, 3]`, `[num_pairs]` and bool `[num_pairs]`.

    The vector is 0 where the distance is 0 or not known.
    """
    distance, known = pair_distance(data, graph)
    sender, receiver = graph.pair_index
    apart = known & (distance > 0)
    along = torch.where(apart[:, None], data.pos[sender] - data.pos[receiver], 0.0)
    return along / torch.where(apart, distance, 1.0)[:, None], envelope(distance / cutoff, 3), known


def sum_over_others(values: Tensor, graph: CompleteGraph) -> Tensor:
    """Sum values of pairs `[num_pairs, C]` over the edges into each node from other nodes, `[N, C]`."""
    sender, receiver = graph.pair_index
    edges = sender != receiver if graph.mask is None else (sender != receiver) & graph.mask
    values = values * edges[:, None]
    return values.new_zeros(graph.num_nodes, values.shape[1]).index_add_(0, receiver, values)


class RadialBasis(Encoding):
    """Base class of encodings by K functions of the distance between two nodes, which a subclass defines in `basis`.

    The encoding reads `pos` `[N, 3]`, Å. The encoding yields pair values `[num_pairs, K + 1]`: the K functions, then 1
    if the distance is known. If the distance is unknown, all values are 0. Rotating or moving a molecule does not
    change the values.

    Args:
        channels: number K of functions.
        cutoff: cutoff distance, in Å.
        least: smallest number of functions.

    Raises:
        ValueError: too few channels, or a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    pair: ContinuousFeatureSpec
    constant_shapes = True

    def __init__(self, channels: int, cutoff: float, least: int = 1) -> None:
        check_basis(channels, cutoff, least)
        super().__init__()
        self.channels = channels
        self.cutoff = cutoff
        self.pair = ContinuousFeatureSpec(channels + 1)

    def basis(self, distance: Tensor) -> Tensor:
        """Compute the K functions of distances `[num_pairs]`: `[num_pairs, K]`, finite also for a distance of 0."""
        raise TypeError(f"{type(self).__name__} does not say what its basis is")

    def rescale(self, distance: Tensor, data: Data, graph: CompleteGraph) -> Tensor:
        """Return the distance `[num_pairs]` as the basis takes it: unchanged, unless a subclass overrides this."""
        return distance

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        distance, known = pair_distance(data, graph)
        values = self.basis(self.rescale(distance, data, graph)) * known[:, None]
        return None, torch.cat([values, known[:, None].to(values.dtype)], -1)

    def _constant(self, name: str, value: Tensor, learned: bool) -> None:
        """Hold `value` as a parameter, or as a buffer that follows the device and is not saved."""
        if learned:
            self.register_parameter(name, nn.Parameter(value))
        else:
            self.register_buffer(name, value, persistent=False)


def check_basis(channels: int, cutoff: float, least: int = 1) -> None:
    """ValueError unless there are `least` channels and the cutoff is positive."""
    if channels < least or not cutoff > 0:
        raise ValueError(f"expected at least {least} channels and a positive cutoff, got {channels} and {cutoff}")


class GaussianDistance(RadialBasis):
    r"""Encoding of the distance of two atoms in space by Gaussians.

    \[ \exp\left(-\frac{(a_{t_r t_s} d_{rs} + b_{t_r t_s} - \mu_k)^2}{2\sigma_k^2}\right) \]

    The K centres \(\mu_k\) are evenly spaced from 0 to `cutoff`, and \(\sigma_k\) is their spacing; with `learned`,
    training changes both. The scale a is 1 and the shift b is 0, unless `pair_types` makes both learned parameters for
    each ordered pair of atom types. All pairs with distances far above the cutoff have the same features.

    Sources: fixed, Schütt et al. 2017, SchNet (arXiv:1706.08566), eq. 3; learned, with pair types, Shi et al.
    2022, Graphormer-3D (arXiv:2203.04810), and Zhou et al. 2023, Uni-Mol (ICLR 2023), there with the factor
    \(1/\sqrt{2\pi}\sigma_k\), here without.

    Args:
        channels: number K of functions.
        cutoff: the last centre, in Å.
        learned: whether centres and widths are learned.
        pair_types: number of atom types (codes of the first column of `x`) for whose pairs scale and shift are learned;
            None for no atom types.

    The encoding reads `pos` `[N, 3]`, Å, NaN where unknown, and with `pair_types` the first column of `x`, int64 `[N,
    F]`. The encoding yields pair values `[num_pairs, K + 1]`, where the last value is 1 if the distance is known; all
    values are 0 if the distance is unknown.

    Raises:
        ValueError: fewer than 2 channels, or a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    centres: Tensor
    log_widths: Tensor

    def __init__(
        self, channels: int = 32, cutoff: float = 10.0, learned: bool = False, pair_types: int | None = None
    ) -> None:
        super().__init__(channels, cutoff, least=2)
        self.learned = learned
        self.pair_types = pair_types
        self._constant("centres", torch.linspace(0.0, cutoff, channels), learned)
        self._constant("log_widths", torch.full((channels,), cutoff / (channels - 1)).log(), learned)
        if pair_types is not None:
            self.scale: nn.Parameter = nn.Parameter(torch.ones(pair_types, pair_types))
            self.shift: nn.Parameter = nn.Parameter(torch.zeros(pair_types, pair_types))

    def rescale(self, distance: Tensor, data: Data, graph: CompleteGraph) -> Tensor:
        if self.pair_types is None:
            return distance
        sender, receiver = integer_codes(data, "x")[:, 0][graph.pair_index]
        return self.scale[receiver, sender] * distance + self.shift[receiver, sender]

    def basis(self, distance: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((distance[:, None] - self.centres) / self.log_widths.exp()).square())


class BesselDistance(RadialBasis):
    r"""Encoding of the distance of two atoms in space by spherical Bessel functions of order zero, with a smooth cutoff
    c.

    \[ \sqrt{\frac{2}{c}}\, \frac{\sin(n \pi d_{rs} / c)}{d_{rs}}\, u(d_{rs} / c), \qquad n = 1, \ldots, K \]

    where u is `envelope`. For the pair of a node with itself, the value is the limit \(\sqrt{2/c}\, n \pi / c\).

    Source: Gasteiger et al. 2020, DimeNet (arXiv:2003.03123), eqs. 7 and 8.

    Args:
        channels: number K of functions.
        cutoff: cutoff distance c, in Å.
        exponent: exponent p of the envelope.
        learned: whether the frequencies n are learned, as in DimeNet.

    The encoding reads `pos` `[N, 3]`, Å, NaN where unknown. The encoding yields pair values `[num_pairs, K + 1]`, where
    the last value is 1 if the distance is known; all values are 0 if the distance is unknown.

    Raises:
        ValueError: no channels, or a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    orders: Tensor

    def __init__(self, channels: int = 16, cutoff: float = 5.0, exponent: int = 6, learned: bool = False) -> None:
        super().__init__(channels, cutoff)
        self.exponent = exponent
        self._constant("orders", torch.arange(1.0, channels + 1), learned)

    def basis(self, distance: Tensor) -> Tensor:
        x = (distance / self.cutoff)[:, None]
        apart = x > 0  # torch.sinc has no second derivative at 0, where a loss on forces would take it
        pi_x = math.pi * torch.where(apart, x, 1.0)
        waves = torch.where(apart, (self.orders * pi_x).sin() / pi_x, self.orders)
        return math.sqrt(2 / self.cutoff) * math.pi / self.cutoff * waves * envelope(x, self.exponent)


class ExpNormDistance(RadialBasis):
    r"""Encoding of the distance d of two atoms by Gaussians of \(e^{-d}\), narrow for near pairs and wide for far ones.

    \[ u(d_{rs} / c)\, \exp\left(-\beta_k (e^{-d_{rs}} - \mu_k)^2\right) \]

    The K centres \(\mu_k\) are evenly spaced from \(e^{-c}\) to 1, \(\beta_k = (\frac{2}{K} (1 - e^{-c}))^{-2}\), d is
    in Å, and u is `envelope` with p = 3.

    Source: Unke & Meuwly 2019, PhysNet (arXiv:1902.08408), the radial basis functions.

    Args:
        channels: number K of functions.
        cutoff: cutoff distance c, in Å.
        learned: whether centres and widths are learned, as in PhysNet.

    The encoding reads `pos` `[N, 3]`, Å, NaN where unknown. The encoding yields pair values `[num_pairs, K + 1]`, where
    the last value is 1 if the distance is known; all values are 0 if the distance is unknown.

    Raises:
        ValueError: no channels, or a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    centres: Tensor
    log_betas: Tensor

    def __init__(self, channels: int = 32, cutoff: float = 10.0, learned: bool = False) -> None:
        super().__init__(channels, cutoff)
        last = math.exp(-cutoff)
        self._constant("centres", torch.linspace(last, 1.0, channels), learned)
        self._constant("log_betas", torch.full((channels,), -2 * math.log(2 / channels * (1 - last))), learned)

    def basis(self, distance: Tensor) -> Tensor:
        near = (-distance[:, None]).exp()
        gaussians = torch.exp(-self.log_betas.exp() * (near - self.centres).square())
        return gaussians * envelope(distance[:, None] / self.cutoff, exponent=3)


class FourierDistance(RadialBasis):
    r"""Encoding of the distance of two atoms by sines and cosines on the interval from 0 to the cutoff c.

    \[ \left[\sin\frac{\pi k d_{rs}}{c}, \cos\frac{\pi k d_{rs}}{c}\right], \qquad k = 1, \ldots, K/2 \]

    The shortest wavelength is \(4c / K\), 1.25 Å by default. Distances that differ by 2c have the same features, so c
    should be at least half of the longest relevant distance.

    Source: Fourier features, Tancik et al. 2020 (arXiv:2006.10739), eq. 5, with evenly spaced frequencies \(k / 2c\).

    Args:
        channels: K, even.
        cutoff: cutoff distance c, in Å.

    The encoding reads `pos` `[N, 3]`, Å, NaN where unknown. The encoding yields pair values `[num_pairs, K + 1]`,
    the sines, the cosines, and a last value of 1 if the distance is known. If the distance is unknown, all values are
    0.

    Raises:
        ValueError: channels not even, or a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    frequencies: Tensor

    def __init__(self, channels: int = 32, cutoff: float = 10.0) -> None:
        super().__init__(channels, cutoff, least=2)
        if channels % 2:
            raise ValueError(f"expected an even number of channels, got {channels}")
        self._constant("frequencies", torch.arange(1.0, channels // 2 + 1) * math.pi / cutoff, learned=False)

    def basis(self, distance: Tensor) -> Tensor:
        angles = distance[:, None] * self.frequencies
        return torch.cat([angles.sin(), angles.cos()], -1)


class MATDistanceAndAdjacency(Encoding):
    r"""Distance and adjacency of two atoms, which the Molecule Attention Transformer (MAT) blends with its attention.

    The channels of the pair (receiver r, sender s) are \([d_{rs}, A_{rs}, \text{known}_{rs}]\): the distance in space,
    Å, 0 where it is unknown; 1 where there is a bond; 1 where the distance is known.

    Source: Maziarka et al. 2020 (arXiv:2002.08264), eq. 2.

    The encoding reads `edge_index` `[2, E]` and `pos` `[N, 3]`, Å, NaN where unknown. The encoding yields pair values
    `[num_pairs, 3]`.

    Raises:
        ValueError: in `forward`, if there are no coordinates.
    """

    pair: ContinuousFeatureSpec = ContinuousFeatureSpec(3)

    constant_shapes = True

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        distance, known = pair_distance(data, graph)
        bonded = torch.zeros_like(distance)
        bonded[graph.pair_of(data.edge_index)] = 1.0
        return None, torch.stack([distance, bonded, known.to(distance.dtype)], -1)


class TransformerM3DEncoding(Encoding):
    r"""Distance encoding of pairs of atoms, and its sum over the other atoms as an encoding of each atom (3D
    centrality).

    \[ \psi(d_{rs}), \qquad \sum_{s \to r,\, s \neq r} \psi(d_{rs}) \]

    Source: Luo et al. 2022, Transformer-M (arXiv:2210.01765), the 3D channel: the sum is its centrality in space.

    Args:
        distance: the radial basis \(\psi\).

    The encoding reads what the radial basis reads. The encoding yields the pair values of the basis, `[num_pairs, K +
    1]`, and node values `[N, K]`, the sums over the edges of the graph.

    Raises:
        ValueError: in `forward`, if there are no coordinates.
    """

    constant_shapes = True

    def __init__(self, distance: RadialBasis) -> None:
        super().__init__()
        self.distance = distance
        self.node: ContinuousFeatureSpec = ContinuousFeatureSpec(distance.channels)
        self.pair: ContinuousFeatureSpec = distance.pair

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        with torch.autocast(graph.ptr.device.type, enabled=False):
            _, pairs = self.distance(data, graph)
        return sum_over_others(pairs[:, :-1], graph), pairs


# --- Directions, and the surroundings of an atom.


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
            types, dtype = (1 + self.types)[integer_codes(data, "x")[graph.pair_index[0], 0]], self.types.dtype
            moments = _sums(directions.to(dtype), types * self.filter(radial.to(dtype)), graph)
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
    left, right = graph.packed.pairs.pack(left), graph.packed.pairs.pack(right)
    sums, start = [left.new_zeros(0, left.shape[1], right.shape[1])], 0
    for count, size, _ in graph.packed.shapes:
        pairs = slice(start, start := start + count * size**2)
        by_receiver = (tensor[pairs].view(count * size, size, -1) for tensor in (left, right))
        sums.append(torch.einsum("rsa,rsc->rac", *by_receiver))
    return graph.packed.nodes.unpack(torch.cat(sums))


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
            types = self.types(integer_codes(data, "x")[:, 0])[graph.pair_index[0]]
            messages = types * self.filter(radial.to(types.dtype))
            return sum_over_others(messages, graph), None
