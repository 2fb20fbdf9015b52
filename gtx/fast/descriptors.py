"""Descriptors of many molecules from their graphs: Crippen's contributions, surfaces and molecular quantum numbers.

RDKit takes longer for these than to read the molecules, as it matches SMARTS. Each is equal to RDKit's to the last bit;
the other descriptors are RDKit's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise, starmap

import numpy as np
from numba import njit
from rdkit import Chem

from gtx.base.loops import compiled_loop
from gtx.fast.graphs import (
    AROMATIC,
    AROMATIC_BOND,
    CHARGE,
    DEGREE,
    DOUBLE,
    ELEMENT,
    HYDROGENS,
    IN_RING,
    ISOTOPE,
    NEUTRAL,
    NO,
    SINGLE,
    TRIPLE,
    TYPE,
    YES,
    Graphs,
)
from gtx.molecules.descriptors import DESCRIPTOR_NAMES, PROPERTIES, charged_surface, compute_descriptors, to_float32

_LOGP_EDGES = np.array([-0.4, -0.2, 0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6])  # as in RDKit's `MolSurf.cpp`
_REFRACTIVITY_EDGES = np.array([1.29, 1.82, 2.24, 2.45, 2.75, 3.05, 3.63, 3.8, 4.0])

_PROPERTIES, _CONTRIBUTIONS, _CHARGES, _NUMBERS = starmap(slice, pairwise((0, 25, 49, 63, 105)))
"""Places in `DESCRIPTOR_NAMES`."""


def tabulate(graphs: Graphs, mols: Sequence[Chem.Mol]) -> np.ndarray:
    """Compute the descriptors of m molecules, as `compute_descriptors` does: float32 `[m, D]`.

    RDKit computes those of `unsupported` molecules.

    Args:
        graphs, mols: the same molecules.
    """
    near, surface = find_neighbours(graphs), surfaces(graphs, RADII)
    logp, refractivity = crippen(graphs.atoms, *near[:3], count(*near, _COUNTED))
    contributions = np.concatenate(
        [
            *(np.bincount(graphs.atom_owner, value, len(mols))[:, None] for value in (logp, refractivity)),
            surface_by_range(graphs, logp, surface, _LOGP_EDGES),
            surface_by_range(graphs, refractivity, surface, _REFRACTIVITY_EDGES),
        ],
        axis=1,
    )
    numbers, others = quantum_numbers(graphs, rotatable(graphs, near)), unsupported(graphs)
    values = np.zeros((len(mols), len(DESCRIPTOR_NAMES)))
    values[:, _CONTRIBUTIONS], values[:, _NUMBERS] = contributions, numbers
    for k, mol in enumerate(mols):
        if others[k]:
            values[k] = compute_descriptors(mol)
        else:
            values[k, _PROPERTIES], values[k, _CHARGES] = list(PROPERTIES.ComputeProperties(mol)), charged_surface(mol)
    return to_float32(values)


def unsupported(graphs: Graphs) -> np.ndarray:
    """Mark the molecules whose descriptors are left to RDKit: bool `[m]`.

    These have hydrogen atoms, isotopes, dummies, large charges or other values that a column does not list, or unusual
    bonds.
    """
    atoms, kind, count = graphs.atoms, graphs.bonds[:, TYPE], len(graphs.atom_ptr) - 1
    unlisted = (atoms[:, [CHARGE, HYDROGENS, DEGREE]] == 0).any(1)
    odd_atoms = unlisted | (atoms[:, ELEMENT] <= 1) | (atoms[:, ISOTOPE] != NO)
    aromatic_ends = (atoms[graphs.bonded_atoms, AROMATIC] == YES).all(1)
    odd_bonds = (kind < SINGLE) | (kind > AROMATIC_BOND) | ((kind == AROMATIC_BOND) & ~aromatic_ends)
    return (np.bincount(graphs.atom_owner, odd_atoms, count) + np.bincount(graphs.bond_owner, odd_bonds, count)) > 0


def surface_by_range(graphs: Graphs, value: np.ndarray, surface: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Sum the surface of each molecule whose atoms' values are below the first edge, from it to the second, and so on.

    Args:
        graphs: m molecules with N atoms.
        value, surface: float64 `[N]`.
        edges: float64 `[E]`, ascending.

    Returns:
        float64 `[m, E + 1]`.
    """
    shape = len(graphs.atom_ptr) - 1, len(edges) + 1
    place = graphs.atom_owner * shape[1] + np.searchsorted(edges, value, "right")
    return np.bincount(place, surface, shape[0] * shape[1]).reshape(shape)


