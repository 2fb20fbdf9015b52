"""Descriptors of many molecules from their graphs, which takes a fifth of the time that RDKit takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rdkit import Chem

from gtx.jit import njit
from gtx.molecules.descriptors import descriptors, rounded
from gtx.molecules.fast.charges import PARAMETERS, charges
from gtx.molecules.fast.crippen import crippen
from gtx.molecules.fast.graphs import Graphs
from gtx.molecules.fast.neighbours import look
from gtx.molecules.fast.properties import properties
from gtx.molecules.fast.quantum_numbers import quantum_numbers
from gtx.molecules.fast.ranges import by_range, per_molecule
from gtx.molecules.fast.surface import RADII, surfaces

_LOGP_EDGES = np.array([-0.4, -0.2, 0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6])  # as in RDKit's `MolSurf.cpp`
_REFRACTIVITY_EDGES = np.array([1.29, 1.82, 2.24, 2.45, 2.75, 3.05, 3.63, 3.8, 4.0])
_CHARGE_EDGES = np.array([-0.3, -0.25, -0.2, -0.15, -0.1, -0.05, 0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])

_ELEMENT, _CHARGE, _HYDROGENS, _DEGREE, _HYBRIDISATION, _AROMATIC = range(6)  # columns of atoms
_ISOTOPE, _TYPE = 9, 0  # column of atoms; of bonds
_USUAL, _SINGLE, _FLAT = 1, 1, 4  # codes


def tabulate(graphs: Graphs, mols: Sequence[Chem.Mol]) -> np.ndarray:
    """`gtx.molecules.descriptors.descriptors` of m molecules: float32 `[m, D]`; RDKit is asked where they are `beyond`.

    Args:
        graphs, mols: the same molecules.
    """
    near, ptr = look(graphs), graphs.atom_ptr
    surface, whole = surfaces(graphs, RADII)
    logp, refractivity = crippen(graphs, near)
    values = rounded(
        np.concatenate(
            [
                properties(graphs, near, whole),
                np.stack([per_molecule(ptr, logp), per_molecule(ptr, refractivity)], 1),
                by_range(ptr, logp, surface, _LOGP_EDGES),
                by_range(ptr, refractivity, surface, _REFRACTIVITY_EDGES),
                by_range(ptr, charges(graphs, PARAMETERS), surface, _CHARGE_EDGES),
                quantum_numbers(graphs, near),
            ],
            axis=1,
        )
    )
    for k in np.flatnonzero(beyond(graphs)).tolist():
        values[k] = descriptors(mols[k])
    return values


def beyond(graphs: Graphs) -> np.ndarray:
    """Mark the molecules whose descriptors do not all follow from their graphs: bool `[m]`.

    These have hydrogen atoms, isotopes, dummies, large charges or other values that a column does not list, unusual
    bonds, or elements or hybridisations without parameters by Gasteiger and Marsili.
    """
    return _beyond(graphs.atoms, graphs.bonds, graphs.ends, graphs.atom_ptr, graphs.bond_ptr, PARAMETERS)


@njit(cache=True, nogil=True)
def _beyond(atoms, bonds, ends, atom_ptr, bond_ptr, parameters):
    found = np.zeros(len(atom_ptr) - 1, np.bool_)
    for k in range(len(found)):
        first = atom_ptr[k]
        for i in range(first, atom_ptr[k + 1]):
            atom = atoms[i]
            found[k] |= atom[_ELEMENT] <= 1 or atom[_CHARGE] == 0 or atom[_HYDROGENS] == 0 or atom[_DEGREE] == 0
            found[k] |= atom[_ISOTOPE] != _USUAL or parameters[atom[_ELEMENT], atom[_HYBRIDISATION], 0] == 0
        for b in range(bond_ptr[k], bond_ptr[k + 1]):
            kind = bonds[b, _TYPE]
            found[k] |= kind < _SINGLE or kind > _FLAT
            for side in range(2):
                found[k] |= kind == _FLAT and atoms[first + ends[b, side], _AROMATIC] != 2
    return found
