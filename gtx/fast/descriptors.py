"""Descriptors of many molecules from their graphs, which takes a fifth of the time that RDKit takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numba import njit
from rdkit import Chem

from gtx.base.jit import compiled_loop
from gtx.fast.atom_properties import (
    CHAIN,
    PARAMETERS,
    RADII,
    Neighbours,
    charges,
    count,
    crippen,
    find_neighbours,
    masks,
    surfaces,
)
from gtx.fast.graphs import (
    AROMATIC,
    AROMATIC_BOND,
    CHARGE,
    DEGREE,
    DOUBLE,
    ELEMENT,
    HYBRIDISATION,
    HYDROGENS,
    ISOTOPE,
    NEUTRAL,
    NO,
    NO_RING,
    RING,
    RING_OF_THREE,
    SINGLE,
    SP,
    SP2,
    TRIPLE,
    TYPE,
    YES,
    Graphs,
)
from gtx.molecules.descriptors import PROPERTY_NAMES, compute_descriptors, to_float32

_LOGP_EDGES = np.array([-0.4, -0.2, 0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6])  # as in RDKit's `MolSurf.cpp`
_REFRACTIVITY_EDGES = np.array([1.29, 1.82, 2.24, 2.45, 2.75, 3.05, 3.63, 3.8, 4.0])
_CHARGE_EDGES = np.array([-0.3, -0.25, -0.2, -0.15, -0.1, -0.05, 0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])


def tabulate(graphs: Graphs, mols: Sequence[Chem.Mol]) -> np.ndarray:
    """Compute the descriptors of m molecules, as `compute_descriptors` does: float32 `[m, D]`.

    RDKit computes those of `unsupported` molecules.

    Args:
        graphs, mols: the same molecules.
    """
    near, ptr = find_neighbours(graphs), graphs.atom_ptr
    surface, surface_areas = surfaces(graphs, RADII)
    logp, refractivity = crippen(graphs, near)
    values = to_float32(
        np.concatenate(
            [
                properties(graphs, near, surface_areas),
                np.stack([sum_per_molecule(ptr, logp), sum_per_molecule(ptr, refractivity)], 1),
                surface_by_range(ptr, logp, surface, _LOGP_EDGES),
                surface_by_range(ptr, refractivity, surface, _REFRACTIVITY_EDGES),
                surface_by_range(ptr, charges(graphs, PARAMETERS), surface, _CHARGE_EDGES),
                quantum_numbers(graphs, near),
            ],
            axis=1,
        )
    )
    for k in np.flatnonzero(unsupported(graphs)).tolist():
        values[k] = compute_descriptors(mols[k])
    return values


def unsupported(graphs: Graphs) -> np.ndarray:
    """Mark the molecules whose descriptors do not all follow from their graphs: bool `[m]`.

    These have hydrogen atoms, isotopes, dummies, large charges or other values that a column does not list, unusual
    bonds, or elements or hybridisations without parameters by Gasteiger and Marsili.
    """
    return _unsupported(graphs.atoms, graphs.bonds, graphs.ends, graphs.atom_ptr, graphs.bond_ptr, PARAMETERS)


@compiled_loop
def _unsupported(atoms, bonds, ends, atom_ptr, bond_ptr, parameters):
    found = np.zeros(len(atom_ptr) - 1, np.bool_)
    for k in range(len(found)):
        first = atom_ptr[k]
        for i in range(first, atom_ptr[k + 1]):
            atom = atoms[i]
            found[k] |= atom[ELEMENT] <= 1 or atom[CHARGE] == 0 or atom[HYDROGENS] == 0 or atom[DEGREE] == 0
            found[k] |= atom[ISOTOPE] != NO or parameters[atom[ELEMENT], atom[HYBRIDISATION], 0] == 0
        for b in range(bond_ptr[k], bond_ptr[k + 1]):
            kind = bonds[b, TYPE]
            found[k] |= kind < SINGLE or kind > AROMATIC_BOND
            for side in range(2):
                found[k] |= kind == AROMATIC_BOND and atoms[first + ends[b, side], AROMATIC] != YES
    return found


@compiled_loop
def surface_by_range(atom_ptr, value, surface, edges):
    """Sum the surface of each molecule whose atoms' values are below the first edge, from it to the second, and so on.

    Args:
        atom_ptr: int64 `[m + 1]`; molecule k has atoms `atom_ptr[k]` to `atom_ptr[k + 1]`.
        value, surface: float64 `[N]`.
        edges: float64, ascending.

    Returns:
        float64 `[m, len(edges) + 1]`.
    """
    found = np.zeros((len(atom_ptr) - 1, len(edges) + 1))
    for k in range(len(found)):
        for i in range(atom_ptr[k], atom_ptr[k + 1]):
            place = 0
            while place < len(edges) and not value[i] < edges[place]:
                place += 1
            found[k, place] += surface[i]
    return found


@compiled_loop
def sum_per_molecule(atom_ptr, value):
    """Sum a value over the atoms of each molecule: float64 `[m]`."""
    found = np.zeros(len(atom_ptr) - 1)
    for k in range(len(found)):
        for i in range(atom_ptr[k], atom_ptr[k + 1]):
            found[k] += value[i]
    return found


# --- Weight, polar surface, connectivity, rings and groups of molecules; in place of RDKit's `Properties`.
#
# Sources, each as in RDKit's `Lipinski.cpp`, `MolSurf.cpp` and `ConnectivityDescriptors.cpp`: Ertl, Rohde & Selzer 2000
# (10.1021/jm000942e) for the polar surface; Kier & Hall's valence connectivity and shape, as in Hall & Kier 1991
# (10.1002/9780470125793.ch9).

_WRAPPED = 2.0**32  # RDKit subtracts without a sign

_TABLE = Chem.GetPeriodicTable()
_WEIGHTS = np.array([_TABLE.GetAtomicWeight(element) for element in range(119)])
_ELECTRONS = np.array([0.0, *(_TABLE.GetNOuterElecs(element) for element in range(1, 119))])

_PROPERTY_COUNTS = masks("-*", "=*", "#*", ":*", "N")
_COMPUTED = (
    *("amw", "FractionCSP3", "lipinskiHBA", "lipinskiHBD", "tpsa"),
    *("chi0v", "chi1v", "chi0n", "chi1n", "hallKierAlpha", "kappa1"),
    *("NumRings", "NumAromaticRings", "NumAliphaticRings", "NumSaturatedRings"),
    *("NumHeterocycles", "NumAromaticHeterocycles", "NumAliphaticHeterocycles", "NumSaturatedHeterocycles"),
    *("NumSpiroAtoms", "NumBridgeheadAtoms"),
    *("NumHBD", "NumHeteroatoms", "NumAmideBonds"),
)


def properties(graphs: Graphs, near: Neighbours, surface_areas: np.ndarray) -> np.ndarray:
    """Compute RDKit's `PROPERTY_NAMES` of m molecules: float64 `[m, 25]`.

    Args:
        graphs, near: molecules without isotopes, hydrogen atoms and unusual bonds.
        surface_areas: float64 `[m]`, the surface of each in Å².
    """
    values, counts = np.zeros((len(surface_areas), len(_COMPUTED))), count(near, _PROPERTY_COUNTS)
    _sum_over_atoms(graphs.atom_ptr, graphs.atoms, counts, _WEIGHTS, values)
    _connectivity(graphs.atom_ptr, graphs.bond_ptr, graphs.atoms, graphs.ends, RADII, _ELECTRONS, values[:, 5:11])
    codes = graphs.atoms, graphs.bonds, graphs.ends
    pointers = graphs.atom_ptr, graphs.bond_ptr, graphs.ring_ptr, graphs.member_ptr
    _count_rings(*pointers, *codes, graphs.rings, graphs.ring_bonds, values[:, 11:21])
    _count_groups(graphs.atom_ptr, graphs.atoms, *near[:3], counts, values[:, 21:])
    named = {**dict(zip(_COMPUTED, values.T, strict=True)), "labuteASA": surface_areas}
    return np.stack([named[name] for name in PROPERTY_NAMES], 1)


@compiled_loop
def _sum_over_atoms(atom_ptr, atoms, counts, weights, values):
    for k in range(len(values)):
        carbons, saturated, own = 0, 0, values[k]
        for i in range(atom_ptr[k], atom_ptr[k + 1]):
            atom, element, hydrogens = atoms[i], atoms[i, ELEMENT], np.int64(atoms[i, HYDROGENS]) - 1
            own[0] += weights[element]
            own[0] += hydrogens * weights[1]
            if element == 6:
                carbons += 1
                saturated += np.int64(atom[DEGREE]) - 1 + hydrogens == 4
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
    """Return the polar surface of a nitrogen atom, Å²: H counts its hydrogens, n its bonds by type."""
    single, double, triple, flat, _ = n
    q, degree, small = np.int64(atom[CHARGE]) - NEUTRAL, np.int64(atom[DEGREE]) - 1, atom[RING] == RING_OF_THREE
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
    """Return the polar surface of an oxygen atom, Å²."""
    single, double, _, flat, _ = n
    q, degree = np.int64(atom[CHARGE]) - NEUTRAL, np.int64(atom[DEGREE]) - 1
    if degree == 1:
        if H == 0 and q == 0 and double == 1:
            return 17.07
        if H == 1 and q == 0 and single == 1:
            return 20.23
        if H == 0 and q == -1 and single == 1:
            return 23.06
    elif degree == 2 and H == 0 and q == 0:
        if single == 2:
            return 12.53 if atom[RING] == RING_OF_THREE else 9.23
        if flat == 2:
            return 13.14
    return max(28.5 - degree * 8.6 + H * 1.5, 0.0)


@compiled_loop
def _connectivity(atom_ptr, bond_ptr, atoms, ends, radii, electrons, values):
    """Compute chi of orders 0 and 1 by valence and by outer electrons, alpha, and kappa of order 1: `[m, 6]`."""
    valence, outer = np.zeros(len(atoms)), np.zeros(len(atoms))
    for k in range(len(values)):
        own, first, heavy = values[k], atom_ptr[k], 0
        for i in range(first, atom_ptr[k + 1]):
            element = atoms[i, ELEMENT]
            delta = electrons[element] - (np.int64(atoms[i, HYDROGENS]) - 1)
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
            own[4] += _alpha(element, atoms[i, HYBRIDISATION], radii)
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
        return -0.22 if hybridisation == SP else -0.13 if hybridisation == SP2 else 0.0
    if element == 7:
        return -0.29 if hybridisation == SP else -0.20 if hybridisation == SP2 else -0.04
    if element == 8:
        return -0.20 if hybridisation == SP2 else -0.04
    if element == 9:
        return -0.07
    if element == 15:
        return 0.30 if hybridisation == SP2 else 0.43
    if element == 16:
        return 0.22 if hybridisation == SP2 else 0.35
    if element == 17:
        return 0.29
    if element == 35:
        return 0.48
    if element == 53:
        return 0.73
    return radii[element] / radii[6] - 1.0 if element > 1 else 0.0


@compiled_loop
def _count_rings(atom_ptr, bond_ptr, ring_ptr, member_ptr, atoms, bonds, ends, rings, ring_bonds, values):
    """Count rings by type, and atoms that are spiro or bridgeheads: `[m, 10]`."""
    of_atom, of_bond = np.full(len(atoms), -1), np.full(len(bonds), -1)  # the ring looked at, where it goes through
    times, spiro, bridge = np.zeros(len(atoms), np.int64), np.zeros(len(atoms)), np.zeros(len(atoms))
    for k in range(len(values)):
        own, first, first_bond = values[k], atom_ptr[k], bond_ptr[k]
        for r in range(ring_ptr[k], ring_ptr[k + 1]):
            flat, single, hetero = True, True, False
            for j in range(member_ptr[r], member_ptr[r + 1]):
                atom, bond = first + rings[j], first_bond + ring_bonds[j]
                of_atom[atom], of_bond[bond] = r, r
                flat &= bonds[bond, TYPE] == AROMATIC_BOND
                single &= bonds[bond, TYPE] == SINGLE
                hetero |= atoms[atom, ELEMENT] != 6
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


@compiled_loop
def _count_groups(atom_ptr, atoms, ptr, others, bonds, counts, found):
    """Count the atoms that match each SMARTS, `[m, 3]`:

    [N&!H0&v3, N&!H0&+1&v4, O&H1&+0, S&H1&+0, n&H1&+0]    [!#6;!#1]    C(=[O;!R])N
    """
    for k in range(len(found)):
        for i in range(atom_ptr[k], atom_ptr[k + 1]):
            atom, n = atoms[i], counts[i]
            element, aliphatic = atom[ELEMENT], atom[AROMATIC] == NO
            H, q = decoded(atom[HYDROGENS], 1), decoded(atom[CHARGE], NEUTRAL)
            if element == 7 and aliphatic and H > 0:
                valence = H + n[0] + 2 * n[1] + 3 * n[2]
                found[k, 0] += valence == 3 or (q == 1 and valence == 4)
            elif element == 7 or (aliphatic and (element == 8 or element == 16)):
                found[k, 0] += H == 1 and q == 0
            found[k, 1] += element != 6 and element != 1
            if element == 6 and aliphatic and n[4] > 0:
                for j in range(ptr[i], ptr[i + 1]):
                    other = atoms[others[j]]
                    outer = bonds[j] == DOUBLE and other[RING] == NO_RING
                    found[k, 2] += n[4] if outer and other[ELEMENT] == 8 and other[AROMATIC] == NO else 0


# --- Molecular quantum numbers: counts of atoms, bonds and rings; in place of RDKit's `MQNs_`.
#
# Source: Nguyen, Blum, van Deursen & Reymond 2009 (10.1002/cmdc.200900317), with donors, acceptors and rotatable bonds
# as RDKit has them (`MQN.cpp` and `Lipinski.cpp`).

_METHYL, _ACYL, _DONOR = 1, 2, 4

_MQN_COUNTS = masks("#*", "=N,O,S", "F", "Cl", "Br")
tANY, dNOS, nF, nCl, nBr = range(len(_MQN_COUNTS))


def quantum_numbers(graphs: Graphs, near: Neighbours) -> np.ndarray:
    """Count MQN1 to MQN42 of m molecules: float64 `[m, 42]`; a charge beyond ±4 counts as a positive one."""
    return _quantum_numbers(graphs, rotatable(graphs, near))


def rotatable(graphs: Graphs, near: Neighbours) -> np.ndarray:
    """Mark the rotatable bonds, by RDKit's strict definition: bool `[M]`.

    These are single, in no ring, between inner atoms; not those of CF3 and the like, of amides, esters and thioesters,
    nor next to a triple bond.
    """
    stiff, amide = _ends(graphs.atoms, *near[:3], count(near, _MQN_COUNTS))
    return _rotatable(graphs.atom_ptr, graphs.bond_ptr, graphs.ends, graphs.bonds, graphs.bond_rings, stiff, amide)


@compiled_loop
def _quantum_numbers(graphs, turns):
    numbers = np.zeros((len(graphs.atom_ptr) - 1, 42))
    for k in range(len(numbers)):
        own, first = numbers[k], graphs.atom_ptr[k]
        for i in range(first, graphs.atom_ptr[k + 1]):
            _count_atom(graphs.atoms[i], graphs.atom_rings[i], own)
        aromatic = 0
        for b in range(graphs.bond_ptr[k], graphs.bond_ptr[k + 1]):
            kind, cyclic = graphs.bonds[b, TYPE], graphs.bond_rings[b] > 0
            if SINGLE <= kind <= TRIPLE:
                own[11 + kind + 3 * cyclic] += 1
            elif kind == AROMATIC_BOND:  # `C:C` is not
                aromatic += graphs.atoms[first + graphs.ends[b, 0], AROMATIC] == YES
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
    element, cyclic = atom[ELEMENT], rings > 0
    H, degree, q = decoded(atom[HYDROGENS], 1), decoded(atom[DEGREE], 1), decoded(atom[CHARGE], NEUTRAL)
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
    """Return the number of a code; one that the column does not list is far from any that it does."""
    return np.int64(code) - zero if code else 99


@compiled_loop
def _ends(atoms, ptr, others, bonds, counts):
    """Mark atoms none of whose bonds is rotatable, and those of amides and esters: bool `[N]` each."""
    role, stiff, amide = np.zeros(len(atoms), np.int64), np.zeros(len(atoms), np.bool_), np.zeros(len(atoms), np.bool_)
    for i in range(len(atoms)):
        atom, n = atoms[i], counts[i]
        element, aliphatic, degree = atom[ELEMENT], atom[AROMATIC] == NO, decoded(atom[DEGREE], 1)
        if element == 6 and aliphatic:
            if decoded(atom[HYDROGENS], 1) == 3:
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
            methyls += other == _METHYL and bonds[j] in (SINGLE, AROMATIC_BOND, CHAIN)
            amide[i] |= bonds[j] == CHAIN and role[i] | other == _ACYL | _DONOR
        stiff[i] |= methyls > 2 and atoms[i, ELEMENT] == 6 and atoms[i, AROMATIC] == NO
    return stiff, amide


@compiled_loop
def _rotatable(atom_ptr, bond_ptr, ends, bonds, rings, stiff, amide):
    turns = np.zeros(len(bonds), np.bool_)
    for k in range(len(atom_ptr) - 1):
        for b in range(bond_ptr[k], bond_ptr[k + 1]):
            i, j = atom_ptr[k] + ends[b, 0], atom_ptr[k] + ends[b, 1]
            free = rings[b] == 0 and bonds[b, TYPE] in (SINGLE, AROMATIC_BOND)
            turns[b] = free and not (stiff[i] or stiff[j] or (amide[i] and amide[j]))
    return turns
