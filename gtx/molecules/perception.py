"""Perception: texts to arrays, which do not depend on how a molecule was written.

`featurise_with_rdkit` is the definition, by RDKit's own functions, one molecule after the other. The annex `gtx.fast`,
if it is there, makes the same faster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from gtx.base.annexes import additions
from gtx.molecules.coordinates import Conformer, make_conformer, restore_hydrogens, with_coordinates, without_hydrogens
from gtx.molecules.descriptors import DESCRIPTOR_NAMES, compute_descriptors, missing_descriptors, with_molecule_features
from gtx.molecules.graphs import (
    ATOM_INDEX,
    BOND_INDEX,
    UNNAMED,
    FeaturisedMolecules,
    Molecule,
    assign_stereo_labels,
    atom_code,
    bond_edge_index,
    copy_labels,
    encode_atoms,
    encode_bonds,
    quietly,
)
from gtx.molecules.reaction_graphs import describe_reaction
from gtx.molecules.reactions import is_reaction, read_graph
from gtx.molecules.reading import (
    RELATIVE_STEREO,
    MoleculeError,
    ignored_parts,
    is_block,
    map_numbers,
    parse_smiles,
    read_molblock,
    skim_smiles,
    split_extension,
    standardise_molecule,
    writes_hydrogens,
)
from gtx.molecules.settings import Settings, Text, flatten_components, join_components


@dataclass(frozen=True)
class Featuriser(Settings):
    """Function that turns SMILES or mol blocks into featurised molecules; a model file stores its settings.

    Args:
        max_atoms: largest number of atoms; larger molecules are refused.
        standardise: whether a molecule is reduced to its largest fragment, neutralised.
        coordinates: whether three-dimensional coordinates are required; otherwise coordinates are ignored.
        hydrogens: whether hydrogen atoms are nodes of the graph; otherwise hydrogens are counted as a feature of their
            neighbours.
        descriptors: whether descriptors are computed; otherwise D = 0.
        conformers: whether a conformer is computed for a molecule without coordinates, see `make_conformer`; implies
            `coordinates`.
        molecule_features: names of features in `MOLECULE_FEATURES`, which are appended to the descriptors.
        components: names of the K components of a row with several molecules, such as ("solute", "solvent"). The input
            is then a tuple of K texts, and all other settings apply to each component.
        ignore_stereo: whether the configuration of stereocentres and double bonds is ignored, so that stereoisomers are
            the same molecule.
        atom_order: order of the nodes, and so of lists of values of atoms and bonds, see `list_order`; None is
            "hydrogens-last", unless `list_order_doubt` is asked.
        reaction: codes of reactions, one of `gtx.molecules.reactions.MODES`: the text, or that of the first component,
            is an atom-mapped reaction SMILES. None for molecules.
        agents: whether agents over the arrow of a reaction are read, as molecules that stay as they are.
    """

    def __call__(self, text: str, coordinates: np.ndarray | None = None, *, smiles: bool = True) -> Molecule:
        """Read and featurise one molecule; `featurise_texts` is faster for many.

        Args:
            text: a SMILES, or a mol block.
            coordinates: flat or `[k, 3]` in Å, for the atoms in the order of the text: the heavy atoms, all atoms of
                the text, or these and then the hydrogens that RDKit's `AddHs` appends.
            smiles: find its canonical SMILES too, which takes half as long as reading it.

        Raises:
            MoleculeError: the text cannot be read, the molecule is too large, or coordinates lack or do not fit.
        """
        molecules = featurise_texts(self, [text], None if coordinates is None else [coordinates], smiles=smiles)
        if (error := molecules.errors[0]) is not None:
            raise MoleculeError(error)
        return molecules.molecule

    def read(self, text: str, coordinates: np.ndarray | None = None) -> Chem.Mol:
        """Return the RDKit molecule whose atoms become nodes, with its coordinates as a conformer; as `__call__`."""
        if self.reaction and is_reaction(text):
            return read_graph(text, self.agents)
        with quietly():
            mol, _ = read_molecule(self, text, coordinates)
        return mol


def featurise_texts(
    featuriser: Featuriser,
    texts: Sequence[Text],
    coordinates: Sequence[np.ndarray | None] | None = None,
    *,
    smiles: bool = True,
) -> FeaturisedMolecules:
    """Featurise SMILES or mol blocks; a molecule that cannot be read gives an error message, never an exception.

    Of several components per row, the texts are tuples, and coordinates in Å, for a text or None, those of the first.
    Canonical SMILES (`smiles`) take half as long as reading the molecules.
    """
    names = featuriser.components
    molecules, positions = flatten_components(names, texts, coordinates)

    def bare(i: int) -> Chem.Mol:
        mol = featuriser.read(molecules[i], None if positions is None else positions[i])
        return without_hydrogens(mol)[0] if featuriser.hydrogens else mol

    with quietly():
        read = _featurise_reactions if featuriser.reaction else _featurise_molecules
        flat = read(featuriser, molecules, positions, smiles)
        if featuriser.molecule_features:
            flat = with_molecule_features(featuriser.molecule_features, flat, bare)
    return join_components(names, molecules, flat) if names else flat


def _featurise_molecules(
    featuriser: Featuriser, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None, smiles: bool
) -> FeaturisedMolecules:
    compiled = {} if os.environ.get("GTX_FAST") == "0" else additions("featurisers")
    flat = next(iter(compiled.values()), featurise_with_rdkit)(featuriser, texts, coordinates, smiles)
    for i, text in enumerate(texts):
        parts = ignored_parts(text)
        if featuriser.ignore_stereo:
            parts = tuple(part for part in parts if part != RELATIVE_STEREO)
        if parts and flat.errors[i] is None:
            flat.warnings[i] = (*parts, *flat.warnings[i])
    _sort_bonds(featuriser, texts, flat)
    return flat


def _featurise_reactions(
    featuriser: Featuriser, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None, smiles: bool
) -> FeaturisedMolecules:
    """Featurise texts of which the first of each row is a reaction, and others are molecules."""
    each_row = max(1, len(featuriser.components))
    first = [i % each_row == 0 for i in range(len(texts))]
    return _collect(featuriser, len(texts), lambda i: describe_reaction(featuriser, texts[i], first[i], smiles))


# --- The order of atoms and bonds, in which lists of their values are written.


class OrderDoubt(NamedTuple):
    """Why the order of a list is not clear: the reason, what the user may say, and what gtx does without a word."""

    reason: str
    remedy: str
    usual: str


_AS_WRITTEN = "give --atom-order (atom_order in Python) smiles, for lists of the atoms as they are written, or"
MAP_DOUBT = OrderDoubt(
    "its atoms have map numbers in another order than they are written",
    f"{_AS_WRITTEN} map, for lists in the order of the numbers",
    "lists have the atoms as they are written",
)
HYDROGEN_DOUBT = OrderDoubt(
    "it writes hydrogens, whose place in a list is not clear",
    f"{_AS_WRITTEN} hydrogens-last, for lists with all hydrogens after the other atoms",
    "lists have the hydrogens after the other atoms",
)


def list_order(mol: Chem.Mol, order: str | None) -> list[int]:
    """Return the atoms of a molecule, its unwritten hydrogens at the end, in the order of lists.

    * "smiles": the atoms as written, then the hydrogens that are not written, in the order of their atoms.
    * "hydrogens-last", and None: the same, but hydrogens without a map number come after all other atoms, in the order
      of their atoms. The order is the same whichever hydrogens are written.
    * "map": the atoms by their map numbers, then the hydrogens without one, in the order of their atoms. For a molecule
      without map numbers it is "hydrogens-last".

    A `MoleculeError` says that the order is that of map numbers, and an atom has none, or two have the same.
    """
    if order == "smiles":
        return list(range(mol.GetNumAtoms()))
    numbers = map_numbers(mol)
    hydrogens = [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetAtomicNum() == 1 and not numbers[atom.GetIdx()]]
    others = [i for i in range(mol.GetNumAtoms()) if i not in set(hydrogens)]
    if order == "map" and any(numbers):
        if bare := [i for i in others if not numbers[i]]:
            atom = f"atom {bare[0]} ({mol.GetAtomWithIdx(bare[0]).GetSymbol()}), counted from 0, has none"
            raise MoleculeError(f"has map numbers, in whose order its atoms are to be read, and {atom}")
        if twice := [number for number in numbers if number and numbers.count(number) > 1]:
            raise MoleculeError(f"has the map number {twice[0]} twice; the order of its atoms is not clear")
        others.sort(key=numbers.__getitem__)
    place = {atom: k for k, atom in enumerate(others)}

    def of_atom(hydrogen: int) -> int:
        neighbours = mol.GetAtomWithIdx(hydrogen).GetNeighbors()
        return min((place[i] for i in (atom.GetIdx() for atom in neighbours) if i in place), default=len(place))

    return others + sorted(hydrogens, key=of_atom)


def list_order_doubt(settings: Settings, text: str) -> OrderDoubt | None:
    """Explain why the order of a list for a molecule is not clear, if the user did not say it; None if it is clear.

    Two orders may be meant if all atoms of a molecule have map numbers that do not ascend, or if a SMILES writes
    hydrogens among the other atoms.
    """
    block = is_block(text)
    if settings.atom_order is not None or not (block or ":" in text or writes_hydrogens(split_extension(text)[0])):
        return None
    try:
        with quietly():
            mol, _ = read_molecule(replace(settings, atom_order="smiles"), text)
    except (RuntimeError, ValueError):  # an error of the row, which is told elsewhere
        return None
    numbers = map_numbers(mol)
    heavy = [numbers[atom.GetIdx()] for atom in mol.GetAtoms() if atom.GetAtomicNum() != 1]
    ascending = [number for number in numbers if number]
    if heavy and all(heavy) and ascending != sorted(ascending):
        return MAP_DOUBT
    return HYDROGEN_DOUBT if not block and list_order(mol, None) != list_order(mol, "smiles") else None


def _in_list_order(settings: Settings, mol: Chem.Mol, text: str) -> Chem.Mol:
    """Renumber the atoms of a molecule; a mol block keeps its order unless it is that of map numbers."""
    numbered = settings.atom_order == "map" and any(map_numbers(mol))
    if settings.atom_order == "smiles" or not (numbered or (writes_hydrogens(text) and not is_block(text))):
        return mol
    order = list_order(mol, settings.atom_order)
    if order == list(range(len(order))):
        return mol
    mol = Chem.RenumberAtoms(mol, order)  # which finds any rings, and not the smallest
    Chem.GetSymmSSSR(mol)
    return mol


def _sort_bonds(featuriser: Featuriser, texts: Sequence[str], flat: FeaturisedMolecules) -> None:
    """Sort the bonds of molecules in place: where the hydrogens of a SMILES come last, their bonds come last too."""
    written = [i for i, text in enumerate(texts) if writes_hydrogens(text) and not is_block(text)]
    if not written or featuriser.atom_order == "smiles":
        return
    place = np.cumsum([error is None for error in flat.errors]) - 1
    bond_ends, atom_ends = np.cumsum(flat.bond_counts), np.cumsum(flat.atom_counts)
    for i in written:
        if flat.errors[i] is not None:
            continue
        text, k = texts[i], place[i]
        atoms = slice(atom_ends[k] - flat.atom_counts[k], atom_ends[k])
        bonds = slice(bond_ends[k] - flat.bond_counts[k], bond_ends[k])
        hydrogen = flat.atoms[atoms, ATOM_INDEX["element"]] == atom_code("element", 1)
        if ":" in text:  # those with map numbers are atoms like others
            numbers = map_numbers(featuriser.read(text))
            hydrogen = hydrogen & (np.array(numbers) == 0)
            if featuriser.atom_order == "map" and any(numbers):
                continue
        ends = flat.bonds[:, bonds][:, ::2]  # one way of each
        last = np.where(hydrogen[ends], ends, -1).max(0, initial=-1)
        order = (2 * last.argsort(kind="stable")[:, None] + [0, 1]).ravel()
        flat.bonds[:, bonds] = flat.bonds[:, bonds][:, order]
        flat.bond_codes[bonds] = flat.bond_codes[bonds][order]


# --- The definition: RDKit's functions, one molecule after the other.


def featurise_with_rdkit(
    settings: Settings, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None, smiles: bool
) -> FeaturisedMolecules:
    """Featurise texts as `featurise_texts`, within `quietly`; a molecule at fault leaves an error."""

    def read_and_describe(i: int) -> Molecule:
        mol, _ = read_molecule(settings, texts[i], None if coordinates is None else coordinates[i])
        return describe(settings, mol, smiles)

    return _collect(settings, len(texts), read_and_describe)


def _collect(settings: Settings, count: int, make: Callable[[int], Molecule]) -> FeaturisedMolecules:
    """Collect the molecules that `make` gives for the numbers of so many texts, or the errors that it raises."""
    parts = [no_molecules(settings)]
    for i in range(count):
        try:
            parts.append(FeaturisedMolecules.of(make(i)))
        except (RuntimeError, ValueError) as error:  # RDKit may give up on a molecule that it has read
            parts.append(no_molecules(settings, error_message(error)))
    return FeaturisedMolecules.join(parts)


def describe(settings: Settings, mol: Chem.Mol, smiles: bool) -> Molecule:
    """Return a molecule as `read_molecule` gives it, in arrays."""
    conformer = given_conformer(settings, mol)
    bare, order = without_hydrogens(mol) if settings.hydrogens else (mol, None)
    assign_stereo_labels(bare)  # hydrogen atoms or not, labels, descriptors and SMILES are the same
    if order is not None:
        copy_labels(bare, mol, order)
    atoms, bonds = encode_atoms(mol), encode_bonds(mol)
    named = atoms[:, ATOM_INDEX["chirality"]].all() and bonds[:, BOND_INDEX["stereo"]].all()
    values = compute_descriptors(bare) if settings.descriptors else np.zeros(0, np.float32)
    written = Chem.MolToSmiles(bare) if smiles else None
    positions, notes = conformer or (make_conformer(mol) if settings.conformers else (None, ()))
    warnings = (*(() if named else (UNNAMED,)), *missing_descriptors(values), *notes)
    return Molecule(atoms, bond_edge_index(mol), bonds, positions, values, written, warnings)


def no_molecules(settings: Settings, *errors: str) -> FeaturisedMolecules:
    """Return the outcome of texts that cannot be read, for each reason, or of no text."""
    return FeaturisedMolecules(
        np.zeros((0, len(settings.atom_sizes)), np.uint8),
        np.zeros((2, 0), np.int32),
        np.zeros((0, len(settings.bond_sizes)), np.uint8),
        np.zeros((0, settings.sides * len(DESCRIPTOR_NAMES) if settings.descriptors else 0), np.float32),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros((0, 3), np.float32) if settings.coordinates else None,
        [None] * len(errors),
        list(errors),
        [()] * len(errors),
    )


def read_molecule(
    settings: Settings, text: str, coordinates: np.ndarray | None = None, skim: bool = False
) -> tuple[Chem.Mol, bool]:
    """Read the RDKit molecule whose atoms become nodes, within `quietly`, and whether it is final, see `skim_smiles`.

    With `skim` it need not be finished.
    """
    block = is_block(text)
    read, finished = read_molblock if block else parse_smiles, True
    if settings.coordinates and coordinates is not None:
        mol = read(text, remove_hydrogens=False)
        if settings.atom_order == "map":  # the order of coordinates too
            mol = _in_list_order(settings, mol, text)
        mol = with_coordinates(mol, coordinates)
        if not settings.hydrogens:
            mol = Chem.RemoveHs(mol)
    elif skim and not (block or settings.hydrogens or settings.coordinates or settings.standardise):
        mol, finished = skim_smiles(text)
    else:
        mol = read(text, remove_hydrogens=not settings.hydrogens)
    if settings.standardise:
        original, (bare, _) = mol, without_hydrogens(mol)
        mol = standardise_molecule(bare)
        if settings.hydrogens and original.GetNumConformers():
            mol = restore_hydrogens(mol, original)
    if settings.hydrogens:
        mol = Chem.AddHs(mol, addCoords=mol.GetNumConformers() > 0)
        Chem.SetHybridization(mol)
    if not settings.standardise:  # which keeps no order
        mol = _in_list_order(settings, mol, text)
    if settings.ignore_stereo:
        Chem.RemoveStereochemistry(mol)
    if (count := mol.GetNumAtoms()) > settings.max_atoms:
        raise MoleculeError(f"has {count} atoms; the limit is {settings.max_atoms}")
    return mol, finished


def error_message(error: Exception) -> str:
    """Return the error message of a molecule from the exception of reading or describing it."""
    return str(error if isinstance(error, MoleculeError) else MoleculeError.because("cannot be featurised", error))


def given_conformer(settings: Settings, mol: Chem.Mol) -> Conformer | None:
    """Return the coordinates given with a molecule; None if none are needed, or if they are to be generated.

    A `MoleculeError` says that coordinates are needed, and there are none, or some are not finite.
    """
    if not settings.coordinates:
        return None
    if not (mol.GetNumConformers() and mol.GetConformer().Is3D()):
        if settings.conformers:
            return None
        raise MoleculeError("has no coordinates in space; this model needs them")
    with np.errstate(over="ignore"):
        positions = mol.GetConformer().GetPositions().astype(np.float32)
    if not np.isfinite(positions).all():
        raise MoleculeError("has coordinates that are not finite numbers")
    return Conformer(positions, ())
