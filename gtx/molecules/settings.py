"""How molecules are read: what a model file keeps, and what the columns and settings of its arrays are known by."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from rdkit import rdBase

from gtx.errors import InputError, printable
from gtx.molecules.components import check_components
from gtx.molecules.conformers import CONFORMER_VERSION
from gtx.molecules.descriptors import DESCRIPTORS
from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS
from gtx.molecules.molecule_features import MOLECULE_FEATURES
from gtx.schema import Record, kinds_of, whole

FEATURISER_VERSION = 1
"""Raised whenever the same molecule would give other codes or descriptors."""


@dataclass(frozen=True)
class Settings:
    """The settings of a `gtx.molecules.Featuriser`, which says what each means."""

    max_atoms: int = 1000
    standardise: bool = False
    coordinates: bool = False
    hydrogens: bool = False
    descriptors: bool = True
    conformers: bool = False
    molecule_features: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    ignore_stereo: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", check_components(self.components))
        object.__setattr__(self, "molecule_features", tuple(self.molecule_features))
        if unknown := [name for name in self.molecule_features if name not in MOLECULE_FEATURES]:
            raise InputError(f"there are no molecule features {unknown[0]!r}; gtx has {', '.join(MOLECULE_FEATURES)}")
        object.__setattr__(self, "coordinates", self.coordinates or self.conformers)

    def to_dict(self) -> dict[str, Any]:
        """Settings as plain values, for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> Settings:
        """What `to_dict` described, of this class.

        Raises:
            InputError: a setting is unknown, or its value is of another kind.
        """
        if unknown := set(settings) - {field.name for field in fields(cls)}:
            raise InputError(f"unknown featuriser settings: {', '.join(map(printable, sorted(unknown)))}")
        Record({}, {**kinds_of(cls), "max_atoms": whole(0, 2**31)}).check(settings, "featuriser.settings")
        return cls(**settings)

    @property
    def hash(self) -> str:
        """SHA-256 of everything that decides what the arrays mean: equal hashes, equal columns and settings.

        A model file holds it. RDKit's version is no part of it, so a file is read with any.
        """
        settings = self.to_dict()
        made = [CONFORMER_VERSION] if settings.pop("conformers") else []  # files from before there were any keep theirs
        for name in ("molecule_features", "components", "ignore_stereo"):  # likewise
            if not settings[name]:
                del settings[name]
        what = [FEATURISER_VERSION, settings, ATOM_COLUMNS, BOND_COLUMNS, DESCRIPTORS, *made]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    @property
    def cache_key(self) -> str:
        """As `hash`, for one RDKit version: perception of rings, aromaticity and stereo changes between releases.

        The cache of featurised molecules is keyed by it.
        """
        return hashlib.sha256(f"{self.hash} {rdBase.rdkitVersion}".encode()).hexdigest()

    @property
    def simplest(self) -> str | tuple[str, ...]:
        """A text that can be read: methane."""
        return ("C",) * len(self.components) or "C"

    @property
    def num_descriptors(self) -> int:
        """D, the number of global descriptors, further features included; of several components, of each."""
        further = sum(len(MOLECULE_FEATURES[kind].names) for kind in self.molecule_features)
        return (len(DESCRIPTORS) if self.descriptors else 0) + further

    @property
    def atom_sizes(self) -> tuple[int, ...]:
        """Codes per atom column, "other" included."""
        return tuple(len(values) + 1 for values in ATOM_COLUMNS.values())

    @property
    def bond_sizes(self) -> tuple[int, ...]:
        """Codes per bond column, "other" included."""
        return tuple(len(values) + 1 for values in BOND_COLUMNS.values())

    @property
    def constitution(self) -> dict[str, list[int]]:
        """The columns of "atoms" and of "bonds" that say nothing of stereochemistry."""
        tables = {"atoms": (ATOM_COLUMNS, "chirality"), "bonds": (BOND_COLUMNS, "stereo")}
        return {of: [i for i, name in enumerate(names) if name != left] for of, (names, left) in tables.items()}
