"""The molecules of QM7 and of a part of QM9 with coordinates: flat arrays, made from the official files."""

from __future__ import annotations

import csv
import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np

from gtx.data.named_sets import fetch
from gtx.errors import InputError

SOURCES = {
    "qm7_qml_7101.npz": "https://codeload.github.com/qmlcode/qml/tar.gz/8bb833cdbbe69405384d6796920c5418dc53b6ba",
    "qm9_3d_3000.npz": "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/molnet_publish/qm9.zip",
}
"""Where each file comes from: QM7 (Rupp et al. 2012, https://doi.org/10.1103/PhysRevLett.108.058301) as the tests of
qmlcode/qml have it, QM9 (Ramakrishnan et al. 2014, https://doi.org/10.1038/sdata.2014.22) as MoleculeNet serves it."""
DIGESTS = {
    "qm7_qml_7101.npz": "952536732ee51ad09700aaa900e1497cfb0fb305fc263566d1b39cf48dabdef2",
    "qm9_3d_3000.npz": "7f1cf7f5b2615598cd7366263010c22dea541823654316524c1d4f7e1d2b716f",
}
"""SHA-256 of the molecules, see `digest`."""
NUMBERS = {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9, "S": 16}
EVERY, LAST = 40, 119_961  # of QM9, gdb_1, gdb_41, ... gdb_119961

Geometry = tuple[list[int], list[list[float]]]
"""Atomic numbers, and x, y, z of each atom, Å."""


def obtain(file: Path) -> None:
    """Download what a file is made of, and make it: `num_atoms` `[m]`, `Z` `[n]`, `R` `[n, 3]` Å, and targets.

    Args:
        file: where it shall lie; its name is one of `SOURCES`.

    Raises:
        InputError: it cannot be had.
    """
    source = SOURCES[file.name]
    try:
        arrays = {"qm7_qml_7101.npz": qm7, "qm9_3d_3000.npz": qm9}[file.name](fetch(source))
        if (found := digest(arrays)) != DIGESTS[file.name]:
            raise ValueError(f"its molecules should have SHA-256 {DIGESTS[file.name]} and have {found}")
    except (OSError, HTTPException, ValueError, LookupError, tarfile.TarError, BadZipFile) as reason:
        raise InputError(
            f"{file} is not there, and cannot be made of {source}: {reason}. A copy made elsewhere can be put there"
        ) from None
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial.npz")
    np.savez_compressed(partial, **arrays)
    partial.replace(file)


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of sizes, atomic numbers and positions in 0.0001 Å, whatever the precision they are kept in."""
    parts = arrays["num_atoms"], arrays["Z"], np.rint(arrays["R"] * 1e4)
    return hashlib.sha256(b"".join(part.astype("<i4").tobytes() for part in parts)).hexdigest()


def qm7(archive: bytes) -> dict[str, np.ndarray]:
    """QM7 out of qml's archive: an XYZ file per molecule, and energies of atomisation (PBE0), kcal/mol, in a list."""
    geometries, energies = {}, {}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar:
            path = Path(member.name)
            if path.parts[-3:-1] == ("tests", "qm7") and path.suffix == ".xyz":
                geometries[path.name] = _xyz(tar.extractfile(member).read().decode())
            elif path.parts[-3:] == ("tests", "data", "hof_qm7.txt"):
                lines = tar.extractfile(member).read().decode().split("\n")
                energies = {name: float(energy) for name, energy, _ in (line.split() for line in lines if line)}
    if not geometries:
        raise ValueError("expected tests/qm7/*.xyz in the archive, got none")
    names = sorted(geometries)
    targets = {"xyz_name": np.array(names), "energy_pbe0": np.array([energies[name] for name in names])}
    return targets | _flat(geometries[name] for name in names)


def qm9(archive: bytes) -> dict[str, np.ndarray]:
    """Every 40th molecule of QM9 out of MoleculeNet's archive: `gdb9.sdf` and `gdb9.sdf.csv`, QM9's own units."""
    with ZipFile(io.BytesIO(archive)) as files:
        inside = {Path(name).name: name for name in files.namelist()}
        with files.open(inside["gdb9.sdf.csv"]) as table:
            reader = csv.DictReader(io.TextIOWrapper(table))
            rows = {row["mol_id"]: row for row in reader if _taken(row["mol_id"])}
            names = [name for name in reader.fieldnames or () if name != "mol_id"]
        with files.open(inside["gdb9.sdf"]) as sdf:
            geometries = dict(_records(io.TextIOWrapper(sdf)))
    targets = np.array([[float(row[name]) for name in names] for row in rows.values()])
    told = {"mol_id": np.array(list(rows)), "target_names": np.array(names), "targets": targets}
    return told | _flat(geometries[one] for one in rows)


def _taken(name: str) -> bool:
    number = int(name.removeprefix("gdb_"))
    return number % EVERY == 1 and number <= LAST


def _records(lines: Iterable[str]) -> Iterator[tuple[str, Geometry]]:
    """Names and geometries of the records of an SDF (V2000) that are taken."""
    record: list[str] = []
    for line in lines:
        if not line.startswith("$$$$"):
            record.append(line)
            continue
        if _taken(name := record[0].strip()):
            atoms = record[4 : 4 + int(record[3][:3])]
            places = [[float(atom[k : k + 10]) for k in (0, 10, 20)] for atom in atoms]
            yield name, ([NUMBERS[atom[31:34].strip()] for atom in atoms], places)
        record = []


def _xyz(text: str) -> Geometry:
    atoms = [line.split() for line in text.split("\n")[2:] if line.strip()]
    return [NUMBERS[symbol] for symbol, *_ in atoms], [[float(value) for value in place] for _, *place in atoms]


def _flat(geometries: Iterable[Geometry]) -> dict[str, np.ndarray]:
    geometries = list(geometries)
    return {
        "num_atoms": np.array([len(numbers) for numbers, _ in geometries], np.int8),
        "Z": np.concatenate([numbers for numbers, _ in geometries]).astype(np.int8),
        "R": np.concatenate([places for _, places in geometries]),
    }
