"""Weight, polar surface, connectivity, rings and groups of molecules; in place of RDKit's `Properties`.

Sources, each as in RDKit's `Lipinski.cpp`, `MolSurf.cpp` and `ConnectivityDescriptors.cpp`: Ertl, Rohde & Selzer 2000
(10.1021/jm000942e) for the polar surface; Kier & Hall's valence connectivity and shape, as in Hall & Kier 1991
(10.1002/9780470125793.ch9).
"""

from __future__ import annotations

import math

import numpy as np
from rdkit import Chem

from gtx.jit import njit
from gtx.molecules.descriptors import PROPERTY_NAMES
from gtx.molecules.fast.graphs import Graphs
from gtx.molecules.fast.neighbours import Near, count, masks
from gtx.molecules.fast.quantum_numbers import decoded
from gtx.molecules.fast.surface import RADII

_ELEMENT, _CHARGE, _HYDROGENS, _DEGREE, _HYBRIDISATION, _AROMATIC, _RING = range(7)  # columns of atoms
_TYPE, _SINGLE, _DOUBLE, _FLAT = 0, 1, 2, 4  # column of bonds; codes
_SP, _SP2, _NO_RING, _THREE = 2, 3, 1, 2  # codes: hybridisations; no ring, a ring of three
_NEUTRAL, _CATION, _ANION = 5, 6, 4  # codes
_WRAPPED = 2.0**32  # RDKit subtracts without a sign

_TABLE = Chem.GetPeriodicTable()
_WEIGHTS = np.array([_TABLE.GetAtomicWeight(element) for element in range(119)])
_ELECTRONS = np.array([0.0, *(_TABLE.GetNOuterElecs(element) for element in range(1, 119))])

_COUNTED = masks("-*", "=*", "#*", ":*", "N")
_COMPUTED = (
    *("amw", "FractionCSP3", "lipinskiHBA", "lipinskiHBD", "tpsa"),
    *("chi0v", "chi1v", "chi0n", "chi1n", "hallKierAlpha", "kappa1"),
    *("NumRings", "NumAromaticRings", "NumAliphaticRings", "NumSaturatedRings"),
    *("NumHeterocycles", "NumAromaticHeterocycles", "NumAliphaticHeterocycles", "NumSaturatedHeterocycles"),
    *("NumSpiroAtoms", "NumBridgeheadAtoms"),
    *("NumHBD", "NumHeteroatoms", "NumAmideBonds"),
)


def properties(graphs: Graphs, near: Near, whole: np.ndarray) -> np.ndarray:
    """RDKit's `PROPERTY_NAMES` of m molecules: float64 `[m, 25]`.

    Args:
        graphs, near: molecules without isotopes, hydrogen atoms and unusual bonds.
        whole: float64 `[m]`, the surface of each in Å².
    """
    values, counts = np.zeros((len(whole), len(_COMPUTED))), count(near, _COUNTED)
    _of_atoms(graphs.atom_ptr, graphs.atoms, counts, _WEIGHTS, values)
    _connectivity(graphs.atom_ptr, graphs.bond_ptr, graphs.atoms, graphs.ends, RADII, _ELECTRONS, values[:, 5:11])
    codes = graphs.atoms, graphs.bonds, graphs.ends
    _of_rings(*graphs[5:9], *codes, graphs.rings, graphs.ring_bonds, values[:, 11:21])
    _groups(graphs.atom_ptr, graphs.atoms, *near[:3], counts, values[:, 21:])
    named = {**dict(zip(_COMPUTED, values.T, strict=True)), "labuteASA": whole}
    return np.stack([named[name] for name in PROPERTY_NAMES], 1)


@njit(cache=True, nogil=True)
def _of_atoms(atom_ptr, atoms, counts, weights, values):
    for k in range(len(values)):
        carbons, saturated, own = 0, 0, values[k]
        for i in range(atom_ptr[k], atom_ptr[k + 1]):
            atom, element, hydrogens = atoms[i], atoms[i, _ELEMENT], np.int64(atoms[i, _HYDROGENS]) - 1
            own[0] += weights[element]
            own[0] += hydrogens * weights[1]
            if element == 6:
                carbons += 1
                saturated += np.int64(atom[_DEGREE]) - 1 + hydrogens == 4
            if element == 7:
                own[4] += _polar_nitrogen(atom, hydrogens, counts[i])
            if element == 8:
                own[4] += _polar_oxygen(atom, hydrogens, counts[i])
            if element == 7 or element == 8:
                own[2] += 1
                own[3] += hydrogens
        own[1] = saturated / carbons if carbons else 0.0


