"""Molecules from RDKit's binary form, as one graph in flat arrays: one call instead of twenty per atom.

The form is that of RDKit's `MolPickler.cpp`, version 16.4:

    header   16 bytes with the version, then 4 of the patch level, n and m of 4 bytes each, a byte, `BEGINATOM`
    atom     element, flags, which fields follow (4 bytes), the fields
    bond     after `BEGINBOND`: first atom, second atom, flags, the fields
    rings    after `BEGINSYMMSSSR`: how many (4 bytes), each as its size and its atoms

Numbers are little-endian; where no size is given they are single bytes. Anything else is left to RDKit's getters.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from numba import njit
from rdkit import Chem
from rdkit.Chem import BondType, HybridizationType

from gtx.base.loops import compiled_loop
from gtx.molecules.graphs import atom_code, bond_code

# columns of `ATOM_FEATURE_VALUES` and `BOND_FEATURE_VALUES`, and some codes in them; numba does not notice a change
# here in the loops of other files that read them: give a constant that changes a new name
ELEMENT, CHARGE, HYDROGENS, DEGREE, HYBRIDISATION, AROMATIC, RING, CHIRALITY, RADICAL, ISOTOPE = range(10)
TYPE, STEREO, CONJUGATED, IN_RING = range(4)
NO, YES = 1, 2
NEUTRAL = 5
NO_RING = 1
SINGLE, DOUBLE, TRIPLE, AROMATIC_BOND = 1, 2, 3, 4


class Graphs(NamedTuple):
    """m molecules with N atoms, M bonds and R rings, one after the other.

    Attributes:
        atoms: uint8 `[N, A]`, a code per atom and column of `ATOM_FEATURE_VALUES`.
        bonds: uint8 `[M, F]`, a code per bond and column of `BOND_FEATURE_VALUES`.
        ends: int32 `[M, 2]`, the atoms of each bond, numbered within their molecule.
        rings: int32, the atoms of each ring in order along it, numbered within their molecule.
        atom_ptr, bond_ptr, ring_ptr: int64 `[m + 1]`; molecule k has atoms `atom_ptr[k]` to `atom_ptr[k + 1]`.
        member_ptr: int64 `[R + 1]`; ring r has atoms `rings[member_ptr[r]:member_ptr[r + 1]]`.
        near_ptr: int64 `[N + 1]`; atom i has neighbours `near_ptr[i]` to `near_ptr[i + 1]`, in the order of its bonds.
        near_atoms, near_bonds: int64 `[2M]`, the neighbour and the bond to it, numbered within all molecules.
        atom_rings: int32 `[N]`, rings through each atom, and
        bond_rings: int32 `[M]`, through each bond.
    """

    atoms: np.ndarray
    bonds: np.ndarray
    ends: np.ndarray
    rings: np.ndarray
    atom_ptr: np.ndarray
    bond_ptr: np.ndarray
    ring_ptr: np.ndarray
    member_ptr: np.ndarray
    near_ptr: np.ndarray
    near_atoms: np.ndarray
    near_bonds: np.ndarray
    atom_rings: np.ndarray
    bond_rings: np.ndarray

    @classmethod
    def read(cls, binaries: Sequence[bytes]) -> tuple[int, Graphs]:
        """Read molecules in RDKit's binary form, up to the first that is unusual.

        Unusual are 256 atoms or more, queries, dummies with a label, residues, isotopes, and stereochemistry without
        two atoms to refer to; and any molecule where the form is of another version.

        Returns:
            How many molecules were read, and their graphs. The chirality of a centre and the stereo of a bond that has
            any are 0.
        """
        sizes = list(takewhile(bool, map(_sizes, binaries)))
        data = np.frombuffer(b"".join(binaries[: len(sizes)]), np.uint8)
        atom_ptr, bond_ptr, starts = np.cumsum([(0, 0, 0), *sizes], axis=0).T.copy()
        count, atoms, bonds, ends, rings, ring_ptr, member_ptr = _decode(
            data, starts, atom_ptr, bond_ptr, _ATOM_CODES, _BOND_CODES
        )
        n, m, r = (ptr[count] for ptr in (atom_ptr, bond_ptr, ring_ptr))
        members, ptrs = rings[: member_ptr[r]], (ptr[: count + 1] for ptr in (atom_ptr, bond_ptr, ring_ptr))
        arrays = atoms[:n], bonds[:m], ends[:m], members, *ptrs, member_ptr[: r + 1]
        return count, cls(*arrays, *_neighbours_and_rings(*arrays))

    @property
    def atom_counts(self) -> np.ndarray:
        """Atoms of each molecule, int64 `[m]`."""
        return np.diff(self.atom_ptr)

    @property
    def bond_counts(self) -> np.ndarray:
        """Bonds of each molecule, int64 `[m]`."""
        return np.diff(self.bond_ptr)

    @property
    def atom_owner(self) -> np.ndarray:
        """The molecule of each atom, int64 `[N]`."""
        return np.arange(len(self.atom_ptr) - 1).repeat(self.atom_counts)

    @property
    def bond_owner(self) -> np.ndarray:
        """The molecule of each bond, int64 `[M]`."""
        return np.arange(len(self.bond_ptr) - 1).repeat(self.bond_counts)

    @property
    def bonded_atoms(self) -> np.ndarray:
        """The atoms of each bond, numbered within all molecules, int64 `[M, 2]`."""
        return self.ends + self.atom_ptr[self.bond_owner, None]

    @property
    def both_ways(self) -> np.ndarray:
        """Sender and receiver of every bond, int32 `[2, 2M]`; bond k is at 2k and, the other way, at 2k + 1."""
        return np.ascontiguousarray(np.stack([self.ends, self.ends[:, ::-1]], 1).reshape(-1, 2).T)


# --- The binary form.

VERSION = (16, 4)
"""The version of the binary form, major and minor, that is read here."""

_ATOMS_AND_BONDS = int(Chem.PropertyPickleOptions.NoConformers)  # no properties either

_HEADER = struct.pack("<4I", 0xDEADBEEF, 0, *VERSION)
_N, _START = 20, 30  # where the numbers of atoms and bonds are, and the atoms themselves
_BEGIN_BOND, _BEGIN_RINGS = 11, 66
# fields of atoms; hydrogens are explicit or implicit
_CHARGE, _TAG, _HYBRIDISATION, _EXPLICIT, _VALENCE, _IMPLICIT, _RADICAL = range(1, 8)
_FLAG_AROMATIC, _FLAG_NO_IMPLICIT = 1 << 6, 1 << 5  # of atoms; the first also of bonds
_FLAG_CONJUGATED, _FLAG_TYPE, _FLAG_DIRECTION, _FLAG_STEREO = 1 << 5, 1 << 3, 1 << 2, 1 << 1  # of bonds
_BOND_FLAGS = _FLAG_AROMATIC | _FLAG_CONJUGATED | _FLAG_TYPE | _FLAG_DIRECTION | _FLAG_STEREO
_DEFAULT_TYPE, _DEFAULT_HYBRIDISATION = int(BondType.SINGLE), int(HybridizationType.SP3)  # where none is written


def binary(mol: Chem.Mol) -> bytes:
    """Write RDKit's binary form of a molecule, without properties and coordinates."""
    return mol.ToBinary(_ATOMS_AND_BONDS)


