"""Extent of the training molecules: their codes, sizes and feature values; warnings of molecules outside of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.base.schema import Number, check, entries, list_of, mapping_of, whole
from gtx.models import GraphTransformer
from gtx.molecules.graphs import ATOM_INDEX, name_code

if TYPE_CHECKING:
    from gtx.data import FeatureColumns, MoleculeStore

FAR_LARGER = 1.5
"""A molecule is far larger than those of training if it has more than this many times the atoms of the largest."""
MARGIN = 0.1
"""A feature is far outside its range in training beyond this share of the width of the range; beyond this share of the
value, if training had a single one."""
CODES = 256


@dataclass(frozen=True)
class MoleculeExtent:
    """Training molecules, or one component of the training rows: the codes that occur in each column of
    `MoleculeStore.atoms` and `MoleculeStore.bond_codes`, and the number of atoms of the largest, None if unknown.
    """

    atoms: Sequence[Sequence[int]]
    bonds: Sequence[Sequence[int]]
    largest: int | None

    @classmethod
    def of(cls, store: MoleculeStore) -> Self:
        """Measure the molecules of a store."""
        atoms, bonds = ([column.unique().tolist() for column in codes.T] for codes in (store.atoms, store.bond_codes))
        return cls(atoms, bonds, int(store.sizes.max()) if len(store) else None)

    @classmethod
    def of_network(cls, network: GraphTransformer) -> Self:
        """Read the codes that a network has observed."""
        known = network.embedding.vocabularies
        atoms, bonds = (
            [seen.nonzero().flatten().tolist() for seen in vocabulary.seen.cpu().split(vocabulary.sizes)]
            for vocabulary in (known.atoms, known.bonds)
        )
        return cls(atoms, bonds, None)

    def __or__(self, other: MoleculeExtent) -> MoleculeExtent:
        """Join with the extent of further training molecules."""
        atoms, bonds = (
            [sorted({*one, *two}) for one, two in zip(ours, theirs, strict=True)]
            for ours, theirs in ((self.atoms, other.atoms), (self.bonds, other.bonds))
        )
        largest = [size for size in (self.largest, other.largest) if size is not None]
        return MoleculeExtent(atoms, bonds, max(largest, default=None))

    def warnings(self, store: MoleculeStore) -> list[list[str]]:
        """Warn of each molecule of a store that has other codes, or far more atoms."""
        unseen: list[set[tuple[str, int, int]]] = [set() for _ in range(len(store))]
        kinds = (
            ("atom", self.atoms, store.atoms, store.atom_ptr),
            ("bond", self.bonds, store.bond_codes, store.bond_ptr),
        )
        for kind, columns, tensor, ptr in kinds:
            known = np.zeros((len(columns), CODES), bool)
            for line, codes in zip(known, columns, strict=True):
                line[list(codes)] = True
            table = tensor.cpu().numpy()
            place, column = (~known[np.arange(len(columns)), table]).nonzero()
            owner = np.searchsorted(ptr.cpu().numpy(), place, side="right") - 1
            for m, c, code in zip(owner.tolist(), column.tolist(), table[place, column].tolist(), strict=True):
                unseen[m].add((kind, c, code))
        warnings = []
        for others, size in zip(unseen, store.sizes.tolist(), strict=True):
            names = dict.fromkeys(name_code(*code) for code in sorted(others))
            warnings.append([f"not seen in training: {', '.join(names)}"] if names else [])
            if self.largest is not None and size > FAR_LARGER * self.largest:
                larger = f"far larger than the molecules of training: {size:,} atoms, in training at most"
                warnings[-1].append(f"{larger} {self.largest:,}")
        return warnings

    def describe(self) -> str:
        """Name the elements, and the size of the largest molecule if it is known."""
        column = ATOM_INDEX["element"]
        elements = (name_code("atom", column, code).removeprefix("element ") for code in self.atoms[column])
        return f"elements {', '.join(elements)}" + ("" if self.largest is None else f"; at most {self.largest:,} atoms")


def feature_values(
    store: MoleculeStore, features: FeatureColumns | None
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the name of each feature column of M molecules, the values of the molecules, atoms or directed bonds `[R]`,
    NaN for blanks, and the offsets of those of each molecule, `[M + 1]`.
    """
    if features is None:
        return
    own = store.descriptors[:, store.descriptors.shape[1] - features.width :]
    levels: tuple[tuple[Sequence[str], Tensor | None, Tensor], ...] = (
        (features.names, own, torch.arange(len(store) + 1)),
        (features.atoms, store.atom_features, store.atom_ptr),
        (features.bonds, store.bond_features, store.bond_ptr),
    )
    for names, table, ptr in levels:
        columns = () if table is None else table.cpu().numpy().T  # indicators of blanks may follow those with a name
        for name, column in zip(names, columns, strict=False):
            yield name, column, ptr.cpu().numpy()


