"""Molecular quantum numbers: counts of atoms, bonds and rings; in place of RDKit's `MQNs_`.

Source: Nguyen, Blum, van Deursen & Reymond 2009 (10.1002/cmdc.200900317), with donors, acceptors and rotatable bonds as
RDKit has them (`MQN.cpp` and `Lipinski.cpp`), in compiled code.
"""

from __future__ import annotations

import numpy as np

from gtx.jit import njit
from gtx.molecules.fast.graphs import Graphs
from gtx.molecules.fast.neighbours import Near, count, masks

_ELEMENT, _CHARGE, _HYDROGENS, _DEGREE, _HYBRIDISATION, _AROMATIC, _RING = range(7)  # columns of atoms
_TYPE = 0  # column of bonds
_SINGLE, _DOUBLE, _TRIPLE, _FLAT, _CHAIN = 1, 2, 3, 4, 6  # codes of bonds
_NEUTRAL = 5  # code
_METHYL, _ACYL, _DONOR = 1, 2, 4

_COUNTED = masks("#*", "=N,O,S", "F", "Cl", "Br")
tANY, dNOS, nF, nCl, nBr = range(len(_COUNTED))


def quantum_numbers(graphs: Graphs, near: Near) -> np.ndarray:
    """MQN1 to MQN42 of m molecules: float64 `[m, 42]`; a charge beyond ±4 is taken for a positive one."""
    return _quantum_numbers(graphs, rotatable(graphs, near))


def rotatable(graphs: Graphs, near: Near) -> np.ndarray:
    """Bonds that turn freely: bool `[M]`. Single, in no ring, between inner atoms; not those of CF3 and the like, of
    amides, esters and thioesters, nor next to a triple bond. RDKit's strict definition."""
    stiff, amide = _ends(graphs.atoms, *near[:3], count(near, _COUNTED))
    return _rotatable(graphs.atom_ptr, graphs.bond_ptr, graphs.ends, graphs.bonds, graphs.bond_rings, stiff, amide)


@njit(cache=True, nogil=True)
def _quantum_numbers(graphs, turns):
    numbers = np.zeros((len(graphs.atom_ptr) - 1, 42))
    for k in range(len(numbers)):
        own, first = numbers[k], graphs.atom_ptr[k]
        for i in range(first, graphs.atom_ptr[k + 1]):
            _count_atom(graphs.atoms[i], graphs.atom_rings[i], own)
        aromatic = 0
        for b in range(graphs.bond_ptr[k], graphs.bond_ptr[k + 1]):
            kind, cyclic = graphs.bonds[b, _TYPE], graphs.bond_rings[b] > 0
            if _SINGLE <= kind <= _TRIPLE:
                own[11 + kind + 3 * cyclic] += 1
            elif kind == _FLAT:  # `C:C` is not
                aromatic += graphs.atoms[first + graphs.ends[b, 0], _AROMATIC] == 2
            own[18] += turns[b]
            own[41] += graphs.bond_rings[b] > 1
        own[15] += aromatic - aromatic // 2  # half of the aromatic bonds are double
        own[16] += aromatic // 2
        for r in range(graphs.ring_ptr[k], graphs.ring_ptr[k + 1]):
            size = graphs.member_ptr[r + 1] - graphs.member_ptr[r]
            if size >= 3:
                own[29 + min(size, 10)] += 1
    return numbers


@njit
def _count_atom(atom, rings, own):
    element, cyclic = atom[_ELEMENT], rings > 0
    H, degree, q = decoded(atom[_HYDROGENS], 1), decoded(atom[_DEGREE], 1), decoded(atom[_CHARGE], _NEUTRAL)
    nitrogen, oxygen = element == 7, element == 8
    for place, z in enumerate((6, 9, 17, 35, 53, 16, 15)):
        own[place] += element == z
    own[7 + cyclic] += nitrogen
    own[9 + cyclic] += oxygen
    own[11] += element > 1
    if nitrogen and degree != 4:  # accepts
        own[19] += 1
        own[20] += 1
    if oxygen:
        own[19] += 3 if q == -1 else 2  # lone pairs
        own[20] += 1
    if nitrogen or oxygen:
        own[21] += H
        own[22] += H > 0
    own[23] += q < 0
    own[24] += q > 0
    if element != 1:
        own[25] += degree == 1
        if 2 <= degree <= 4:
            own[24 + degree + 3 * cyclic] += 1
        own[40] += rings > 1


@njit
def decoded(code, zero):
    """Return the number a code stands for; one that the column does not list is far from any that it does."""
    return np.int64(code) - zero if code else 99


@njit(cache=True, nogil=True)
def _ends(atoms, ptr, others, bonds, counts):
    """Atoms that let no bond turn, and those of amides and esters: bool `[N]` each."""
    role, stiff, amide = np.zeros(len(atoms), np.int64), np.zeros(len(atoms), np.bool_), np.zeros(len(atoms), np.bool_)
    for i in range(len(atoms)):
        atom, n = atoms[i], counts[i]
        element, aliphatic, degree = atom[_ELEMENT], atom[_AROMATIC] == 1, decoded(atom[_DEGREE], 1)
        if element == 6 and aliphatic:
            if decoded(atom[_HYDROGENS], 1) == 3:
                role[i] = _METHYL
            elif degree == 3 and n[dNOS] > 0:
                role[i] = _ACYL
            stiff[i] = n[nF] > 2 or n[nCl] > 2 or n[nBr] > 2
        if element == 7 or (element == 8 and aliphatic) or (element == 16 and aliphatic and degree != 1):
            role[i] = _DONOR
        stiff[i] |= degree == 1 or role[i] == _METHYL or n[tANY] > 0
    for i in range(len(atoms)):
        methyls = 0
        for j in range(ptr[i], ptr[i + 1]):
            other = role[others[j]]
            methyls += other == _METHYL and bonds[j] in (_SINGLE, _FLAT, _CHAIN)
            amide[i] |= bonds[j] == _CHAIN and role[i] | other == _ACYL | _DONOR
        stiff[i] |= methyls > 2 and atoms[i, _ELEMENT] == 6 and atoms[i, _AROMATIC] == 1
    return stiff, amide


@njit(cache=True, nogil=True)
def _rotatable(atom_ptr, bond_ptr, ends, bonds, rings, stiff, amide):
    turns = np.zeros(len(bonds), np.bool_)
    for k in range(len(atom_ptr) - 1):
        for b in range(bond_ptr[k], bond_ptr[k + 1]):
            i, j = atom_ptr[k] + ends[b, 0], atom_ptr[k] + ends[b, 1]
            free = rings[b] == 0 and bonds[b, _TYPE] in (_SINGLE, _FLAT)
            turns[b] = free and not (stiff[i] or stiff[j] or (amide[i] and amide[j]))
    return turns
