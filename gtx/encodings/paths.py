"""Encodings by paths: the length of the shortest, the bonds along it, the number of all simple paths, common rings."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch_geometric.data import Data

from gtx.base.loops import compiled_loop, run_in_threads
from gtx.encodings.encoding import CategoricalFeatureSpec, ContinuousFeatureSpec, Encoding, integer_codes
from gtx.graph import CompleteGraph
from gtx.graph.edge_selectors import adjacency, flatten
from gtx.graph.packing import offsets, ragged

# --- Bonds as compiled loops read them: on the processor, whatever the device of the batch.


def sort_by_receiver(edge_index: Tensor, graph: CompleteGraph) -> tuple[Tensor, ...]:
    """Sort edges (int64 `[2, E]`) by receiver.

    Returns:
        On the processor, `ptr` and `pair_ptr` of the graph; int64 `[N + 1]`, where the edges into each node start, and
        the last end; and int64 `[E]`, the sender of each edge and its place in `edge_index`.

    Raises:
        ValueError: the graph has a ghost, whose pairs are not those of its atoms.
    """
    if graph.has_ghost:
        raise ValueError(f"expected a graph of molecules alone, got a {type(graph).__name__}")
    sender, receiver = edge_index.cpu().long().unbind()
    order = receiver.argsort(stable=True)
    start = offsets(torch.bincount(receiver, minlength=graph.num_nodes))
    return graph.ptr.cpu(), graph.pair_ptr.cpu(), start, sender[order], order


# --- Shortest-path distance, as a code of each pair or as masks.

FARTHEST = 4096
"""Bonds of the longest paths that connect two atoms in an exported program."""


class ShortestPathLength(Encoding):
    """Encoding of pairs of atoms by the number of bonds on the shortest path between them.

    Codes 0 (a node with itself) to `largest` are distances; code `largest + 1` means farther, and `largest + 2` means
    not connected. For all molecules of similar size, the computation takes one batched matrix product per step, at most
    `largest` steps.

    Source: the spatial encoding of Graphormer, Ying et al. 2021 (arXiv:2106.05234), eq. 6.

    Args:
        largest: longest distance with a separate code.

    The encoding reads `edge_index` `[2, E]`, undirected. The encoding yields pair codes `[num_pairs, 1]`.

    Raises:
        ValueError: `largest` below 1; in `forward`, on a CPU, an edge that is not within a molecule.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, largest: int = 20) -> None:
        super().__init__()
        if largest < 1:
            raise ValueError(f"expected a largest distance of at least 1, got {largest}")
        self.largest = largest
        self.pair: CategoricalFeatureSpec = CategoricalFeatureSpec((largest + 3,))

    @torch.no_grad()
    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        codes = [self._codes(bonds) for bonds in adjacency(data.edge_index, graph)]
        return None, flatten(codes, graph).long().unsqueeze(1)

    def _codes(self, bonds: Tensor) -> Tensor:
        """`[b, n, n]` adjacency to codes."""
        size = bonds.shape[1]
        reached = torch.eye(size, device=bonds.device).expand_as(bonds)
        step = reached + bonds
        exporting = torch.compiler.is_exporting()  # one program is then for all sizes
        steps = self.largest if exporting else min(self.largest, size - 1)
        distance = bonds.new_full(bonds.shape, steps + 1)
        for _ in range(steps):
            distance.sub_(reached)  # one less for every step at which the pair had been reached
            reached = (reached @ step).clamp_(max=1.0)
        distance.sub_(reached)
        connected, most = (reached + reached.mT).clamp_(max=1.0), FARTHEST if exporting else size - 1
        while steps < most:  # twice as far every time
            connected, steps = (connected @ connected).clamp_(max=1.0), 2 * steps
        return torch.where(reached > 0, distance, self.largest + 2 - connected)


class ShortestPathOneHot(Encoding):
    r"""Encoding of pairs of atoms by masks: channel k is 1 where the shortest path has exactly k bonds, else 0.

    The channels of a pair with shortest-path distance d are \([d_{rs} = 0, d_{rs} = 1, \ldots, d_{rs} = K]\). Pairs
    farther apart than K bonds, or not connected, have zeros.

    Source: the k-hop adjacency matrices of MixHop, Abu-El-Haija et al. 2019 (arXiv:1905.00067), here of exact
    distances rather than of walks.

    Args:
        largest: largest number K of bonds.

    The encoding reads `edge_index` `[2, E]`, undirected. The encoding yields pair values `[num_pairs, K + 1]`.
    """

    pair: ContinuousFeatureSpec
    constant_shapes = True
    fixed = True

    def __init__(self, largest: int = 3) -> None:
        super().__init__()
        self.largest = largest
        self.distance: ShortestPathLength = ShortestPathLength(largest)
        self.pair = ContinuousFeatureSpec(largest + 1)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        _, distance = self.distance(data, graph)
        hops = torch.arange(self.largest + 1, device=distance.device).unsqueeze(1)
        return None, (hops == distance.T).float().T


# --- All simple paths between two atoms, by their length.

