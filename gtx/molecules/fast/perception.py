"""Texts to arrays, many molecules at once: RDKit reads each, and compiled loops go through all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from gtx.molecules import perception as plain
from gtx.molecules.conformers import Conformer, make_conformer
from gtx.molecules.coordinates import without_hydrogens
from gtx.molecules.descriptors import lacking
from gtx.molecules.fast.binary import binary
from gtx.molecules.fast.centres import name_centres
from gtx.molecules.fast.descriptors import tabulate
from gtx.molecules.fast.graphs import Graphs
from gtx.molecules.flat import FlatMolecules
from gtx.molecules.graphs import (
    ATOM_COLUMNS,
    ATOM_PLACE,
    BOND_PLACE,
    LABEL,
    atom_code,
    bond_code,
    copy_labels,
    finish,
    label_of,
    label_stereo,
)
from gtx.molecules.settings import Settings

PER_CALL = 128
"""Texts to perceive together; more gain nothing."""

_NO_CENTRE = atom_code("chirality", "none")


class Read(NamedTuple):
    """A molecule that was read.

    Attributes:
        mol: RDKit's own; its atoms become nodes.
        bare: the same without hydrogen atoms.
        kept: per atom of `bare` its number in `mol`; empty where both are the same.
        binaries: RDKit's binary form of `mol` and of `bare`.
        finished: whether centres that are none are dropped.
        conformer: where its atoms are, if coordinates are wanted and need not be made.
    """

    mol: Chem.Mol
    bare: Chem.Mol
    kept: list[int]
    binaries: tuple[bytes, bytes]
    finished: bool
    conformer: Conformer | None


def perceive(
    settings: Settings, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None, smiles: bool
) -> FlatMolecules:
    """Perceive molecules as `gtx.molecules.perception.perceive`."""
    parts = []
    for i in range(0, max(len(texts), 1), PER_CALL):
        few = slice(i, i + PER_CALL)
        given = settings, texts[few], None if coordinates is None else coordinates[few], smiles
        try:
            parts.append(_few(*given))
        except (RuntimeError, ValueError):  # RDKit gave up on one that it had read: the plain way shows which
            parts.append(plain.perceive(*given))
    return FlatMolecules.join(parts)


def _few(
    settings: Settings, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None, smiles: bool
) -> FlatMolecules:
    read: list[Read] = []
    errors: list[str | None] = [None] * len(texts)
    for i, text in enumerate(texts):
        try:
            read.append(_read(settings, text, None if coordinates is None else coordinates[i], smiles))
        except (RuntimeError, ValueError) as error:
            errors[i] = plain.reason(error)
    parts = []
    while read or not parts:
        usual, graphs, bare = _graphs(settings, read)
        parts.append(_describe(settings, read[:usual], graphs, bare, smiles))
        if usual < len(read):
            parts.append(FlatMolecules.of(plain.describe(settings, _finished(read[usual]).mol, smiles)))
        read = read[usual + 1 :]
    found = FlatMolecules.join(parts)
    words = iter(zip(found.smiles, found.warnings, strict=True))
    rows = [next(words) if error is None else (None, ()) for error in errors]
    return found._replace(smiles=[row[0] for row in rows], errors=errors, warnings=[row[1] for row in rows])


def _read(settings: Settings, text: str, coordinates: np.ndarray | None, smiles: bool) -> Read:
    mol, finished = plain.read_molecule(settings, text, coordinates, skim=True)
    if smiles and not finished:
        finish(mol)
    form, given = binary(mol), plain.given_conformer(settings, mol)
    if not settings.hydrogens:
        return Read(mol, mol, [], (form, form), finished or smiles, given)
    bare, kept = without_hydrogens(mol)
    return Read(mol, bare, kept, (form, binary(bare)), finished, given)


def _finished(read: Read) -> Read:
    if not read.finished:
        finish(read.mol)
    return read


def _graphs(settings: Settings, read: Sequence[Read]) -> tuple[int, Graphs, Graphs]:
    """Molecules up to the first that is unusual: how many, and their graphs with and without hydrogen atoms."""
    usual, graphs = Graphs.read([one.binaries[0] for one in read])
    if not settings.hydrogens:
        return usual, graphs, graphs
    least, bare = Graphs.read([one.binaries[1] for one in read[:usual]])
    return (usual, graphs, bare) if least == usual else _graphs(settings, read[:least])


def _describe(settings: Settings, read: Sequence[Read], graphs: Graphs, bare: Graphs, smiles: bool) -> FlatMolecules:
    """Molecules in arrays, from their graphs."""
    notes = _name(read, bare)
    for k, one in enumerate(read if settings.hydrogens else ()):
        copy_labels(one.bare, one.mol, one.kept)
        put_labels(one.mol, *graphs.codes(k))
    mols = [one.bare for one in read]
    values = tabulate(bare, mols) if settings.descriptors else np.zeros((len(read), 0), np.float32)
    for k in np.flatnonzero(np.isnan(values).any(1)).tolist():
        notes[k] += lacking(values[k])
    written = [Chem.MolToSmiles(mol) for mol in mols] if smiles else [None] * len(mols)
    positions = [np.zeros((0, 3), np.float32)]
    for k, one in enumerate(read if settings.coordinates else ()):
        places, said = one.conformer or make_conformer(one.mol)
        positions.append(places)
        notes[k] += said
    return FlatMolecules(
        graphs.atoms,
        graphs.both_ways,
        graphs.both_codes,
        values,
        graphs.atom_counts,
        2 * graphs.bond_counts,
        np.concatenate(positions) if settings.coordinates else None,
        written,
        [None] * len(mols),
        notes,
    )


def _name(read: Sequence[Read], graphs: Graphs) -> list[tuple[str, ...]]:
    """Put the labels of molecules into their codes; what the user should know of them.

    RDKit's molecules get the labels too: the order of atoms in canonical SMILES depends on them.
    """
    named, left = name_centres(graphs)
    notes: list[tuple[str, ...]] = [()] * len(read)
    for k in np.flatnonzero(left).tolist():
        mol = _finished(read[k]).bare
        label_stereo(mol)
        if not put_labels(mol, *graphs.codes(k)):
            notes[k] = (plain.UNNAMED,)
    for k in np.flatnonzero(named).tolist():
        take_labels(read[k].bare, graphs.codes(k)[0])
    return notes


def put_labels(mol: Chem.Mol, atoms: np.ndarray, bonds: np.ndarray) -> bool:
    """Put the labels that `label_stereo` gave in their columns; whether all of them are known ones.

    Args:
        mol: a labelled molecule.
        atoms, bonds: its codes, `[n, A]` and `[m, F]`; where there is something to label the code is 0.
    """
    centre, axis = atoms[:, ATOM_PLACE["chirality"]], bonds[:, BOND_PLACE["stereo"]]
    for i in np.flatnonzero(centre == 0).tolist():
        centre[i] = atom_code("chirality", label_of(mol.GetAtomWithIdx(i)))
    for k in np.flatnonzero(axis == 0).tolist():
        axis[k] = bond_code("stereo", label_of(mol.GetBondWithIdx(k)))
    return bool(centre.all() and axis.all())


def take_labels(mol: Chem.Mol, atoms: np.ndarray) -> None:
    """Give a molecule the labels of its centres that stand in their column, as `label_stereo` would have."""
    centre = atoms[:, ATOM_PLACE["chirality"]]
    for i in np.flatnonzero(centre != _NO_CENTRE).tolist():
        mol.GetAtomWithIdx(i).SetProp(LABEL, ATOM_COLUMNS["chirality"][centre[i] - 1])
