"""Partial charges of atoms, by partial equalisation of orbital electronegativity (PEOE).

Source: Gasteiger & Marsili 1980 (10.1016/0040-4020(80)80168-2), as in RDKit's `GasteigerCharges.cpp`, here for many
neutral molecules at once.
"""

from __future__ import annotations

import numpy as np

from gtx.molecules.features import ATOM_COLUMNS
from gtx.molecules.graphs import Graphs
from gtx.molecules.neighbours import Atoms

_SP, _SP2, _SP3 = (ATOM_COLUMNS["hybridisation"].index(name) + 1 for name in ("SP", "SP2", "SP3"))

PARAMETERS: dict[tuple[int, int], tuple[float, float, float]] = {
    (6, _SP3): (7.98, 9.18, 1.88),
    (6, _SP2): (8.79, 9.32, 1.51),
    (6, _SP): (10.39, 9.45, 0.73),
    (7, _SP3): (11.54, 10.82, 1.36),
    (7, _SP2): (12.87, 11.15, 0.85),
    (7, _SP): (15.68, 11.7, -0.27),
    (8, _SP3): (14.18, 12.92, 1.39),
    (8, _SP2): (17.07, 13.79, 0.47),
    (9, _SP3): (14.66, 13.85, 2.31),
    (15, _SP3): (8.90, 8.24, 0.96),
    (15, _SP2): (9.665, 8.530, 0.735),
    (16, _SP3): (10.14, 9.13, 1.38),
    (16, _SP2): (10.88, 9.49, 1.33),
    (17, _SP3): (11.00, 9.69, 1.35),
    (35, _SP3): (10.08, 8.47, 1.16),
    (53, _SP3): (9.9, 7.96, 0.96),
}
"""a, b and c, in volts, by element and code of the hybridisation: the electronegativity of an atom of charge q is
a + b q + c q²."""

_HYDROGEN, _CATION = (7.17, 6.24, -0.56), 20.02  # a, b, c; the electronegativity of H+
_ROUNDS, _DAMPING = 12, 0.5
_TABLE = np.zeros((119, len(ATOM_COLUMNS["hybridisation"]) + 1, 3))
for _kind, _abc in PARAMETERS.items():
    _TABLE[_kind] = _abc


def charges(graphs: Graphs, atoms: Atoms) -> np.ndarray:
    """Charges of atoms: float64 `[N]`, in e; of no meaning in a molecule with formal charges or without parameters.

    In each of twelve rounds, charge flows along bonds to the more electronegative atom,

        q_i += 2^-t sum_j (χ_j - χ_i) / χ+,    χ = a + b q + c q²,

    χ+ being the electronegativity of the cation of the less electronegative of i and j.
    """
    s, r, hydrogens = graphs.senders, graphs.receivers, atoms.hydrogens
    a, b, c = _TABLE[atoms.element, atoms.hybridisation].T
    cation = a + b + c
    charge, on_hydrogens, damping = np.zeros(len(a)), np.zeros(len(a)), _DAMPING
    has, share = hydrogens > 0, np.maximum(hydrogens, 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # where parameters lack
        for _ in range(_ROUNDS):
            pull = a + charge * (b + c * charge)
            flow = np.bincount(r, _flow(pull[s] - pull[r], cation[r], cation[s]), len(a))
            own = on_hydrogens / share
            pull_h = _HYDROGEN[0] + own * (_HYDROGEN[1] + _HYDROGEN[2] * own)
            from_h = np.where(has, hydrogens * _flow(pull_h - pull, cation, _CATION), 0)
            on_hydrogens -= from_h * damping
            charge += damping * (flow + from_h)
            damping *= _DAMPING
    return charge


def _flow(difference: np.ndarray, own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Charge that an atom gets from another, whose electronegativity is higher by `difference`."""
    return difference / ((difference >= 0) * (own - other) + other)
