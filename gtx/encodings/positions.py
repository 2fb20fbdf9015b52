"""Encodings of positions: random walks, eigenvectors of the Laplacian, and sinusoids of places in a sequence."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv

from gtx.encodings.encoding import ContinuousFeatureSpec, Encoding
from gtx.graph import CompleteGraph
from gtx.graph.edge_selectors import adjacency

# --- Random-walk probabilities, of nodes and of pairs.


class RandomWalkProbabilities(Encoding):
    r"""Probability that a random walk along the bonds from one atom is at another after k steps, for each k.

    With \(M = D^{-1} A\), the pair (receiver r, sender s) gets the probabilities that a walk from r is at s,

    \[ [I, M, M^2, \ldots, M^{K-1}]_{rs} \]

    and the node r the probabilities of being back, \([M, M^2, \ldots, M^K]_{rr}\). A node without bonds has zeros
    (apart from I).

    Sources: node part (RWSE) Dwivedi et al. 2022 (arXiv:2110.07875), eq. 4; pair part (RRWP) Ma et al. 2023, GRIT
    (arXiv:2305.17589), eq. 1.

    Args:
        steps: number K of steps.
        nodes: whether the features of nodes are computed.
        pairs: whether the features of pairs are computed.

    The encoding reads `edge_index` `[2, E]`. The encoding yields node values `[N, K]` and pair values `[num_pairs, K]`.

    Raises:
        ValueError: no steps; in `forward`, on a CPU, an edge that is not within a molecule.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, steps: int = 16, nodes: bool = True, pairs: bool = True) -> None:
        super().__init__()
        if steps < 1:
            raise ValueError(f"expected at least one step, got {steps}")
        self.steps, self.nodes, self.pairs = steps, nodes, pairs
        self.node: ContinuousFeatureSpec | None = ContinuousFeatureSpec(steps) if nodes else None
        self.pair: ContinuousFeatureSpec | None = ContinuousFeatureSpec(steps) if pairs else None

    @torch.no_grad()
    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor | None, Tensor | None]:
        walks = [bonds / bonds.sum(-1, keepdim=True).clamp(min=1.0) for bonds in adjacency(data.edge_index, graph)]
        slots = graph.packed.pairs.slot_of_row
        back = slots[graph.diagonal]  # the slot of each node with itself
        power = torch.zeros(graph.packed.pairs.row_of_slot.shape[0], device=slots.device)  # of M, in slots
        power[back] = 1.0
        nodes, pairs = (power.new_empty(self.steps, each.shape[0]) for each in (back, slots))  # len() fixes an export
        with torch.autocast(slots.device.type, enabled=False):  # probabilities of long walks need their digits
            for k in range(self.steps):
                if self.pairs:
                    torch.index_select(power, 0, slots, out=pairs[k])
                before, power = power, torch.empty_like(power)
                cut = graph.packed.cut_pairs
                for one, walk, next in zip(cut(before), walks, cut(power), strict=True):
                    torch.bmm(one, walk, out=next)
                torch.index_select(power, 0, back, out=nodes[k])
        return nodes.T if self.nodes else None, pairs.T if self.pairs else None


# --- Eigenvectors of the graph Laplacian, and a learned function of them that does not depend on their signs.


