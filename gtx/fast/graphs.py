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
        starts = np.cumsum([0, *map(len, binaries)])
        data = np.frombuffer(b"".join(binaries), np.uint8)
        count, *arrays = _decode(data, starts, _ATOM_CODES, _BOND_CODES)
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

_N, _M, _START = 20, 24, 30  # where the numbers of atoms and bonds are, and the atoms themselves
_BEGIN_BOND, _BEGIN_RINGS = 11, 66
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


def _table(code: Callable[[int], int]) -> np.ndarray:
    return np.array([code(byte) for byte in range(256)], np.uint8)


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _name(values: dict, byte: int) -> str | None:
    return values[byte].name if byte in values else None


_ATOM_CODES = np.stack(
    [
        _table(lambda byte: atom_code("element", byte)),
        _table(lambda byte: atom_code("charge", _signed(byte))),
        _table(lambda byte: atom_code("hydrogens", _signed(byte))),
        _table(lambda byte: atom_code("hybridisation", _name(HybridizationType.values, byte))),
        _table(lambda byte: atom_code("aromatic", bool(byte))),
        _table(lambda byte: atom_code("chirality", None if byte else "none")),
        _table(lambda byte: atom_code("radical", _signed(byte))),
    ]
)
_BOND_CODES = np.stack(
    [
        _table(lambda byte: bond_code("type", _name(BondType.values, byte))),
        _table(lambda byte: bond_code("conjugated", bool(byte))),
    ]
)


@compiled_loop
def _decode(data, starts, atom_codes, bond_codes):
    """Decode molecules up to the first that is unusual.

    Args:
        data: uint8, the binary form of each molecule.
        starts: int64 `[m + 1]`, where each begins in it.
        atom_codes: uint8 `[7, 256]`, the code of every byte as an element, a charge, a number of hydrogens, a
            hybridisation, a flag, a chiral tag, a number of radical electrons.
        bond_codes: uint8 `[2, 256]`, as a type, a flag.

    Returns:
        How many molecules; then, as in `Graphs`, atoms, bonds, ends, rings, the atoms before
        each molecule, the bonds, the rings, and the atoms of rings before each ring.
    """
    count, n, m = 0, 0, 0
    for k in range(len(starts) - 1):
        if not _version(data, starts[k], starts[k + 1]):
            break
        count, n, m = k + 1, n + _uint32(data, starts[k] + _N), m + _uint32(data, starts[k] + _M)
    atoms = np.ones((n, 10), np.uint8)
    bonds, ends = np.ones((m, 4), np.uint8), np.zeros((m, 2), np.int32)
    rings, ring_ptr = np.zeros(len(data), np.int32), np.zeros(len(data) + 1, np.int64)
    before = np.zeros((3, count + 1), np.int64)
    for k in range(count):
        i, b, r = before[:, k]
        n_k, m_k = _uint32(data, starts[k] + _N), _uint32(data, starts[k] + _M)
        at = _atoms(data, starts[k] + _START, starts[k + 1], atoms[i : i + n_k], atom_codes)
        if at >= 0:
            at = _bonds(data, at, starts[k + 1], n_k, bonds[b : b + m_k], ends[b : b + m_k], bond_codes)
        if at >= 0:
            at = _rings(data, at, starts[k + 1], n_k, rings, ring_ptr, r)
        if at < 0:
            count = k
            break
        before[0, k + 1], before[1, k + 1], before[2, k + 1] = i + n_k, b + m_k, r + at
    n, m, r = before[:, count]
    before = before[:, : count + 1].copy()
    return (
        count,
        atoms[:n],
        bonds[:m],
        ends[:m],
        rings[: ring_ptr[r]].copy(),
        before[0],
        before[1],
        before[2],
        ring_ptr[: r + 1].copy(),
    )


@njit
def _version(data, at, end):
    """Return whether the form has `VERSION` and fewer than 256 atoms, so that its numbers are bytes."""
    return (
        end - at >= _START
        and _uint32(data, at) == 0xDEADBEEF
        and _uint32(data, at + 4) == 0
        and _uint32(data, at + 8) == VERSION[0]
        and _uint32(data, at + 12) == VERSION[1]
        and _uint32(data, at + _N) < 256
        and _uint32(data, at + _M) < 65536
    )


@njit
def _uint32(data, at):
    return (
        np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24
    )


