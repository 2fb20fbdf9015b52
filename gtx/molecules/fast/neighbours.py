"""Counts of each atom's neighbours that match simple SMARTS, in compiled code."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from gtx.jit import njit
from gtx.molecules.fast.graphs import Graphs

_ELEMENT, _AROMATIC = 0, 5  # columns of atoms
_TYPE, _IN_RING = 0, 3  # columns of bonds
_SINGLE, _IN_CHAIN = 1, 6

# a set of kinds of atoms, or of bonds, is an integer with a bit for each
_NAMES = ("H", "C", "N", "O", "S", "P", "F", "Cl", "Br", "I", "other")
_PLACES = np.full(119, 10)
_PLACES[[1, 6, 7, 8, 16, 15, 9, 17, 35, 53]] = range(10)
_KINDS = {name: 1 << k for k, name in enumerate((*_NAMES, *(name.lower() for name in _NAMES[:-1]), "other aromatic"))}
_KINDS["*"] = (1 << 22) - 1
_KINDS["a"] = _KINDS["*"] & ~((1 << 11) - 1)
_KINDS["heavy"] = _KINDS["*"] & ~_KINDS["H"] & ~_KINDS["h"]
_KINDS["A"] = _KINDS["heavy"] & ~_KINDS["a"]
_BONDS = {"-": 1 << 1 | 1 << 6, "-!@": 1 << 6, "=": 1 << 2, "#": 1 << 3, ":": 1 << 4, "": 1 << 1 | 1 << 6 | 1 << 4}


class Near(NamedTuple):
    """The neighbours of N atoms.

    Attributes:
        ptr: int64 `[N + 1]`; atom i has neighbours `ptr[i]` to `ptr[i + 1]`, in the order of its bonds.
        atoms: int64 `[2M]`, each of them, numbered within all.
        bonds: uint8 `[2M]`, the code of the type of the bond to it, 6 for a single one in no ring.
        kind: int64 `[N]`, a bit.
    """

    ptr: np.ndarray
    atoms: np.ndarray
    bonds: np.ndarray
    kind: np.ndarray


def look(graphs: Graphs) -> Near:
    """Return the neighbours of all atoms."""
    near = _look(graphs.atoms, graphs.bonds, graphs.atom_ptr, graphs.bond_ptr, *graphs[9:12])
    return Near(graphs.near_ptr, *near)


def masks(*smarts: str) -> np.ndarray:
    """Compile SMARTS to bit masks of bonds and neighbours, int32 `[K, 2]`.

    Args:
        smarts: a bond ("-", "=", "#", ":", "-!@"; without one, single or aromatic) and kinds of atoms, as in "=O",
            "N,O" or "-A;!C,N": an element, aromatic in small letters, "A" and "a" for any, "heavy", "*".
    """
    return np.array([_mask(text) for text in smarts], np.int32)


def count(near: Near, wanted: np.ndarray) -> np.ndarray:
    """Count the neighbours of every atom that match each of K `masks`: uint8 `[N, K]`."""
    return _count(*near, wanted)


def _mask(smarts: str) -> tuple[int, int]:
    bond, among, _, but = re.fullmatch(r"(-!@|[-=#:]?)([^;]+)(;!(.+))?", smarts).groups()
    names = (name.split(",") if name else [] for name in (among, but))
    among, but = (sum({_KINDS[name] for name in part}) for part in names)
    return _BONDS[bond], among & ~but


@njit(cache=True, nogil=True)
def _look(atoms, bonds, atom_ptr, bond_ptr, near_ptr, near_atoms, near_bonds):
    kind, codes = np.zeros(len(atoms), np.int64), np.zeros(len(near_atoms), np.uint8)
    others = np.zeros(len(near_atoms), np.int64)
    for i in range(len(atoms)):
        kind[i] = 1 << _PLACES[atoms[i, _ELEMENT]] + 11 * (atoms[i, _AROMATIC] == 2)
    for k in range(len(atom_ptr) - 1):
        for j in range(near_ptr[atom_ptr[k]], near_ptr[atom_ptr[k + 1]]):
            others[j] = atom_ptr[k] + near_atoms[j]
            bond = bond_ptr[k] + near_bonds[j]
            codes[j] = bonds[bond, _TYPE]
            if codes[j] == _SINGLE and bonds[bond, _IN_RING] == 1:
                codes[j] = _IN_CHAIN
    return others, codes, kind


@njit(cache=True, nogil=True)
def _count(ptr, atoms, bonds, kind, wanted):
    counts = np.zeros((len(kind), len(wanted)), np.uint8)
    for i in range(len(kind)):
        own = counts[i]
        for j in range(ptr[i], ptr[i + 1]):
            bond, other = np.int32(1) << np.int32(bonds[j]), np.int32(kind[atoms[j]])
            for k in range(len(wanted)):
                own[k] += (wanted[k, 0] & bond != 0) & (wanted[k, 1] & other != 0)
    return counts
