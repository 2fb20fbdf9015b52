"""Encodings by paths: the length of the shortest, the bonds along it, the number of all simple paths, common rings."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch_geometric.data import Data

from gtx.base.loops import compiled_loop
from gtx.encodings.encoding import CategoricalFeatureSpec, ContinuousFeatureSpec, Encoding, integer_codes
from gtx.graph import CompleteGraph
from gtx.graph.edge_selectors import adjacency, flatten
from gtx.graph.packing import offsets

# --- Bonds as compiled loops read them: on the processor, whatever the device of the batch.


def sort_by_receiver(edge_index: Tensor, graph: CompleteGraph) -> tuple[np.ndarray, ...]:
    """Sort edges (int64 `[2, E]`) by receiver.

    Returns:
        `ptr` and `pair_ptr` of the graph; int64 `[N + 1]`, where the edges into each node start, and
        the last end; and int64 `[E]`, the sender of each edge and its place in `edge_index`.

    Raises:
        ValueError: an edge that is not within a molecule, or a graph with a ghost, whose pairs are not those of its
            atoms.
    """
    if graph.has_ghost:
        raise ValueError(f"expected a graph of molecules alone, got a {type(graph).__name__}")
    edge_index, graph = edge_index.cpu().long(), graph if graph.ptr.device.type == "cpu" else graph.to("cpu")
    graph.pair_of(edge_index)  # an edge out of its molecule would lead a loop out of its arrays
    sender, receiver = edge_index.unbind()
    order = receiver.argsort(stable=True)
    start = offsets(torch.bincount(receiver, minlength=graph.num_nodes))
    return tuple(each.numpy() for each in (graph.ptr, graph.pair_ptr, start, sender[order], order))


@njit
def find_distances(node, i, j, begin, start, sender, largest, distance, queue):
    """Find the bonds from a node to each node of its molecule, breadth first, without the bond of i and j, if any.

    A distance is `largest` where it is that or more; the nodes that are nearer are put into `queue`, nearest first, and
    their number is returned.
    """
    distance[:] = largest
    distance[node] = 0
    queue[0] = node
    at, end = 0, 1
    while at < end and distance[queue[at]] < largest - 1:
        r = queue[at]
        at += 1
        for bond in range(start[begin + r], start[begin + r + 1]):
            s = sender[bond] - begin
            if distance[s] == largest and not ((r == i and s == j) or (r == j and s == i)):
                distance[s] = distance[r] + 1
                queue[end] = s
                end += 1
    return end


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
        counts = np.zeros((graph.num_pairs, self.longest), np.int64)
        if count_simple_paths(*bonds, MOST_PATHS, counts) > MOST_PATHS:
            raise ValueError(
                f"more than {MOST_PATHS:,} simple paths of up to {self.longest} bonds: `longest` must be smaller"
            )
        return None, torch.from_numpy(counts).to(graph.ptr.device, torch.get_default_dtype()).log1p()


@compiled_loop
def count_simple_paths(ptr, pair_ptr, start, sender, most, counts):
    """Count the simple paths from each node, depth first, `gtx.encodings.SimplePathCounts`, molecule by molecule.

    Args:
        ptr, pair_ptr, start, sender: of `sort_by_receiver`, each pair of neighbours once.
        most: number of paths of a molecule above which the count ends.
        counts: `[num_pairs, K]`, zeros, the result.

    Returns:
        The largest number of paths of a molecule, at most `most + 1`.
    """
    longest, largest = counts.shape[1], 0
    node, place = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    for graph in range(len(ptr) - 1):
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
        largest = max(largest, number)
    return largest


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
        self.pair: ContinuousFeatureSpec = ContinuousFeatureSpec(length * bond_size)

    @torch.compiler.disable  # which would look into the loop
    @torch.no_grad()
    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        bond = integer_codes(data, "edge_attr")[:, 0].cpu().long()
        E, T = data.edge_index.shape[1], self.bond_size
        if len(bond) != E or (E and not 0 <= bond.min() <= bond.max() < T):
            raise ValueError(f"expected a bond type from 0 to {T - 1} for each of {E} edges")
        *bonds, order = sort_by_receiver(data.edge_index, graph)
        dtype = torch.promote_types(torch.get_default_dtype(), torch.float32)
        counts = torch.zeros(graph.num_pairs, self.length * T, dtype=dtype, device="cpu")
        average_bonds_along_paths(*bonds, bond.numpy()[order], T, self.farthest, counts.numpy())
        return None, counts.to(graph.ptr.device, torch.get_default_dtype())


@compiled_loop
def average_bonds_along_paths(ptr, pair_ptr, start, sender, bond, types, farthest, counts):
    """Find the bonds along shortest paths, `gtx.encodings.ShortestPathBonds`, molecule by molecule.

    Args:
        ptr, pair_ptr, start, sender: of `sort_by_receiver`.
        bond: `[E]`, the type of each.
        types: T, how many there are.
        farthest: distance that counts.
        counts: `[num_pairs, L * T]`, zeros, the result.
    """
    length = counts.shape[1] // types
    for graph in range(len(ptr) - 1):
        begin = ptr[graph]
        n = ptr[graph + 1] - begin
        paths, away, order = np.empty(n, counts.dtype), np.empty(n, np.int64), np.empty(n, np.int64)
        for r in range(n):
            pairs = pair_ptr[graph] + r * n
            reached = find_distances(r, -1, -1, begin, start, sender, farthest + 1, away, order)
            paths[:] = 0
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


# --- Which atoms lie on a common ring.


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
        ValueError: `largest` below 3; in `forward`, an edge that is not within a molecule.
    """

    fixed = True

    def __init__(self, largest: int = 12) -> None:
        super().__init__()
        if largest < 3:
            raise ValueError(f"expected rings of at least 3 bonds, got {largest}")
        self.largest = largest
        self.pair: CategoricalFeatureSpec = CategoricalFeatureSpec((2,))

    @torch.compiler.disable  # which would look into the loop
    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        *bonds, _ = sort_by_receiver(data.edge_index, graph)
        same = np.zeros((graph.num_pairs, 1), np.int64)
        mark_common_rings(*bonds, self.largest, same)
        return None, torch.from_numpy(same).to(graph.ptr.device)


