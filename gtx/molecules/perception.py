"""Perception: texts to arrays, which do not depend on how a molecule was written.

`featurise_with_rdkit` is the definition, by RDKit's own functions, one molecule after the other. The annex `gtx.fast`,
if it is there, makes the same faster.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field
from rdkit import Chem, rdBase

from gtx.base import additions
from gtx.base.errors import InputError, printable
from gtx.base.schema import check_fields
from gtx.molecules.coordinates import CONFORMER_VERSION, Conformer, make_conformer, restore_hydrogens, with_coordinates
from gtx.molecules.descriptors import (
    DESCRIPTOR_NAMES,
    MOLECULE_FEATURES,
    compute_descriptors,
    missing_descriptors,
    with_molecule_features,
)
from gtx.molecules.graphs import (
    ATOM_FEATURE_VALUES,
    ATOM_INDEX,
    BOND_FEATURE_VALUES,
    FeaturisedMolecules,
    Molecule,
    atom_code,
    encode_graph,
    quietly,
    without_hydrogens,
)
from gtx.molecules.reactions import (
    MODES,
    canonical_numbers,
    code_sizes,
    is_reaction,
    join_codes,
    join_texts,
    read_graph,
    read_reaction,
    read_unchanged,
    unite_atoms,
    unite_bonds,
    write_reaction,
)
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
from gtx.settings import ReactionMode

# --- Settings of the featuriser, which a model file keeps, and the hash that identifies them.

FEATURISER_VERSION = 1
"""Version of the featuriser; it rises whenever the same molecule would get other codes or descriptors."""


NOT_OF_REACTIONS = ("standardise", "conformers", "coordinates", "hydrogens", "molecule_features", "atom_order")
"""Settings of molecules that reactions do not have."""

Text = str | tuple[str, ...]
"""A molecule, or the components of a row: SMILES or mol blocks."""

EXAMPLES = (
    ["CC(=O)Nc1ccc(O)cc1", "CC(=O)Oc1ccccc1C(=O)O", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "CCO", "c1ccccc1"],
    [f"[CH3:1][Br:2].[{x}-:3]>>[CH3:1][{x}:3].[Br-:2]" for x in ("Cl", "F", "I", "OH", "SH")],
)
"""Molecules, of one side, and reactions, of two."""

MOST = 10
"""Limit on the components of a row."""


@dataclass(frozen=True)
class Featuriser:
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

    max_atoms: Annotated[int, Field(ge=0, le=2**31)] = 1000
    standardise: bool = False
    coordinates: bool = False
    hydrogens: bool = False
    descriptors: bool = True
    conformers: bool = False
    molecule_features: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    ignore_stereo: bool = False
    atom_order: Literal["smiles", "hydrogens-last", "map"] | None = None
    reaction: ReactionMode | None = None
    agents: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "components", tuple(self.components))
        object.__setattr__(self, "molecule_features", tuple(self.molecule_features))
        if (count := len(self.components)) == 1 or count > MOST:
            raise InputError(f"several molecules a row: expected 2 to {MOST} columns, got {count}")
        if twice := [name for name in self.components if self.components.count(name) > 1]:
            raise InputError(f"component {twice[0]!r} is named twice")
        if unknown := [name for name in self.molecule_features if name not in MOLECULE_FEATURES]:
            raise InputError(f"there are no molecule features {unknown[0]!r}; gtx has {', '.join(MOLECULE_FEATURES)}")
        object.__setattr__(self, "coordinates", self.coordinates or self.conformers)
        if self.agents and self.reaction is None:
            raise InputError("`agents` is for reactions: give `reaction_column`, or leave it out")
        for name in NOT_OF_REACTIONS if self.reaction else ():
            if getattr(self, name):
                raise InputError(f"reactions are read as they are written and mapped: leave out `{name}`")

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

    def read_row(self, texts: Text) -> tuple[Chem.Mol, ...]:
        """Return the RDKit molecules of a row, see `read`; raise `InputError` if it has more or fewer than the model
        reads.
        """
        return tuple(map(self.read, flatten_components(self.components, [texts], None)[0]))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for JSON; without those of atom order and reactions unless set."""
        rare = ("atom_order", "reaction", "agents")
        values = {name: value for name, value in asdict(self).items() if name not in rare or value}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> Self:
        """Make the settings from the dictionary of `to_dict`; `InputError` if one is unknown or of another kind."""
        if unknown := set(settings) - {field.name for field in fields(cls)}:
            raise InputError(f"unknown featuriser settings: {', '.join(map(printable, sorted(unknown)))}")
        try:
            return cls(**settings)
        except InputError as reason:
            raise InputError(f"featuriser.settings: {reason}") from None

    @property
    def hash(self) -> str:
        """SHA-256 of the meaning of the arrays: equal hashes, equal columns and settings.

        A model file stores it. It does not depend on the version of RDKit, so a file is read with any that has the same
        names of `molecule_features`.
        """
        tables = ATOM_FEATURE_VALUES, BOND_FEATURE_VALUES, DESCRIPTOR_NAMES
        features = [MOLECULE_FEATURES[name].names for name in self.molecule_features]
        what = [FEATURISER_VERSION, CONFORMER_VERSION, self.to_dict(), *tables, *features]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    @property
    def cache_key(self) -> str:
        """Key of the cache of featurised molecules: `hash` and the version of RDKit.

        Perception of rings, aromaticity and stereochemistry changes between releases of RDKit.
        """
        return hashlib.sha256(f"{self.hash} {rdBase.rdkitVersion}".encode()).hexdigest()

    @property
    def example(self) -> str | tuple[str, ...]:
        """A text that can be read: methane, or a reaction in which it stays as it is."""
        first = ">>".join(["[CH4:1]"] * self.sides)
        return (first, *["C"] * (len(self.components) - 1)) if self.components else first

    @property
    def examples(self) -> list[tuple[str, ...]]:
        """Rows of molecules or reactions to show how they are written, each a tuple of its components."""
        first, others = EXAMPLES[self.sides - 1], range(1, len(self.components))
        return list(zip(first, *(EXAMPLES[0][i:] + EXAMPLES[0][:i] for i in others), strict=True))

    @property
    def sides(self) -> int:
        """Number of sides that an input has: 2 for reactions."""
        return 2 if self.reaction else 1

    @property
    def unit(self) -> str:
        """Word for what a row holds: molecule, reaction, or a combination of several."""
        return "combination" if self.components else ("molecule", "reaction")[self.sides - 1]

    @property
    def joined(self) -> Featuriser:
        """Featuriser of rows that `join_texts` has joined to one text, standardised: molecules beside a reaction, which
        stand over its arrow, are read.
        """
        most = self.max_atoms * max(1, len(self.components))
        return replace(self, standardise=False, components=(), agents=self.sides > 1, max_atoms=most)

    @property
    def num_descriptors(self) -> int:
        """D, the number of global descriptors, further features included; of several components, of each."""
        further = sum(len(MOLECULE_FEATURES[kind].names) for kind in self.molecule_features)
        return (self.sides * len(DESCRIPTOR_NAMES) if self.descriptors else 0) + further

    @property
    def atom_sizes(self) -> tuple[int, ...]:
        """Codes per atom column, "other" included."""
        return code_sizes(ATOM_FEATURE_VALUES, self.sides)

    @property
    def bond_sizes(self) -> tuple[int, ...]:
        """Codes per bond column, "other" included."""
        return code_sizes(BOND_FEATURE_VALUES, self.sides)

    @property
    def input_sizes(self) -> dict[str, Any]:
        """Arguments of a model that say which codes it reads: their numbers, and that they are those of reactions."""
        sizes: dict[str, Any] = {"atom_sizes": list(self.atom_sizes), "bond_sizes": list(self.bond_sizes)}
        return sizes | {"reaction": True} if self.sides > 1 else sizes

    @property
    def constitution(self) -> dict[str, list[int]]:
        """Numbers of the columns of "atoms" and of "bonds" without those of stereochemistry."""
        atoms, bonds = (list(values) * self.sides for values in (ATOM_FEATURE_VALUES, BOND_FEATURE_VALUES))
        return {
            "atoms": [i for i, name in enumerate(atoms) if name != "chirality"],
            "bonds": [i for i, name in enumerate(bonds) if name != "stereo"],
        }


