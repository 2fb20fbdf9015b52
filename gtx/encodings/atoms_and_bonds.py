"""Encodings of atoms and bonds: atom types, degrees, bonds, common rings."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.edges import ragged
from gtx.encodings.encoding import CategoricalFeatureSpec, Encoding
from gtx.graph import CompleteGraph

# --- Atom types as codes.


class AtomTypes(Encoding):
    """Encoding of atoms by the code of their type, the first column of `x`, for a learned embedding.

    The encoding is for models that embed the atom type separately. The code is not changed, so a type that does not
    occur in training also has an embedding.

    Args:
        size: number of codes of the first column of `x`.

    The encoding reads the first column of `x`, int64 `[N, F]`. The encoding yields node codes `[N, 1]`.

    Raises:
        ValueError: `size` is 0.
    """

    node: CategoricalFeatureSpec
    constant_shapes = True
    fixed = True

    def __init__(self, size: int) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"expected at least one code, got {size}")
        self.node = CategoricalFeatureSpec((size,))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        return data.x[:, :1], None

    def __repr__(self) -> str:
        return f"AtomTypes({self.node.sizes[0]})"


# --- Degree: how many neighbours an atom has.


class NodeDegree(Encoding):
    """Encoding of nodes by their number of bonds, with one code for "more than `largest`".

    Source: the centrality encoding of Graphormer, Ying et al. 2021 (arXiv:2106.05234), eq. 5.

    The encoding reads `edge_index` `[2, E]`. The encoding yields node codes `[N, 1]`.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, largest: int = 8) -> None:
        super().__init__()
        self.largest = largest
        self.node: CategoricalFeatureSpec = CategoricalFeatureSpec((largest + 2,))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        receiver = data.edge_index[1]
        degree = receiver.new_zeros(graph.num_nodes).index_add_(0, receiver, torch.ones_like(receiver))
        return degree.clamp_(max=self.largest + 1).unsqueeze(1), None

    def __repr__(self) -> str:
        return f"NodeDegree({self.largest})"


# --- Bonds, as features of pairs.


class BondFeatures(Encoding):
    """Encoding of pairs of atoms by the bond between them: the codes of its features plus one, 0 without a bond.

    Args:
        sizes: number of codes of each column of `edge_attr`.

    The encoding reads `edge_index` `[2, E]` and `edge_attr`, int64 `[E, F]`. The encoding yields pair codes
    `[num_pairs, F]`.

    Raises:
        ValueError: in `forward`, `edge_attr` of another shape; on a CPU, an edge that is not within a molecule.
    """

    pair: CategoricalFeatureSpec
    constant_shapes = True
    fixed = True

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.pair = CategoricalFeatureSpec(tuple(size + 1 for size in sizes))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        shape = (data.edge_index.shape[1], len(self.pair.sizes))
        if data.edge_attr.shape != shape:
            raise ValueError(f"expected edge_attr {list(shape)}, got {list(data.edge_attr.shape)}")
        marked = data.edge_index.new_zeros(graph.num_pairs, shape[1], dtype=torch.long)
        marked[graph.pair_of(data.edge_index)] = data.edge_attr.long() + 1
        return None, marked

    def __repr__(self) -> str:
        return f"BondFeatures({[size - 1 for size in self.pair.sizes]})"


# --- Which atoms lie on a common ring.

CHUNK = 2**21  # steps worked out together: it bounds the memory


