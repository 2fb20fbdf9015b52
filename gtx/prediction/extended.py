"""Predictors with further columns: the most similar training molecules and the domain; an average over tautomers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import torch

from gtx.data import FeaturisationResult, MoleculeStore
from gtx.data.columns import RowFeatures
from gtx.errors import InputError
from gtx.molecules.perception import Text, featurise_texts
from gtx.molecules.tautomers import MOST_TAUTOMERS, enumerate_tautomers
from gtx.prediction.model_file import ModelFileHeader
from gtx.prediction.neighbours import BANDS, Domain, Neighbours
from gtx.prediction.predictor import ExtendedAnswers, Predictor
from gtx.prediction.streaming import ChunkAnswers
from gtx.tasks import NumericTask
from gtx.tasks.task import Answers, fresh_columns


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


# --- Predictions by the likeliest tautomers of each molecule, the same for every drawing of it.

INCOMPLETE = "has more tautomers than RDKit lists: another drawing of it may get another prediction"


class TautomerAveragingPredictor(ExtendedPredictor):
    r"""Predictor that averages the predictions over the likeliest tautomers of each molecule.

    \[ z(x) = \frac{1}{|B(x)|} \sum_{t \in B(x)} z(t) \]

    with B(x) the tautomers of RDKit's highest score, see `gtx.molecules.tautomers.enumerate_tautomers`; the set is the
    same for each tautomer of a molecule. Outputs are scaled numbers, or logits of classes. The further columns are
    `<target>_tautomer_std`, the standard deviation of the prediction over all listed tautomers, and `tautomers`, their
    number.

    Args:
        predictor: the model, of numbers or of one of two classes of molecules.
        most: maximum number of listed tautomers of a molecule, 1 or more.

    Raises:
        InputError: the model predicts something else, or reads several molecules a row or coordinates; or `most` is
            less than 1.
    """

    def __init__(self, predictor: Predictor, most: int = MOST_TAUTOMERS) -> None:
        task, read = predictor.task, predictor.header.featuriser
        if not isinstance(task, NumericTask) or task.num_predictions != len(task.targets):
            raise InputError(f"an average over tautomers is of numbers or of one of two classes, not of {task.name}")
        if read.components or (read.coordinates and not read.conformers):
            kind = "several molecules a row" if read.components else "coordinates"
            raise InputError(f"this model reads {kind}, which have no tautomers to average over")
        if most < 1:
            raise InputError(f"tautomers: expected 1 or more, got {most}")
        super().__init__(predictor, [*((f"{name}_tautomer_std", float) for name in task.targets), ("tautomers", float)])
        self.most = most

    def predict_store(self, store: MoleculeStore) -> Answers:
        """Predict molecules that are featurised already, each as its only tautomer."""
        every = torch.arange(len(store))
        return self._average(store, every, torch.ones(len(store), dtype=torch.float64))

    def answer_texts(
        self,
        texts: Sequence[Text],
        coordinates: Sequence[np.ndarray | None],
        features: Sequence[RowFeatures | None],
        smiles: bool = False,
    ) -> ChunkAnswers:
        """Read n texts, and predict each by its tautomers; coordinates are ignored."""
        read, wanted = self.header.featuriser, self.header.features
        groups = [enumerate_tautomers(read, str(text), self.most) for text in texts]
        owner = np.repeat(np.arange(len(texts)), [len(group.texts) for group in groups])
        done = FeaturisationResult.join([featurise_texts(read, list(chain(*(group.texts for group in groups))))])
        done = wanted.joined(done, [features[i] for i in owner.tolist()]) if wanted else done
        errors: list[str | None] = [None] * len(texts)
        remarks: list[dict[str, None]] = [{} if group.complete else {INCOMPLETE: None} for group in groups]
        for i, error, warnings in zip(owner.tolist(), done.errors, done.warnings, strict=True):
            errors[i] = errors[i] or error
            remarks[i].update(dict.fromkeys(warnings))
        good = np.array([i for i, error in enumerate(errors) if error is None], np.int64)
        used = np.isin(owner[done.good], good)
        row = torch.from_numpy(np.searchsorted(good, owner[done.good][used]))
        weight = np.concatenate([np.zeros(0), *(np.arange(len(group.texts)) < group.best for group in groups)])
        answers = self._average(
            done.store.subset(np.flatnonzero(used)), row, torch.from_numpy(weight[done.good][used]).double()
        )
        written = [
            group.smiles if smiles and error is None else None for group, error in zip(groups, errors, strict=True)
        ]
        return ChunkAnswers(errors, [tuple(each) for each in remarks], good, answers, written)

    def predict(self, smiles: Iterable[str] | str | pd.DataFrame) -> pd.DataFrame:
        """Predict molecules as `gtx.prediction.Predictor.predict` does, each by its tautomers."""
        molecules, texts, features = self.predictor.read_rows(smiles)
        done = self.answer_texts(texts, [None] * len(texts), features)
        return self.predictor.frame(molecules, done, self.output_columns)

    def _average(self, store: MoleculeStore, row: torch.Tensor, weight: torch.Tensor) -> Answers:
        """Average the outputs of molecules of the same row, by their weights; rows are numbered from 0, ascending."""
        outputs, unseen = self.predictor.outputs(store)
        first = np.flatnonzero(np.diff(row.numpy(), prepend=-1))
        count = torch.bincount(row, minlength=len(first)).double()

        def mean(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            """Average values `[M, *]` over the molecules of each row, `[n, *]`."""
            weight = weight.view(-1, *[1] * (values.dim() - 1))
            sums = (
                part.new_zeros(len(first), *part.shape[1:]).index_add_(0, row, part)
                for part in (values * weight, weight)
            )
            return torch.div(*sums)

        each, equal = torch.from_numpy(self.task.decode(outputs, store).mean), torch.ones_like(weight)
        spread = mean((each - mean(each, equal)[row]).square(), equal).sqrt().numpy()
        remarks: list[dict[str, None]] = [{} for _ in first]
        for i, found in zip(row.tolist(), unseen, strict=True):
            remarks[i].update({found: None} if found else {})
        answers = self.predictor.answers(
            store.subset(first), mean(outputs, weight), ["; ".join(each) or None for each in remarks]
        )
        return ExtendedAnswers(answers, [*spread.T, count.numpy()])
