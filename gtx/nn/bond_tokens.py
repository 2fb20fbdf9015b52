"""Bonds as nodes beside the atoms: tokens that attend and are attended to."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gtx.graph import CompleteGraph, with_virtual
from gtx.nn.embedding import CodeEmbedding
from gtx.nn.virtual_nodes import Nodes


class BondTokens(nn.Module):
    r"""Adds a node for every bond, and to every pair of nodes what they have in common.

    In TokenGT an atom i is the token \([x_i, P_i, P_i]\) and a bond between i and j the token \([b_{ij}, P_i, P_j]\),
    with orthonormal identifiers P: \(P_i \cdot P_j\) is 1 if i = j, else 0. So attention can find out which tokens
    share an atom: queries and keys that hold P have products of P in their score,

    \[ q_t \cdot k_u / \sqrt d + w_{\mathrm{kind}(t)\, \mathrm{kind}(u)\, c(t, u)} \]

    where c tells whether t and u have no atom in common, share one (an atom and its bond, two bonds of an atom), or are
    the same token, and kind tells atoms from bonds. Which orthonormal P is drawn is arbitrary, and the published model
    gives another prediction for every draw. Of bilinear forms in P, only multiples of the products are the same for
    every draw; so here the learned w stands in place of P, and no draw and no numbering of the atoms matters.

    Source: Kim et al. 2022, TokenGT (arXiv:2207.02505).

    Args:
        bond_sizes: codes of each column of the bonds.
        channels: of the nodes.
        pair_channels: of the pairs, and of w.

    Shapes:
        a graph, x `[N, channels]`, pairs `[num_pairs, pair_channels]` or None, every bond in both directions, int64
        `[2, E]`, and their codes `[E, F]`, the same in both, to the larger graph, its `Nodes` (no virtual ones), its
        node features and its pair features. Bonds come after the atoms of their molecule.

    Raises:
        ValueError: in `forward`, bonds that are not there in both directions.
    """

    def __init__(self, bond_sizes: Sequence[int], channels: int, pair_channels: int) -> None:
        super().__init__()
        self.bond_embedding = CodeEmbedding(bond_sizes, channels, silent_first=True)
        self.kind = nn.Parameter(torch.empty(channels))
        self.common = nn.Parameter(torch.empty(12, pair_channels))  # 2 kinds, 2 kinds, 3 things in common
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.kind)
        nn.init.normal_(self.common, std=0.1)

    def forward(
        self, graph: CompleteGraph, x: Tensor, pairs: Tensor | None, edge_index: Tensor, codes: Tensor
    ) -> tuple[CompleteGraph, Nodes, Tensor, Tensor]:
        sender, receiver = edge_index
        once = (sender < receiver).nonzero().flatten()
        if 2 * len(once) != len(sender):
            raise ValueError(
                f"expected every bond in both directions, got {len(sender)} directed bonds, {len(once)} of them from a "
                "lower to a higher atom"
            )
        of, order = graph.batch[sender[once]].sort(stable=True)
        once = once[order]
        larger, atoms, bonds, old_pairs = with_virtual(graph, torch.bincount(of, minlength=graph.num_graphs))
        embedded = self.bond_embedding(codes[once]) + self.kind
        everything = x.new_empty(larger.num_nodes, x.shape[1]).index_copy(0, atoms, x)
        everything = everything.index_copy(0, bonds, embedded.to(x.dtype))

        one, other = torch.empty(2, larger.num_nodes, dtype=torch.long, device=x.device)
        one[atoms] = other[atoms] = atoms
        one[bonds], other[bonds] = atoms[edge_index[:, once]]
        kind = torch.zeros_like(one)
        kind[bonds] = 1
        u, t = larger.pair_index
        shared = (one[t] == one[u]) | (one[t] == other[u]) | (other[t] == one[u]) | (other[t] == other[u])
        common = self.common.to(x.dtype)[6 * kind[t] + 3 * kind[u] + shared.long() + (t == u)]
        return (
            larger,
            Nodes(atoms, None),
            everything,
            common if pairs is None else common.index_add(0, old_pairs, pairs),
        )

    def __repr__(self) -> str:
        return f"BondTokens({len(self.kind)}, {self.common.shape[1]})"
