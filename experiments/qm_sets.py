"""Molecules with quantum-chemical energies and coordinates: atomic numbers and positions, nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from experiments.on_store import Molecules
from experiments.qm_files import obtain
from gtx.data import MoleculeStore, random_split
from gtx.molecules import ATOM_COLUMNS

RADII = {1: 0.31, 5: 0.84, 6: 0.76, 7: 0.71, 8: 0.66, 9: 0.57, 14: 1.11, 15: 1.07, 16: 1.05, 17: 1.02, 35: 1.20}
"""Covalent radii, Å (Cordero et al. 2008, https://doi.org/10.1039/B801115J)."""
REACH = 1.15  # two atoms nearer than so many times the sum of their radii are bonded; 1.2 joins carbons across cages
SIZES = {"atom_sizes": [len(values) + 1 for values in ATOM_COLUMNS.values()], "bond_sizes": [2]}


class Source(NamedTuple):
    """A target of one of the files.

    Attributes:
        file: below the folder of data sets.
        target: its name; a column of `targets`, or an array of its own.
        unit: as a reader is told.
        factor: from the file's unit to that one.
        extensive: whether it grows with the molecule: the sum over atoms, and a reference per element is taken off.
    """

    file: str
    target: str
    unit: str
    factor: float = 1.0
    extensive: bool = True


HARTREE = 27.211386  # eV
SOURCES = {
    "qm9-gap": Source("qm9/qm9_3d_3000.npz", "gap", "meV", 1000 * HARTREE, extensive=False),
    "qm9-u0": Source("qm9/qm9_3d_3000.npz", "u0_atom", "kcal/mol"),
    "qm7-energy": Source("qm7/qm7_qml_7101.npz", "energy_pbe0", "kcal/mol"),
}


def molecules(name: str, split: int) -> Molecules:
    """The molecules of one target, downloaded if need be; a tenth for validation, a tenth for test, by a seed.

    Raises:
        InputError: the file is neither at hand nor to be had.
    """
    source = SOURCES[name]
    root = Path(os.environ.get("GTX_DATA") or Path.home() / ".cache" / "gtx").expanduser()
    if not (root / source.file).is_file():
        obtain(root / source.file)
    with np.load(root / source.file) as arrays:
        if source.target in arrays:
            y = arrays[source.target]
        else:
            y = arrays["targets"][:, arrays["target_names"].tolist().index(source.target)]
        made = store(arrays["num_atoms"], arrays["Z"], arrays["R"]).with_targets(source.factor * y[:, None])
    count = len(made)
    return Molecules(made, random_split(count, seed=split), np.arange(count), [source.target], root / source.file)


def store(num_atoms: np.ndarray, numbers: np.ndarray, positions: np.ndarray) -> MoleculeStore:
    """Molecules laid end to end; of the columns of `ATOM_COLUMNS` the element alone is told, the others say "other".

    Args:
        num_atoms: `[m]`.
        numbers: atomic numbers, `[n]`.
        positions: Å, `[n, 3]`.
    """
    numbers, num_atoms = numbers.astype(np.int64), num_atoms.astype(np.int64)
    ends, bond_counts = perceived_bonds(num_atoms, numbers, positions)
    codes = np.zeros((len(numbers), len(ATOM_COLUMNS)), np.uint8)
    codes[:, list(ATOM_COLUMNS).index("element")] = numbers  # value i has code i + 1, and the first value is 1
    return MoleculeStore(
        atoms=torch.from_numpy(codes),
        bonds=torch.from_numpy(ends.astype(np.int32)),
        bond_codes=torch.ones(ends.shape[1], 1, dtype=torch.uint8),
        descriptors=torch.zeros(len(num_atoms), 0),
        atom_ptr=_offsets(num_atoms),
        bond_ptr=_offsets(bond_counts),
        positions=torch.from_numpy(positions).float(),
        atom_columns=tuple(ATOM_COLUMNS),
    )


def perceived_bonds(num_atoms: np.ndarray, numbers: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bonds by distance: atoms nearer than `REACH` times the sum of their covalent radii.

    Returns:
        Senders and receivers, numbered within their molecule, `[2, e]`, both directions; and how many each has, `[m]`.

    Raises:
        ValueError: an element without a radius.
    """
    if unknown := sorted(set(np.unique(numbers).tolist()) - RADII.keys()):
        raise ValueError(f"expected elements out of {sorted(RADII)}, got {unknown}")
    radii = np.array([RADII[int(number)] for number in numbers])
    ends, counts, start = [], [], 0
    for size in num_atoms.tolist():
        own = slice(start, start := start + size)
        apart = np.linalg.norm(positions[own, None] - positions[None, own], axis=-1)
        near = apart < REACH * (radii[own, None] + radii[None, own])
        np.fill_diagonal(near, False)
        ends.append(np.stack(np.nonzero(near)))
        counts.append(ends[-1].shape[1])
    return np.concatenate(ends, axis=1), np.array(counts)


def _offsets(counts: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]))
