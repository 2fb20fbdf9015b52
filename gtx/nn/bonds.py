"""Layers for bonds and virtual nodes: messages over bonds, a readout of bonds, bonds as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINEConv

from gtx.graph import CompleteGraph, add_virtual_nodes
from gtx.nn.blocks import MLP
from gtx.nn.compiled import sum_messages
from gtx.nn.embedding import CategoricalEmbedding

# --- Message passing over the bonds, beside the attention.


@dataclass(frozen=True)
class LazyBondEmbedding:
    """Codes of bonds, int64 `[E, F]`, with their embedding, which is computed only where it is needed."""

    codes: Tensor
    embedding: CategoricalEmbedding

    @cached_property
    def rows(self) -> Tensor:
        """Embed every bond, `[E, C]`."""
        return self.embedding(self.codes)


class BondMessagePassing(GINEConv):
    r"""Message passing along the bonds: an MLP of a node plus the sum of messages from its neighbours and their bonds.

    \[ v'_r = \mathrm{MLP}\Bigl((1 + \epsilon) v_r + \sum_{s \to r} \mathrm{ReLU}(v_s + W b_{sr} + c)\Bigr) \]

    The layer equals PyG's `GINEConv`, and also accepts bond codes. For codes in single precision on a CPU, W is applied
    to the table of codes instead of every bond, and one compiled loop computes the sums (`gtx/nn/bonds.c`).

    Source: Hu et al. 2020 (arXiv:1905.12265).

    Args:
        channels: width of nodes and bonds.

    Shapes:
        x `[N, channels]`, edge_index int64 `[2, E]`, edge_attr `[E, channels]` or `LazyBondEmbedding`, to
        `[N, channels]`.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(MLP(channels, channels), edge_dim=channels)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | LazyBondEmbedding) -> Tensor:
        if not isinstance(edge_attr, LazyBondEmbedding):
            return super().forward(x, edge_index, edge_attr)
        embedding, codes = edge_attr.embedding, edge_attr.codes
        table, scale = embedding.table @ self.lin.weight.t(), 1 + float(self.eps)
        summed = sum_messages(x, edge_index, codes, embedding.offsets, table, self.lin.bias, scale)
        return super().forward(x, edge_index, edge_attr.rows) if summed is None else self.nn(summed)


# --- A readout of bonds: from atoms to one vector for each bond.


class BondVectorFromAtoms(nn.Module):
    r"""Module that makes a vector for each bond from those of its atoms s and r, and from its features c.

    \[ \left[\, v_s + v_r,\; |v_s - v_r|,\; E(c) \,\right] \]

    The embedding E is learned. The vector is symmetric in s and r, so both directions of a bond have the same.

    Shapes:
        x `[N, channels]`, bond_index int64 `[2, E]`, codes int64 `[E, F]`, to `[E, width]`, `width = 3 * channels`.
    """

    def __init__(self, channels: int, bond_sizes: Sequence[int]) -> None:
        super().__init__()
        self.embedding: CategoricalEmbedding = CategoricalEmbedding(bond_sizes, channels, silent_first=True)
        self.width: int = 3 * channels

    def forward(self, x: Tensor, bond_index: Tensor, codes: Tensor) -> Tensor:
        sender, receiver = x[bond_index[0]], x[bond_index[1]]
        return torch.cat([sender + receiver, (sender - receiver).abs(), self.embedding(codes)], -1)


# --- Virtual nodes with learned features, joined to every atom of a molecule.


class OriginalAndVirtualNodes(NamedTuple):
    """Indices of the original nodes, int64 `[N]`, and of the virtual nodes, int64 `[B * count]` (None without any)."""

    atoms: Tensor
    virtual: Tensor | None


