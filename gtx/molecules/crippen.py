"""Contributions of heavy atoms to logP and to molar refractivity, by the table of Wildman and Crippen.

Source: Wildman & Crippen 1999 (10.1021/ci990307l), as RDKit words it in SMARTS (Data/Crippen.txt). The rows are matched
here for all atoms of many molecules at once; matching SMARTS one by one takes longer than reading the molecule.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gtx.molecules.neighbours import Atoms

Row = tuple[np.ndarray, float, float]  # which atoms; their logP; their molar refractivity

_ALKALI, _ALKALINE_EARTH = (3, 11, 19, 37, 55), (4, 12, 20, 38, 56)
_MAIN_GROUPS = (5, 13, 31, 49, 81, 14, 32, 50, 82, 33, 51, 83, 34, 52, 84)
_TRANSITION = (*range(21, 31), *range(39, 49), *range(72, 81))


def crippen(atoms: Atoms) -> tuple[np.ndarray, np.ndarray]:
    """logP and molar refractivity of each atom: float64 `[N]` each.

    Of the rows that fit an atom the first counts; where none fits, both are 0. Rows for hydrogen atoms are left out, as
    is a charge beyond ±4: the caller keeps molecules with these away.
    """
    rows = [*_carbons(atoms), *_nitrogens(atoms), *_oxygens(atoms), *_others(atoms)]
    fits, logp, refractivity = zip(*rows, strict=True)
    first = np.select(fits, range(len(rows)), len(rows))
    return np.array([*logp, 0.0])[first], np.array([*refractivity, 0.0])[first]


# In what follows, as in SMARTS, a capital is an aliphatic atom and a small letter an aromatic one, A and a any such.
# H counts hydrogens and X all neighbours, q is the charge; nC counts neighbours that are C, dC those by a double bond.


def _carbons(atoms: Atoms) -> Iterator[Row]:
    n, H, X, a = atoms.count, atoms.hydrogens, atoms.connections, atoms.aromatic
    A, element = ~a & (atoms.element != 1), atoms.element
    C, c = ~a & (element == 6), a & (element == 6)
    N, oxygen, S = (~a & (element == z) for z in (7, 8, 16))
    listed = np.isin(element, (6, 7, 8, 16, 9, 17, 35, 53))  # those of C13, without P
    hetero = ~a & np.isin(element, (7, 8, 15, 16, 9, 17, 35, 53))
    nC, nA, na, nc, nX, dC = n("", C), n("", A), n("", a), n("", c), n("", hetero), n("=", C)

    yield C & ((H == 4) | (H == 3) & (nC > 0) | (H == 2) & (nC > 1)), 0.1441, 2.503  # C1
    yield C & ((H == 1) & (nC > 2) | (nC > 3)), 0, 2.433  # C2
    yield C & (nX > 0) & ((H == 3) | (H == 2) & (X == 4) & (nA > 1)), -0.2035, 2.753  # C3
    yield C & (nX > 0) & (X == 4) & ((H == 1) & (nA > 2) | (H == 0) & (nA > 3)), -0.2051, 2.731  # C4
    yield C & (n("=", A & ~C) > 0), -0.2783, 5.007  # C5
    alkene = (H == 2) | (H == 1) & (nA > 0) | (H == 0) & (nA > 1)
    yield C & ((dC > 0) & alkene | (dC > 1)), 0.1551, 3.513  # C6
    yield C & (X == 2) & (n("#", A) > 0), 0.0017, 3.888  # C7
    yield C & (H == 3) & (nc > 0), 0.08452, 2.464  # C8
    yield C & (H == 3) & (na > 0), -0.1444, 2.412  # C9
    yield C & (H == 2) & (X == 4) & (na > 0), -0.0516, 2.488  # C10
    yield C & (H == 1) & (X == 4) & (na > 0), 0.1193, 2.582  # C11
    yield C & (H == 0) & (X == 4) & (na > 0), -0.0967, 2.576  # C12
    yield c & (H == 0) & (n("-", A & ~listed) > 0), -0.5443, 4.041  # C13
    yield c & (n("", element == 9) > 0), 0, 3.257  # C14
    yield c & (n("", element == 17) > 0), 0.245, 3.564  # C15
    yield c & (n("", element == 35) > 0), 0.198, 3.18  # C16
    yield c & (n("", element == 53) > 0), 0, 3.104  # C17
    yield c & (H == 1), 0.1581, 3.35  # C18
    ring = n(":", a)
    yield c & (ring > 2), 0.2955, 4.346  # C19
    yield c & (ring > 1) & (n("-", a) > 0), 0.2713, 3.904  # C20
    yield c & (ring > 1) & (n("-", C) > 0), 0.136, 3.509  # C21
    yield c & (ring > 1) & (n("-", N) > 0), 0.4619, 4.067  # C22
    yield c & (ring > 1) & (n("-", oxygen) > 0), 0.5437, 3.853  # C23
    yield c & (ring > 1) & (n("-", S) > 0), 0.1893, 2.673  # C24
    yield c & (ring > 1) & (n("=", C | N | oxygen) > 0), -0.8186, 3.135  # C25
    styrene = (na > 0) & (nA > 0) | (nc > 0) & (na > 1) | (H == 1) & (na > 0)
    yield C & ((dC > 0) & styrene | (n("=", c) > 0)), 0.264, 4.305  # C26
    yield C & (X == 4) & (n("", A & ~C & ~hetero) > 0), 0.2148, 2.693  # C27
    yield element == 6, 0.08129, 3.243  # CS


def _nitrogens(atoms: Atoms) -> Iterator[Row]:
    n, H, q, a, element = atoms.count, atoms.hydrogens, atoms.charge, atoms.aromatic, atoms.element
    heavy = element != 1
    A, neutral, cation, anion = ~a & heavy, q == 0, (q > 0) & (q < 4), (q < 0) & (q > -4)
    N = ~a & (element == 7)
    nA, na, nh, d = n("", A), n("", a), n("", heavy), n("=", heavy)

    yield N & neutral & (H == 2) & (nA > 0), -1.019, 2.262  # N1
    yield N & neutral & (H == 1) & (nA > 1), -0.7096, 2.173  # N2
    yield N & neutral & (H == 2) & (na > 0), -1.027, 2.827  # N3
    yield N & neutral & (H == 1) & (na > 0) & (nh > 1), -0.5188, 3  # N4
    yield N & neutral & (H == 1) & (d > 0), 0.08387, 1.757  # N5
    yield N & neutral & (d > 0) & (nh > 0), 0.1836, 2.428  # N6
    yield N & neutral & (nA > 2), -0.3187, 1.839  # N7
    yield N & neutral & ((na > 0) & (nA > 0) & (nh > 2) | (na > 2)), -0.4458, 2.819  # N8
    yield N & neutral & (n("#", A) > 0), 0.01508, 1.725  # N9
    yield N & cation & (H > 0) & (H < 4), -1.95, 0  # N10
    yield a & (element == 7) & neutral, -0.3239, 2.202  # N11
    yield a & (element == 7) & cation, -1.119, 0  # N12
    imine = (n("=", A) > 0) & (nA > 0) & (nh > 1) | (n("=", element == 6) > 0) & (n("=", element == 7) > 0)
    yield N & cation & (H == 0) & ((nA > 3) | imine), -0.3396, 0.2604  # N13
    azide = (n("=", N & anion) > 0) & (n("=", N) > 1)
    yield N & (cation & ((n("#", A) > 0) | azide) | anion), 0.2887, 3.359  # N14
    yield element == 7, -0.4806, 2.134  # NS


def _oxygens(atoms: Atoms) -> Iterator[Row]:
    n, H, X, q, a, element = (
        atoms.count,
        atoms.hydrogens,
        atoms.connections,
        atoms.charge,
        atoms.aromatic,
        atoms.element,
    )
    heavy = element != 1
    A, neutral, anion = ~a & heavy, q == 0, (q < 0) & (q > -4)
    C, c, (N, oxygen, S) = ~a & (element == 6), a & (element == 6), (~a & (element == z) for z in (7, 8, 16))
    nA, na, nC, nc = n("", A), n("", a), n("", C), n("", c)

    def carbonyl(carbon: np.ndarray) -> np.ndarray:
        return oxygen & (n("=", C & carbon) > 0)

    yield a & (element == 8), 0.1552, 1.08  # O1
    yield oxygen & ((H == 1) | (H == 2)), -0.2893, 0.8238  # O2
    yield oxygen & (nA > 1), -0.0684, 1.085  # O3
    yield oxygen & (na > 0) & (n("", heavy) > 1), -0.4195, 1.182  # O4
    oxide = oxygen & (X == 1) & anion
    yield (
        oxygen & (n("=", (element == 7) | (element == 8)) > 0) | oxide & (n("", element == 7) > 0),
        0.0335,
        3.367,
    )  # O5
    sulfoxide = neutral & (n("=", (element == 16) & neutral) > 0)
    yield oxide & (q > -3) & (n("", element == 16) > 0) | oxygen & sulfoxide, -0.3339, 0.7774  # O6
    yield oxygen & (q == -1) & (n("", C & (n("=", oxygen) > 0)) > 0), -1.326, 0  # O12, before O7
    yield oxide & (n("", heavy & ~N & ~S) > 0), -1.189, 0  # O7
    yield oxygen & (n("=", c) > 0), 0.1788, 3.135  # O8
    aldehyde = (H == 1) & ((nC > 0) | (n("", N | oxygen) > 0)) | (H == 2)
    yield carbonyl(aldehyde | (nC > 0) & (nA > 1) | (X == 2) & (n("=", oxygen) > 1)), -0.1526, 0  # O9
    ketone = (nC > 0) & (na > 0) | (nc > 0) & (na > 1) | (nc > 0) & (nA > 0)
    yield carbonyl((H == 1) & (nc > 0) | ketone), 0.1129, 0.2215  # O10
    yield carbonyl(n("", heavy & (element != 6)) > 1), 0.4833, 0.389  # O11
    yield element == 8, -0.1188, 0.6865  # OS


def _others(atoms: Atoms) -> Iterator[Row]:
    element, q, a = atoms.element, atoms.charge, atoms.aromatic
    yield (element == 9) & (q == 0), 0.4202, 1.108
    yield (element == 17) & (q == 0), 0.6895, 5.853
    yield (element == 35) & (q == 0), 0.8456, 8.927
    yield (element == 53) & (q == 0), 0.8857, 14.02
    halide = np.isin(element, (9, 17, 35, 53)) & (q == -1) | (element == 53) & (q > 0) & (q < 4)
    yield halide | np.isin(element, _ALKALI) & (q == 1), -2.996, 0  # Hal
    yield element == 15, 0.8612, 6.92  # P
    S = ~a & (element == 16)
    thio = (q == 0) & (atoms.count("=", ~a & np.isin(element, (7, 8, 15, 16))) > 0)
    yield S & ((q != 0) & (q != 4) | thio), -0.0024, 7.365  # S2, before S1
    yield S, 0.6482, 7.591  # S1
    yield element == 16, 0.6237, 6.691  # S3
    yield np.isin(element, (*_ALKALI, *_ALKALINE_EARTH, *_MAIN_GROUPS)), -0.3808, 5.754  # Me1
    yield np.isin(element, _TRANSITION), -0.0025, 0  # Me2
