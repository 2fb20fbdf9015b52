"""Properties of atoms from the graphs of molecules: contributions to logP and refractivity, partial charges, surface.

Each replaces one function of RDKit, bit by bit, in compiled code.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np
from numba import njit
from rdkit import Chem

from gtx.base.jit import compiled_loop
from gtx.fast.graphs import (
    AROMATIC,
    AROMATIC_BOND,
    CHARGE,
    CONJUGATED,
    DEGREE,
    DOUBLE,
    ELEMENT,
    HYBRIDISATION,
    HYDROGENS,
    IN_RING,
    NEUTRAL,
    NO,
    SINGLE,
    SP,
    SP2,
    SP3,
    TYPE,
    YES,
    Graphs,
)

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


class Neighbours(NamedTuple):
    """Neighbours of N atoms.

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


def find_neighbours(graphs: Graphs) -> Neighbours:
    """Return the neighbours of all atoms."""
    near = graphs.near_ptr, graphs.near_atoms, graphs.near_bonds
    found = _find_neighbours(graphs.atoms, graphs.bonds, graphs.atom_ptr, graphs.bond_ptr, *near)
    return Neighbours(graphs.near_ptr, *found)


def masks(*smarts: str) -> np.ndarray:
    """Compile SMARTS to bit masks of bonds and neighbours, int32 `[K, 2]`.

    Args:
        smarts: a bond ("-", "=", "#", ":", "-!@"; without one, single or aromatic) and kinds of atoms, as in "=O",
            "N,O" or "-A;!C,N": an element, aromatic in small letters, "A" and "a" for any, "heavy", "*".
    """
    return np.array([_mask(text) for text in smarts], np.int32)


def count(near: Neighbours, wanted: np.ndarray) -> np.ndarray:
    """Count the neighbours of every atom that match each of K `masks`: uint8 `[N, K]`."""
    return _count(*near, wanted)


def _mask(smarts: str) -> tuple[int, int]:
    match = re.fullmatch(r"(-!@|[-=#:]?)([^;]+)(;!(.+))?", smarts)
    if match is None:
        raise ValueError(f"expected a bond and atoms, such as '=O' or '-A;!C,N', got {smarts!r}")
    bond, atoms, _, excluded = match.groups()
    return _BOND_SETS[bond], _atom_bits(atoms) & ~_atom_bits(excluded or "")


def _atom_bits(names: str) -> int:
    return sum({_ATOM_SETS[name] for name in names.split(",") if name})


@compiled_loop
def _find_neighbours(atoms, bonds, atom_ptr, bond_ptr, near_ptr, near_atoms, near_bonds):
    kind, codes = np.zeros(len(atoms), np.int64), np.zeros(len(near_atoms), np.uint8)
    others = np.zeros(len(near_atoms), np.int64)
    for i in range(len(atoms)):
        kind[i] = 1 << _BITS[atoms[i, ELEMENT]] + 11 * (atoms[i, AROMATIC] == YES)
    for k in range(len(atom_ptr) - 1):
        for j in range(near_ptr[atom_ptr[k]], near_ptr[atom_ptr[k + 1]]):
            others[j] = atom_ptr[k] + near_atoms[j]
            bond = bond_ptr[k] + near_bonds[j]
            codes[j] = bonds[bond, TYPE]
            if codes[j] == SINGLE and bonds[bond, IN_RING] == NO:
                codes[j] = CHAIN
    return others, codes, kind


@compiled_loop
def _count(ptr, atoms, bonds, kind, wanted):
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


def crippen(graphs: Graphs, near: Neighbours) -> tuple[np.ndarray, np.ndarray]:
    """Return the contributions of each atom to logP and molar refractivity: float64 `[N]` each.

    Of the rows that fit an atom the first counts; where none fits, both are 0. Rows for hydrogen atoms are left out, as
    is a charge beyond ±4: the caller keeps molecules with these away.
    """
    return _crippen(graphs.atoms, *near[:3], count(near, _COUNTED))


@compiled_loop
def _crippen(atoms, ptr, others, bonds, counts):
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
def _hydrogens_and_neighbours(atom):
    """Return H and X of an atom; a number that the column does not list is far from any of the table."""
    hydrogens = atom[HYDROGENS] - 1 if atom[HYDROGENS] else 99
    return hydrogens, (atom[DEGREE] - 1 if atom[DEGREE] else 99) + hydrogens


@njit
def _charge(atom):
    return np.int64(atom[CHARGE]) - 5 if atom[CHARGE] else 99


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
    (H, _), q = _hydrogens_and_neighbours(atoms[i]), _charge(atoms[i])
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
                azide |= -4 < _charge(other) < 0
        if (azide and n[dN] > 1) or n[tA] > 0:
            return 0.2887, 3.359  # N14
    if anion:
        return 0.2887, 3.359  # N14
    return -0.4806, 2.134  # NS


