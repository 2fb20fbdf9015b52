"""Texts to arrays, many molecules at once: RDKit parses each text, and compiled loops go through all molecules."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from rdkit import Chem, rdBase

from gtx.fast.descriptors import tabulate
from gtx.fast.graphs import CHIRALITY, STEREO, VERSION, Graphs, binary, form_version
from gtx.molecules import Featuriser
from gtx.molecules import perception as plain
from gtx.molecules.coordinates import Conformer, make_conformer
from gtx.molecules.descriptors import missing_descriptors
from gtx.molecules.graphs import (
    UNNAMED,
    FeaturisedMolecules,
    assign_stereo_labels,
    atom_code,
    bond_code,
    clean_stereo,
    stereo_label,
)

BATCH = 128
"""Number of texts to featurise at a time; more gain nothing."""


class ParsedMolecule(NamedTuple):
    """Molecule that RDKit has parsed.

    Attributes:
        mol: the molecule of RDKit.
        binary: its binary form.
        finished: whether centres that are none are dropped.
        conformer: its coordinates, if they are required and need not be made.
    """

    mol: Chem.Mol
    binary: bytes
    finished: bool
    conformer: Conformer | None

    def final(self) -> Chem.Mol:
        """Return the molecule without centres that are none."""
        if not self.finished:
            clean_stereo(self.mol)
        return self.mol


def featurise_with_compiled_code(
    settings: Featuriser, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None, smiles: bool
) -> FeaturisedMolecules:
    """Featurise texts with compiled code; the result is that of `gtx.molecules.perception.featurise_with_rdkit`.

    Molecules with hydrogen atoms as nodes are left to that function.
    """
    if settings.hydrogens or not _readable():
        return plain.featurise_with_rdkit(settings, texts, coordinates, smiles)
    batches = []
    for i in range(0, max(len(texts), 1), BATCH):
        batch = slice(i, i + BATCH)
        arguments = settings, texts[batch], None if coordinates is None else coordinates[batch], smiles
        try:
            batches.append(_featurise(*arguments))
        except (RuntimeError, ValueError):  # RDKit gave up on one that it had read: the plain way shows which
            batches.append(plain.featurise_with_rdkit(*arguments))
    return FeaturisedMolecules.join(batches)


@cache
def _readable() -> bool:
    """Return whether RDKit's binary form has the version that is read here; if not, warn, once a program."""
    version = form_version()
    if version != VERSION and multiprocessing.parent_process() is None:
        logging.getLogger(__name__).warning(
            "molecules are read several times slower, by RDKit's own functions: RDKit %s writes version %d.%d of its "
            "binary form, and this gtx reads version %d.%d",
            *(rdBase.rdkitVersion, *version, *VERSION),
        )
    return version == VERSION


def _featurise(
    settings: Featuriser, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None, smiles: bool
) -> FeaturisedMolecules:
    molecules: list[ParsedMolecule] = []
    errors: list[str | None] = [None] * len(texts)
    for i, text in enumerate(texts):
        try:
            molecules.append(_parse(settings, text, None if coordinates is None else coordinates[i], smiles))
        except (RuntimeError, ValueError) as error:
            errors[i] = plain.error_message(error)
    pieces: list[FeaturisedMolecules] = []
    while molecules or not pieces:
        count, graphs = Graphs.read([molecule.binary for molecule in molecules])
        pieces.append(_describe(settings, molecules[:count], graphs, smiles))
        if count < len(molecules):  # the next is unusual
            pieces.append(FeaturisedMolecules.of(plain.describe(settings, molecules[count].final(), smiles)))
        molecules = molecules[count + 1 :]
    joined = FeaturisedMolecules.join(pieces)
    good = iter(zip(joined.smiles, joined.warnings, strict=True))
    rows = [next(good) if error is None else (None, ()) for error in errors]
    return joined._replace(smiles=[row[0] for row in rows], errors=errors, warnings=[row[1] for row in rows])


def _parse(settings: Featuriser, text: str, coordinates: np.ndarray | None, smiles: bool) -> ParsedMolecule:
    mol, finished = plain.read_molecule(settings, text, coordinates, skim=True)
    if smiles and not finished:
        clean_stereo(mol)
    return ParsedMolecule(mol, binary(mol), finished or smiles, plain.read_conformer(settings, mol))


def _describe(
    settings: Featuriser, molecules: Sequence[ParsedMolecule], graphs: Graphs, smiles: bool
) -> FeaturisedMolecules:
    """Describe molecules in arrays, from their graphs."""
    warnings = _label(molecules, graphs)
    mols = [molecule.mol for molecule in molecules]
    values = tabulate(graphs, mols) if settings.descriptors else np.zeros((len(mols), 0), np.float32)
    for k in np.flatnonzero(np.isnan(values).any(1)).tolist():
        warnings[k] += missing_descriptors(values[k])
    written = [Chem.MolToSmiles(mol) if smiles else None for mol in mols]
    positions = [np.zeros((0, 3), np.float32)]
    if settings.coordinates:
        for k, molecule in enumerate(molecules):
            conformer = molecule.conformer or make_conformer(molecule.mol)
            positions.append(conformer.positions)
            warnings[k] += conformer.warnings
    return FeaturisedMolecules(
        graphs.atoms,
        graphs.both_ways,
        graphs.bonds.repeat(2, axis=0),
        values,
        graphs.atom_counts,
        2 * graphs.bond_counts,
        np.concatenate(positions) if settings.coordinates else None,
        written,
        [None] * len(mols),
        warnings,
    )


def _label(molecules: Sequence[ParsedMolecule], graphs: Graphs) -> list[tuple[str, ...]]:
    """Label the stereochemistry of molecules, in RDKit's and in their codes, where these are 0.

    Returns:
        The warnings of each molecule: that the columns do not list all of its labels.
    """
    centres, axes = np.flatnonzero(graphs.atoms[:, CHIRALITY] == 0), np.flatnonzero(graphs.bonds[:, STEREO] == 0)
    of_centres, of_axes = graphs.atom_owner[centres], graphs.bond_owner[axes]
    mols = {k: molecules[k].final() for k in np.union1d(of_centres, of_axes).tolist()}
    for mol in mols.values():
        assign_stereo_labels(mol)
    for i, k in zip(centres.tolist(), of_centres.tolist(), strict=True):
        atom = mols[k].GetAtomWithIdx(i - int(graphs.atom_ptr[k]))
        graphs.atoms[i, CHIRALITY] = atom_code("chirality", stereo_label(atom))
    for i, k in zip(axes.tolist(), of_axes.tolist(), strict=True):
        bond = mols[k].GetBondWithIdx(i - int(graphs.bond_ptr[k]))
        graphs.bonds[i, STEREO] = bond_code("stereo", stereo_label(bond))
    unlisted = {*of_centres[graphs.atoms[centres, CHIRALITY] == 0], *of_axes[graphs.bonds[axes, STEREO] == 0]}
    return [(UNNAMED,) if k in unlisted else () for k in range(len(molecules))]