def form_version() -> tuple[int, int]:
    """Return the version of the binary form that this RDKit writes, major and minor."""
    major, minor = struct.unpack_from("<2i", binary(Chem.Mol()), 8)
    return major, minor


def _sizes(form: bytes) -> tuple[int, int, int] | None:
    """Return the numbers of atoms and bonds and the length of a form, if it has `VERSION` and fewer than 256 atoms, so
    that its numbers are bytes.
    """
    if len(form) < _START or not form.startswith(_HEADER):
        return None
    n, m = struct.unpack_from("<2I", form, _N)
    return (n, m, len(form)) if n < 256 and m < 65536 else None


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _name(values: dict, byte: int) -> str | None:
    return values[byte].name if byte in values else None


def _tables(code: Callable[[str, object], int], columns: dict[str, Callable[[int], object]]) -> np.ndarray:
    """Tabulate the code of every byte in each column, uint8 `[C, 256]`."""
    return np.array([[code(name, value(byte)) for byte in range(256)] for name, value in columns.items()], np.uint8)


_ATOM_CODES = _tables(
    atom_code,
    {
        "element": int,
        "charge": _signed,
        "hydrogens": _signed,
        "hybridisation": partial(_name, HybridizationType.values),
        "aromatic": bool,
        "chirality": lambda byte: None if byte else "none",
        "radical": _signed,
    },
)
_BOND_CODES = _tables(bond_code, {"type": partial(_name, BondType.values), "conjugated": bool})


