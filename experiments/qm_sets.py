"""Molecules with quantum-chemical energies and coordinates: atomic numbers and positions, nothing else."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
import pandas as pd
import torch
from rdkit import Chem

from experiments.runs import PublicSet, unlisted_dataset
from experiments.zinc import offsets
from gtx.base.errors import InputError
from gtx.base.files import whole_file
from gtx.data import MoleculeStore, random_split
from gtx.data.public_datasets import fetch
from gtx.molecules import ATOM_FEATURE_VALUES
from gtx.tasks import Regression
from gtx.training_data import Dataset, DataSettings

RADII = {1: 0.31, 5: 0.84, 6: 0.76, 7: 0.71, 8: 0.66, 9: 0.57, 14: 1.11, 15: 1.07, 16: 1.05, 17: 1.02, 35: 1.20}
"""Covalent radii, Å (Cordero et al. 2008, https://doi.org/10.1039/B801115J)."""
REACH = 1.15  # two atoms nearer than so many times the sum of their radii are bonded; 1.2 joins carbons across cages
SIZES = {"atom_sizes": [len(values) + 1 for values in ATOM_FEATURE_VALUES.values()], "bond_sizes": [2]}
HARTREE = 27.211386  # eV
QM9_EVERY, QM9_LAST = 40, 119_961  # gdb_1, gdb_41, ... gdb_119961


class Target(NamedTuple):
    """A target of one of the files.

    Attributes:
        file: its path below the folder of data sets.
        name: a column of `targets`, or an array of its own.
        factor: from the file's unit to that of the results.
        extensive: whether it grows with the molecule: the sum over atoms, and a reference per element is taken off.
    """

    file: str
    name: str
    factor: float = 1.0
    extensive: bool = True


@dataclass(frozen=True, kw_only=True)
class QuantumSet(PublicSet):
    """A target of molecules with coordinates, downloaded if need be; random splits 80/10/10, by seeds."""

    target: Target

    def data(self, split: int) -> DataSettings:
        root = Path(os.environ.get("GTX_DATA") or Path.home() / ".cache" / "gtx").expanduser()
        task = Regression((self.target.name,), loss="mae", element_reference=self.target.extensive)
        return DataSettings(str(root / self.target.file), task=task)

    def load(self, data: DataSettings, split: int, cache: Path) -> Dataset:
        file, target = Path(data.data), self.target
        if not file.is_file():
            obtain(file)
        with np.load(file) as arrays:
            if target.name in arrays:
                y = arrays[target.name]
            else:
                y = arrays["targets"][:, arrays["target_names"].tolist().index(target.name)]
            store = store_of(arrays["num_atoms"], arrays["Z"], arrays["R"]).with_targets(target.factor * y[:, None])
        return unlisted_dataset(data, store, random_split(len(store), seed=split), self.splits[split])


TARGETS = {
    "qm9-gap": Target("qm9/qm9_3d_3000.npz", "gap", 1000 * HARTREE, extensive=False),  # meV
    "qm9-u0": Target("qm9/qm9_3d_3000.npz", "u0_atom"),  # kcal/mol
    "qm7-energy": Target("qm7/qm7_qml_7101.npz", "energy_pbe0"),
}
SPLITS = ("random 0", "random 1", "random 2")
SETS = {name: QuantumSet(name, "mae", SPLITS, name, is_table=False, target=of) for name, of in TARGETS.items()}


def store_of(num_atoms: np.ndarray, numbers: np.ndarray, positions: np.ndarray) -> MoleculeStore:
    """Make a store; of the columns of `ATOM_FEATURE_VALUES` the element alone is filled, the others are "other".

    Args:
        num_atoms: `[m]`.
        numbers: atomic numbers, `[n]`.
        positions: Å, `[n, 3]`.
    """
    numbers, num_atoms = numbers.astype(np.int64), num_atoms.astype(np.int64)
    ends, bond_counts = perceived_bonds(num_atoms, numbers, positions)
    codes = np.zeros((len(numbers), len(ATOM_FEATURE_VALUES)), np.uint8)
    codes[:, list(ATOM_FEATURE_VALUES).index("element")] = numbers  # value i has code i + 1, and the first value is 1
    return MoleculeStore(
        atoms=torch.from_numpy(codes),
        bonds=torch.from_numpy(ends.astype(np.int32)),
        bond_codes=torch.ones(ends.shape[1], 1, dtype=torch.uint8),
        descriptors=torch.zeros(len(num_atoms), 0),
        atom_ptr=offsets(num_atoms),
        bond_ptr=offsets(bond_counts),
        positions=torch.from_numpy(positions).float(),
        atom_columns=tuple(ATOM_FEATURE_VALUES),
    )


def perceived_bonds(num_atoms: np.ndarray, numbers: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find bonds by distance: atoms nearer than `REACH` times the sum of their covalent radii.

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


class Source(NamedTuple):
    """Where a file comes from, and the SHA-256 of its molecules, see `digest`."""

    url: str
    sha256: str


SOURCES = {
    "qm7_qml_7101.npz": Source(
        "https://codeload.github.com/qmlcode/qml/tar.gz/8bb833cdbbe69405384d6796920c5418dc53b6ba",
        "952536732ee51ad09700aaa900e1497cfb0fb305fc263566d1b39cf48dabdef2",
    ),
    "qm9_3d_3000.npz": Source(
        "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/molnet_publish/qm9.zip",
        "7f1cf7f5b2615598cd7366263010c22dea541823654316524c1d4f7e1d2b716f",
    ),
}
"""QM7 (Rupp et al. 2012, https://doi.org/10.1103/PhysRevLett.108.058301) as the tests of qmlcode/qml have it, QM9
(Ramakrishnan et al. 2014, https://doi.org/10.1038/sdata.2014.22) as MoleculeNet serves it."""


def obtain(file: Path) -> None:
    """Download what a file is made of, and make it: `num_atoms` `[m]`, `Z` `[n]`, `R` `[n, 3]` Å, and targets.

    Raises:
        InputError: it cannot be had.
    """
    source = SOURCES[file.name]
    try:
        arrays = (qm7 if file.name.startswith("qm7") else qm9)(fetch(source.url))
        if (found := digest(arrays)) != source.sha256:
            raise ValueError(f"its molecules should have SHA-256 {source.sha256} and have {found}")
    except (OSError, HTTPException, ValueError, LookupError, tarfile.TarError, BadZipFile) as reason:
        raise InputError(
            f"{file} is not there, and cannot be made of {source.url}: {reason}. A copy made elsewhere can be put there"
        ) from None
    with whole_file(file) as opened:
        np.savez_compressed(opened, **arrays)


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Compute the SHA-256 of sizes, atomic numbers and positions in 0.0001 Å, in any precision."""
    parts = arrays["num_atoms"], arrays["Z"], np.rint(arrays["R"] * 1e4)
    return hashlib.sha256(b"".join(part.astype("<i4").tobytes() for part in parts)).hexdigest()


def qm7(archive: bytes) -> dict[str, np.ndarray]:
    """Read QM7 out of qml's archive: an XYZ file per molecule, and a list of PBE0 energies, kcal/mol."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        texts = {member.name.partition("/")[2]: tar.extractfile(member) for member in tar if member.isfile()}
        texts = {name: opened.read().decode() for name, opened in texts.items() if name.startswith("tests/")}
    heats = dict(line.split()[:2] for line in texts["tests/data/hof_qm7.txt"].splitlines() if line)
    names = sorted(Path(name).name for name in texts if name.startswith("tests/qm7/") and name.endswith(".xyz"))
    mols = [Chem.MolFromXYZBlock(texts[f"tests/qm7/{name}"]) for name in names]
    return {"xyz_name": np.array(names), "energy_pbe0": np.array([float(heats[name]) for name in names])} | _flat(mols)


def qm9(archive: bytes) -> dict[str, np.ndarray]:
    """Read every 40th molecule of QM9 out of MoleculeNet's `gdb9.sdf` and `gdb9.sdf.csv`, in QM9's units."""
    with ZipFile(io.BytesIO(archive)) as files:
        inside = {Path(name).name: name for name in files.namelist()}
        table = pd.read_csv(files.open(inside["gdb9.sdf.csv"]))
        number = table["mol_id"].str.removeprefix("gdb_").astype(int)
        taken = (number % QM9_EVERY == 1) & (number <= QM9_LAST)
        with files.open(inside["gdb9.sdf"]) as sdf:
            reader = Chem.ForwardSDMolSupplier(sdf, sanitize=False, removeHs=False)
            wanted, mols = set(table["mol_id"][taken]), {}
            for mol in reader:
                if (name := mol.GetProp("_Name").strip()) in wanted:
                    mols[name] = mol
    values = table[taken].set_index("mol_id")
    names = {"mol_id": values.index.to_numpy(str), "target_names": values.columns.to_numpy(str)}
    return names | {"targets": values.to_numpy(float)} | _flat(mols[name] for name in values.index)


def _flat(mols: Iterable[Chem.Mol]) -> dict[str, np.ndarray]:
    mols = list(mols)
    return {
        "num_atoms": np.array([mol.GetNumAtoms() for mol in mols], np.int8),
        "Z": np.array([atom.GetAtomicNum() for mol in mols for atom in mol.GetAtoms()], np.int8),
        "R": np.concatenate([mol.GetConformer().GetPositions() for mol in mols]),
    }