class AddVirtualNodes(nn.Module):
    """Module that adds virtual nodes with learned features, and a learned feature for each pair with one of them.

    Source: Ying et al. 2021, Graphormer, section 3.1.3 (arXiv:2106.05234).

    Args:
        count: number of virtual nodes per molecule.
        channels: width of the node features.
        pair_channels: width of the pair features, or None.

    Shapes:
        a graph, x `[N, channels]` and pairs `[num_pairs, pair_channels]` or None, to the larger graph, its
        `OriginalAndVirtualNodes`, its node features and its pair features. A node without any edge, not even from
        itself, gets none.
    """

    def __init__(self, count: int, channels: int, pair_channels: int | None) -> None:
        super().__init__()
        self.node: nn.Parameter = nn.Parameter(torch.empty(count, channels))
        self.pair: nn.Parameter | None = None if pair_channels is None else nn.Parameter(torch.empty(pair_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.node)
        if self.pair is not None:
            nn.init.normal_(self.pair, std=0.1)

    def forward(
        self, graph: CompleteGraph, x: Tensor, pairs: Tensor | None
    ) -> tuple[CompleteGraph, OriginalAndVirtualNodes, Tensor, Tensor | None]:
        larger, nodes, virtual, old_pairs = add_virtual_nodes(graph, len(self.node))
        everything = x.new_empty(larger.num_nodes, x.shape[1]).index_copy(0, nodes, x)
        everything = everything.index_copy(0, virtual, self.node.to(x.dtype).repeat(graph.num_graphs, 1))
        if pairs is not None:
            if self.pair is None:
                raise ValueError(f"expected no pair features, as pair_channels=None, got {list(pairs.shape)}")
            pairs = self.pair.to(x.dtype).repeat(larger.num_pairs, 1).index_copy(0, old_pairs, pairs)
        return larger, OriginalAndVirtualNodes(nodes, virtual), everything, pairs

    def __repr__(self) -> str:
        return f"AddVirtualNodes({self.node.shape[0]}, {self.node.shape[1]})"


# --- Bonds as nodes beside the atoms: tokens that attend and are attended to.


class AddBondNodes(nn.Module):
    r"""Module that adds a node for every bond, and features for every pair of nodes that share an atom.

    In TokenGT an atom i is the token \([x_i, P_i, P_i]\) and a bond between i and j the token \([b_{ij}, P_i, P_j]\),
    with orthonormal identifiers P: \(P_i \cdot P_j\) is 1 if i = j, else 0. Attention can therefore detect which tokens
    share an atom: the score of queries and keys that contain P contains products of P,

    \[ q_t \cdot k_u / \sqrt d + w_{\mathrm{kind}(t)\, \mathrm{kind}(u)\, c(t, u)} \]

    where c is one of three cases: t and u have no atom in common, share an atom (an atom and its bond, or two bonds of
    an atom), or are the same token. The kind of a token is atom or bond. The orthonormal P is random, and the published
    model gives another prediction for every draw. Among bilinear forms in P, only multiples of the products do not
    depend on the draw. The module therefore learns w in place of P, so that predictions depend neither on a random draw
    nor on the numbering of the atoms.

    Source: Kim et al. 2022, TokenGT (arXiv:2207.02505).

    Args:
        bond_sizes: number of codes of each bond column.
        channels: width of the node features.
        pair_channels: width of the pair features and of w.

    Shapes:
        a graph, x `[N, channels]`, pairs `[num_pairs, pair_channels]` or None, every bond in both directions, int64
        `[2, E]`, and their codes `[E, F]`, the same in both, to the larger graph, its `OriginalAndVirtualNodes` (no
        virtual ones), its node features and its pair features. Bonds come after the atoms of their molecule.

    Raises:
        ValueError: in `forward`, bonds that are not there in both directions.
    """

    def __init__(self, bond_sizes: Sequence[int], channels: int, pair_channels: int) -> None:
        super().__init__()
        self.bond_embedding: CategoricalEmbedding = CategoricalEmbedding(bond_sizes, channels, silent_first=True)
        self.kind: nn.Parameter = nn.Parameter(torch.empty(channels))
        self.common: nn.Parameter = nn.Parameter(torch.empty(12, pair_channels))  # 2 kinds, 2 kinds, 3 things in common
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.kind)
        nn.init.normal_(self.common, std=0.1)

    def forward(
        self, graph: CompleteGraph, x: Tensor, pairs: Tensor | None, edge_index: Tensor, codes: Tensor
    ) -> tuple[CompleteGraph, OriginalAndVirtualNodes, Tensor, Tensor]:
        sender, receiver = edge_index
        keys = torch.stack([sender * graph.num_nodes + receiver, receiver * graph.num_nodes + sender])
        once = (sender < receiver).nonzero().flatten()
        if 2 * len(once) != len(sender) or not keys[0].sort().values.equal(keys[1].sort().values):
            raise ValueError(
                f"expected every bond in both directions, got {len(sender)} directed bonds, {len(once)} of them from a "
                "lower to a higher atom"
            )
        of, order = graph.batch[sender[once]].sort(stable=True)
        once = once[order]
        larger, atoms, bonds, old_pairs = add_virtual_nodes(graph, torch.bincount(of, minlength=graph.num_graphs))
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
        common = common if pairs is None else common.index_add(0, old_pairs, pairs)
        return larger, OriginalAndVirtualNodes(atoms, None), everything, common

    def __repr__(self) -> str:
        return f"AddBondNodes({len(self.kind)}, {self.common.shape[1]})"