# --- Counts of each atom's neighbours that match simple SMARTS.

CHAIN = 6
"""The code of a single bond in no ring, beside those of the column "type"."""


# a set of kinds of atoms, or of bonds, is an integer with a bit for each
_NAMES = ("H", "C", "N", "O", "S", "P", "F", "Cl", "Br", "I", "other")
_BITS = np.full(119, 10)
_BITS[[1, 6, 7, 8, 16, 15, 9, 17, 35, 53]] = range(10)
_ATOM_SETS = {
    name: 1 << k for k, name in enumerate((*_NAMES, *(name.lower() for name in _NAMES[:-1]), "other aromatic"))
}
_ATOM_SETS["*"] = (1 << 22) - 1
_ATOM_SETS["a"] = _ATOM_SETS["*"] & ~((1 << 11) - 1)
_ATOM_SETS["heavy"] = _ATOM_SETS["*"] & ~_ATOM_SETS["H"] & ~_ATOM_SETS["h"]
_ATOM_SETS["A"] = _ATOM_SETS["heavy"] & ~_ATOM_SETS["a"]
_BOND_SETS = {"-": 1 << 1 | 1 << 6, "-!@": 1 << 6, "=": 1 << 2, "#": 1 << 3, ":": 1 << 4, "": 1 << 1 | 1 << 6 | 1 << 4}


def find_neighbours(graphs: Graphs) -> tuple[np.ndarray, ...]:
    """Return the neighbours of all N atoms.

    Returns:
        `near_ptr` and `near_atoms` of `Graphs`; the code of the type of the bond to each, uint8 `[2M]`, `CHAIN` for a
        single one in no ring; and the kind of each atom, a bit, int64 `[N]`.
    """
    near = graphs.bonds[graphs.near_bonds]
    chain = (near[:, TYPE] == SINGLE) & (near[:, IN_RING] == NO)
    kind = 1 << _BITS[graphs.atoms[:, ELEMENT]] + 11 * (graphs.atoms[:, AROMATIC] == YES)
    return graphs.near_ptr, graphs.near_atoms, np.where(chain, np.uint8(CHAIN), near[:, TYPE]), kind


def masks(*smarts: str) -> np.ndarray:
    """Compile SMARTS to bit masks of bonds and neighbours, int32 `[K, 2]`.

    Args:
        smarts: a bond ("-", "=", "#", ":", "-!@"; without one, single or aromatic) and kinds of atoms, as in "=O",
            "N,O" or "-A;!C,N": an element, aromatic in small letters, "A" and "a" for any, "heavy", "*".
    """
    rows = []
    for text in smarts:
        match = re.fullmatch(r"(-!@|[-=#:]?)([^;]+)(;!(.+))?", text)
        if match is None:
            raise ValueError(f"expected a bond and atoms, such as '=O' or '-A;!C,N', got {text!r}")
        bond, atoms, _, excluded = match.groups()
        rows.append((_BOND_SETS[bond], _atom_bits(atoms) & ~_atom_bits(excluded or "")))
    return np.array(rows, np.int32)


def _atom_bits(names: str) -> int:
    return sum({_ATOM_SETS[name] for name in names.split(",") if name})


@compiled_loop
def count(ptr, atoms, bonds, kind, wanted):
    """Count the neighbours of every atom that match each of K `masks`: uint8 `[N, K]`, from `find_neighbours`."""
    counts = np.zeros((len(kind), len(wanted)), np.uint8)
    for i in range(len(kind)):
        own = counts[i]
        for j in range(ptr[i], ptr[i + 1]):
            bond, other = np.int32(1) << np.int32(bonds[j]), np.int32(kind[atoms[j]])
            for k in range(len(wanted)):
                own[k] += (wanted[k, 0] & bond != 0) & (wanted[k, 1] & other != 0)
    return counts


