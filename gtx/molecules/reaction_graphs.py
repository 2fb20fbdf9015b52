"""Reactions in arrays: codes of atoms and bonds before and after, and canonical numbers of the atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from gtx.molecules.coordinates import without_hydrogens
from gtx.molecules.descriptors import compute_descriptors, missing_descriptors
from gtx.molecules.graphs import (
    ATOM_FEATURE_VALUES,
    ATOM_INDEX,
    BOND_FEATURE_VALUES,
    BOND_INDEX,
    UNNAMED,
    Molecule,
    assign_stereo_labels,
    bond_edge_index,
    copy_labels,
    encode_atoms,
    encode_bonds,
)
from gtx.molecules.reactions import EXTRA, MODES, read_reaction, unchanged, write_reaction
from gtx.molecules.reading import MoleculeError
from gtx.molecules.settings import Settings

# --- The graph: codes of both sides.


def _extra(values: dict[str, tuple], name: str) -> np.ndarray:
    """Return the code of "absent" or "same" in each column, uint8 `[C]`."""
    return np.array([len(one) + 1 + EXTRA.index(name) for one in values.values()], np.uint8)


def _halves(mode: str, codes: np.ndarray, values: dict[str, tuple]) -> np.ndarray:
    """Make the codes of a mode, uint8 `[n, 2C]`, from those before and after, `[2, n, C]`."""
    before, after = codes
    first, second = (after, before) if mode.startswith("products") else (before, after)
    if "difference" in mode:
        second = np.where(first == second, _extra(values, "same"), second)
    return np.concatenate([first, second], 1)


class _Side(NamedTuple):
    """One side of a reaction: its molecule without hydrogens, codes of atoms, bonds, codes of bonds."""

    bare: Chem.Mol
    atoms: np.ndarray
    bonds: np.ndarray
    bond_codes: np.ndarray


def _encode(settings: Settings, mol: Chem.Mol) -> _Side:
    if settings.ignore_stereo:
        Chem.RemoveStereochemistry(mol)
    bare, order = without_hydrogens(mol)
    assign_stereo_labels(bare)
    copy_labels(bare, mol, order)
    return _Side(bare, encode_atoms(mol), bond_edge_index(mol), encode_bonds(mol))


def describe_reaction(settings: Settings, text: str, first: bool, smiles: bool) -> Molecule:
    """Read a reaction as arrays, within `quietly`; `u` has the descriptors of the reactants, then the changes.

    Of several components the `first` is the reaction, and the others are molecules.
    """
    reaction = read_reaction(text, settings.agents) if first else unchanged(text)
    n = reaction.places.shape[1]
    if n > settings.max_atoms:
        raise MoleculeError(f"has {n} atoms; the limit is {settings.max_atoms}")
    sides = [_encode(settings, mol) for mol in reaction.molecules]
    balanced = (settings.reaction or "").endswith("-balanced")
    atoms = np.zeros((2, n, len(ATOM_FEATURE_VALUES)), np.uint8)
    atoms[:] = _extra(ATOM_FEATURE_VALUES, "absent")
    there = reaction.places >= 0
    for k, side in enumerate(sides):
        atoms[k, there[k]] = side.atoms[reaction.places[k, there[k]]]
    columns = slice(None) if balanced else ATOM_INDEX["element"]
    for k in (0, 1):
        atoms[k, ~there[k], columns] = atoms[1 - k, ~there[k], columns]
    bonds, bond_codes = _union_bonds(sides, reaction.places, balanced)
    named = all(
        side.atoms[:, ATOM_INDEX["chirality"]].all() and side.bond_codes[:, BOND_INDEX["stereo"]].all()
        for side in sides
    )
    values = np.zeros(0, np.float32)
    warnings = [*reaction.warnings, *(() if named else (UNNAMED,))]
    if settings.descriptors:
        own = [compute_descriptors(side.bare) for side in sides]
        warnings += missing_descriptors(own[0])
        with np.errstate(invalid="ignore"):
            values = np.concatenate([own[0], own[1] - own[0]]).astype(np.float32)
    written = None
    if smiles:
        numbers = canonical_numbers(np.concatenate(atoms, 1), bonds[:, ::2], np.concatenate(bond_codes, 1)[::2])
        written = write_reaction(reaction, numbers) if first else Chem.MolToSmiles(sides[0].bare)
    mode = settings.reaction or MODES[0]
    return Molecule(
        _halves(mode, atoms, ATOM_FEATURE_VALUES),
        bonds,
        _halves(mode, bond_codes, BOND_FEATURE_VALUES),
        None,
        values,
        written,
        tuple(warnings),
    )


def _union_bonds(sides: Sequence[_Side], places: np.ndarray, balanced: bool) -> tuple[np.ndarray, np.ndarray]:
    """Unite the bonds of two sides: int32 `[2, 2m]`, both directions of each, and codes `[2, 2m, F]`.

    If balanced, a bond of atoms that are both of one side only has its codes on the other side too.
    """
    absent = _extra(BOND_FEATURE_VALUES, "absent")
    codes: dict[tuple[int, int], list[np.ndarray]] = {}
    for k, side in enumerate(sides):
        node = np.zeros(len(side.atoms), int)
        node[places[k, places[k] >= 0]] = np.flatnonzero(places[k] >= 0)
        for (i, j), code in zip(node[side.bonds.T[::2]].tolist(), side.bond_codes[::2], strict=True):
            both = codes.setdefault((min(i, j), max(i, j)), [absent, absent])
            both[k] = code
            if balanced and (places[1 - k, [i, j]] < 0).all():
                both[1 - k] = code
    ends = np.array(list(codes), np.int32).reshape(-1, 2)
    bonds = np.stack([ends, ends[:, ::-1]], 1).reshape(-1, 2).T
    shape = (len(codes), 2, len(BOND_FEATURE_VALUES))
    table = np.array(list(codes.values()), np.uint8).reshape(shape).transpose(1, 0, 2)
    return np.ascontiguousarray(bonds), table.repeat(2, axis=1)


# --- Canonical numbers, which do not depend on those given.


def canonical_numbers(atoms: np.ndarray, bonds: np.ndarray, bond_codes: np.ndarray) -> list[int]:
    """Find canonical numbers for the n atoms of a reaction, from 1, whatever their order.

    RDKit ranks the atoms of a graph in which every kind of atom `[n, *]`, and every kind of bond `[m, *]` between the
    atoms `bonds` `[2, m]`, is an isotope of a dummy atom.
    """
    graph, start = Chem.RWMol(), 1
    for codes in (atoms, bond_codes):
        kinds, kind = np.unique(codes, axis=0, return_inverse=True) if len(codes) else ((), np.zeros(0, int))
        for isotope in (kind.reshape(-1) + start).tolist():
            dummy = Chem.Atom(0)
            dummy.SetIsotope(isotope)
            graph.AddAtom(dummy)
        start += len(kinds)
    for bond, ends in enumerate(bonds.T.tolist(), len(atoms)):
        for end in ends:
            graph.AddBond(end, bond, Chem.BondType.SINGLE)
    mol = graph.GetMol()
    mol.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(mol)
    ranks = np.array(list(Chem.CanonicalRankAtoms(mol, breakTies=True))[: len(atoms)], int)
    return (ranks.argsort().argsort() + 1).tolist()
