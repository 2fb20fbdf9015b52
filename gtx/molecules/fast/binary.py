"""The atoms and bonds of molecules out of RDKit's binary form of them: one call instead of twenty per atom.

The form is that of RDKit's `MolPickler.cpp`, version 16.4:

    header   16 bytes with the version, then 4 of the patch level, n and m of 4 bytes each, a byte, `BEGINATOM`
    atom     element, flags, which fields follow (4 bytes), the fields
    bond     after `BEGINBOND`: first atom, second atom, flags, the fields
    rings    after `BEGINSYMMSSSR`: how many (4 bytes), each as its size and its atoms

Numbers are little-endian; where no size is given they are single bytes. Anything else is left to RDKit's getters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rdkit import Chem
from rdkit.Chem import BondType, HybridizationType

from gtx.jit import njit
from gtx.molecules.graphs import atom_code, bond_code

_ATOMS_AND_BONDS = int(Chem.PropertyPickleOptions.NoConformers)  # no properties either

_N, _M, _START = 20, 24, 30  # where the numbers of atoms and bonds are, and the atoms themselves
_BEGIN_BOND, _BEGIN_RINGS = 11, 66
_AROMATIC, _NO_IMPLICIT, _CONJUGATED = 1 << 6, 1 << 5, 1 << 5  # flags of atoms; of bonds
_TYPE, _DIRECTION, _STEREO = 1 << 3, 1 << 2, 1 << 1
_SINGLE, _SP3 = 1, 4  # what is meant where nothing is written


def binary(mol: Chem.Mol) -> bytes:
    """RDKit's binary form of a molecule, without properties and coordinates."""
    return mol.ToBinary(_ATOMS_AND_BONDS)


def decode(binaries: Sequence[bytes]) -> tuple[int, tuple[np.ndarray, ...]]:
    """Atoms and bonds of molecules in binary form, up to the first that is unusual.

    Unusual are 256 atoms or more, queries, dummies with a label, residues, isotopes, and stereochemistry without two
    atoms to refer to; and any molecule where RDKit's version of the form is another.

    Returns:
        How many molecules were read, and the first arrays of `Graphs`.
    """
    starts = np.cumsum([0, *map(len, binaries)])
    data = np.frombuffer(b"".join(binaries), np.uint8)
    usual, *arrays = _decode(data, starts, _ATOM_CODES, _BOND_CODES)
    return usual, tuple(arrays)


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


@njit(cache=True, nogil=True)
def _decode(data, starts, atom_codes, bond_codes):
    """Return the first molecules of some, up to one that is unusual.

    Args:
        data: uint8, the binary form of each molecule.
        starts: int64 `[m + 1]`, where each begins in it.
        atom_codes: uint8 `[7, 256]`, the code of every byte as an element, a charge, a number of hydrogens, a
            hybridisation, a flag, a chiral tag, a number of radical electrons.
        bond_codes: uint8 `[2, 256]`, as a type, a flag.

    Returns:
        How many molecules; then, as in `Graphs`, atoms, tags, bonds, ends, rings, the atoms before
        each molecule, the bonds, the rings, and the atoms of rings before each ring.
    """
    usual, n, m = 0, 0, 0
    for k in range(len(starts) - 1):
        if not _version(data, starts[k], starts[k + 1]):
            break
        usual, n, m = k + 1, n + _uint32(data, starts[k] + _N), m + _uint32(data, starts[k] + _M)
    atoms, tags = np.ones((n, 10), np.uint8), np.zeros(n, np.uint8)
    bonds, ends = np.ones((m, 4), np.uint8), np.zeros((m, 2), np.int32)
    rings, ring_ptr = np.zeros(len(data), np.int32), np.zeros(len(data) + 1, np.int64)
    before = np.zeros((3, usual + 1), np.int64)
    for k in range(usual):
        i, b, r = before[:, k]
        here_n, here_m = _uint32(data, starts[k] + _N), _uint32(data, starts[k] + _M)
        at = _atoms(data, starts[k] + _START, starts[k + 1], atoms[i : i + here_n], tags[i : i + here_n], atom_codes)
        if at >= 0:
            at = _bonds(data, at, starts[k + 1], here_n, bonds[b : b + here_m], ends[b : b + here_m], bond_codes)
        if at >= 0:
            at = _rings(data, at, starts[k + 1], here_n, rings, ring_ptr, r)
        if at < 0:
            usual = k
            break
        before[0, k + 1], before[1, k + 1], before[2, k + 1] = i + here_n, b + here_m, r + at
    n, m, r = before[:, usual]
    before = before[:, : usual + 1].copy()
    return (
        usual,
        atoms[:n],
        tags[:n],
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
    """Return whether a molecule has format version 16.4 and fewer than 256 atoms, so that its numbers are bytes."""
    return (
        end - at >= _START
        and _uint32(data, at) == 0xDEADBEEF
        and _uint32(data, at + 4) == 0
        and _uint32(data, at + 8) == 16
        and _uint32(data, at + 12) == 4
        and _uint32(data, at + _N) < 256
        and _uint32(data, at + _M) < 65536
    )


@njit
def _uint32(data, at):
    return (
        np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24
    )


@njit
def _atoms(data, at, end, atoms, tags, codes):
    """Read atoms; where the bonds begin, or -1 for a query, a dummy with a label, a residue, an isotope."""
    for i in range(len(atoms)):
        if at + 6 > end:
            return -1
        element, flags, fields = data[at], data[at + 1], _uint32(data, at + 2)
        at += 6
        if flags & ~(_AROMATIC | _NO_IMPLICIT) or fields > 255 or at + _bits(fields >> 1) > end:
            return -1
        charge, tag, hybridisation, hydrogens, radical = 0, 0, _SP3, 0, 0
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
        row[0], row[1], row[2] = codes[0, element], codes[1, charge], codes[2, hydrogens & 255]
        row[4], row[5], row[7] = codes[3, hybridisation], codes[4, flags >> 6], codes[5, tag]
        row[8] = codes[6, radical]
        tags[i] = tag
    return at


@njit
def _bonds(data, at, end, n, bonds, ends, codes):
    """Read bonds; where the rings begin, or -1 for a query or stereochemistry without two atoms to refer to."""
    if at >= end or data[at] != _BEGIN_BOND:
        return -1
    at += 1
    for i in range(len(bonds)):
        if at + 3 > end:
            return -1
        first, second, flags, kind = data[at], data[at + 1], data[at + 2], _SINGLE
        at += 3
        if flags & ~(_AROMATIC | _CONJUGATED | _TYPE | _DIRECTION | _STEREO) or first >= n or second >= n:
            return -1
        if at + _bits(flags & (_TYPE | _DIRECTION)) + 2 * (flags & _STEREO) > end:
            return -1
        if flags & _TYPE:
            kind, at = data[at], at + 1
        if flags & _DIRECTION:
            at += 1
        if flags & _STEREO:
            bonds[i, 1] = 0
            if data[at + 1] != 2:
                return -1
            at += 4
        ends[i, 0], ends[i, 1] = first, second
        bonds[i, 0], bonds[i, 2] = codes[0, kind], codes[1, flags >> 5 & 1]
    return at


@njit
def _rings(data, at, end, n, rings, ptr, first):
    """Read rings behind the `first` that there are; how many, or -1."""
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
