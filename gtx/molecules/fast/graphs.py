"""Many molecules as one graph in flat arrays: the columns of codes, and what follows from bonds and rings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gtx.molecules.fast.binary import decode
from gtx.molecules.fast.topology import follow


class Graphs(NamedTuple):
    """m molecules with N atoms, M bonds and R rings, one after the other; all are numbered within their molecule.

    Attributes:
        atoms: uint8 `[N, A]`, a code per atom and column of `ATOM_COLUMNS`.
        tags: uint8 `[N]`, RDKit's `ChiralType`.
        bonds: uint8 `[M, F]`, a code per bond and column of `BOND_COLUMNS`.
        ends: int32 `[M, 2]`, the atoms of each bond.
        rings: int32, the atoms of each ring in order along it.
        atom_ptr, bond_ptr, ring_ptr: int64 `[m + 1]`; molecule k has atoms `atom_ptr[k]` to `atom_ptr[k + 1]`.
        member_ptr: int64 `[R + 1]`; ring r has atoms `rings[member_ptr[r]:member_ptr[r + 1]]`.
        near_ptr: int64 `[N + 1]`; atom i has neighbours `near_ptr[i]` to `near_ptr[i + 1]`, in the order of its bonds.
        near_atoms, near_bonds: int32 `[2M]`, the neighbour and the bond to it.
        atom_rings: int32 `[N]`, rings through each atom, and
        bond_rings: int32 `[M]`, through each bond.
        ring_bonds: int32, beside `rings`, the bond from each atom to the one before it, from the first to the last.
    """

    atoms: np.ndarray
    tags: np.ndarray
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
    ring_bonds: np.ndarray

    @classmethod
    def read(cls, binaries: Sequence[bytes]) -> tuple[int, Graphs]:
        """Molecules in RDKit's binary form, up to the first that is unusual: how many, and their graphs.

        The chirality of a centre and the stereo of a bond that has any are 0.
        """
        usual, arrays = decode(binaries)
        return usual, cls(*arrays, *follow(*arrays))

    def codes(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes of the atoms and bonds of one molecule, `[n, A]` and `[m, F]`, to read and to change."""
        atoms, bonds = self.atom_ptr[k : k + 2], self.bond_ptr[k : k + 2]
        return self.atoms[slice(*atoms)], self.bonds[slice(*bonds)]

    @property
    def atom_counts(self) -> np.ndarray:
        """int64 `[m]`."""
        return np.diff(self.atom_ptr)

    @property
    def bond_counts(self) -> np.ndarray:
        """int64 `[m]`."""
        return np.diff(self.bond_ptr)

    @property
    def both_ways(self) -> np.ndarray:
        """int32 `[2, 2M]`: sender and receiver of every bond; bond k is at 2k and, the other way, at 2k + 1."""
        return np.ascontiguousarray(np.stack([self.ends, self.ends[:, ::-1]], 1).reshape(-1, 2).T)

    @property
    def both_codes(self) -> np.ndarray:
        """uint8 `[2M, F]`: the codes of bonds in the order of `both_ways`."""
        return self.bonds.repeat(2, axis=0)