@njit
def _atoms(data, at, end, atoms, codes):
    """Read atoms; return where the bonds begin, or -1 for a query, a dummy with a label, a residue, an isotope."""
    for i in range(len(atoms)):
        if at + 6 > end:
            return -1
        element, flags, fields = data[at], data[at + 1], _uint32(data, at + 2)
        at += 6
        if flags & ~(_FLAG_AROMATIC | _FLAG_NO_IMPLICIT) or fields > 255 or at + _bits(fields >> 1) > end:
            return -1
        charge, tag, hybridisation, hydrogens, radical = 0, 0, _DEFAULT_HYBRIDISATION, 0, 0
        if fields & 2:
            charge, at = data[at], at + 1
        if fields & 4:
            tag, at = data[at], at + 1
        if fields & 8:
            hybridisation, at = data[at], at + 1
        if fields & 16:  # explicit ones
            hydrogens, at = np.int8(data[at]), at + 1
        if fields & 32:  # valence
            at += 1
        if fields & 64:  # implicit ones
            hydrogens, at = hydrogens + np.int8(data[at]), at + 1
        if fields & 128:
            radical, at = data[at], at + 1
        row = atoms[i]
        row[ELEMENT], row[CHARGE], row[HYDROGENS] = codes[0, element], codes[1, charge], codes[2, hydrogens & 255]
        row[HYBRIDISATION], row[AROMATIC] = codes[3, hybridisation], codes[4, flags >> 6]
        row[CHIRALITY], row[RADICAL] = codes[5, tag], codes[6, radical]
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
        if at + _bits(flags & (_FLAG_TYPE | _FLAG_DIRECTION)) + 2 * (flags & _FLAG_STEREO) > end:
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


@njit
def _bits(number):
    """Count the bits set in a byte."""
    count = 0
    for k in range(8):
        count += number >> k & 1
    return count


# --- Neighbours and rings.

_LARGEST_DEGREE, _LARGEST_RING, _INFINITE = 8, 24, 1_000_000


@compiled_loop
def _neighbours_and_rings(atoms, bonds, ends, rings, atom_ptr, bond_ptr, ring_ptr, member_ptr):
    """Fill the columns "degree" and "ring" of atoms and "ring" of bonds, and list neighbours.

    Args:
        atoms, bonds, ends, rings, atom_ptr, bond_ptr, ring_ptr, member_ptr: as in `Graphs`.

    Returns:
        Its other arrays: near_ptr, near_atoms, near_bonds, atom_rings, bond_rings.
    """
    near_ptr = np.zeros(len(atoms) + 1, np.int64)
    near_atoms, near_bonds = np.zeros(2 * len(bonds), np.int64), np.zeros(2 * len(bonds), np.int64)
    atom_rings, bond_rings = np.zeros(len(atoms), np.int32), np.zeros(len(bonds), np.int32)
    smallest = np.full(len(atoms), _INFINITE)
    filled = np.zeros(len(atoms), np.int64)
    for k in range(len(atom_ptr) - 1):
        i, b = atom_ptr[k], bond_ptr[k]
        for bond in range(b, bond_ptr[k + 1]):
            near_ptr[i + ends[bond, 0] + 1] += 1
            near_ptr[i + ends[bond, 1] + 1] += 1
        for atom in range(i, atom_ptr[k + 1]):
            degree = near_ptr[atom + 1]
            atoms[atom, DEGREE] = degree + 1 if degree <= _LARGEST_DEGREE else 0
            near_ptr[atom + 1] += near_ptr[atom]
        for bond in range(b, bond_ptr[k + 1]):
            for side in range(2):
                atom = i + ends[bond, side]
                to = near_ptr[atom] + filled[atom]
                near_atoms[to], near_bonds[to] = i + ends[bond, 1 - side], bond
                filled[atom] += 1
        for ring in range(ring_ptr[k], ring_ptr[k + 1]):
            first, last = member_ptr[ring], member_ptr[ring + 1] - 1
            before = i + rings[last]
            for j in range(first, last + 1):
                here = i + rings[j]
                atom_rings[here] += 1
                smallest[here] = min(smallest[here], last + 1 - first)
                for to in range(near_ptr[here], near_ptr[here + 1]):
                    if near_atoms[to] == before:
                        bond_rings[near_bonds[to]] += 1
                before = here
        for atom in range(i, atom_ptr[k + 1]):
            size = smallest[atom]
            atoms[atom, RING] = NO_RING if size == _INFINITE else size - 1 if size <= _LARGEST_RING else 0
        for bond in range(b, bond_ptr[k + 1]):
            bonds[bond, IN_RING] = YES if bond_rings[bond] else NO
    return near_ptr, near_atoms, near_bonds, atom_rings, bond_rings
