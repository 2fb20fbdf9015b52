"""The atoms and bonds of a molecule out of RDKit's binary form of it, which is one call instead of twenty per atom.

The form is that of RDKit's `MolPickler.cpp`, version 16.4:

    header   16 bytes with the version, then 4 of the patch level, n and m of 4 bytes each, a byte, `BEGINATOM`
    atom     element, flags, which fields follow (4 bytes), the fields
    bond     after `BEGINBOND`: first atom, second atom, flags, the fields
    rings    after `BEGINSYMMSSSR`: how many (4 bytes), each as its size and its atoms

Numbers are little-endian; where no size is given they are single bytes. Anything else falls back on RDKit's getters.
"""

from __future__ import annotations

import struct

from rdkit import Chem
from rdkit.Chem import BondType, ChiralType, HybridizationType

from gtx.molecules.features import Parts, atom_row, bond_row, plain_parts

_ATOMS_AND_BONDS = int(Chem.PropertyPickleOptions.NoConformers)  # no properties either
_VERSION = struct.pack("<Iiii", 0xDEADBEEF, 0, 16, 4)
_BEGIN_BOND, _BEGIN_RINGS = 11, 66
_START = 30  # where the atoms are

_AROMATIC, _NO_IMPLICIT, _CONJUGATED = 1 << 6, 1 << 5, 1 << 5  # flags of atoms; of bonds
_TYPE, _DIRECTION, _STEREO = 1 << 3, 1 << 2, 1 << 1
_FIELDS = ("charge", "tag", "hybridisation", "explicit", "valence", "implicit", "radical")  # from the second bit on


class _Unusual(LookupError):
    """A query atom, a dummy with a label, a residue, an isotope, stereochemistry without two atoms to refer to."""


def parts_of(mol: Chem.Mol) -> Parts:
    """`Parts` of a molecule; equal to `plain_parts`."""
    data = mol.ToBinary(_ATOMS_AND_BONDS)
    if data.startswith(_VERSION) and mol.GetNumAtoms() < 256:  # larger ones have numbers of 4 bytes
        try:
            return _read(data, mol.GetNumAtoms(), mol.GetNumBonds())
        except LookupError:  # unusual, or read past the end on account of it
            pass
    return plain_parts(mol)


def _read(data: bytes, n: int, m: int) -> Parts:
    at, atoms, bonds, rings = _START, [], [], []
    for _ in range(n):
        end = at + _ATOM_LENGTHS[data[at + 2]]
        atoms.append(data[at:end])
        at = end
    rows = bytearray().join(map(_ATOM_ROWS.__getitem__, atoms))
    _expect(data[at] == _BEGIN_BOND)
    at += 1
    for _ in range(m):
        end = at + _BOND_LENGTHS[data[at + 2]]
        bonds.append(data[at:end])
        at = end
    ends = b"".join([bond[:2] for bond in bonds])
    bond_rows = bytearray().join(map(_BOND_ROWS.__getitem__, [bond[2:5] for bond in bonds]))
    _expect(data[at] == _BEGIN_RINGS and all(bond[-3] == 2 for bond in bonds if bond[2] & _STEREO))
    at += 5
    for _ in range(int.from_bytes(data[at - 4 : at], "little")):
        end = at + 1 + data[at]
        rings.append(data[at + 1 : end])
        at = end
    return Parts(rows, ends, bond_rows, rings)


def _expect(usual: bool) -> None:
    if not usual:
        raise _Unusual


class _AtomRows(dict):
    """The bytes of an atom to its codes; there are a few hundred kinds."""

    def __missing__(self, data: bytes) -> bytes:
        element, flags, fields = struct.unpack_from("<BBi", data)
        _expect(not flags & ~(_AROMATIC | _NO_IMPLICIT) and fields < 256)
        present = [name for k, name in enumerate(_FIELDS, 1) if fields >> k & 1]
        value = dict(zip(present, struct.unpack_from(f"{len(present)}b", data, 6), strict=True))
        row = atom_row(
            element,
            value.get("charge", 0),
            value.get("explicit", 0) + value.get("implicit", 0),
            HybridizationType.values[value.get("hybridisation", int(HybridizationType.SP3))],
            bool(flags & _AROMATIC),
            ChiralType.values[value.get("tag", 0)],
            value.get("radical", 0),
            False,
        )
        return self.setdefault(data, row)


class _BondRows(dict):
    """Up to three bytes of a bond, from its flags on, to its codes."""

    def __missing__(self, data: bytes) -> bytes:
        flags = data[0]
        _expect(not flags & ~(_AROMATIC | _CONJUGATED | _TYPE | _DIRECTION | _STEREO))
        kind = BondType.values[data[1]] if flags & _TYPE else BondType.SINGLE
        return self.setdefault(data, bond_row(kind, bool(flags & _STEREO), bool(flags & _CONJUGATED)))


_ATOM_ROWS, _BOND_ROWS = _AtomRows(), _BondRows()
_ATOM_LENGTHS = [6 + (fields & ~1).bit_count() for fields in range(256)]
_BOND_LENGTHS = [3 + (flags & (_TYPE | _DIRECTION)).bit_count() + 2 * (flags & _STEREO) for flags in range(256)]