# --- Texts to arrays.


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
        if (parts := _ignored_parts(featuriser, text)) and flat.errors[i] is None:
            flat.warnings[i] = (*parts, *flat.warnings[i])
    _sort_bonds(featuriser, texts, flat)
    return flat


def _ignored_parts(featuriser: Featuriser, text: str) -> tuple[str, ...]:
    """Return the warnings of `ignored_parts`, without that of stereochemistry which is ignored as asked."""
    parts = ignored_parts(text)
    return tuple(part for part in parts if not (featuriser.ignore_stereo and part == RELATIVE_STEREO))


def _featurise_reactions(
    featuriser: Featuriser, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None, smiles: bool
) -> FeaturisedMolecules:
    """Featurise texts of which the first of each row is a reaction, and others are molecules."""
    each_row = max(1, len(featuriser.components))
    first = [i % each_row == 0 for i in range(len(texts))]
    return _collect(featuriser, len(texts), lambda i: describe_reaction(featuriser, texts[i], first[i], smiles))


# --- Rows of several molecules, such as a solute and a solvent: read one by one, joined to one row of arrays.


def flatten_components(
    names: Sequence[str], rows: Sequence[Text], coordinates: Sequence[np.ndarray | None] | None
) -> tuple[list[str], list[np.ndarray | None] | None]:
    """Concatenate the texts of n rows with K components, `[n K]`, and the coordinates of each first component.

    Without names of components a row is one molecule. An `InputError` names a row with more or fewer texts.
    """
    texts: list[str] = []
    for i, row in enumerate(rows):
        components = (row,) if isinstance(row, str) else row
        if len(components) != max(1, len(names)):
            expected = f"{len(names)} molecules ({', '.join(names)})" if names else "one molecule"
            raise InputError(f"expected {expected} for row {i}, got {', '.join(map(repr, components)) or 'none'}")
        texts += components
    if coordinates is None:
        return texts, None
    others = [None] * (len(names) - 1)
    return texts, [positions for first in coordinates for positions in (first, *others)]


