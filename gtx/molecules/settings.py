"""Settings of a featuriser, and components of rows with several molecules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from rdkit import rdBase

from gtx.base.errors import InputError, printable
from gtx.base.schema import check_fields
from gtx.molecules.coordinates import CONFORMER_VERSION
from gtx.molecules.descriptors import DESCRIPTOR_NAMES, MOLECULE_FEATURES
from gtx.molecules.graphs import ATOM_FEATURE_VALUES, BOND_FEATURE_VALUES, FeaturisedMolecules
from gtx.molecules.reactions import check_settings, code_sizes, join_texts

# --- Rows of several molecules, such as a solute and a solvent: read one by one, joined to one row of arrays.

Text = str | tuple[str, ...]
"""A molecule, or the components of a row: SMILES or mol blocks."""

MOST = 10
"""Limit on the components of a row."""


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
            raise InputError(f"expected {expected} for row {i}, got {row!r}")
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


# --- Settings of the featuriser, which a model file keeps, and the hash that identifies them.

FEATURISER_VERSION = 1
"""Version of the featuriser; it rises whenever the same molecule would get other codes or descriptors."""


@dataclass(frozen=True)
class Settings:
    """Settings of a `gtx.molecules.Featuriser`, which describes them."""

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
    reaction: str | None = None
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
        check_settings(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for JSON; without those of atom order and reactions unless set."""
        rare = ("atom_order", "reaction", "agents")
        values = {name: value for name, value in asdict(self).items() if name not in rare or value}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> Settings:
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

        A model file stores it. It does not depend on the version of RDKit, so a file is read with any.
        """
        tables = ATOM_FEATURE_VALUES, BOND_FEATURE_VALUES, DESCRIPTOR_NAMES
        what = [FEATURISER_VERSION, CONFORMER_VERSION, self.to_dict(), *tables]
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
    def sides(self) -> int:
        """Number of sides that an input has: 2 for reactions."""
        return 2 if self.reaction else 1

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
    def constitution(self) -> dict[str, list[int]]:
        """Numbers of the columns of "atoms" and of "bonds" without those of stereochemistry."""
        atoms, bonds = (list(values) * self.sides for values in (ATOM_FEATURE_VALUES, BOND_FEATURE_VALUES))
        return {
            "atoms": [i for i, name in enumerate(atoms) if name != "chirality"],
            "bonds": [i for i, name in enumerate(bonds) if name != "stereo"],
        }