@njit
def _polar_nitrogen(atom, H, n):
    """Polar surface of a nitrogen atom, Å²: H counts its hydrogens, n its bonds by type."""
    single, double, triple, flat, _ = n
    q, degree, small = np.int64(atom[_CHARGE]) - _NEUTRAL, np.int64(atom[_DEGREE]) - 1, atom[_RING] == _THREE
    if degree == 1 and q == 0:
        if H == 0 and triple == 1:
            return 23.79
        if H == 1 and double == 1:
            return 23.85
        if H == 2 and single == 1:
            return 26.02
    elif degree == 1 and q == 1:
        if H == 2 and double == 1:
            return 25.59
        if H == 3 and single == 1:
            return 27.64
    elif degree == 2 and q == 0:
        if H == 0 and single == 1 and double == 1:
            return 12.36
        if H == 0 and triple == 1 and double == 1:
            return 13.60
        if H == 1 and single == 2:
            return 21.94 if small else 12.03
        if H == 0 and flat == 2:
            return 12.89
        if H == 1 and flat == 2:
            return 15.79
    elif degree == 2 and q == 1:
        if H == 0 and triple == 1 and single == 1:
            return 4.36
        if H == 1 and double == 1 and single == 1:
            return 13.97
        if H == 2 and single == 2:
            return 16.61
        if H == 1 and flat == 2:
            return 14.14
    elif degree == 3 and H == 0 and q == 0:
        if single == 3:
            return 3.01 if small else 3.24
        if single == 1 and double == 2:
            return 11.68
        if flat == 3:
            return 4.41
        if single == 1 and flat == 2:
            return 4.93
        if double == 1 and flat == 2:
            return 8.39
    elif degree == 3 and q == 1:
        if H == 0 and single == 2 and double == 1:
            return 3.01
        if H == 1 and single == 3:
            return 4.44
        if H == 0 and flat == 3:
            return 4.10
        if H == 0 and single == 1 and flat == 2:
            return 3.88
    elif degree == 4 and H == 0 and single == 4 and q == 1:
        return 0.0
    return max(30.5 - degree * 8.2 + H * 1.5, 0.0)


