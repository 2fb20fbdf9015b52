"""Applicability domain: what training had (extent, rows), and how similar molecules are to it (neighbours, bands)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.base.schema import Number, Text, check, entries, integer, list_of, mapping_of, number, text
from gtx.data import FeatureColumns, MoleculeStore, featurise
from gtx.data.cells import parse_number
from gtx.data.feature_columns import NO_FEATURES
from gtx.data.rows import Row
from gtx.data.similarity import morgan_kernel, nearest_references
from gtx.kernel import TanimotoKernel
from gtx.models import GraphTransformer
from gtx.molecules.graphs import ATOM_INDEX, name_code
from gtx.tasks.task import Answers, Scores, Task

if TYPE_CHECKING:
    from gtx.molecules import Featuriser
    from gtx.tasks import NumericTask


# --- The extent of the training molecules: their codes, sizes and feature values; warnings of molecules outside of it.

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


def feature_values(store: MoleculeStore, features: FeatureColumns) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the name of each feature column of M molecules, the values of the molecules, atoms or directed bonds `[R]`,
    NaN for blanks, and the offsets of those of each molecule, `[M + 1]`.
    """
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
    def of(cls, train: MoleculeStore, features: FeatureColumns = NO_FEATURES) -> Self:
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
        self, store: MoleculeStore, components: Sequence[str] = (), features: FeatureColumns = NO_FEATURES
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
        codes = list_of(integer(0, CODES - 1), most=CODES)
        atoms, bonds = (list_of(codes, count, count) for count in columns)
        part = entries({"atoms": atoms, "bonds": bonds, "largest": integer(0, 2**53) | None})
        ranges = mapping_of(list_of(Number, 2, 2))
        check(plain, entries({"molecules": list_of(part, components, components), "features": ranges}), "extent")
        for name, (low, high) in plain["features"].items():
            if low > high:
                raise InputError(f"extent.features.{name}: expected ascending numbers, got {low:g} and {high:g}")
        parts = [MoleculeExtent(one["atoms"], one["bonds"], one["largest"]) for one in plain["molecules"]]
        return cls(parts, {name: (low, high) for name, (low, high) in plain["features"].items()})


def _components(store: MoleculeStore, features: FeatureColumns) -> list[MoleculeStore]:
    """Return the molecules of each component of the rows of a store, a store each."""
    if store.component_sizes is None:
        return [store]
    count = store.component_sizes.shape[1]
    every = store.as_molecules(features.width)
    return [every.subset(rows) for rows in torch.arange(len(every)).view(len(store), count).T]


def _range(low: float, high: float) -> str:
    return f"{low:g} to {high:g}" if low < high else f"{low:g}"


# --- The training rows that a model file keeps.

MOST = 20_000
MOST_CHARACTERS = 2**20
"""Limits of the rows that a file keeps, and of the characters of their SMILES; beyond them, rows are drawn at random.
The first comparison reads all of them, in some 2 s; molecules of hundreds of atoms in 20 s."""
LONGEST_CELL = 100_000
"""A row whose SMILES or cell has more characters is not kept."""


