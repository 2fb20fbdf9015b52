"""Texts to what RDKit and the compiled loops say of them: a few molecules at a time, each asked of RDKit but once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rdkit import Chem

from gtx.molecules.binary import binary
from gtx.molecules.conformers import Conformer, make_conformer
from gtx.molecules.coordinates import with_coordinates, with_given_hydrogens, without_hydrogens
from gtx.molecules.descriptors import DESCRIPTORS, ask, beyond, rounded, tabulate
from gtx.molecules.errors import MoleculeError
from gtx.molecules.graphs import Graphs
from gtx.molecules.reading import may_have_stereo, parse_smiles, read_molblock, skim_smiles
from gtx.molecules.standardise import standardise
from gtx.molecules.stereo import copy_labels, finish, label_stereo, put_labels, take_labels

if TYPE_CHECKING:
    from gtx.molecules.featuriser import Featuriser

TOGETHER = 128
"""Texts to perceive together; more gain nothing."""

_UNNAMED = "stereochemistry that CIP rules could not name is ignored"


class Perceived(NamedTuple):
    """m molecules.

    Attributes:
        graphs: their atoms and bonds, with labels.
        bare: the same without hydrogen atoms, which descriptors are computed from.
        asked: the descriptors of those that are `beyond`, or None.
        positions: float32 `[n, 3]` each, as in `Molecule`; empty where none are wanted.
        smiles: as in `Molecule`.
        labels, conformers: what the user should know about the labels of each, and about its conformer.
    """

    graphs: Graphs
    bare: Graphs
    asked: list[np.ndarray | None]
    positions: list[np.ndarray]
    smiles: list[str | None]
    labels: list[tuple[str, ...]]
    conformers: list[tuple[str, ...]]

    @classmethod
    def join(cls, parts: Sequence[Perceived]) -> Perceived:
        """Molecules one after the other."""
        graphs = Graphs.join([part.graphs for part in parts])
        bare = graphs if parts[0].bare is parts[0].graphs else Graphs.join([part.bare for part in parts])
        _, _, *columns = zip(*parts, strict=True)
        return cls(graphs, bare, *(list(chain.from_iterable(column)) for column in columns))

    def describe(self, wanted: bool) -> tuple[np.ndarray, list[tuple[str, ...]]]:
        """Descriptors if `wanted`, float32 `[m, D]`, and all that the user should know about each molecule."""
        notes = [labels + conformer for labels, conformer in zip(self.labels, self.conformers, strict=True)]
        if not wanted:
            return np.zeros((len(notes), 0), np.float32), notes
        values = tabulate(self.bare)
        for k, asked in enumerate(self.asked):
            if asked is not None:
                values[k] = asked
        values = rounded(values)
        for k in np.flatnonzero(np.isnan(values).any(1)):
            names = (DESCRIPTORS[j].rstrip("0123456789") for j in np.flatnonzero(np.isnan(values[k])))
            lacking = f"descriptors RDKit cannot compute: {', '.join(dict.fromkeys(names))}"
            notes[k] = (*self.labels[k], lacking, *self.conformers[k])
        return values, notes


def perceive(
    featuriser: Featuriser,
    texts: Sequence[str],
    coordinates: Sequence[np.ndarray | None] | None,
    smiles: bool,
) -> tuple[Perceived, list[str | None]]:
    """Read molecules, within `quietly`; those that can be used, and why each of the other texts cannot be.

    Args:
        featuriser: how molecules are read.
        texts, coordinates, smiles: as `featurise_texts` takes them.
    """
    errors: list[str | None] = [None] * len(texts)
    read: list[_Read] = []
    for i, text in enumerate(texts):
        try:
            read.append(_read(featuriser, i, text, None if coordinates is None else coordinates[i], smiles))
        except MoleculeError as error:
            errors[i] = str(error)
    while True:
        try:
            return _perceive(featuriser, read, smiles), errors
        except _Fault as fault:  # of one molecule: the others are perceived again without it
            errors[read.pop(fault.place).number] = str(fault.reason)


class _Read(NamedTuple):
    """A molecule that was read. RDKit's own is large, and kept only where it is sure to be asked again.

    Attributes:
        number: of the text.
        binary: RDKit's binary form.
        kept: the molecule, or None.
        finished: whether centres that are none are dropped.
        smiles: canonical, if it is known already.
    """

    number: int
    binary: bytes
    kept: Chem.Mol | None
    finished: bool
    smiles: str | None

    @property
    def mol(self) -> Chem.Mol:
        return Chem.Mol(self.binary) if self.kept is None else self.kept


class _Fault(Exception):
    def __init__(self, place: int, reason: MoleculeError) -> None:
        self.place, self.reason = place, reason


def read_molecule(
    featuriser: Featuriser, text: str, coordinates: np.ndarray | None = None, skim: bool = False
) -> tuple[Chem.Mol, bool]:
    """The RDKit molecule whose atoms become nodes, within `quietly`, and whether it is finished, see `skim_smiles`.

    Args:
        featuriser: how molecules are read.
        text, coordinates: as `Featuriser` takes them.
        skim: it need not be finished.
    """
    block = "M  END" in text or text.strip().count("\n") > 2  # a damaged block may lack its end
    read, finished = read_molblock if block else parse_smiles, True
    if featuriser.coordinates and coordinates is not None:
        mol = with_coordinates(read(text, remove_hydrogens=False), coordinates)
        if not featuriser.hydrogens:
            mol = Chem.RemoveHs(mol)
    elif skim and not (block or featuriser.hydrogens or featuriser.coordinates or featuriser.standardise):
        mol, finished = skim_smiles(text)
    else:
        mol = read(text, remove_hydrogens=not featuriser.hydrogens)
    if featuriser.standardise:
        mol = _standardised(mol, featuriser.hydrogens)
    if featuriser.hydrogens:
        mol = Chem.AddHs(mol, addCoords=mol.GetNumConformers() > 0)
        Chem.SetHybridization(mol)
    if (count := mol.GetNumAtoms()) > featuriser.max_atoms:
        raise MoleculeError(f"has {count} atoms; the limit is {featuriser.max_atoms}")
    return mol, finished


def _standardised(mol: Chem.Mol, hydrogens: bool) -> Chem.Mol:
    """Without hydrogen atoms; but those that were given with coordinates are kept if `hydrogens`."""
    bare, _ = without_hydrogens(mol)
    bare = standardise(bare)
    return with_given_hydrogens(bare, mol) if hydrogens and mol.GetNumConformers() else bare


def _read(featuriser: Featuriser, number: int, text: str, coordinates: np.ndarray | None, smiles: bool) -> _Read:
    try:
        mol, finished = read_molecule(featuriser, text, coordinates, skim=True)
        kept, written = mol, None
        if not (featuriser.hydrogens or featuriser.coordinates):
            if smiles and not may_have_stereo(text):
                written = Chem.MolToSmiles(mol)
            elif smiles and not finished:
                finish(mol)
            if written or not smiles:
                kept = None
        return _Read(number, binary(mol), kept, finished or smiles, written)
    except (RuntimeError, ValueError) as error:
        raise _reason(error) from error


def _reason(error: Exception) -> MoleculeError:
    """Why a molecule is at fault; RDKit may give up on one that it has read."""
    return error if isinstance(error, MoleculeError) else MoleculeError.because("cannot be featurised", error)


def _each(function: Callable, *columns: Sequence) -> list:
    """What a function makes of each molecule."""
    return [_try(k, function, *arguments) for k, arguments in enumerate(zip(*columns, strict=True))]


def _try(place: int, function: Callable, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (RuntimeError, ValueError) as error:
        raise _Fault(place, _reason(error)) from error


def _perceive(featuriser: Featuriser, read: Sequence[_Read], smiles: bool) -> Perceived:
    graphs = Graphs.read([one.binary for one in read], lambda place: read[place].mol)
    if featuriser.hydrogens:  # labels and descriptors are those of the molecule without hydrogen atoms
        stripped = _each(without_hydrogens, [one.mol for one in read])
        bare = Graphs.of([mol for mol, _ in stripped])
        bare_read = [one._replace(kept=mol) for one, (mol, _) in zip(read, stripped, strict=True)]
    else:
        bare, bare_read = graphs, read
    named = _name(bare_read, bare)
    if featuriser.hydrogens:
        for k, (mol, kept) in enumerate(stripped):
            copy_labels(mol, read[k].mol, kept)
            put_labels(read[k].mol, *graphs.codes(k))
    asked: list[np.ndarray | None] = [None] * len(read)
    for k in np.flatnonzero(beyond(bare)).tolist() if featuriser.descriptors else ():
        asked[k] = _try(k, ask, bare_read[k].mol)
    texts = [one.smiles for one in read]
    for k, one in enumerate(bare_read if smiles else ()):
        texts[k] = texts[k] or _try(k, Chem.MolToSmiles, one.mol)
    conformers = [
        _try(k, _conformer, featuriser, one.mol) for k, one in enumerate(read if featuriser.coordinates else ())
    ]
    return Perceived(
        graphs,
        bare,
        asked,
        [conformer.positions for conformer in conformers],
        texts,
        [() if known else (_UNNAMED,) for known in named],
        [conformer.warnings for conformer in conformers] or [()] * len(read),
    )


def _name(read: Sequence[_Read], graphs: Graphs) -> list[bool]:
    """Put the labels of molecules into their codes, and whether each has no others than known ones.

    RDKit's molecules that are kept get the labels too: the order of atoms in canonical SMILES depends on them.
    """
    from gtx.molecules.cip_kernels import name_centres

    labelled, left = name_centres(graphs)
    named = [True] * len(read)
    for k in np.flatnonzero(left).tolist():
        named[k] = _try(k, _name_by_rdkit, read[k].mol, read[k].finished, *graphs.codes(k))
    for k in np.flatnonzero(labelled).tolist():
        if read[k].kept is not None:
            take_labels(read[k].kept, graphs.codes(k)[0])
    return named


def _name_by_rdkit(mol: Chem.Mol, finished: bool, atoms: np.ndarray, bonds: np.ndarray) -> bool:
    if not finished:
        finish(mol)
    label_stereo(mol)
    return put_labels(mol, atoms, bonds)


def _conformer(featuriser: Featuriser, mol: Chem.Mol) -> Conformer:
    if not (mol.GetNumConformers() and mol.GetConformer().Is3D()):
        if featuriser.conformers:
            return make_conformer(mol)
        raise MoleculeError("has no coordinates in space; this model needs them")
    with np.errstate(over="ignore"):
        positions = mol.GetConformer().GetPositions().astype(np.float32)
    if not np.isfinite(positions).all():
        raise MoleculeError("has coordinates that are not finite numbers")
    return Conformer(positions, ())