def join_components(names: Sequence[str], texts: Sequence[str], molecules: FeaturisedMolecules) -> FeaturisedMolecules:
    """Join the K components of each of n rows, whose texts are `[n K]`, to one molecule.

    The atoms of a row are those of its components, one after the other, and `component_sizes` counts those of each;
    descriptors `[K D]` and SMILES are concatenated too. An error of one component is an error of the row.
    """
    count = len(names)
    good = np.array([error is None for error in molecules.errors], bool).reshape(-1, count)
    used = np.repeat(good.all(1), count)[good.ravel()]  # of the components that could be read
    atoms, bonds = (counts[used].reshape(-1, count) for counts in (molecules.atom_counts, molecules.bond_counts))
    of_atom, of_bond = np.repeat(used, molecules.atom_counts), np.repeat(used, molecules.bond_counts)
    before = np.repeat((atoms.cumsum(1) - atoms).ravel(), bonds.ravel()).astype(molecules.bonds.dtype)

    def attribute(i: int, reason: str) -> str:
        return f'{printable(names[i % count])} "{printable(texts[i])}": {reason}'

    smiles, errors, warnings = [], [], []
    for start in range(0, len(texts), count):
        row = range(start, start + count)
        written = [text for text in molecules.smiles[start : start + count] if text is not None]
        smiles.append(join_texts(written) if len(written) == count else None)
        reasons = ((i, molecules.errors[i]) for i in row)
        errors.append("; ".join(attribute(i, reason) for i, reason in reasons if reason) or None)
        warnings.append(tuple(attribute(i, warning) for i in row for warning in molecules.warnings[i]))
    return FeaturisedMolecules(
        atoms=molecules.atoms[of_atom],
        bonds=molecules.bonds[:, of_bond] + before,
        bond_codes=molecules.bond_codes[of_bond],
        descriptors=molecules.descriptors[used].reshape(len(atoms), count * molecules.descriptors.shape[1]),
        atom_counts=atoms.sum(1),
        bond_counts=bonds.sum(1),
        positions=None if molecules.positions is None else molecules.positions[of_atom],
        smiles=smiles,
        errors=errors,
        warnings=warnings,
        component_sizes=atoms,
    )


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


def list_order_doubt(settings: Featuriser, text: str) -> OrderDoubt | None:
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


def _in_list_order(settings: Featuriser, mol: Chem.Mol, text: str) -> Chem.Mol:
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
    settings: Featuriser, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None, smiles: bool
) -> FeaturisedMolecules:
    """Featurise texts as `featurise_texts`, within `quietly`; a molecule at fault leaves an error."""

    def read_and_describe(i: int) -> Molecule:
        mol, _ = read_molecule(settings, texts[i], None if coordinates is None else coordinates[i])
        return describe(settings, mol, smiles)

    return _collect(settings, len(texts), read_and_describe)