@dataclass(frozen=True)
class TrainingRows:
    """The n rows to which a model was fitted: training rows and, for a kernel model, validation rows."""

    smiles: Sequence[str]  # canonical, of each row, with all molecules of the row
    rows: Sequence[int]  # numbers of the rows in the table, from 1
    values: Mapping[str, Sequence[str]]  # n cells of each target
    trained: int  # number of rows before the random sample was drawn

    @classmethod
    def sample(
        cls, smiles: Sequence[str], rows: Sequence[int], values: Mapping[str, Sequence[str]], most: int = MOST
    ) -> Self:
        """Keep all rows, or draw as many as the limits allow, always the same ones."""
        trained = len(smiles)
        columns = (smiles, *values.values())
        drawn = np.random.default_rng(0).permutation(trained).tolist()
        order = [i for i in drawn if all(len(column[i]) <= LONGEST_CELL for column in columns)][:most]
        characters = np.cumsum([len(smiles[i]) for i in order])
        chosen = sorted(order[: np.searchsorted(characters, MOST_CHARACTERS, side="right")])
        cells = {name: [column[i] for i in chosen] for name, column in values.items()}
        return cls([smiles[i] for i in chosen], [int(rows[i]) for i in chosen], cells, trained)

    def __len__(self) -> int:
        return len(self.smiles)

    @property
    def is_sample(self) -> bool:
        """True if the file keeps only some of the rows."""
        return len(self) < self.trained

    def column(self, name: str) -> np.ndarray:
        """Return the measured values of a target, `[n]`: numbers, NaN for blanks, or texts if a cell is no number."""
        numbers = np.array([parse_number(cell) for cell in self.values[name]], np.float64)
        return np.array(self.values[name], object) if np.isinf(numbers).any() else numbers

    def describe(self) -> str:
        """State the number of rows."""
        few = f" of {self.trained:,}, drawn at random" if self.is_sample else ""
        return f"{len(self):,}{few}, with SMILES and values"

    to_dict = asdict

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Rebuild the rows from the plain values of `to_dict`, with an `InputError` for what is not in order."""
        numbers, texts = list_of(integer(0, 2**53), most=MOST), list_of(text(LONGEST_CELL), most=MOST)
        kinds = {"smiles": texts, "rows": numbers, "values": mapping_of(texts), "trained": integer(0, 2**53)}
        check(plain, entries(kinds), "training")
        if (characters := sum(map(len, plain["smiles"]))) > MOST_CHARACTERS:
            raise InputError(f"training.smiles: expected {MOST_CHARACTERS:,} characters at most, got {characters:,}")
        for name, column in {"rows": plain["rows"], **plain["values"]}.items():
            if len(column) != len(plain["smiles"]):
                expected = f"{len(plain['smiles'])} entries, one for each of training.smiles"
                raise InputError(f"training: expected {expected}, got {len(column)} of {name}")
        return cls(**{name: plain[name] for name in kinds})


# --- The overlap of a table with the training rows, on which its scores do not apply to new molecules.


class Overlap:
    """Number of molecules of a table that were training molecules of the model, counted while the table is predicted.

    For a blend, validation molecules count as training molecules too, because the kernel model is fitted to them.
    `trained` of the `rows` molecules that could be read are among the training rows in the model file.
    """

    def __init__(self, training: TrainingRows | None, task: Task, columns: Sequence[str]) -> None:
        self.training = training
        self.trained: int = 0
        self.rows: int = 0
        self._known: set[str] = set() if training is None else set(training.smiles)
        self._scores: Scores = task.answers.scores(columns)

    def add(self, rows: Sequence[Row], answers: Answers, smiles: Sequence[str | None]) -> None:
        """Add some rows, their answers and their canonical SMILES."""
        new = np.array([i for i, text in enumerate(smiles) if text not in self._known], np.int64)
        self.rows += len(rows)
        self.trained += len(rows) - len(new)
        if len(new):
            self._scores.add([rows[i] for i in new], answers.subset(new))

    @property
    def is_none(self) -> bool:
        """True if the model was trained on no molecule of the table for certain."""
        return not self.trained and self.training is not None and not self.training.is_sample

    @property
    def metrics(self) -> dict[str, Any] | None:
        """Scores on molecules that were not training molecules, as in `metrics.json`; None without any."""
        return self._scores.metrics() if self.trained else None

    def __str__(self) -> str:
        if self.training is None:
            unknown = f"on how many of these {self.rows:,} molecules the model was trained is unknown"
            return f"the model file contains no training rows: {unknown}, and the scores may not apply to new molecules"
        kept = f"{len(self.training):,} of the {self.training.trained:,} training rows"
        if not self.trained:
            return f"none of these {self.rows:,} molecules is in the model file, which contains {kept}"
        count = f"at least {self.trained:,}" if self.training.is_sample else f"{self.trained:,}"
        overlap = f"the model was trained on {count} of these {self.rows:,} molecules"
        if self.trained == self.rows:
            return f"{overlap}: the scores do not apply to new molecules"
        return overlap if self.metrics is None else f"{overlap}; the other {self.rows - self.trained:,} alone:"


# --- The training molecules that are most similar to a molecule.


class Neighbours:
    """Comparison of molecules with training rows by the Tanimoto similarity of Morgan counts."""

    def __init__(self, training: TrainingRows, featuriser: Featuriser) -> None:
        joined = graph_featuriser(featuriser).joined
        done = featurise(joined, list(training.smiles), workers=0, smiles=False)
        self.training = training
        self.rows: np.ndarray = done.good
        if not len(self.rows):
            raise InputError("training: no molecule of the training rows in the model file can be read")
        self.kernel: TanimotoKernel = morgan_kernel(done.store)

    @cached_property
    def measured(self) -> dict[str, np.ndarray]:
        """Measured values of each target, `[n]`, see `TrainingRows.column`."""
        return {name: self.training.column(name) for name in self.training.values}

    def nearest(self, store: MoleculeStore, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of the training rows nearest to each of m molecules, int64 `[m, k]`, and their
        similarity from 0 to 1, float64 `[m, k]`; k is `count`, or less where fewer rows are kept.
        """
        place, similarity = nearest_references(self.kernel, store, min(count, len(self.rows)))
        return self.rows[place], similarity


