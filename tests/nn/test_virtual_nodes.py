"""Virtual nodes, and bonds as nodes, beside the atoms."""

import pytest
import torch
from torch import Tensor

from gtx.graph import CompleteGraph
from gtx.nn import AddBondNodes, AddVirtualNodes

SIZES = [3, 0, 1, 5]
GRAPH = CompleteGraph.from_ptr(torch.tensor([0, *SIZES]).cumsum(0))


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.randn(GRAPH.num_nodes, 6, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(GRAPH.num_pairs, 4, dtype=torch.float64, requires_grad=True)


def test_atoms_and_their_pairs_keep_their_features_and_the_new_ones_are_learned() -> None:
    layer = AddVirtualNodes(2, 6, 4).double()
    x, e = inputs()
    larger, nodes, everything, pairs = layer(GRAPH, x, e)
    assert everything.shape == (sum(SIZES) + 2 * len(SIZES), 6) and pairs.shape == (larger.num_pairs, 4)
    assert everything[nodes.atoms].equal(x)
    assert everything[nodes.virtual].view(len(SIZES), 2, 6).eq(layer.node).all()
    old = torch.zeros(larger.num_pairs, dtype=torch.bool)
    for number, (sender, receiver) in enumerate(GRAPH.pair_index.T.tolist()):
        ends = torch.stack([nodes.atoms[sender], nodes.atoms[receiver]])
        same = (larger.pair_index == ends[:, None]).all(0)
        assert int(same.sum()) == 1 and pairs[same][0].equal(e[number])
        old |= same
    assert pairs[~old].eq(layer.pair).all() and int((~old).sum()) == larger.num_pairs - GRAPH.num_pairs


# --- Bonds become nodes that know their atoms.


CHAINS = CompleteGraph.from_ptr(torch.tensor([0, 3, 3, 4, 6]))  # a chain of three, nothing, one atom, two atoms
BONDS = torch.tensor([[4, 0, 1, 5, 1, 2], [5, 1, 0, 4, 2, 1]])
CODES = torch.tensor([[2], [1], [1], [2], [3], [3]])


def make() -> AddBondNodes:
    torch.manual_seed(0)
    return AddBondNodes([4], 5, 2).double()


def features() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(6, 5, dtype=torch.float64, generator=generator)
    return x, torch.randn(CHAINS.num_pairs, 2, dtype=torch.float64, generator=generator)


def test_atoms_come_first_then_bonds_by_their_molecule() -> None:
    layer, (x, e) = make(), features()
    larger, (atoms, virtual), nodes, _ = layer(CHAINS, x, e, BONDS, CODES)
    assert virtual is None and larger.mask is None
    assert larger.ptr.tolist() == [0, 5, 5, 6, 9] and atoms.tolist() == [0, 1, 2, 5, 6, 7]
    assert nodes[atoms].equal(x)
    table = layer.bond_embedding(torch.tensor([[1], [3], [2]])) + layer.kind
    assert nodes[[3, 4, 8]].equal(table)


@pytest.mark.parametrize("given", [True, False])
def test_pairs_tell_what_two_tokens_have_in_common(given: bool) -> None:
    layer, (x, e) = make(), features()
    larger, (atoms, _), _, pairs = layer(CHAINS, x, e if given else None, BONDS, CODES)
    members = {token: {token} for token in range(larger.num_nodes)} | {3: {0, 1}, 4: {1, 2}, 8: {6, 7}}
    old = larger.pair_of(atoms[CHAINS.pair_index]).tolist()
    for number, (u, t) in enumerate(larger.pair_index.T.tolist()):
        kinds = 2 * (t in (3, 4, 8)) + (u in (3, 4, 8))
        common = 2 if t == u else 1 if members[t] & members[u] else 0
        expected = layer.common[3 * kinds + common]
        if given and number in old:
            expected = expected + e[old.index(number)]
        assert pairs[number].equal(expected), (t, u)


def test_masked_pairs_stay_masked_and_an_atom_without_edges_gets_none() -> None:
    layer, (x, e) = make(), features()
    graph = CHAINS.masked((CHAINS.pair_index != 1).all(0) & (CHAINS.pair_index[0] != 3))
    larger, (atoms, _), _, _ = layer(graph, x, e, BONDS[:, [0, 3]], CODES[[0, 3]])
    assert larger.ptr.tolist() == [0, 3, 3, 4, 7]
    assert larger.mask[larger.pair_of(atoms[CHAINS.pair_index])].equal(graph.mask)
    ends = set(larger.edge_index.flatten().tolist())
    assert ends == {0, 2, 4, 5, 6}  # atoms 1 and 3 have no edges, the bond 6 has all
    assert {(4, 6), (6, 4), (5, 6), (6, 5), (6, 6)} <= set(map(tuple, larger.edge_index.T.tolist()))


def test_bonds_in_one_direction_are_refused() -> None:
    with pytest.raises(ValueError, match="both directions, got 5 directed bonds, 3 of them from a lower"):
        make()(CHAINS, *features(), BONDS[:, :5], CODES[:5])
    with pytest.raises(ValueError, match="both directions, got 3 directed bonds, 1 of them"):
        make()(CHAINS, *features(), BONDS[:, [0, 3, 3]], CODES[[0, 3, 3]])
    with pytest.raises(ValueError, match="both directions, got 2 directed bonds, 1 of them"):
        make()(CHAINS, *features(), torch.tensor([[0, 2], [1, 1]]), CODES[[1, 4]])