class SameRing(Encoding):
    r"""Encoding of pairs of atoms: 1 if both are in a common smallest ring, else 0.

    The smallest rings are the shortest rings through each bond; if there are several shortest rings, all of them are
    used. Let \(d'\) be the number of bonds between two nodes after the bond (i, j) is removed. A ring through the bond
    is then a path from i to j, and the shortest rings have \(L = d'_{ij} + 1\) bonds. Nodes a and c are on a common
    shortest ring if

    \[ d'_{ia} + d'_{ac} + d'_{cj} = L - 1 \quad\text{or}\quad d'_{ic} + d'_{ca} + d'_{aj} = L - 1. \]

    For a node of a ring, the pair of the node with itself has the value 1.

    RDKit's `RingInfo.AreAtomsInSameRing` uses a smallest set of smallest rings. For rings of up to `largest` bonds,
    both definitions agree with one exception: a ring whose bonds all lie on smaller rings is in RDKit's set only. The
    exception occurs in cages and in rings with smaller rings fused to every bond: 1 of 16,000 molecules of QM9, Tox21
    and BBBP.

    Source: a shortest ring through an edge is a shortest path between its ends without it, as in Horton 1987 (SIAM J.
    Comput. 16, 358).

    Args:
        largest: size of the largest ring that is used, in bonds.

    The encoding reads `edge_index` `[2, E]`, undirected. The encoding yields pair codes `[num_pairs, 1]`.

    Raises:
        ValueError: `largest` below 3.
    """

    fixed = True

    def __init__(self, largest: int = 12) -> None:
        super().__init__()
        if largest < 3:
            raise ValueError(f"expected rings of at least 3 bonds, got {largest}")
        self.largest = largest
        self.pair: CategoricalFeatureSpec = CategoricalFeatureSpec((2,))

    @torch.no_grad()
    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        same = data.edge_index.new_zeros(graph.num_pairs, 1)
        edges = data.edge_index[:, graph.batch[data.edge_index[0]].argsort(stable=True)]  # molecule by molecule
        bonds = edges[:, edges[0] < edges[1]]
        steps = _per_molecule(edges, graph)[graph.batch[bonds[0]]]
        for some in bonds.split(torch.bincount(steps.cumsum(0) // CHUNK).tolist(), 1):
            together = self._same_ring(some, edges, graph)
            same[graph.pair_of(together)] = 1
            same[graph.pair_of(together.flip(0))] = 1
        return None, same

    def _same_ring(self, bonds: Tensor, edges: Tensor, graph: CompleteGraph) -> Tensor:
        """Nodes that share a smallest ring through one of the bonds `[2, R]`: int64 `[2, *]`, a pair once per bond."""
        molecule = graph.batch[bonds[0]]
        sizes = graph.ptr.diff()[molecule]
        row_bond, row_node = ragged(sizes)  # a row for every bond and node of its molecule
        row_node = row_node + graph.ptr[molecule][row_bond]
        first = sizes.cumsum(0) - sizes - graph.ptr[molecule]  # (bond, node) is row first[bond] + node

        degrees = _per_molecule(edges, graph)
        bond, edge = ragged(degrees[molecule])  # a step for every bond and edge of its molecule,
        edge = edges[:, edge + (degrees.cumsum(0) - degrees)[molecule][bond]]
        other = (edge.sort(0).values != bonds[:, bond]).any(0)  # except the bond itself
        start, goal = first + bonds
        rows, steps = self._shortest_paths(start, goal, (first[bond] + edge)[:, other], len(row_node))
        return row_node[_connected(row_bond[rows], rows, steps, self.largest - 1)]

    def _shortest_paths(self, start: Tensor, goal: Tensor, steps: Tensor, num_rows: int) -> tuple[Tensor, Tensor]:
        """All rows and steps that lie on a shortest path from a start to its goal, of less than `largest` steps."""
        tail, head = steps
        level = torch.full((num_rows,), self.largest, device=start.device)  # d' from the start
        level[start] = 0
        for n in range(1, self.largest):
            level[head[(level[tail] == n - 1) & (level[head] == self.largest)]] = n
        away = (level[head] == level[tail] + 1) & (level[head] < self.largest)
        tail, head = tail[away], head[away]
        on = torch.zeros_like(level, dtype=torch.bool)
        on[goal] = level[goal] < self.largest
        for n in range(self.largest - 1, 0, -1):  # back from the goal
            on[tail[on[head] & (level[head] == n)]] = True
        return on.nonzero().squeeze(1), torch.stack([tail, head])[:, on[head]]

    def __repr__(self) -> str:
        return f"SameRing({self.largest})"


def _connected(group: Tensor, rows: Tensor, steps: Tensor, most_steps: int) -> Tensor:
    """Rows a and c `[2, *]` such that steps lead from a to c, by one small matrix for each group of rows."""
    _, group, counts = group.unique_consecutive(return_inverse=True, return_counts=True)
    slot = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[group]
    size = int(counts.max()) if len(counts) else 0
    tail, head = torch.searchsorted(rows, steps)
    path = torch.zeros(len(counts), size, size, device=rows.device)
    path[group, slot, slot] = 1.0
    path[group[tail], slot[tail], slot[head]] = 1.0
    for _ in range((most_steps - 1).bit_length()):  # paths of up to 2, 4, 8, ... steps
        path = (path @ path).clamp_(max=1.0)
    row = rows.new_zeros(len(counts), size)
    row[group, slot] = rows
    of, a, c = path.nonzero(as_tuple=True)
    return torch.stack([row[of, a], row[of, c]])


def _per_molecule(edges: Tensor, graph: CompleteGraph) -> Tensor:
    """Return the number of edges of each molecule: int64 `[B]`."""
    return torch.bincount(graph.batch[edges[0]], minlength=graph.num_graphs)
