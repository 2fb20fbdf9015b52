"""Many molecules as one graph in flat arrays: the columns of codes, and what follows from the bonds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from gtx.molecules.binary import binary, decode
from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS, Parts, plain_parts
from gtx.molecules.stereo import put_labels


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
    def of(cls, mols: Sequence[Chem.Mol]) -> Graphs:
        """The atoms and bonds of molecules; the chirality of a centre and the stereo of a bond that has any are 0."""
        return cls.read([binary(mol) for mol in mols], mols.__getitem__)

    @classmethod
    def read(cls, binaries: Sequence[bytes], molecule: Callable[[int], Chem.Mol]) -> Graphs:
        """As `of`, from RDKit's binary form; `molecule` gives one by its place, where the form is unusual."""
        pieces, first = [], 0
        while first < len(binaries) or not pieces:
            usual, piece = decode(binaries[first:])
            pieces.append(piece)
            first += usual
            if first < len(binaries):
                pieces.append(_arrays(plain_parts(molecule(first))))
                first += 1
        return cls.from_arrays(*(pieces[0] if len(pieces) == 1 else _join(pieces)))

    @classmethod
    def from_arrays(cls, *arrays: np.ndarray) -> Graphs:
        """Graphs of the arrays up to `member_ptr`; columns that follow from bonds and rings are filled in."""
        from gtx.molecules.graph_kernels import follow

        return cls(*arrays, *follow(*arrays))

    @classmethod
    def join(cls, parts: Sequence[Graphs]) -> Graphs:
        """Graphs one after the other."""
        return cls(*_join(parts, cls._fields)) if len(parts) != 1 else parts[0]

    def codes(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The codes of the atoms and bonds of one molecule, `[n, A]` and `[m, F]`, to read and to change."""
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


def atom_codes(mol: Chem.Mol) -> np.ndarray:
    """One code per atom and column: uint8 `[n, len(ATOM_COLUMNS)]`; chirality as `label_stereo` left it."""
    return _alone(mol).atoms


def bond_ends(mol: Chem.Mol) -> np.ndarray:
    """Sender (row 0) and receiver (row 1) of every bond, both ways: int32 `[2, 2m]`; bond k is at 2k and 2k + 1."""
    return _alone(mol).both_ways


def bond_codes(mol: Chem.Mol) -> np.ndarray:
    """One code per directed bond and column, in the order of `bond_ends`: uint8 `[2m, len(BOND_COLUMNS)]`."""
    return _alone(mol).both_codes


def _alone(mol: Chem.Mol) -> Graphs:
    graph = Graphs.of([mol])
    put_labels(mol, graph.atoms, graph.bonds)
    return graph


def _arrays(parts: Parts) -> tuple[np.ndarray, ...]:
    """One molecule, as `decode` gives many."""
    sizes = [len(ring) for ring in parts.rings]
    return (
        np.frombuffer(parts.atoms, np.uint8).reshape(-1, len(ATOM_COLUMNS)).copy(),
        np.frombuffer(parts.tags, np.uint8).copy(),
        np.frombuffer(parts.bonds, np.uint8).reshape(-1, len(BOND_COLUMNS)).copy(),
        np.array(parts.ends, np.int32).reshape(-1, 2),
        np.fromiter(chain.from_iterable(parts.rings), np.int32),
        np.array([0, len(parts.tags)]),
        np.array([0, len(parts.ends) // 2]),
        np.array([0, len(sizes)]),
        np.cumsum([0, *sizes]),
    )


def _join(pieces: Sequence[Sequence[np.ndarray]], names: Sequence[str] = Graphs._fields[:9]) -> list[np.ndarray]:
    """Arrays one after the other; those that say what is before each molecule go on where the one before ended."""
    joined = []
    for name, *arrays in zip(names, *pieces, strict=True):
        if name.endswith("_ptr"):
            counts = [np.diff(array) for array in arrays]
            joined.append(np.concatenate([[0], np.cumsum(np.concatenate(counts))]))
        else:
            joined.append(np.concatenate(arrays))
    return joined
