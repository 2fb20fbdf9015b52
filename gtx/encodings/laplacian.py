"""Eigenvectors of the graph Laplacian."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import Encoding, Values
from gtx.encodings.sign_invariant import SignInvariant
from gtx.graph import CompleteGraph
from gtx.graph.adjacency import adjacency

ZERO = 1e-9  # an eigenvalue below this is zero: the first that is not is about 5e-6 for a chain of 1,000 atoms
PADDING = 3.0  # eigenvalue of padding: above 2, the largest there can be otherwise

Signs = Literal["random", "absolute", "invariant"]


class LaplacianEigenvectors(Encoding):
    r"""Each node's entries in the eigenvectors of the symmetric normalised Laplacian, smoothest first.

    \[ L = I - D^{-1/2} A D^{-1/2}, \qquad L v_l = \lambda_l v_l, \qquad 0 < \lambda_1 \le \ldots \le \lambda_k \]

    with \(|v_l| = 1\), and a row of zeros in L for a node without bonds. Eigenvectors of eigenvalue 0, one for each
    connected part, are left out. Node i yields \([v_{1i}, \ldots, v_{ki}, \lambda_1, \ldots, \lambda_k]\); where its
    molecule has fewer than k eigenvectors the rest are zeros, which \(\lambda_l = 0\) tells from entries that happen to
    be 0.

    An eigenvector's sign is arbitrary, and `signs` says what becomes of it:

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
        channels: of the learned function, per eigenvector; for `invariant` alone.

    Reads `edge_index` `[2, E]`, undirected. Yields node values `[N, 2k]`, or `[N, k * channels]` for `invariant`.

    Raises:
        ValueError: k below 1, or another word for signs.
    """

    def __init__(self, k: int = 8, signs: Signs = "random", channels: int = 8) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"expected at least one eigenvector, got {k}")
        if signs not in ("random", "absolute", "invariant"):
            raise ValueError(f"expected the signs 'random', 'absolute' or 'invariant', got {signs!r}")
        self.k, self.signs = k, signs
        self.invariant = SignInvariant(channels) if signs == "invariant" else None
        self.node = Values(2 * k if self.invariant is None else k * channels)

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
        if graph.num_nodes == 0:
            return (torch.zeros(0, self.k, device=edge_index.device),) * 2
        present = graph.node_buckets(graph.nodes.pack(torch.ones(graph.num_nodes, 1, device=edge_index.device)))
        both = [
            self._decompose(bonds.double(), here.squeeze(-1) > 0)
            for bonds, here in zip(adjacency(edge_index, graph), present, strict=True)
        ]
        return tuple(
            graph.nodes.unpack(torch.cat([part.flatten(0, 1) for part in parts]).float())
            for parts in zip(*both, strict=True)
        )

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

    def __repr__(self) -> str:
        return f"LaplacianEigenvectors({self.k}, '{self.signs}')"