MOST_PATHS = 50_000_000
"""Largest number of simple paths of a molecule, some seconds of a core; a drug has some thousands."""


class SimplePathCounts(Encoding):
    r"""Encoding of pairs of atoms by the numbers of simple paths between them, which visit no atom twice.

    \[ c_{rs}[k] = \log\bigl(1 + \#\{\text{simple paths of } k \text{ bonds from } r \text{ to } s\}\bigr),
       \qquad k = 1, \ldots, K \]

    Random walks do not tell all cycles apart, and simple paths count them: two atoms of a six-membered ring at a
    distance of two bonds also have a path of four bonds. A compiled loop counts the paths of one atom after the other.

    Source: Airale et al. 2025 (arXiv:2502.09365), with the logarithm of all counts in place of the paths that a limited
    search finds.

    Args:
        longest: number of bonds K of the longest paths.

    The encoding reads `edge_index` `[2, E]`, undirected. The encoding yields pair values `[num_pairs, K]`.

    Raises:
        ValueError: `longest` below 1; in `forward`, an edge that is not within a molecule, or more than `MOST_PATHS`
            paths of a molecule.
    """

    fixed = True

    def __init__(self, longest: int = 8) -> None:
        super().__init__()
        if longest < 1:
            raise ValueError(f"expected paths of at least 1 bond, got {longest}")
        self.longest = longest
        self.pair: ContinuousFeatureSpec = ContinuousFeatureSpec(longest)

    @torch.compiler.disable  # which would look into the loop
    @torch.no_grad()
    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        neighbours = graph.pair_index[:, graph.pair_of(data.edge_index).unique()]  # each of them once
        *bonds, _ = sort_by_receiver(neighbours, graph)
        counts = torch.zeros(graph.num_pairs, self.longest, dtype=torch.long, device="cpu")
        paths = torch.zeros(graph.num_graphs, dtype=torch.long, device="cpu")
        run_in_threads(count_simple_paths, bonds[1] * 50, *bonds, MOST_PATHS, counts, paths)
        if (paths > MOST_PATHS).any():
            raise ValueError(
                f"more than {MOST_PATHS:,} simple paths of up to {self.longest} bonds: `longest` must be smaller"
            )
        return None, counts.to(graph.ptr.device, torch.get_default_dtype()).log1p()


@compiled_loop
def count_simple_paths(first, last, ptr, pair_ptr, start, sender, most, counts, paths):
    """Count the simple paths from each node, depth first, `gtx.encodings.SimplePathCounts`, molecule by molecule.

    Args:
        first, last: the molecules, `last` not included.
        ptr, pair_ptr: `[B + 1]`, of the graph.
        start, sender: of `sort_by_receiver`, each pair of neighbours once.
        most: number of paths of a molecule at which the count ends.
        counts: `[num_pairs, K]`, zeros, the result.
        paths: `[B]`, the number of paths of each molecule, at most `most + 1`.
    """
    longest = counts.shape[1]
    node, place = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    for graph in range(first, last):
        begin, number = ptr[graph], 0
        n = ptr[graph + 1] - begin
        on_path = np.zeros(n, np.bool_)
        for r in range(n):
            depth, node[0], place[0], on_path[r] = 0, r, start[begin + r], True
            while depth >= 0 and number <= most:
                at = place[depth]
                if depth == longest or at == start[begin + node[depth] + 1]:
                    on_path[node[depth]] = False
                    depth -= 1
                    continue
                place[depth] += 1
                s = sender[at] - begin
                if not on_path[s]:
                    depth += 1
                    number += 1
                    node[depth], place[depth], on_path[s] = s, start[begin + s], True
                    counts[pair_ptr[graph] + r * n + s, depth - 1] += 1
        paths[graph] = number


# --- The bonds along the shortest path between two atoms.


