"""A trained model at work: molecules in, numbers in the targets' own units out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.data import Featurised, MoleculeStore, PairBudgetSampler, featurise
from gtx.data.table_writer import fresh_name
from gtx.errors import InputError
from gtx.molecules.naming import name_code
from gtx.prediction.model_file import ModelHeader, load_model
from gtx.prediction.threads import in_threads
from gtx.training import composition

if TYPE_CHECKING:
    from gtx.prediction.streaming import TableOutcome

BATCH_PAIRS, BATCH_MOLECULES = 50_000, 256  # larger batches are hardly faster on a CPU, and need more memory
LARGE = 64  # atoms; far outside most training sets, outputs can be so large that float32 rounds them visibly


NOT_FINITE = "the model's output is no finite number"


class Predictions(NamedTuple):
    """Numbers for m molecules and T targets, in the targets' own units; for classes, the probability of class 1.

    Attributes:
        mean: float64 `[m, T]`, the mean over members.
        std: float64 `[m, T]`, the members' sample standard deviation; None for a single member.
        low, high: float64 `[m, T]`, bounds of the conformal interval, or None; NaN for a target that has none.
        unseen: per molecule, what about it the model has not seen in training, or None.
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

    def table(self) -> np.ndarray:
        """float64 `[m, C]`: the columns `output_columns` names."""
        kinds = [kind for kind in (self.mean, self.std, self.low, self.high) if kind is not None]
        return np.stack(kinds, axis=2).reshape(len(self.mean), len(kinds) * self.mean.shape[1])  # target by target


