"""Batches of constant shape, cut out of a store: what a CUDA graph can hold."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.data.kept import Kept
from gtx.data.store import MoleculeStore, as_batch
from gtx.graph.capacity import Capacity, CapacityGraph, owners


def cut_to_capacity(store: MoleculeStore, index: Tensor, capacity: Capacity, kept: Kept | None = None) -> Batch:
    """Molecules as one PyG batch of constant shape, cut out where the store lives without a word to the host.

    It has `capacity.molecules` places and, as its last graph, a ghost that owns what the molecules leave over:
    atoms and bonds of code 0, no descriptors, no features, no position, no target, no weight. Targets of empty places
    are NaN too, so that a loss which leaves blanks out leaves them out.

    Args:
        store: the molecules.
        index: which molecules, int64 `[capacity.molecules]` on the store's device, the largest first as
            `CapacitySampler` orders them; -1 for an empty place.
        capacity: of the batch.
        kept: features that were worked out before.

    Returns:
        As `MoleculeStore.batch`, with `num_graphs` of `capacity.molecules + 1`, `row` -1 for empty places and the
        ghost, and `graph`, the `gtx.graph.CapacityGraph` of the molecules, `molecules`, their number, int64 `[]`, and
        `kept`, by name, the features of atoms and pairs that were.
    """
    taken = index >= 0
    which = index.clamp(min=0)
    sizes, bonds = (torch.where(taken, ptr.diff()[which], 0) for ptr in (store.atom_ptr, store.bond_ptr))
    graph = CapacityGraph.from_sizes(sizes, capacity)
    ghost = len(index)

    def rows(ptr: Tensor, new_ptr: Tensor, owner: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """For each new row, the row of the store it comes from, and whether it is of a molecule."""
        of = owner.clamp(max=ghost - 1)
        old = ptr[which[of]] + torch.arange(count, device=ptr.device) - new_ptr[of]
        return torch.where(owner < ghost, old, 0), owner < ghost

    bond_ptr = torch.cat([bonds.new_zeros(1), bonds.cumsum(0), bonds.new_full((1,), capacity.bonds)])
    bond_owner = owners(bond_ptr, capacity.bonds)
    atom, real_atom = rows(store.atom_ptr, graph.ptr, graph.batch, capacity.atoms)
    bond, real_bond = rows(store.bond_ptr, bond_ptr, bond_owner, capacity.bonds)

    def filled(values: Tensor, row: Tensor, real: Tensor, fill: float) -> Tensor:
        return torch.where(real[:, None], values[row], fill)

    none = torch.zeros(1, dtype=torch.bool, device=index.device)
    row, real = torch.cat([which, which[:1]]), torch.cat([taken, none])
    ends = store.bonds.T[bond].long() + graph.ptr[bond_owner][:, None]
    contents = {
        "x": filled(store.atoms, atom, real_atom, 0).long(),
        "edge_index": torch.where(real_bond[:, None], ends, capacity.atoms - 1).T.contiguous(),
        "edge_attr": filled(store.bond_codes, bond, real_bond, 0).long(),
        "u": filled(store.descriptors, row, real, torch.nan),
        "batch": graph.batch,
        "ptr": graph.ptr,
        "row": torch.where(real, row, -1),
        "molecules": taken.sum(),
        "graph": graph,
    }
    if store.positions is not None:
        contents["pos"] = filled(store.positions, atom, real_atom, torch.nan)
    if store.y is not None:
        contents["y"] = filled(store.y.float(), row, real, torch.nan)
    if store.bounds is not None:
        contents["bounds"] = filled(store.bounds.float(), row, real, torch.nan)
    if store.weights is not None:
        contents["weights"] = torch.where(real, store.weights.float()[row], 0)
    for per, place, there in (("atom", atom, real_atom), ("bond", bond, real_bond)):
        for name in (f"{per}_y", f"{per}_features"):
            if (values := getattr(store, name)) is not None:
                contents[name] = filled(values.float(), place, there, torch.nan)
    if kept is not None:
        pair, _ = rows(kept.pair_ptr, graph.pair_ptr, owners(graph.pair_ptr, capacity.pairs), capacity.pairs)
        contents["kept"] = kept.cut(atom, pair)
    return as_batch(contents, _num_graphs=ghost + 1)