@njit
def _polar_oxygen(atom, H, n):
    """Polar surface of an oxygen atom, Å²."""
    single, double, _, flat, _ = n
    q, degree = np.int64(atom[_CHARGE]) - _NEUTRAL, np.int64(atom[_DEGREE]) - 1
    if degree == 1:
        if H == 0 and q == 0 and double == 1:
            return 17.07
        if H == 1 and q == 0 and single == 1:
            return 20.23
        if H == 0 and q == -1 and single == 1:
            return 23.06
    elif degree == 2 and H == 0 and q == 0:
        if single == 2:
            return 12.53 if atom[_RING] == _THREE else 9.23
        if flat == 2:
            return 13.14
    return max(28.5 - degree * 8.6 + H * 1.5, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _connectivity(atom_ptr, bond_ptr, atoms, ends, radii, electrons, values):
    """Chi of orders 0 and 1 by valence and by outer electrons, alpha, and kappa of order 1: `[m, 6]`."""
    valence, outer = np.zeros(len(atoms)), np.zeros(len(atoms))
    for k in range(len(values)):
        own, first, heavy = values[k], atom_ptr[k], 0
        for i in range(first, atom_ptr[k + 1]):
            element = atoms[i, _ELEMENT]
            delta = electrons[element] - (np.int64(atoms[i, _HYDROGENS]) - 1)
            if delta < 0:
                delta += _WRAPPED
            outer[i] = 1.0 / math.sqrt(delta) if delta != 0.0 else delta
            if element > 10:
                delta /= element - electrons[element] - 1
            if element > 1:
                valence[i] = 1.0 / math.sqrt(delta) if delta != 0.0 else delta
                heavy += 1
            own[0] += valence[i]
            own[2] += outer[i]
            own[4] += _alpha(element, atoms[i, _HYBRIDISATION], radii)
        for b in range(bond_ptr[k], bond_ptr[k + 1]):
            i, j = first + ends[b, 0], first + ends[b, 1]
            own[1] += valence[i] * valence[j]
            own[3] += outer[i] * outer[j]
        bonds, alpha = np.float64(bond_ptr[k + 1] - bond_ptr[k]), own[4]
        if bonds + alpha != 0.0:
            own[5] = (heavy + alpha) * (heavy + alpha - 1) * (heavy + alpha - 1) / ((bonds + alpha) * (bonds + alpha))


@njit
def _alpha(element, hybridisation, radii):
    if element == 6:
        return -0.22 if hybridisation == _SP else -0.13 if hybridisation == _SP2 else 0.0
    if element == 7:
        return -0.29 if hybridisation == _SP else -0.20 if hybridisation == _SP2 else -0.04
    if element == 8:
        return -0.20 if hybridisation == _SP2 else -0.04
    if element == 9:
        return -0.07
    if element == 15:
        return 0.30 if hybridisation == _SP2 else 0.43
    if element == 16:
        return 0.22 if hybridisation == _SP2 else 0.35
    if element == 17:
        return 0.29
    if element == 35:
        return 0.48
    if element == 53:
        return 0.73
    return radii[element] / radii[6] - 1.0 if element > 1 else 0.0


@njit(cache=True, nogil=True)
def _of_rings(atom_ptr, bond_ptr, ring_ptr, member_ptr, atoms, bonds, ends, rings, ring_bonds, values):
    """Rings by kind, and atoms that are spiro or bridgeheads: `[m, 10]`."""
    of_atom, of_bond = np.full(len(atoms), -1), np.full(len(bonds), -1)  # the ring looked at, where it goes through
    times, spiro, bridge = np.zeros(len(atoms), np.int64), np.zeros(len(atoms)), np.zeros(len(atoms))
    for k in range(len(values)):
        own, first, first_bond = values[k], atom_ptr[k], bond_ptr[k]
        for r in range(ring_ptr[k], ring_ptr[k + 1]):
            flat, single, hetero = True, True, False
            for j in range(member_ptr[r], member_ptr[r + 1]):
                atom, bond = first + rings[j], first_bond + ring_bonds[j]
                of_atom[atom], of_bond[bond] = r, r
                flat &= bonds[bond, _TYPE] == _FLAT
                single &= bonds[bond, _TYPE] == _SINGLE
                hetero |= atoms[atom, _ELEMENT] != 6
            for place, counts in enumerate((True, flat, not flat, single)):
                own[place] += counts
                own[4 + place] += counts and hetero
            for other in range(r + 1, ring_ptr[k + 1]):
                shared, shared_bonds, last = 0, 0, -1
                for j in range(member_ptr[other], member_ptr[other + 1]):
                    if of_atom[first + rings[j]] == r:
                        shared, last = shared + 1, first + rings[j]
                    if of_bond[first_bond + ring_bonds[j]] == r:
                        shared_bonds += 1
                        times[first + ends[first_bond + ring_bonds[j], 0]] += 1
                        times[first + ends[first_bond + ring_bonds[j], 1]] += 1
                if shared == 1:
                    spiro[last] = 1.0
                for j in range(member_ptr[other], member_ptr[other + 1]):
                    if times[first + rings[j]] == 1 and shared_bonds > 1:
                        bridge[first + rings[j]] = 1.0
                    times[first + rings[j]] = 0
        for i in range(first, atom_ptr[k + 1]):
            own[8] += spiro[i]
            own[9] += bridge[i]


@njit(cache=True, nogil=True)
def _groups(atom_ptr, atoms, ptr, others, bonds, counts, found):
    """Count what fits some SMARTS, `[m, 3]`:

    [N&!H0&v3, N&!H0&+1&v4, O&H1&+0, S&H1&+0, n&H1&+0]    [!#6;!#1]    C(=[O;!R])N
    """
    for k in range(len(found)):
        for i in range(atom_ptr[k], atom_ptr[k + 1]):
            atom, n = atoms[i], counts[i]
            element, aliphatic = atom[_ELEMENT], atom[_AROMATIC] == 1
            H, q = decoded(atom[_HYDROGENS], 1), decoded(atom[_CHARGE], _NEUTRAL)
            if element == 7 and aliphatic and H > 0:
                valence = H + n[0] + 2 * n[1] + 3 * n[2]
                found[k, 0] += valence == 3 or (q == 1 and valence == 4)
            elif element == 7 or (aliphatic and (element == 8 or element == 16)):
                found[k, 0] += H == 1 and q == 0
            found[k, 1] += element != 6 and element != 1
            if element == 6 and aliphatic and n[4] > 0:
                for j in range(ptr[i], ptr[i + 1]):
                    other = atoms[others[j]]
                    outer = bonds[j] == _DOUBLE and other[_RING] == _NO_RING
                    found[k, 2] += n[4] if outer and other[_ELEMENT] == 8 and other[_AROMATIC] == 1 else 0
