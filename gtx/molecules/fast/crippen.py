"""Contributions of heavy atoms to logP and to molar refractivity; in place of RDKit's `_CalcCrippenContribs`.

Source: Wildman & Crippen 1999 (10.1021/ci990307l), as RDKit words it in SMARTS (Data/Crippen.txt). The rows are tried
here for one atom after the other in compiled code; matching SMARTS takes longer than reading the molecule.

In what follows, as in SMARTS, a capital is an aliphatic atom and a small letter an aromatic one, A and a any such. H
counts hydrogens and X all neighbours, q is the charge; nC counts neighbours that are C, dC those by a double bond.
"""

from __future__ import annotations

import numpy as np

from gtx.jit import njit
from gtx.molecules.fast.graphs import Graphs
from gtx.molecules.fast.neighbours import Near, count, masks

_ELEMENT, _CHARGE, _HYDROGENS, _DEGREE, _AROMATIC = 0, 1, 2, 3, 5  # columns of atoms
_DOUBLE, _USUAL = 2, (1, 4, 6)  # codes of bonds: what stands between two atoms of SMARTS is single or aromatic

_HETERO = "N,O,P,S,F,Cl,Br,I"
_COUNTED = masks(
    *("C", "A", "a", "c", "heavy", _HETERO, f"A;!C,{_HETERO}", "=C", "=c", "=A", "=A;!C", "#A"),
    *("-A;!C,N,O,S,F,Cl,Br,I", "F,f", "Cl,cl", "Br,br", "I,i", ":a", "-a", "-C", "-N", "-O", "-S", "=C,N,O"),
    *("=heavy", "=C,c", "=N,n", "=N", "=N,n,O,o", "N,n", "S,s", "heavy;!N,S", "=O", "N,O", "heavy;!C,c", "=N,O,P,S"),
)
(nC, nA, na, nc, nh, nX, nother, dC, dc, dA, dhetero, tA,
 sodd, nF, nCl, nBr, nI, ra, sa, sC, sN, sO, sS, dCNO,
 dh, dCc, dNn, dN, dNO, nNn, nSs, nnotNS, dO, nNO, nnotC, dNOPS) = range(len(_COUNTED))  # fmt: skip


def crippen(graphs: Graphs, near: Near) -> tuple[np.ndarray, np.ndarray]:
    """logP and molar refractivity of each atom: float64 `[N]` each.

    Of the rows that fit an atom the first counts; where none fits, both are 0. Rows for hydrogen atoms are left out, as
    is a charge beyond ±4: the caller keeps molecules with these away.
    """
    return _crippen(graphs.atoms, *near[:3], count(near, _COUNTED))


@njit(cache=True, nogil=True)
def _crippen(atoms, ptr, others, bonds, counts):
    logp, refractivity = np.zeros(len(atoms)), np.zeros(len(atoms))
    for i in range(len(atoms)):
        element = atoms[i, _ELEMENT]
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
def _places(atom):
    """H and X of an atom; a number that the column does not list is far from any of the table."""
    hydrogens = atom[_HYDROGENS] - 1 if atom[_HYDROGENS] else 99
    return hydrogens, (atom[_DEGREE] - 1 if atom[_DEGREE] else 99) + hydrogens


@njit
def _charge(atom):
    return np.int64(atom[_CHARGE]) - 5 if atom[_CHARGE] else 99


@njit
def _carbon(atom, n):
    H, X = _places(atom)
    if atom[_AROMATIC] == 1:
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
    (H, _), q = _places(atoms[i]), _charge(atoms[i])
    neutral, cation, anion = q == 0, 0 < q < 4, -4 < q < 0
    if atoms[i, _AROMATIC] != 1:
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
            if bonds[j] == _DOUBLE and other[_ELEMENT] == 7 and other[_AROMATIC] == 1:
                azide |= -4 < _charge(other) < 0
        if (azide and n[dN] > 1) or n[tA] > 0:
            return 0.2887, 3.359  # N14
    if anion:
        return 0.2887, 3.359  # N14
    return -0.4806, 2.134  # NS


@njit
def _oxygen(i, atoms, ptr, others, bonds, counts):
    (H, X), q, n = _places(atoms[i]), _charge(atoms[i]), counts[i]
    if atoms[i, _AROMATIC] != 1:
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
        carbon = other[_ELEMENT] == 6 and other[_AROMATIC] == 1
        acid |= carbon and bonds[j] in _USUAL and counts[others[j], dO] > 0
        if bonds[j] == _DOUBLE:
            sulfoxide |= other[_ELEMENT] == 16 and _charge(other) == 0
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
    H, X = _places(atom)
    aldehyde = (H == 1 and (n[nC] > 0 or n[nNO] > 0)) or H == 2
    if aldehyde or (n[nC] > 0 and n[nA] > 1) or (X == 2 and n[dO] > 1):
        return 9
    if (H == 1 and n[nc] > 0) or (n[nC] > 0 and n[na] > 0) or (n[nc] > 0 and n[na] > 1) or (n[nc] > 0 and n[nA] > 0):
        return 10
    return 11 if n[nnotC] > 1 else 12


@njit
def _other(atom, n):
    element, q = atom[_ELEMENT], _charge(atom)
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
        if atom[_AROMATIC] != 1:
            return 0.6237, 6.691  # S3
        if (q != 0 and q != 4) or (q == 0 and n[dNOPS] > 0):
            return -0.0024, 7.365  # S2, before S1
        return 0.6482, 7.591  # S1
    if element in (3, 11, 19, 37, 55, 4, 12, 20, 38, 56, 5, 13, 31, 49, 81, 14, 32, 50, 82, 33, 51, 83, 34, 52, 84):
        return -0.3808, 5.754  # Me1
    if 21 <= element <= 30 or 39 <= element <= 48 or 72 <= element <= 80:
        return -0.0025, 0.0  # Me2
    return 0.0, 0.0