@compiled_loop
def mark_common_rings(ptr, pair_ptr, start, sender, largest, same):
    """Mark the pairs of nodes on a common smallest ring, `gtx.encodings.SameRing`, molecule by molecule.

    Args:
        ptr, pair_ptr, start, sender: of `sort_by_receiver`.
        largest: size of the largest ring.
        same: `[num_pairs, 1]`, zeros, the result.
    """
    for graph in range(len(ptr) - 1):
        begin = ptr[graph]
        n = ptr[graph + 1] - begin
        of_i, of_j, of_a = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        queue, ring = np.empty(n, np.int64), np.empty(n, np.int64)
        for j in range(n):
            for bond in range(start[begin + j], start[begin + j + 1]):
                i = sender[bond] - begin
                if i >= j:
                    continue
                find_distances(i, i, j, begin, start, sender, largest, of_i, queue)
                length = of_i[j]
                if length == largest:  # no ring, or a larger one
                    continue
                find_distances(j, i, j, begin, start, sender, largest, of_j, queue)
                size = 0
                for a in range(n):
                    if of_i[a] + of_j[a] == length:
                        ring[size] = a
                        size += 1
                for a in ring[:size]:
                    find_distances(a, i, j, begin, start, sender, largest, of_a, queue)
                    for c in ring[:size]:
                        if of_i[a] + of_a[c] + of_j[c] == length:
                            same[pair_ptr[graph] + a * n + c, 0] = 1
                            same[pair_ptr[graph] + c * n + a, 0] = 1
