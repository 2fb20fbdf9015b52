"""Many molecules as one graph in flat arrays: the columns of codes, and what follows from the bonds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from rdkit import Chem

from gtx.molecules.binary import parts_of
from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS, Parts, put_labels

_DEGREE, _RING = (list(ATOM_COLUMNS).index(name) for name in ("degree", "ring"))
_IN_RING = list(BOND_COLUMNS).index("ring")
_NO_RING = 255


@dataclass(frozen=True)
class Graphs:
    """m molecules with N atoms, M bonds and R rings, one after the other.

    Attributes:
        atoms: uint8 `[N, A]`, a code per atom and column of `ATOM_COLUMNS`.
        bonds: uint8 `[M, F]`, a code per bond and column of `BOND_COLUMNS`.
        ends: int32 `[M, 2]`, the atoms of each bond, numbered within its molecule.
        rings: int64, the atoms of each ring in order along it, numbered within all.
        atom_counts: int64 `[m]`.
        bond_counts: int64 `[m]`.
        ring_sizes: int64 `[R]`.
        ring_counts: int64 `[m]`.
    """

    atoms: np.ndarray
    bonds: np.ndarray
    ends: np.ndarray
    rings: np.ndarray
    atom_counts: np.ndarray
    bond_counts: np.ndarray
    ring_sizes: np.ndarray
    ring_counts: np.ndarray

    @classmethod
    def join(cls, parts: Sequence[Parts]) -> Graphs:
        """Molecules one after the other, with the columns that follow from bonds and rings filled in."""
        atoms = np.frombuffer(bytearray().join(p.atoms for p in parts), np.uint8).reshape(-1, len(ATOM_COLUMNS))
        bonds = np.frombuffer(bytearray().join(p.bonds for p in parts), np.uint8).reshape(-1, len(BOND_COLUMNS))
        ends = _integers(chain.from_iterable(p.ends for p in parts), np.int32).reshape(-1, 2)
        atom_counts = _integers(len(p.atoms) // len(ATOM_COLUMNS) for p in parts)
        bond_counts = _integers(len(p.bonds) // len(BOND_COLUMNS) for p in parts)
        ring_counts = _integers(len(p.rings) for p in parts)
        ring_sizes = _integers(len(ring) for p in parts for ring in p.rings)
        rings = _integers(chain.from_iterable(ring for p in parts for ring in p.rings))
        rings += np.repeat(np.repeat(_starts(atom_counts), ring_counts), ring_sizes)
        graphs = cls(atoms, bonds, ends, rings, atom_counts, bond_counts, ring_sizes, ring_counts)

        degree = np.bincount(graphs.receivers, minlength=len(atoms))
        atoms[:, _DEGREE] = np.where(degree < 9, degree + 1, 0)
        smallest = np.full(len(atoms), _NO_RING)
        np.minimum.at(smallest, rings, np.repeat(ring_sizes, ring_sizes))
        atoms[:, _RING] = np.select([smallest == _NO_RING, smallest < 25], [1, smallest - 1], 0)
        bonds[:, _IN_RING] = np.where(graphs.bond_rings > 0, 2, 1)
        return graphs

    @cached_property
    def molecule(self) -> np.ndarray:
        """int64 `[N]`: the molecule of each atom."""
        return np.repeat(np.arange(len(self.atom_counts)), self.atom_counts)

    @cached_property
    def bond_molecule(self) -> np.ndarray:
        """int64 `[M]`: the molecule of each bond."""
        return np.repeat(np.arange(len(self.bond_counts)), self.bond_counts)

    @cached_property
    def both_ways(self) -> np.ndarray:
        """int32 `[2, 2M]`: sender and receiver of every bond, numbered within its molecule; bond k is at 2k, 2k + 1."""
        return np.ascontiguousarray(np.stack([self.ends, self.ends[:, ::-1]], 1).reshape(-1, 2).T)

    @cached_property
    def senders(self) -> np.ndarray:
        """int64 `[2M]`, numbered within all."""
        return self.both_ways[0] + np.repeat(_starts(self.atom_counts), 2 * self.bond_counts)

    @cached_property
    def receivers(self) -> np.ndarray:
        """int64 `[2M]`, numbered within all."""
        return self.senders.reshape(-1, 2)[:, ::-1].ravel()

    @cached_property
    def atom_rings(self) -> np.ndarray:
        """int64 `[N]`: rings through each atom."""
        return np.bincount(self.rings, minlength=len(self.atoms))

    @cached_property
    def bond_rings(self) -> np.ndarray:
        """int64 `[M]`: rings through each bond."""
        last = np.cumsum(self.ring_sizes) - 1
        following = np.roll(self.rings, -1)
        following[last] = self.rings[last - self.ring_sizes + 1]
        names = self._pair(self.senders[::2], self.receivers[::2])
        order = np.argsort(names)
        found = np.searchsorted(names, self._pair(self.rings, following), sorter=order)
        return np.bincount(order[found], minlength=len(self.bonds))

    def _pair(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """A number for two atoms, whichever comes first."""
        return np.minimum(i, j) * len(self.atoms) + np.maximum(i, j)


def atom_codes(mol: Chem.Mol) -> np.ndarray:
    """One code per atom and column: uint8 `[n, len(ATOM_COLUMNS)]`; chirality as `label_stereo` left it."""
    return _alone(mol).atoms


def bond_ends(mol: Chem.Mol) -> np.ndarray:
    """Sender (row 0) and receiver (row 1) of every bond, both ways: int32 `[2, 2m]`; bond k is at 2k and 2k + 1."""
    return _alone(mol).both_ways


def bond_codes(mol: Chem.Mol) -> np.ndarray:
    """One code per directed bond and column, in the order of `bond_ends`: uint8 `[2m, len(BOND_COLUMNS)]`."""
    return _alone(mol).bonds.repeat(2, axis=0)


def _alone(mol: Chem.Mol) -> Graphs:
    parts = parts_of(mol)
    put_labels(mol, parts)
    return Graphs.join([parts])


def _integers(values: Iterable[int], dtype: type = np.int64) -> np.ndarray:
    return np.fromiter(values, dtype)


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.cumsum(counts) - counts
