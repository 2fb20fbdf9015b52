"""CIP labels in place of RDKit's `rdCIPLabeler`.

Centres whose configuration the atomic numbers near them decide are named here; the others are left to RDKit.

Of the rules of Cahn, Ingold and Prelog the first (1a, Hanson et al. 2018, 10.1021/acs.jcim.8b00324) compares the four
neighbours of a centre by atomic number, then the sets of atoms next to these, then the sets next to those, set by set
from the highest branch on. A double bond counts its far end twice; where mesomeric forms disagree on which bond that
is, RDKit (`Mancude.cpp`) takes a mean over the ring neighbours it may lead to. Here such a number lies between bounds,
and a centre is named only where the bounds suffice: carbon with four single bonds whose neighbours differ within those
sets. RDKit would name it alike, in a few steps; nine in ten centres of drug-like molecules are such.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gtx.base.jit import compiled_loop
from gtx.fast.graphs import (
    AROMATIC,
    AROMATIC_BOND,
    CHARGE,
    CHIRALITY,
    ELEMENT,
    HYDROGENS,
    IN_RING,
    NEUTRAL,
    NO_RING,
    RING,
    SINGLE,
    STEREO,
    TYPE,
    YES,
)

_CLOCKWISE, _COUNTER = 1, 2  # tags
_R, _S = 2, 3  # codes of labels
_HYDROGEN, _CARBON, _NITROGEN, _OXYGEN = 1, 6, 7, 8
_CHALCOGENS = (8, 16, 34, 52)
_MOST = 6  # atoms of a set
_EQUAL, _OPEN = 0, 2  # outcomes of a comparison; the others are 1 and -1


@compiled_loop
def label_centres(graphs):
    """Label the molecules all of whose stereochemistry can be named here, in the column "chirality".

    Args:
        graphs: `gtx.fast.graphs.Graphs`; the code of a centre without a label is 0.

    Returns:
        bool `[m]` each: molecules that are named; those with stereochemistry left to RDKit, whose codes are unchanged.
    """
    atoms, total = graphs.atoms, len(graphs.atom_ptr) - 1
    named, left = np.zeros(total, np.bool_), np.zeros(total, np.bool_)
    labels = np.zeros(len(atoms), np.uint8)
    for k in range(total):
        first, last = graphs.atom_ptr[k], graphs.atom_ptr[k + 1]
        codes = atoms[first:last], graphs.bonds[graphs.bond_ptr[k] : graphs.bond_ptr[k + 1]]
        molecule = (*codes, graphs.near_ptr[first : last + 1], graphs.near_atoms, graphs.near_bonds)
        for b in range(graphs.bond_ptr[k], graphs.bond_ptr[k + 1]):
            left[k] |= graphs.bonds[b, STEREO] == 0
        for i in range(first, last):
            if atoms[i, CHIRALITY] == 0 and not left[k]:
                labels[i] = _label(i - first, graphs.tags[i], *molecule)
                left[k] = labels[i] == 0
        for i in range(first, last):
            if labels[i]:
                left[k] |= _has_anion_in_ring(atoms[first:last])
                break
        for i in range(first, last):
            if labels[i] and not left[k]:
                atoms[i, CHIRALITY] = labels[i]
                named[k] = True
    return named, left


@njit
def _has_anion_in_ring(atoms):
    """Return whether a molecule has negative charges in rings, which change the means of whole ring systems."""
    found = False
    for atom in atoms:
        found |= atom[CHARGE] < NEUTRAL and atom[RING] != NO_RING
    return found


@njit
def _label(centre, tag, atoms, bonds, ptr, others, via):
    """Return the code of a centre's label, or 0.

    Args:
        centre, tag: the atom, numbered within the molecule, and its tag.
        atoms, bonds: codes of the molecule.
        ptr, others, via: the neighbours of its atoms and the bonds to them, as in `Graphs`.
    """
    atom = atoms[centre]
    hydrogens, degree = atom[HYDROGENS] - 1, ptr[centre + 1] - ptr[centre]
    if atom[ELEMENT] != _CARBON or atom[CHARGE] != NEUTRAL or (tag != _CLOCKWISE and tag != _COUNTER):
        return 0
    if hydrogens < 0 or hydrogens > 1 or degree + hydrogens != 4:
        return 0
    # lowest and highest each atomic number can be: of a neighbour, then of those next to it, descending
    low, high, who = np.zeros((4, 1 + _MOST), np.int64), np.zeros((4, 1 + _MOST), np.int64), np.zeros(4, np.int64)
    low[3, 0] = high[3, 0] = _HYDROGEN  # unless a fourth neighbour takes its place: a hydrogen atom comes last
    next_to = np.zeros(_MOST, np.int64)
    for p in range(degree):
        who[p] = others[ptr[centre] + p]
        element = np.int64(atoms[who[p], ELEMENT])
        if bonds[via[ptr[centre] + p], TYPE] != SINGLE or element == 0:
            return 0
        low[p, 0] = high[p, 0] = element
        if not _first_sphere(who[p], centre, low[p, 1:], high[p, 1:], next_to, atoms, bonds, ptr, others, via):
            return 0
        _sort_descending(low[p, 1:])
        _sort_descending(high[p, 1:])
    swaps = 0
    for p in range(4):
        for q in range(p + 1, 4):
            outcome = _compare(low[p], high[p], low[q], high[q])
            if outcome == _EQUAL and q < degree:
                low_p, high_p, usable_p = _second_sphere(who[p], centre, atoms, bonds, ptr, others, via)
                low_q, high_q, usable_q = _second_sphere(who[q], centre, atoms, bonds, ptr, others, via)
                outcome = _compare(low_p, high_p, low_q, high_q) if usable_p and usable_q else _OPEN
            if outcome in (_EQUAL, _OPEN):
                return 0
            swaps += outcome == -1
    return _R if (tag == _CLOCKWISE) == (swaps % 2 == 0) else _S


@njit
def _first_sphere(atom, parent, low, high, who, atoms, bonds, ptr, others, via):
    """Collect the set next to an atom, its parent left out, in no order.

    Args:
        atom, parent: the atom, and where it is seen from.
        low, high: int64 `[6]`, get the bounds of each atomic number; 0 where there is none.
        who: int64 `[6]`, gets the atom that it is of, or -1 for a hydrogen or a duplicate.
        atoms, bonds, ptr, others, via: the molecule, as in `_label`.

    Returns:
        Whether there is such a set.
    """
    own, begin, end = atoms[atom], ptr[atom], ptr[atom + 1]
    hydrogens = np.int64(own[HYDROGENS]) - 1
    if hydrogens < 0 or own[CHARGE] == 0:
        return False
    places = end - begin + hydrogens
    resonant = own[RING] != NO_RING and places < 4 and own[ELEMENT] in (6, 7, 14, 15, 32, 33)
    low[:], high[:], who[:] = 0, 0, -1
    count, doubles, aromatic, lowest, highest = 0, 0, False, 1000, 0
    for to in range(begin, end):
        other, bond = others[to], bonds[via[to]]
        element, kind = np.int64(atoms[other, ELEMENT]), bond[TYPE]
        twice = kind - 1 if kind < AROMATIC_BOND and not resonant else 0
        if element == 0 or kind == 0 or kind > AROMATIC_BOND or count + twice + 1 > _MOST:
            return False
        if other != parent:
            low[count] = high[count] = element
            who[count] = other
            count += 1
        for _ in range(twice):
            low[count] = high[count] = element
            count += 1
        aromatic |= kind == AROMATIC_BOND
        if resonant and 1 < kind < AROMATIC_BOND:
            doubles += kind - 1
            lowest, highest = min(lowest, element), max(highest, element)
        if bond[IN_RING] == YES and _may_be_double(atoms[other], ptr[other + 1] - ptr[other]):
            lowest, highest = min(lowest, element), max(highest, element)
    if count + hydrogens + 1 > _MOST:
        return False
    for _ in range(hydrogens):
        low[count] = high[count] = _HYDROGEN
        count += 1
    if not (aromatic or doubles):
        return own[RING] == NO_RING or own[CHARGE] == NEUTRAL or own[ELEMENT] != _OXYGEN
    if own[CHARGE] != NEUTRAL or (own[AROMATIC] != YES and aromatic) or doubles > 1:
        return False
    if resonant and ((own[ELEMENT] == _CARBON and places == 3) or (own[ELEMENT] == _NITROGEN and places == 2)):
        low[count], high[count] = lowest, highest  # one of its bonds is double
        return highest > 0
    return doubles == 0 and (
        (own[ELEMENT] == _NITROGEN and places == 3) or (own[ELEMENT] in _CHALCOGENS and places == 2)
    )


@njit
def _may_be_double(own, degree):
    """Return whether a double bond of a ring may end at an atom."""
    if own[ELEMENT] != _CARBON and own[CHARGE] != NEUTRAL:
        return True
    places = degree + own[HYDROGENS] - 1
    if own[ELEMENT] == _CARBON:
        return places == 3
    return places == 2 if own[ELEMENT] == _NITROGEN else own[ELEMENT] not in _CHALCOGENS or places != 2


@njit
def _second_sphere(atom, parent, atoms, bonds, ptr, others, via):
    """List the sets at the second sphere of an atom, highest branch first: bounds, int64 `[36]`, and their validity.

    Where two branches are equal so far RDKit would look further to order them, in vain, at a length that cannot be
    foreseen, unless nothing but hydrogen atoms follows.
    """
    low, high, who = np.zeros(_MOST, np.int64), np.zeros(_MOST, np.int64), np.zeros(_MOST, np.int64)
    lows, highs = np.zeros((_MOST, _MOST), np.int64), np.zeros((_MOST, _MOST), np.int64)
    next_to = np.zeros(_MOST, np.int64)
    usable = _first_sphere(atom, parent, low, high, who, atoms, bonds, ptr, others, via)
    for p in range(_MOST):
        if who[p] >= 0:
            usable &= _first_sphere(who[p], atom, lows[p], highs[p], next_to, atoms, bonds, ptr, others, via)
            _sort_descending(lows[p])
            _sort_descending(highs[p])
    for p in range(1, _MOST):  # insertion
        for q in range(p, 0, -1):
            outcome = np.sign(low[q - 1] - low[q])
            if outcome == 0:
                outcome = _compare(lows[q - 1], highs[q - 1], lows[q], highs[q])
            if outcome == _OPEN or (outcome == _EQUAL and highs[q, 0] > _HYDROGEN):
                usable = False
            if outcome >= 0:
                break
            low[q - 1], low[q] = low[q], low[q - 1]
            for j in range(_MOST):
                lows[q - 1, j], lows[q, j] = lows[q, j], lows[q - 1, j]
                highs[q - 1, j], highs[q, j] = highs[q, j], highs[q - 1, j]
    return lows.ravel(), highs.ravel(), usable


@njit
def _compare(low, high, other_low, other_high):
    """Compare two sequences between bounds: 1 if the first is greater, -1 if it is smaller, equal, or open."""
    equal, greater, smaller = True, False, False
    for j in range(len(low)):
        equal &= low[j] == high[j] == other_low[j] == other_high[j]
    if equal:
        return _EQUAL
    for j in range(len(low)):
        if low[j] != other_high[j]:
            greater = low[j] > other_high[j]
            break
    for j in range(len(low)):
        if high[j] != other_low[j]:
            smaller = high[j] < other_low[j]
            break
    return 1 if greater else -1 if smaller else _OPEN


@njit
def _sort_descending(values):
    """Sort a few numbers, the greatest first."""
    for p in range(1, len(values)):
        for q in range(p, 0, -1):
            if values[q - 1] >= values[q]:
                break
            values[q - 1], values[q] = values[q], values[q - 1]