def graph_featuriser(featuriser: Featuriser) -> Featuriser:
    """Return the featuriser without descriptors, further features and coordinates, which comparisons do not need."""
    return replace(featuriser, descriptors=False, molecule_features=(), coordinates=False, conformers=False)


MOST_NEIGHBOURS = 1000
"""Maximum number of neighbours of a row; each has columns of its own."""


@dataclass(frozen=True)
class NeighbourColumns:
    """Comparison with the most similar training molecules, see `gtx.prediction.Predictor.with_neighbours`.

    The predictor, whose file imports this one, has no type here.
    """

    count: int
    domain: bool

    def named(self, predictor: Any) -> Iterator[tuple[str, type]]:
        yield "similarity", float
        if self.domain:
            yield "domain", str
            targets = predictor.task.targets
            for prefix in [""] if len(targets) == 1 else [f"{name}_" for name in targets]:
                yield from ((f"{prefix}domain_{kind}", float) for kind in ("error", "rows"))
        for k in range(1, self.count + 1):
            yield from ((f"neighbour_{k}", str), (f"neighbour_{k}_similarity", float))
            for name, column in predictor.comparison.measured.items():
                yield f"neighbour_{k}_{name}", float if column.dtype.kind == "f" else str

    def values(self, predictor: Any, store: MoleculeStore, outputs: Any) -> list[np.ndarray]:
        comparison = predictor.comparison
        place, similarity = comparison.nearest(store, max(self.count, 1))
        missing = ((0, 0), (0, max(self.count, 1) - place.shape[1]))  # where the file keeps fewer rows
        place = np.pad(place, missing, constant_values=-1)
        similarity = np.pad(similarity, missing, constant_values=np.nan)
        columns = [similarity[:, 0]]
        if self.domain:
            columns += predictor.domain.columns(similarity[:, 0])
        kept = np.array(comparison.training.smiles, object), *comparison.measured.values()
        with_blank = [np.append(each, np.full(1, np.nan if each.dtype.kind == "f" else None)) for each in kept]
        for k in range(self.count):
            first, *measured = (each[place[:, k]] for each in with_blank)
            columns += [first, similarity[:, k], *measured]
        return columns


def neighbour_lines(predictor: Any, smiles: str | tuple[str, ...]) -> list[str]:
    """Describe the training molecules that are most similar to one molecule, or row, in lines of text."""
    if predictor.header.training is None:
        return ["similar training molecules: the model file keeps no training rows"]
    nearest = predictor.neighbours([smiles])
    if not (nearest["similarity"] > 0).any():
        return ["similar training molecules: no training molecule shares a substructure with it"]
    targets = list(nearest)[list(nearest).index("similarity") + 1 :]
    table = ["most similar training molecules, by rows of the training table:"]
    for row in nearest.to_dict("records"):
        values = ", ".join(f"{name} {_shown(row[name])}" for name in targets)
        table.append(f"  row {row['row']}, similarity {row['similarity']:.2f}, {values}: {row['neighbour']}")
    return table


def _shown(value: Any) -> str:
    """Format a measured value; a blank is "not measured"."""
    if isinstance(value, str):
        return value or "not measured"
    return "not measured" if math.isnan(value) else f"{value:.6g}"


# --- The domain of a model: bands of similarity to the training rows, and the error on validation rows in each.

BANDS = ("inside", "edge", "outside")
SHARES = (0.1, 0.4)
"""Shares of the validation rows, the least similar first, that are outside, and that are outside or at the edge."""
FEWEST = 10
"""Minimum number of validation rows of an error; with fewer it is None. Bands get as many if there are rows enough."""
MOST_MEASURED = 5_000
"""Maximum number of validation or test rows that measure errors; a comparison of as many takes some seconds."""
WRONG = "share of wrong classes"