@njit
def _oxygen(i, atoms, ptr, others, bonds, counts):
    (H, X), q, n = _hydrogens_and_neighbours(atoms[i]), _charge(atoms[i]), counts[i]
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
            sulfoxide |= other[ELEMENT] == 16 and _charge(other) == 0
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
    element, q = atom[ELEMENT], _charge(atom)
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


# --- Partial charges (PEOE); in place of RDKit's `ComputeGasteigerCharges`.
#
# Source: Gasteiger & Marsili 1980 (10.1016/0040-4020(80)80168-2), as in RDKit's `GasteigerCharges.cpp`.

_LEAST = 2.0**-52  # charges below it count for none
_A, _B, _C, _CATION = 7.17, 6.24, -0.56, 20.02  # of hydrogen: a, b, c; the electronegativity of H+
_ROUNDS, _DAMPING = 12, 0.5

PARAMETERS = np.zeros((119, 8, 3))
"""a, b and c, in volts, by element and code of the hybridisation, 0 where unknown: the electronegativity of an atom of
charge q is a + b q + c q²."""

for _key, _abc in {
    (6, SP3): (7.98, 9.18, 1.88),
    (6, SP2): (8.79, 9.32, 1.51),
    (6, SP): (10.39, 9.45, 0.73),
    (7, SP3): (11.54, 10.82, 1.36),
    (7, SP2): (12.87, 11.15, 0.85),
    (7, SP): (15.68, 11.7, -0.27),
    (8, SP3): (14.18, 12.92, 1.39),
    (8, SP2): (17.07, 13.79, 0.47),
    (5, SP3): (5.980, 6.820, 1.605),
    (5, SP2): (6.420, 6.807, 1.322),
    (9, SP3): (14.66, 13.85, 2.31),
    (14, SP3): (7.300, 6.567, 0.657),
    (14, SP2): (7.905, 6.748, 0.443),
    (15, SP3): (8.90, 8.24, 0.96),
    (15, SP2): (9.665, 8.530, 0.735),
    (16, SP3): (10.14, 9.13, 1.38),
    (16, SP2): (10.88, 9.49, 1.33),
    (17, SP3): (11.00, 9.69, 1.35),
    (35, SP3): (10.08, 8.47, 1.16),
    (53, SP3): (9.9, 7.96, 0.96),
}.items():
    PARAMETERS[_key] = _abc


@compiled_loop
def charges(graphs, parameters):
    """Compute the charges of atoms: float64 `[N]`, in e; without meaning in a molecule that lacks parameters.

    They start from the formal charges, shared by the ends of conjugated chains of three. In each of twelve rounds,
    charge flows along bonds to the more electronegative atom,

        q_i += 2^-t sum_j (χ_j - χ_i) / χ+,    χ = a + b q + c q²,

    χ+ being the electronegativity of the cation of the less electronegative of i and j.

    Args:
        graphs: `gtx.fast.graphs.Graphs`.
        parameters: `PARAMETERS`.
    """
    total = len(graphs.atoms)
    charge, on_hydrogens = np.zeros(total), np.zeros(total)
    pull, flow, cation = np.zeros(total), np.zeros(total), np.zeros(total)
    for i in range(total):
        a, b, c = parameters[graphs.atoms[i, ELEMENT], graphs.atoms[i, HYBRIDISATION]]
        cation[i] = a + b + c
    for k in range(len(graphs.atom_ptr) - 1):
        first, last = graphs.atom_ptr[k], graphs.atom_ptr[k + 1]
        _share(graphs, k, charge)
        damping = _DAMPING
        for _ in range(_ROUNDS):
            for i in range(first, last):
                a, b, c = parameters[graphs.atoms[i, ELEMENT], graphs.atoms[i, HYBRIDISATION]]
                pull[i] = a + charge[i] * (b + c * charge[i])
            for i in range(first, last):
                flow[i] = 0.0
                for to in range(graphs.near_ptr[i], graphs.near_ptr[i + 1]):
                    j = first + graphs.near_atoms[to]
                    flow[i] += _flow(pull[j] - pull[i], cation[i], cation[j])
            for i in range(first, last):
                code = np.int64(graphs.atoms[i, HYDROGENS])
                hydrogens = code - 1 if code else 99
                from_hydrogens = 0.0
                if hydrogens > 0:
                    own = on_hydrogens[i] / hydrogens
                    difference = _A + own * (_B + _C * own) - pull[i]
                    from_hydrogens = hydrogens * _flow(difference, cation[i], _CATION)
                on_hydrogens[i] -= from_hydrogens * damping
                charge[i] += damping * (flow[i] + from_hydrogens)
            damping *= _DAMPING
    return charge


