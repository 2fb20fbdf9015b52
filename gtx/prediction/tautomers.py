"""Predictions by the likeliest tautomers of each molecule, the same for every drawing of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import pandas as pd
import torch

from gtx.data import FeaturisingResult, MoleculeStore
from gtx.data.columns import RowFeatures
from gtx.errors import InputError
from gtx.molecules import featurise_texts
from gtx.molecules.perception import Text
from gtx.molecules.tautomers import MOST_TAUTOMERS, enumerate_tautomers
from gtx.prediction.predictor import ExtendedAnswers, ExtendedPredictor, Predictor
from gtx.prediction.streaming import ChunkAnswers
from gtx.tasks import NumericTask
from gtx.tasks.task import Answers

INCOMPLETE = "has more tautomers than RDKit lists: another drawing of it may get another prediction"


class TautomerPredictor(ExtendedPredictor):
    r"""Predictor that averages the outputs over the likeliest tautomers of each molecule (see `PredictorLike`):

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
        done = FeaturisingResult.join([featurise_texts(read, list(chain(*(group.texts for group in groups))))])
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