@dataclass(frozen=True)
class Domain:
    """Bands of similarity to the nearest training row, with the error of the model on validation rows in each.

    Molecules with a similarity below the first of the edges are outside, from the second on inside, and between the two
    at the edge.
    """

    edges: tuple[float, float]
    error: str  # name of a metric of the task, or `WRONG` for classes
    rows: Mapping[str, Sequence[int]]  # number of validation rows with a value, by band for each target
    errors: Mapping[str, Sequence[float | None]]  # in units of the metric; None for fewer than `FEWEST` rows

    @classmethod
    def measure(cls, task: NumericTask, similarity: np.ndarray, y: np.ndarray, prediction: np.ndarray) -> Self | None:
        """Choose the bands from n validation rows, and measure the error in each; None for fewer than `FEWEST` rows.

        `similarity` `[n]` is that to the nearest training row; `y` is `[n, T]`, NaN for blanks; `prediction` `[n, P]`.
        """
        measured = ~np.isnan(y).all(axis=1)
        ordered = np.sort(similarity[measured])
        n = len(ordered)
        if n < FEWEST:
            return None
        below = [math.ceil(share * n) for share in SHARES]
        if n >= FEWEST * len(BANDS):
            below = [max(rows, FEWEST * k) for k, rows in enumerate(below, 1)]
        low, high = (float(ordered[ordered > ordered[rows - 1]].min(initial=ordered[-1])) for rows in below)
        error = next((name for name, metric in task.metrics.items() if metric.lower), WRONG)
        return cls((low, high), error, {}, {}).on(task, similarity, y, prediction)

    def on(self, task: NumericTask, similarity: np.ndarray, y: np.ndarray, prediction: np.ndarray) -> Self:
        """Return the same bands with the errors on other rows, see `measure`."""
        band, wrong = self.assign(similarity), self.error == WRONG
        rows: dict[str, list[int]] = {}
        errors: dict[str, list[float | None]] = {}
        for k, name in enumerate(BANDS):
            rows[name] = (~np.isnan(y[band == k])).sum(axis=0).tolist()
            errors[name] = [None] * len(task.targets)
            if max(rows[name]) < FEWEST:
                continue
            scores = task.objective.evaluate(y[band == k], prediction[band == k])["per_target"]
            for t, target in enumerate(task.targets):
                score = scores[target]["accuracy" if wrong else self.error]
                if rows[name][t] >= FEWEST and score is not None:
                    errors[name][t] = 1 - score if wrong else score
        return replace(self, rows=rows, errors=errors)

    def assign(self, similarity: np.ndarray) -> np.ndarray:
        """Return the position in `BANDS` of each similarity `[n]`."""
        return 2 - np.searchsorted(self.edges, similarity, side="right")

    def columns(self, similarity: np.ndarray) -> list[np.ndarray]:
        """Return the band of each similarity `[m]`, and for each target the error, NaN from too few rows, and the rows
        of the band.
        """
        band = self.assign(similarity)
        errors, rows = (np.array([of[name] for name in BANDS], np.float64)[band].T for of in (self.errors, self.rows))
        return [np.array(BANDS, object)[band], *(column for pair in zip(errors, rows, strict=True) for column in pair)]

    def bounds(self, band: str) -> str:
        """Describe the similarities of a band."""
        low, high = self.edges
        words = {"inside": f"from {high:.2f}", "edge": f"{low:.2f} to {high:.2f}", "outside": f"below {low:.2f}"}
        return words[band]

    def describe(self, targets: Sequence[str], units: Mapping[str, str]) -> list[str]:
        """Describe the bands, a line each."""
        lines = []
        for band in BANDS:
            each = []
            for name, rows, error in zip(targets, self.rows[band], self.errors[band], strict=True):
                whose = f"{name} " if len(targets) > 1 else ""
                unit = f" {units[name]}" if name in units and self.error in ("rmse", "mae") else ""
                if error is None:
                    each.append(f"{whose}too few validation rows to tell an error, {rows:,}")
                else:
                    each.append(f"{whose}{self.error} {error:.3g}{unit} on {rows:,} validation rows")
            lines.append(f"{band} (similarity {self.bounds(band)}): {'; '.join(each)}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Convert the domain to plain values for JSON."""
        bands = {band: {"rows": list(self.rows[band]), "errors": list(self.errors[band])} for band in BANDS}
        return {"edges": list(self.edges), "error": self.error, "bands": bands}

    @classmethod
    def from_dict(cls, plain: dict[str, Any], targets: int) -> Self:
        """Rebuild the domain from the plain values of `to_dict`, with an `InputError` for what is not in order."""
        counts, errors = (list_of(kind, targets, targets) for kind in (integer(0, 2**53), number(0) | None))
        bands = entries(dict.fromkeys(BANDS, entries({"rows": counts, "errors": errors})))
        check(plain, entries({"edges": list_of(number(0, 1), 2, 2), "error": Text, "bands": bands}), "domain")
        low, high = plain["edges"]
        if low > high:
            raise InputError(f"domain.edges: expected ascending numbers, got {low:g} and {high:g}")
        bands = plain["bands"]
        rows, errors = ({name: bands[name][entry] for name in BANDS} for entry in ("rows", "errors"))
        return cls((low, high), plain["error"], rows, errors)
