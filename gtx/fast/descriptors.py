"""Descriptors of many molecules from their graphs: Crippen's contributions, surfaces and molecular quantum numbers.

RDKit takes longer for these than to read the molecules, as it matches SMARTS. Each is equal to RDKit's to the last bit;
the other descriptors are RDKit's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise, starmap
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from rdkit import Chem
from rdkit.Chem import Crippen

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
    around, surface = Surroundings.of(graphs, mols), surfaces(graphs)
    logp, refractivity = _CONTRIBUTIONS_OF_ROWS[first_fit(around, _CRIPPEN)].T
    contributions = np.concatenate(
        [
            *(np.bincount(graphs.atom_owner, value, len(mols))[:, None] for value in (logp, refractivity)),
            surface_by_range(graphs, logp, surface, _LOGP_EDGES),
            surface_by_range(graphs, refractivity, surface, _REFRACTIVITY_EDGES),
        ],
        axis=1,
    )
    numbers, others = quantum_numbers(graphs, rotatable(graphs, around)), unsupported(graphs)
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


# --- SMARTS of an atom and its surroundings, tried for one atom after the other; matching them one by one takes RDKit
# longer than reading the molecule.

CHAIN = 6
"""The code of a single bond in no ring, beside those of the column "type"."""
_BOND_SETS = {
    "": (SINGLE, CHAIN, AROMATIC_BOND),
    "-": (SINGLE, CHAIN),
    "-&!@": (CHAIN,),
    "=": (DOUBLE,),
    "#": (TRIPLE,),
    ":": (AROMATIC_BOND,),
}
"""The bonds that each bond of a SMARTS stands for; one without a symbol is single or aromatic."""
_QUERY, _BONDS, _PARENT = range(3)


class Rules(NamedTuple):
    """K rules, each a SMARTS without rings that an atom fits as its first atom.

    Attributes:
        nodes: int64 `[S, 3]`, for each atom of the rules its place in `_QUERIES`, the bonds to its parent, a bit for
            each code, and the number of the parent in the rule.
        ptr: int64 `[K + 1]`; rule k has the nodes `ptr[k]` to `ptr[k + 1]`.
    """

    nodes: np.ndarray
    ptr: np.ndarray

    @classmethod
    def of(cls, *smarts: str) -> Self:
        """Make rules of SMARTS."""
        rules = [Chem.MolFromSmarts(text) for text in smarts]
        nodes = []
        for rule in rules:
            for atom in rule.GetAtoms():
                bonds = [bond for bond in atom.GetBonds() if bond.GetOtherAtomIdx(atom.GetIdx()) < atom.GetIdx()]
                kinds = sum(1 << code for bond in bonds for code in _BOND_SETS[bond.GetSmarts()])
                parent = bonds[0].GetOtherAtomIdx(atom.GetIdx()) if bonds else 0
                text = atom.GetSmarts()
                nodes.append((_QUERIES.setdefault(text, len(_QUERIES)), kinds, parent))
        return cls(np.array(nodes), np.cumsum([0, *(rule.GetNumAtoms() for rule in rules)]))


_QUERIES: dict[str, int] = {}
"""The different atoms of all rules, as SMARTS, by their places."""
_LEFT = -1  # the code of an atom that is left to RDKit
_FITS: dict[int, list[bool]] = {}
"""Whether an atom with these codes fits each of the queries."""


class Surroundings(NamedTuple):
    """The neighbours of N atoms of K kinds, and what each kind is to queries.

    Attributes:
        near_ptr, near_atoms: as of `Graphs`.
        near_bonds: code of the type of the bond to each neighbour, int64 `[2M]`, `CHAIN` for a single one in no ring.
        kind: kind of each atom, int64 `[N]`.
        fits: whether atoms of a kind fit each of `_QUERIES`, bool `[K, Q]`.
    """

    near_ptr: np.ndarray
    near_atoms: np.ndarray
    near_bonds: np.ndarray
    kind: np.ndarray
    fits: np.ndarray

    @classmethod
    def of(cls, graphs: Graphs, mols: Sequence[Chem.Mol]) -> Self:
        """Describe the atoms of molecules; RDKit is asked about one atom of each kind that no molecule had before.

        Atoms of molecules that are left to RDKit fit nothing: a SMARTS counts hydrogen atoms, which no code does.
        """
        near = graphs.bonds[graphs.near_bonds]
        chain = (near[:, TYPE] == SINGLE) & (near[:, IN_RING] == NO)
        codes = graphs.atoms[:, [ELEMENT, AROMATIC, CHARGE, HYDROGENS, DEGREE]].astype(np.int64) @ 256 ** np.arange(5)
        owner = graphs.atom_owner
        codes[unsupported(graphs)[owner]] = _LEFT
        kinds, first, kind = np.unique(codes, return_index=True, return_inverse=True)
        _FITS.setdefault(_LEFT, [False] * len(_QUERIES))
        for code, i in zip(kinds.tolist(), first.tolist(), strict=True):
            if code not in _FITS:
                atom = mols[owner[i]].GetAtomWithIdx(i - int(graphs.atom_ptr[owner[i]]))
                _FITS[code] = [query.Match(atom) for query in _queries()]
        fits = np.array([_FITS[code] for code in kinds.tolist()], bool).reshape(len(kinds), len(_QUERIES))
        return cls(graphs.near_ptr, graphs.near_atoms, np.where(chain, CHAIN, near[:, TYPE]), kind, fits)


@cache
def _queries() -> list[Chem.Atom]:
    return [Chem.AtomFromSmarts(text) for text in _QUERIES]


@compiled_loop
def first_fit(around, rules):
    """Find the first rule that each atom fits, int64 `[N]`, K if it fits none, from `Surroundings` and `Rules`.

    An atom fits if there are different atoms for all nodes of the rule; those after the first are neighbours of their
    parents, tried in turn.
    """
    (near_ptr, near_atoms, near_bonds, kind, fits), (nodes, ptr) = around, rules
    found, most = np.full(len(kind), len(ptr) - 1), np.diff(ptr).max()
    place, tried = np.zeros(most, np.int64), np.zeros(most + 1, np.int64)
    for i in range(len(kind)):
        for k in range(len(ptr) - 1):
            first, size = ptr[k], ptr[k + 1] - ptr[k]
            place[0], tried[1], n = i, near_ptr[i], int(fits[kind[i], nodes[first, _QUERY]])
            while 0 < n < size:
                query, bonds, parent = nodes[first + n]
                j = tried[n]
                if j == near_ptr[place[parent] + 1]:
                    n -= 1  # with the next neighbour for the node before
                    continue
                tried[n], other = j + 1, near_atoms[j]
                free = bonds >> near_bonds[j] & 1 and fits[kind[other], query]
                for before in range(n):
                    free &= place[before] != other
                if free:
                    place[n] = other
                    n += 1
                    if n < size:
                        tried[n] = near_ptr[place[nodes[first + n, _PARENT]]]
            if n == size:
                found[i] = k
                break
    return found


# --- Contributions of heavy atoms to logP and to molar refractivity; in place of RDKit's `_CalcCrippenContribs`.
#
# Source: Wildman & Crippen 1999 (10.1021/ci990307l), by RDKit's table of SMARTS.


def _crippen_table() -> tuple[Rules, np.ndarray]:
    """Read RDKit's table: the SMARTS, and their contributions to logP and refractivity, float64 `[K + 1, 2]`.

    Of the rows that fit an atom the first counts; where none fits, both are 0. Rows for hydrogen atoms are left out:
    the caller keeps molecules with these away.
    """
    smarts, values = [], []
    for line in Path(Crippen.defaultPatternFileName).read_text().splitlines():
        name, *cells = line.split("\t")
        if name == "Hal" or (name and name[0] not in "#H"):
            smarts.append(cells[0])
            values.append([float(cell or 0) for cell in cells[1:3]])
    return Rules.of(*smarts), np.array([*values, [0.0, 0.0]])


_CRIPPEN, _CONTRIBUTIONS_OF_ROWS = _crippen_table()


# --- Van der Waals surface, from bonds alone; in place of RDKit's `_CalcLabuteASAContribs`.
#
# Source: Labute 2000 (10.1016/S1093-3263(00)00068-1), as in RDKit's `MolSurf.cpp`.

_SHORTER = np.array([0.0, 0.0, 0.2, 0.3, 0.1, 0.0])  # Å, by the code of the bond's type

RADII = np.array([Chem.GetPeriodicTable().GetRb0(element) for element in range(119)])
"""Radius of each element, in Å; element 0 is a dummy atom."""


def surfaces(graphs: Graphs) -> np.ndarray:
    """Compute the surface of each atom: float64 `[N]`, in Å².

    A sphere of radius R_i loses to a neighbour j at distance d_ij the cap of area

        π R_i (R_j² - (R_i - d_ij)²) / d_ij

    with d_ij the sum of their radii less a little for bonds of higher order. RDKit leaves R_j² undivided, and counts
    one hydrogen atom at each atom; so do these.
    """
    radius, owner = RADII[graphs.atoms[:, ELEMENT]], np.arange(len(graphs.atoms)).repeat(np.diff(graphs.near_ptr))
    kind, aromatic = graphs.bonds[graphs.near_bonds, TYPE], graphs.atoms[graphs.near_atoms, AROMATIC] == YES
    shorter = _SHORTER[np.where((kind == AROMATIC_BOND) & ~aromatic, 0, kind)]
    lost = np.bincount(owner, _lost(radius[owner], radius[graphs.near_atoms], shorter), len(radius))
    return math.pi * radius * (4 * radius - (lost + _lost(radius, RADII[1], 0.0)))


def _lost(own: np.ndarray, other: np.ndarray, shorter: np.ndarray | float) -> np.ndarray:
    """Return what spheres lose to a neighbour, over π times their radius; radii and shortening in Å."""
    distance = np.minimum(np.maximum(abs(own - other), own + other - shorter), own + other)
    with np.errstate(divide="ignore", invalid="ignore"):  # of dummies
        return other * other - (own - distance) * (own - distance) / distance


# --- Molecular quantum numbers: counts of atoms, bonds and rings; in place of RDKit's `MQNs_`.
#
# Source: Nguyen, Blum, van Deursen & Reymond 2009 (10.1002/cmdc.200900317), with donors, acceptors and rotatable bonds
# as RDKit has them (`MQN.cpp` and `Lipinski.cpp`).

# as in RDKit's `Lipinski.cpp`
_STIFF = Rules.of("[D1]", "*#*", "C(F)(F)F", "C(Cl)(Cl)Cl", "C(Br)(Br)Br", "C([CH3])([CH3])[CH3]")
_AMIDE = Rules.of("[CD3](=[N,O,S])-!@[#7,O,S!D1]", "[#7,O,S!D1]-!@[CD3]=[N,O,S]")
"""Atoms none of whose bonds is rotatable; and both ends of bonds of amides, esters and thioesters."""


def rotatable(graphs: Graphs, around: Surroundings) -> np.ndarray:
    """Mark the rotatable bonds, by RDKit's strict definition: bool `[M]`.

    These are single, in no ring, between inner atoms; not those of CF3 and the like, of amides, esters and thioesters,
    nor next to a triple bond.
    """
    stiff, amide = (first_fit(around, rules) < len(rules.ptr) - 1 for rules in (_STIFF, _AMIDE))
    first, second = graphs.bonded_atoms.T
    free = (graphs.bond_rings == 0) & np.isin(graphs.bonds[:, TYPE], (SINGLE, AROMATIC_BOND))
    return free & ~(stiff[first] | stiff[second] | (amide[first] & amide[second]))


def quantum_numbers(graphs: Graphs, turns: np.ndarray) -> np.ndarray:
    """Count MQN1 to MQN42 of m molecules whose `rotatable` bonds are known: float64 `[m, 42]`."""
    count = len(graphs.atom_ptr) - 1
    atoms, bonds, rings = (
        partial(np.bincount, np.arange(count).repeat(np.diff(ptr)), minlength=count)
        for ptr in (graphs.atom_ptr, graphs.bond_ptr, graphs.ring_ptr)
    )
    element, charge = graphs.atoms[:, ELEMENT], graphs.atoms[:, CHARGE]
    hydrogens, degree = graphs.atoms[:, HYDROGENS] - 1, graphs.atoms[:, DEGREE] - 1
    cyclic, nitrogen, oxygen = graphs.atom_rings > 0, element == 7, element == 8
    accepts, lone_pairs = nitrogen & (degree != 4), oxygen * np.where(charge == NEUTRAL - 1, 3, 2)
    kind, in_ring = graphs.bonds[:, TYPE], graphs.bond_rings > 0
    aromatic, size = bonds(kind == AROMATIC_BOND), np.diff(graphs.member_ptr)
    numbers = [
        *(atoms(element == z) for z in (6, 9, 17, 35, 53, 16, 15)),
        *(atoms(each & where) for each in (nitrogen, oxygen) for where in (~cyclic, cyclic)),
        atoms(element > 1),
        *(bonds((kind == each) & ~in_ring) for each in (SINGLE, DOUBLE, TRIPLE)),
        bonds((kind == SINGLE) & in_ring) + (aromatic + 1) // 2,  # half of the aromatic bonds are double
        bonds((kind == DOUBLE) & in_ring) + aromatic // 2,
        bonds((kind == TRIPLE) & in_ring),
        bonds(turns),
        atoms(accepts + lone_pairs),
        atoms(accepts | oxygen),
        atoms((nitrogen | oxygen) * hydrogens),
        atoms((nitrogen | oxygen) & (hydrogens > 0)),
        atoms(charge < NEUTRAL),
        atoms(charge > NEUTRAL),
        atoms(degree == 1),
        *(atoms((degree == each) & where) for where in (~cyclic, cyclic) for each in (2, 3, 4)),
        *(rings(size == each) for each in range(3, 10)),
        rings(size > 9),
        atoms(graphs.atom_rings > 1),
        bonds(graphs.bond_rings > 1),
    ]
    return np.stack(numbers, 1)