class SignInvariant(nn.Module):
    r"""Learned function of each eigenvector and its eigenvalue, the same for both signs.

    \[ \phi(v_l, \lambda_l) + \phi(-v_l, \lambda_l) \]

    where \(\phi\) is a graph isomorphism network of one round over the bonds,
    \(\phi(v, \lambda)_i = \mathrm{MLP}(h_i + \sum_{j \sim i} h_j)\) with \(h_i = \mathrm{MLP}(v_i, \lambda)\), so that
    the function depends on whether neighbours have different signs. A missing eigenvector (eigenvalue 0) yields zeros.
    The linear map that models apply to node values takes the place of \(\rho\) over all l.

    Source: SignNet, Lim et al. 2022 (arXiv:2202.13013), eq. 3.

    Shapes:
        entries and eigenvalues `[N, k]`, `edge_index` `[2, E]` to `[N, k, channels]`.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        hidden = 32
        self.before: nn.Sequential = nn.Sequential(
            nn.Linear(2, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU()
        )
        self.round: nn.Module = GINConv(
            nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, channels))
        )

    def forward(self, vectors: Tensor, values: Tensor, edge_index: Tensor) -> Tensor:
        both = torch.stack([torch.stack([v, values], -1) for v in (vectors, -vectors)])  # [2, N, k, 2]
        both = both.to(next(self.parameters()).dtype).transpose(1, 2)  # nodes last but one, as messages want them
        result = self.round(self.before(both), edge_index).sum(0).transpose(0, 1)
        return result * (values > 0)[..., None]


ZERO = 1e-9  # an eigenvalue below this is zero: the first that is not is about 5e-6 for a chain of 1,000 atoms
PADDING = 3.0  # eigenvalue of padding: above 2, the largest there can be otherwise

Signs = Literal["random", "absolute", "invariant"]


class LaplacianEigenvectors(Encoding):
    r"""Encoding of nodes by the eigenvectors of the symmetric normalised Laplacian with the smallest eigenvalues.

    \[ L = I - D^{-1/2} A D^{-1/2}, \qquad L v_l = \lambda_l v_l, \qquad 0 < \lambda_1 \le \ldots \le \lambda_k \]

    with \(|v_l| = 1\), and a row of zeros in L for a node without bonds. Eigenvectors of eigenvalue 0, one for each
    connected part, are left out. Node i yields \([v_{1i}, \ldots, v_{ki}, \lambda_1, \ldots, \lambda_k]\); where its
    molecule has fewer than k eigenvectors the rest are zeros, which \(\lambda_l = 0\) tells from entries that happen to
    be 0.

    An eigenvector's sign is arbitrary, and `signs` determines how it is handled:

    - `random`: in training it is drawn for every eigenvector of every molecule, anew at each call; in evaluation it is
      such that \(\sum_i v_{li}^3 \ge 0\), which no numbering of the atoms changes, though it decides nothing where a
      symmetry of the molecule makes that sum zero;
    - `absolute`: \(|v_{li}|\) is yielded;
    - `invariant`: a learned function that cannot tell \(v_l\) from \(-v_l\), see `SignInvariant`.

    Where an eigenvalue repeats (as 1 does when two atoms bear two like leaves each) any rotation within its eigenspace
    is as good, and which one comes depends on the numbering of the atoms, whatever `signs` is.

    Source: Dwivedi & Bresson 2020 (arXiv:2012.09699), section 2.1, for `random`.

    Args:
        k: number of eigenvectors.
        signs: `random`, `absolute` or `invariant`.
        channels: output channels of the learned function per eigenvector, only for `invariant`.

    The encoding reads `edge_index` `[2, E]`, undirected. The encoding yields node values `[N, 2k]`, or `[N, k *
    channels]` for `invariant`.

    Raises:
        ValueError: k below 1, or another word for signs.
    """

    node: ContinuousFeatureSpec

    def __init__(self, k: int = 8, signs: Signs = "random", channels: int = 8) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"expected at least one eigenvector, got {k}")
        if signs not in ("random", "absolute", "invariant"):
            raise ValueError(f"expected the signs 'random', 'absolute' or 'invariant', got {signs!r}")
        self.k = k
        self.signs = signs
        self.invariant: SignInvariant | None = SignInvariant(channels) if signs == "invariant" else None
        self.node = ContinuousFeatureSpec(2 * k if self.invariant is None else k * channels)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        vectors, values = self.eigenvectors(data.edge_index, graph)
        if self.invariant is not None:
            return self.invariant(vectors, values, data.edge_index).flatten(1), None
        if self.signs == "absolute":
            vectors = vectors.abs()
        elif self.training:
            signs = torch.randint(2, (graph.num_graphs, self.k), device=vectors.device) * 2 - 1
            vectors = vectors * signs[graph.batch]
        return torch.cat([vectors, values], 1), None

    @torch.no_grad()
    def eigenvectors(self, edge_index: Tensor, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        """Per node, its entries in the k eigenvectors and their eigenvalues, float32 `[N, k]` each."""
        present = graph.packed.split_nodes(torch.ones(graph.num_nodes, 1, device=edge_index.device))
        slots = [torch.zeros(0, 2, self.k, device=edge_index.device)]
        for bonds, here in zip(adjacency(edge_index, graph), present, strict=True):
            both = self._decompose(bonds.double(), here.squeeze(-1) > 0)
            slots.append(torch.stack(both, 2).flatten(0, 1).float())
        vectors, values = graph.packed.nodes.unpack(torch.cat(slots)).unbind(1)
        return vectors, values

    def _decompose(self, bonds: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """`[b, n, n]` adjacency and bool `[b, n]` to entries and eigenvalues `[b, n, k]`."""
        degree = bonds.sum(-1)
        scale = torch.where(degree > 0, degree, 1.0).rsqrt()
        diagonal = torch.where(present, (degree > 0).double(), PADDING)
        values, vectors = torch.linalg.eigh(torch.diag_embed(diagonal) - scale[..., None] * bonds * scale[..., None, :])

        place = (values < ZERO).sum(-1, keepdim=True) + torch.arange(self.k, device=bonds.device)  # [b, k]
        there = (place < present.sum(-1, keepdim=True))[:, None]
        place = place.clamp(max=bonds.shape[1] - 1)[:, None].expand(-1, bonds.shape[1], -1)  # [b, n, k]
        vectors = vectors.gather(2, place) * there
        values = values[:, None].expand(-1, bonds.shape[1], -1).gather(2, place) * there
        return torch.where((vectors**3).sum(1, keepdim=True) < 0, -vectors, vectors), values


# --- Sines and cosines of a position in a sequence.

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
        self.channels, self.convention = channels, convention
        self.node = ContinuousFeatureSpec(channels)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        place = torch.arange(graph.num_nodes, device=graph.ptr.device) - graph.ptr[graph.batch]
        return sinusoidal_encoding(place, self.channels, self.convention), None


def _check(channels: int, convention: str) -> None:
    if convention not in ("interleaved", "halves"):
        raise ValueError(f"expected the convention 'interleaved' or 'halves', got {convention!r}")
    least = 2 if convention == "interleaved" else 4
    if channels < least or channels % 2:
        raise ValueError(f"expected an even number of channels, at least {least}, got {channels}")
