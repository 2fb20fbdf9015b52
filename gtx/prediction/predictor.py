"""Molecules in, numbers in the targets' own units out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.data import MoleculeStore
from gtx.data.rows import Row
from gtx.data.targets import read_targets
from gtx.molecules.features import ATOM_PLACE
from gtx.molecules.naming import name_code
from gtx.prediction.base import BasePredictor, as_texts, fresh_columns, name_unseen
from gtx.prediction.model_file import ModelHeader
from gtx.training import composition, evaluate

LARGE = 64  # atoms; far outside most training sets, outputs can be so large that float32 rounds them visibly


class Predictions(NamedTuple):
    """Numbers for m molecules and T targets, in the targets' own units; for classes, the probability of class 1.

    Attributes:
        mean: float64 `[m, T]`, the mean over members.
        std: float64 `[m, T]`, the members' sample standard deviation; None for a single member.
        low, high: float64 `[m, T]`, bounds of the conformal interval, or None; NaN for a target that has none.
        unseen: per molecule, what about it the model has not seen in training, an element without a reference
            included, or None.
    """

    mean: np.ndarray
    std: np.ndarray | None
    low: np.ndarray | None
    high: np.ndarray | None
    unseen: list[str | None]

    @property
    def finite(self) -> np.ndarray:
        """bool `[m]`: the molecules that every target has a number for."""
        return np.isfinite(self.mean).all(axis=1)

    @property
    def remarks(self) -> list[list[str]]:
        """Per molecule, what there is to warn of."""
        return [[unseen] if unseen else [] for unseen in self.unseen]

    def columns(self) -> list[np.ndarray]:
        """float64 `[m]` each, as `Predictor.output_columns` names them; NaN for a molecule that is not `finite`."""
        kinds = [kind for kind in (self.mean, self.std, self.low, self.high) if kind is not None]
        table = np.stack(kinds, axis=2).reshape(len(self.mean), len(kinds) * self.mean.shape[1])  # target by target
        return list(np.where(self.finite[:, None], table, np.nan).T)


class Predictor(BasePredictor):
    """Predicts numbers. `predict` gives `<target>_pred`, for an ensemble also `<target>_std`, and `<target>_low` and
    `<target>_high` where the file holds an interval. Arguments as `BasePredictor`."""

    def output_columns(self, taken: Iterable[str]) -> dict[str, type]:
        kinds = ["pred"] + (["std"] if len(self.members) > 1 else [])
        kinds += ["low", "high"] if self.header.interval else []
        return fresh_columns(taken, ((f"{target}_{kind}", float) for target in self.header.targets for kind in kinds))

    def predict_store(self, store: MoleculeStore) -> Predictions:
        """Predict molecules that are featurised already, by the header's featuriser."""
        scaler = self.header.scaler
        counts = composition(store) if scaler.reference is not None else None
        outputs, unseen = self._run(store)
        members = torch.stack([scaler.unscale(output, counts) for output in outputs]).numpy()  # [members, m, T]
        mean = members.mean(0)
        std = members.std(0, ddof=1) if len(members) > 1 else None
        low, high = self.bounds(mean)
        if counts is not None:
            lacking = scaler.without_reference(counts)
            for i in lacking.any(dim=1).nonzero().flatten().tolist():
                unseen[i] = "; ".join(filter(None, (unseen[i], self._name_lacking(lacking[i]))))
        return Predictions(mean, std, low, high, unseen)

    def scores(self, columns: Sequence[str]) -> NumberScores:
        return NumberScores(self.header, columns)

    def bounds(self, mean: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The conformal interval around predictions `[m, T]`: low and high, or None where the file holds none."""
        if self.header.interval is None:
            return None, None
        half = np.array(self.header.interval["half_width"], dtype=float)  # None is NaN
        return mean - half, mean + half

    def embed(self, smiles: Iterable[str] | str, workers: int | None = None) -> np.ndarray:
        """One vector per SMILES, float32 `[n, width]`: what the head of the network sees.

        An ensemble's members are laid side by side. A SMILES that cannot be read gives a row of NaN and a warning.
        """
        texts = as_texts(smiles)
        done = self._featurise(texts, workers)
        vectors = torch.cat(self._run(done.store, "embed")[0].unbind(), dim=1)
        rows = np.full((len(texts), vectors.shape[1]), np.nan, np.float32)
        rows[done.good] = vectors.float().numpy()
        if bad := len(texts) - len(done.good):
            first = next(i for i, error in enumerate(done.errors) if error)
            warnings.warn(f"{bad} of {len(texts)} SMILES give NaN; number {first}: {done.errors[first]}", stacklevel=2)
        return rows

    def _name_lacking(self, elements: Tensor) -> str:
        """What a reference per element does not know of a molecule, bool `[119]`, in words."""
        targets = ", ".join(self.header.targets[t] for t in self.header.scaler.extensive)
        symbols = ", ".join(
            name_code("atom", ATOM_PLACE["element"], code) for code in elements.nonzero().flatten().tolist()
        )
        return f"{targets}: without what {symbols} contributes, which training did not show: not to be relied on"

    def _run(self, store: MoleculeStore, method: str = "forward") -> tuple[Tensor, list[str | None]]:
        """What a method of every member makes of the molecules, float64 `[members, m, width]` on the CPU, and what
        about each molecule they have not seen in training."""
        held = store.to(self.device)

        @torch.inference_mode()
        def run(rows: Tensor) -> tuple[Tensor, list[list[tuple[str, int, int]]]]:
            batch = held.batch(rows.to(self.device))
            large = bool((store.sizes[rows] > LARGE).any())
            members, given = (self._precise, _in_double(batch)) if large else (self.members, batch)
            outputs = [getattr(member, method)(given).double().cpu() for member in members]
            return torch.stack(outputs), members[0].unseen(batch)  # all members saw the same

        # no molecules are one empty batch: its outputs have a width all the same
        batches = self._batches(store) or [torch.zeros(0, dtype=torch.long)]
        made = self._run_all(run, batches)
        unseen: list[str | None] = [None] * len(store)
        for rows, (_, found) in zip(batches, made, strict=True):
            for row, codes in zip(rows.tolist(), found, strict=True):
                unseen[row] = name_unseen(codes)
        whole = torch.cat([outputs for outputs, _ in made], dim=1)
        return torch.empty_like(whole).index_copy_(1, torch.cat(batches), whole), unseen

    @cached_property
    def _precise(self) -> list[nn.Module]:
        return [deepcopy(member).double() for member in self.members]


class NumberScores:
    """Predictions beside the measured values, as far as the table holds them: 16 bytes per row and target.

    Args:
        header: of the model.
        columns: of the table.
    """

    def __init__(self, header: ModelHeader, columns: Sequence[str]) -> None:
        self.task, self.columns = header.task, columns
        self.held = [t for t, target in enumerate(header.targets) if columns.count(target) == 1]
        self.targets = [header.targets[t] for t in self.held]
        self.y: list[np.ndarray] = []
        self.prediction: list[np.ndarray] = []

    def add(self, rows: Sequence[Row], answers: Predictions) -> None:
        """Take in some rows and what was predicted for them."""
        if self.held:
            self.y.append(read_targets(rows, self.columns, self.targets, self.task))
            self.prediction.append(answers.mean[:, self.held])

    def metrics(self) -> dict[str, Any] | None:
        """As `gtx.training.evaluate`; None without a single measured value."""
        if not self.y:
            return None
        y, prediction = np.concatenate(self.y), np.concatenate(self.prediction)
        return None if np.isnan(y).all() else evaluate(y, prediction, self.task, self.targets)

    def notes(self) -> list[str]:
        """Nothing: numbers speak for themselves."""
        return []


def _in_double(batch: Batch) -> Batch:
    return batch.apply(lambda values: values.double() if values.is_floating_point() else values)
