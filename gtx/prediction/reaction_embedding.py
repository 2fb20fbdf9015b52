"""Embeddings of reactions by a network that reads molecules: those of both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Batch, Data

from gtx.graph.sides import split_sides
from gtx.molecules.graphs import ATOM_INDEX, atom_code

HYDROGENS, DEGREE = ATOM_INDEX["hydrogens"], ATOM_INDEX["degree"]
Sizes = Sequence[Sequence[int]]
"""Numbers of codes of atom columns and of bond columns, see `gtx.graph.sides.split_sides`."""


def embed_reactions(embed: Callable[[Batch], Tensor], batch: Batch, sizes: Sizes) -> Tensor:
    """Embed B reactions by an embedding of molecules `[molecules, width]`: float32 `[B, 2 width]`.

    The first half is the sum over the molecules of the first side; the second half is that of the second side minus
    that of the first.
    """
    first, second = (_embed_side(embed, side, sizes[0]) for side in split_sides(batch, *sizes))
    return torch.cat([first, second - first], 1)


def _embed_side(embed: Callable[[Batch], Tensor], side: Data, atom_sizes: Sequence[int]) -> Tensor:
    molecules, owner = separate_molecules(side, atom_sizes)
    each = embed(molecules)
    return each.new_zeros(side.num_graphs, each.shape[1]).index_add_(0, owner, each)


def separate_molecules(side: Data, atom_sizes: Sequence[int]) -> tuple[Batch, Tensor]:
    """Divide one side of reactions by `split_sides` into its molecules, with hydrogens as a count of their neighbours;
    return them and the reaction of each, int64 `[molecules]`.
    """
    x, (sender, receiver) = side.x.clone(), side.edge_index
    element = x[:, ATOM_INDEX["element"]]
    plain = (element == atom_code("element", 1)) & (x[:, ATOM_INDEX["isotope"]] == atom_code("isotope", False))
    bonds = torch.zeros_like(element).index_add_(0, receiver, torch.ones_like(receiver))
    heavy = torch.zeros_like(element).index_add_(0, receiver, (~plain[sender]).long())
    counted = plain & (bonds == 1) & (heavy == 1)
    number = torch.zeros_like(element).index_add_(0, receiver, counted[sender].long())
    more = (x[:, HYDROGENS] > 0) & (number > 0)
    total = x[:, HYDROGENS] + number
    x[:, HYDROGENS] = torch.where(more, torch.where(total > atom_code("hydrogens", 4), 0, total), x[:, HYDROGENS])
    x[:, DEGREE] -= number
    kept = (x[:, DEGREE] != atom_sizes[DEGREE] - 2) & ~counted
    bond = kept[sender] & kept[receiver]
    place = kept.cumsum(0) - 1
    edges = place[side.edge_index[:, bond]]
    count, ends = int(kept.sum()), edges.cpu().numpy()
    _, label = connected_components(coo_array((ends[0] >= 0, (ends[0], ends[1])), shape=(count, count)), directed=False)
    molecule = torch.from_numpy(label).to(x.device, torch.long)
    order = molecule.argsort(stable=True)
    new = torch.empty_like(order).scatter_(0, order, torch.arange(count, device=x.device))
    sizes = torch.bincount(molecule)
    contents = {
        "x": x[kept][order],
        "edge_index": new[edges],
        "edge_attr": side.edge_attr[bond],
        "batch": molecule[order],
        "ptr": torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
    }
    owner = side.batch[kept][order][contents["ptr"][:-1]]
    return Batch(_base_cls=Data, **contents), owner
