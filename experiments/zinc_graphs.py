"""The graphs of the ZINC-12k benchmark: atom and bond types, no other chemistry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from experiments.on_store import Molecules
from gtx.data import MoleculeStore
from gtx.errors import InputError

ATOM_TYPES, BOND_TYPES = 28, 3
SIZES = {"atom_sizes": [ATOM_TYPES + 1], "bond_sizes": [BOND_TYPES + 1]}  # code 0 means "other"
PARTS = ("train", "val", "test")


def graphs(table: Path) -> Molecules:
    """The 12,000 graphs of Dwivedi et al. 2020 (arXiv:2003.00982), in the order of the table of their SMILES.

    They lie beside the table as `zinc12k_graphs.npz`, flat arrays for each part: `num_atom`, `atom_type` (0 to 27),
    `y`, `num_edge`, `src`, `dst`, `bond_type` (1 to 3). Where it is missing it is made of PyG's `ZINC`, downloaded.

    Args:
        table: `zinc12k.csv`.

    Raises:
        InputError: the graphs are neither there nor to be had.
    """
    file = table.with_name("zinc12k_graphs.npz")
    if not file.exists():
        _download(file)
    with np.load(file) as arrays:
        parts = {part: _of(arrays, part) for part in PARTS}
    flat = {name: np.concatenate([parts[part][name] for part in PARTS]) for name in parts["train"]}
    split, start = {}, 0
    for part in PARTS:
        split[part] = np.arange(start, start := start + len(parts[part]["y"]))
    return Molecules(store(flat), split, np.arange(start), ["y"], file)


def store(flat: Mapping[str, np.ndarray]) -> MoleculeStore:
    """Flat arrays as a store: one column of codes per atom and per bond, type i as code i + 1 and i."""
    types, bonds = flat["atom_type"].astype(int), flat["bond_type"].astype(int)
    if types.min() < 0 or types.max() >= ATOM_TYPES or bonds.min() < 1 or bonds.max() > BOND_TYPES:
        raise ValueError(
            f"expected atom types 0 to {ATOM_TYPES - 1} and bond types 1 to {BOND_TYPES}, "
            f"got {types.min()} to {types.max()} and {bonds.min()} to {bonds.max()}"
        )
    return MoleculeStore(
        atoms=torch.from_numpy(types + 1).to(torch.uint8)[:, None],
        bonds=torch.from_numpy(np.stack([flat["src"], flat["dst"]]).astype(np.int32)),
        bond_codes=torch.from_numpy(bonds).to(torch.uint8)[:, None],
        descriptors=torch.zeros(len(flat["y"]), 0),
        atom_ptr=_offsets(flat["num_atom"]),
        bond_ptr=_offsets(flat["num_edge"]),
    ).with_targets(flat["y"].astype(np.float64)[:, None])


def from_pyg(data: Iterable[Data]) -> dict[str, np.ndarray]:
    """Graphs of `torch_geometric.datasets.ZINC` as flat arrays."""
    data = list(data)
    return {
        "num_atom": np.array([one.num_nodes for one in data], np.int16),
        "atom_type": np.concatenate([one.x.numpy().ravel() for one in data]).astype(np.int8),
        "y": np.concatenate([one.y.numpy().ravel() for one in data]).astype(np.float32),
        "num_edge": np.array([one.num_edges for one in data], np.int16),
        "src": np.concatenate([one.edge_index[0].numpy() for one in data]).astype(np.int16),
        "dst": np.concatenate([one.edge_index[1].numpy() for one in data]).astype(np.int16),
        "bond_type": np.concatenate([one.edge_attr.numpy().ravel() for one in data]).astype(np.int8),
    }


def _of(arrays: Mapping[str, np.ndarray], part: str) -> dict[str, np.ndarray]:
    names = ("num_atom", "atom_type", "y", "num_edge", "src", "dst", "bond_type")
    return {name: arrays[f"{part}_{name}"] for name in names}


def _download(file: Path) -> None:
    from torch_geometric.datasets import ZINC

    try:
        parts = {part: from_pyg(ZINC(str(file.parent / "pyg"), subset=True, split=part)) for part in PARTS}
    except Exception as reason:
        raise InputError(f"the graphs of ZINC-12k are not at {file}, and PyG cannot get them: {reason}") from reason
    partial = file.with_suffix(".partial.npz")
    np.savez_compressed(partial, **{f"{part}_{name}": a for part, flat in parts.items() for name, a in flat.items()})
    partial.replace(file)


def _offsets(counts: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]))