@compiled_loop
def _decode(data, starts, atom_ptr, bond_ptr, atom_codes, bond_codes):
    """Decode molecules up to the first that is unusual.

    Args:
        data: uint8, the binary form of each molecule.
        starts: int64 `[m + 1]`, where each begins in it.
        atom_ptr, bond_ptr: as in `Graphs`.
        atom_codes: uint8 `[7, 256]`, the code of every byte as an element, a charge, a number of hydrogens, a
            hybridisation, a flag, a chiral tag, a number of radical electrons.
        bond_codes: uint8 `[2, 256]`, as a type, a flag.

    Returns:
        How many molecules; then, as in `Graphs`, but for all, atoms, bonds, ends, rings, ring_ptr, member_ptr.
    """
    atoms = np.ones((atom_ptr[-1], 10), np.uint8)
    bonds, ends = np.ones((bond_ptr[-1], 4), np.uint8), np.zeros((bond_ptr[-1], 2), np.int32)
    rings, member_ptr = np.zeros(len(data), np.int32), np.zeros(len(data) + 1, np.int64)
    ring_ptr, count = np.zeros(len(starts), np.int64), 0
    for k in range(len(starts) - 1):
        own, between = slice(atom_ptr[k], atom_ptr[k + 1]), slice(bond_ptr[k], bond_ptr[k + 1])
        at, end = _atoms(data, starts[k] + _START, starts[k + 1], atoms[own], atom_codes), starts[k + 1]
        if at >= 0:
            at = _bonds(data, at, end, len(atoms[own]), bonds[between], ends[between], bond_codes)
        if at >= 0:
            at = _rings(data, at, end, len(atoms[own]), rings, member_ptr, ring_ptr[k])
        if at < 0:
            break
        count, ring_ptr[k + 1] = k + 1, ring_ptr[k] + at
    return count, atoms, bonds, ends, rings, ring_ptr, member_ptr


@njit
def _uint32(data, at):
    return (
        np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24
    )


@njit
def _atoms(data, at, end, atoms, codes):
    """Read atoms; return where the bonds begin, or -1 for a query, a dummy with a label, a residue, an isotope."""
    values = np.zeros(8, np.uint8)
    for i in range(len(atoms)):
        if at + 6 > end:
            return -1
        element, flags, fields = data[at], data[at + 1], _uint32(data, at + 2)
        at += 6
        if flags & ~(_FLAG_AROMATIC | _FLAG_NO_IMPLICIT) or fields > 255:
            return -1
        values[:], values[_HYBRIDISATION] = 0, _DEFAULT_HYBRIDISATION
        for field in range(1, 8):
            if fields >> field & 1:
                if at >= end:
                    return -1
                values[field], at = data[at], at + 1
        hydrogens = (values[_EXPLICIT] + values[_IMPLICIT]) & 255
        row = atoms[i]
        row[ELEMENT], row[CHARGE], row[HYDROGENS] = codes[0, element], codes[1, values[_CHARGE]], codes[2, hydrogens]
        row[HYBRIDISATION], row[AROMATIC] = codes[3, values[_HYBRIDISATION]], codes[4, flags >> 6]
        row[CHIRALITY], row[RADICAL] = codes[5, values[_TAG]], codes[6, values[_RADICAL]]
    return at