# --- Contributions of heavy atoms to logP and to molar refractivity; in place of RDKit's `_CalcCrippenContribs`.
#
# Source: Wildman & Crippen 1999 (10.1021/ci990307l), as RDKit words it in SMARTS (Data/Crippen.txt). The rows are tried
# here for one atom after the other; matching SMARTS takes longer than reading the molecule.
#
# In what follows, as in SMARTS, a capital is an aliphatic atom and a small letter an aromatic one, A and a any such. H
# counts hydrogens and X all neighbours, q is the charge; nC counts neighbours that are C, dC those by a double bond.

_PLAIN = (SINGLE, AROMATIC_BOND, CHAIN)  # a bond without a symbol in SMARTS is single or aromatic

_HETERO = "N,O,P,S,F,Cl,Br,I"
_COUNTED = masks(
    *("C", "A", "a", "c", "heavy", _HETERO, f"A;!C,{_HETERO}", "=C", "=c", "=A", "=A;!C", "#A"),
    *("-A;!C,N,O,S,F,Cl,Br,I", "F,f", "Cl,cl", "Br,br", "I,i", ":a", "-a", "-C", "-N", "-O", "-S", "=C,N,O"),
    *("=heavy", "=C,c", "=N,n", "=N", "=N,n,O,o", "N,n", "S,s", "heavy;!N,S", "=O", "N,O", "heavy;!C,c", "=N,O,P,S"),
)
(nC, nA, na, nc, nh, nX, nother, dC, dc, dA, dhetero, tA,
 sodd, nF, nCl, nBr, nI, ra, sa, sC, sN, sO, sS, dCNO,
 dh, dCc, dNn, dN, dNO, nNn, nSs, nnotNS, dO, nNO, nnotC, dNOPS) = range(len(_COUNTED))  # fmt: skip


@compiled_loop
def crippen(atoms, ptr, others, bonds, counts):
    """Return the contributions of each atom to logP and molar refractivity, float64 `[N]` each, from the atoms of
    `Graphs`, `find_neighbours` and the `count` of `_COUNTED`.

    Of the rows that fit an atom the first counts; where none fits, both are 0. Rows for hydrogen atoms are left out, as
    is a charge beyond ±4: the caller keeps molecules with these away.
    """
    logp, refractivity = np.zeros(len(atoms)), np.zeros(len(atoms))
    for i in range(len(atoms)):
        element = atoms[i, ELEMENT]
        if element == 6:
            row = _carbon(atoms[i], counts[i])
        elif element == 7:
            row = _nitrogen(i, atoms, ptr, others, bonds, counts[i])
        elif element == 8:
            row = _oxygen(i, atoms, ptr, others, bonds, counts)
        else:
            row = _other(atoms[i], counts[i])
        logp[i], refractivity[i] = row
    return logp, refractivity


@njit
def decoded(code, zero):
    """Return the number of a code; one that the column does not list is far from any that it does."""
    return np.int64(code) - zero if code else 99


@njit
def _hydrogens_and_neighbours(atom):
    """Return H and X of an atom."""
    hydrogens = decoded(atom[HYDROGENS], 1)
    return hydrogens, decoded(atom[DEGREE], 1) + hydrogens