class ShortestPathBonds(Encoding):
    r"""Encoding of pairs of atoms by the bonds along the shortest paths between them, by bond type and position on the
    path.

    For receiver r and sender s at a distance of d bonds, position n (from 1, counted from r) and bond type t,

    \[ c_{rs}[n, t] = \frac{1}{\min(d, L)} \, \frac{\#\{\text{shortest paths whose n-th bond has type t}\}}
       {\#\{\text{shortest paths}\}} \]

    A linear map of c, as models apply to pair values, is the mean over the path of one learned weight for each position
    and bond type. Paths longer than L give their first L bonds; an atom with itself, and two atoms farther apart than
    `farthest` or not connected, have zeros.

    Counts are summed along all bonds that lead away from r, one distance after the other: a pair at distance d has the
    paths of all pairs (r, w) at d - 1 with w bonded to s. A compiled loop over the molecules does so.

    Source: the edge encoding of Graphormer, Ying et al. 2021 (arXiv:2106.05234), eq. 7. Graphormer uses ONE shortest
    path, which depends on the numbering of the atoms. The encoding uses the MEAN OVER ALL shortest paths, which does
    not depend on the numbering. Both are equal if there is only one shortest path, as for any two atoms of a molecule
    without rings.

    Args:
        bond_size: number T of codes of the first column of `edge_attr`.
        length: largest position L on a path that has separate features.
        farthest: largest distance in bonds; pairs farther apart have zeros, which limits the computing time.

    The encoding reads `edge_index` `[2, E]`, undirected, and the first column of `edge_attr`, int64 `[E, F]`. The
    encoding yields pair values `[num_pairs, L * T]`, position-major.

    Raises:
        ValueError: a size, length or distance below 1; in `forward`, no bond types, and on a CPU a bond type that is
            not there or an edge that is not within a molecule.
    """

    fixed = True

    def __init__(self, bond_size: int, length: int = 5, farthest: int = 20) -> None:
        super().__init__()
        if min(bond_size, length, farthest) < 1:
            raise ValueError(
                f"expected sizes of at least 1, got bond_size={bond_size}, length={length}, farthest={farthest}"
            )
        self.bond_size = bond_size
        self.length = length
        self.farthest = farthest
        self.distance: ShortestPathLength = ShortestPathLength(farthest)
        self.pair: ContinuousFeatureSpec = ContinuousFeatureSpec(length * bond_size)

    @torch.compiler.disable  # which would look into the loop
    @torch.no_grad()
    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        bond = integer_codes(data, "edge_attr")[:, 0].cpu().long()
        E, T = data.edge_index.shape[1], self.bond_size
        if len(bond) != E or (E and not 0 <= bond.min() <= bond.max() < T):
            raise ValueError(f"expected a bond type from 0 to {T - 1} for each of {E} edges")
        distance = self.distance(data, graph)[1].squeeze(1).cpu()
        *bonds, order = sort_by_receiver(data.edge_index, graph)
        dtype = torch.promote_types(torch.get_default_dtype(), torch.float32)
        counts = torch.zeros(graph.num_pairs, self.length * T, dtype=dtype, device="cpu")
        arguments = (*bonds, bond[order], T, distance, self.farthest, counts)
        run_in_threads(average_bonds_along_paths, bonds[1] * (10 + self.length * T), *arguments)
        return None, counts.to(graph.ptr.device, torch.get_default_dtype())


@compiled_loop
def average_bonds_along_paths(first, last, ptr, pair_ptr, start, sender, bond, types, distance, farthest, counts):
    """Find the bonds along shortest paths, `gtx.encodings.ShortestPathBonds`, molecule by molecule.

    Args:
        first, last: the molecules, `last` not included.
        ptr, pair_ptr: `[B + 1]`, of the graph.
        start: `[N + 1]`; the bonds into node r are number `start[r]` to `start[r + 1]`.
        sender: `[E]`, where each comes from.
        bond: `[E]`, the type of each.
        types: T, how many there are.
        distance: `[num_pairs]`, codes of `ShortestPathLength`.
        farthest: distance that counts.
        counts: `[num_pairs, L * T]`, zeros, the result.
    """
    length = counts.shape[1] // types
    most = 0
    for graph in range(first, last):
        most = max(most, ptr[graph + 1] - ptr[graph])
    paths, order, place = np.empty(most, counts.dtype), np.empty(most, np.int64), np.empty(most + 2, np.int64)
    for graph in range(first, last):
        begin = ptr[graph]
        n = ptr[graph + 1] - begin
        for r in range(n):
            pairs = pair_ptr[graph] + r * n
            away = distance[pairs : pairs + n]
            reached = order_by_distance(away, min(farthest, n), place, order)
            paths[:n] = 0
            paths[r] = 1
            for i in range(reached):
                s = order[i]
                d, count = away[s], counts[pairs + s]
                for at in range(start[begin + s], start[begin + s + 1]):
                    before = sender[at] - begin
                    if away[before] + 1 == d:
                        paths[s] += paths[before]
                        less = counts[pairs + before]
                        for c in range(min(d - 1, length) * types):
                            count[c] += less[c]
                        if d <= length:
                            count[(d - 1) * types + bond[at]] += paths[before]
            for i in range(reached):
                s = order[i]
                d, count = min(away[s], length), counts[pairs + s]
                bonds = counts.dtype.type(max(paths[s] * d, 1))
                for c in range(d * types):
                    count[c] /= bonds


@njit
def order_by_distance(distance, farthest, place, order):
    """Put the nodes no farther than `farthest` into `order`, nearest first, and say how many they are."""
    place[: farthest + 2] = 0
    for d in distance:
        if d <= farthest:
            place[d + 1] += 1
    for d in range(farthest + 1):
        place[d + 1] += place[d]
    for s in range(len(distance)):
        if distance[s] <= farthest:
            order[place[distance[s]]] = s
            place[distance[s]] += 1
    return place[farthest]


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
        same = data.edge_index.new_zeros(graph.num_pairs, 1, dtype=torch.long)
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


def _connected(group: Tensor, rows: Tensor, steps: Tensor, most_steps: int) -> Tensor:
    """Rows a and c `[2, *]` such that steps lead from a to c, by one small matrix for each group of rows."""
    _, counts = group.unique_consecutive(return_counts=True)
    group, slot = ragged(counts)
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
