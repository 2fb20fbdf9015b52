"""The atoms and bonds of molecules out of RDKit's binary form of them: one call instead of twenty per atom.

The form is that of RDKit's `MolPickler.cpp`, version 16.4:

    header   16 bytes with the version, then 4 of the patch level, n and m of 4 bytes each, a byte, `BEGINATOM`
    atom     element, flags, which fields follow (4 bytes), the fields
    bond     after `BEGINBOND`: first atom, second atom, flags, the fields
    rings    after `BEGINSYMMSSSR`: how many (4 bytes), each as its size and its atoms

Numbers are little-endian; where no size is given they are single bytes. Anything else falls back on RDKit's getters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rdkit import Chem
from rdkit.Chem import BondType, HybridizationType

from gtx.molecules.features import atom_code, bond_code

_ATOMS_AND_BONDS = int(Chem.PropertyPickleOptions.NoConformers)  # no properties either


def binary(mol: Chem.Mol) -> bytes:
    """RDKit's binary form of a molecule, without properties and coordinates."""
    return mol.ToBinary(_ATOMS_AND_BONDS)


def decode(binaries: Sequence[bytes]) -> tuple[int, tuple[np.ndarray, ...]]:
    """Atoms and bonds of molecules in binary form, up to the first that is unusual.

    Unusual are 256 atoms or more, queries, dummies with a label, residues, isotopes, and stereochemistry without two
    atoms to refer to; and any molecule where RDKit's version of the form is another.

    Returns:
        How many molecules were read, and the first arrays of `gtx.molecules.graphs.Graphs`.
    """
    from gtx.molecules import binary_kernels

    starts = np.cumsum([0, *map(len, binaries)])
    data = np.frombuffer(b"".join(binaries), np.uint8)
    usual, *arrays = binary_kernels.decode(data, starts, _ATOM_CODES, _BOND_CODES)
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