@njit(error_model="numpy")
def _share(graphs, k, charge):
    """Set the charges of a molecule from which the rounds start.

    Where a charged atom is conjugated with others of its element across one atom, as in a carboxylate, each gets the
    mean of all.
    """
    first, first_bond = graphs.atom_ptr[k], graphs.bond_ptr[k]
    for i in range(first, graphs.atom_ptr[k + 1]):
        if graphs.atoms[i, CHARGE] == NEUTRAL or abs(charge[i]) >= _LEAST:
            continue
        formal, sharing = np.float64(graphs.atoms[i, CHARGE]) - NEUTRAL, 1
        for mean in range(2):  # the sum is found first, then given to all
            for to in range(graphs.near_ptr[i], graphs.near_ptr[i + 1]):
                amid = first + graphs.near_atoms[to]
                for on in range(graphs.near_ptr[amid], graphs.near_ptr[amid + 1]):
                    j, same = first + graphs.near_atoms[on], graphs.near_bonds[on] == graphs.near_bonds[to]
                    chain = graphs.bonds[first_bond + graphs.near_bonds[to], CONJUGATED] == YES
                    chain &= graphs.bonds[first_bond + graphs.near_bonds[on], CONJUGATED] == YES
                    if same or not chain or graphs.atoms[i, ELEMENT] != graphs.atoms[j, ELEMENT]:
                        continue
                    if mean:
                        charge[j] = formal / sharing
                    else:
                        formal, sharing = formal + graphs.atoms[j, CHARGE] - NEUTRAL, sharing + 1
        charge[i] = formal / sharing


@njit(error_model="numpy")
def _flow(difference, own, other):
    """Return the charge that an atom gets from another, whose electronegativity is higher by `difference`."""
    return difference / ((difference >= 0) * (own - other) + other)


# --- Van der Waals surface, from bonds alone; in place of RDKit's `_CalcLabuteASAContribs`.
#
# Source: Labute 2000 (10.1016/S1093-3263(00)00068-1), as in RDKit's `MolSurf.cpp`.

_SHORTER = (0.0, 0.0, 0.2, 0.3, 0.1, 0.0)  # Å, by the code of the bond's type

RADII = np.array([Chem.GetPeriodicTable().GetRb0(element) for element in range(119)])
"""Radius of each element, in Å; element 0 is a dummy atom."""


@compiled_loop
def surfaces(graphs, radii):
    """Compute the surface of each atom and of each molecule: float64 `[N]` and `[m]`, in Å².

    A sphere of radius R_i loses to a neighbour j at distance d_ij the cap of area

        π R_i (R_j² - (R_i - d_ij)²) / d_ij

    with d_ij the sum of their radii less a little for bonds of higher order. RDKit leaves R_j² undivided, and counts
    one hydrogen atom at each atom; so do these.

    Args:
        graphs: `gtx.fast.graphs.Graphs`.
        radii: `RADII`.
    """
    surface, total = np.zeros(len(graphs.atoms)), np.zeros(len(graphs.atom_ptr) - 1)
    hydrogen = radii[1]
    for k in range(len(total)):
        first, first_bond, hydrogens_lost = graphs.atom_ptr[k], graphs.bond_ptr[k], 0.0
        for i in range(first, graphs.atom_ptr[k + 1]):
            radius, lost = radii[graphs.atoms[i, ELEMENT]], 0.0
            for to in range(graphs.near_ptr[i], graphs.near_ptr[i + 1]):
                other = graphs.atoms[first + graphs.near_atoms[to]]
                kind = graphs.bonds[first_bond + graphs.near_bonds[to], TYPE]
                if kind == AROMATIC_BOND and other[AROMATIC] != YES:
                    kind = 0
                lost += _lost(radius, radii[other[ELEMENT]], _SHORTER[kind])
            lost += _lost(radius, hydrogen, 0.0)
            hydrogens_lost += _lost(hydrogen, radius, 0.0)
            surface[i] = math.pi * radius * (4 * radius - lost)
            total[k] += surface[i]
        if abs(hydrogens_lost) > 1e-4:
            total[k] += math.pi * hydrogen * (4 * hydrogen - hydrogens_lost)
    return surface, total


@njit(error_model="numpy")
def _lost(own, other, shorter):
    """Return what a sphere loses to a neighbour, over π times its radius; radii and shortening in Å."""
    distance = min(max(abs(own - other), own + other - shorter), own + other)
    return other * other - (own - distance) * (own - distance) / distance