@njit
def _carbon(atom, n):
    H, X = _hydrogens_and_neighbours(atom)
    if atom[AROMATIC] == NO:
        if H == 4 or (H == 3 and n[nC] > 0) or (H == 2 and n[nC] > 1):
            return 0.1441, 2.503  # C1
        if (H == 1 and n[nC] > 2) or n[nC] > 3:
            return 0.0, 2.433  # C2
        if n[nX] > 0 and (H == 3 or (H == 2 and X == 4 and n[nA] > 1)):
            return -0.2035, 2.753  # C3
        if n[nX] > 0 and X == 4 and ((H == 1 and n[nA] > 2) or (H == 0 and n[nA] > 3)):
            return -0.2051, 2.731  # C4
        if n[dhetero] > 0:
            return -0.2783, 5.007  # C5
        if (n[dC] > 0 and (H == 2 or (H == 1 and n[nA] > 0) or (H == 0 and n[nA] > 1))) or n[dC] > 1:
            return 0.1551, 3.513  # C6
        if X == 2 and n[tA] > 0:
            return 0.0017, 3.888  # C7
        if H == 3 and n[nc] > 0:
            return 0.08452, 2.464  # C8
        if H == 3 and n[na] > 0:
            return -0.1444, 2.412  # C9
        if X == 4 and n[na] > 0:
            if H == 2:
                return -0.0516, 2.488  # C10
            if H == 1:
                return 0.1193, 2.582  # C11
            if H == 0:
                return -0.0967, 2.576  # C12
        styrene = (n[na] > 0 and n[nA] > 0) or (n[nc] > 0 and n[na] > 1) or (H == 1 and n[na] > 0)
        if (n[dC] > 0 and styrene) or n[dc] > 0:
            return 0.264, 4.305  # C26
        if X == 4 and n[nother] > 0:
            return 0.2148, 2.693  # C27
        return 0.08129, 3.243  # CS
    if H == 0 and n[sodd] > 0:
        return -0.5443, 4.041  # C13
    if n[nF] > 0:
        return 0.0, 3.257  # C14
    if n[nCl] > 0:
        return 0.245, 3.564  # C15
    if n[nBr] > 0:
        return 0.198, 3.18  # C16
    if n[nI] > 0:
        return 0.0, 3.104  # C17
    if H == 1:
        return 0.1581, 3.35  # C18
    if n[ra] > 2:
        return 0.2955, 4.346  # C19
    if n[ra] > 1:
        if n[sa] > 0:
            return 0.2713, 3.904  # C20
        if n[sC] > 0:
            return 0.136, 3.509  # C21
        if n[sN] > 0:
            return 0.4619, 4.067  # C22
        if n[sO] > 0:
            return 0.5437, 3.853  # C23
        if n[sS] > 0:
            return 0.1893, 2.673  # C24
        if n[dCNO] > 0:
            return -0.8186, 3.135  # C25
    return 0.08129, 3.243  # CS


@njit
def _nitrogen(i, atoms, ptr, others, bonds, n):
    (H, _), q = _hydrogens_and_neighbours(atoms[i]), decoded(atoms[i][CHARGE], NEUTRAL)
    neutral, cation, anion = q == 0, 0 < q < 4, -4 < q < 0
    if atoms[i, AROMATIC] != NO:
        if neutral:
            return -0.3239, 2.202  # N11
        return (-1.119, 0.0) if cation else (-0.4806, 2.134)  # N12, NS
    if neutral:
        if H == 2 and n[nA] > 0:
            return -1.019, 2.262  # N1
        if H == 1 and n[nA] > 1:
            return -0.7096, 2.173  # N2
        if H == 2 and n[na] > 0:
            return -1.027, 2.827  # N3
        if H == 1 and n[na] > 0 and n[nh] > 1:
            return -0.5188, 3.0  # N4
        if H == 1 and n[dh] > 0:
            return 0.08387, 1.757  # N5
        if n[dh] > 0 and n[nh] > 0:
            return 0.1836, 2.428  # N6
        if n[nA] > 2:
            return -0.3187, 1.839  # N7
        if (n[na] > 0 and n[nA] > 0 and n[nh] > 2) or n[na] > 2:
            return -0.4458, 2.819  # N8
        if n[tA] > 0:
            return 0.01508, 1.725  # N9
    if cation:
        if 0 < H < 4:
            return -1.95, 0.0  # N10
        imine = n[dA] > 0 and n[nA] > 0 and n[nh] > 1
        imine |= n[dCc] > 0 and n[dNn] > 0
        if H == 0 and (n[nA] > 3 or imine):
            return -0.3396, 0.2604  # N13
        azide = False
        for j in range(ptr[i], ptr[i + 1]):
            other = atoms[others[j]]
            if bonds[j] == DOUBLE and other[ELEMENT] == 7 and other[AROMATIC] == NO:
                azide |= -4 < decoded(other[CHARGE], NEUTRAL) < 0
        if (azide and n[dN] > 1) or n[tA] > 0:
            return 0.2887, 3.359  # N14
    if anion:
        return 0.2887, 3.359  # N14
    return -0.4806, 2.134  # NS


