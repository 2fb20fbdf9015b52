"""Partial charges of atoms (PEOE); in place of RDKit's `ComputeGasteigerCharges`.

Source: Gasteiger & Marsili 1980 (10.1016/0040-4020(80)80168-2), as in RDKit's `GasteigerCharges.cpp`, in compiled code.
"""

from __future__ import annotations

import numpy as np

from gtx.jit import njit

_ELEMENT, _CHARGE, _HYDROGENS, _HYBRIDISATION, _CONJUGATED = 0, 1, 2, 4, 2  # columns of atoms; of bonds
_NEUTRAL, _LEAST = 5, 2.0**-52  # code; charges below it count for none
_A, _B, _C, _CATION = 7.17, 6.24, -0.56, 20.02  # of hydrogen: a, b, c; the electronegativity of H+
_ROUNDS, _DAMPING = 12, 0.5
_SP, _SP2, _SP3 = 2, 3, 4  # codes

PARAMETERS = np.zeros((119, 8, 3))
"""a, b and c, in volts, by element and code of the hybridisation, 0 where unknown: the electronegativity of an atom of
charge q is a + b q + c q²."""

for _kind, _abc in {
    (6, _SP3): (7.98, 9.18, 1.88),
    (6, _SP2): (8.79, 9.32, 1.51),
    (6, _SP): (10.39, 9.45, 0.73),
    (7, _SP3): (11.54, 10.82, 1.36),
    (7, _SP2): (12.87, 11.15, 0.85),
    (7, _SP): (15.68, 11.7, -0.27),
    (8, _SP3): (14.18, 12.92, 1.39),
    (8, _SP2): (17.07, 13.79, 0.47),
    (5, _SP3): (5.980, 6.820, 1.605),
    (5, _SP2): (6.420, 6.807, 1.322),
    (9, _SP3): (14.66, 13.85, 2.31),
    (14, _SP3): (7.300, 6.567, 0.657),
    (14, _SP2): (7.905, 6.748, 0.443),
    (15, _SP3): (8.90, 8.24, 0.96),
    (15, _SP2): (9.665, 8.530, 0.735),
    (16, _SP3): (10.14, 9.13, 1.38),
    (16, _SP2): (10.88, 9.49, 1.33),
    (17, _SP3): (11.00, 9.69, 1.35),
    (35, _SP3): (10.08, 8.47, 1.16),
    (53, _SP3): (9.9, 7.96, 0.96),
}.items():
    PARAMETERS[_kind] = _abc


@njit(cache=True, nogil=True, error_model="numpy")
def charges(graphs, parameters):
    """Charges of atoms: float64 `[N]`, in e; of no meaning in a molecule without parameters.

    They start from the formal charges, shared by the ends of conjugated chains of three. In each of twelve rounds,
    charge flows along bonds to the more electronegative atom,

        q_i += 2^-t sum_j (χ_j - χ_i) / χ+,    χ = a + b q + c q²,

    χ+ being the electronegativity of the cation of the less electronegative of i and j.

    Args:
        graphs: `gtx.molecules.fast.graphs.Graphs`.
        parameters: `PARAMETERS`.
    """
    total = len(graphs.atoms)
    charge, on_hydrogens = np.zeros(total), np.zeros(total)
    pull, flow, cation = np.zeros(total), np.zeros(total), np.zeros(total)
    for i in range(total):
        a, b, c = parameters[graphs.atoms[i, _ELEMENT], graphs.atoms[i, _HYBRIDISATION]]
        cation[i] = a + b + c
    for k in range(len(graphs.atom_ptr) - 1):
        first, last = graphs.atom_ptr[k], graphs.atom_ptr[k + 1]
        _share(graphs, k, charge)
        damping = _DAMPING
        for _ in range(_ROUNDS):
            for i in range(first, last):
                a, b, c = parameters[graphs.atoms[i, _ELEMENT], graphs.atoms[i, _HYBRIDISATION]]
                pull[i] = a + charge[i] * (b + c * charge[i])
            for i in range(first, last):
                flow[i] = 0.0
                for to in range(graphs.near_ptr[i], graphs.near_ptr[i + 1]):
                    j = first + graphs.near_atoms[to]
                    flow[i] += _flow(pull[j] - pull[i], cation[i], cation[j])
            for i in range(first, last):
                code = np.int64(graphs.atoms[i, _HYDROGENS])
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
    """Put the formal charges of a molecule where the rounds start from.

    Where a charged atom is conjugated with others of its element across one atom, as in a carboxylate, each gets the
    mean of all.
    """
    first, first_bond = graphs.atom_ptr[k], graphs.bond_ptr[k]
    for i in range(first, graphs.atom_ptr[k + 1]):
        if graphs.atoms[i, _CHARGE] == _NEUTRAL or abs(charge[i]) >= _LEAST:
            continue
        formal, sharing = np.float64(graphs.atoms[i, _CHARGE]) - _NEUTRAL, 1
        for mean in range(2):  # the sum is found first, then given to all
            for to in range(graphs.near_ptr[i], graphs.near_ptr[i + 1]):
                amid = first + graphs.near_atoms[to]
                for on in range(graphs.near_ptr[amid], graphs.near_ptr[amid + 1]):
                    j, same = first + graphs.near_atoms[on], graphs.near_bonds[on] == graphs.near_bonds[to]
                    chain = graphs.bonds[first_bond + graphs.near_bonds[to], _CONJUGATED] == 2
                    chain &= graphs.bonds[first_bond + graphs.near_bonds[on], _CONJUGATED] == 2
                    if same or not chain or graphs.atoms[i, _ELEMENT] != graphs.atoms[j, _ELEMENT]:
                        continue
                    if mean:
                        charge[j] = formal / sharing
                    else:
                        formal, sharing = formal + graphs.atoms[j, _CHARGE] - _NEUTRAL, sharing + 1
        charge[i] = formal / sharing


@njit(error_model="numpy")
def _flow(difference, own, other):
    """Charge that an atom gets from another, whose electronegativity is higher by `difference`."""
    return difference / ((difference >= 0) * (own - other) + other)
