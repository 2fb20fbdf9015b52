"""Molecular quantum numbers: 42 counts of atoms, bonds, polar groups and rings.

Source: Nguyen, Blum, van Deursen & Reymond 2009 (10.1002/cmdc.200900317), with donors, acceptors and rotatable bonds as
RDKit has them (`MQN.cpp` and `Lipinski.cpp`), here for many molecules at once.
"""

from __future__ import annotations

import numpy as np

from gtx.molecules.graphs import Graphs
from gtx.molecules.neighbours import Atoms


def quantum_numbers(graphs: Graphs, atoms: Atoms) -> np.ndarray:
    """MQN1 to MQN42 of m molecules: float64 `[m, 42]`.

    Args:
        graphs: the molecules; a charge beyond ±4 is taken for a positive one.
        atoms: their atoms.
    """
    m = len(graphs.atom_counts)
    element, H, degree, q = atoms.element, atoms.hydrogens, atoms.degree, atoms.charge
    N, oxygen, heavy, polar = element == 7, element == 8, element != 1, np.isin(element, (7, 8))
    cyclic, single, double, triple, aromatic = graphs.atom_rings > 0, *(graphs.bonds[:, 0] == k for k in range(1, 5))
    aromatic &= atoms.aromatic[graphs.senders[::2]]  # `C:C` is not
    bridge = graphs.bond_rings == 0
    ring_molecule = np.repeat(np.arange(m), graphs.ring_counts)

    def of_atoms(number: np.ndarray) -> np.ndarray:
        return np.bincount(graphs.molecule, number, m)

    def of_bonds(number: np.ndarray) -> np.ndarray:
        return np.bincount(graphs.bond_molecule, number, m)

    kekule = of_bonds(aromatic) // 2  # half of the aromatic bonds are double
    columns = [
        *(of_atoms(element == z) for z in (6, 9, 17, 35, 53, 16, 15)),
        of_atoms(N & ~cyclic),
        of_atoms(N & cyclic),
        of_atoms(oxygen & ~cyclic),
        of_atoms(oxygen & cyclic),
        of_atoms(element > 1),
        *(of_bonds(kind & bridge) for kind in (single, double, triple)),
        of_bonds(single & ~bridge) + of_bonds(aromatic) - kekule,
        of_bonds(double & ~bridge) + kekule,
        of_bonds(triple & ~bridge),
        of_bonds(rotatable(graphs, atoms)),
        of_atoms(N & (degree != 4)) + of_atoms(np.where(q == -1, 3, 2) * oxygen),  # lone pairs that accept
        of_atoms(N & (degree != 4) | oxygen),
        of_atoms(H * polar),
        of_atoms((H > 0) & polar),
        of_atoms(q < 0),
        of_atoms(q > 0),
        of_atoms(heavy & (degree == 1)),
        *(of_atoms(heavy & (degree == k) & ~cyclic) for k in (2, 3, 4)),
        *(of_atoms(heavy & (degree == k) & cyclic) for k in (2, 3, 4)),
        *(np.bincount(ring_molecule, graphs.ring_sizes == k, m) for k in range(3, 10)),
        np.bincount(ring_molecule, graphs.ring_sizes > 9, m),
        of_atoms(heavy & (graphs.atom_rings > 1)),
        of_bonds(graphs.bond_rings > 1),
    ]
    return np.stack(columns, 1)


def rotatable(graphs: Graphs, atoms: Atoms) -> np.ndarray:
    """Bonds that turn freely: bool `[M]`. Single, in no ring, between inner atoms; not those of CF3 and the like, of
    amides, esters and thioesters, nor next to a triple bond. RDKit's strict definition."""
    n, degree, a, element = atoms.count, atoms.degree, atoms.aromatic, atoms.element
    C = ~a & (element == 6)
    methyl = C & (atoms.hydrogens == 3)
    tops = [~a & (element == z) for z in (9, 17, 35)] + [methyl]
    stiff = (degree == 1) | (n("#", degree > 0) > 0) | methyl | C & np.any([n("", top) > 2 for top in tops], axis=0)
    oxygen, S = (~a & (element == z) for z in (8, 16))
    acyl = C & (degree == 3) & (n("=", ~a & (element == 7) | oxygen | S) > 0)
    donor = (element == 7) | oxygen | S & (degree != 1)
    amide = acyl & (n("-!@", donor) > 0) | donor & (n("-!@", acyl) > 0)
    i, j = graphs.senders[::2], graphs.receivers[::2]
    bond = np.isin(graphs.bonds[:, 0], (1, 4)) & (graphs.bond_rings == 0)  # single or aromatic
    return bond & ~stiff[i] & ~stiff[j] & ~(amide[i] & amide[j])
