"""Van der Waals surface of atoms, from bonds alone.

Source: Labute 2000 (10.1016/S1093-3263(00)00068-1), as in RDKit's `MolSurf.cpp`, here for many molecules at once.
"""

from __future__ import annotations

import math

import numpy as np
from rdkit import Chem

from gtx.molecules.graphs import Graphs
from gtx.molecules.neighbours import Atoms

_RADIUS = np.array([Chem.GetPeriodicTable().GetRb0(element) for element in range(119)])  # Å; 0 is a dummy atom
_SHORTER = np.array([0, 0, 0.2, 0.3, 0.1, 0])  # Å, by the code of the bond's type
_AROMATIC = 4


def surfaces(graphs: Graphs, atoms: Atoms) -> tuple[np.ndarray, np.ndarray]:
    """Surface of each atom and of each whole molecule: float64 `[N]` and `[m]`, in Å².

    A sphere of radius R_i loses to a neighbour j at distance d_ij the cap of area

        π R_i (R_j² - (R_i - d_ij)²) / d_ij

    with d_ij the sum of their radii less a little for bonds of higher order. RDKit leaves R_j² undivided, and counts
    one hydrogen atom at each atom; so do these.
    """
    m, radius, s, r = len(graphs.atom_counts), _RADIUS[atoms.element], graphs.senders, graphs.receivers
    kind = np.repeat(graphs.bonds[:, 0], 2)
    kind = np.where((kind == _AROMATIC) & ~atoms.aromatic[s], 0, kind)
    hydrogen = _RADIUS[1]
    to_neighbours = np.bincount(r, _lost(radius[r], radius[s], _SHORTER[kind]), len(radius))
    lost = to_neighbours + _lost(radius, hydrogen, 0)
    of_hydrogens = np.bincount(graphs.molecule, _lost(hydrogen, radius, 0), m)
    surface = math.pi * radius * (4 * radius - lost)
    whole = np.bincount(graphs.molecule, surface, m)
    return surface, whole + np.where(abs(of_hydrogens) > 1e-4, math.pi * hydrogen * (4 * hydrogen - of_hydrogens), 0)


def _lost(own: np.ndarray, other: np.ndarray, shorter: np.ndarray) -> np.ndarray:
    distance = np.minimum(np.maximum(abs(own - other), own + other - shorter), own + other)
    return other * other - (own - distance) * (own - distance) / distance