class Predictor:
    """The members of a model file and what it takes to use them.

    Args:
        members: networks of the same kind, one or more.
        header: what the file says of them.
        device: where they run; by default a GPU if there is one.
    """

    def __init__(self, members: Sequence[nn.Module], header: ModelHeader, device: str | None = None) -> None:
        self.header = header
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.members = [member.to(self.device).eval() for member in members]

    def __repr__(self) -> str:
        h = self.header
        return f"Predictor({h.task} of {', '.join(h.targets)}, {len(self.members)} x {h.model['name']})"

    def __reduce__(self) -> tuple[type[Predictor], tuple[list[nn.Module], ModelHeader]]:
        # a pickle made beside a GPU can be opened where there is none
        return Predictor, ([deepcopy(member).cpu() for member in self.members], self.header)

    def predict(self, smiles: Iterable[str] | str, workers: int | None = None) -> pd.DataFrame:
        """Predict molecules given as SMILES.

        Args:
            smiles: one, or any number of them (a list, an array, a pandas column).
            workers: processes that read molecules; by default none for a few, all cores for many.

        Returns:
            A row per SMILES, in order: `smiles` as given, `<target>_pred` (for an ensemble also `<target>_std`, and
            `<target>_low`, `<target>_high` where the file holds an interval), `error` and `warning` (both missing
            where there is none). A row has numbers or an error, never both.
        """
        given = [smiles] if isinstance(smiles, str) else list(smiles)
        done = self._featurise(_texts(given), workers)
        predictions = self.predict_store(done.store)
        frame = pd.DataFrame({"smiles": given})
        errors = list(done.errors)
        columns = output_columns(self.header, ["smiles", "error", "warning"], len(self.members))
        values = np.full((len(given), len(columns)), np.nan)
        values[done.good] = predictions.table()
        notes = [list(entry) for entry in done.warnings]
        for i, unseen in zip(done.good, predictions.unseen, strict=True):
            notes[i] += [unseen] if unseen else []
        for i in done.good[~predictions.finite]:
            values[i], errors[i] = np.nan, NOT_FINITE
        frame[columns] = values
        return frame.assign(error=errors, warning=["; ".join(entry) or None for entry in notes])

    def embed(self, smiles: Iterable[str] | str, workers: int | None = None) -> np.ndarray:
        """One vector per SMILES, float32 `[n, width]`: what the head of the network sees.

        An ensemble's members are laid side by side. A SMILES that cannot be read gives a row of NaN and a warning.
        """
        texts = _texts(smiles)
        done = self._featurise(texts, workers)
        vectors = torch.cat(self._run(done.store, "embed")[0].unbind(), dim=1)
        rows = np.full((len(texts), vectors.shape[1]), np.nan, np.float32)
        rows[done.good] = vectors.float().numpy()
        if bad := len(texts) - len(done.good):
            first = next(i for i, error in enumerate(done.errors) if error)
            warnings.warn(f"{bad} of {len(texts)} SMILES give NaN; number {first}: {done.errors[first]}", stacklevel=2)
        return rows

    def predict_table(self, source: str | Path, out: str | Path, **options: Any) -> TableOutcome:
        """Predict a table of any length and write it; see `gtx.prediction.predict_table`."""
        from gtx.prediction.streaming import predict_table

        return predict_table(self, source, out, **options)

    def predict_store(self, store: MoleculeStore) -> Predictions:
        """Predict molecules that are featurised already, by the header's featuriser."""
        scaler = self.header.scaler
        counts = composition(store) if scaler.reference is not None else None
        outputs, unseen = self._run(store)
        members = torch.stack([scaler.unscale(output, counts) for output in outputs]).numpy()  # [members, m, T]
        mean = members.mean(0)
        std = members.std(0, ddof=1) if len(members) > 1 else None
        low, high = self.bounds(mean)
        return Predictions(mean, std, low, high, unseen)

    def bounds(self, mean: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The conformal interval around predictions `[m, T]`: low and high, or None where the file holds none."""
        if self.header.interval is None:
            return None, None
        half = np.array(self.header.interval["half_width"], dtype=float)  # None is NaN
        return mean - half, mean + half

    def _featurise(self, texts: Sequence[str], workers: int | None) -> Featurised:
        return featurise(self.header.featuriser, texts, workers=workers)

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

        batches = self._batches(store)
        with _without_onednn():
            made = in_threads(run, batches) if self.device.type == "cpu" else list(map(run, batches))
        unseen: list[str | None] = [None] * len(store)
        for rows, (_, found) in zip(batches, made, strict=True):
            for row, codes in zip(rows.tolist(), found, strict=True):
                if codes:
                    unseen[row] = f"not seen in training: {', '.join(name_code(*code) for code in codes)}"
        whole = torch.cat([outputs for outputs, _ in made], dim=1)
        return torch.empty_like(whole).index_copy_(1, torch.cat(batches), whole), unseen

    @cached_property
    def _precise(self) -> list[nn.Module]:
        return [deepcopy(member).double() for member in self.members]

    def _batches(self, store: MoleculeStore) -> list[Tensor]:
        """Which molecules go together."""
        sampler = PairBudgetSampler(store.sizes, BATCH_PAIRS, max_molecules=BATCH_MOLECULES, shuffle=False)
        # no molecules are one empty batch: its outputs have a width all the same
        return sampler.batches() or [torch.zeros(0, dtype=torch.long)]


def load(path: str | Path, device: str | None = None) -> Predictor:
    """Open a model file (also as `gtx.load`).

    Args:
        path: a `model.gtx`.
        device: as torch names it; by default a GPU if there is one.

    Raises:
        InputError: there is no such file, it cannot be used, or there is no such device.
    """
    members, header = load_model(path)
    try:
        return Predictor(members, header, device)
    except (RuntimeError, AssertionError) as reason:  # torch built without CUDA asserts
        raise InputError(f"device {device!r} cannot be used: {str(reason).splitlines()[0]}") from None


@contextmanager
def _without_onednn() -> Iterator[None]:
    """oneDNN keeps code for every shape it meets, and each batch has another: half a gigabyte, and no faster."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


def _in_double(batch: Batch) -> Batch:
    return batch.apply(lambda values: values.double() if values.is_floating_point() else values)


def output_columns(header: ModelHeader, taken: Iterable[str], members: int) -> list[str]:
    """Names of the columns of numbers, target by target: `y_pred`, or `y_pred1` where `taken` has that name."""
    kinds = ["pred"] + (["std"] if members > 1 else []) + (["low", "high"] if header.interval else [])
    names = list(taken)
    for target in header.targets:
        for kind in kinds:
            names.append(fresh_name(names, f"{target}_{kind}"))
    return names[len(names) - len(kinds) * len(header.targets) :]


def _texts(smiles: Iterable[str] | str) -> list[str]:
    """As a list; what is no text (a gap of a pandas column) is an empty one, which cannot be read."""
    texts = [smiles] if isinstance(smiles, str) else list(smiles)
    return [text if isinstance(text, str) else "" for text in texts]