def _collect(settings: Featuriser, count: int, make: Callable[[int], Molecule]) -> FeaturisedMolecules:
    """Collect the molecules that `make` gives for the numbers of so many texts, or the errors that it raises."""
    parts = [no_molecules(settings)]
    for i in range(count):
        try:
            parts.append(FeaturisedMolecules.of(make(i)))
        except (RuntimeError, ValueError) as error:  # RDKit may give up on a molecule that it has read
            parts.append(no_molecules(settings, error_message(error)))
    return FeaturisedMolecules.join(parts)


def describe(settings: Featuriser, mol: Chem.Mol, smiles: bool) -> Molecule:
    """Return a molecule as `read_molecule` gives it, in arrays."""
    conformer = read_conformer(settings, mol)
    codes = encode_graph(mol, settings.hydrogens)
    values = compute_descriptors(codes.bare) if settings.descriptors else np.zeros(0, np.float32)
    written = Chem.MolToSmiles(codes.bare) if smiles else None
    positions, notes = conformer or (make_conformer(mol) if settings.conformers else (None, ()))
    warnings = (*codes.warnings, *missing_descriptors(values), *notes)
    return Molecule(codes.atoms, codes.bonds, codes.bond_codes, positions, values, written, warnings)


def describe_reaction(settings: Featuriser, text: str, first: bool, smiles: bool) -> Molecule:
    """Read a reaction as arrays, within `quietly`; `u` has the descriptors of the reactants, then the changes.

    Of several components the `first` is the reaction, and the others are molecules.
    """
    reaction = read_reaction(text, settings.agents) if first else read_unchanged(text)
    if (count := reaction.places.shape[1]) > settings.max_atoms:
        raise MoleculeError(f"has {count} atoms; the limit is {settings.max_atoms}")
    for mol in reaction.molecules if settings.ignore_stereo else ():
        Chem.RemoveStereochemistry(mol)
    sides = [encode_graph(mol, hydrogens=True) for mol in reaction.molecules]
    mode = settings.reaction or MODES[0]
    atoms = unite_atoms(sides, reaction.places, mode.endswith("-balanced"))
    bonds, bond_codes = unite_bonds(sides, reaction.places, mode.endswith("-balanced"))
    values = np.zeros(0, np.float32)
    warnings = [*reaction.warnings, *(() if first else _ignored_parts(settings, text))]
    warnings += dict.fromkeys(warning for side in sides for warning in side.warnings)
    if settings.descriptors:
        before, after = (compute_descriptors(side.bare) for side in sides)
        warnings += missing_descriptors(before + after)
        with np.errstate(invalid="ignore"):
            values = np.concatenate([before, after - before]).astype(np.float32)
    written = None
    if smiles:
        numbers = canonical_numbers(np.concatenate(atoms, 1), bonds[:, ::2], np.concatenate(bond_codes, 1)[::2])
        written = write_reaction(reaction, numbers) if first else Chem.MolToSmiles(sides[0].bare)
    atoms, bond_codes = join_codes(mode, atoms, ATOM_FEATURE_VALUES), join_codes(mode, bond_codes, BOND_FEATURE_VALUES)
    return Molecule(atoms, bonds, bond_codes, None, values, written, tuple(warnings))


def no_molecules(settings: Featuriser, *errors: str) -> FeaturisedMolecules:
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
    settings: Featuriser, text: str, coordinates: np.ndarray | None = None, skim: bool = False
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
        if not settings.hydrogens:  # some that said the configuration of a double bond are left, as in [H]/N=C/C
            mol = Chem.RemoveHs(mol)
    if (count := mol.GetNumAtoms()) > settings.max_atoms:
        raise MoleculeError(f"has {count} atoms; the limit is {settings.max_atoms}")
    return mol, finished


def error_message(error: Exception) -> str:
    """Return the error message of a molecule from the exception of reading or describing it."""
    return str(error if isinstance(error, MoleculeError) else MoleculeError.because("cannot be featurised", error))


def read_conformer(settings: Featuriser, mol: Chem.Mol) -> Conformer | None:
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