@njit
def _oxygen(i, atoms, ptr, others, bonds, counts):
    (H, X), q, n = _hydrogens_and_neighbours(atoms[i]), decoded(atoms[i][CHARGE], NEUTRAL), counts[i]
    if atoms[i, AROMATIC] != NO:
        return 0.1552, 1.08  # O1
    if H == 1 or H == 2:
        return -0.2893, 0.8238  # O2
    if n[nA] > 1:
        return -0.0684, 1.085  # O3
    if n[na] > 0 and n[nh] > 1:
        return -0.4195, 1.182  # O4
    oxide = X == 1 and -4 < q < 0
    if n[dNO] > 0 or (oxide and n[nNn] > 0):
        return 0.0335, 3.367  # O5
    sulfoxide, acid, carbonyl = False, False, 12
    for j in range(ptr[i], ptr[i + 1]):
        other = atoms[others[j]]
        carbon = other[ELEMENT] == 6 and other[AROMATIC] == NO
        acid |= carbon and bonds[j] in _PLAIN and counts[others[j], dO] > 0
        if bonds[j] == DOUBLE:
            sulfoxide |= other[ELEMENT] == 16 and decoded(other[CHARGE], NEUTRAL) == 0
            if carbon:
                carbonyl = min(carbonyl, _carbonyl(other, counts[others[j]]))
    if (oxide and q > -3 and n[nSs] > 0) or (q == 0 and sulfoxide):
        return -0.3339, 0.7774  # O6
    if q == -1 and acid:
        return -1.326, 0.0  # O12, before O7
    if oxide and n[nnotNS] > 0:
        return -1.189, 0.0  # O7
    if n[dc] > 0:
        return 0.1788, 3.135  # O8
    if carbonyl == 9:
        return -0.1526, 0.0  # O9
    if carbonyl == 10:
        return 0.1129, 0.2215  # O10
    return (0.4833, 0.389) if carbonyl == 11 else (-0.1188, 0.6865)  # O11, OS


@njit
def _carbonyl(atom, n):
    """Return the first row of O9 to O11 that an oxygen atom doubly bonded to a carbon atom fits, or 12."""
    H, X = _hydrogens_and_neighbours(atom)
    aldehyde = (H == 1 and (n[nC] > 0 or n[nNO] > 0)) or H == 2
    if aldehyde or (n[nC] > 0 and n[nA] > 1) or (X == 2 and n[dO] > 1):
        return 9
    if (H == 1 and n[nc] > 0) or (n[nC] > 0 and n[na] > 0) or (n[nc] > 0 and n[na] > 1) or (n[nc] > 0 and n[nA] > 0):
        return 10
    return 11 if n[nnotC] > 1 else 12


@njit
def _other(atom, n):
    element, q = atom[ELEMENT], decoded(atom[CHARGE], NEUTRAL)
    if q == 0:
        if element == 9:
            return 0.4202, 1.108  # F
        if element == 17:
            return 0.6895, 5.853  # Cl
        if element == 35:
            return 0.8456, 8.927  # Br
        if element == 53:
            return 0.8857, 14.02  # I
    halide = (q == -1 and element in (9, 17, 35, 53)) or (element == 53 and 0 < q < 4)
    if halide or (q == 1 and element in (3, 11, 19, 37, 55)):
        return -2.996, 0.0  # Hal
    if element == 15:
        return 0.8612, 6.92  # P
    if element == 16:
        if atom[AROMATIC] != NO:
            return 0.6237, 6.691  # S3
        if (q != 0 and q != 4) or (q == 0 and n[dNOPS] > 0):
            return -0.0024, 7.365  # S2, before S1
        return 0.6482, 7.591  # S1
    if element in (3, 11, 19, 37, 55, 4, 12, 20, 38, 56, 5, 13, 31, 49, 81, 14, 32, 50, 82, 33, 51, 83, 34, 52, 84):
        return -0.3808, 5.754  # Me1
    if 21 <= element <= 30 or 39 <= element <= 48 or 72 <= element <= 80:
        return -0.0025, 0.0  # Me2
    return 0.0, 0.0


# --- Van der Waals surface, from bonds alone; in place of RDKit's `_CalcLabuteASAContribs`.
#
# Source: Labute 2000 (10.1016/S1093-3263(00)00068-1), as in RDKit's `MolSurf.cpp`.

_SHORTER = (0.0, 0.0, 0.2, 0.3, 0.1, 0.0)  # Å, by the code of the bond's type