@dataclass(frozen=True)
class TrainingExtent:
    """Extent of the training rows of a model: molecules of each component, and ranges of the feature columns."""

    molecules: Sequence[MoleculeExtent]  # one for each component of a row
    features: dict[str, tuple[float, float]]  # lowest and highest value by name; without columns of blanks alone

    @classmethod
    def of(cls, train: MoleculeStore, features: FeatureColumns | None = None) -> Self:
        """Measure training rows with their feature columns."""
        ranges = {}
        for name, values, _ in feature_values(train, features):
            if (known := values[np.isfinite(values)]).size:
                ranges[name] = float(known.min()), float(known.max())
        return cls([MoleculeExtent.of(part) for part in _components(train, features)], ranges)

    @classmethod
    def of_network(cls, network: nn.Module, components: int = 1) -> Self | None:
        """Read the codes that a network has observed in training, with one encoder, or one for each component of a row;
        None for a network that observes none.
        """
        encoders = [module for module in network.modules() if isinstance(module, GraphTransformer)]
        encoders = encoders * components if len(encoders) == 1 else encoders
        if len(encoders) != components:
            return None
        return cls([MoleculeExtent.of_network(encoder) for encoder in encoders], {})

    def __or__(self, other: TrainingExtent | None) -> TrainingExtent:
        """Join with the extent of further training rows, such as those of the model that training started from."""
        if other is None:
            return self
        ranges = dict(self.features)
        for name, (low, high) in other.features.items():
            own = ranges.get(name, (low, high))
            ranges[name] = min(low, own[0]), max(high, own[1])
        molecules = [one | two for one, two in zip(self.molecules, other.molecules, strict=True)]
        return TrainingExtent(molecules, ranges)

    def warnings(
        self, store: MoleculeStore, components: Sequence[str] = (), features: FeatureColumns | None = None
    ) -> list[list[str]]:
        """Warn of what training did not have: other codes, far more atoms, and features far outside their ranges.

        The warnings of each row name its components.
        """
        warnings: list[list[str]] = [[] for _ in range(len(store))]
        parts = zip(components or ("",), self.molecules, _components(store, features), strict=True)
        for component, extent, part in parts:
            for row, texts in zip(warnings, extent.warnings(part), strict=True):
                row += [f"{component}: {text}" if component else text for text in texts]
        for name, values, ptr in feature_values(store, features):
            if name not in self.features:
                continue
            low, high = self.features[name]
            margin = MARGIN * (high - low if high > low else abs(high))
            distance = np.maximum(low - values, values - high)
            far = np.flatnonzero(distance > margin)
            far = far[np.argsort(distance[far], kind="stable")]  # the farthest of a molecule comes last
            owner = np.searchsorted(ptr, far, side="right") - 1
            where = "outside its range" if low < high else "from its only value"
            for m, value in dict(zip(owner.tolist(), values[far].tolist(), strict=True)).items():
                warnings[m].append(f"{name} is far {where} in training: {value:g}, in training {_range(low, high)}")
        return warnings

    def describe(self, components: Sequence[str] = ()) -> list[str]:
        """Describe the molecules of each component and the ranges of the features, a line each."""
        names = [f"{name}: " for name in components] or [""]
        lines = [f"{name}{part.describe()}" for name, part in zip(names, self.molecules, strict=True)]
        return lines + [f"{name} {_range(*ends)}" for name, ends in self.features.items()]

    def to_dict(self) -> dict[str, Any]:
        """Convert the extent to plain values for JSON."""
        return {
            "molecules": [asdict(part) for part in self.molecules],
            "features": {name: list(ends) for name, ends in self.features.items()},
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any], components: int, columns: tuple[int, int]) -> Self:
        """Rebuild the extent of rows of some components from the plain values of `to_dict`, with an `InputError` for an
        entry that is missing or not in order; `columns` are the numbers of columns of codes of atoms and of bonds.
        """
        codes = list_of(whole(0, CODES - 1), most=CODES)
        atoms, bonds = (list_of(codes, count, count) for count in columns)
        part = entries({"atoms": atoms, "bonds": bonds, "largest": whole(0, 2**53) | None})
        ranges = mapping_of(list_of(Number, 2, 2))
        check(plain, entries({"molecules": list_of(part, components, components), "features": ranges}), "extent")
        for name, (low, high) in plain["features"].items():
            if low > high:
                raise InputError(f"extent.features.{name}: expected ascending numbers, got {low:g} and {high:g}")
        parts = [MoleculeExtent(one["atoms"], one["bonds"], one["largest"]) for one in plain["molecules"]]
        return cls(parts, {name: (low, high) for name, (low, high) in plain["features"].items()})


def _components(store: MoleculeStore, features: FeatureColumns | None) -> list[MoleculeStore]:
    """Return the molecules of each component of the rows of a store, a store each."""
    if store.component_sizes is None:
        return [store]
    count = store.component_sizes.shape[1]
    every = store.as_molecules(features.width if features else 0)
    return [every.subset(rows) for rows in torch.arange(len(every)).view(len(store), count).T]


def _range(low: float, high: float) -> str:
    return f"{low:g} to {high:g}" if low < high else f"{low:g}"