@njit
def _bonds(data, at, end, n, bonds, ends, codes):
    """Read bonds; return where the rings begin, or -1 for a query or stereochemistry without two atoms."""
    if at >= end or data[at] != _BEGIN_BOND:
        return -1
    at += 1
    for i in range(len(bonds)):
        if at + 3 > end:
            return -1
        first, second, flags, kind = data[at], data[at + 1], data[at + 2], _DEFAULT_TYPE
        at += 3
        if flags & ~_BOND_FLAGS or first >= n or second >= n:
            return -1
        if at + (flags >> 3 & 1) + (flags >> 2 & 1) + 2 * (flags & _FLAG_STEREO) > end:
            return -1
        if flags & _FLAG_TYPE:
            kind, at = data[at], at + 1
        if flags & _FLAG_DIRECTION:
            at += 1
        if flags & _FLAG_STEREO:
            bonds[i, STEREO] = 0
            if data[at + 1] != 2:
                return -1
            at += 4
        ends[i, 0], ends[i, 1] = first, second
        bonds[i, TYPE], bonds[i, CONJUGATED] = codes[0, kind], codes[1, flags >> 5 & 1]
    return at


@njit
def _rings(data, at, end, n, rings, ptr, first):
    """Read rings after the `first` that were read; return how many, or -1."""
    if at + 5 > end or data[at] != _BEGIN_RINGS:
        return -1
    count = _uint32(data, at + 1)
    at += 5
    for r in range(first, first + count):
        if at >= end or at + 1 + data[at] > end:
            return -1
        size, to = np.int64(data[at]), ptr[r]
        for j in range(size):
            rings[to + j] = data[at + 1 + j]
            if rings[to + j] >= n:
                return -1
        ptr[r + 1] = to + size
        at += 1 + size
    return count


# --- Neighbours and rings.

_LARGEST_DEGREE, _LARGEST_RING = 8, 24


def _neighbours_and_rings(atoms, bonds, ends, rings, atom_ptr, bond_ptr, ring_ptr, member_ptr):
    """Fill the columns "degree" and "ring" of atoms and "ring" of bonds, and list neighbours.

    Args:
        atoms, bonds, ends, rings, atom_ptr, bond_ptr, ring_ptr, member_ptr: as in `Graphs`.

    Returns:
        Its other arrays: near_ptr, near_atoms, near_bonds, atom_rings, bond_rings.
    """
    ends = ends + atom_ptr[:-1].repeat(np.diff(bond_ptr))[:, None]
    order = ends.ravel().argsort(kind="stable")
    degree = np.bincount(ends.ravel(), minlength=len(atoms))
    near_ptr, near_atoms = np.concatenate([[0], degree.cumsum()]), ends[:, ::-1].ravel()[order]
    sizes = np.diff(member_ptr)
    here = rings + atom_ptr[:-1].repeat(np.diff(ring_ptr)).repeat(sizes)
    last = np.arange(len(here)) - 1  # the atom before each along the ring
    last[member_ptr[:-1]] = member_ptr[1:] - 1
    atom_rings = np.bincount(here, minlength=len(atoms))
    smallest = np.full(len(atoms), _LARGEST_RING + 1)
    np.minimum.at(smallest, here, sizes.repeat(sizes))
    pairs, between = (np.sort(each, 1) @ [len(atoms), 1] for each in (ends, np.stack([here, here[last]], 1)))
    by_pair = pairs.argsort()
    bond_rings = np.bincount(by_pair[np.searchsorted(pairs, between, sorter=by_pair)], minlength=len(bonds))
    atoms[:, DEGREE] = np.where(degree <= _LARGEST_DEGREE, degree + 1, 0)
    atoms[:, RING] = np.where(atom_rings == 0, NO_RING, np.where(smallest <= _LARGEST_RING, smallest - 1, 0))
    bonds[:, IN_RING] = np.where(bond_rings, YES, NO)
    return near_ptr, near_atoms, order // 2, atom_rings.astype(np.int32), bond_rings.astype(np.int32)
