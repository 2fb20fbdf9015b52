"""Van der Waals surface of atoms, from bonds alone; in place of RDKit's `_CalcLabuteASAContribs`.

Source: Labute 2000 (10.1016/S1093-3263(00)00068-1), as in RDKit's `MolSurf.cpp`, in compiled code.
"""

from __future__ import annotations

import math

import numpy as np
from rdkit import Chem

from gtx.jit import njit

_ELEMENT, _AROMATIC = 0, 5  # columns of atoms
_TYPE, _FLAT = 0, 4  # column of bonds; code of an aromatic one
_SHORTER = (0.0, 0.0, 0.2, 0.3, 0.1, 0.0)  # Å, by the code of the bond's type

RADII = np.array([Chem.GetPeriodicTable().GetRb0(element) for element in range(119)])
"""Radius of each element, in Å; element 0 is a dummy atom."""


@njit(cache=True, nogil=True, error_model="numpy")
def surfaces(graphs, radii):
    """Surface of each atom and of each whole molecule: float64 `[N]` and `[m]`, in Å².

    A sphere of radius R_i loses to a neighbour j at distance d_ij the cap of area

        π R_i (R_j² - (R_i - d_ij)²) / d_ij

    with d_ij the sum of their radii less a little for bonds of higher order. RDKit leaves R_j² undivided, and counts
    one hydrogen atom at each atom; so do these.

    Args:
        graphs: `gtx.molecules.fast.graphs.Graphs`.
        radii: `RADII`.
    """
    surface, whole = np.zeros(len(graphs.atoms)), np.zeros(len(graphs.atom_ptr) - 1)
    hydrogen = radii[1]
    for k in range(len(whole)):
        first, first_bond, of_hydrogens = graphs.atom_ptr[k], graphs.bond_ptr[k], 0.0
        for i in range(first, graphs.atom_ptr[k + 1]):
            radius, lost = radii[graphs.atoms[i, _ELEMENT]], 0.0
            for to in range(graphs.near_ptr[i], graphs.near_ptr[i + 1]):
                other = graphs.atoms[first + graphs.near_atoms[to]]
                kind = graphs.bonds[first_bond + graphs.near_bonds[to], _TYPE]
                if kind == _FLAT and other[_AROMATIC] != 2:
                    kind = 0
                lost += _lost(radius, radii[other[_ELEMENT]], _SHORTER[kind])
            lost += _lost(radius, hydrogen, 0.0)
            of_hydrogens += _lost(hydrogen, radius, 0.0)
            surface[i] = math.pi * radius * (4 * radius - lost)
            whole[k] += surface[i]
        if abs(of_hydrogens) > 1e-4:
            whole[k] += math.pi * hydrogen * (4 * hydrogen - of_hydrogens)
    return surface, whole


@njit(error_model="numpy")
def _lost(own, other, shorter):
    distance = min(max(abs(own - other), own + other - shorter), own + other)
    return other * other - (own - distance) * (own - distance) / distance