RADII = np.array([Chem.GetPeriodicTable().GetRb0(element) for element in range(119)])
"""Radius of each element, in Å; element 0 is a dummy atom."""


@compiled_loop
def surfaces(graphs, radii):
    """Compute the surface of each atom: float64 `[N]`, in Å².

    A sphere of radius R_i loses to a neighbour j at distance d_ij the cap of area

        π R_i (R_j² - (R_i - d_ij)²) / d_ij

    with d_ij the sum of their radii less a little for bonds of higher order. RDKit leaves R_j² undivided, and counts
    one hydrogen atom at each atom; so do these.

    Args:
        graphs: `gtx.fast.graphs.Graphs`.
        radii: `RADII`.
    """
    surface = np.zeros(len(graphs.atoms))
    for i in range(len(surface)):
        radius, lost = radii[graphs.atoms[i, ELEMENT]], 0.0
        for to in range(graphs.near_ptr[i], graphs.near_ptr[i + 1]):
            other, kind = graphs.atoms[graphs.near_atoms[to]], graphs.bonds[graphs.near_bonds[to], TYPE]
            if kind == AROMATIC_BOND and other[AROMATIC] != YES:
                kind = 0
            lost += _lost(radius, radii[other[ELEMENT]], _SHORTER[kind])
        lost += _lost(radius, radii[1], 0.0)
        surface[i] = math.pi * radius * (4 * radius - lost)
    return surface


@njit(error_model="numpy")
def _lost(own, other, shorter):
    """Return what a sphere loses to a neighbour, over π times its radius; radii and shortening in Å."""
    distance = min(max(abs(own - other), own + other - shorter), own + other)
    return other * other - (own - distance) * (own - distance) / distance


# --- Molecular quantum numbers: counts of atoms, bonds and rings; in place of RDKit's `MQNs_`.
#
# Source: Nguyen, Blum, van Deursen & Reymond 2009 (10.1002/cmdc.200900317), with donors, acceptors and rotatable bonds
# as RDKit has them (`MQN.cpp` and `Lipinski.cpp`).

_METHYL, _ACYL, _DONOR = 1, 2, 4

_MQN_COUNTS = masks("#*", "=N,O,S", "F", "Cl", "Br")
TRIPLY_BONDED, DOUBLY_BONDED, FLUORINES, CHLORINES, BROMINES = range(len(_MQN_COUNTS))


def rotatable(graphs: Graphs, near: Sequence[np.ndarray]) -> np.ndarray:
    """Mark the rotatable bonds, by RDKit's strict definition, given `find_neighbours`: bool `[M]`.

    These are single, in no ring, between inner atoms; not those of CF3 and the like, of amides, esters and thioesters,
    nor next to a triple bond.
    """
    stiff, amide = _ends(graphs.atoms, *near[:3], count(*near, _MQN_COUNTS))
    first, second = graphs.bonded_atoms.T
    free = (graphs.bond_rings == 0) & np.isin(graphs.bonds[:, TYPE], (SINGLE, AROMATIC_BOND))
    return free & ~(stiff[first] | stiff[second] | (amide[first] & amide[second]))


@compiled_loop
def quantum_numbers(graphs, turns):
    """Count MQN1 to MQN42 of m molecules whose `rotatable` bonds are known: float64 `[m, 42]`; a charge beyond ±4
    counts as a positive one.
    """
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
            elif degree == 3 and n[DOUBLY_BONDED] > 0:
                role[i] = _ACYL
            stiff[i] = n[FLUORINES] > 2 or n[CHLORINES] > 2 or n[BROMINES] > 2
        if element == 7 or (element == 8 and aliphatic) or (element == 16 and aliphatic and degree != 1):
            role[i] = _DONOR
        stiff[i] |= degree == 1 or role[i] == _METHYL or n[TRIPLY_BONDED] > 0
    for i in range(len(atoms)):
        methyls = 0
        for j in range(ptr[i], ptr[i + 1]):
            other = role[others[j]]
            methyls += other == _METHYL and bonds[j] in (SINGLE, AROMATIC_BOND, CHAIN)
            amide[i] |= bonds[j] == CHAIN and role[i] | other == _ACYL | _DONOR
        stiff[i] |= methyls > 2 and atoms[i, ELEMENT] == 6 and atoms[i, AROMATIC] == NO
    return stiff, amide
