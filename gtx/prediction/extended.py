"""Predictors with further columns: the most similar training molecules and the domain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.prediction.model_file import ModelFileHeader
from gtx.prediction.neighbours import BANDS, Domain, Neighbours
from gtx.prediction.predictor import ExtendedAnswers, Predictor
from gtx.tasks.answers import Answers, fresh_columns


class ExtendedPredictor:
    """Base of predictors whose answers have further columns after those of the model: a `PredictorLike`.

    Args:
        predictor: predictor of the model.
        further: names and types of the further columns.
    """

    def __init__(self, predictor: Predictor, further: Iterable[tuple[str, type]]) -> None:
        self.predictor = predictor
        self.further: list[tuple[str, type]] = list(further)

    @property
    def header(self) -> ModelFileHeader:
        return self.predictor.header

    @property
    def device(self) -> torch.device:
        return self.predictor.device

    @property
    def task(self) -> Any:
        return self.predictor.task

    @property
    def checksum(self) -> str:
        return self.predictor.checksum

    def output_columns(self, taken: Iterable[str]) -> dict[str, type]:
        """Return the columns of the model and the further ones, and their types."""
        taken = list(taken)
        own = self.predictor.output_columns(taken)
        return own | fresh_columns([*taken, *own], self.further)


# --- Comparison with training rows, neighbours and domain: columns of a table, lines of text.


def neighbour_lines(predictor: Predictor, smiles: str) -> list[str]:
    """Describe the training molecules that are most similar to one molecule, in lines of text."""
    if predictor.header.training is None:
        return ["similar training molecules: the model file keeps no training rows"]
    found = predictor.neighbours([smiles])
    if not (found["similarity"] > 0).any():
        return ["similar training molecules: no training molecule shares a substructure with it"]
    targets = [name for name in found if name not in ("smiles", "neighbour", "row", "similarity")]
    table = ["most similar training molecules, by rows of the training table:"]
    for row in found.to_dict("records"):
        values = ", ".join(f"{name} {_shown(row[name])}" for name in targets)
        table.append(f"  row {row['row']}, similarity {row['similarity']:.2f}, {values}: {row['neighbour']}")
    return table


def _shown(value: Any) -> str:
    """Format a measured value; a blank is "not measured"."""
    if isinstance(value, str):
        return value or "not measured"
    return "not measured" if math.isnan(value) else f"{value:.6g}"


MOST = 1000
"""Maximum number of neighbours of a row; each has columns of its own."""


class NeighbourReportingPredictor(ExtendedPredictor):
    """Predictor that also compares each molecule with its most similar training molecules.

    The predictor adds the column `similarity`, the similarity to the nearest training molecule. With `domain`, the
    predictor adds `domain`, `domain_error` and `domain_rows` (for several targets `<target>_domain_error` and
    `<target>_domain_rows`), see `gtx.prediction.neighbours.Domain`. For each neighbour, the predictor adds the SMILES
    (`neighbour_1`), the similarity and the measured values.

    Args:
        predictor: predictor of the model.
        count: number of neighbours, 1 to `MOST`; None for no neighbours.
        domain: whether the band of similarity, and the error on validation rows of the band, are added.

    Raises:
        InputError: the model file contains no training rows or no domain, or `count` is out of range.
    """

    def __init__(self, predictor: Predictor, count: int | None, domain: bool = False) -> None:
        if count is not None and not 1 <= count <= MOST:
            raise InputError(f"neighbours: expected 1 to {MOST}, got {count}")
        self.count: int = count or 0
        self.near: Neighbours = predictor.comparison
        self.domain: Domain | None = predictor.domain if domain else None
        columns = self.near.training.values if self.count else ()
        self._measured: dict[str, np.ndarray] = {name: self.near.training.column(name) for name in columns}
        further: list[tuple[str, type]] = [("similarity", float)]
        if self.domain is not None:
            further += [("domain", str), *((name, float) for name in domain_names(predictor.header.targets))]
        for k in range(1, self.count + 1):
            measured = ((f"neighbour_{k}_{name}", _type(column)) for name, column in self._measured.items())
            further += [(f"neighbour_{k}", str), (f"neighbour_{k}_similarity", float), *measured]
        super().__init__(predictor, further)

    def predict_store(self, store: MoleculeStore) -> Answers:
        """Predict the molecules of a store, and compare them with the training rows."""
        return ExtendedAnswers(self.predictor.predict_store(store), self._columns(store))

    def _columns(self, store: MoleculeStore) -> list[np.ndarray]:
        place, similarity = self.near.nearest(store, max(self.count, 1))
        smiles = np.array(self.near.training.smiles, object)
        columns = [similarity[:, 0] if similarity.shape[1] else np.full(len(store), np.nan)]
        if self.domain is not None:
            columns += domain_columns(self.domain, columns[0])
        for k in range(self.count):
            if k < place.shape[1]:
                measured = [column[place[:, k]] for column in self._measured.values()]
                columns += [smiles[place[:, k]], similarity[:, k], *measured]
            else:
                blank = {float: np.full(len(store), np.nan), str: np.full(len(store), None, object)}
                columns += [blank[str], blank[float], *(blank[_type(column)] for column in self._measured.values())]
        return columns


def _type(column: np.ndarray) -> type:
    return float if column.dtype.kind == "f" else str


def domain_names(targets: Sequence[str]) -> list[str]:
    """Name the columns of errors and rows of the domain, target by target."""
    prefixes = [""] if len(targets) == 1 else [f"{name}_" for name in targets]
    return [f"{prefix}domain_{kind}" for prefix in prefixes for kind in ("error", "rows")]


def domain_columns(domain: Domain, similarity: np.ndarray) -> list[np.ndarray]:
    """Return the band of each similarity `[m]`, and the columns that `domain_names` names; NaN from too few rows."""
    band = domain.assign(similarity)
    columns = [np.array(BANDS, object)[band]]
    errors, rows = (np.array([of[name] for name in BANDS], np.float64) for of in (domain.errors, domain.rows))
    for t in range(rows.shape[1]):
        columns += [errors[band, t], rows[band, t]]
    return columns
